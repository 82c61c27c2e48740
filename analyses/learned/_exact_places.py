"""What exact units say of one decimal place of a problem: its digits, what arrives, the answer's digit.

Place 0 is the units, place 4 the answer's top digit d4, which has no operand digits. Subtractions are taken larger
minus smaller, as the answer's digits are. All formulas are the design's carry and borrow rules ("The task, exactly").
"""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Int

from workbench.structure import structure
from workbench.task import Problems, digits_of

TOP = 4  # the place of d4
ANSWER_LABELS = ("d0", "d1", "d2", "d3", "d4")  # by place

Ints = Int[np.ndarray, " problem"]


def predicted_at(place: int) -> int:
    """The position at which a model predicts the answer's digit of a place: 14 for the units, 10 for d4."""
    return 14 - place


def answer_digit(values: Ints, place: int) -> Ints:
    """The digit of |value| at a place."""
    return np.abs(values.astype(np.int64)) // 10**place % 10


def turned_digit(answers: Ints, place: int) -> Ints:
    """The answer's digit when a subtraction is done in the other direction, each place with that direction's borrow.

    It is the digit of -|answer| modulo 10^(place + 1): 5 - 2 = 3 becomes 2 - 5, whose units digit is 7.
    """
    return -np.abs(answers.astype(np.int64)) % 10 ** (place + 1) // 10**place


@dataclass(frozen=True, eq=False)
class Place:
    """Of each problem at one place: `digit` is (local + arriving) mod 10, or (local - arriving) mod 10."""

    local: Ints  # a_i + b_i, or the difference of the two digits, larger operand's minus smaller's; 0 at d4
    arriving: Ints  # 1 where a carry or borrow arrives from the place below
    digit: Ints
    turned: Ints  # the digit in the other direction, as `turned_digit`
    turned_here: Ints  # the same when only this place is turned: (-local - arriving) mod 10
    subtract: Bool[np.ndarray, " problem"]

    def chosen(self, which: Int[np.ndarray, " chosen"]) -> "Place":
        """The same of the problems at the given indices."""
        return Place(*(getattr(self, field.name)[which] for field in fields(self)))

    def with_local(self, local: Ints) -> Ints:
        """The digit if the place held another local sum or difference and the same carry or borrow arrived."""
        return np.where(self.subtract, local - self.arriving, local + self.arriving) % 10

    def with_arriving(self, arriving: Ints) -> Ints:
        """The digit if another carry or borrow arrived at the same digits."""
        return np.where(self.subtract, self.local - arriving, self.local + arriving) % 10


def place_of(problems: Problems, place: int) -> Place:
    """Everything exact about one place, 0 to 4."""
    if place == TOP:
        local = np.zeros(len(problems), dtype=np.int64)
    else:
        a, b = (digits_of(operand)[:, 3 - place].astype(np.int64) for operand in (problems.a, problems.b))
        local = np.where(problems.subtract, np.where(problems.negative, b - a, a - b), a + b)
    moves = structure(problems).moves
    arriving = moves[:, place - 1].astype(np.int64) if place else np.zeros(len(problems), dtype=np.int64)
    answers = problems.answers
    return Place(
        local,
        arriving,
        answer_digit(answers, place),
        turned_digit(answers, place),
        (-local - arriving) % 10,
        problems.subtract,
    )
