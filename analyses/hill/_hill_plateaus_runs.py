"""The trainings of analysis `hill-plateaus`: large initial weights, as drawn and with one thing changed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses._rows import Row
from analyses.hill._plain_streams import plain_stream
from workbench.hill.constraint import SNAP, partials
from workbench.hill.fitting import Stack, Unit, fit, optimizer
from workbench.hill.operations import operation

OPERATIONS = (  # rows of table 4.5
    "add", "subtract", "multiply", "divide", "power-identity", "reciprocal", "cos", "sin",
    "cos-sum", "sin-sum", "cos-difference", "sin-difference",
)  # fmt: skip
CIRCLE = ("cos", "sin")  # the unit circle has solutions of its own beside the selection: a phase of half a turn
SCALES = (1.0, 3.0)
REPORTED = "betas 0.9, 0.5"
SETTINGS = {
    REPORTED: optimizer("adam", lr=0.1, betas=(0.9, 0.5)),  # section 4.5
    "betas 0.9, 0.999": optimizer("adam", lr=0.1),
    "betas 0, 0.5": optimizer("adam", lr=0.1, betas=(0.0, 0.5)),
    "betas 0.9, 0.5, rate 0.01": optimizer("adam", lr=0.01, betas=(0.9, 0.5)),
}
SHUT = -20.0  # of M_hat: the gate lets 2e-9 through
STEPS_AN_EPOCH = 300
EPOCHS = 12

Start = Float[np.ndarray, "2 2"]  # W_hat or M_hat, weight
Change = Callable[[Start, Sequence[int]], Start]


def needed(name: str) -> list[bool]:
    """Which weights matter: the second one of a power of the first input alone multiplies by a power of 1."""
    return [True, name not in ("power-identity", "reciprocal")]


def signed(name: str) -> list[int]:
    """For each weight the sign that its selection has, 0 where it is 0 or the weight does not matter."""
    return [goal if use else 0 for goal, use in zip(operation(name).selection, needed(name), strict=True)]


def _signs_right(start: Start, goals: Sequence[int]) -> Start:
    found = start.copy()
    for weight, goal in enumerate(goals):
        if goal:
            found[0, weight] = goal * abs(found[0, weight])
    return found


def _signs_wrong(start: Start, goals: Sequence[int]) -> Start:
    return _signs_right(start, [-goal for goal in goals])


def _gates(sign: int) -> Change:
    return lambda start, goals: np.stack([start[0], sign * np.abs(start[1])])


CHANGES: dict[str, Change] = {  # of a start; magnitudes stay
    "W_hat signs made right": _signs_right,
    "W_hat signs made wrong": _signs_wrong,
    "M_hat made positive": _gates(1),
    "M_hat made negative": _gates(-1),
}
AS_DRAWN, OTHER_BATCHES = "as drawn", "other data and batches"


@dataclass(frozen=True)
class Plan:
    """One training: operation, scale, number of the start, Adam's setting, and what was changed."""

    operation: str
    scale: float
    number: int
    setting: str = REPORTED
    change: str = AS_DRAWN


def draw(plan: Plan, seed: int) -> Start:
    """The plan's initial (W_hat, M_hat): normal numbers times the scale, changed as it says."""
    generator = np.random.default_rng([seed, OPERATIONS.index(plan.operation), round(100 * plan.scale), plan.number])
    start = generator.standard_normal((2, 2)) * plan.scale
    return CHANGES[plan.change](start, signed(plan.operation)) if plan.change in CHANGES else start


def train(plans: Sequence[Plan], seed: int, epochs: int = EPOCHS) -> list[Row]:
    """A row a training: the plan, its start, where its weights ended, whether it failed, and its wrong signs.

    `wrong` counts the weights of selection 1 or -1 whose W_hat starts with the other sign; `race` is the smallest
    `M_hat - |W_hat|` among them, infinite without any: about what is left of the gate when W_hat has come back to 0 at
    the pace at which the gate was closing.
    """
    places = list(dict.fromkeys((plan.operation, plan.change == OTHER_BATCHES) for plan in plans))
    streams = [plain_stream(name, seed + other, samples=64 * STEPS_AN_EPOCH) for name, other in places]
    starts = [draw(plan, seed) for plan in plans]
    units = [
        Unit(
            (places.index((plan.operation, plan.change == OTHER_BATCHES)),),
            SETTINGS[plan.setting],
            (float(start[0, 0]), float(start[0, 1])),
            (float(start[1, 0]), float(start[1, 1])),
        )
        for plan, start in zip(plans, starts, strict=True)
    ]
    goal = torch.tensor([streams[unit.streams[0]].target.selection for unit in units], dtype=torch.float64)
    use = torch.tensor([needed(plan.operation) for plan in plans])
    walking = torch.tensor([plan.setting != REPORTED for plan in plans])

    def stop(stack: Stack) -> Bool[Tensor, " unit"]:
        by_W_hat, by_M_hat = partials(stack.W_hat, stack.M_hat)
        stuck = ((by_W_hat == 0) & (by_M_hat == 0)).all(dim=1)
        return stuck | (walking & arrived(stack.W, goal, use))

    found = fit(streams, units, epochs=epochs, stop=stop)
    failed = ~arrived(found.W, goal, use)
    return [
        _row(plan, start, W, W_hat, M_hat, bool(bad))
        for plan, start, W, W_hat, M_hat, bad in zip(
            plans, starts, found.W.tolist(), found.W_hat.tolist(), found.M_hat.tolist(), failed.tolist(), strict=True
        )
    ]


def arrived(
    W: Float[Tensor, "unit 2"], goal: Float[Tensor, "unit 2"], use: Bool[Tensor, "unit 2"]
) -> Bool[Tensor, " unit"]:
    """Whether every weight that matters is within the snapping threshold of its selection."""
    return (((W - goal).abs() < SNAP) | ~use).all(dim=1)


def _row(
    plan: Plan, start: Start, W: Sequence[float], W_hat: Sequence[float], M_hat: Sequence[float], failed: bool
) -> Row:
    goals, selection = signed(plan.operation), operation(plan.operation).selection
    wrong = [bool(goal * start[0, weight] < 0) for weight, goal in enumerate(goals)]
    lost = [use and abs(w - goal) >= SNAP for w, goal, use in zip(W, selection, needed(plan.operation), strict=True)]
    return {
        **vars(plan),
        **{f"start_{what}_{weight + 1}": float(start[row, weight])
           for row, what in enumerate(("W_hat", "M_hat")) for weight in (0, 1)},
        "end_W_1": W[0], "end_W_2": W[1], "end_M_hat_1": M_hat[0], "end_M_hat_2": M_hat[1],
        "failed": failed, "wrong": sum(wrong), "race": race(start, wrong),
        "lost_and_shut": any(off and gate < SHUT for off, gate in zip(lost, M_hat, strict=True)),
        "signs_right_at_end": all(goal * value >= 0 for goal, value in zip(goals, W_hat, strict=True)),
    }  # fmt: skip


def race(start: Start, wrong: Sequence[bool]) -> float:
    """The smallest `M_hat - |W_hat|` of the weights that start with the wrong sign; infinite without any."""
    return min((float(start[1, w] - abs(start[0, w])) for w in (0, 1) if wrong[w]), default=math.inf)


def plans(starts: int, other_settings: int) -> list[Plan]:
    """All trainings: `starts` a cell as drawn, the first `other_settings` of them under each other setting.

    The changed starts are those of the larger scale, of the operations whose selection is all that solves them.
    """
    cells = [(name, scale) for scale in SCALES for name in OPERATIONS]
    found = [Plan(name, scale, number) for name, scale in cells for number in range(starts)]
    found += [
        Plan(name, scale, number, setting)
        for setting in SETTINGS
        if setting != REPORTED
        for name, scale in cells
        for number in range(other_settings)
    ]
    found += [
        Plan(name, SCALES[-1], number, change=change)
        for change in (*CHANGES, OTHER_BATCHES)
        for name in OPERATIONS
        if name not in CIRCLE and any(signed(name))
        for number in range(starts)
    ]
    return found
