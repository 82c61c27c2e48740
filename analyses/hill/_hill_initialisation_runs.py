"""The trainings of analysis `hill-initialisation`: the report's joint runs, and the same units each for itself."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses.hill._report_protocol import (
    BATCH,
    GOLDILOCKS,
    RESEEDED,
    SAMPLES,
    SHARED,
    Distribution,
    Pair,
    Problems,
    Run,
    inputs,
    problem_sets,
    targets,
)
from workbench.hill.exponential import Method
from workbench.hill.fitting import Stack, Stream, Target, Unit, optimizer, shuffled
from workbench.hill.operations import operation
from workbench.hill.primitives import compute

OPERATIONS = (  # rows of table 4.5, in its order
    "add", "subtract", "multiply", "divide", "power-identity", "reciprocal", "cos", "sin",
    "cos-sum", "sin-sum", "cos-difference", "sin-difference",
)  # fmt: skip
IDENTITY, IDENTITY_OF_ONE = "identity", "identity, b = 1"
PLAIN = (*OPERATIONS, IDENTITY, IDENTITY_OF_ONE)  # the additive identity, its second input drawn like the first, or 1
SCALES = (0.0, 0.01, 0.1, 1.0, 3.0)
SEEDS = (9002, 69163, 20339, 59588, 69526, 78387, 2826, 46231, 3422, 23890)
EXTREME = Distribution("uniform", -1e4, 1e4)  # where a trained unit is evaluated
ADAM = optimizer("adam", lr=0.1, betas=(0.9, 0.5))
CONVERGED = 1e-14  # mean squared error below which an operation counts as learned, and training ends
LAST = 5  # epochs in a row with a mean training loss below it, which end a run of the report's too
CHECK_SAMPLES = 5000
NUDGE = 1e-12  # relative change of the raw parameters with which a nudged twin starts
NUDGED_FROM = 1.0  # smallest initial scale at which there are twins


@dataclass(frozen=True)
class Cell:
    """One operation of one training: where its weights began and ended, and its error where it is evaluated.

    `nudged` is the error when the same training begins with raw parameters larger by 1e-12 of themselves, NaN where
    that was not tried: it tells whether rounding errors alone would change the number.
    """

    operation: str
    scale: float
    seed: int
    start: Pair
    end: Pair
    W: tuple[float, float]
    mse: float
    nudged: float
    epochs: int


@dataclass(frozen=True)
class _Place:
    """A cell before training: its unit in the stack, and that of its nudged twin."""

    operation: str
    scale: float
    seed: int
    unit: int
    twin: int | None = None


def _named(name: str) -> str:
    """The operation of the table that a row is about."""
    return name.partition(",")[0]


def mse(name: str, W: Float[Tensor, "unit 2"], data: Problems, method: Method) -> Float[Tensor, " unit"]:
    """Mean squared error of several units of an operation on the same problems."""
    x, y = data
    return (compute(operation(_named(name)).primitive, x, W, method) - y[:, None]).square().mean(dim=0)


def checked(epoch: int) -> bool:
    """Whether the report's code looks at its check data after this epoch, counted from 0."""
    return epoch < 10 or (epoch + 1) % 5 == 0


def report_cells(seeds: Sequence[int], scales: Sequence[float], epochs: int) -> list[Cell]:
    """Section 4.5 as the report's code runs it: each seed and scale trains all twelve operations together.

    Together means: their batches come in one mixed order, training ends for all when all are below 1e-14, and `cos` and
    `power-identity` train one weight pair. Targets of + - x / go through decimals, powers are complex. From scale 1 on
    every unit has a nudged twin.
    """
    streams, units, places, check, final = [], [], [], {}, {}
    for seed in seeds:
        run = Run(seed, OPERATIONS, torch_seed=seed + RESEEDED, samples=SAMPLES, checked=checked)
        turns = run.turns(["power-identity", "cos"])
        at = {}
        for name, (x, y) in problem_sets(OPERATIONS, GOLDILOCKS, seed, SAMPLES).items():
            at[name] = len(streams)
            streams.append(Stream(Target.of(name), x, y, run.order(name)))
        for scale in scales:
            found: dict[str, _Place] = {}
            for name in OPERATIONS:
                if name in SHARED:
                    found[name] = dataclasses.replace(found[SHARED[name]], operation=name)
                    continue
                twin = len(units) + 1 if scale >= NUDGED_FROM else None
                found[name] = _Place(name, scale, seed, len(units), twin)
                shared = name in SHARED.values()
                reads, turn = ((at[name], at["cos"]), turns) if shared else ((at[name],), None)
                W_hat, M_hat = run.start(name, scale)
                units.append(Unit(reads, ADAM, W_hat, M_hat, turn))
                if twin is not None:
                    units.append(Unit(reads, ADAM, _nudged(W_hat), _nudged(M_hat), turn))
            places += found.values()
        for count, into, offset in ((CHECK_SAMPLES, check, RESEEDED), (SAMPLES, final, 0)):
            sets = problem_sets(OPERATIONS, EXTREME, seed + offset, count)
            into.update({(name, seed): data for name, data in sets.items()})
    return _trained(Stack(streams, units, settle=True), places, epochs, check, final, "complex", _joint_stop)


def _nudged(raw: tuple[float, float]) -> tuple[float, float]:
    return raw[0] * (1 + NUDGE), raw[1] * (1 + NUDGE)


def plain_cells(seeds: Sequence[int], scales: Sequence[float], epochs: int) -> list[Cell]:
    """The same trainings without the report's bindings: each operation by itself, the additive identity among them.

    Float64 targets, one weight pair an operation, its own initial numbers and batch order, and an end of its own as
    soon as it is below 1e-14 at a check. Powers are sign-exact in the evaluation. The second input of the additive
    identity is drawn like the first, or 1 as the report has it for unary operations.
    """
    streams, units, places, check, final = [], [], [], {}, {}
    for seed in seeds:
        for number, name in enumerate(PLAIN):
            generator = np.random.default_rng([seed, number])
            sets: list[Problems] = []
            for within, count in ((GOLDILOCKS, SAMPLES), (EXTREME, CHECK_SAMPLES), (EXTREME, SAMPLES)):
                drawn = inputs(_named(name), within, generator, count)
                if name == IDENTITY:
                    drawn[:, 1] = within.draw(generator, count)
                sets.append((torch.from_numpy(drawn), torch.from_numpy(targets(_named(name), drawn))))
            (x, y), check[name, seed], final[name, seed] = sets
            start = generator.standard_normal((2, 2))
            for scale in scales:
                places.append(_Place(name, scale, seed, len(units)))
                W_hat, M_hat = (tuple(row) for row in (start * scale).tolist())
                units.append(Unit((len(streams),), ADAM, W_hat, M_hat))
            streams.append(Stream(Target.of(_named(name)), x, y, shuffled(SAMPLES, BATCH, 100 * seed + number)))
    return _trained(Stack(streams, units, settle=True), places, epochs, check, final, "sign-exact", _own_stop)


Errors = dict[_Place, float]
Stop = Callable[[Stack, Sequence[_Place], Errors], Bool[Tensor, " unit"]]


def _own_stop(stack: Stack, places: Sequence[_Place], errors: Errors) -> Bool[Tensor, " unit"]:
    """The units that are below 1e-14 on their check data."""
    ended = torch.zeros(len(stack.units), dtype=torch.bool)
    for place, error in errors.items():
        ended[place.unit] = error < CONVERGED
    return ended


def _joint_stop(stack: Stack, places: Sequence[_Place], errors: Errors) -> Bool[Tensor, " unit"]:
    """The units, twins included, of the runs (a seed and a scale) whose operations are all below 1e-14.

    On the check data, or in the mean training loss over all batches in each of the last five epochs.
    """
    ended = torch.zeros(len(stack.units), dtype=torch.bool)
    runs: dict[tuple[float, int], list[_Place]] = {}
    for place in places:
        runs.setdefault((place.scale, place.seed), []).append(place)
    last = stack.history[-LAST:]
    for members in runs.values():
        units = [place.unit for place in members]
        calm = len(last) == LAST and bool((last[:, units].mean(dim=1) < CONVERGED).all())
        right = all(errors.get(place, math.inf) < CONVERGED for place in members)
        ended[[*units, *(place.twin for place in members if place.twin is not None)]] = calm or right
    return ended


def _trained(
    stack: Stack,
    places: Sequence[_Place],
    epochs: int,
    check: dict[tuple[str, int], Problems],
    final: dict[tuple[str, int], Problems],
    method: Method,
    stop: Stop,
) -> list[Cell]:
    """Train, stop, evaluate."""
    start = torch.stack([stack.W_hat, stack.M_hat], dim=1)
    for epoch in range(epochs):
        stack.epoch()
        running = [place for place in places if stack.running[place.unit]]
        errors = _errors(stack.W, running, check, method) if checked(epoch) else {}
        stack.stop(stop(stack, places, errors))
        if not bool(stack.running.any()):
            break
    W, end = stack.W, torch.stack([stack.W_hat, stack.M_hat], dim=1)
    errors = _errors(W, places, final, method)
    twins = {place: dataclasses.replace(place, unit=place.twin) for place in places if place.twin is not None}
    nudged = _errors(W, list(twins.values()), final, method)

    def pair(raw: Float[Tensor, "unit 2 2"], place: _Place) -> Pair:
        (w1, w2), (m1, m2) = raw[place.unit].tolist()
        return (w1, w2), (m1, m2)

    return [
        Cell(
            p.operation, p.scale, p.seed, pair(start, p), pair(end, p), (float(W[p.unit, 0]), float(W[p.unit, 1])),
            errors[p], nudged[twins[p]] if p in twins else math.nan, int(stack.epochs[p.unit]),
        )
        for p in places
    ]  # fmt: skip


def _errors(
    W: Float[Tensor, "unit 2"], places: Sequence[_Place], data: dict[tuple[str, int], Problems], method: Method
) -> Errors:
    """Mean squared error of each of these cells, those on the same data together."""
    together: dict[tuple[str, int], list[_Place]] = {}
    for place in places:
        together.setdefault((place.operation, place.seed), []).append(place)
    found: Errors = {}
    for (name, seed), members in together.items():
        units = W[[place.unit for place in members]]
        found.update(zip(members, mse(name, units, data[name, seed], method).tolist(), strict=True))
    return found
