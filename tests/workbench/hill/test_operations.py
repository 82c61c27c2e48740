import dataclasses
from fractions import Fraction

import pytest

from workbench.errors import BadInput
from workbench.hill.operations import OPERATIONS, operation, table


def test_the_table_holds_the_four_additive_selections_of_the_report():
    found = {row.name: row.selection for row in OPERATIONS.values()}
    assert found == {"add": (1, 1), "subtract": (1, -1), "identity": (1, 0), "negation": (-1, 0)}


@pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)
def test_the_exact_reference_is_the_selected_sum_in_rational_arithmetic(row):
    x = Fraction(1, 3), Fraction(22, 7)
    assert row.exact(*x[: row.arity]) == sum(w * v for w, v in zip(row.selection, x, strict=True))


def test_duplicate_names_and_ambiguous_symbols_are_refused():
    add = operation("add")
    with pytest.raises(BadInput, match="named 'add'"):
        table([add, dataclasses.replace(add, symbol="#")])
    with pytest.raises(BadInput, match=r"'add' and 'sum' are both written '\+'"):
        table([add, dataclasses.replace(add, name="sum")])


def test_an_unknown_operation_lists_the_names():
    with pytest.raises(BadInput, match="unknown operation 'plus'; choose from add, subtract, identity, negation"):
        operation("plus")
