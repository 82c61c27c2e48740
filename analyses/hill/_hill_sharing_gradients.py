"""The gradient at the start of analysis `hill-sharing`: its mean over initial weights, and how training escapes a zero.

Madsen & Johansen (2020) derive that the expected gradient of M_hat is zero when W_hat has mean zero: with
`dL/dM_hat = dL/dW tanh(W_hat) sigmoid'(M_hat)` and dL/dW taken as independent of W_hat, the factor `E tanh(W_hat)` is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from analyses.hill._hill_sharing_training import ADAM, SAMPLES, problems
from analyses.hill._report_protocol import BATCH, Problems
from workbench.hill.constraint import constrain
from workbench.hill.fitting import Stack, Stream, Target, Unit, shuffled
from workbench.hill.operations import operation
from workbench.hill.primitives import compute
from workbench.statistics import mean_interval

OPERATIONS = ("add", "subtract", "multiply", "divide")
SCALES = (0.01, 0.1, 1.0, 3.0)
LOSS_SAMPLES = 512  # problems over which a loss is taken
STEPS = 100  # from zero weights, of which the gradients are shown
CHUNK = 250  # initial weights at a time


def gradient(
    name: str, W_hat: Float[Tensor, "unit 2"], M_hat: Float[Tensor, "unit 2"], data: Problems
) -> tuple[Float[Tensor, "unit 2"], Float[Tensor, "unit 2"]]:
    """Gradient of the loss over `data` with respect to W_hat and M_hat, for many units."""
    x, y = data
    found = []
    for first in range(0, len(W_hat), CHUNK):
        raw = [part[first : first + CHUNK].clone().requires_grad_() for part in (W_hat, M_hat)]
        answers = compute(operation(name).primitive, x, constrain(*raw))  # [sample, unit]
        found.append(torch.autograd.grad((answers - y[:, None]).square().mean(dim=0).sum(), raw))
    by_W_hat, by_M_hat = zip(*found, strict=True)
    return torch.cat(by_W_hat), torch.cat(by_M_hat)


def few(name: str, seed: int) -> Problems:
    """Problems over which a loss is taken."""
    x, y = problems(name, seed)
    return x[:LOSS_SAMPLES], y[:LOSS_SAMPLES]


@dataclass(frozen=True)
class Expected:
    """A raw parameter's gradient over many initial weights: its mean with a 95% interval, and root mean square."""

    operation: str
    scale: float
    parameter: str
    mean: float
    low: float
    high: float
    size: float
    n: int
    predicted: float  # by `additive_mean`, NaN for other primitives


def expected(seed: int, count: int) -> list[Expected]:
    """The gradients of `count` initial weights of every operation and scale."""
    found = []
    for number, name in enumerate(OPERATIONS):
        data = few(name, seed)
        for place, scale in enumerate(SCALES):
            drawn = np.random.default_rng([seed, 1, number, place]).standard_normal((2, count, 2)) * scale
            slopes = gradient(name, torch.from_numpy(drawn[0]), torch.from_numpy(drawn[1]), data)
            predicted = additive_mean(name, scale, data) if operation(name).primitive == "additive" else (np.nan,) * 4
            for at, values in enumerate((*slopes[0].unbind(1), *slopes[1].unbind(1))):
                parameter = f"{('W_hat', 'M_hat')[at // 2]} {at % 2 + 1}"
                interval = mean_interval(values.tolist())
                size = float(values.square().mean().sqrt())
                found.append(
                    Expected(name, scale, parameter, float(values.mean()), *interval, size, count, float(predicted[at]))
                )
    return found


def additive_mean(name: str, scale: float, data: Problems) -> tuple[float, float, float, float]:
    """Mean gradients of W_hat_1, W_hat_2, M_hat_1, M_hat_2 of an additive unit over normal raw parameters.

    With C = mean x x', the loss is (W - W*)' C (W - W*); raw parameters are independent with mean zero, so that
    E dL/dW_hat_i = -2 (C W*)_i E[1 - tanh^2] E[s] and E dL/dM_hat_i = 2 C_ii E[tanh^2] E[s s'], the terms in odd powers
    of tanh having mean zero. This is where dL/dW is not independent of W_hat: it holds W itself.
    """
    x = data[0].numpy()
    C = x.T @ x / len(x)
    goal = np.array(operation(name).selection, dtype=float)
    nodes, weights = np.polynomial.hermite_e.hermegauss(199)
    weights = weights / weights.sum()
    raw = scale * nodes
    tanh, gate = np.tanh(raw), 1 / (1 + np.exp(-raw))
    by_W_hat = -2 * (C @ goal) * (weights @ (1 - tanh**2)) * (weights @ gate)
    by_M_hat = 2 * np.diag(C) * (weights @ tanh**2) * (weights @ (gate * gate * (1 - gate)))
    return float(by_W_hat[0]), float(by_W_hat[1]), float(by_M_hat[0]), float(by_M_hat[1])


@dataclass(frozen=True, eq=False)
class Escape:
    """The way out of zero weights: size of both gradients before each of the first steps, one column a seed."""

    operation: str
    by_W_hat: Float[Tensor, "step seed"]
    by_M_hat: Float[Tensor, "step seed"]


def escape(seeds: Sequence[int]) -> list[Escape]:
    """Train from raw parameters of exactly 0 and take the gradients along the way."""
    found = []
    for number, name in enumerate(OPERATIONS):
        orders = [shuffled(SAMPLES, BATCH, seed * 100 + number) for seed in seeds]
        drawn = [problems(name, seed) for seed in seeds]
        streams = [Stream(Target.of(name), *data, order) for data, order in zip(drawn, orders, strict=True)]
        stack = Stack(streams, [Unit((place,), ADAM) for place in range(len(streams))], every=1)
        while not len(stack.history) or len(stack.trajectory().step) < STEPS:
            stack.epoch()
        way = stack.trajectory()
        columns = [
            gradient(name, way.W_hat[:STEPS, place], way.M_hat[:STEPS, place], few(name, seed))
            for place, seed in enumerate(seeds)
        ]
        by_W_hat, by_M_hat = (torch.stack([pair[part].norm(dim=1) for pair in columns], dim=1) for part in range(2))
        found.append(Escape(name, by_W_hat, by_M_hat))
    return found
