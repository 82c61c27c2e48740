"""Tables of `errors`: wrong problems by category, what the first wrong digit is, errors on trained problems."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import UInt32

from analyses.learned import _errors_patterns as patterns
from analyses.learned._errors_patterns import GROUPS
from analyses.learned._errors_read import OPERATORS, Asked, Wrong
from analyses.learned._wrong_digits import KINDS
from workbench.exhaustive.tally import PLACES
from workbench.recipe import TRAIN_EXAMPLES, RunConfig
from workbench.splits import draw
from workbench.statistics import wilson
from workbench.structure import CLASSES, categories
from workbench.task import PAIR_COUNT, parse_all

_PAIRS = {"+": ("00", "45", "55"), "-": ("10", "00", "11", "01")}  # one digit pair of each kind of a pattern


def of_patterns(grouping: str) -> np.ndarray:
    """The category of every pattern under a grouping of `workbench.structure`."""
    texts = []
    for operator, kinds in _PAIRS.items():
        for at in np.ndindex(*(len(kinds),) * 4):
            a, b = ("".join(kinds[kind][side] for kind in at) for side in (0, 1))
            texts.append(f"{a}{operator}{b}")
    return categories(parse_all(texts), grouping)


def interval(asked: Asked, wrong: int, n: int) -> dict[str, Any]:
    """Error rate, with a 95% Wilson interval where problems are a sample."""
    low, high = (np.nan, np.nan) if asked.index is None or not n else wilson(wrong, n)
    return {"n": n, "wrong": wrong, "rate": wrong / n if n else np.nan, "low": low, "high": high}


def _of(asked: Asked, model: Wrong) -> dict[str, Any]:
    return {"asked": asked.words, "shape": model.shape, "checkpoint": model.name}


def class_rows(asked: Asked) -> Iterator[dict[str, Any]]:
    """Wrong problems of every model by class; and that class's share of its errors and of the problems."""
    of = of_patterns("class")
    n = {name: int(asked.sizes[of == name].sum()) for name in CLASSES}
    for model in asked.models:
        counts = np.bincount(model.patterns, minlength=patterns.PATTERNS)
        wrong = {name: int(counts[of == name].sum()) for name in CLASSES if n[name]}
        for name, value in wrong.items():
            row = _of(asked, model) | {"class": name} | interval(asked, value, n[name])
            row["share_of_errors"] = value / max(len(model.index), 1)
            yield row | {"share_of_problems": n[name] / sum(n.values())}


def kind_rows(asked: Asked) -> Iterator[dict[str, Any]]:
    """Of every model and group of problems, wrong digits and shares of their kinds, found and by chance.

    `first` counts the first wrong digit of each problem, by place too; `every` all of them, where they are known.
    """
    for model in asked.models:
        wrong = model.said != model.exact.digits
        first = np.arange(5) == model.place[:, None]
        of_group = patterns.groups(model.problems)
        for digits in ("first", "every") if model.every else ("first",):
            for group, place in product(range(len(GROUPS)), ("all", *PLACES)):
                chosen = (first if digits == "first" else wrong) & (of_group == group)[:, None]
                if place != "all":
                    chosen &= np.arange(5) == PLACES.index(place)
                if n := int(chosen.sum()):
                    found, chance = model.exact.count(model.said, chosen)
                    row = _of(asked, model) | {"group": GROUPS[group], "digits": digits, "place": place, "wrong": n}
                    row |= dict(zip(KINDS, (found / n).tolist(), strict=True))
                    yield row | {f"{kind}_by_chance": c / n for kind, c in zip(KINDS, chance.tolist(), strict=True)}


def trained_on(config: RunConfig) -> UInt32[np.ndarray, " problem"]:
    """Domain indices of the problems that a run was trained on, in order."""
    examples = min(config.recipe.steps * config.recipe.batch_size, TRAIN_EXAMPLES)
    return np.sort(draw(config.data_seed, examples, config.problems))


def trained_rows(asked: Asked) -> Iterator[dict[str, Any]]:
    """Error rates of every model by operator, on the problems it was trained on and on all others."""
    seen: dict[tuple[Any, ...], np.ndarray] = {}
    for model in asked.models:
        config = model.checkpoint.config
        key = (config.data_seed, config.recipe.steps, config.recipe.batch_size)
        if key not in seen:
            seen[key] = trained_on(config)
        trained = seen[key]
        in_all = trained if asked.index is None else asked.index[_within(asked.index, trained)]
        in_wrong = model.index[_within(model.index, trained)]
        for operator in OPERATORS:
            n, wrong = asked.n(operator), len(model.index[model.of(operator)])
            n_in, wrong_in = (int(_minus(of, operator).sum()) for of in (in_all, in_wrong))
            if not (n_in and wrong):
                continue
            row = _of(asked, model) | {"operator": operator, "n": n, "wrong": wrong}
            row |= {"trained_n": n_in, "trained_wrong": wrong_in, "trained_rate": wrong_in / n_in}
            row |= {"others_rate": (wrong - wrong_in) / (n - n_in)}
            low, high = wilson(wrong_in, wrong)
            yield row | {"share_trained": wrong_in / wrong, "low": low, "high": high, "expected": n_in / n}


def _within(index: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Which of `index` are in `ordered`."""
    at = np.minimum(np.searchsorted(ordered, index), len(ordered) - 1)
    return ordered[at] == index


def _minus(index: np.ndarray, operator: str) -> np.ndarray:
    """Which domain indices are of an operator: the first half is additions."""
    return (index >= PAIR_COUNT) == (operator == "subtraction")
