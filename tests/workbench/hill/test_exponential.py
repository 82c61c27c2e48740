"""Three ways to a product of powers, against rational arithmetic, numpy's operators and the closed-form gradient."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.exponential import METHODS, complex128, exponential, real, sign_exact
from workbench.hill.formats import BITS, ulps

NATIVE = {(1, 1): np.multiply, (1, -1): np.divide}
INF, NAN = math.inf, math.nan


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


def mixed_pairs(n, seed):
    """Signed pairs whose sizes are spread over 24 decades."""
    rng = np.random.default_rng(seed)
    return rng.choice([-1.0, 1.0], (n, 2)) * 10.0 ** rng.uniform(-12, 12, (n, 2))


def apart(method, selection, x):
    with np.errstate(all="ignore"):
        native = NATIVE[selection](x[:, 0], x[:, 1])
    return ulps(METHODS[method](torch.from_numpy(x), f64(*selection)), torch.from_numpy(native))


@pytest.mark.parametrize("selection", NATIVE, ids=["multiply", "divide"])
def test_sign_exact_is_zero_ulp_from_native_on_a_million_pairs_of_mixed_magnitude(selection):
    assert (apart("sign-exact", selection, mixed_pairs(1_000_000, 0)) == 0).all()


@pytest.mark.parametrize("selection", NATIVE, ids=["multiply", "divide"])
def test_sign_exact_is_native_on_any_bit_pattern(selection):
    """Numbers of every size up to overflow and below the normal ones, infinities and NaN."""
    x = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, (300_000, 2)).view(np.float64)
    x[:4] = [[0.0, -5.0], [INF, 0.0], [5e-324, 0.5], [NAN, 1.0]]
    assert (apart("sign-exact", selection, x) == 0).all()


def test_how_far_the_other_two_are_off():
    x = mixed_pairs(200_000, 2)
    assert (apart("real", (1, 1), x) == 0).all()
    divided = apart("real", (1, -1), x)
    assert divided.max() == 1 and 0.2 < (divided > 0).double().mean() < 0.35  # 1 / b is rounded by itself
    for selection in NATIVE:
        rotated = apart("complex", selection, x)
        assert 0.6 < (rotated > 0).double().mean() < 0.95 and 5 < rotated.max() < 100


@pytest.mark.parametrize("dtype", BITS)
def test_every_format_multiplies_and_divides_like_rational_arithmetic_rounded_once(dtype):
    x = torch.from_numpy(mixed_pairs(500, 3)).float().clamp(-100, 100).to(dtype)
    x = x[(x.abs() > 0.01).all(-1)]
    for selection in NATIVE:
        found = sign_exact(x, torch.tensor(selection, dtype=dtype))
        assert found.dtype == dtype
        for (a, b), value in zip(x.tolist(), found.tolist(), strict=True):
            exact = Fraction(a) * Fraction(b) ** selection[1]
            steps = [Fraction(near.item()) for near in neighbours(value, dtype)]
            assert abs(Fraction(value) - exact) <= min(abs(step - exact) for step in steps)


def neighbours(value, dtype):
    at = torch.tensor(value, dtype=dtype)
    return [torch.nextafter(at, torch.tensor(limit, dtype=dtype)) for limit in (INF, -INF)]


SPECIAL = [  # x, W, sign-exact, real; complex gives NaN or an infinity for all
    ((0.0, 0.0), (1, 0), 0.0, 0.0),
    ((5.0, 0.0), (1, 0), 5.0, 5.0),
    ((5.0, 0.0), (1, -1), INF, INF),
    ((-5.0, 0.0), (1, -1), -INF, -INF),
    ((5.0, -0.0), (1, -1), -INF, -INF),
    ((0.0, 0.0), (1, -1), NAN, NAN),
    ((5.0, INF), (1, 0), 5.0, 5.0),
    ((5.0, -INF), (1, 0), 5.0, 5.0),
    ((INF, INF), (1, -1), NAN, NAN),
    ((INF, 0.0), (1, 1), NAN, NAN),
    ((-INF, 2.0), (1, 1), -INF, -INF),
    ((5.0, NAN), (1, 0), 5.0, 5.0),
    ((NAN, 5.0), (1, 0), NAN, NAN),
]


@pytest.mark.parametrize(("x", "W", "signed", "by_real"), SPECIAL)
def test_zeros_infinities_and_nan_have_the_results_told(x, W, signed, by_real):
    for n in (1, 33):  # one vector register and more
        rows, weights = f64(*x).expand(n, 2), f64(*W)
        np.testing.assert_equal(sign_exact(rows, weights).numpy(), np.full(n, signed))
        np.testing.assert_equal(real(rows, weights).numpy(), np.full(n, by_real))
        assert not torch.isfinite(complex128(rows, weights)).any()


def test_signed_zeros_are_the_native_ones():
    pairs = [(0.0, -5.0), (-0.0, 5.0), (-0.0, -5.0), (0.0, 5.0)]
    for a, b in pairs:
        assert math.copysign(1, sign_exact(f64(a, b), f64(1, 1)).item()) == math.copysign(1, a * b)
        assert math.copysign(1, sign_exact(f64(a, b), f64(1, -1)).item()) == math.copysign(1, a / b)


def test_a_fractional_weight_of_a_negative_input_is_a_rotation_or_nan():
    x, W = f64(-8.0, 4.0), f64(1 / 3, 0.5)
    rotated = (complex(-8.0) ** (1 / 3) * 4.0**0.5).real
    assert rotated == pytest.approx(2.0, abs=1e-14)  # 2 (cos 60 degrees) * 2
    assert sign_exact(x, W).item() == pytest.approx(rotated, rel=1e-14)
    assert complex128(x, W).item() == pytest.approx(rotated, rel=1e-14)
    assert real(x, W).isnan()


def test_sign_exact_and_complex_are_one_function_with_the_closed_form_gradient():
    """`dy/dw_i = E (ln|x_i| cos(phi) - pi [x_i < 0] sin(phi))`, E the product of |x|^w, phi the turn."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-10, 10, (400, 3))
    w = rng.uniform(-1, 1, 3)
    E, phi = np.prod(np.abs(x) ** w, axis=1), np.pi * ((x < 0) * w).sum(axis=1)
    value = E * np.cos(phi)
    gradient = E[:, None] * (np.log(np.abs(x)) * np.cos(phi)[:, None] - np.pi * (x < 0) * np.sin(phi)[:, None])
    for method in (sign_exact, complex128):
        W = torch.from_numpy(w).expand(400, 3).clone().requires_grad_()
        y = torch.stack([method(row, weights) for row, weights in zip(torch.from_numpy(x), W, strict=True)])
        y.sum().backward()
        np.testing.assert_allclose(y.detach().numpy(), value, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(W.grad.numpy(), gradient, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("W", [(0.0, 0.0), (1.0, 1.0), (1.0, -1.0), (0.3, -0.7)])
def test_sign_exact_has_a_finite_gradient_for_weights_at_the_selections_and_at_zero(W):
    """At W = 0, where training starts, an input must not count once above and once below the fraction."""
    x = f64(-2.0, 3.0)
    weights = f64(*W).requires_grad_()
    sign_exact(x, weights).backward()
    E, phi = 2.0 ** W[0] * 3.0 ** W[1], math.pi * W[0]
    expected = [E * (math.log(2) * math.cos(phi) - math.pi * math.sin(phi)), E * math.log(3) * math.cos(phi)]
    assert weights.grad.tolist() == pytest.approx(expected, abs=1e-14)
    real_weights = f64(*W).requires_grad_()
    real(x, real_weights).backward()
    assert real_weights.grad[0].isnan()  # the real form has no derivative for a negative input


def test_the_gradient_for_the_inputs_is_right_also_at_zero():
    x = f64(0.0, 3.0).requires_grad_()
    sign_exact(x, f64(1, 1)).backward()
    assert x.grad.tolist() == [3.0, 0.0]
    x = f64(-2.0, -4.0).requires_grad_()
    sign_exact(x, f64(1, -1)).backward()
    assert x.grad.tolist() == [-0.25, 0.125]  # 1/b and -a/b^2


@pytest.mark.parametrize("method", METHODS)
def test_stacks_units_and_more_inputs(method):
    rng = np.random.default_rng(5)
    x, W = rng.uniform(0.5, 2, (3, 7, 4)), rng.uniform(-1, 1, (3, 2, 4))
    expected = np.prod(x[:, :, None] ** W[:, None], axis=-1)
    found = exponential(torch.from_numpy(x), torch.from_numpy(W), method)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)
    shared = exponential(torch.from_numpy(x[0]), torch.from_numpy(W), method)
    np.testing.assert_allclose(shared[0].numpy(), expected[0], rtol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_integers_take_the_weights_format_or_float64(method):
    x = torch.tensor([[6, 4], [-7, 2]])
    assert exponential(x, torch.tensor([1, -1]), method).tolist() == pytest.approx([1.5, -3.5])
    assert exponential(x, torch.tensor([1, -1]), method).dtype == torch.float64
    assert exponential(x, torch.tensor([1.0, 1.0], dtype=torch.float16), method).dtype == torch.float16


def test_the_complex_form_computes_in_double_and_rounds_at_the_end():
    x = torch.from_numpy(mixed_pairs(1_000, 6)).float()
    found = complex128(x, torch.tensor([1.0, 1.0]))
    assert torch.equal(found, (x[:, 0].double() * x[:, 1].double()).float())


def test_an_unknown_method_lists_the_three():
    with pytest.raises(BadInput, match="unknown method 'log'; choose from sign-exact, real, complex"):
        exponential(torch.ones(2), torch.ones(2), "log")
