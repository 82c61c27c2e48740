"""Whether two models err on the same problems, and in the same way, beyond chance.

`both` problems are wrong in both; by chance `E = sum_s n_s p_s q_s` would be, where errors fall at random within each
stratum s of n_s problems at the models' own rates p_s and q_s. Strata are all problems of an operator, or its patterns.
Cohen's kappa (1960) is `2 (both - E) / (w + v - 2 E)` for w and v wrong ones. Its highest value, for models that err
differently often, is that of the smaller set inside the larger, so `shared`, kappa over its highest value, is
`(both - E) / (min(w, v) - E)`: 0 is chance, 1 as much as the numbers of errors allow.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from analyses.learned._errors_patterns import PATTERNS, of_operator
from analyses.learned._errors_read import OPERATORS, Asked, Wrong

FEW = 100  # wrong problems of a model of one operator below which nothing is said or shown of what it shares
REPLICATES = 1_000  # bootstrap resamples of a sample's problems
RELATIVE = 11  # what a wrong digit can be relative to the right one: 1 to 9 above it modulo ten, 10: no digit

Strata = Float[np.ndarray, "replicate stratum"]
Numbers = Float[np.ndarray, " replicate"]


def by_chance(sizes: Strata, first: Strata, second: Strata) -> Numbers:
    """Problems wrong in both, if errors fall at random within strata of these sizes."""
    return (first * second / np.maximum(sizes, 1)).sum(axis=-1)


def share(both: Numbers, first: Numbers, second: Numbers, chance: Numbers) -> Numbers:
    """Kappa over its highest value; NaN where chance alone already shares all that can be."""
    room = np.minimum(first, second) - chance
    return np.where(room > 1e-9, (both - chance) / np.where(room > 1e-9, room, 1), np.nan)


def pairs(asked: Asked, seed: int) -> Iterator[dict[str, Any]]:
    """One row for every two models and operator in which both err; intervals where problems are a sample."""
    for one, other in combinations(asked.models, 2):
        _, at_one, at_other = np.intersect1d(one.index, other.index, assume_unique=True, return_indices=True)
        shared = np.bincount(one.patterns[at_one], minlength=PATTERNS)
        wrong = [np.bincount(model.patterns, minlength=PATTERNS) for model in (one, other)]
        for operator in OPERATORS:
            part = of_operator(operator)
            counts = np.stack([asked.sizes[part], wrong[0][part], wrong[1][part], shared[part]])
            if not counts.sum(axis=1)[:3].all():
                continue
            row: dict[str, Any] = {"asked": asked.words, "shape": one.shape, "other_shape": other.shape}
            row |= {"first": one.name, "second": other.name, "operator": operator}
            row |= agreement(counts, None if asked.index is None else seed)
            here = np.isin(at_one, np.arange(len(one.index))[one.of(operator)])
            yield row | same_answers(one, other, at_one[here], at_other[here])


def agreement(counts: Int64[np.ndarray, "4 pattern"], seed: int | None) -> dict[str, Any]:
    """Numbers of one pair of models from problems, wrong in either, wrong in both, by pattern."""
    n, first, second, both = (int(total) for total in counts.sum(axis=1))
    values = _shares(counts[None].astype(float))
    row: dict[str, Any] = {"n": n, "first_wrong": first, "second_wrong": second, "both": both}
    chance, within = first * second / n, by_chance(*counts[:3, None].astype(float)).item()
    row |= {"both_by_chance": chance, "both_by_pattern": within}
    row |= {"kappa": 2 * (both - chance) / max(first + second - 2 * chance, 1e-9)}
    row |= {name: value.item() for name, value in values.items()}
    low = high = dict.fromkeys(values, np.nan)
    if seed is not None:
        drawn = _shares(_resampled(counts, seed))
        known = {name: of[~np.isnan(of)] for name, of in drawn.items()}
        low, high = (
            {name: float(np.quantile(of, q)) if len(of) else np.nan for name, of in known.items()}
            for q in (0.025, 0.975)
        )
    for name in values:
        row |= {f"{name}_low": low[name], f"{name}_high": high[name]}
    return row


def _shares(counts: Float[np.ndarray, "replicate 4 pattern"]) -> dict[str, Numbers]:
    """`shared` beyond chance over the whole operator, and `shared_within` patterns."""
    sizes, first, second, both = np.moveaxis(counts, 1, 0)
    n, w, v, together = (of.sum(axis=-1) for of in (sizes, first, second, both))
    return {
        "shared": share(together, w, v, w * v / n),
        "shared_within": share(together, w, v, by_chance(sizes, first, second)),
    }


def _resampled(counts: Int64[np.ndarray, "4 pattern"], seed: int) -> Float[np.ndarray, "replicate 4 pattern"]:
    """The same counts of bootstrap resamples of the problems (Efron 1979)."""
    sizes, first, second, both = counts
    outcomes = np.stack([sizes - first - second + both, first - both, second - both, both])
    n = int(sizes.sum())
    drawn = np.random.default_rng(seed).multinomial(n, outcomes.ravel() / n, size=REPLICATES)
    neither, only_first, only_second, twice = np.moveaxis(drawn.reshape(REPLICATES, 4, -1), 1, 0)
    wrong = only_first + twice, only_second + twice
    return np.stack([neither + only_first + only_second + twice, *wrong, twice], axis=1).astype(float)


def _relative(model: Wrong) -> Int64[np.ndarray, " wrong"]:
    """Place of the first wrong digit and what stands there relative to the right one, in one number."""
    at = model.place[:, None]
    said, right = (np.take_along_axis(of, at, axis=1)[:, 0].astype(np.int64) for of in (model.said, model.exact.digits))
    return model.place * RELATIVE + np.where(said > 9, RELATIVE - 1, (said - right) % 10)


def same_answers(
    one: Wrong, other: Wrong, at_one: Int64[np.ndarray, " common"], at_other: Int64[np.ndarray, " common"]
) -> dict[str, Any]:
    """Of common problems: how many have the same first wrong digit, and how many would by chance.

    By chance each model draws place and digit (relative to the right one) anew as it errs in problems of the pattern.
    """
    relative = [_relative(model) for model in (one, other)]
    same = relative[0][at_one] == relative[1][at_other]
    kinds = 5 * RELATIVE
    shares = []
    for model, first in zip((one, other), relative, strict=True):
        table = np.bincount(model.patterns * kinds + first, minlength=PATTERNS * kinds)
        table = table.reshape(PATTERNS, kinds).astype(float)
        shares.append(table / np.maximum(table.sum(axis=1, keepdims=True), 1))
    alike = (shares[0] * shares[1]).sum(axis=1)
    common = len(at_one)
    chance = float(alike[one.patterns[at_one]].sum())
    return {"same_digit": int(same.sum()), "same_digit_by_chance": chance, "common": common}


def times_rows(asked: Asked) -> Iterator[dict[str, Any]]:
    """How many problems are wrong in exactly k models of a shape, and of all asked, found and by chance."""
    shapes = list(dict.fromkeys(model.shape for model in asked.models))
    for shape in [*shapes, *(["all"] if len(shapes) > 1 else [])]:
        models = [model for model in asked.models if shape in (model.shape, "all")]
        words = f"{len(models)} models of {shape if shape != 'all' else ' and '.join(shapes)}"
        for operator in OPERATORS:
            if len(models) > 1 and asked.n(operator):
                key = {"asked": asked.words, "models": words, "operator": operator}
                yield from (key | row for row in times_wrong(asked, models, operator))


def times_wrong(asked: Asked, models: Sequence[Wrong], operator: str) -> list[dict[str, Any]]:
    """How many problems of an operator are wrong in exactly 0, 1, ... of the models, found and by chance."""
    part = of_operator(operator)
    index = np.concatenate([model.index[model.of(operator)] for model in models])
    observed = np.bincount(np.unique(index, return_counts=True)[1], minlength=len(models) + 1)
    sizes = asked.sizes[part].astype(float)
    wrong = np.stack([np.bincount(model.patterns, minlength=PATTERNS)[part] for model in models]).astype(float)
    observed[0] = sizes.sum() - observed.sum()
    chances = zip(
        observed.tolist(), _exactly(sizes.sum(keepdims=True), wrong.sum(axis=1, keepdims=True)), _exactly(sizes, wrong),
        strict=True,
    )  # fmt: skip
    return [
        {"times": k, "n": int(sizes.sum()), "observed": found, "by_chance": chance, "by_pattern": within}
        for k, (found, chance, within) in enumerate(chances)
    ]


def _exactly(sizes: Float[np.ndarray, " stratum"], wrong: Float[np.ndarray, "model stratum"]) -> list[float]:
    """Expected problems wrong in exactly 0, 1, ... models that err independently within strata."""
    rates = wrong / np.maximum(sizes, 1)
    chances = np.zeros((len(wrong) + 1, len(sizes)))
    chances[0] = 1
    for rate in rates:
        chances[1:] = chances[1:] * (1 - rate) + chances[:-1] * rate
        chances[0] *= 1 - rate
    return (chances @ sizes).tolist()
