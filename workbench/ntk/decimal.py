"""Signed addition and subtraction of decimal numbers as a template set (ours): the task's own problems, digit by digit.

Bits are one-hot, units first. A problem `a op b` starts in blocks a, b and op and runs like this:

1. *pair*: at every place, one template a pair of digits and an operator writes their sum (0..18) or difference
   (-9..9); a, b and op are then gone. Sums and differences keep themselves.
2. *carry*: a sum of ten or more carries, one of eight or less does not, and nine hands on what arrives. *borrow*: the
   same for a - b and, beside it, b - a. `carry[i,v]`, `ab[i,v]` and `ba[i,v]` say that place i carries (borrows) v, 0
   or 1; neither bit is 1 as long as it is not known, and nothing waits for a clock.
3. *digit*: once the carry into its place is known, a sum becomes the answer's digit; a difference also needs the
   borrow out of the highest place, which is 1 in a - b when the answer is negative: the digits are then those of b - a.
   *sign*: that borrow is the sign.

The longest carry goes through all D places, so an answer stands after D + 2 steps and stays. No template needs a bit to
be 0. None reads more than one place of each operand, beside the carry or borrow into it and the one out of the top.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int, Integer, UInt8
from torch import Tensor

from workbench.errors import BadInput
from workbench.ntk.templates import Bit, Layout, Template, TemplateSet, template
from workbench.task import MINUS, PLUS

BASE = 10
HIGHEST = BASE - 1
PAIR_VALUES = 2 * BASE - 1  # 0..18 for a sum, -9..9 for a difference
MOST_DIGITS = 17  # answers stay below 2**63
BLANK = 255  # a token that is not written: none of its bits is 1, or several are

Numbers = Int[Tensor, " batch"]


@dataclass(frozen=True)
class Decimal:
    """The machine for operands of `digits` digits; `padding` is not needed (the tests say for which digits).

    Raises BadInput for digits outside 1..17.
    """

    digits: int = 4
    padding: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= MOST_DIGITS:
            raise BadInput(f"operands of {self.digits} digits; choose 1 to {MOST_DIGITS}")

    @property
    def steps(self) -> int:
        """Steps after which every answer stands; one more changes nothing."""
        return self.digits + 2

    @cached_property
    def templates(self) -> TemplateSet:
        """The template set."""
        layout = _layout(self.digits)
        rules = [*_operator(layout, self.digits), *_pairs(layout, self.digits), *_carries(layout, self.digits)]
        rules += [*_borrows(layout, self.digits), *_digits(layout, self.digits), *_keep(layout, self.digits)]
        return TemplateSet(layout, rules, self.padding)

    def start(self, a: Numbers, b: Numbers, subtract: Bool[Tensor, " batch"]) -> UInt8[Tensor, "batch bit"]:
        """The start states of problems; BadInput when an operand has more digits than this machine has places."""
        for values in (a, b):
            if len(values) and not 0 <= int(values.min()) <= int(values.max()) < BASE**self.digits:
                raise BadInput(f"an operand is not one of 0 to {BASE**self.digits - 1}, the places of this machine")
        places = BASE ** torch.arange(self.digits)
        a_bits, b_bits = (F.one_hot(values.long()[:, None] // places % BASE, BASE) for values in (a, b))
        return self.templates.state(a=a_bits, b=b_bits, op=F.one_hot(subtract.long(), 2))

    def exact(
        self,
        a: Integer[np.ndarray, " batch"],
        b: Integer[np.ndarray, " batch"],
        subtract: Bool[np.ndarray, " batch"],
    ) -> UInt8[np.ndarray, "batch token"]:
        """What integer arithmetic answers, as the tokens of `written`."""
        answers = a.astype(np.int64) + np.where(subtract, -b.astype(np.int64), b)
        places = BASE ** np.arange(self.digits, -1, -1)
        signs = np.where(answers < 0, MINUS, PLUS)
        return np.concatenate([signs[:, None], np.abs(answers)[:, None] // places % BASE], axis=1).astype(np.uint8)

    def written(self, states: UInt8[Tensor, "batch bit"]) -> UInt8[Tensor, "batch token"]:
        """The answer in each state as the task's tokens: sign, then digits, highest first; BLANK where none is."""
        layout = self.templates.layout
        signs = _read(states[:, layout.block("sign")], torch.tensor([PLUS, MINUS]))
        digits = states[:, layout.block("out")].unflatten(1, (self.digits + 1, BASE)).flip(1)
        return torch.cat([signs[:, None], _read(digits, torch.arange(BASE))], dim=1)


def _read(bits: UInt8[Tensor, "*batch choice"], meanings: Int[Tensor, " choice"]) -> UInt8[Tensor, "*batch"]:
    """What the one bit that is 1 means, BLANK where not exactly one is."""
    found = torch.where(bits.sum(dim=-1) == 1, meanings[bits.argmax(dim=-1)], BLANK)
    return found.to(torch.uint8)


def _layout(digits: int) -> Layout:
    operands = {"a": (digits, BASE), "b": (digits, BASE), "op": 2}
    values = {"sum": (digits, PAIR_VALUES), "dif": (digits, PAIR_VALUES)}
    moves = dict.fromkeys(("carry", "ab", "ba"), (digits, 2))
    return Layout({**operands, **values, **moves, "sign": 2, "out": (digits + 1, BASE)})


def _operator(layout: Layout, digits: int) -> Iterator[Template]:
    """What the operator alone says: a sum has sign +, a difference nothing above the operands' places."""
    yield template(layout, "operator", [("op", 0)], [], [("sign", 0)])
    yield template(layout, "operator", [("op", 1)], [], [("out", digits, 0)])


def _pairs(layout: Layout, digits: int) -> Iterator[Template]:
    for i in range(digits):
        for x in range(BASE):
            for y in range(BASE):
                pair = [("a", i, x), ("b", i, y)]
                yield template(layout, "pair +", [("op", 0), *pair], [], [("sum", i, x + y)])
                yield template(layout, "pair -", [("op", 1), *pair], [], [difference(i, x - y)])


def difference(place: int, value: int) -> Bit:
    """The bit that says that a digit of a less that of b is `value`, -9..9."""
    return ("dif", place, value + HIGHEST)


def _into(block: str, place: int) -> Sequence[tuple[int, list[Bit]]]:
    """(v, the bits that say so) for the carry or borrow v into a place; into the units there is none."""
    return [(v, [(block, place - 1, v)]) for v in (0, 1)] if place else [(0, [])]


def _carries(layout: Layout, digits: int) -> Iterator[Template]:
    for i in range(digits):
        for s in range(PAIR_VALUES):
            if s == HIGHEST:
                for v, known in _into("carry", i):
                    yield template(layout, "carry", [("sum", i, s), *known], [], [("carry", i, v)])
            else:
                yield template(layout, "carry", [("sum", i, s)], [], [("carry", i, int(s > HIGHEST))])


def _borrows(layout: Layout, digits: int) -> Iterator[Template]:
    """Borrows of a - b where its digit of a is smaller, of b - a where that of b is; equal digits hand both on."""
    for i in range(digits):
        for d in range(-HIGHEST, BASE):
            if d:
                out: list[Bit] = [("ab", i, int(d < 0)), ("ba", i, int(d > 0))]
                yield template(layout, "borrow", [difference(i, d)], [], out)
            else:
                for block in ("ab", "ba"):
                    for v, known in _into(block, i):
                        yield template(layout, "borrow", [difference(i, 0), *known], [], [(block, i, v)])


def _digits(layout: Layout, digits: int) -> Iterator[Template]:
    top = digits - 1
    for i in range(digits):
        for s in range(PAIR_VALUES):
            for v, known in _into("carry", i):
                yield template(layout, "digit +", [("sum", i, s), *known], [], [("out", i, (s + v) % BASE)])
        for negative, block in enumerate(("ab", "ba")):
            for d in range(-HIGHEST, BASE):
                for v, known in _into(block, i):
                    on = [difference(i, d), *known, ("ab", top, negative)]
                    digit = ((-d if negative else d) - v) % BASE
                    yield template(layout, "digit -", on, [], [("out", i, digit)])
    for v in (0, 1):
        yield template(layout, "digit +", [("carry", top, v)], [], [("out", digits, v)])
        yield template(layout, "sign", [("ab", top, v)], [], [("sign", v)])


def _keep(layout: Layout, digits: int) -> Iterator[Template]:
    """What nothing else writes again: all the rest follows from it at every step."""
    for bit in [*layout.all("sum"), *layout.all("dif"), ("sign", 0), ("out", digits, 0)]:
        yield template(layout, "keep", [bit], [], [bit])
