"""Families of functions of one digit pair and its carry, and how much of a value's variance over problems each holds.

A cell is a pair (a, b) with the carry or borrow that arrives at its place, 200 in all. A family is a linear space of
functions of the cell; all but `pair` may differ with the carry. Over equally frequent pairs the discrete Fourier
transform splits the functions of a pair into orthogonal parts: of one digit alone (18 dimensions besides the constant),
of a + b mod 10 and of a - b mod 10 (9 each, of which frequency 5 is the same), and 64 more. So a table of 100
independent values puts (r - 1) / 99 of its variance into a family of r values: what a lookup of single pairs shows, and
what a family must exceed to mean anything.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbench.statistics import student_quantile

CELLS = 200  # 100 * carry + 10 * a + b
FREQUENCIES = (1, 2, 3, 4, 5)
BLOCKS = 10  # of each half's problems, behind an interval
ALIVE = 1e-10  # variance below which a component counts as constant: float32 rounding of values of order 1
CARRY, PAIR, LOOKUP, ONE_DIGIT = "carry", "pair", "lookup", "one digit"
SUM, DIFFERENCE, SUM_MOD, DIFFERENCE_MOD = "sum", "difference", "sum mod 10", "difference mod 10"
TURNS = "sum and difference mod 10"  # what products of two angles span: cos a cos b = (cos(a+b) + cos(a-b)) / 2
RELABELLED = ", relabelled"  # the control: the same family after the digits of a and of b have changed names
RELABELLED_FAMILIES = (SUM, DIFFERENCE, SUM_MOD, DIFFERENCE_MOD, TURNS)


def frequency_of(name: str, k: int) -> str:
    """The name of the family of one frequency, of the sum or of the difference."""
    return f"{name}, k={k}"


def indicators(values: np.ndarray) -> Float[np.ndarray, "cell value"]:
    """One column for each different value: the space of all functions of it."""
    return (values[:, None] == np.unique(values)).astype(float)


def waves(values: np.ndarray, k: int) -> Float[np.ndarray, "cell 3"]:
    """1, cos and sin of `2 pi k value / 10` (at k = 5 the sine of whole numbers is 0)."""
    angle = 2 * math.pi * k * values / 10
    return np.stack([np.ones(len(values)), np.cos(angle), np.sin(angle)], axis=1)


@cache
def bases() -> dict[str, Float[np.ndarray, "cell value"]]:
    """Columns that span each family, by name, in the order of the tables."""
    cell = np.arange(CELLS)
    carry, a, b = cell // 100, cell % 100 // 10, cell % 10
    spans = {
        CARRY: np.ones((CELLS, 1)),
        LOOKUP: indicators(cell % 100),
        ONE_DIGIT: np.concatenate([indicators(a), indicators(b)], axis=1),
        SUM: indicators(a + b),
        DIFFERENCE: indicators(a - b),
        SUM_MOD: indicators((a + b) % 10),
        DIFFERENCE_MOD: indicators((a - b) % 10),
    }
    spans[TURNS] = np.concatenate([spans[SUM_MOD], spans[DIFFERENCE_MOD]], axis=1)
    for name, values in ((SUM, a + b), (DIFFERENCE, a - b)):
        spans |= {frequency_of(name, k): waves(values, k) for k in FREQUENCIES}
    rng = np.random.default_rng(0)  # one relabelling, the same for every model
    other = 100 * carry + 10 * rng.permutation(10)[a] + rng.permutation(10)[b]
    spans |= {name + RELABELLED: spans[name][other] for name in RELABELLED_FAMILIES}
    apart = {
        name: np.concatenate([basis * (carry == c)[:, None] for c in (0, 1)], axis=1) for name, basis in spans.items()
    }
    return {PAIR: indicators(cell % 100), **apart}


@dataclass(frozen=True, eq=False)
class Cells:
    """Problems of one operator, sign and place by their cell, in two halves: each is scored by what the other fits."""

    cell: Int[Tensor, " problem"]

    @property
    def half(self) -> int:
        """How many problems the first half holds."""
        return len(self.cell) // 2

    @cached_property
    def halves(self) -> tuple["Half", "Half"]:
        """The problems before and after the middle."""
        return Half(self.cell[: self.half]), Half(self.cell[self.half :])


@dataclass(frozen=True, eq=False)
class Half:
    """The cells of one half, and what depends on them alone."""

    cell: Int[Tensor, " problem"]

    @cached_property
    def block(self) -> Int[Tensor, " problem"]:
        """The block of each problem."""
        return torch.arange(len(self.cell)) * BLOCKS // len(self.cell)

    @cached_property
    def counts(self) -> Float[Tensor, "block cell"]:
        """How many problems of each block are in each cell."""
        counts = torch.bincount(self.block * CELLS + self.cell, minlength=BLOCKS * CELLS)
        return counts.double().unflatten(0, (BLOCKS, CELLS))

    @cached_property
    def fits(self) -> list[Float[Tensor, "value cell"]]:
        """For each family, from the cells' means to its least-squares coefficients over the half's problems."""
        counts = self.counts.sum(dim=0).numpy()
        weighted = [basis.T * counts for basis in bases().values()]
        grams = [part @ basis for part, basis in zip(weighted, bases().values(), strict=True)]
        fits = [np.linalg.pinv(gram, 1e-9, hermitian=True) @ part for gram, part in zip(grams, weighted, strict=True)]
        return [torch.from_numpy(fit) for fit in fits]


@dataclass(frozen=True, eq=False)
class Shares:
    """Of each family and component, the share of variance it holds, with a 95% interval over problems."""

    share: Float[Tensor, "family component"]
    low: Float[Tensor, "family component"]
    high: Float[Tensor, "family component"]
    variance: Float[Tensor, " component"]


def shares(
    values: Float[Tensor, "problem column"],
    columns: list[slice],
    cells: Cells,
) -> Shares:
    """The share of each component's variance over the scoring problems that lies in each family.

    A component is a range of columns whose variances add. A family's function f is fitted on one half of the problems
    and scored on the other, each way, by `sum f v / sum v^2`, v measured from its half's mean. In expectation this is
    the share in the family itself: unlike `1 - error / variance` it loses nothing to noise in f, of which a lookup with
    its 200 free values has most, so families of different size compare; what is not there has 0 up to sampling. The
    interval is Student's over 20 blocks of problems, each one's share of the error linearised: `f v` as it scores,
    `f (v - f)` as it moves the other half's fit, `share v^2` as it changes the variance (the ratio of means of Cochran,
    Sampling Techniques, 1977, section 2.11; the middle term is ours). A component that never varies has share 0.
    """
    parts = [part.double() - part.double().mean(dim=0) for part in (values[: cells.half], values[cells.half :])]
    sums = [
        _sums(part, half.block * CELLS + half.cell, BLOCKS * CELLS)
        for part, half in zip(parts, cells.halves, strict=True)
    ]
    sums = [part.unflatten(0, (BLOCKS, CELLS)) for part in sums]  # [block, cell, column]
    means = [
        part.sum(dim=0) / half.counts.sum(dim=0).clamp(min=1)[:, None]
        for part, half in zip(sums, cells.halves, strict=True)
    ]
    held, squared = [], []
    for number, basis in enumerate(bases().values()):
        both = [
            torch.from_numpy(basis) @ (half.fits[number] @ mean) for half, mean in zip(cells.halves, means, strict=True)
        ]
        scored = [
            _scores(function, half.counts, part)
            for function, half, part in zip(reversed(both), cells.halves, sums, strict=True)
        ]
        held.append(torch.cat([f_v for f_v, _ in scored]))
        squared.append(torch.cat([f_f for _, f_f in scored]))
    spread = torch.cat(
        [_sums(part.square(), half.block, BLOCKS) for part, half in zip(parts, cells.halves, strict=True)]
    )
    held, squared, spread = (_over(columns, part) for part in (torch.stack(held), torch.stack(squared), spread))
    return _shares(held, squared, spread, len(values))


def _scores(
    function: Float[Tensor, "cell column"],
    counts: Float[Tensor, "block cell"],
    sums: Float[Tensor, "block cell column"],
) -> tuple[Float[Tensor, "block column"], Float[Tensor, "block column"]]:
    """Sums of `f v` and `f^2` over the problems of each block, f measured from its mean over all of them."""
    function = function - counts.sum(dim=0) @ function / counts.sum()
    return torch.einsum("cm,bcm->bm", function, sums), counts @ function.square()


def _shares(
    held: Float[Tensor, "family block component"],
    squared: Float[Tensor, "family block component"],
    spread: Float[Tensor, "block component"],
    n: int,
) -> Shares:
    total = spread.sum(dim=0)
    alive = total > ALIVE * n
    share = torch.where(alive, held.sum(dim=1) / total, 0.0)
    errors = 2 * held - squared - share[:, None] * spread
    error = (errors - errors.mean(dim=1, keepdim=True)).square().sum(dim=1).sqrt() / total
    blocks = len(spread)
    half = student_quantile(blocks - 1) * math.sqrt(blocks / (blocks - 1)) * torch.where(alive, error, 0.0)
    return Shares(share, share - half, share + half, total / n)


def _sums(
    values: Float[Tensor, "problem column"], place: Int[Tensor, " problem"], places: int
) -> Float[Tensor, "place column"]:
    return torch.zeros(places, values.shape[1], dtype=torch.float64).index_add_(0, place, values)


def _over(columns: list[slice], values: Float[Tensor, "*many column"]) -> Float[Tensor, "*many component"]:
    """Sums over each component's columns."""
    ends = torch.nn.functional.pad(values.cumsum(dim=-1), (1, 0))
    starts, stops = ([getattr(part, end) for part in columns] for end in ("start", "stop"))
    return ends[..., stops] - ends[..., starts]
