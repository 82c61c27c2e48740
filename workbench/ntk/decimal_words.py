"""The decimal machine on many problems at once: problems into words, every bit of every answer checked in words."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Integer, UInt8

from workbench.errors import BadInput
from workbench.ntk.decimal import BASE, Decimal
from workbench.ntk.sliced import Sliced, Survey
from workbench.ntk.words import Packed, Row
from workbench.task import MINUS, PLUS

Digits = Integer[np.ndarray, " problem"]
Flags = Bool[np.ndarray, " problem"]


@dataclass(frozen=True)
class Checked:
    """Which problems were answered exactly, and what occurred on the way."""

    right: Flags
    iterations: UInt8[
        np.ndarray, " problem"
    ]  # after how many the answer stands; one more than `steps` if it never does
    steps: int
    fixed: bool  # the last step changed nothing
    survey: Survey  # which (m, S, T) occurred, and the flips
    margin: float  # the smallest |mean| of a bit that is not 0 by construction


def row_of(flags: Flags) -> Row:
    """One bit of all states as a row of words."""
    if not flags.any():
        return None
    raw = np.zeros(-(-len(flags) // 64) * 8, np.uint8)
    raw[: -(-len(flags) // 8)] = np.packbits(flags, bitorder="little")
    return raw.view("<u8").astype(np.uint64, copy=False)


def start(machine: Decimal, a: Digits, b: Digits, subtract: Flags) -> Packed:
    """`machine.start` in words; BadInput when an operand has more digits than the machine has places."""
    layout = machine.templates.layout
    rows: list[Row] = [None] * layout.bits
    for block, values in (("a", a), ("b", b)):
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) < BASE**machine.digits:
            raise BadInput(f"an operand is not one of 0 to {BASE**machine.digits - 1}, the places of this machine")
        for place in range(machine.digits):
            digit = (values // BASE**place % BASE).astype(np.uint8)
            for value in range(BASE):
                rows[layout[block, place, value]] = row_of(digit == value)
    rows[layout["op", 0]], rows[layout["op", 1]] = row_of(~subtract), row_of(subtract)
    return Packed(rows, len(subtract))


def right(machine: Decimal, states: Packed, tokens: UInt8[np.ndarray, "problem token"]) -> Flags:
    """Where every bit of the sign and of every digit is that of these tokens: no bit missing, none too many."""
    layout = machine.templates.layout
    wanted = {layout["sign", place]: tokens[:, 0] == token for place, token in enumerate((PLUS, MINUS))}
    for place in range(machine.digits + 1):
        digit = np.ascontiguousarray(tokens[:, -1 - place])
        wanted |= {layout["out", place, value]: digit == value for value in range(BASE)}
    zero = np.zeros(states.words, np.uint64)  # what a row that is missing holds
    wrong = zero.copy()
    for bit, flags in wanted.items():
        found, asked = states.rows[bit], row_of(flags)
        wrong |= (zero if found is None else found) ^ (zero if asked is None else asked)
    return ~_flags(wrong, states.states)


def _flags(row: np.ndarray, states: int) -> Flags:
    return np.unpackbits(row.astype("<u8").view(np.uint8), count=states, bitorder="little").astype(bool)


def check(machine: Decimal, sliced: Sliced, a: Digits, b: Digits, subtract: Flags) -> Checked:
    """Run the problems to where nothing changes, at most one step after the last answer, and compare every answer.

    `sliced` runs the machine's templates, or others over the same bits.
    """
    exact = machine.exact(a, b, subtract)
    iterations = np.ones(len(subtract), np.uint8)
    last = np.zeros(len(subtract), bool)

    def watch(_: int, states: Packed) -> None:
        nonlocal last
        last = right(machine, states, exact)
        iterations[~last] += 1

    run = sliced.run(start(machine, a, b, subtract), machine.steps + 1, watch)
    return Checked(last, iterations, run.steps, run.fixed, run.survey, run.margin)
