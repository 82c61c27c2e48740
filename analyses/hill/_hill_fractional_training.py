"""The trainings of analysis `hill-fractional`: powers and roots asked of the exponential primitive."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses.hill._hill_optimizers_matrix import RATES
from analyses.hill._report_protocol import BATCH, GOLDILOCKS, SAMPLES
from workbench.hill.constraint import constrain_snapped
from workbench.hill.fitting import Stack, Stream, Target, Unit, shuffled

ROOTS = {  # exponents inside (-1, 1), where the constraint's slope does not vanish (report section 2.3)
    "square root": (1 / 2, 0.0),
    "cube root": (1 / 3, 0.0),
    "fourth root": (1 / 4, 0.0),
    "three-quarters power": (3 / 4, 0.0),
    "inverse square root": (-1 / 2, 0.0),
    "geometric mean": (1 / 2, 1 / 2),
}
BEYOND = {"square": (2.0, 0.0), "cube": (3.0, 0.0)}  # exponents no weight can take: |tanh sigmoid| <= 1
SELECTIONS = {"power-identity": (1.0, 0.0), "multiply": (1.0, 1.0)}  # the control: exponents that are selections
TARGETS = ROOTS | BEYOND | SELECTIONS
CLEAN, NOISY = 0.0, 1e-2  # standard deviation of the relative error of the training answers
NOISES = (CLEAN, NOISY)
START = 0.1  # standard deviation of the initial raw parameters: near neutral (report section 4.5)
EVERY = 25  # steps from one record of the weights to the next
FAR = 1e4  # trained units are evaluated on inputs up to here


@dataclass(frozen=True, eq=False)
class Trained:
    """Units of a target, optimizer, noise and seed each; of the two weights the one farther from its target counts.

    `away` is that distance at the end, `mean_away` its mean over the records of the last epoch. `jitter` is the root
    mean square of that weight about its own mean over the last epoch: how much training still moves it. `stays` is the
    share of those records at which the weights are the target's float64 numbers. `slope` is the length of the gradient
    of W over (W_hat, M_hat) at the end. `snapped_away` is the distance once snapped at the report's threshold, and
    `worst` the largest relative error of an answer on inputs from 1e-4 to 1e4. What diverged is infinitely far away.
    """

    keys: list[tuple[str, str, float, int]]
    W: Float[Tensor, "unit 2"]
    size: Float[Tensor, " unit"]  # of the weight that counts
    away: Float[Tensor, " unit"]
    mean_away: Float[Tensor, " unit"]
    jitter: Float[Tensor, " unit"]
    stays: Float[Tensor, " unit"]
    slope: Float[Tensor, " unit"]
    snapped_away: Float[Tensor, " unit"]
    worst: Float[Tensor, " unit"]
    diverged: Bool[Tensor, " unit"]


def unary(name: str) -> bool:
    """Whether the second input is 1 and its weight free."""
    return TARGETS[name][1] == 0


def problems(name: str, noise: float, seed: int) -> tuple[Float[Tensor, "sample 2"], Float[Tensor, " sample"]]:
    """Training inputs and answers; the same inputs with and without noise."""
    generator = np.random.default_rng([seed, list(TARGETS).index(name)])
    x = np.stack([GOLDILOCKS.draw(generator, SAMPLES), GOLDILOCKS.draw(generator, SAMPLES)], axis=1)
    if unary(name):
        x[:, 1] = 1
    y = (x ** np.array(TARGETS[name])).prod(axis=1)
    y = y * (1 + noise * generator.standard_normal(SAMPLES))
    return torch.from_numpy(x), torch.from_numpy(y)


def train(epochs: int, seeds: Sequence[int]) -> Trained:
    """Train every target by every optimizer, with and without noise, one unit a seed."""
    streams, units, keys = [], [], []
    for seed in seeds:
        starts = np.random.default_rng([seed, len(TARGETS)]).standard_normal((2, 2)) * START
        W_hat, M_hat = (tuple(row) for row in starts.tolist())
        for number, name in enumerate(TARGETS):
            for noise in NOISES:
                order = shuffled(SAMPLES, BATCH, seed * 100 + number)
                target = Target("exponential", TARGETS[name])
                streams.append(Stream(target, *problems(name, noise, seed), order))
                for setting, rule in RATES.items():
                    units.append(Unit((len(streams) - 1,), rule, W_hat, M_hat))
                    keys.append((name, setting, noise, seed))
    stack = Stack(streams, units, every=EVERY)
    for _ in range(epochs):
        stack.epoch()
    return _measured(stack, keys, SAMPLES // BATCH * (epochs - 1))


@torch.no_grad()
def _measured(stack: Stack, keys: list[tuple[str, str, float, int]], last: int) -> Trained:
    """What the records since step `last`, and the end, say of each unit."""
    names = [name for name, *_ in keys]
    goal = torch.tensor([TARGETS[name] for name in names], dtype=torch.float64)
    free = torch.tensor([[False, unary(name)] for name in names])
    way = stack.trajectory()
    records = way.W[way.step >= last]
    W = stack.W
    apart = torch.where(free, 0.0, (W - goal).abs()).nan_to_num(math.inf)
    farther = apart.argmax(dim=1)
    one = records[:, torch.arange(len(keys)), farther]  # [record, unit]
    tanh, sigmoid = torch.tanh(stack.W_hat), torch.sigmoid(stack.M_hat)
    slopes = torch.hypot((1 - tanh**2) * sigmoid, tanh * sigmoid * (1 - sigmoid))
    snapped = constrain_snapped(stack.W_hat, stack.M_hat)
    apart_snapped = torch.where(free, 0.0, (snapped - goal).abs())
    reach = math.log(FAR)
    return Trained(
        keys=keys,
        W=W,
        size=W.gather(1, farther[:, None])[:, 0].abs(),
        away=apart.amax(dim=1),
        mean_away=torch.where(free, 0.0, (records - goal).abs()).amax(dim=2).mean(dim=0).nan_to_num(math.inf),
        jitter=(one - one.mean(dim=0)).square().mean(dim=0).sqrt().nan_to_num(math.inf),
        stays=(records.eq(goal) | free).all(dim=2).double().mean(dim=0),
        slope=slopes.gather(1, farther[:, None])[:, 0].nan_to_num(0.0),
        snapped_away=apart_snapped.amax(dim=1).nan_to_num(math.inf),
        worst=torch.expm1(apart.sum(dim=1) * reach),
        diverged=stack.diverged,
    )
