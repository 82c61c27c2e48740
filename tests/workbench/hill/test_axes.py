import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.axes import meet


def answers(x, W):
    x, W = meet(x, W)
    return torch.broadcast_shapes(x.shape, W.shape)[:-1]


@pytest.mark.parametrize(
    ("x", "W", "expected"),
    [
        ((2,), (2,), ()),
        ((5, 2), (2,), (5,)),
        ((4, 5, 2), (2,), (4, 5)),
        ((5, 2), (3, 2), (5, 3)),
        ((5, 2), (7, 3, 2), (7, 5, 3)),
        ((7, 5, 2), (7, 3, 2), (7, 5, 3)),
        ((6, 7, 5, 2), (6, 7, 3, 2), (6, 7, 5, 3)),
        ((1, 5, 2), (7, 1, 2), (7, 5, 1)),
        ((0, 2), (2,), (0,)),
    ],
)
def test_samples_units_and_stacks_have_their_places(x, W, expected):
    assert answers(torch.zeros(x), torch.zeros(W)) == expected


@pytest.mark.parametrize(
    ("x", "W"), [((5, 3), (2,)), ((5, 1), (2,)), ((), (2,)), ((2,), ()), ((), ()), ((2,), (3, 2)), ((5, 2), (2, 3))]
)
def test_other_shapes_are_refused(x, W):
    with pytest.raises(BadInput, match=r"inputs of shape .* expected \[\*batch"):
        meet(torch.zeros(x), torch.zeros(W))


def test_two_stacks_and_a_wrong_number_of_inputs_are_refused():
    with pytest.raises(BadInput, match=r"inputs of a stack \[4\] and units of a stack \[7\]"):
        meet(torch.zeros(4, 5, 2), torch.zeros(7, 3, 2))
    with pytest.raises(BadInput, match=r"expected \[\*batch 2\]"):
        meet(torch.zeros(5, 3), torch.zeros(3), inputs=2)


@pytest.mark.parametrize(
    ("x", "W", "floating", "together"),
    [
        (torch.int64, torch.float16, True, torch.float16),
        (torch.float16, torch.float64, True, torch.float64),
        (torch.float64, torch.float32, True, torch.float64),
        (torch.float16, torch.bfloat16, True, torch.float32),
        (torch.int64, torch.int8, True, torch.float64),
        (torch.bool, torch.bool, True, torch.float64),
        (torch.int64, torch.int8, False, torch.int64),
    ],
)
def test_inputs_and_weights_meet_in_one_format(x, W, floating, together):
    left, right = meet(torch.zeros(5, 2, dtype=x), torch.zeros(2, dtype=W), floating=floating)
    assert left.dtype == right.dtype == together
