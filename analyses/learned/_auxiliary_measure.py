"""What a run says of the test problems, and how much of each head's quantity is linearly there at its site.

Readouts are fitted on the validation problems, which only picked the step that is kept, and scored on the test
problems. Calibration is that of the answer digits: Guo, Pleiss, Sun & Weinberger, "On Calibration of Modern Neural
Networks" (2017), with their 15 bins of equal width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses.learned._conditions import tokens_of
from workbench import forward, probe
from workbench.auxiliary_grid import HEADS
from workbench.checkpoint import Checkpoint
from workbench.hill import heads
from workbench.recipe import Auxiliary, Variant
from workbench.splits import Splits
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, POSITIONS_READ, Problems

BINS = 15
CHUNK = 2_000  # problems a forward pass
OPERATORS = ("addition", "subtraction")
SEED = 0  # of the bootstrap behind the intervals of R2


class Part(NamedTuple):
    """Variance explained of one head's targets in one operator, with a 95% bootstrap interval over problems."""

    head: str
    operator: str


class R2(NamedTuple):
    """Variance explained, its interval, and how many problems it is scored on."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False)
class Looked:
    """One run on the test problems: which are right, the calibration error over so many digits, and the readouts."""

    right: Bool[np.ndarray, " problem"]
    calibration: float
    digits: int
    linear: Mapping[Part, R2]


@lru_cache(maxsize=2)
def splits(data_seed: int, variant: Variant) -> tuple[Problems, Problems]:
    """(validation, test) problems."""
    found = Splits(data_seed, variant)
    return found.validation, found.test


@torch.no_grad()
def look(one: Checkpoint) -> Looked:
    """Everything that is measured of a run; it reads at its head's site, or where the grid's heads do."""
    config = one.config
    validation, test = splits(config.data_seed, config.problems)
    _, seen = _asked(one, validation)
    logits, seen_in_test = _asked(one, test)
    right = tokens_of(one, test)[:, ANSWER_TOKENS]
    said, confidence = _top(logits)
    hits = said == right
    linear = linearly_there(seen, validation, seen_in_test, test)
    return Looked(hits.all(dim=1).numpy(), calibration_error(confidence, hits), hits.numel(), linear)


def site_of(one: Checkpoint) -> str:
    """The hook name that a run is read at."""
    return (one.config.auxiliary or Auxiliary()).site(one.config.architecture.n_layers)


def _asked(
    one: Checkpoint, problems: Problems
) -> tuple[Float[Tensor, "problem 5 token"], Float[Tensor, "problem 5 d_model"]]:
    """Logits, and the stream at the run's site, at the answer positions."""
    weights, site = forward.tensors(one.weights), site_of(one)
    logits, found = [], []

    def keep(name: str, value: Tensor) -> Tensor:
        if name == site:
            found.append(value[:, ANSWER_POSITIONS])
        return value

    for part in tokens_of(one, problems).split(CHUNK):
        logits.append(
            forward.logits(weights, part[:, :POSITIONS_READ], one.config.architecture, keep)[:, ANSWER_POSITIONS]
        )
    return torch.cat(logits), torch.cat(found)


def _top(logits: Float[Tensor, "problem 5 token"]) -> tuple[Tensor, Tensor]:
    """The likeliest token of each digit, and its probability."""
    best, token = logits.double().max(dim=-1)
    return token, (logits.double() - best[..., None]).exp().sum(dim=-1).reciprocal()


def calibration_error(confidence: Float[Tensor, "*answers"], hits: Bool[Tensor, "*answers"]) -> float:
    """`sum_b n_b / n |share right - mean confidence|` over bins b of equal width; a bin has its upper edge (eq. 3)."""
    at = (confidence * BINS).ceil().long().clamp(1, BINS) - 1
    gaps = torch.zeros(BINS, dtype=torch.float64)
    gaps.index_add_(0, at.flatten(), (hits.double() - confidence.double()).flatten())
    return float(gaps.abs().sum() / hits.numel())


def linearly_there(
    fitted: Float[Tensor, "problem 5 d_model"],
    fitted_on: Problems,
    scored: Float[Tensor, "other 5 d_model"],
    scored_on: Problems,
) -> dict[Part, R2]:
    """R2 of linear readouts with intercept, of every head's targets, a readout an output, place and operator.

    Each reads what the head reads, of the problems of one operator alone. R2 is over places and outputs together, so a
    digit that never varies adds nothing.
    """
    found = {}
    for head in HEADS:
        wanted, truth = (torch.from_numpy(heads.targets(head, p)).double() for p in (fitted_on, scored_on))
        seen, other = _seen(head, fitted), _seen(head, scored)
        for operator, minus in zip(OPERATORS, (False, True), strict=True):
            first, second = (torch.from_numpy(p.subtract == minus) for p in (fitted_on, scored_on))
            if min(int(first.sum()), int(second.sum())) > 1:
                x, y = seen[:, first], wanted[first]
                said = probe.fit(x, y.flatten(1)).read(other[:, second]).unflatten(2, y.shape[1:])
                said = torch.stack([said[place, :, place] for place in range(y.shape[1])], dim=1)
                found[Part(head, operator)] = explained(said, truth[second], y.mean(dim=0))
    return found


def _seen(head: str, x: Float[Tensor, "problem 5 d_model"]) -> Float[Tensor, "place problem feature"]:
    """What a head reads at each of its places."""
    places = heads.KINDS[head].places
    return x.flatten(1)[None] if places == 1 else x[:, -places:].transpose(0, 1)


def explained(
    said: Float[Tensor, "problem place output"],
    truth: Float[Tensor, "problem place output"],
    mean: Float[Tensor, "place output"],
) -> R2:
    """`1 - sum (said - truth)^2 / sum (truth - mean)^2` over everything; NaN when nothing varies."""
    error, spread = ((of - truth).square().sum(dim=(1, 2)) for of in (said, mean))
    if not spread.sum() > 0:
        return R2(float("nan"), float("nan"), float("nan"), len(truth))
    counts = _resamples(len(truth))
    low, high = (1 - (counts @ error) / (counts @ spread)).quantile(torch.tensor([0.025, 0.975]).double()).tolist()
    return R2(float(1 - error.sum() / spread.sum()), low, high, len(truth))


@lru_cache(maxsize=4)
def _resamples(n: int) -> Float[Tensor, "replicate problem"]:
    return probe.resamples(n, SEED)
