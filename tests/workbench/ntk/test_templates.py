import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.ntk.templates import Layout, TemplateSet, from_bits, template, to_bits

LAYOUT = Layout({"p": 3, "mem": (2, 2), "z": 1})


def test_bits_stand_block_after_block_and_row_after_row():
    assert LAYOUT.bits == 8
    assert [LAYOUT["p", 2], LAYOUT["mem", 0, 0], LAYOUT["mem", 0, 1], LAYOUT["mem", 1, 0], LAYOUT["z", 0]] == [
        2, 3, 4, 5, 7,
    ]  # fmt: skip
    assert LAYOUT.block("mem") == slice(3, 7) and LAYOUT.block("z") == slice(7, 8)
    assert LAYOUT.all("mem") == [("mem", 0, 0), ("mem", 0, 1), ("mem", 1, 0), ("mem", 1, 1)]
    assert LAYOUT.all("mem", 1) == [("mem", 1, 0), ("mem", 1, 1)] and LAYOUT.all("mem", 1, 0) == [("mem", 1, 0)]
    assert LAYOUT.names() == ["p[0]", "p[1]", "p[2]", "mem[0,0]", "mem[0,1]", "mem[1,0]", "mem[1,1]", "z[0]"]


@pytest.mark.parametrize("bit", [("q", 0), ("p", 3), ("p", -1), ("p",), ("p", 0, 0), ("mem", 1), ("mem", 2, 0)])
def test_a_bit_that_is_not_there_is_refused(bit):
    with pytest.raises(BadInput, match="no bit"):
        _ = LAYOUT[bit]


def test_templates_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="no bit that must be 1"):
        template(LAYOUT, "g", [], [("p", 0)], [("p", 1)])
    with pytest.raises(BadInput, match="1 and 0"):
        template(LAYOUT, "g", [("p", 0)], [("p", 0)], [("p", 1)])
    with pytest.raises(BadInput, match="no bit"):
        template(LAYOUT, "g", [("p", 0)], [], [("nowhere", 1)])


def test_a_set_as_matrices():
    first = template(LAYOUT, "a", [("z", 0), ("p", 1), ("p", 1)], [("mem", 0, 1)], [("p", 2), ("p", 0)])
    second = template(LAYOUT, "b", [("p", 0)], [], [("p", 2)])
    assert (first.on, first.off, first.writes) == ((1, 7), (4,), (0, 2))
    found = TemplateSet(LAYOUT, [first, second], padding=5)
    assert found.count == 7
    assert found.literals.T.tolist() == [[0, 1, 0, 0, -1, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0, 0]]
    assert found.needed.tolist() == [2, 1]
    assert found.labels.tolist() == [[1, 0, 1, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0, 0]]
    assert found.written.tolist() == [1, 0, 2, 0, 0, 0, 0, 0]


def test_states_from_blocks():
    found = TemplateSet(LAYOUT, []).state(
        mem=torch.tensor([[[1, 0], [1, 1]], [[0, 0], [0, 1]]]), z=torch.tensor([[1], [0]])
    )
    assert found.dtype == torch.uint8
    assert found.tolist() == [[0, 0, 0, 1, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1, 0]]


@given(st.lists(st.integers(0, 2**40 - 1), min_size=1))
def test_numbers_become_bits_and_numbers_again(numbers):
    bits = to_bits(torch.tensor(numbers), 40)
    assert [[int(b) for b in reversed(f"{number:040b}")] for number in numbers] == bits.tolist()
    assert from_bits(bits).tolist() == numbers


def test_negative_numbers_are_in_twos_complement():
    assert to_bits(torch.tensor([-1, -2, 5]), 3).tolist() == [[1, 1, 1], [0, 1, 1], [1, 0, 1]]
