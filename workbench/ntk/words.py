"""Bits of many states in machine words: packing, and counting with whole words ("bit slicing", Biham 1997).

A row holds one bit of all states: state `64 w + k` in bit k of word w. A row that is 0 everywhere is None, so that what
depends on it costs nothing. A number in every state is a list of rows, its binary digits, lowest first.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import UInt8, UInt64
from torch import Tensor

ONES = np.uint64(2**64 - 1)

Words = UInt64[np.ndarray, " word"]
Row = Words | None


@dataclass
class Packed:
    """States by bit, one row a bit."""

    rows: list[Row]
    states: int

    @property
    def words(self) -> int:
        """Words a row."""
        return -(-self.states // 64)

    def valid(self) -> Words:
        """1 for every state, 0 for what fills up the last word."""
        words = ones(self.words)
        if self.states % 64:
            words[-1] = 2 ** (self.states % 64) - 1
        return words


def ones(words: int) -> Words:
    """A row that is 1 everywhere."""
    return np.full(words, ONES)


def pack(states: UInt8[Tensor, "batch bit"]) -> Packed:
    """States, a byte a bit, in words."""
    batch, bits = states.shape
    raw = np.zeros((bits, -(-batch // 64) * 8), np.uint8)
    raw[:, : -(-batch // 8)] = np.packbits(np.ascontiguousarray(states.T.numpy()), axis=1, bitorder="little")
    words = raw.view("<u8").astype(np.uint64, copy=False)
    return Packed([row if row.any() else None for row in words], batch)


def unpack(packed: Packed) -> UInt8[Tensor, "batch bit"]:
    """States in words, a byte a bit again."""
    found = np.zeros((packed.states, len(packed.rows)), np.uint8)
    for bit, row in enumerate(packed.rows):
        if row is not None:
            found[:, bit] = np.unpackbits(row.astype("<u8").view(np.uint8), count=packed.states, bitorder="little")
    return torch.from_numpy(found)


def split(packed: Packed, words: int) -> list[Packed]:
    """The states in parts of so many words, which share the memory of the whole."""
    return [
        Packed(
            [None if row is None else row[first : first + words] for row in packed.rows],
            min(packed.states - 64 * first, 64 * words),
        )
        for first in range(0, packed.words, words)
    ]


def join(parts: Sequence[Packed]) -> Packed:
    """The parts of `split` in one again."""
    if len(parts) == 1:
        return parts[0]
    rows: list[Row] = []
    for row in zip(*(part.rows for part in parts), strict=True):
        filled = [np.zeros(part.words, np.uint64) if r is None else r for part, r in zip(parts, row, strict=True)]
        rows.append(None if all(r is None for r in row) else np.concatenate(filled))
    return Packed(rows, sum(part.states for part in parts))


def same(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    """Whether two states of a batch are equal, bit by bit."""
    return all(
        (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
        for a, b in zip(rows, others, strict=True)
    )


def different(rows: Iterable[Row], others: Iterable[Row], valid: Words) -> int:
    """In how many valid states some bit of `rows` is another than in `others`."""
    found = np.zeros_like(valid)
    for row, other in zip(rows, others, strict=True):
        if row is not None and other is not None:
            found |= row ^ other
        elif (either := other if row is None else row) is not None:
            found |= either
    return int(np.bitwise_count(found & valid).sum())


def count(rows: Iterable[Row]) -> list[Words]:
    """How many of the rows are 1, as a number in every state; no digits where all rows are 0. Carry-save adders."""
    column, digits = [row for row in rows if row is not None], []
    while column:
        carries = []
        while len(column) > 2:
            a, b, c = column.pop(), column.pop(), column.pop()
            half = a ^ b
            column.append(half ^ c)
            carries.append(a & b | half & c)
        if len(column) == 2:
            a, b = column
            column = [a ^ b]
            carries.append(a & b)
        digits.append(column[0])
        column = carries
    return digits


def differs(digits: Sequence[Words], number: int) -> Row:
    """Where the number in `digits` is another than `number`, which has no more digits."""
    return _other(digits, number) if digits else None


def _other(digits: Sequence[Words], number: int) -> Words:
    found = ~digits[0] if number & 1 else digits[0]
    for place, digit in enumerate(digits[1:], start=1):
        found = found | (~digit if number >> place & 1 else digit)
    return found


def equals(digits: Sequence[Words], number: int, words: int) -> Words:
    """Where the number in `digits` is `number`."""
    return ~_other(digits, number) if digits else ones(words)


def among(digits: Sequence[Words], wanted: Sequence[bool], words: int) -> Row:
    """Where `wanted[number]` holds of the number in `digits`, which is below `len(wanted)` everywhere."""
    yes = [number for number, holds in enumerate(wanted) if holds]
    no = [number for number, holds in enumerate(wanted) if not holds]
    if not digits or not yes or not no:
        return ones(words) if wanted[0] else None
    if len(no) <= len(yes):
        return functools.reduce(np.bitwise_and, [_other(digits, number) for number in no])
    return functools.reduce(np.bitwise_or, [~_other(digits, number) for number in yes])


def sort_out(digits: Sequence[Words], valid: Words) -> dict[int, Words]:
    """For each number that stands in some valid state, where it stands."""
    found = {0: valid} if valid.any() else {}
    for place, digit in enumerate(digits):
        parts = {}
        for number, where in found.items():
            on = where & digit
            parts[number] = where ^ on
            parts[number | 1 << place] = on
        found = {number: where for number, where in parts.items() if where.any()}
    return found
