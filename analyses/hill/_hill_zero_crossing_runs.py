"""The trainings of analysis `hill-zero-crossing`: multiplication, matched, as in section 4.3 of the report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from analyses._rows import Row
from analyses.hill._hill_zero_crossing_surface import Inputs, loss
from analyses.hill._plain_streams import plain_stream
from analyses.hill._report_protocol import BATCH, SAMPLES, Distribution
from workbench.hill.constraint import constrain
from workbench.hill.fitting import Stepper, Unit, fit, optimizer

RMSPROP = optimizer("rmsprop", lr=0.01, alpha=0.9, eps=1e-10)  # of section 4.3.1
ADAM = optimizer("adam", lr=0.1, betas=(0.9, 0.5))  # of section 4.5
REPORTED = Inputs("uniform", 5.0)
REPORTED_NORMAL = Inputs("normal", 1.0)  # N(-3, 3) in the report's notation
ARRIVED = 0.1  # a weight this near 1 at the end counts as there: the spurious minima are far away
STEPS = 2000  # of a default training; by then the weights are 1 - 1e-4 or in a spurious minimum


@dataclass(frozen=True)
class Plan:
    """One training: where inputs come from, from which weights, which seed; `positive` draws magnitudes only."""

    inputs: Inputs
    seed: int
    start: tuple[float, float] = (0.0, 0.0)
    positive: bool = False
    adam: bool = False


def distribution(inputs: Inputs, positive: bool = False) -> Distribution:
    """Where a training with these inputs draws from."""
    if inputs.family == "uniform":
        return Distribution("uniform", 1e-8 if positive else -inputs.scale, inputs.scale)
    return Distribution("normal", -3 * inputs.scale, 3 * inputs.scale)


def raw_start(w: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(W_hat, M_hat) of weights with 0 <= |w| < 1: of each weight the two raw values have one magnitude t >= 0.

    `|w| = tanh(t) sigmoid(t)` rises with t, so bisection finds it; zero weights get the report's zero start.
    """
    sizes = []
    for value in w:
        low, high = 0.0, 40.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if math.tanh(middle) / (1 + math.exp(-middle)) < abs(value) else (low, middle)
        sizes.append(low if value else 0.0)
    return tuple(math.copysign(t, value) for t, value in zip(sizes, w, strict=True)), tuple(sizes)


def trained(plans: Sequence[Plan], *, steps: int = STEPS, samples: int = SAMPLES) -> Float[Tensor, "plan 2"]:
    """The weights at the end of each training, all in one stack; whole epochs, at least as many steps as asked."""
    places = list(dict.fromkeys((plan.inputs, plan.positive, plan.seed) for plan in plans))
    streams = [
        plain_stream("multiply", seed, within=distribution(inputs, positive), samples=samples)
        for inputs, positive, seed in places
    ]
    units = []
    for plan in plans:
        W_hat, M_hat = raw_start(plan.start)
        stream = places.index((plan.inputs, plan.positive, plan.seed))
        units.append(Unit((stream,), ADAM if plan.adam else RMSPROP, (W_hat[0], W_hat[1]), (M_hat[0], M_hat[1])))
    return fit(streams, units, epochs=math.ceil(steps * BATCH / samples)).W


def outcome(plans: Sequence[Plan], **how: int) -> list[Row]:
    """A row a training: its plan, its weights at the end, and whether they are near [1, 1].

    Trainings on one kind of inputs go together, each kind by itself, so that not all data are held at once.
    """
    W = torch.empty(len(plans), 2, dtype=torch.float64)
    for kind in dict.fromkeys((plan.inputs, plan.positive) for plan in plans):
        here = [place for place, plan in enumerate(plans) if (plan.inputs, plan.positive) == kind]
        W[here] = trained([plans[place] for place in here], **how)
    arrived = (W > 1 - ARRIVED).all(dim=1)
    return [
        {"family": plan.inputs.family, "scale": plan.inputs.scale, "start_1": plan.start[0], "start_2": plan.start[1],
         "positive": plan.positive, "adam": plan.adam, "seed": plan.seed, "w1": w[0], "w2": w[1], "success": done}
        for plan, w, done in zip(plans, W.tolist(), arrived.tolist(), strict=True)
    ]  # fmt: skip


def random_starts(count: int, seed: int) -> list[tuple[float, float]]:
    """Starting weights drawn evenly from where the expected loss of U(-5, 5) is finite."""
    drawn = np.random.default_rng(seed).uniform(-0.45, 0.95, (count, 2))
    return [(float(a), float(b)) for a, b in drawn]


def expected_end(starts: Sequence[tuple[float, float]], inputs: Inputs, steps: int = STEPS) -> Float[Tensor, "start 2"]:
    """Where the same optimizer ends on the expected loss itself: a batch of all the problems there are.

    No noise, so weights that start equal stay equal.
    """
    raw = torch.tensor([raw_start(start) for start in starts], dtype=torch.float64).permute(1, 2, 0).contiguous()
    stepper = Stepper([RMSPROP] * len(starts), raw)
    for _ in range(steps):
        leaf = raw.detach().clone().requires_grad_(True)
        W = constrain(leaf[0], leaf[1])
        value = loss(W[0], W[1], inputs)
        (slope,) = torch.autograd.grad(value.where(value.isfinite(), 0.0).sum(), leaf)
        with torch.no_grad():
            stepper.step(raw, slope)
    return constrain(raw[0], raw[1]).T


def outside_error(W: Float[np.ndarray, "run 2"], low: float = 5.0, high: float = 10.0) -> Float[np.ndarray, " run"]:
    """The exact expected squared error of weights W where both inputs are uniform on [-high, -low] (section 4.3).

    Both inputs are negative, so the unit's answer is `|x_1|^w_1 |x_2|^w_2 cos(pi (w_1 + w_2))`.
    """

    def moment(p: Float[np.ndarray, " run"] | float) -> Float[np.ndarray, " run"] | float:
        return (high ** (p + 1) - low ** (p + 1)) / (p + 1) / (high - low)

    w1, w2 = W.T
    turn = np.cos(math.pi * (w1 + w2))
    cross = moment(w1 + 1) * moment(w2 + 1) * turn
    return moment(2 * w1) * moment(2 * w2) * turn**2 - 2 * cross + moment(2.0) ** 2
