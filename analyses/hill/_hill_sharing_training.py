"""The trainings of analysis `hill-sharing`: one weight pair for a group of operations, against a pair for each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from analyses.hill._hill_optimizers_matrix import RATES
from analyses.hill._report_protocol import BATCH, GOLDILOCKS, Problems, inputs, targets
from workbench.hill.constraint import constrain_snapped
from workbench.hill.fitting import Stack, Stream, Target, Unit, alternating, shuffled
from workbench.hill.fitting_streams import in_parts
from workbench.hill.operations import operation

GROUPS = {  # operations of two or three primitives that want the same selection (report sections 2.5 and 5)
    "[1, 1]": ("add", "multiply"),
    "[1, -1]": ("subtract", "divide"),
    "[1, 0]": ("identity", "power-identity", "cos"),
    "[-1, 0]": ("negation", "reciprocal", "sin"),
}
OPERATIONS = tuple(name for names in GROUPS.values() for name in names)
SCALES = (0.0, 0.1, 1.0, 3.0)
SAMPLES = 6400
PARTS = 10  # of an epoch, after each of which weights are looked at
ADAM = RATES["Adam, beta2 0.5"]  # as in section 4.5
SHARED, SEPARATE = "shared", "separate"


@dataclass(frozen=True)
class Outcome:
    """One operation of one training.

    `exact`: the snapped weights that count are the selection; a power of one operand reads no second weight, whose base
    is 1. `lost`: they lie nearer to another selection. `batches`: of this operation, after which the weights were exact
    and stayed so, 0 for never; a shared pair has seen as many of each other operation of its group.
    """

    group: str
    operation: str
    scale: float
    seed: int
    way: str
    exact: bool
    lost: bool
    batches: int


def problems(name: str, seed: int) -> Problems:
    """Training problems on the report's recommended range."""
    generator = np.random.default_rng([seed, OPERATIONS.index(name)])
    x = inputs(name, GOLDILOCKS, generator, SAMPLES)
    return torch.from_numpy(x), torch.from_numpy(targets(name, x))


def start(group: str, scale: float, seed: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """(W_hat, M_hat) at the start, the same for a group's shared pair and for each of its separate ones."""
    key = [seed, len(OPERATIONS), list(GROUPS).index(group), SCALES.index(scale)]
    W_hat, M_hat = (tuple(row) for row in (np.random.default_rng(key).standard_normal((2, 2)) * scale).tolist())
    return W_hat, M_hat


def train(epochs: int, seeds: Sequence[int]) -> list[Outcome]:
    """Train every group both ways, from every scale, on the same problems in the same order."""
    streams: list[Stream] = []
    units: list[Unit] = []
    places: list[tuple[str, str, float, int, str, int]] = []
    for seed in seeds:
        first = len(streams)
        for number, name in enumerate(OPERATIONS):
            order = in_parts(shuffled(SAMPLES, BATCH, seed * 100 + number), PARTS)
            streams.append(Stream(Target.of(name), *problems(name, seed), order))
        for group, names in GROUPS.items():
            at = [first + OPERATIONS.index(name) for name in names]
            turns = alternating(*[SAMPLES // BATCH // PARTS] * len(names))
            for scale in SCALES:
                raw = start(group, scale, seed)
                places += [(group, name, scale, seed, SHARED, len(units)) for name in names]
                units.append(Unit(tuple(at), ADAM, *raw, turns=turns))
                for name, stream in zip(names, at, strict=True):
                    places.append((group, name, scale, seed, SEPARATE, len(units)))
                    units.append(Unit((stream,), ADAM, *raw))
    stack = Stack(streams, units)
    whose = torch.tensor([unit for *_, unit in places])
    goal = torch.tensor([operation(name).selection for _, name, *_ in places], dtype=torch.float64)
    free = torch.tensor([[False, name in ("power-identity", "reciprocal")] for _, name, *_ in places])
    after = torch.zeros(len(places), dtype=torch.int64)
    for part in range(1, epochs * PARTS + 1):
        stack.epoch()
        snapped = constrain_snapped(stack.W_hat, stack.M_hat)[whose]
        exact = (snapped.eq(goal) | free).all(dim=1)
        after = torch.where(exact, torch.where(after > 0, after, part * (SAMPLES // BATCH // PARTS)), 0)
    near = (stack.W[whose].round().eq(goal) | free).all(dim=1)
    return [
        Outcome(group, name, scale, seed, way, bool(after[k]), not bool(near[k]), int(after[k]))
        for k, (group, name, scale, seed, way, _) in enumerate(places)
    ]
