import math

import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.constraint import constrain, raw_values, saturation

FORMATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def test_a_value_worked_by_hand():
    W = constrain(
        torch.tensor(math.log(3.0) / 2, dtype=torch.float64), torch.tensor(math.log(4.0), dtype=torch.float64)
    )
    assert W.item() == pytest.approx(0.5 * 0.8, abs=1e-15)  # tanh(ln(3)/2) = 1/2, sigmoid(ln 4) = 4/5


@pytest.mark.parametrize(
    ("dtype", "tanh_one", "sigmoid_one"),
    [(torch.float16, 4.51, 8.32), (torch.float32, 9.02, 16.64), (torch.float64, 19.07, 36.74)],
)
def test_thresholds_are_the_published_ones(dtype, tanh_one, sigmoid_one):
    """The report's table of section 2.2 gives the first multiple of 0.01 at which each is exactly 1."""
    found = saturation(dtype)
    grid = torch.arange(1, 5000, dtype=torch.float64) / 100
    assert grid[grid.to(dtype).double() >= found.tanh_one][0] == tanh_one
    assert grid[grid.to(dtype).double() >= found.sigmoid_one][0] == sigmoid_one


@pytest.mark.parametrize("dtype", FORMATS)
def test_thresholds_are_the_smallest_and_everything_above_saturates(dtype):
    found = saturation(dtype)
    cases = [
        (found.tanh_one, torch.tanh, 1.0),
        (found.sigmoid_one, torch.sigmoid, 1.0),
        (found.sigmoid_zero, lambda x: torch.sigmoid(-x), 0.0),
    ]
    for threshold, function, limit in cases:
        at = torch.tensor([threshold], dtype=dtype)
        below = torch.nextafter(at, torch.zeros_like(at))
        assert function(at).item() == limit and function(below).item() != limit
        above = torch.linspace(threshold, 4 * threshold, 10_001, dtype=torch.float64).to(dtype)
        assert (function(above[above >= at]) == limit).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_thresholds_agree_with_trying_every_number_of_a_16_bit_format(dtype):
    every = torch.arange(0, 2**15, dtype=torch.int16).view(dtype)
    every = every[torch.isfinite(every)]
    found = saturation(dtype)
    assert every[torch.tanh(every) == 1].min().item() == found.tanh_one
    assert every[torch.sigmoid(every) == 1].min().item() == found.sigmoid_one
    assert every[torch.sigmoid(-every) == 0].min().item() == found.sigmoid_zero


@pytest.mark.parametrize("dtype", FORMATS)
def test_raw_values_are_finite_and_give_exactly_the_selection_with_no_gradient_left(dtype):
    selection = (-1, 0, 1)
    W_hat, M_hat = raw_values(selection, dtype)
    assert W_hat.dtype == M_hat.dtype == dtype
    assert torch.isfinite(W_hat).all() and torch.isfinite(M_hat).all()
    W_hat.requires_grad_(), M_hat.requires_grad_()
    W = constrain(W_hat, M_hat)
    assert W.tolist() == [-1.0, 0.0, 1.0]
    W.sum().backward()
    assert W_hat.grad.tolist() == M_hat.grad.tolist() == [0.0, 0.0, 0.0]


def test_a_weight_outside_the_selections_and_a_format_that_does_not_saturate_are_refused():
    with pytest.raises(BadInput, match=r"0\.5.*expected -1, 0 or 1"):
        raw_values((1, 0.5), torch.float64)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"torch\.int64"):
        raw_values((1, 1), torch.int64)
