"""The problems `ablation` asks, as many of every class, and what counts as failing."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from analyses.learned._wrong_digits import KINDS, RightDigits
from workbench.exhaustive.tally import PLACES
from workbench.recipe import Variant
from workbench.splits import draw
from workbench.statistics import wilson
from workbench.structure import CLASSES, categories, structure
from workbench.task import Problems

FAILS = 0.01  # a class fails when the 95% lower bound of its failing share is above: beyond one or two chance failures
LETTERS = {"all": "SMN", "sign-hidden": "SMN", "ordered": "SM", "addition": "S", "subtraction": "MN"}
FIRST_DRAW = 500_000
NEEDS = (
    "addition, no carry", "addition, carries", "answer >= 0, no borrow", "answer >= 0, borrows",
    "negative, no borrow", "negative, borrows",
)  # fmt: skip


def classes_in(variant: Variant) -> list[str]:
    """The peer classes that have problems in a variant."""
    return [name for name in CLASSES if name[0] in LETTERS[variant]]


def balanced(per_class: int, seed: int, variant: Variant) -> Problems:
    """So many problems of every class of the variant, class by class: those of `sample` for it, from one draw."""
    names, count = classes_in(variant), FIRST_DRAW
    while True:
        problems = Problems.from_index(draw(seed, count, variant))
        found = categories(problems, "class")
        places = [np.flatnonzero(found == name)[:per_class] for name in names]
        if min(map(len, places)) == per_class:
            return problems[np.concatenate(places)]
        count *= 2


def needs(problems: Problems) -> Int64[np.ndarray, " problem"]:
    """Place in NEEDS of each problem: its operation, and whether any digit carries or borrows (larger less smaller)."""
    operation = problems.subtract.astype(np.int64) + problems.negative
    return 2 * operation + structure(problems).moves.any(axis=1)


def share(fails: int, n: int) -> dict[str, float]:
    """Failing share of n with its 95% Wilson interval; NaN of none."""
    low, high = wilson(fails, n) if n else (np.nan, np.nan)
    return {"share": fails / n if n else np.nan, "low": low, "high": high}


@dataclass(frozen=True, eq=False)
class Asked:
    """Problems, and what a decoder says of them with nothing replaced."""

    problems: Problems
    variant: Variant
    clean: UInt8[np.ndarray, "problem 5"]

    @cached_property
    def exact(self) -> RightDigits:
        """Their right digits."""
        return RightDigits(self.problems)

    @cached_property
    def right(self) -> Bool[np.ndarray, "problem 5"]:
        """Which digits are right with nothing replaced."""
        return self.clean == self.exact.digits

    @cached_property
    def of_class(self) -> Int64[np.ndarray, " problem"]:
        """Place of each problem's class among those of the variant."""
        names = classes_in(self.variant)
        return np.array([names.index(name) for name in categories(self.problems, "class")])

    @cached_property
    def of_need(self) -> Int64[np.ndarray, " problem"]:
        """Place of each problem in NEEDS."""
        return needs(self.problems)

    @cached_property
    def right_by_class(self) -> Int64[np.ndarray, " class"]:
        """How many problems of each class are answered right."""
        return np.bincount(self.of_class[self.right.all(axis=1)], minlength=len(classes_in(self.variant)))

    def clean_rows(self) -> list[dict[str, Any]]:
        """Problems of each class: asked, and answered right with nothing replaced."""
        names = classes_in(self.variant)
        asked = np.bincount(self.of_class, minlength=len(names)).tolist()
        rows = zip(names, asked, self.right_by_class.tolist(), strict=True)
        return [{"class": name, "asked": n, "right": right} for name, n, right in rows]

    def outcome(self, said: UInt8[np.ndarray, "problem 5"]) -> dict[str, Any]:
        """What fails of what was right, when the decoder says `said`: answers by class, digits by place and kind.

        `first` names the simplest class that fails under each letter.
        """
        lost = self.right & (said != self.exact.digits)
        fails = lost.any(axis=1) & self.right.all(axis=1)
        names, n = classes_in(self.variant), self.right_by_class
        by_class = np.bincount(self.of_class[fails], minlength=len(names)).tolist()
        shares = {name: share(*pair) for name, *pair in zip(names, by_class, n.tolist(), strict=True)}
        failing = [name for name in names if shares[name]["low"] > FAILS]
        first = [next((name for name in failing if name[0] == letter), "") for letter in LETTERS[self.variant]]
        row: dict[str, Any] = {"n": int(n.sum()), "fails": int(fails.sum())}
        row |= share(row["fails"], row["n"]) | {"first": " ".join(filter(None, first))}
        row |= {name: shares[name]["share"] if name in shares else np.nan for name in CLASSES}
        digits = np.maximum(self.right.sum(axis=0), 1)
        row |= dict(zip(PLACES, (lost.sum(axis=0) / digits).tolist(), strict=True))
        kinds, by_chance = self.exact.count(said, lost)
        total = max(int(kinds.sum()), 1)
        row |= {"wrong_digits": int(kinds.sum())} | dict(zip(KINDS, (kinds / total).tolist(), strict=True))
        return row | {"carry_by_chance": by_chance[0] / total}

    def by_need(self, said: UInt8[np.ndarray, "problem 5"]) -> list[dict[str, Any]]:
        """Failing share of what was right, of each of NEEDS that has problems."""
        right = self.right.all(axis=1)
        fails = right & (said != self.exact.digits).any(axis=1)
        n, failed = (np.bincount(self.of_need[chosen], minlength=len(NEEDS)).tolist() for chosen in (right, fails))
        there = sorted(set(self.of_need.tolist()))
        return [{"needs": NEEDS[at], "n": n[at], "fails": failed[at], **share(failed[at], n[at])} for at in there]
