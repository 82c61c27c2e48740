"""How listed wrong answers are wrong: which digits, by how much, where, and what chance alone would give.

*One missed* is an answer off by a single power of ten in the direction of a carry or borrow left out (additions too
small, subtractions too large), *one too many* in the other; *several* is off by a sum of neighbouring powers of ten
(110, 1100, 1110, ...). By chance: each wrong digit of the answers that are numbers is any of the nine other digits,
equally often, at the same places; the expected counts are exact sums, not draws.

A *passing pair* hands on the carry or borrow that reaches it and makes none: two digits that sum to nine, in
subtractions two equal ones. The digit above k passing pairs in a row depends on the pair below all of them, whether or
not anything arrives from there, which the count of carries and the chain leave open. By chance, a pair passes in one of
ten problems, whatever the others do. (This grouping was added after the first model's count was seen.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int64, UInt8

from workbench.errors import BadInput
from workbench.exhaustive.result import Exhaustive
from workbench.exhaustive.tally import PLACES
from workbench.task import digits_of

if TYPE_CHECKING:
    import pandas as pd

NO_NUMBER = "has a non-digit"
OFF_BY = ("one missed", "one too many", "several missed", "several too many", "another number", NO_NUMBER)
PASSING = "passing pairs below the first wrong"  # a grouping whose categories are numbers of pairs
BEYOND = "wrong beyond the first"  # a grouping whose categories are numbers of digits
STEPS = ("each by one", "some by more", NO_NUMBER)
KINDS = {
    "model": "str", "shape": "str", "operator": "str", "grouping": "str", "category": "str", "wrong": "int64",
    "share": "float64", "wrong_by_chance": "float64",
}  # fmt: skip

_POWERS = 10 ** np.arange(4, -1, -1)  # of d4 to d0
_LENGTH = np.zeros(10**5, np.uint8)  # of the run of neighbouring powers of ten that sums to a number; 0: no such run
for _top in range(5):
    for _bottom in range(_top + 1):
        _LENGTH[sum(10**place for place in range(_bottom, _top + 1))] = _top - _bottom + 1
_RUNS = [int(total) for total in _LENGTH.nonzero()[0]]

Rows = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Answers:
    """Wrong answers to problems of one operator.

    |exact|; the five characters written, as codes less that of `0`; which digit pairs pass, thousands first.
    """

    size: Int64[np.ndarray, " answer"]
    written: UInt8[np.ndarray, "answer 5"]
    passes: Bool[np.ndarray, "answer 4"]
    subtract: bool

    @cached_property
    def digits(self) -> UInt8[np.ndarray, "answer 5"]:
        """The exact digits."""
        return np.stack([(self.size // power % 10).astype(np.uint8) for power in _POWERS.tolist()], axis=1)

    @cached_property
    def differs(self) -> Bool[np.ndarray, "answer 5"]:
        """Which characters are not the exact digit."""
        return self.written != self.digits

    @cached_property
    def number(self) -> Bool[np.ndarray, " answer"]:
        """Whether all five characters are digits."""
        return np.less_equal(self.written.max(axis=1), 9)

    @cached_property
    def first(self) -> Int64[np.ndarray, " answer"]:
        """Place among PLACES of the first wrong character."""
        return self.differs.argmax(axis=1)

    def passing(self) -> Int64[np.ndarray, " answer"]:
        """How many pairs in a row pass, right below the first wrong character; d4 has four pairs below it, d0 none."""
        below = np.arange(4) >= self.first[:, None]
        unbroken = np.logical_and.accumulate(self.passes | ~below, axis=1)
        return (unbroken & below).sum(axis=1)

    def off_by(self) -> Int64[np.ndarray, " answer"]:
        """Place in OFF_BY of each answer."""
        off = self.written.astype(np.int64) @ _POWERS - self.size
        length = _LENGTH[np.abs(np.where(self.number, off, 0))]
        missed = off > 0 if self.subtract else off < 0
        kind = np.where(length == 0, 4, 2 * (length > 1) + ~missed)
        return np.where(self.number, kind, 5)

    def steps(self) -> Int64[np.ndarray, " answer"]:
        """Place in STEPS: whether each wrong digit is one off, 9 and 0 being neighbours."""
        apart = (self.written.astype(np.int16) - self.digits) % 10
        each = (~self.differs | (apart == 1) | (apart == 9)).all(axis=1)
        return np.where(self.number, np.where(each, 0, 1), 2)


def answers_of(listed: "pd.DataFrame", subtract: bool) -> Answers:
    """Those of one operator in a list of wrong problems, as `Exhaustive.wrong_problems` reads it."""
    chosen = listed["operator"].to_numpy() == ("-" if subtract else "+")
    letters = np.frombuffer("".join(listed["answer"]).encode(), np.uint8).reshape(-1, 5)[chosen]
    a, b = (digits_of(listed[name].to_numpy()[chosen]) for name in ("a", "b"))
    size = np.abs(listed["exact"].to_numpy(np.int64)[chosen])
    return Answers(size, letters - np.uint8(ord("0")), a == b if subtract else a + b == 9, subtract)


def off_by_chance(answers: Answers) -> Float[np.ndarray, "6"]:
    """How many answers of each kind of OFF_BY are expected by chance."""
    patterns, places = _patterns(answers)
    keys, counts = np.unique(patterns * 10**5 + answers.size[answers.number], return_counts=True)
    pattern, size = np.divmod(keys, 10**5)
    likely = counts * 9.0 ** -places[pattern]
    expected = np.zeros(6)
    for run in _RUNS:
        for sign in (-1, 1):
            other = size + sign * run
            fits = (other >= 0) & (other < 10**5)
            fits &= _pattern((size[:, None] // _POWERS % 10) != (other[:, None] // _POWERS % 10)) == pattern
            missed = (sign > 0) == answers.subtract
            expected[2 * (_LENGTH[run] > 1) + (not missed)] += likely[fits].sum()
    expected[4] = counts.sum() - expected.sum()
    expected[5] = len(answers.size) - counts.sum()
    return expected


def steps_by_chance(answers: Answers) -> Float[np.ndarray, "3"]:
    """How many answers of each kind of STEPS are expected by chance: two of nine other digits are neighbours."""
    patterns, places = _patterns(answers)
    each = float(((2 / 9) ** places[patterns]).sum())
    return np.array([each, len(patterns) - each, len(answers.size) - len(patterns)])


def passing_by_chance(answers: Answers) -> Float[np.ndarray, "5"]:
    """How many answers have 0 to 4 passing pairs below the same digit, if they were to any problems of the operator."""
    expected = np.zeros(5)
    for first, count in enumerate(np.bincount(answers.first, minlength=5).tolist()):
        below = 4 - first
        expected[: below + 1] += count * 0.1 ** np.arange(below + 1) * np.append(np.full(below, 0.9), 1.0)
    return expected


def _pattern(differs: Bool[np.ndarray, "answer 5"]) -> Int64[np.ndarray, " answer"]:
    """Which places differ as five bits."""
    return differs @ (1 << np.arange(4, -1, -1))


def _patterns(answers: Answers) -> tuple[Int64[np.ndarray, " number"], Int64[np.ndarray, "32"]]:
    """The pattern of each answer that is a number, and how many places each of the 32 patterns has."""
    places = np.array([pattern.bit_count() for pattern in range(32)])
    return _pattern(answers.differs[answers.number]), places


def rows(shape: str, found: Exhaustive) -> Rows:
    """Counts by operator, grouping and category of a model whose wrong problems are listed.

    Raises BadInput when its list holds a right answer.
    """
    listed = found.wrong_problems()
    made: Rows = []
    for subtract, operator in enumerate(("addition", "subtraction")):
        answers = answers_of(listed, bool(subtract))
        if not answers.differs.any(axis=1).all():
            raise BadInput(f"{found.folder}: a right answer is listed as wrong; count again, or restore the files")
        for grouping, category, count, chance in _groups(answers):
            share = count / len(answers.size)
            row = {"model": found.model, "shape": shape, "operator": operator, "grouping": grouping}
            row |= {"category": category, "wrong": count, "share": share}
            made.append(row | {"wrong_by_chance": chance})
    return made


def _groups(answers: Answers) -> list[tuple[str, str, int, float]]:
    """(grouping, category, answers, how many by chance; NaN where chance is not asked) of answers of one operator."""
    if not len(answers.size):
        return []
    groups: list[tuple[str, str, int, float]] = []

    def add(grouping: str, names: Sequence[str], places: np.ndarray, chance: Sequence[float] | np.ndarray) -> None:
        counts = np.bincount(places, minlength=len(names)).tolist()
        groups.extend(zip([grouping] * len(names), names, counts, map(float, chance), strict=True))

    add("off by", OFF_BY, answers.off_by(), off_by_chance(answers))
    add("wrong digits off", STEPS, answers.steps(), steps_by_chance(answers))
    add(PASSING, "01234", answers.passing(), passing_by_chance(answers))
    add("first wrong", PLACES, answers.first, [np.nan] * 5)
    add(BEYOND, "01234", answers.differs.sum(axis=1) - 1, [np.nan] * 5)
    pattern, counts = np.unique(_pattern(answers.differs), return_counts=True)
    for code, count in zip(pattern[::-1].tolist(), counts[::-1].tolist(), strict=True):
        name = " ".join(place for bit, place in zip(f"{code:05b}", PLACES, strict=True) if bit == "1")
        groups.append(("digits", name, count, np.nan))
    return groups
