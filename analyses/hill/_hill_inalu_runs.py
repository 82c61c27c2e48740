"""The trainings of analysis `hill-inalu`: on each range, on one range for all, and many more of the four lotteries."""

from collections.abc import Sequence
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
    Distribution,
    Problems,
    Run,
    inputs,
    problem_sets,
    targets,
)
from workbench.hill.constraint import constrain_snapped
from workbench.hill.exponential import Method
from workbench.hill.fitting import Stack, Stream, Target, Unit, optimizer, shuffled
from workbench.hill.operations import operation
from workbench.hill.primitives import compute

OPERATIONS = ("add", "subtract", "multiply", "divide")
UNIVERSAL = "universal"  # trained on the Goldilocks range, tested on all others
RANGES = {  # training and test distribution by the report's name (section 4.3.1)
    "E(0.8,0.5)": (Distribution("exponential", 0.8, 0.8), Distribution("exponential", 0.5, 0.5)),
    "U(-5,5)": (Distribution("uniform", -5.0, 5.0), Distribution("uniform", -10.0, -5.0)),
    "N(-3,3)": (Distribution("normal", -3.0, 3.0), Distribution("normal", 8.0, 10.0)),
    "U(1.1,1.2)": (Distribution("uniform", 1.1, 1.2), Distribution("uniform", 1.2, 6.0)),
}
SEEDS = (19431, 52505, 44094, 83039, 50834, 85812, 5113, 4085, 26358, 31763)
LOTTERIES = tuple((name, op) for name in ("U(-5,5)", "N(-3,3)") for op in ("multiply", "divide"))
RMSPROP = optimizer("rmsprop", lr=0.01, alpha=0.9, eps=1e-10)
CONVERGED = 1e-14  # mean squared error below which training ends
LAST = 5  # epochs in a row whose mean training loss is below it, which end it too
CHECK_SAMPLES = 5000
TOGETHER = 25  # seeds of the lotteries in one stack, to bound memory


@dataclass(frozen=True)
class Trained:
    """A unit after training: the range it saw, where it ended, and its snapped weights."""

    trained_on: str
    operation: str
    seed: int
    W: tuple[float, float]
    snapped: tuple[float, float]
    epochs: int
    converged: bool


@dataclass(frozen=True)
class _Job:
    """A unit before training, and the run it belongs to: the units of one run stop together."""

    trained_on: str
    operation: str
    seed: int

    @property
    def run(self) -> tuple[str, str, int]:
        return self.trained_on, "" if self.trained_on == UNIVERSAL else self.operation, self.seed


def checked(epoch: int) -> bool:
    """Whether the report's code looks at its check data after this epoch, counted from 0."""
    return epoch <= 10 or epoch % 10 == 0


def mse(name: str, W: Float[Tensor, "unit 2"], data: Problems, method: Method) -> Float[Tensor, " unit"]:
    """Mean squared error of several units of an operation on the same problems."""
    x, y = data
    return (compute(operation(name).primitive, x, W, method) - y[:, None]).square().mean(dim=0)


def _run(seed: int, names: Sequence[str]) -> Run:
    return Run(seed, names, torch_seed=seed + RESEEDED, samples=SAMPLES, checked=checked)


def report_units(seeds: Sequence[int], epochs: int) -> list[Trained]:
    """Section 4.3 as the report's code runs it: matched units each by itself, the four universal ones together.

    All begin at zero. Training ends below 1e-14, on the check data (of the test range, or of the Goldilocks range for
    the universal units) or in five epochs' mean training loss.
    """
    streams, jobs, check = [], [], []
    for seed in seeds:
        for trained_on in (*RANGES, UNIVERSAL):
            train, test = RANGES.get(trained_on, (GOLDILOCKS, GOLDILOCKS))
            sets = problem_sets(OPERATIONS, train, seed, SAMPLES)
            checks = problem_sets(OPERATIONS, test, seed + RESEEDED, CHECK_SAMPLES)
            joint = _run(seed, OPERATIONS)
            for name in OPERATIONS:
                order = (joint if trained_on == UNIVERSAL else _run(seed, [name])).order(name)
                streams.append(Stream(Target.of(name), *sets[name], order))
                jobs.append(_Job(trained_on, name, seed))
                check.append(checks[name])
    stack = Stack(streams, [Unit((place,), RMSPROP) for place in range(len(streams))], settle=True)
    converged = torch.zeros(len(jobs), dtype=torch.bool)
    for epoch in range(epochs):
        stack.epoch()
        ended = _ended(stack, jobs, check if checked(epoch) else None)
        converged |= ended
        stack.stop(ended)
        if not bool(stack.running.any()):
            break
    return _trained(stack, jobs, converged)


def _ended(stack: Stack, jobs: Sequence[_Job], check: Sequence[Problems] | None) -> Bool[Tensor, " unit"]:
    """The units whose runs the report's rule ends now."""
    ended, W, last = torch.zeros(len(jobs), dtype=torch.bool), stack.W, stack.history[-LAST:]
    members: dict[tuple[str, str, int], list[int]] = {}
    for place, job in enumerate(jobs):
        if stack.running[place]:
            members.setdefault(job.run, []).append(place)
    for places in members.values():
        calm = len(last) == LAST and bool((last[:, places].mean(dim=1) < CONVERGED).all())
        ended[places] = calm or (
            check is not None
            and all(float(mse(jobs[p].operation, W[p : p + 1], check[p], "complex")) < CONVERGED for p in places)
        )
    return ended


def _trained(stack: Stack, jobs: Sequence[_Job], converged: Bool[Tensor, " unit"]) -> list[Trained]:
    W, snapped = stack.W.tolist(), constrain_snapped(stack.W_hat, stack.M_hat).tolist()
    return [
        Trained(
            job.trained_on, job.operation, job.seed, (W[p][0], W[p][1]), (snapped[p][0], snapped[p][1]),
            int(stack.epochs[p]), bool(converged[p]),
        )
        for p, job in enumerate(jobs)
    ]  # fmt: skip


def report_errors(units: Sequence[Trained], seeds: Sequence[int]) -> dict[tuple[str, str, str, int], float]:
    """Extrapolation error of the snapped units, by (test range, `matched` or `universal`, operation, seed)."""
    at = {(unit.trained_on, unit.operation, unit.seed): unit for unit in units}
    found = {}
    for seed in seeds:
        for tested_on, (_, test) in RANGES.items():
            sets = problem_sets(OPERATIONS, test, seed, SAMPLES)
            for name in OPERATIONS:
                both = [at[trained_on, name, seed] for trained_on in (tested_on, UNIVERSAL)]
                W = torch.tensor([unit.snapped for unit in both], dtype=torch.float64)
                errors = mse(name, W, sets[name], "complex").tolist()
                found[tested_on, "matched", name, seed], found[tested_on, UNIVERSAL, name, seed] = errors
    return found


def plain_errors(units: Sequence[Trained], seeds: Sequence[int]) -> dict[tuple[str, str, str, int], float]:
    """The same with fresh test inputs, float64 targets and sign-exact powers."""
    at = {(unit.trained_on, unit.operation, unit.seed): unit for unit in units}
    found = {}
    for seed in seeds:
        for number, (tested_on, (_, test)) in enumerate(RANGES.items()):
            for place, name in enumerate(OPERATIONS):
                x = inputs(name, test, np.random.default_rng([seed, number, place]), SAMPLES)
                data = torch.from_numpy(x), torch.from_numpy(targets(name, x))
                both = [at[trained_on, name, seed] for trained_on in (tested_on, UNIVERSAL)]
                W = torch.tensor([unit.snapped for unit in both], dtype=torch.float64)
                errors = mse(name, W, data, "sign-exact").tolist()
                found[tested_on, "matched", name, seed], found[tested_on, UNIVERSAL, name, seed] = errors
    return found


def lottery_units(seeds: Sequence[int], epochs: int) -> list[Trained]:
    """The four matched trainings on ranges that cross zero, from other seeds, with float64 targets.

    `converged` is whether the snapped weights are the selection after some epoch, at which a unit stops.
    """
    found = []
    for start in range(0, len(seeds), TOGETHER):
        streams, jobs = [], []
        for seed in seeds[start : start + TOGETHER]:
            for number, (trained_on, name) in enumerate(LOTTERIES):
                x = inputs(name, RANGES[trained_on][0], np.random.default_rng([seed, number]), SAMPLES)
                data = torch.from_numpy(x), torch.from_numpy(targets(name, x))
                streams.append(Stream(Target.of(name), *data, shuffled(SAMPLES, BATCH, 10 * seed + number)))
                jobs.append(_Job(trained_on, name, seed))
        stack = Stack(streams, [Unit((place,), RMSPROP) for place in range(len(streams))])
        goal = torch.tensor([stream.target.selection for stream in streams], dtype=torch.float64)
        converged = torch.zeros(len(jobs), dtype=torch.bool)
        for _ in range(epochs):
            stack.epoch()
            right = (constrain_snapped(stack.W_hat, stack.M_hat) == goal).all(dim=1)
            converged |= right & stack.running
            stack.stop(right)
            if not bool(stack.running.any()):
                break
        found += _trained(stack, jobs, converged)
    return found
