from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.hill.error_free import (
    TWO_TERMS,
    division_residual,
    split,
    two_difference,
    two_product,
    two_quotient,
    two_sum,
    two_terms,
)

FORMATS = [(torch.float32, 32, 24), (torch.float64, 64, 53)]
LIMITS = {32: 2.0**40, 64: 2.0**300}  # products and their errors stay inside the format


def numbers(width: int, smallest: float | None = None):
    low = LIMITS[width]
    values = st.floats(-low, low, width=width)
    return values.filter(lambda v: abs(v) >= smallest) if smallest else values


def tensors(dtype, *values):
    return [torch.tensor([value], dtype=dtype) for value in values]


def exactly(*parts: torch.Tensor) -> Fraction:
    return sum(Fraction(part.item()) for part in parts)


def test_cases_worked_by_hand():
    """2^53 + 1 is a tie that rounds to even; (2^27 + 1)^2 = 2^54 + 2^28 + 1 loses its 1; fl(1/3) misses 2^-54/3."""
    a, b = tensors(torch.float64, 2.0**53, 1.0)
    assert [part.item() for part in two_sum(a, b)] == [2.0**53, 1.0]
    assert [part.item() for part in two_difference(b, a)] == [-(2.0**53) + 1, 0.0]
    (c,) = tensors(torch.float64, 2.0**27 + 1)
    assert [part.item() for part in two_product(c, c)] == [2.0**54 + 2.0**28, 1.0]
    one, three = tensors(torch.float64, 1.0, 3.0)
    assert division_residual(one, three, one / three).item() == 2.0**-54
    assert two_quotient(one, three)[1].item() == 2.0**-54 / 3


@pytest.mark.parametrize(("dtype", "width", "digits"), FORMATS)
@given(data=st.data())
def test_a_sum_and_its_error_are_exactly_the_sum(dtype, width, digits, data):
    a, b = tensors(dtype, data.draw(numbers(width)), data.draw(numbers(width)))
    s, e = two_sum(a, b)
    assert torch.equal(s, a + b) and exactly(s, e) == exactly(a, b)
    d, e = two_difference(a, b)
    assert torch.equal(d, a - b) and exactly(d, e) == exactly(a) - exactly(b)


@pytest.mark.parametrize(("dtype", "width", "digits"), FORMATS)
@given(data=st.data())
def test_the_parts_of_a_split_are_short_and_add_up(dtype, width, digits, data):
    (a,) = tensors(dtype, data.draw(numbers(width, smallest=2.0**-40)))
    high, low = split(a)
    assert exactly(high, low) == exactly(a)
    for part in (high, low):
        numerator = abs(Fraction(part.item()).numerator)
        bits = numerator.bit_length() - ((numerator & -numerator).bit_length() - 1 if numerator else 0)
        assert bits <= digits // 2


@pytest.mark.parametrize(("dtype", "width", "digits"), FORMATS)
@given(data=st.data())
def test_a_product_and_its_error_are_exactly_the_product(dtype, width, digits, data):
    a, b = tensors(dtype, *(data.draw(numbers(width, smallest=2.0**-40)) for _ in range(2)))
    p, e = two_product(a, b)
    assert torch.equal(p, a * b) and exactly(p, e) == exactly(a) * exactly(b)


@pytest.mark.parametrize(("dtype", "width", "digits"), FORMATS)
@given(data=st.data())
def test_the_residual_of_a_division_is_exact_and_its_error_nearly(dtype, width, digits, data):
    a, b = tensors(dtype, *(data.draw(numbers(width, smallest=2.0**-20)) for _ in range(2)))
    q, e = two_quotient(a, b)
    assert torch.equal(q, a / b)
    residual = division_residual(a, b, q)
    assert exactly(residual) == exactly(a) - exactly(q) * exactly(b)
    error = exactly(a) / exactly(b) - exactly(q)
    assert abs(exactly(e) - error) <= abs(error) / 2**digits


def test_the_exact_operations_by_name_are_those_of_the_operations_table():
    from workbench.hill.operations import operation

    rng = np.random.default_rng(0)
    a, b = torch.from_numpy(rng.uniform(-1e4, 1e4, (2, 200)))
    for name in TWO_TERMS:
        head, tail = two_terms(name, a, b)
        assert torch.equal(head, operation(name).exact(a, b))
        for i in range(200):
            exact = operation(name).exact(Fraction(a[i].item()), Fraction(b[i].item()))
            assert abs(exactly(head[i]) + exactly(tail[i]) - exact) <= abs(exactly(tail[i])) / 2**52


def test_many_values_keep_their_shape():
    a = torch.arange(1.0, 13.0).reshape(3, 4)
    for name in TWO_TERMS:
        head, tail = two_terms(name, a, a + 0.1)
        assert head.shape == tail.shape == (3, 4)


def test_other_formats_and_mixed_ones_are_refused():
    half, single, double = (torch.ones(2, dtype=d) for d in (torch.float16, torch.float32, torch.float64))
    for wrong in (lambda: two_sum(half, half), lambda: split(half), lambda: two_product(single, double)):
        with pytest.raises(BadInput, match="expected both float32 or both float64"):
            wrong()
    with pytest.raises(BadInput, match="no error-free form of 'power'; choose from add, subtract, multiply, divide"):
        two_terms("power", single, single)


@pytest.mark.parametrize(("dtype", "digits", "smallest"), [(torch.float32, 24, -101), (torch.float64, 53, -968)])
def test_a_product_is_exact_down_to_the_stated_size(dtype, digits, smallest):
    """(1 + u)^2 2^k loses u^2 2^k, here a subnormal number; at half the size and less it would be nothing at all."""
    u, half = 2.0 ** (1 - digits), smallest // 2
    a, b = tensors(dtype, (1 + u) * 2.0**half, (1 + u) * 2.0 ** (smallest - half))
    p, e = two_product(a, b)
    assert e.item() == u * u * 2.0**smallest
    assert exactly(p, e) == exactly(a) * exactly(b)
