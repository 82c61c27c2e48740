"""The trainings of analysis `hill-optimizers`: ten optimizer settings by eight operations, all as one stack.

The published protocol is that of the report's repository (justindujardin/hillspace on GitHub); each operation is
trained by itself there, on the same batch order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses.hill._report_protocol import (
    BATCH,
    GOLDILOCKS,
    SAMPLES,
    Distribution,
    Problems,
    Run,
    inputs,
    problem_sets,
    targets,
)
from workbench.hill.constraint import constrain_snapped
from workbench.hill.exponential import Method
from workbench.hill.fitting import Optimizer, Stack, Stream, Target, Unit, optimizer, shuffled
from workbench.hill.operations import operation
from workbench.hill.primitives import compute

OPERATIONS = ("add", "subtract", "multiply", "divide", "power-identity", "reciprocal", "sin", "cos-sum")
RATES: dict[str, Optimizer] = {  # the rates of the report's experiment file, which its text calls defaults
    "Adam": optimizer("adam", lr=0.1),
    "Adam, beta2 0.5": optimizer("adam", lr=0.1, betas=(0.9, 0.5)),
    "AdamW": optimizer("adamw", lr=0.1),
    "RAdam": optimizer("radam", lr=0.1),
    "NAdam": optimizer("nadam", lr=0.1),
    "RMSProp": optimizer("rmsprop", lr=0.1, alpha=0.9),
    "Adagrad": optimizer("adagrad", lr=0.3),
    "Adadelta": optimizer("adadelta", lr=1.0),
    "Rprop": optimizer("rprop", lr=0.01),
    "SGD with momentum": optimizer("sgd", lr=0.3, momentum=0.9),
}
DEFAULTS: dict[str, Optimizer] = {  # torch's own, but for what the setting's name says
    "Adam": optimizer("adam"),
    "Adam, beta2 0.5": optimizer("adam", betas=(0.9, 0.5)),
    "AdamW": optimizer("adamw"),
    "RAdam": optimizer("radam"),
    "NAdam": optimizer("nadam"),
    "RMSProp": optimizer("rmsprop"),
    "Adagrad": optimizer("adagrad"),
    "Adadelta": optimizer("adadelta"),
    "Rprop": optimizer("rprop"),
    "SGD with momentum": optimizer("sgd", momentum=0.9),
}
SETTINGS = tuple(RATES)
SNAPS = (0.0, 1e-6, 1e-2)  # 0: no snapping
SEED = 42
FULL_EPOCHS = 100
TEST_SAMPLES = 16_000
EXTREME = Distribution("uniform", -1e4, 1e4)  # where trained units are evaluated
NUDGES = tuple(place * 1e-12 for place in range(1, 4))  # added to every initial W_hat: far below any rate

REPORT, NUDGED, PLAIN, DEFAULT = "report", "nudged", "plain", "defaults"


@dataclass(frozen=True, eq=False)
class Trained:
    """Units of one column of the tables, with each of SNAPS: errors, and whether the weights are exactly the selection.

    A weight on which no answer depends (the second of a power of one operand, whose base is 1) does not count. What
    diverged has an error of NaN.
    """

    mse: Float[Tensor, "*seed snap setting operation"]
    exact: Bool[Tensor, "*seed snap setting operation"]


@dataclass(frozen=True)
class _Block:
    """The units of every setting and operation that were trained with one seed of one column."""

    column: str
    first: int  # of its units in the stack, setting by setting
    test: dict[str, Problems]
    method: Method


def report_streams() -> list[Stream]:
    """The published training problems, one stream an operation, in the published order of batches."""
    run = Run(SEED, ["any"], torch_seed=SEED, samples=SAMPLES, mixed=False)  # each is seeded anew: one order for all
    drawn = problem_sets(OPERATIONS, GOLDILOCKS, SEED, SAMPLES)
    return [Stream(Target.of(name), *drawn[name], run.order("any")) for name in OPERATIONS]


def plain_problems(name: str, seed: int) -> tuple[Problems, Problems]:
    """Training and test problems of a seed with the answers of float64 arithmetic."""
    generator = np.random.default_rng([seed, OPERATIONS.index(name)])
    drawn = [inputs(name, GOLDILOCKS, generator, SAMPLES), inputs(name, EXTREME, generator, TEST_SAMPLES)]
    train, test = ((torch.from_numpy(x), torch.from_numpy(targets(name, x))) for x in drawn)
    return train, test


def units(settings: dict[str, Optimizer], first_stream: int, start: float = 0.0) -> list[Unit]:
    """A unit a setting and operation, setting by setting, from raw parameters of 0 or W_hat of `start`."""
    W_hat = (start, start)
    places = range(first_stream, first_stream + len(OPERATIONS))
    return [Unit((place,), rule, W_hat) for rule in settings.values() for place in places]


def build(seeds: Sequence[int]) -> tuple[list[Stream], list[Unit], list[_Block]]:
    """Everything that is trained: the published runs, the same nudged, and both sets of rates for each plain seed."""
    streams, every, blocks = report_streams(), [], []
    published = problem_sets(OPERATIONS, EXTREME, SEED, TEST_SAMPLES)
    for column, start in ((REPORT, 0.0), *((NUDGED, nudge) for nudge in NUDGES)):
        blocks.append(_Block(column, len(every), published, "complex"))
        every += units(RATES, 0, start)
    for seed in seeds:
        first, test = len(streams), {}
        for number, name in enumerate(OPERATIONS):
            train, test[name] = plain_problems(name, seed)
            order = shuffled(SAMPLES, BATCH, seed * 100 + number)
            streams.append(Stream(Target.of(name), *train, order))
        for column, settings in ((PLAIN, RATES), (DEFAULT, DEFAULTS)):
            blocks.append(_Block(column, len(every), test, "sign-exact"))
            every += units(settings, first)
    return streams, every, blocks


def measure(epochs: int, seeds: Sequence[int], watch: Callable[[Stack], None] | None = None) -> dict[str, Trained]:
    """Train for `epochs` of 1,000 steps, then evaluate with each snapping: by column, `seeds` those of plain runs."""
    streams, every, blocks = build(seeds)
    stack = Stack(streams, every)
    for _ in range(epochs):
        stack.epoch()
        if watch is not None:
            watch(stack)
    shape = (len(SETTINGS), len(OPERATIONS), 2)
    found: dict[str, list[Trained]] = {}
    for block in blocks:
        mine = slice(block.first, block.first + len(SETTINGS) * len(OPERATIONS))
        raw = stack.W_hat[mine].view(shape), stack.M_hat[mine].view(shape)
        found.setdefault(block.column, []).append(evaluate(*raw, block.test, block.method))
    return {
        column: Trained(*(torch.stack([getattr(one, name) for one in runs]) for name in ("mse", "exact")))
        for column, runs in found.items()
    }


@torch.no_grad()
def evaluate(
    W_hat: Float[Tensor, "setting operation 2"],
    M_hat: Float[Tensor, "setting operation 2"],
    test: dict[str, Problems],
    method: Method,
) -> Trained:
    """One seed of a column, without the axis of seeds."""
    goal = torch.tensor([operation(name).selection for name in OPERATIONS], dtype=W_hat.dtype)
    free = torch.tensor([[False, _power_of_one(name)] for name in OPERATIONS])
    W = torch.stack([constrain_snapped(W_hat, M_hat, snap) for snap in SNAPS])  # [snap, setting, operation, 2]
    mse = torch.empty(W.shape[:3], dtype=W.dtype)
    for place, name in enumerate(OPERATIONS):
        x, y = test[name]
        answers = compute(operation(name).primitive, x, W[:, :, place], method)
        mse[:, :, place] = (answers - y[:, None]).square().mean(dim=-2)
    return Trained(mse, (W.eq(goal) | free).all(dim=-1))


def _power_of_one(name: str) -> bool:
    row = operation(name)
    return row.primitive == "exponential" and row.arity == 1
