"""One unit trained on one operation, watched, snapped, and asked about numbers far outside its training range.

The report's section 4.2 does this for division.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from workbench.errors import BadInput
from workbench.hill.constraint import constrain_snapped, snap
from workbench.hill.exponential import Method
from workbench.hill.fitting import Optimizer, Stack, Stream, Target, Unit, in_parts, optimizer, shuffled
from workbench.hill.fitting_options import PARTS, Trial
from workbench.hill.formats import UNCOUNTED, ulps
from workbench.hill.operations import Operation, operation
from workbench.hill.primitives import compute

CASES = ((713.534, -0.13), (-0.252, -5244.0), (325751.0, -161800.0))  # report section 4.2


@dataclass(frozen=True)
class Progress:
    """Where training is: epochs so far, steps, the mean loss of the last part, the weights as they are and snapped."""

    epochs: float
    steps: int
    loss: float
    W: tuple[float, float]
    snapped: tuple[float, float]


@dataclass(frozen=True)
class Asked:
    """One question to the trained unit: operands, its answer with snapped weights, the native answer, the distance.

    `ulps` is None where one of the two alone is not a number.
    """

    operands: tuple[float, ...]
    unit: float
    native: float
    ulps: int | None


@dataclass(frozen=True)
class Outcome:
    """A trial's end: whether the snapped weights are the selection, the last progress, raw parameters and answers."""

    reached: bool
    last: Progress
    W_hat: tuple[float, float]
    M_hat: tuple[float, float]
    answers: tuple[Asked, ...]


def rule(trial: Trial) -> Optimizer:
    """The trial's optimizer; BadInput for a name there is none of."""
    return optimizer(trial.optimizer, lr=trial.lr)


def stream(name: str, trial: Trial) -> Stream:
    """Training problems of an operation, both inputs uniform on the trial's range, answers in float64.

    A unary operation, too, gets a drawn second input: a weight that ought to be 0 is then learned, not free. Problems
    outside the operation's domain are drawn again. Raises BadInput when the range holds none, or gives answers that are
    not finite.
    """
    row = operation(name)
    generator = torch.Generator().manual_seed(trial.seed)
    x = torch.empty((0, 2), dtype=torch.float64)
    for _ in range(100):
        drawn = torch.rand(trial.samples, 2, dtype=torch.float64, generator=generator)
        drawn = trial.low + (trial.high - trial.low) * drawn
        inside = row.domain.contains(*drawn.unbind(1)[: row.arity])
        x = torch.cat([x, drawn[inside & (drawn != 0).all(dim=1)]])[: trial.samples]
        if len(x) == trial.samples:
            break
    y = row.exact(*x.unbind(1)[: row.arity])
    if len(x) < trial.samples or not bool(y.isfinite().all()):
        raise BadInput(f"{name} has no finite answers from {trial.low:g} to {trial.high:g}; choose another range")
    return Stream(Target.of(name), x, y, in_parts(shuffled(trial.samples, trial.batch, trial.seed), PARTS))


def run(name: str, trial: Trial, watch: Callable[[Progress], None] = lambda progress: None) -> Outcome:
    """Train one unit from zero weights, with `watch` called after every hundredth of an epoch, and ask it `CASES`."""
    row, one = operation(name), stream(name, trial)
    stack = Stack([one], [Unit((0,), rule(trial))])
    steps = trial.samples // trial.batch // PARTS
    progress = None
    for part in range(trial.epochs * PARTS):
        stack.epoch()
        snapped = snap(constrain_snapped(stack.W_hat, stack.M_hat))
        progress = Progress(
            (part + 1) / PARTS, (part + 1) * steps, float(stack.history[-1, 0]), _pair(stack.W), _pair(snapped)
        )
        watch(progress)
        if progress.snapped == row.selection or not bool(stack.running.any()):
            break
    assert progress is not None
    answers = ask(row, torch.tensor(progress.snapped, dtype=torch.float64))
    return Outcome(progress.snapped == row.selection, progress, _pair(stack.W_hat), _pair(stack.M_hat), answers)


def _pair(values: Float[Tensor, "unit 2"]) -> tuple[float, float]:
    return float(values[0, 0]), float(values[0, 1])


def ask(row: Operation, W: Float[Tensor, " weight"], method: Method = "sign-exact") -> tuple[Asked, ...]:
    """The unit's answers to `CASES` beside Python's own; a unary operation reads the first number and gets 1 beside."""
    found = []
    for case in CASES:
        operands = case[: row.arity]
        said = compute(row.primitive, torch.tensor([*operands, 1.0][:2], dtype=torch.float64), W, method)
        native = torch.tensor(row.exact(*operands), dtype=torch.float64)
        distance = int(ulps(said, native))
        found.append(Asked(operands, said.item(), native.item(), None if distance == UNCOUNTED else distance))
    return tuple(found)


def as_dict(name: str, trial: Trial, outcome: Outcome) -> dict[str, object]:
    """Everything there is to say of a trial, as plain values."""
    return {"operation": name, **dataclasses.asdict(trial), **dataclasses.asdict(outcome)}
