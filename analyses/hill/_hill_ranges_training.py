"""Gradients, trainings and answers of analysis `hill-ranges`: what the range of the training inputs does to a unit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses.hill._hill_optimizers_matrix import RATES
from analyses.hill._report_protocol import BATCH, Distribution, Problems, inputs, targets
from workbench.hill.constraint import constrain_snapped
from workbench.hill.fitting import Optimizer, Stack, Stream, Target, Unit, optimizer, shuffled
from workbench.hill.operations import operation
from workbench.hill.primitives import compute

OPERATIONS = ("add", "subtract", "multiply", "divide", "power-identity", "sin", "cos-sum")
ARITHMETIC = OPERATIONS[:5]
EXPONENTIAL = OPERATIONS[2:5]
Signs = Literal["positive", "negative", "crossing"]
SIGNS: tuple[Signs, ...] = ("positive", "negative", "crossing")
SIZES = (1.0, 5.0, 10.0, 100.0, 1e4)
SMALLEST = 1e-8  # the end of a one-sided range that is nearer to zero (report section 2.4)
OPTIMIZERS: dict[str, Optimizer] = {
    "Adam, beta2 0.5": RATES["Adam, beta2 0.5"],  # as in section 4.5
    "Adam": RATES["Adam"],
    "RMSProp of 4.3": optimizer("rmsprop", lr=0.01, alpha=0.9, eps=1e-10),
    "SGD with momentum": RATES["SGD with momentum"],
}
SAMPLES = 6400
PLACES = (0.0, 0.5, 0.9)  # of the way from zero weights to the selection, where gradients are measured
BATCHES = 200  # for each of them


@dataclass(frozen=True)
class Range:
    """Where both training inputs are uniform: up to `size`, of the signs said."""

    signs: Signs
    size: float

    @property
    def within(self) -> Distribution:
        """The distribution."""
        low = SMALLEST if self.signs == "positive" else -self.size
        return Distribution("uniform", low, -SMALLEST if self.signs == "negative" else self.size)

    def __str__(self) -> str:
        ends = {"positive": f"0 to {self.size:g}", "negative": f"-{self.size:g} to 0"}
        return ends.get(self.signs, f"-{self.size:g} to {self.size:g}")


RANGES = tuple(Range(signs, size) for signs in SIGNS for size in SIZES)


def problems(name: str, where: Range, seed: int, count: int) -> Problems:
    """Inputs as the report draws them, its repairs of extreme quotients included, and float64 answers."""
    generator = np.random.default_rng([seed, OPERATIONS.index(name), RANGES.index(where)])
    x = inputs(name, where.within, generator, count)
    return torch.from_numpy(x), torch.from_numpy(targets(name, x))


@dataclass(frozen=True)
class Slope:
    """Root mean square, over batches, of the length of the loss's gradient over W, some way to the selection."""

    operation: str
    where: Range
    place: float
    size: float
    largest: float
    n: int


def gradients(seed: int) -> list[Slope]:
    """The gradient's size for every operation, range and place."""
    found = []
    for name in OPERATIONS:
        row = operation(name)
        for where in RANGES:
            x, y = problems(name, where, seed, BATCHES * BATCH)
            x, y = x.view(BATCHES, BATCH, 2), y.view(BATCHES, BATCH)
            for place in PLACES:
                selection = torch.tensor(row.selection, dtype=torch.float64) * place
                W = selection.expand(BATCHES, 1, 2).clone().requires_grad_()
                answers = compute(row.primitive, x, W)[..., 0]
                (slope,) = torch.autograd.grad((answers - y).square().mean(dim=1).sum(), W)
                length = slope[:, 0].norm(dim=1)
                size = float(length.square().mean().sqrt())
                found.append(Slope(name, where, place, size, float(length.max()), BATCHES))
    return found


@dataclass(frozen=True, eq=False)
class Trained:
    """One unit a key (operation, range, optimizer, seed).

    *Lost*: the weights lie nearer to another selection, or broke. *Exact*: once snapped, they are the selection; a unit
    that is neither is on its way.
    """

    keys: list[tuple[str, Range, str, int]]
    snapped: Float[Tensor, "unit 2"]
    exact: Bool[Tensor, " unit"]
    lost: Bool[Tensor, " unit"]
    diverged: Bool[Tensor, " unit"]


def train(epochs: int, seeds: Sequence[int]) -> Trained:
    """Train every operation on every range by every optimizer from raw parameters of 0."""
    streams, units, keys = [], [], []
    for seed in seeds:
        for name in OPERATIONS:
            for number, where in enumerate(RANGES):
                order = shuffled(SAMPLES, BATCH, seed * 1000 + OPERATIONS.index(name) * len(RANGES) + number)
                streams.append(Stream(Target.of(name), *problems(name, where, seed, SAMPLES), order))
                for setting, rule in OPTIMIZERS.items():
                    units.append(Unit((len(streams) - 1,), rule))
                    keys.append((name, where, setting, seed))
    stack = Stack(streams, units)
    for _ in range(epochs):
        stack.epoch()
        if not bool(stack.running.any()):
            break
    goal = torch.tensor([operation(name).selection for name, *_ in keys], dtype=torch.float64)
    free = torch.tensor([[False, name == "power-identity"] for name, *_ in keys])  # its base is 1
    snapped = constrain_snapped(stack.W_hat, stack.M_hat)
    exact, right = ((W.eq(goal) | free).all(dim=1) for W in (snapped, stack.W.round()))
    return Trained(keys, snapped, exact, ~right, stack.diverged)


def bits(found: Trained, name: str, seed: int, count: int = 10_000) -> tuple[int, int]:
    """Answers of the units of an operation that are exact on (0, 10) which have the native bits, of how many.

    Both inputs have magnitudes from 1e-100 to 1e100 and either sign.
    """
    generator = np.random.default_rng([seed, OPERATIONS.index(name)])
    size = 10.0 ** generator.uniform(-100, 100, (count, 2))
    x = torch.from_numpy(size * generator.choice([-1.0, 1.0], (count, 2)))
    home = Range("positive", 10.0)
    mine = [place for place, key in enumerate(found.keys) if key[:2] == (name, home)]
    W = found.snapped[mine][found.exact[mine]]
    row = operation(name)
    said = compute(row.primitive, x, W)  # [sample, unit]
    return int(said.eq(row.exact(*x.T)[:, None]).sum()), said.numel()
