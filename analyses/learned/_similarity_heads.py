"""Whether heads of two models do the same jobs: matched on one half of the problems, judged on the other.

A head's *job* where an answer digit is predicted is what it looks at and what it writes there. Two heads do the *same
job* there if both read one or two positions (the rule of `attention`), their mean patterns overlap by SAME_LOOK or
more, and the CKA of what they write is SAME_WRITE or more. A head has a *counterpart* if the head it is matched with
does the same job in MOST or more of the places where either of the two has one. These numbers were written before any
two models were compared.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64

from analyses.learned._attention_heads import read_positions
from analyses.learned._conditions import PREDICTED, shape_of
from analyses.learned._similarity_cka import cka, jackknife, known_mean, varies
from analyses.learned._similarity_streams import BATCHES, MODELS, Heads
from analyses.learned._similarity_tables import RELATIONS, relation, same_start
from workbench.checkpoint import Checkpoint
from workbench.task import POSITION_LABELS

SAME_LOOK = 0.75  # overlap of mean patterns: 1 less half the sum of absolute differences
SAME_WRITE = 0.5  # CKA of what two heads write
MOST = 0.5  # share of its places from which a head's counterpart does the same
SCORED = ("look", "write", "score", "score_at_random")
MATCHING, SCORING = range(0, BATCHES, 2), range(1, BATCHES, 2)

Scores = Float[np.ndarray, "head other"]


def assignment(scores: Scores) -> Int64[np.ndarray, " head"]:
    """The other head of each head, one for one, for the highest sum of scores (Kuhn 1955; Munkres 1957).

    Heads join one by one along the cheapest augmenting path under potentials u, v, in O(n^3). Column 0 is none.
    """
    n = len(scores)
    cost = np.pad(-scores, ((1, 0), (1, 0)))
    u, v, match = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1, np.int64)
    for row in range(1, n + 1):
        match[0], column = row, 0
        best, before, used = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64), np.zeros(n + 1, bool)
        while match[column]:
            used[column] = True
            reduced = cost[match[column]] - u[match[column]] - v
            shorter = ~used & (reduced < best)
            best[shorter], before[shorter] = reduced[shorter], column
            following = int(np.where(used, np.inf, best)[1:].argmin()) + 1
            delta = best[following]
            u[match[used]] += delta
            v[used] -= delta
            best[~used] -= delta
            column = following
        while column:
            match[column] = match[before[column]]
            column = before[column]
    found = np.empty(n, np.int64)
    found[match[1:] - 1] = np.arange(n)
    return found


@dataclass(frozen=True, eq=False)
class Compared:
    """Heads of one layer of two models on some batches, by group of problems and answer position.

    `write` is 0 where one of two heads writes a constant, NaN where both do; `particular` heads read one or two
    positions.
    """

    look: Float[np.ndarray, "group position head other"]
    write: Float[np.ndarray, "group position head other"]
    first: Bool[np.ndarray, "group position head"]
    second: Bool[np.ndarray, "group position other"]
    idle: Bool[np.ndarray, " head"]

    @property
    def cells(self) -> Float[np.ndarray, "group position head other"]:
        """Mean of look and write; of the look alone where neither writes anything that varies."""
        return np.where(np.isnan(self.write), self.look, (self.look + np.nan_to_num(self.write)) / 2)

    @property
    def scores(self) -> Scores:
        """What is matched for: the mean of all cells."""
        return self.cells.mean(axis=(0, 1))

    @property
    def either(self) -> Bool[np.ndarray, "group position head other"]:
        """Where one of two heads has a job."""
        return self.first[..., :, None] | self.second[..., None, :]

    @property
    def same(self) -> Bool[np.ndarray, "group position head other"]:
        """Where two heads do the same job."""
        both = self.first[..., :, None] & self.second[..., None, :]
        return both & (self.look >= SAME_LOOK) & (np.nan_to_num(self.write) >= SAME_WRITE)

    @property
    def counterparts(self) -> Bool[np.ndarray, "head other"]:
        """Which two heads are counterparts."""
        places = self.either.sum(axis=(0, 1))
        return (places > 0) & (self.same.sum(axis=(0, 1)) >= MOST * places)


def particular(pattern: Float[np.ndarray, "*at key"]) -> Bool[np.ndarray, "*at"]:
    """Where a mean pattern reads one or two positions."""
    flat = torch.from_numpy(pattern.reshape(-1, pattern.shape[-1]))
    return np.array([bool(read_positions(one)) for one in flat], bool).reshape(pattern.shape[:-1])


def compare(heads: Heads, first: Sequence[int], second: Sequence[int], on: Sequence[int]) -> Compared:
    """Two lists of heads on the given batches."""
    one, other = (heads.pattern[list(on)][..., list(which), :].mean(axis=0) for which in (first, second))
    look = 1 - np.abs(one[..., :, None, :] - other[..., None, :, :]).sum(axis=-1) / 2
    values, square = heads.hsic[list(on)].mean(axis=0), heads.square[list(on)].mean(axis=0)
    own = values.diagonal(axis1=-2, axis2=-1)
    cross = values[..., list(first), :][..., list(second)]
    parts = [(own[..., list(which)], square[..., list(which)]) for which in (first, second)]
    (own_one, square_one), (own_other, square_other) = parts
    write = cka(cross, own_one, own_other, square_one, square_other)
    constant, others = ~varies(own_one, square_one), ~varies(own_other, square_other)
    write[constant[..., :, None] | others[..., None, :]] = 0
    write[constant[..., :, None] & others[..., None, :]] = np.nan
    return Compared(look, write, particular(one), particular(other), np.asarray(constant.all(axis=(0, 1))))


def _chosen(heads: Heads, model: str, kind: str, layer: int) -> list[int]:
    return [i for i, one in enumerate(heads.heads) if (one.model, one.kind, one.layer) == (model, kind, layer)]


def pairs(heads: Heads, checkpoints: Sequence[Checkpoint]) -> Iterator[tuple[dict[str, Any], list[int], list[int]]]:
    """Every two models of one depth and widths, trained and untrained, layer by layer: a key, and the heads of each."""
    for one, other in combinations(checkpoints, 2):
        if (differs := relation(one, other)) not in RELATIONS[:2]:
            continue
        for kind in MODELS:
            for layer in range(one.config.architecture.n_layers):
                key = {"relation": differs, "shape": shape_of(one), "other_shape": shape_of(other), "layer": layer}
                key |= {"first": one.name, "second": other.name, "model": kind, "same_start": same_start(one, other)}
                first, second = (_chosen(heads, model.name, kind, layer) for model in (one, other))
                yield key, first, second


def head_rows(heads: Heads, checkpoints: Sequence[Checkpoint]) -> Iterator[dict[str, Any]]:
    """One row a pair of models and head of the first: its match, how alike the two are, and the mean over all heads."""
    for key, first, second in pairs(heads, checkpoints):
        match = assignment(compare(heads, first, second, MATCHING).scores)
        found = compare(heads, first, second, SCORING)
        write, places = found.write.reshape(-1, len(first), len(second)), found.either.sum(axis=(0, 1))
        for i, j in enumerate(match.tolist()):
            row = {"head": i, "match": j, "look": found.look[..., i, j].mean(), "write": known_mean(write[:, i, j], 0)}
            row |= {"score": found.scores[i, j], "score_at_random": found.scores[i].mean()}
            row = {name: float(value) if name in SCORED else value for name, value in row.items()}
            row |= {"places": int(places[i, j]), "same": int(found.same[..., i, j].sum()), "idle": bool(found.idle[i])}
            row |= {"counterpart": bool(found.counterparts[i, j])}
            yield key | row | {"counterpart_at_random": float(found.counterparts[i].mean())}


def layer_rows(heads: Heads, checkpoints: Sequence[Checkpoint]) -> Iterator[dict[str, Any]]:
    """One row a pair of models and layer: heads with a counterpart, and jobs that both have, against random matches.

    `jobs` is `2 same / (jobs of one + jobs of the other)`, jobs counted by head, answer digit and group: with heads
    matched as wholes, with each answer digit's matched apart, and at random.
    """
    for key, first, second in pairs(heads, checkpoints):
        matching, found = (compare(heads, first, second, on) for on in (MATCHING, SCORING))
        match, rows = assignment(matching.scores), np.arange(len(first))
        busy = ~found.idle
        row: dict[str, Any] = {"heads": int(busy.sum())}
        row["counterparts"] = int(found.counterparts[rows, match][busy].sum())
        row["counterparts_at_random"] = float(found.counterparts[busy].mean(axis=1).sum())
        jobs = max(int(found.first.sum() + found.second.sum()), 1)
        apart = 0
        for position in range(found.same.shape[1]):
            of_digit = assignment(matching.cells[:, position].mean(axis=0))
            apart += int(found.same[:, position, rows, of_digit].sum())
        row |= {"jobs_of_both": int(found.first.sum() + found.second.sum())}
        row |= {"jobs": 2 * int(found.same[..., rows, match].sum()) / jobs, "jobs_by_digit": 2 * apart / jobs}
        row["jobs_at_random"] = 2 * float(found.same.mean(axis=-1).sum()) / jobs
        without = [[one for one in SCORING if one != left] for left in SCORING]
        again = [compare(heads, first, second, on).scores[rows, match].mean() for on in (SCORING, *without)]
        row |= dict(zip(("score", "score_low", "score_high"), jackknife(again), strict=True))
        yield key | row | {"score_at_random": float(found.scores.mean())}


def job_rows(heads: Heads, checkpoints: Sequence[Checkpoint]) -> Iterator[dict[str, Any]]:
    """Per shape, layer, group and answer digit: which positions a head reads there, in how many of the models."""
    pattern = heads.pattern.mean(axis=0)
    met: dict[tuple[str, int, str, str, str], dict[str, set[str]]] = {}
    shapes = {one.name: shape_of(one) for one in checkpoints}
    for number, head in enumerate(heads.heads):
        for (g, group), (p, answer) in product(enumerate(heads.groups), enumerate(PREDICTED)):
            if read := read_positions(torch.from_numpy(pattern[g, p, number])):
                reads = " ".join(POSITION_LABELS[key] for key in read)
                key = (shapes[head.model], head.layer, group, answer, reads)
                met.setdefault(key, {kind: set() for kind in MODELS})[head.kind].add(head.model)
    total = Counter(shapes.values())
    order = list(total)
    for key, by_kind in sorted(met.items(), key=lambda item: (order.index(item[0][0]), *item[0])):
        row = dict(zip(("shape", "layer", "group", "answer", "reads"), key, strict=True))
        yield row | {kind: len(by_kind[kind]) for kind in MODELS} | {"models": total[key[0]]}
