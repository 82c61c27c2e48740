"""Packed bits against plain ones, state by state."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from workbench.ntk import words
from workbench.ntk.words import Packed, pack, unpack

BITS = arrays.arrays(np.uint8, st.tuples(st.integers(1, 200), st.integers(1, 12)), elements=st.integers(0, 1))


def plain(row, states):
    """A row as a list of its bits."""
    return [0] * states if row is None else [int(row[i // 64]) >> (i % 64) & 1 for i in range(states)]


@settings(deadline=None)
@given(BITS)
def test_states_are_packed_and_come_back(bits):
    states = torch.from_numpy(bits)
    packed = pack(states)
    assert [plain(row, len(bits)) for row in packed.rows] == states.T.tolist()
    assert [row is None for row in packed.rows] == [not column.any() for column in bits.T]
    assert torch.equal(unpack(packed), states)
    assert plain(packed.valid(), 64 * packed.words) == [1] * len(bits) + [0] * (64 * packed.words - len(bits))
    assert words.same(packed.rows, pack(states.clone()).rows)


def test_no_states():
    packed = pack(torch.zeros(0, 3, dtype=torch.uint8))
    assert (packed.words, packed.rows) == (0, [None] * 3) and unpack(packed).shape == (0, 3)


@settings(deadline=None)
@given(BITS, st.integers(1, 4))
def test_parts_are_put_together_again(bits, size):
    states = torch.from_numpy(bits)
    parts = words.split(pack(states), size)
    assert all(part.words <= size for part in parts) and sum(part.states for part in parts) == len(bits)
    assert torch.equal(torch.cat([unpack(part) for part in parts]), states)
    assert torch.equal(unpack(words.join(parts)), states)


def test_what_differs_is_not_the_same():
    one, two = np.array([1], np.uint64), np.array([2], np.uint64)
    assert words.same([one, None], [one.copy(), None])
    assert not words.same([one], [two]) and not words.same([one], [None]) and not words.same([None], [one])


@settings(deadline=None)
@given(BITS, st.data())
def test_states_that_differ_anywhere_are_counted(bits, data):
    other = data.draw(arrays.arrays(np.uint8, bits.shape, elements=st.integers(0, 1)))
    one, two = pack(torch.from_numpy(bits)), pack(torch.from_numpy(other))
    assert words.different(one.rows, two.rows, one.valid()) == (bits != other).any(axis=1).sum()
    nothing = Packed([], len(bits)).valid() ^ words.ones(one.words)
    assert words.different(one.rows, two.rows, nothing) == 0


@settings(deadline=None)
@given(BITS)
def test_counting_and_asking_for_numbers(bits):
    rows, states, size = pack(torch.from_numpy(bits)).rows, len(bits), -(-len(bits) // 64)
    counts, digits = bits.sum(axis=1).tolist(), words.count(rows)
    columns = [plain(digit, states) for digit in digits]
    assert [sum(column[i] << k for k, column in enumerate(columns)) for i in range(states)] == counts
    for number in range(2 ** len(digits)):
        assert plain(words.differs(digits, number), states) == [int(c != number) for c in counts]
        assert plain(words.equals(digits, number, size), states) == [int(c == number) for c in counts]
    valid = Packed([], states).valid()
    places = words.sort_out(digits, valid)
    assert {number: plain(where, states) for number, where in places.items()} == {
        number: [int(c == number) for c in counts] for number in set(counts)
    }
    wanted = [number % 3 == 1 for number in range(max(counts) + 1)]
    for choice in (wanted, [not w for w in wanted], [True] * len(wanted), [False] * len(wanted)):
        assert plain(words.among(digits, choice, size), states) == [int(choice[c]) for c in counts]


@pytest.mark.parametrize("rows", [1, 2, 3, 64, 100])
def test_many_ones(rows):
    digits = words.count([words.ones(2)] * rows)
    assert [plain(digit, 128)[77] for digit in digits] == [int(b) for b in reversed(f"{rows:b}")]
