"""The operations an exact unit can select: one row each, with the primitive, the selection and the exact reference."""

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from workbench.errors import BadInput

Primitive = Literal["additive"]


@dataclass(frozen=True)
class Operation:
    """One row: `symbol` as written before or between `arity` operands, `selection` the weights in {-1, 0, 1}.

    `exact` is the operation on Python numbers, arrays or tensors, in their own arithmetic. A unary operation has a
    weight of 0 on the second input.
    """

    name: str
    symbol: str
    arity: Literal[1, 2]
    primitive: Primitive
    selection: tuple[int, int]
    exact: Callable[..., Any]


def table(rows: Iterable[Operation]) -> dict[str, Operation]:
    """The rows by name; BadInput when two share a name, or a symbol with the same number of operands."""
    found: dict[str, Operation] = {}
    signs: dict[tuple[str, int], str] = {}
    for row in rows:
        if row.name in found:
            raise BadInput(f"two operations are named {row.name!r}; rename one")
        if (other := signs.setdefault((row.symbol, row.arity), row.name)) != row.name:
            raise BadInput(f"operations {other!r} and {row.name!r} are both written {row.symbol!r}; change one symbol")
        found[row.name] = row
    return found


# Hill Space report, section 3.1: the four stable selections of the additive primitive.
OPERATIONS = table(
    [
        Operation("add", "+", 2, "additive", (1, 1), operator.add),
        Operation("subtract", "-", 2, "additive", (1, -1), operator.sub),
        Operation("identity", "+", 1, "additive", (1, 0), operator.pos),
        Operation("negation", "-", 1, "additive", (-1, 0), operator.neg),
    ]
)


def operation(name: str) -> Operation:
    """The operation called `name`; BadInput lists the names there are."""
    if name not in OPERATIONS:
        raise BadInput(f"unknown operation {name!r}; choose from {', '.join(OPERATIONS)}")
    return OPERATIONS[name]
