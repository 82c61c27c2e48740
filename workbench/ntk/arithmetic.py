"""Permutation, addition and multiplication as template sets: which bits there are, and what is written when.

They are those of the authors' code (arXiv 2502.16763, `binary_algos`), condition and label. Lowest bits stand first. A
machine runs each from a start state for a fixed number of steps, the same for all inputs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from workbench.errors import BadInput
from workbench.ntk.templates import Bit, Layout, Template, TemplateSet, from_bits, template, to_bits

MOST_BITS = 31  # of an operand: products stay within int64


@dataclass(frozen=True)
class Algorithm:
    """A template set, how numbers enter it and leave it, and how long it runs."""

    name: str
    bits: int  # of an operand
    templates: TemplateSet
    steps: int  # after which the answer of every input stands
    operands: tuple[str, ...]  # the block each operand starts in, zero-extended to its length
    ones: tuple[Bit, ...]  # bits that are 1 at the start besides
    result: tuple[int, ...]  # flat places of the answer's bits, lowest first
    exact: Callable[..., Int[Tensor, " batch"]]  # what integer arithmetic answers

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return 2 ** (self.bits * len(self.operands))

    def start(self, *numbers: Int[Tensor, " batch"]) -> UInt8[Tensor, "batch bit"]:
        """The start states of a batch of inputs, one tensor an operand; BadInput where a number does not fit."""
        if len(numbers) != len(self.operands):
            raise BadInput(f"{self.name} takes {len(self.operands)} numbers, {len(numbers)} were given")
        layout = self.templates.layout
        for values in numbers:
            if bool(((values < 0) | (values >= 2**self.bits)).any()):
                wrong = values[(values < 0) | (values >= 2**self.bits)][0]
                raise BadInput(f"{int(wrong)} is not a number of {self.bits} bits; give 0 to {2**self.bits - 1}")
        widths = [layout.shapes[block][0] for block in self.operands]
        bits = map(to_bits, numbers, widths)
        states = self.templates.state(**dict(zip(self.operands, bits, strict=True)))
        for bit in self.ones:
            states[:, layout[bit]] = 1
        return states

    def answer(self, states: UInt8[Tensor, "batch bit"]) -> Int[Tensor, " batch"]:
        """The number that each state holds as its answer."""
        return from_bits(states[:, list(self.result)])

    def pairs(self, first: int, count: int) -> tuple[Int[Tensor, " batch"], ...]:
        """Inputs number `first` to `first + count - 1` in the order of all, the last operand counting fastest."""
        places = torch.arange(first, min(first + count, self.inputs))
        shifts = [self.bits * k for k in reversed(range(len(self.operands)))]
        return tuple(places >> shift & (2**self.bits - 1) for shift in shifts)


def _checked(bits: int) -> int:
    if not 1 <= bits <= MOST_BITS:
        raise BadInput(f"operands of {bits} bits were asked for; the number of bits is 1 to {MOST_BITS}")
    return bits


def permutation(order: Sequence[int]) -> Algorithm:
    """Moves bit i to `order[i]`, all in one step: N = l templates `[s_i = 1] -> s_order(i)`.

    Raises BadInput when `order` is not a permutation of 0 .. l - 1.
    """
    bits = _checked(len(order))
    if sorted(order) != list(range(bits)):
        raise BadInput(f"{list(order)} is not a permutation of 0 to {bits - 1}")
    layout = Layout({"s": bits})
    moves = [template(layout, "move", [("s", i)], [], [("s", to)]) for i, to in enumerate(order)]

    def exact(numbers: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        found = torch.zeros_like(numbers)
        for i, to in enumerate(order):
            found |= (numbers >> i & 1) << to
        return found

    return Algorithm("permute", bits, TemplateSet(layout, moves), 1, ("s",), (), tuple(range(bits)), exact)


def addition(bits: int) -> Algorithm:
    """Adds two numbers: p becomes p ^ q, c = p & q, and c moves to q one place up; N = 4l.

    The top carry keeps itself and is the answer's highest bit. 2l steps.
    """
    layout = Layout(dict.fromkeys("pqc", _checked(bits)))
    found = [rule for i in range(bits) for rule in _half_adder(layout, i)]
    for i in range(bits):
        found.append(template(layout, "carry", [("c", i)], [], [("q", i + 1) if i + 1 < bits else ("c", i)]))
    result = (*(layout["p", i] for i in range(bits)), layout["c", bits - 1])
    return Algorithm("add", bits, TemplateSet(layout, found), 2 * bits, ("p", "q"), (), result, torch.add)


def multiplication(bits: int, padding: int | None = None) -> Algorithm:
    """Multiplies two numbers by shifting and adding; N = 20l + 2, and the authors' padding of l unless given.

    r is the multiplier, d the multiplicand; z asks for r's lowest bit. If it is 1, flags a copy d into q, the adder
    adds it to p, and a one-hot counter k waits until it has; then, or at once, flags R and L shift r down and d up.
    4l^2 + 3l steps.
    """
    layout = Layout(
        {"r": _checked(bits), "R": bits, **dict.fromkeys("dLapqc", 2 * bits), "k": 4 * bits, "z": 1}
    )  # the authors' order
    rules = [*_keep(layout, bits), *_control(layout, bits), *_adder(layout, bits), *_shift(layout, bits)]
    templates = TemplateSet(layout, rules, bits if padding is None else padding)
    result = tuple(layout["p", i] for i in range(2 * bits))
    steps = 4 * bits**2 + 3 * bits
    return Algorithm("multiply", bits, templates, steps, ("r", "d"), (("z", 0),), result, torch.mul)


def _half_adder(layout: Layout, i: int) -> Iterator[Template]:
    p, q = ("p", i), ("q", i)
    yield template(layout, "add", [q], [p], [p])
    yield template(layout, "add", [p], [q], [p])
    yield template(layout, "add", [p, q], [], [("c", i)])


def _keep(layout: Layout, bits: int) -> Iterator[Template]:
    """What holds r and d while neither is shifted; r's lowest bit is not held where it is tested."""
    yield template(layout, "keep r", [("r", 0)], [("R", 0), ("z", 0)], [("r", 0)])
    for i in range(1, bits):
        yield template(layout, "keep r", [("r", i)], [("R", i)], [("r", i)])
    for i in range(2 * bits):
        yield template(layout, "keep d", [("d", i)], [("L", i)], [("d", i)])


def _control(layout: Layout, bits: int) -> Iterator[Template]:
    """The test of r's lowest bit, the copy of d into the adder that starts the counter, and the counter."""
    shift = [*layout.all("R"), *layout.all("L")]
    yield template(layout, "test", [("z", 0), ("r", 0)], [], [("r", 0), *layout.all("a")])
    yield template(layout, "test", [("z", 0)], [("r", 0)], shift)
    yield template(layout, "copy", [("a", 0)], [("d", 0)], [("k", 0)])
    for i in range(2 * bits):
        begin = [("k", 0)] if i == 0 else []
        yield template(layout, "copy", [("a", i), ("d", i)], [], [("d", i), ("q", i), *begin])
    for i in range(4 * bits - 1):
        yield template(layout, "count", [("k", i)], [], [("k", i + 1)])
    yield template(layout, "count", [("k", 4 * bits - 1)], [], shift)


def _adder(layout: Layout, bits: int) -> Iterator[Template]:
    """The adder of 2l places; a carry out of the last is lost, and there is none."""
    for i in range(2 * bits):
        yield from _half_adder(layout, i)
    for i in range(2 * bits - 1):
        yield template(layout, "carry", [("c", i)], [], [("q", i + 1)])


def _shift(layout: Layout, bits: int) -> Iterator[Template]:
    """Moves r one place down and d one place up, and sets z again, whichever way r's old lowest bit falls."""
    yield template(layout, "shift r", [("R", 0)], [("z", 0), ("r", 0)], [("z", 0)])
    yield template(layout, "shift r", [("R", 0), ("r", 0)], [("z", 0)], [("z", 0)])
    for i in range(1, bits):
        yield template(layout, "shift r", [("r", i), ("R", i)], [], [("r", i - 1)])
    for i in range(2 * bits - 1):
        yield template(layout, "shift d", [("d", i), ("L", i)], [], [("d", i + 1)])
