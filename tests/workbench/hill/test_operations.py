import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.operations import OPERATIONS, Domain, operation, table


def rows_of(primitive):
    return [row for row in OPERATIONS.values() if row.primitive == primitive]


@pytest.mark.parametrize(
    ("primitive", "selections"),
    [
        ("additive", {"add": (1, 1), "subtract": (1, -1), "identity": (1, 0), "negation": (-1, 0)}),
        ("exponential", {"multiply": (1, 1), "divide": (1, -1), "power-identity": (1, 0), "reciprocal": (-1, 0)}),
        ("unit-circle", {"cos": (1, 0), "sin": (-1, 0), "mix": (0, 0)}),
        (
            "trigonometric-products",
            {"cos-difference": (1, 1), "cos-sum": (1, 0), "sin-difference": (0, 1), "sin-sum": (0, 0)},
        ),
    ],
)
def test_the_selections_are_those_of_the_report(primitive, selections):
    assert {row.name: row.selection for row in rows_of(primitive)} == selections


def test_there_are_fifteen():
    assert len(OPERATIONS) == 15


@pytest.mark.parametrize("row", rows_of("additive"), ids=lambda row: row.name)
def test_an_additive_reference_is_the_selected_sum_in_rational_arithmetic(row):
    x = Fraction(1, 3), Fraction(22, 7)
    assert row.exact(*x[: row.arity]) == sum(w * v for w, v in zip(row.selection, x, strict=True))


@pytest.mark.parametrize("row", rows_of("exponential"), ids=lambda row: row.name)
def test_an_exponential_reference_is_the_selected_product_in_rational_arithmetic(row):
    x = Fraction(-1, 3), Fraction(22, 7)
    assert row.exact(*x[: row.arity]) == math.prod(v**w for w, v in zip(row.selection, x, strict=True))


def test_the_trigonometric_references_at_angles_of_known_sine_and_cosine():
    half, root2, root3 = 0.5, math.sqrt(0.5), math.sqrt(0.75)
    pi = math.pi
    known = {
        ("cos", (pi / 3,)): half,
        ("sin", (pi / 3,)): root3,
        ("mix", (pi / 4,)): root2,
        ("cos-difference", (pi / 2, pi / 6)): half,
        ("cos-sum", (pi / 2, pi / 6)): -half,
        ("sin-difference", (pi / 2, pi / 6)): root3,
        ("sin-sum", (pi / 2, pi / 3)): half,
        ("sin-sum", (pi / 6, pi / 6)): root3,
        ("sin-difference", (pi / 6, pi / 3)): -half,
    }
    for (name, angles), value in known.items():
        assert operation(name).exact(*angles) == pytest.approx(value, abs=1e-15), name


@pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)
def test_a_reference_answers_numbers_arrays_and_tensors_in_kind(row):
    a, b = [0.5, -2.0], [3.0, 0.25]
    numbers = [row.exact(*pair[: row.arity]) for pair in zip(a, b, strict=True)]
    array = row.exact(*[np.array(a), np.array(b)][: row.arity])
    tensor = row.exact(*[torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)][: row.arity])
    assert all(type(number) is float for number in numbers)
    assert isinstance(array, np.ndarray) and isinstance(tensor, torch.Tensor)
    np.testing.assert_allclose(array, numbers, rtol=1e-15)
    np.testing.assert_allclose(tensor.numpy(), numbers, rtol=1e-15)


def test_domains_leave_out_divisors_of_zero_and_what_is_not_finite():
    assert operation("divide").domain.contains(0.0, 5.0) is True
    assert operation("divide").domain.contains(5.0, 0.0) is False
    assert operation("divide").domain.contains(5.0, -0.0) is False
    assert operation("reciprocal").domain.contains(0.0) is False
    assert operation("add").domain.contains(5.0, 0.0) is True
    assert operation("add").domain.contains(math.inf, 0.0) is False
    assert operation("cos").domain.contains(math.nan) is False
    a, b = torch.tensor([1.0, 1.0, torch.inf]), torch.tensor([2.0, 0.0, 2.0])
    assert operation("divide").domain.contains(a, b).tolist() == [True, False, False]
    assert operation("divide").domain.contains(a.numpy(), b.numpy()).tolist() == [True, False, False]
    assert str(operation("divide").domain) == "finite operands, the second not 0"
    assert str(Domain()) == "finite operands"


def test_every_reference_is_finite_on_its_domain_and_the_excluded_zero_is_not():
    for row in OPERATIONS.values():
        inside = [(1.5, -2.5), (0.0, 3.0), (3.0, 0.0)]
        for pair in inside:
            operands = pair[: row.arity]
            if row.domain.contains(*operands):
                assert math.isfinite(row.exact(*operands)), row.name
            else:
                with pytest.raises(ZeroDivisionError):
                    row.exact(*operands)


def test_duplicate_names_and_ambiguous_symbols_are_refused():
    add = operation("add")
    with pytest.raises(BadInput, match="named 'add'"):
        table([add, dataclasses.replace(add, symbol="#")])
    with pytest.raises(BadInput, match=r"'add' and 'sum' are both written '\+'"):
        table([add, dataclasses.replace(add, name="sum")])


def test_an_unknown_operation_lists_the_names():
    with pytest.raises(BadInput, match="unknown operation 'plus'; choose from add, subtract, identity, negation, mul"):
        operation("plus")
