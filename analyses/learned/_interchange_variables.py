"""The exact variables that `interchange` swaps, and the digit that exact units predict when one of them is swapped.

All are about one place of the answer. The carry and the borrow are one number, 0 or 1; the digit sum and difference are
one number each; the same modulo ten is nine, the cosines and sines of 2 pi k t / 10 for k = 1..5, whose linear readings
are all functions of t mod 10 (the tenth is constant). The direction of a difference is one number, 0 or 1.

Subtractions are taken larger minus smaller. A model may hold borrow and difference of a - b as written, so these are
also read and swapped among answers of one sign alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from analyses.learned._exact_places import Place

Ints = Int[np.ndarray, " problem"]
Targets = Float[np.ndarray, "problem number"]


SIGNS = {"": None, " (+)": False, " (-)": True}  # both together, and each alone


def _mod10(place: Place, negative: Bool[np.ndarray, " problem"]) -> Targets:
    angles = 2 * math.pi / 10 * np.outer(place.local, np.arange(1, 6))
    return np.concatenate([np.cos(angles), np.sin(angles)[:, :4]], axis=1)  # sin of half a turn's multiples is 0


@dataclass(frozen=True)
class Variable:
    """What is read, of which problems, and what a swap should do."""

    name: str
    subtract: bool
    places: tuple[int, ...]
    numbers: Callable[[Place, Bool[np.ndarray, " problem"]], Targets]  # of a place and which answers are negative
    predicted: Callable[[Place, Place], Ints]  # digit of the first problem with the second one's value
    negative: bool | None = None  # only answers of this sign
    turns: bool = False  # the two problems of a swap have answers of different sign, else of the same

    def about(self, place: Place, negative: Bool[np.ndarray, " problem"]) -> Bool[np.ndarray, " problem"]:
        """Which problems have the variable."""
        signed = True if self.negative is None else negative == self.negative
        return (place.subtract == self.subtract) & signed


def _arriving(place: Place, negative: Bool[np.ndarray, " problem"]) -> Targets:
    return place.arriving[:, None].astype(float)


def _local(place: Place, negative: Bool[np.ndarray, " problem"]) -> Targets:
    return place.local[:, None].astype(float)


def _direction(place: Place, negative: Bool[np.ndarray, " problem"]) -> Targets:
    return negative[:, None].astype(float)


def _with_arriving(base: Place, source: Place) -> Ints:
    return base.with_arriving(source.arriving)


def _with_local(base: Place, source: Place) -> Ints:
    return base.with_local(source.local)


_LOWER, _ALL = (1, 2, 3), (0, 1, 2, 3)
VARIABLES = (
    Variable("carry", False, (1, 2, 3, 4), _arriving, _with_arriving),
    Variable("sum", False, _ALL, _local, _with_local),
    Variable("sum mod 10", False, _ALL, _mod10, _with_local),
    *(Variable(f"borrow{sign}", True, _LOWER, _arriving, _with_arriving, only) for sign, only in SIGNS.items()),
    Variable("difference", True, _ALL, _local, _with_local),
    *(Variable(f"difference mod 10{sign}", True, _ALL, _mod10, _with_local, only) for sign, only in SIGNS.items()),
    Variable("direction", True, _ALL, _direction, lambda base, _: base.turned, turns=True),
    Variable("direction here", True, _LOWER, _direction, lambda base, _: base.turned_here, turns=True),
)
MEANINGS = {
    "carry": "the carry into the place",
    "sum": "the sum of the two digits, one direction",
    "sum mod 10": "the sum of the two digits modulo ten, nine directions",
    "borrow": "the borrow into the place",
    "difference": "the difference of the two digits, one direction",
    "difference mod 10": "the difference of the two digits modulo ten, nine directions",
    "direction": "which operand is the larger, borrows following",
    "direction here": "which operand is the larger, the borrow staying",
}


def meaning(name: str) -> str:
    """What a variable is, in words."""
    kind = name.removesuffix(" (+)").removesuffix(" (-)")
    return MEANINGS[kind] + {name: "", f"{kind} (+)": ", answers +", f"{kind} (-)": ", answers -"}[name]
