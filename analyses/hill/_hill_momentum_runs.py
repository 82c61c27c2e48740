"""The trainings of analysis `hill-momentum`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses._rows import Row
from analyses.hill._hill_momentum_theory import critical_rate, growth, steady_pace
from analyses.hill._plain_streams import plain_stream
from workbench.hill.constraint import partials, snap
from workbench.hill.fitting import Fit, Stack, Unit, fit, optimizer

RATE = 0.1  # of section 4.5; torch's default is 0.001
EPSILON = 1e-8  # torch's default
NO_EPSILON = 1e-30  # as good as none: the gradients of these trainings stay above it until float64 saturates
BETA1 = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
BETA2 = (0.1, 0.2, 0.4, 0.5, 0.6, 0.75, 0.85, 0.95, 0.99, 0.999)  # none is the square of a beta1
FITTED, SCORED = ("add", "multiply"), ("subtract", "divide")  # rules with a threshold get it on the first two
SELECTING_ONES = FITTED + SCORED  # both weights -1 or 1: saturation is the only way to be exact
SLOW_BETA1 = (0.8, 0.9, 0.95)
FACTORS = tuple(2.0 ** (half / 2) for half in range(-5, 6))  # of the critical rate
ALL = (
    "add", "subtract", "identity", "negation", "multiply", "divide", "power-identity", "reciprocal", "cos", "sin",
    "cos-difference", "cos-sum", "sin-difference", "sin-sum",
)  # fmt: skip
HAZARDS = ((0.1, 0.9, 0.5), (0.01, 0.9, 0.5), (0.1, 0.0, 0.5), (0.1, 0.9, 0.99))  # rate, beta1, beta2
PACES = tuple((rate, *pair) for rate in (0.03, 0.1, 0.3) for pair in ((0.9, 0.99), (0.0, 0.9), (0.0, 0.5), (0.9, 0.9)))


@dataclass(frozen=True)
class Setting:
    """One training: an operation and its data's seed under Adam with these settings."""

    operation: str
    seed: int
    rate: float
    beta1: float
    beta2: float
    epsilon: float = EPSILON


def _train(settings: Sequence[Setting], epochs: int, every: int = 0, samples: int = 64_000) -> tuple[Fit, Tensor]:
    """Train all from zero; also returns the selection each should reach, [unit, 2]."""
    places = list(dict.fromkeys((one.operation, one.seed) for one in settings))
    streams = [plain_stream(name, seed, samples=samples) for name, seed in places]
    units = [
        Unit(
            (places.index((one.operation, one.seed)),),
            optimizer("adam", lr=one.rate, betas=(one.beta1, one.beta2), eps=one.epsilon),
        )
        for one in settings
    ]
    found = fit(streams, units, epochs=epochs, stop=_settled, every=every)
    goals = [streams[unit.streams[0]].target.selection for unit in units]
    return found, torch.tensor(goals, dtype=found.W.dtype)


def _settled(stack: Stack) -> Bool[Tensor, " unit"]:
    """Units at which no gradient arrives any more, since every factor of every weight is saturated in float64."""
    by_W_hat, by_M_hat = partials(stack.W_hat, stack.M_hat)
    return ((by_W_hat == 0) & (by_M_hat == 0)).all(dim=1)


def outcomes(settings: Sequence[Setting], epochs: int) -> list[Row]:
    """A row a training: its settings, whether it ended `exact` to the last bit, and how far off it is.

    `found` says whether the weights, snapped as by the report, are the selection. `throw` is what beta2 < beta1^2 says,
    `outrun` what the rate and both averages say together (`critical_rate`).
    """
    fitted, goal = _train(settings, epochs)
    distance = (fitted.W - goal).abs().amax(dim=1)
    right = (snap(fitted.W) == goal).all(dim=1)
    rows = []
    for place, one in enumerate(settings):
        critical = critical_rate(one.beta1, one.beta2)
        off = float(distance[place])
        rows.append(
            {**vars(one), "exact": off == 0, "found": bool(right[place]), "distance": off,
             "raw": float(torch.maximum(fitted.W_hat[place].abs(), fitted.M_hat[place].abs()).max()),
             "epochs": int(fitted.epochs[place]), "critical_rate": critical, "throw": one.beta2 < one.beta1**2,
             "outrun": one.rate > critical}
        )  # fmt: skip
    return rows


def grid(seeds: Sequence[int], epochs: int) -> list[Row]:
    """Every beta1 with every beta2 at the report's learning rate, with torch's epsilon and without."""
    return outcomes(
        [
            Setting(name, seed, RATE, beta1, beta2, epsilon)
            for name in SELECTING_ONES
            for seed in seeds
            for beta1 in BETA1
            for beta2 in BETA2
            for epsilon in (EPSILON, NO_EPSILON)
        ],
        epochs,
    )


def rates(seeds: Sequence[int], epochs: int) -> list[Row]:
    """Learning rates about the critical one, at the report's beta2 and several beta1; `factor` is rate / critical."""
    settings = [
        Setting(name, seed, factor * critical_rate(beta1, 0.5), beta1, 0.5)
        for name in SELECTING_ONES
        for seed in seeds
        for beta1 in SLOW_BETA1
        for factor in FACTORS
    ]
    return [{**row, "factor": row["rate"] / row["critical_rate"]} for row in outcomes(settings, epochs)]


def torch_default_rate(seeds: Sequence[int], epochs: int) -> list[Row]:
    """The report's betas at torch's default learning rate, which the report's text claims to use."""
    return outcomes([Setting(name, seed, 1e-3, 0.9, 0.5) for name in SELECTING_ONES for seed in seeds], epochs)


def hazards(seeds: Sequence[int], epochs: int) -> list[Row]:
    """All operations but `mix` under four settings, to see whether what keeps moving stops at the right place."""
    settings = [Setting(name, seed, *adam) for name in ALL for adam in HAZARDS for seed in seeds]
    return outcomes(settings, epochs)


def throws(seeds: Sequence[int]) -> list[Row]:
    """How much each step of a throw is longer than the one before, beside beta1 / sqrt(beta2); 600 steps a run."""
    pairs = [(b1, b2) for b1 in BETA1 for b2 in BETA2 if growth(b1, b2) > 1.02]
    settings = [Setting(name, seed, RATE, *pair) for name in FITTED for seed in seeds for pair in pairs]
    fitted, _ = _train(settings, 1, every=1, samples=600 * 64)
    raw = torch.cat([fitted.trajectory.W_hat, fitted.trajectory.M_hat], dim=2)  # [step, unit, 4]
    rows = []
    for place, one in enumerate(settings):
        found = [growth_of(path) for path in raw[:, place].T.diff(dim=1).abs()]
        found = [value for value in found if not math.isnan(value)]
        rows.append(
            {**vars(one), "predicted": growth(one.beta1, one.beta2), "raw": float(raw[-1, place].abs().max()),
             "measured": sum(found) / len(found) if found else math.nan}
        )  # fmt: skip
    return rows


def growth_of(lengths: Float[Tensor, " step"]) -> float:
    """The factor a step while the lengths rise to their longest: from the last rise above 1 to a twentieth of it.

    NaN where fewer than five steps lie between; lengths that are NaN, of a unit that has stopped, are passed over.
    """
    lengths = lengths[lengths.isfinite()]
    top = int(lengths.argmax())
    low = (lengths[:top] <= 1).nonzero()
    first = int(low[-1]) + 1 if len(low) else 0
    rising = int((lengths[first:top] < lengths[top] / 20).sum())
    if rising < 5:
        return math.nan
    return float((lengths[first + rising - 1] / lengths[first]) ** (1 / (rising - 1)))


def paces(seeds: Sequence[int], epochs: int) -> list[Row]:
    """The pace of the slower M_hat while it walks from 10 to 30 without epsilon, beside the steady pace."""
    settings = [Setting(name, seed, *adam, NO_EPSILON) for name in FITTED for seed in seeds for adam in PACES]
    every = 5
    fitted, _ = _train(settings, epochs, every=every)
    M_hat = fitted.trajectory.M_hat.amin(dim=2)  # [record, unit]
    rows = []
    for place, one in enumerate(settings):
        within = ((M_hat[:, place] > 10) & (M_hat[:, place] < 30)).nonzero()[:, 0]
        first, last = int(within[0]), int(within[-1])
        pace = float(M_hat[last, place] - M_hat[first, place]) / (every * (last - first))
        predicted = steady_pace(one.rate, one.beta1, one.beta2)
        rows.append({**vars(one), "measured": pace, "predicted": predicted, "ratio": pace / predicted})
    return rows


def paths(seed: int) -> list[Row]:
    """One addition unit under five Adams: distance from the selection at every tenth step of three epochs."""
    adams = [(RATE, 0.9, 0.999, EPSILON), (RATE, 0.0, 0.5, EPSILON), (RATE, 0.0, 0.5, NO_EPSILON),
             (0.01, 0.9, 0.5, EPSILON), (RATE, 0.9, 0.5, EPSILON)]  # fmt: skip
    fitted, goal = _train([Setting("add", seed, *adam) for adam in adams], 3, every=2)
    distance = (fitted.trajectory.W - goal).abs().amax(dim=2)
    rows = []
    for place, (rate, beta1, beta2, epsilon) in enumerate(adams):
        words = f"rate {rate:g}, betas {beta1:g}, {beta2:g}" + ("" if epsilon == EPSILON else ", no epsilon")
        for step, value in zip(fitted.trajectory.step.tolist(), distance[:, place].tolist(), strict=True):
            if not math.isnan(value):
                rows.append({"setting": words, "step": step + 1, "distance": value})
    return rows
