"""What a wrong digit of an answer is: another carry or borrow, the other direction, the other operation, or nothing.

The answer's digit at a place is `a_i + b_i`, `a_i - b_i` or `b_i - a_i`, with or without 1 for what arrives from below,
modulo ten. A wrong digit is of the first kind here that gives it: `carry`, the right two digits joined the right way,
with what arrives wrong; `direction`, a subtraction the other way round; `operation`, a sum in place of a difference or
the reverse; or `other`. At d4, where there are no two digits, what arrives is the digit itself, so 0 and 1 are taken
for each other's `carry` there. By chance: each wrong digit is any of the nine others, equally often, at the
same places.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int8, Int64, UInt8

from workbench.structure import structure
from workbench.task import ANSWER_TOKENS, Problems, digits_of, encode

KINDS = ("carry", "direction", "operation", "other")


@dataclass(frozen=True, eq=False)
class RightDigits:
    """The five right digits of each problem, d4 to d0, and of what kind every other digit would be."""

    problems: Problems

    @cached_property
    def digits(self) -> UInt8[np.ndarray, "problem 5"]:
        """The digits of |a op b|."""
        return encode(self.problems)[:, ANSWER_TOKENS]

    @cached_property
    def kinds(self) -> Int8[np.ndarray, "problem 5 10"]:
        """Place in KINDS of every digit that could stand at a place; -1 for the right one."""
        right = self.digits.astype(np.int64)
        a, b = (np.pad(digits_of(of).astype(np.int64), ((0, 0), (1, 0))) for of in (self.problems.a, self.problems.b))
        minus, negative = self.problems.subtract[:, None], self.problems.negative[:, None]
        difference = np.where(negative, b - a, a - b)
        arrives = np.pad(structure(self.problems).moves[:, ::-1], ((0, 0), (0, 1)))
        flipped = np.where(arrives, 0, 1)
        operation = [np.where(minus, a + b, a - b), np.where(minus, a + b + 1, a - b - 1)]
        operation += [np.where(minus, right, b - a), np.where(minus, right, b - a - 1)]
        direction = [np.where(minus, -difference, right), np.where(minus, -difference - 1, right)]
        carry = [np.where(minus, difference - flipped, a + b + flipped)]
        carry += [np.where(np.arange(5) == 0, 1 - right, right)]

        found = np.full((*right.shape, 10), KINDS.index("other"), np.int8)
        for kind, digits in ((2, operation), (1, direction), (0, carry), (-1, [right])):  # the first kind comes last
            for digit in digits:
                np.put_along_axis(found, digit[..., None] % 10, np.int8(kind), axis=2)
        return found

    def count(
        self, said: UInt8[np.ndarray, "problem 5"], wrong: Bool[np.ndarray, "problem 5"]
    ) -> tuple[Int64[np.ndarray, "4"], Float[np.ndarray, "4"]]:
        """How many of the digits in `wrong` are of each kind, and how many would be by chance; a non-digit is other."""
        candidates, token = self.kinds[wrong], said[wrong].astype(np.int64)
        found = np.take_along_axis(candidates, np.minimum(token, 9)[:, None], axis=1)[:, 0]
        found = np.where(token > 9, KINDS.index("other"), found)
        by_chance = np.array([(candidates == kind).sum() / 9 for kind in range(len(KINDS))])
        return np.bincount(found, minlength=len(KINDS)), by_chance
