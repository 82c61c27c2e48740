import math

import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.constraint import constrain, constrain_snapped, partials, raw_values, saturation, snap

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


def test_partial_derivatives_worked_by_hand():
    """tanh(ln(3)/2) = 1/2 and sigmoid(ln 4) = 4/5: (1 - 1/4) 4/5 = 3/5 and 1/2 * 4/5 * 1/5 = 2/25."""
    W_hat, M_hat = (torch.tensor(value, dtype=torch.float64) for value in (math.log(3) / 2, math.log(4)))
    by_W, by_M = partials(W_hat, M_hat)
    assert (by_W.item(), by_M.item()) == pytest.approx((0.6, 0.08), abs=1e-15)


@pytest.mark.parametrize("dtype", FORMATS)
def test_partial_derivatives_are_what_training_sees(dtype):
    generator = torch.Generator().manual_seed(0)
    W_hat, M_hat = (12 * torch.randn(2, 500, generator=generator)).to(dtype)
    W_hat[:3], M_hat[:3] = torch.tensor([0.0, 1e4, -1e4], dtype=dtype), torch.tensor([-1e4, 1e4, 0.0], dtype=dtype)
    W_hat.requires_grad_(), M_hat.requires_grad_()
    constrain(W_hat, M_hat).sum().backward()
    tolerance = 4 * torch.finfo(dtype).eps
    for found, seen in zip(partials(W_hat.detach(), M_hat.detach()), (W_hat.grad, M_hat.grad), strict=True):
        torch.testing.assert_close(found, seen, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FORMATS)
def test_partial_derivatives_vanish_exactly_where_the_format_saturates_and_not_below(dtype):
    found = saturation(dtype)
    one = torch.ones(1, dtype=dtype)
    assert partials(found.tanh_one * one, one)[0].item() == 0
    assert partials(torch.nextafter(found.tanh_one * one, 0 * one), one)[0].item() > 0
    assert partials(one, found.sigmoid_one * one)[1].item() == 0
    assert partials(one, torch.nextafter(found.sigmoid_one * one, 0 * one))[1].item() > 0
    assert partials(one, -found.sigmoid_zero * one)[1].item() == 0


def test_weights_near_a_saturation_point_snap_onto_it_and_others_stay():
    W = torch.tensor([0.995, -0.995, 0.005, -0.005, 0.5, -0.5, 0.98, 0.02, 1.0, -1.0, 0.0, math.nan])
    found = snap(W)
    assert found[:4].tolist() == [1.0, -1.0, 0.0, 0.0]
    assert torch.equal(found[4:11], W[4:11]) and found[11].isnan()
    assert math.copysign(1, found[3].item()) == 1  # no -0
    assert torch.equal(snap(W, 0.0)[:11], W[:11])
    assert snap(W, 0.05)[6:8].tolist() == [1.0, 0.0]


def test_a_weight_at_the_threshold_itself_stays():
    assert snap(torch.tensor([0.75, 0.25, -0.75]), 0.25).tolist() == [0.75, 0.25, -0.75]


def test_snapped_factors_are_those_of_the_report():
    """tanh(3) = 0.995055, sigmoid(5) = 0.993307, sigmoid(-5) = 0.006693; their product 0.98840 would not snap."""
    W_hat, M_hat = torch.tensor([3.0, -3.0, 3.0, 2.4, 0.005]), torch.tensor([5.0, 5.0, -5.0, 5.0, 5.0])
    assert constrain_snapped(W_hat, M_hat)[:3].tolist() == [1.0, -1.0, 0.0]
    assert constrain_snapped(W_hat, M_hat)[3].item() == pytest.approx(
        math.tanh(2.4), abs=1e-7
    )  # 0.98367 stays, its gate opens
    assert snap(constrain(W_hat, M_hat))[0].item() == pytest.approx(0.98840, abs=1e-5)
    assert constrain_snapped(W_hat, M_hat)[4].item() == pytest.approx(0.005, abs=1e-7)  # tanh does not go to 0
    assert snap(constrain(W_hat, M_hat))[4].item() == 0.0
    assert torch.equal(constrain_snapped(W_hat, M_hat, 0.0), constrain(W_hat, M_hat))


def test_snapping_carries_no_gradient():
    W_hat, M_hat = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    assert not snap(constrain(W_hat, M_hat)).requires_grad
    assert not constrain_snapped(W_hat, M_hat).requires_grad


@pytest.mark.parametrize("threshold", [-0.1, 0.6, math.nan])
def test_a_threshold_outside_its_range_is_refused(threshold):
    with pytest.raises(BadInput, match="snapping threshold"):
        snap(torch.zeros(2), threshold)
    with pytest.raises(BadInput, match="snapping threshold"):
        constrain_snapped(torch.zeros(2), torch.zeros(2), threshold)
