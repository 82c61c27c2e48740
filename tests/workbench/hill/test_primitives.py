import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.hill.operations import OPERATIONS
from workbench.hill.primitives import additive, compute, trigonometric_products, unit_circle

numbers = st.floats(allow_nan=False, allow_infinity=False)
angles = np.random.default_rng(0).uniform(-20, 20, (2_000, 2))


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


@given(numbers, numbers)
def test_a_sum_and_a_difference_are_pythons_own(a, b):
    x = torch.tensor([a, b], dtype=torch.float64)
    assert additive(x, torch.tensor([1.0, 1.0], dtype=torch.float64)).item() == a + b
    assert additive(x, torch.tensor([1.0, -1.0], dtype=torch.float64)).item() == a - b


def test_leading_axes_are_kept_and_more_inputs_are_summed():
    x = torch.arange(24.0).reshape(2, 3, 4)
    found = additive(x, torch.tensor([1.0, 1.0, 1.0, -1.0]))  # digit + digit + carry - answer digit
    assert found.shape == (2, 3)
    assert found[1, 2].item() == 20 + 21 + 22 - 23


def test_a_weight_of_zero_does_not_silence_infinity():
    assert additive(torch.tensor([1.0, torch.inf]), torch.tensor([1.0, 0.0])).isnan()


def test_integers_under_integer_weights_are_summed_as_integers():
    found = additive(torch.tensor([2**62, 3]), torch.tensor([1, -1]))
    assert found.dtype == torch.int64 and found.item() == 2**62 - 3  # float64 would round the 3 away


def test_low_precision_inputs_take_the_format_torch_promotes_to():
    x = torch.tensor([0.1, 0.2], dtype=torch.float16)
    wide = additive(x, f64(1, 1))
    assert wide.dtype == torch.float64
    assert wide.item() == float(np.float16(0.1)) + float(np.float16(0.2))
    assert additive(torch.tensor([70_000, 1]), torch.tensor([1.0, 1.0], dtype=torch.float16)).isinf()


@pytest.mark.parametrize("primitive", ["additive", "exponential", "unit-circle", "trigonometric-products"])
def test_a_stack_of_units_is_each_unit_by_itself(primitive):
    rng = np.random.default_rng(1)
    x, W = torch.from_numpy(rng.uniform(-3, 3, (4, 9, 2))), torch.from_numpy(rng.uniform(-1, 1, (4, 3, 2)))
    together, shared = compute(primitive, x, W), compute(primitive, x[0], W)
    assert together.shape == shared.shape == (4, 9, 3)
    for stack in range(4):
        for unit in range(3):
            alone = compute(primitive, x[stack], W[stack, unit])
            torch.testing.assert_close(together[stack, :, unit], alone, rtol=1e-12, atol=1e-13)
            torch.testing.assert_close(
                shared[stack, :, unit], compute(primitive, x[0], W[stack, unit]), rtol=1e-12, atol=1e-13
            )


def test_the_unit_circle_is_the_formula_at_any_weights():
    rng = np.random.default_rng(2)
    for selector, phase in rng.uniform(-1, 1, (20, 2)):
        t = angles[:, 0] + np.pi * phase
        expected = (np.cos(t) * (1 + selector) + np.sin(t) * (1 - selector)) / 2
        found = unit_circle(torch.from_numpy(angles), f64(selector, phase))
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-14)


def test_the_phase_turns_by_half_turns():
    a = torch.from_numpy(angles)
    for selector in (1.0, -1.0, 0.0):
        plain = unit_circle(a, f64(selector, 0))
        for phase in (1.0, -1.0):
            torch.testing.assert_close(unit_circle(a, f64(selector, phase)), -plain, atol=1e-14, rtol=0)
    quarter = unit_circle(a, f64(1, -0.5))  # cos(t - pi/2) = sin(t), out of reach of a selection
    torch.testing.assert_close(quarter, torch.sin(a[:, 0]), atol=1e-14, rtol=0)


def test_the_unit_circle_reads_the_first_input_only():
    assert unit_circle(f64(0.5, torch.nan), f64(1, 0)).item() == pytest.approx(math.cos(0.5), abs=1e-16)
    assert unit_circle(f64(torch.inf, 0.0), f64(1, 0)).isnan()


@pytest.mark.parametrize("name", ["cos", "sin", "mix"])
def test_single_angle_selections_are_the_library_functions_within_an_ulp(name):
    row = OPERATIONS[name]
    found = unit_circle(torch.from_numpy(angles), f64(*row.selection)).numpy()
    exact = np.array([row.exact(a) for a in angles[:, 0].tolist()])
    np.testing.assert_allclose(found, exact, atol=2.0**-53, rtol=2.0**-52)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ((1, 1), lambda a, b: np.cos(a - b)),
        ((1, 0), lambda a, b: np.cos(a + b)),
        ((0, 1), lambda a, b: np.sin(a - b)),
        ((0, 0), lambda a, b: np.sin(a + b)),
    ],
)
def test_the_four_trigonometric_selections(selection, expected):
    """To 2 ulps of 1, beyond what a - b and a + b themselves are rounded by (numpy's longdouble has 11 more bits)."""
    a, b = angles.astype(np.longdouble).T
    found = trigonometric_products(torch.from_numpy(angles), f64(*selection)).numpy()
    assert np.abs(found - expected(a, b)).max() < 2 * 2.0**-52


def test_between_the_selections_the_mixing_coefficients_are_products():
    """The report's rank-one coefficients: w1 w2, w1 (1 - w2), (1 - w1) w2, (1 - w1)(1 - w2)."""
    rng = np.random.default_rng(3)
    a, b = angles.T
    four = np.stack([np.cos(a - b), np.cos(a + b), np.sin(a - b), np.sin(a + b)])
    for w1, w2 in rng.uniform(-1, 1, (20, 2)):
        mixed = np.array([w1 * w2, w1 * (1 - w2), (1 - w1) * w2, (1 - w1) * (1 - w2)]) @ four
        found = trigonometric_products(torch.from_numpy(angles), f64(w1, w2)).numpy()
        np.testing.assert_allclose(found, mixed, atol=1e-13)


def test_angles_that_are_not_finite_have_no_sine():
    for bad in (torch.inf, torch.nan):
        assert trigonometric_products(f64(bad, 1.0), f64(1, 1)).isnan()
        assert trigonometric_products(f64(1.0, bad), f64(0, 0)).isnan()


def test_integer_angles_under_integer_weights_are_answered_in_float64():
    x = torch.tensor([2, 1])
    assert unit_circle(x, torch.tensor([1, 0])).item() == pytest.approx(math.cos(2), abs=1e-15)
    assert trigonometric_products(x, torch.tensor([0, 0])).item() == pytest.approx(math.sin(3), abs=1e-15)


@pytest.mark.parametrize("primitive", ["additive", "exponential", "unit-circle", "trigonometric-products"])
def test_gradients_agree_with_finite_differences(primitive):
    rng = np.random.default_rng(4)
    x = torch.from_numpy(rng.uniform(0.5, 3, (5, 2)) * rng.choice([-1, 1], (5, 2))).requires_grad_()
    W = torch.from_numpy(rng.uniform(-0.9, 0.9, (3, 2))).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, W: compute(primitive, x, W), (x, W))


def test_unknown_primitives_and_shapes_that_do_not_fit_are_refused():
    with pytest.raises(BadInput, match="unknown primitive 'log'; choose from additive, exponential, unit-circle, trig"):
        compute("log", torch.zeros(2), torch.zeros(2))
    with pytest.raises(BadInput, match=r"expected \[\*batch 2\]"):
        unit_circle(torch.zeros(4, 3), torch.zeros(3))
    with pytest.raises(BadInput, match=r"expected \[\*batch 2\]"):
        trigonometric_products(torch.zeros(4, 3), torch.zeros(3))
