"""Whether every two models err on the same problems beyond chance; `errors` has the measures.

Models asked the same problems are compared as in `errors`. Where every wrong problem of one is listed (it errs rarely)
and of the other only a sample (it errs often), the other is asked up to so many listed problems, and for each a *twin*:
a random problem with the same pattern of digit pairs. How often it errs on the twins is chance within patterns.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from analyses.learned._conditions import shape_of
from analyses.learned._errors_agreement import REPLICATES, pairs
from analyses.learned._errors_findings import FEW
from analyses.learned._errors_read import Asked, ask, sampled
from analyses.learned._similarity_streams import OPERATORS
from analyses.learned._similarity_tables import relation
from workbench.checkpoint import Checkpoint
from workbench.statistics import wilson
from workbench.task import Problems, digits_of

LISTED = 1_000  # listed problems of a model and operator that another is asked, at most

_PAIRS = np.array([(a, b) for a in range(10) for b in range(10)])


def _kinds(a: np.ndarray, b: np.ndarray, *, subtract: bool) -> np.ndarray:
    """What a digit pair does by itself, as the patterns of `errors` have it."""
    if subtract:
        return np.where(a > b, 0, np.where(a < b, 3, np.where(a == 0, 1, 2)))
    return np.digitize(a + b, (9, 10))


def twins(problems: Problems, seed: int) -> Problems:
    """For each problem one drawn uniformly among those with the same pattern of digit pairs."""
    rng = np.random.default_rng(seed)
    a, b = (digits_of(of).astype(np.int64) for of in (problems.a, problems.b))
    drawn = np.zeros((2, *a.shape), np.int64)
    for subtract in (False, True):
        of_table = _kinds(_PAIRS[:, 0], _PAIRS[:, 1], subtract=subtract)
        here = (problems.subtract == subtract)[:, None] & np.ones(4, bool)
        for kind in np.unique(of_table):
            cells = here & (_kinds(a, b, subtract=subtract) == kind)
            drawn[:, cells] = rng.choice(_PAIRS[of_table == kind], size=int(cells.sum())).T
    values = (drawn @ 10 ** np.arange(3, -1, -1)).astype(np.uint16)
    return Problems(values[0], values[1], problems.subtract)


def error_rows(
    checkpoints: Sequence[Checkpoint], count: int, seed: int, counts: Path | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(table name, row): `errors` of two models asked the same problems, `twins` of one with a list and one without.

    `kappa_within` is Cohen's with chance within patterns; `enough` says that at least FEW errors of each were seen.
    """
    asked = ask(checkpoints, count, seed, counts)
    by_name = {one.name: one for one in checkpoints}

    def key(row: dict[str, Any]) -> dict[str, Any]:
        first, second = by_name[row["first"]], by_name[row["second"]]
        return {"relation": relation(first, second), "shape": shape_of(first), "other_shape": shape_of(second)}

    for row in (row for one in asked for row in pairs(one, seed)):
        within = row["both_by_pattern"]
        room = row["first_wrong"] + row["second_wrong"] - 2 * within
        row["kappa_within"] = 2 * (row["both"] - within) / room if room > 1e-9 else np.nan
        row["enough"] = bool(min(row["first_wrong"], row["second_wrong"]) >= FEW)
        yield "errors", row | key(row)
    for one, other in combinations(asked, 2):
        if one.variant == other.variant and one.index is None:
            for row in _twin_rows(one, other, seed):
                yield "twins", key(row) | row


def _twin_rows(listed: Asked, drawn: Asked, seed: int) -> Iterator[dict[str, Any]]:
    """How often models of a sample are wrong where one with a list is, on twins of these problems, and on any."""
    for one in listed.models:
        for operator in OPERATORS:
            index = one.index[one.of(operator)]
            if not len(index):
                continue
            index = np.sort(np.random.default_rng(seed).choice(index, min(LISTED, len(index)), replace=False))
            twin = twins(Problems.from_index(index), seed).index
            both = Problems.from_index(np.union1d(index, twin))
            for other in drawn.models:
                found = sampled(other.checkpoint, both).index
                row: dict[str, Any] = {"first": one.name, "second": other.name, "operator": operator, "n": len(index)}
                row |= excess(np.isin(index, found), np.isin(twin, found), seed)
                errs, asked = len(other.index[other.of(operator)]), drawn.n(operator)
                yield row | {"any": errs / asked, "any_n": asked, "enough": bool(min(len(index), errs) >= FEW)}


def excess(here: Bool[np.ndarray, " problem"], twin: Bool[np.ndarray, " problem"], seed: int) -> dict[str, float]:
    """Share wrong on listed problems with its Wilson interval, on their twins, and the difference with a bootstrap."""
    n = len(here)
    outcomes = np.bincount(2 * here + twin, minlength=4)
    drawn = np.random.default_rng(seed).multinomial(n, outcomes / n, size=REPLICATES)
    low, high = np.quantile((drawn[:, 2] - drawn[:, 1]) / n, (0.025, 0.975)).tolist()
    wrong_low, wrong_high = wilson(int(here.sum()), n)
    row = {"wrong": float(here.mean()), "wrong_low": wrong_low, "wrong_high": wrong_high}
    row |= {"twins": float(twin.mean()), "excess": float(here.mean() - twin.mean())}
    return row | {"excess_low": low, "excess_high": high}
