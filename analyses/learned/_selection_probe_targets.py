"""What the readouts of `selection-probe` are fitted to, and the exact units on top of them.

Everything is by decimal place, units first. Operand digits, their angles `2 pi k d / 10`, the carry that arrives and
the answer's digit are read of problems of all operators alike; results are read of one operator and sign.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from workbench.hill.primitives import additive
from workbench.hill.unit import HillUnit
from workbench.structure import structure
from workbench.task import ANSWER_TOKENS, Problems, digits_of, encode

PLACES = ("units", "tens", "hundreds", "thousands")
FREQUENCIES = (1, 2, 3, 4, 5)
SUM, DIFFERENCE, CARRY = "sum", "difference", "carry"
PAIRED = {SUM: "add", DIFFERENCE: "subtract"}  # additive units
TURNING = {SUM: ("cos-sum", "sin-sum"), DIFFERENCE: ("cos-difference", "sin-difference")}
CARRY_UNIT = {  # selections of (a_i, b_i, carry that arrives, answer digit) whose sum is ten times the carry out
    "addition": (1, 1, 1, -1),
    "subtraction +": (-1, 1, 1, 1),
    "subtraction -": (1, -1, 1, 1),
}

Columns = Float[Tensor, "problem target"]


def turns(digits: Float[Tensor, "*many"]) -> Float[Tensor, "*many 10"]:
    """Cosine and sine of `2 pi k d / 10`, k = 1..5, side by side; at k = 5 the sine is 0 up to rounding."""
    angles = digits[..., None] * (2 * math.pi / 10) * torch.tensor(FREQUENCIES, dtype=digits.dtype)
    return torch.stack([angles.cos(), angles.sin().where(angles.sin().abs() > 1e-9, 0.0)], dim=-1).flatten(-2)


@dataclass(frozen=True, eq=False)
class Exact:
    """Exact values of problems, places units first."""

    problems: Problems

    @cached_property
    def digits(self) -> Float[Tensor, "problem operand place"]:
        """a_i and b_i."""
        both = [digits_of(of)[:, ::-1].astype(np.float64) for of in (self.problems.a, self.problems.b)]
        return torch.from_numpy(np.stack(both, axis=1))

    @cached_property
    def moves(self) -> Float[Tensor, "problem place"]:
        """Whether each place carries or borrows."""
        return torch.from_numpy(structure(self.problems).moves.astype(np.float64))

    @cached_property
    def arrives(self) -> Float[Tensor, "problem place"]:
        """Whether a carry or borrow arrives at each place."""
        return torch.nn.functional.pad(self.moves[:, :-1], (1, 0))

    @cached_property
    def answer(self) -> Float[Tensor, "problem place"]:
        """The answer's digits of the four places."""
        return torch.from_numpy(encode(self.problems)[:, ANSWER_TOKENS][:, :0:-1].astype(np.float64))

    @cached_property
    def inputs(self) -> Columns:
        """What units read: digits [operand place], their turns [operand place 10], arrives and answer [place]."""
        return torch.cat([self.digits.flatten(1), turns(self.digits).flatten(1), self.arrives, self.answer], dim=1)

    @cached_property
    def results(self) -> dict[tuple[str, int], Float[Tensor, "problem place part"]]:
        """What units compute, by (result, k): k = 0 the number itself, else its cosine and sine at frequency k."""
        a, b = self.digits.unbind(dim=1)
        found = {(CARRY, 0): self.moves[..., None]}
        for name, value in ((SUM, a + b), (DIFFERENCE, a - b)):
            found[name, 0] = value[..., None]
            each = turns(value).unflatten(-1, (len(FREQUENCIES), 2))
            found |= {(name, k): each[..., n, :] for n, k in enumerate(FREQUENCIES)}
        return found

    def column_answered(self, said: Float[Tensor, "problem place"], subtract: bool) -> Float[Tensor, "problem place"]:
        """What a model's digits say the two operand digits make, given the exact carries.

        Where the digit is right, that is a_i + b_i, or larger minus smaller.
        """
        sign = -1 if subtract else 1
        return said + sign * (10 * self.moves - self.arrives)


def computed(read: Columns, group: str) -> dict[tuple[str, int], Float[Tensor, "problem place part"]]:
    """What the frozen units make of `Exact.inputs` as read: same keys and shapes as `Exact.results`."""
    digits, turned = read[:, :8].unflatten(1, (2, 4)), read[:, 8:88].unflatten(1, (2, 4, len(FREQUENCIES), 2))
    pairs = digits.movedim(1, -1)  # [problem, place, operand]
    carries = torch.cat([pairs, read[:, 88:92, None], read[:, 92:96, None]], dim=-1)
    found = {(CARRY, 0): additive(carries, torch.tensor(CARRY_UNIT[group]).to(carries))[..., None] / 10}
    found |= {(name, 0): HillUnit.enumerated(unit)(pairs)[..., None] for name, unit in PAIRED.items()}
    for name, units in TURNING.items():
        for n, k in enumerate(FREQUENCIES):
            cos, sin = turned[..., n, :].unbind(dim=-1)
            angles = torch.atan2(sin, cos).movedim(1, -1)
            found[name, k] = torch.stack([HillUnit.enumerated(unit)(angles) for unit in units], dim=-1)
    return found


def right(
    said: Float[Tensor, "problem place part"], exact: Float[Tensor, "problem place part"]
) -> Bool[Tensor, "problem place"]:
    """Whether rounding gives exactly the right whole number."""
    return (said.round() == exact).all(dim=-1)
