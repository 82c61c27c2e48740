import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.ntk.counting import Rounding, needed, right


def given_in_turn(values: torch.Tensor):
    """A draw that hands out these outputs, and would fail if asked for more."""
    at = [0]

    def draw(nets: int) -> torch.Tensor:
        at[0] += nets
        assert at[0] <= len(values)
        return values[at[0] - nets : at[0]]

    return draw


def rounding(wanted, threshold=0.0, read=True) -> Rounding:
    wanted = torch.tensor(wanted)
    full = torch.ones_like(wanted)
    return Rounding(wanted, full * torch.as_tensor(threshold), torch.as_tensor(read) & full)


# Two inputs of two bits. Averages of bit 0 of input 1 after 1, 2, 3, 4 networks: -4, -1, 0, 0.5; all else is right.
OUTPUTS = torch.tensor(
    [
        [[1.0, -1.0], [-4.0, -0.5]],
        [[1.0, -1.0], [2.0, -0.5]],
        [[1.0, -1.0], [2.0, -0.5]],
        [[1.0, -1.0], [2.0, -0.5]],
    ]
)
WANTED = [[True, False], [True, False]]


@pytest.mark.parametrize("batch", [1, 2, 3, 4])
def test_a_count_made_by_hand(batch):
    """Input 1 needs four: at three networks its average is exactly 0, which is not above the threshold."""
    tests = torch.tensor([9, 1])
    found = needed(given_in_turn(OUTPUTS), {"zero": rounding(WANTED)}, tests, (0.1, 0.0), most=4, batch=batch)
    assert found == {("zero", 0.1): 1, ("zero", 0.0): 4}  # 9 of 10 are exactly an accuracy of 0.9


def test_thresholds_and_masks_change_the_count():
    tests = torch.tensor([1, 1])
    every = {
        "zero": rounding(WANTED),
        "lower": rounding(WANTED, [[0.0, 0.0], [-2.0, -0.4]]),  # -1 is above -2, and -0.5 below -0.4
        "wrong": rounding(WANTED, [[0.0, 0.0], [-2.0, -0.6]]),  # -0.5 is above -0.6
        "unread": rounding(WANTED, 0.0, [[True, True], [False, True]]),
    }
    found = needed(given_in_turn(OUTPUTS), every, tests, (0.0,), most=4, batch=3)
    assert found == {("zero", 0.0): 4, ("lower", 0.0): 2, ("wrong", 0.0): None, ("unread", 0.0): 1}


def test_the_first_count_stays_even_if_accuracy_falls_again():
    values = torch.tensor([[[1.0]], [[-9.0]], [[1.0]]])
    draw = given_in_turn(values)
    assert needed(draw, {"a": rounding([[True]])}, torch.tensor([3]), (0.0,), most=3, batch=3) == {("a", 0.0): 1}


def test_no_more_networks_are_drawn_than_needed():
    draw = given_in_turn(OUTPUTS[:2])  # a third would fail
    assert needed(draw, {"a": rounding(WANTED)}, torch.tensor([1, 0]), (0.0,), batch=1) == {("a", 0.0): 1}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7), st.sampled_from([0.0, 0.1, 0.5]))
def test_it_is_the_first_size_at_which_a_plain_loop_finds_the_accuracy(seed, batch, error):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(12, 4, 3, generator=generator, dtype=torch.float64) + 0.5
    how = Rounding(
        torch.rand(4, 3, generator=generator) < 0.7,
        torch.randn(4, 3, generator=generator).double() / 5,
        torch.rand(4, 3, generator=generator) < 0.8,
    )
    tests = torch.randint(0, 5, (4,), generator=generator) + 1
    expected = None
    for size in range(12, 0, -1):
        average = values[:size].mean(dim=0)
        correct = sum(
            int(tests[i])
            for i in range(4)
            if all(bool(average[i, j] > how.threshold[i, j]) == bool(how.wanted[i, j])
                   for j in range(3) if how.read[i, j])
        )  # fmt: skip
        if correct / int(tests.sum()) >= 1 - error:
            expected = size
    assert needed(given_in_turn(values), {"a": how}, tests, (error,), most=12, batch=batch) == {("a", error): expected}


def test_right_looks_at_every_read_bit():
    sums = torch.tensor([[[3.0, -1.0]]])
    assert right(sums, torch.tensor([3]), rounding([[True, False]])).tolist() == [[True]]
    assert right(sums, torch.tensor([3]), rounding([[True, False]], 1.0)).tolist() == [[False]]  # an average of 1


@pytest.mark.parametrize("error", [-0.1, 1.0])
def test_errors_that_are_no_shares_are_refused(error):
    with pytest.raises(BadInput, match="shares"):
        needed(given_in_turn(OUTPUTS), {"a": rounding(WANTED)}, torch.tensor([1, 1]), (error,))
