import pytest
import torch

from workbench.errors import BadInput
from workbench.ntk import kernel
from workbench.ntk.decimal import Decimal
from workbench.ntk.decimal_trace import trace

FOUR = Decimal(4)


def test_a_negative_difference_step_by_step() -> None:
    found = trace(FOUR, 12, 30, True)  # the tens decide, the two pairs above agree and hand on
    assert found.written.tolist() == [11, 0, 0, 0, 1, 8] and found.flips == 0
    shown = [(one.blocks["dif"], one.blocks["ab"], one.blocks["ba"], one.blocks["out"]) for one in found.snapshots]
    nothing, dif = [""] * 4, ["0", "0", "-2", "2"]
    assert shown == [
        (nothing, nothing, nothing, [""] * 5),
        (dif, nothing, nothing, ["0", "", "", "", ""]),
        (dif, ["", "", "1", "0"], ["", "", "0", "1"], ["0", "", "", "", ""]),
        (dif, ["", "1", "1", "0"], ["", "0", "0", "1"], ["0", "", "", "", ""]),
        (dif, ["1", "1", "1", "0"], ["0", "0", "0", "1"], ["0", "", "", "", ""]),
        (dif, ["1", "1", "1", "0"], ["0", "0", "0", "1"], ["0", "0", "0", "1", "8"]),
    ]
    assert [one.blocks["sign"] for one in found.snapshots] == [[""]] * 5 + [["-"]]
    assert found.steps == 5


def test_matches_and_means_of_the_first_step_are_the_kernels() -> None:
    found = trace(FOUR, 1, 1, False)
    first = found.snapshots[1]
    assert first.matched == 5  # four pairs and the operator
    n, m = FOUR.templates.count, torch.tensor(5)
    g, h = float(kernel.gain(m)), float(kernel.leak(m, n))
    sums = 3  # of sums that were written, 0 has one pair and keeps itself; 2 has three pairs
    assert first.lowest_one == pytest.approx(g - h * (sums + 1), abs=1e-12)
    assert first.highest_zero == pytest.approx(-h * 1, abs=1e-12)  # out[4,1] is written by one template


def test_what_is_shown_of_a_sum_are_its_own_blocks() -> None:
    start = trace(FOUR, 9999, 1, False).snapshots[0]
    assert list(start.blocks) == ["a", "op", "b", "sum", "carry", "sign", "out"]
    assert (start.blocks["a"], start.blocks["op"], start.blocks["b"]) == (["9"] * 4, ["+"], ["0", "0", "0", "1"])
    assert (start.step, start.matched) == (0, 0)


def test_an_operand_without_a_place_is_refused() -> None:
    with pytest.raises(BadInput, match="not one of 0 to 9999"):
        trace(FOUR, 10_000, 1, False)
