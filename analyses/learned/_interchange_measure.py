"""Swapping a subspace of the residual stream between two runs, and counting which digit the answer then has."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses._rows import Row
from analyses.learned._exact_places import ANSWER_LABELS, Place, place_of, predicted_at
from analyses.learned._interchange_variables import VARIABLES, Variable
from analyses.learned._replace import Where, replaced
from workbench import forward
from workbench.activations.collect import collect
from workbench.checkpoint import Checkpoint
from workbench.probe import fit
from workbench.recipe import Architecture
from workbench.task import POSITIONS_READ, Problems, encode

RANDOM = 3  # random subspaces
TRIES = 4  # sources that a problem is tried with
CHUNK = 2_000  # problems a forward pass
NEGLIGIBLE = 1e-6  # singular value, in units of the largest, below which a readout has no direction of its own
STREAM = ("hook_resid_mid", "hook_resid_post")

Vectors = Float[Tensor, "problem d_model"]
Map = Float[Tensor, "d_model d_model"]
Bools = Bool[np.ndarray, " problem"]
Indices = Int[np.ndarray, " swap"]


def sites_of(architecture: Architecture) -> list[str]:
    """The residual stream after attention and after the MLP of every layer."""
    return [f"blocks.{layer}.{part}" for layer in range(architecture.n_layers) for part in STREAM]


@dataclass(frozen=True, eq=False)
class Runs:
    """A model's runs on problems: the first half is fitted on, the second swapped."""

    weights: forward.Weights
    architecture: Architecture
    problems: Problems
    hide_sign: bool

    @cached_property
    def tokens(self) -> Int[Tensor, "problem pos"]:
        """What the model reads."""
        return torch.from_numpy(encode(self.problems, hide_sign=self.hide_sign)[:, :POSITIONS_READ]).int()

    @cached_property
    def seen(self) -> tuple[dict[str, Float[Tensor, "problem pos d_model"]], Int[Tensor, "problem pos"]]:
        """The stream at every site and answer position, and the digit the model says there."""
        hooks, positions = sites_of(self.architecture), range(10, POSITIONS_READ)
        parts = [
            collect(self.weights, self.tokens[start : start + CHUNK], self.architecture, hooks, positions)
            for start in range(0, len(self.problems), CHUNK)
        ]
        stream = {hook: torch.cat([part[hook] for part in parts]) for hook in hooks}
        logits = stream[hooks[-1]] @ self.weights["unembed.W_U"]
        return stream, logits[..., :10].argmax(dim=-1)

    def at(self, hook: str, place: int) -> Vectors:
        """The stream where the digit of a place is predicted."""
        return self.seen[0][hook][:, predicted_at(place) - 10]

    def said(self, place: int) -> Int[np.ndarray, " problem"]:
        """The digit that the model says at a place."""
        return self.seen[1][:, predicted_at(place) - 10].numpy()


def span(vectors: Float[Tensor, "d_model number"]) -> Map:
    """The orthogonal projection onto what the columns span; zero when they are all zero."""
    left, values, _ = torch.linalg.svd(vectors.double(), full_matrices=False)
    kept = left[:, (values > NEGLIGIBLE * values.max()) & (values > 0)]
    return kept @ kept.T


Swap = Callable[[Float[Tensor, "swap d_model"]], Float[Tensor, "swap d_model"]]  # from source - x to what x changes by


def swaps_of(
    x: Vectors, targets: Float[Tensor, "problem number"], weight: Float[Tensor, "d_model number"], seed: int
) -> list[tuple[str, Swap]]:
    """Ways to change the stream, each with its kind, from the problems that are fitted on.

    `weight` holds the linear readouts of the targets. `readout`: the source's projection on their span instead of x's.
    `pattern`: a move along the covariances of x with the targets (of a number 0 or 1, the difference of class means),
    just far enough that the readouts say what they say of the source. The controls, RANDOM of each: `random`, as
    `readout` with as many directions drawn from a normal with x's covariance; `pushed`, as long a move as `pattern`'s,
    to one side or the other of one such direction.
    """
    generator = torch.Generator().manual_seed(seed)
    centred = x.double() - x.double().mean(dim=0)
    covariance = centred.T @ (targets.double() - targets.double().mean(dim=0))
    drawn = torch.randn(RANDOM, weight.shape[1], len(x), generator=generator, dtype=torch.float64) @ centred
    pattern = weight @ torch.linalg.pinv(covariance.T @ weight, rtol=NEGLIGIBLE) @ covariance.T
    side = torch.randn(RANDOM, len(x), generator=generator, dtype=torch.float64).sign()

    def pushed(change: Tensor, number: int) -> Tensor:
        direction = drawn[number, 0] / drawn[number, 0].norm()
        length = (change @ pattern).norm(dim=1) * side[number].repeat(-(-len(change) // len(x)))[: len(change)]
        return length[:, None] * direction

    maps = [("readout", span(weight)), ("pattern", pattern), *(("random", span(one.T)) for one in drawn)]
    linear = [(kind, partial(torch.matmul, other=M)) for kind, M in maps]
    return [*linear, *(("pushed", partial(pushed, number=number)) for number in range(RANDOM))]


def partners(
    variable: Variable, place: Place, negative: Bools, known: Bools, most: int, seed: int
) -> tuple[Indices, Indices]:
    """Up to `most` (problem, source) among the second half, where exact units predict another digit than the problem's.

    Both are `known`: answered right at the place. Their answers have the same sign; for the direction, different ones.
    """
    usable = np.flatnonzero(known & variable.about(place, negative))
    usable = usable[usable >= len(known) // 2]
    rng = np.random.default_rng([seed, VARIABLES.index(variable)])
    base, source = (rng.permutation(np.tile(usable, TRIES)) for _ in range(2))
    fits = (negative[base] != negative[source]) == variable.turns
    fits &= predict(variable, place, base, source) != place.digit[base]
    return base[fits][:most], source[fits][:most]


def predict(variable: Variable, place: Place, base: Indices, source: Indices) -> Int[np.ndarray, " swap"]:
    """The digit of each problem with its source's value of the variable."""
    return variable.predicted(place.chosen(base), place.chosen(source))


def _explained(said: Float[Tensor, "problem number"], exact: Float[Tensor, "problem number"]) -> float:
    """Share of the numbers' variance that a readout explains, all of them together."""
    return 1 - ((said - exact).square().sum() / (exact - exact.mean(dim=0)).square().sum()).item()


def swap(runs: Runs, variable: Variable, at: int, most: int, seed: int) -> Iterator[Row]:
    """One row a site and subspace, for one place: digits that come out as predicted, and that are kept.

    `r2` is how much of the variable the readout explains on the second half. Nothing where no swap can be made.
    """
    place, negative = place_of(runs.problems, at), runs.problems.negative
    about = np.flatnonzero(variable.about(place, negative))
    fitting, scoring = (about[(about < len(negative) // 2) == first] for first in (True, False))
    base, source = partners(variable, place, negative, runs.said(at) == place.digit, most, seed)
    if len(fitting) < 2 or not len(base):
        return
    numbers = torch.from_numpy(variable.numbers(place, negative))
    position, rows, values = predicted_at(at), [], []
    for hook in sites_of(runs.architecture):
        x = runs.at(hook, at)
        readouts = fit(x[fitting][None], numbers[fitting])
        r2 = _explained(readouts.read(x[scoring][None])[0], numbers[scoring])
        for kind, change in swaps_of(x[fitting], numbers[fitting], readouts.weight[0], seed):
            rows.append({"hook": hook, "subspace": kind, "r2": r2})
            values.append((x[base] + change((x[source] - x[base]).double())).float())
    places = [Where(row["hook"], position) for row in rows]
    logits = replaced(runs.weights, runs.tokens[base, : position + 1], runs.architecture, places, values)
    wanted, own = predict(variable, place, base, source), place.digit[base]
    for row, digits in zip(rows, logits.argmax(dim=-1).numpy(), strict=True):
        counts = {"predicted": int((digits == wanted).sum()), "kept": int((digits == own).sum()), "n": len(base)}
        yield {"variable": variable.name, "digit": ANSWER_LABELS[at], "directions": numbers.shape[1], **row, **counts}


def measure(checkpoint: Checkpoint, problems: Problems, most: int, seed: int) -> list[Row]:
    """Every swap of one checkpoint: a row a variable, place, site and subspace."""
    config = checkpoint.config
    runs = Runs(forward.tensors(checkpoint.weights), config.architecture, problems, config.problems == "sign-hidden")
    return [
        {"checkpoint": checkpoint.name, **row}
        for variable in variables_of(problems)
        for at in variable.places
        for row in swap(runs, variable, at, most, seed)
    ]


def variables_of(problems: Problems) -> Sequence[Variable]:
    """Those that the problems have: operators that occur; a direction, or answers of one sign, only where both do."""
    kinds = {bool(kind) for kind in np.unique(problems.subtract)}
    signs = problems.negative[problems.subtract]
    both = bool(signs.any() and not signs.all())
    return [
        variable
        for variable in VARIABLES
        if variable.subtract in kinds and (both or not (variable.turns or variable.negative is not None))
    ]
