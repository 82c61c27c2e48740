"""Enumerated units on the task's tokens: a fixed readout of the operands, a unit an operator, the answer's tokens.

The readout weighs each operand's digits by their place values, [1000, 100, 10, 1], and knows nothing of the problem;
the digits of an answer are the quotients of its size by those place values, without their multiples of ten. Between
the two stands one unit with weights [1, 1] or [1, -1], and nothing is trained.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from workbench.errors import BadInput
from workbench.hill.unit import HillUnit
from workbench.task import MINUS, PLUS

MOST_DIGITS = 15  # sums stay below 2**53, where float64 holds every integer
UNITS = {PLUS: "add", MINUS: "subtract"}


@dataclass(frozen=True)
class TokenCircuit:
    """The circuit for operands of `digits` digits; BadInput for digits outside 1..15."""

    digits: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= MOST_DIGITS:
            raise BadInput(f"operands of {self.digits} digits; choose 1 to {MOST_DIGITS}")

    @cached_property
    def units(self) -> dict[int, HillUnit]:
        """The unit of each operator's token."""
        return {token: HillUnit.enumerated(name) for token, name in UNITS.items()}

    @property
    def place_values(self) -> Float[Tensor, " digit"]:
        """What the readout weighs digits by, highest place first."""
        return 10.0 ** torch.arange(self.digits - 1, -1, -1, dtype=torch.float64)

    def operands(self, tokens: UInt8[Tensor, "problem token"]) -> Float[Tensor, "problem 2"]:
        """The readout: both operands of rows that begin `d.. op d..`; BadInput for another row."""
        there = tokens[:, : 2 * self.digits + 1]
        digits = torch.cat([there[:, : self.digits], there[:, self.digits + 1 :]], dim=1)
        short = digits.shape[1] != 2 * self.digits
        if short or bool((digits > 9).any()) or bool(((there[:, self.digits] - PLUS) > 1).any()):
            raise BadInput(
                f"a row of tokens does not begin with {self.digits} digits, + or -, and {self.digits} digits"
            )
        return digits.unflatten(1, (2, self.digits)).double() @ self.place_values

    def numbers(self, tokens: UInt8[Tensor, "problem token"]) -> Float[Tensor, " problem"]:
        """The signed answers: each problem goes through the unit of its operator."""
        x, operator = self.operands(tokens), tokens[:, self.digits]
        found = torch.zeros(len(x), dtype=x.dtype)
        with torch.no_grad():
            for token, unit in self.units.items():
                found[operator == token] = unit(x[operator == token])
        return found

    def written(self, tokens: UInt8[Tensor, "problem token"]) -> UInt8[Tensor, "problem answer"]:
        """The answers as tokens: sign, then one digit more than an operand has, highest first."""
        return write(self.numbers(tokens).long(), self.digits + 1)


def write(numbers: Int[Tensor, " problem"], digits: int) -> UInt8[Tensor, "problem token"]:
    """Signed whole numbers as tokens: sign (zero has +), then so many digits, highest first."""
    signs = torch.where(numbers < 0, MINUS, PLUS)
    values = 10 ** torch.arange(digits - 1, -1, -1)
    return torch.cat([signs[:, None], numbers.abs()[:, None] // values % 10], dim=1).to(torch.uint8)
