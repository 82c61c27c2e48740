"""The trainings of analysis `hill-composition`: small circuits from near-neutral weights, end to end or helped.

An *arm* is one way to train; all arms of a circuit get the same seeds, and with a seed the same starting weights and
the same batches, so that they differ in nothing but the arm.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses._rows import Row
from workbench.hill.circuit import Circuit
from workbench.hill.constraint import SNAP, constrain, constrain_snapped, snap
from workbench.hill.fitting import Optimizer, Stepper, optimizer

BATCH = 64
LOW, HIGH = 1e-8, 10.0  # every input, as in report section 2.4
EVERY = 10  # steps between two records of the weights
CHUNK = 100  # steps whose inputs are drawn at once
TESTED = 1000  # problems on which circuits are judged
SOLVED = 1e-14  # of the mean squared error over the variance of the answers: rounding is far below, all else far above
FUNCTION = 1e-3  # the same for weights as they are: near the function, whether on the selection or not


@dataclass(frozen=True)
class Task:
    """A circuit to train: its units as (operation, first wire, second wire); `wrong` is a wrong first operation."""

    name: str
    inputs: int
    units: tuple[tuple[str, int, int], ...]
    wrong: str

    @property
    def circuit(self) -> Circuit:
        """The wiring."""
        return Circuit.of(self.inputs, *self.units)[0]

    @property
    def selection(self) -> tuple[tuple[int, int], ...]:
        """What each unit is to select."""
        return Circuit.of(self.inputs, *self.units)[1]


TASKS = (
    Task("(a + b) x c", 3, (("add", 0, 1), ("multiply", 3, 2)), "subtract"),
    Task("a x b - c", 3, (("multiply", 0, 1), ("subtract", 3, 2)), "divide"),
    Task("sin(a + b) x c", 3, (("sin-sum", 0, 1), ("multiply", 3, 2)), "sin-difference"),
    Task("(a - b) / (c + d)", 4, (("subtract", 0, 1), ("add", 2, 3), ("divide", 4, 5)), "add"),
)
RMSPROP = optimizer("rmsprop", lr=0.01, alpha=0.9, eps=1e-10)  # of section 4.3, which does not throw
END_TO_END = "end to end"


@dataclass(frozen=True)
class Arm:
    """One way to train: optimizer, scale of the start, snapping in training, which units are written down, signs.

    `enumerated` names units that are fixed at their selection: "first", "last", "all but last", "all but first"; "wrong
    first" fixes the first unit at the selection of another operation. `signs` starts W_hat with the signs of the
    selection, `divide` is what all inputs are divided by.
    """

    name: str
    optimizer: Optimizer = RMSPROP
    scale: float = 0.1
    through: bool = False
    enumerated: str = ""
    signs: bool = False
    divide: float = 1.0


MOVING = "report's Adam, keeps moving"
ARMS = (
    Arm(END_TO_END),
    Arm(MOVING, optimizer=optimizer("adam", lr=0.1, betas=(0.9, 0.5))),
    Arm("Adam 0.1, betas 0, 0.5", optimizer=optimizer("adam", lr=0.1, betas=(0.0, 0.5))),
    Arm("Adam 0.1, default betas", optimizer=optimizer("adam", lr=0.1)),
    Arm("snapped straight through", through=True),
    Arm("first unit enumerated", enumerated="first"),
    Arm("last unit enumerated", enumerated="last"),
    Arm("first unit enumerated wrongly", enumerated="wrong first"),
    Arm("signs of W_hat right", signs=True),
    Arm("scale 0.01", scale=0.01),
    Arm("scale 1", scale=1.0),
    Arm("inputs over 10", divide=10.0),
    Arm("first enumerated, inputs over 10", enumerated="first", divide=10.0),
)
LONGER = (  # of circuits of three units
    Arm("all but last enumerated", enumerated="all but last"),
    Arm("all but first enumerated", enumerated="all but first"),
    Arm("all but last, inputs over 10", enumerated="all but last", divide=10.0),
)


def arms_of(task: Task) -> tuple[Arm, ...]:
    """The arms of a circuit."""
    return ARMS + (LONGER if len(task.units) > 2 else ())


def fixed_units(arm: Arm, units: int) -> list[bool]:
    """Which units the arm does not train."""
    every = set(range(units))
    chosen = {"": set(), "first": {0}, "wrong first": {0}, "last": {units - 1}, "all but last": every - {units - 1},
              "all but first": every - {0}}[arm.enumerated]  # fmt: skip
    return [place in chosen for place in range(units)]


def fixed_weights(task: Task, arm: Arm) -> Float[Tensor, "unit 2"]:
    """The weights of units that are not trained: their selection, or in the first one another operation's."""
    selection = list(task.selection)
    if arm.enumerated == "wrong first":
        selection[0] = Circuit.of(2, (task.wrong, 0, 1))[1][0]
    return torch.tensor(selection, dtype=torch.float64)


def start(task: Task, arms: Sequence[Arm], seeds: Sequence[int]) -> Float[Tensor, "2 unit 2 arm seed"]:
    """Initial (W_hat, M_hat) of every lane: a seed's normal numbers times the arm's scale."""
    units = len(task.units)
    normal = np.stack([np.random.default_rng([seed, 1]).standard_normal((2, units, 2)) for seed in seeds], axis=-1)
    lanes = torch.stack([torch.from_numpy(normal) * arm.scale for arm in arms], dim=3)
    signs = torch.tensor(task.selection, dtype=torch.float64)
    for place, arm in enumerate(arms):
        if arm.signs:
            W_hat = lanes[0, :, :, place]
            lanes[0, :, :, place] = torch.where(signs[..., None] == 0, W_hat, W_hat.abs() * signs[..., None])
    return lanes.contiguous()


def _batches(task: Task, seeds: Sequence[int], steps: int, divide: float) -> Iterator[tuple[Tensor, Tensor]]:
    """Each step's inputs [input, 1, seed, sample] and answers [1, seed, sample]."""
    generators = [np.random.default_rng([seed, 2]) for seed in seeds]
    circuit, selection = task.circuit, task.selection
    for first in range(0, steps, CHUNK):
        count = min(CHUNK, steps - first)
        drawn = [g.uniform(LOW, HIGH, (CHUNK, BATCH, task.inputs))[:count] for g in generators]
        x = torch.from_numpy(np.stack(drawn, axis=1)) / divide  # [step, seed, sample, input]
        y = circuit.answers(x, selection)
        yield from zip(x.permute(0, 3, 1, 2).unsqueeze(2).contiguous(), y[:, None], strict=True)


@dataclass(frozen=True, eq=False)
class Trained:
    """All lanes of a circuit after training: weights at every record, the last one at the end, as they are and snapped.

    Snapped is each factor to its limit, as in report section 2.2, and then what is still as near to 0: the report
    leaves a 0 that tanh makes. Units that are not trained have their fixed weights in both.
    """

    task: Task
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    step: Int[Tensor, " record"]
    path: Float[Tensor, "record unit 2 arm seed"]
    snapped: Float[Tensor, "record unit 2 arm seed"]


@torch.no_grad()
def train(task: Task, arms: Sequence[Arm], seeds: Sequence[int], steps: int) -> Trained:
    """Train every arm from every seed, all in one stack; weights are recorded every ten steps and at the end.

    The arms must divide the inputs by the same number.
    """
    (divide,) = {arm.divide for arm in arms}
    units = len(task.units)
    raw, circuit = start(task, arms, seeds), task.circuit
    fixed = torch.tensor([fixed_units(arm, units) for arm in arms]).T[:, None, :, None]  # [unit, 1, arm, 1]
    written = torch.stack([fixed_weights(task, arm) for arm in arms], dim=-1)[..., None]  # [unit, 2, arm, 1]
    through = torch.tensor([arm.through for arm in arms])[:, None]
    flat = raw.view(2, units, 2, -1)
    stepper = Stepper([arm.optimizer for arm in arms for _ in seeds], flat)
    seen: list[Float[Tensor, "2 unit 2 arm seed"]] = []
    for step, (x, y) in enumerate(_batches(task, seeds, steps, divide)):
        if step % EVERY == 0:
            seen.append(raw.clone())
        tanh, sigmoid = torch.tanh(raw[0]), torch.sigmoid(raw[1])
        T, S = _snapped(tanh, sigmoid, through)
        _, slope = circuit.loss(x, y, torch.where(fixed, written, T * S))
        slope = torch.where(fixed, 0.0, slope)
        by = torch.stack([slope * S * (1 - tanh * tanh), slope * T * sigmoid * (1 - sigmoid)])
        stepper.step(flat, by.view(2, units, 2, -1))
    W_hat, M_hat = torch.stack([*seen, raw], dim=1).unbind()
    path, snapped = constrain(W_hat, M_hat), snap(constrain_snapped(W_hat, M_hat))
    path, snapped = (torch.where(fixed, written, weights) for weights in (path, snapped))
    when = torch.tensor([*range(0, steps, EVERY), steps])
    return Trained(task, tuple(arms), tuple(seeds), when, path, snapped)


def _snapped(
    tanh: Float[Tensor, "*shape"], sigmoid: Float[Tensor, "*shape"], through: Bool[Tensor, "*lane"]
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """The factors that a lane computes with: those near their limits on them where it snaps straight through."""
    T = torch.where(through & (tanh.abs() > 1 - SNAP), tanh.sign(), tanh)
    S = torch.where(through & ((sigmoid > 1 - SNAP) | (sigmoid < SNAP)), sigmoid.round(), sigmoid)
    return T, S


def error(task: Task, W: Float[Tensor, "unit 2"]) -> float:
    """Mean squared error of the circuit with these weights, over the variance of the answers; infinite when NaN.

    On problems from U(1e-8, 10) that no training saw.
    """
    x = torch.from_numpy(np.random.default_rng([0, 3]).uniform(LOW, HIGH, (TESTED, task.inputs)))
    y = task.circuit.answers(x, task.selection)
    found = float((task.circuit.answers(x, W) - y).square().mean() / y.var())
    return found if found == found else float("inf")


def rows(trained: Trained) -> list[Row]:
    """A row a lane: whether its snapped weights compute the task exactly, its error without snapping, its weights.

    `state` tells runs that are not solved apart: "on the function" (weights as they are leave less than a thousandth of
    the variance: near an exact solution that is no selection), "locked" (every weight snaps), "diverged", or "between".
    `zeroed` says whether some unit has both weights within 0.1 of 0.
    """
    found = []
    for place, arm in enumerate(trained.arms):
        for number, seed in enumerate(trained.seeds):
            W, snapped = (weights[-1, :, :, place, number] for weights in (trained.path, trained.snapped))
            on, as_is = error(trained.task, snapped), error(trained.task, W)
            row = {"circuit": trained.task.name, "arm": arm.name, "seed": seed, "solved": on < SOLVED}
            row |= {"snapped_error": on, "error": as_is, "state": _state(snapped, on, as_is)}
            row["zeroed"] = bool((W.abs() < 0.1).all(dim=1).any())
            row["weights"] = " ".join(f"[{w1:.2f}, {w2:.2f}]" for w1, w2 in W.tolist())
            found.append(row)
    return found


def _state(snapped: Float[Tensor, "unit 2"], snapped_error: float, as_is: float) -> str:
    if snapped_error < SOLVED:
        return "solved"
    if not bool(snapped.isfinite().all()):
        return "diverged"
    if as_is < FUNCTION:
        return "on the function"
    return "locked" if bool((snapped == snapped.round()).all()) else "between"


def train_all(task: Task, seeds: Sequence[int], steps: int) -> list[Trained]:
    """All arms of a circuit, those of one range of inputs together."""
    by_range: dict[float, list[Arm]] = {}
    for arm in arms_of(task):
        by_range.setdefault(arm.divide, []).append(arm)
    return [train(task, arms, seeds, steps) for arms in by_range.values()]
