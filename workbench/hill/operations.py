"""The operations an exact unit can select: one row each, with the primitive, the selection and the exact reference."""

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from workbench.errors import BadInput

Primitive = Literal["additive", "exponential", "unit-circle", "trigonometric-products"]


@dataclass(frozen=True)
class Domain:
    """Operands an operation has an answer for: finite ones, and not 0 at the places in `nonzero` (0 the first)."""

    nonzero: tuple[int, ...] = ()

    def contains(self, *operands: Any) -> Any:
        """Whether each row of operands lies inside: a bool for numbers, a mask for arrays and tensors of one shape.

        A sampler draws from any distribution and keeps what this accepts.
        """
        checks = [abs(value) < math.inf for value in operands] + [operands[place] != 0 for place in self.nonzero]
        inside = checks[0]
        for check in checks[1:]:
            inside = inside & check
        return inside

    def __str__(self) -> str:
        zero = " and ".join(f"the {('first', 'second')[place]} not 0" for place in self.nonzero)
        return f"finite operands, {zero}" if zero else "finite operands"


@dataclass(frozen=True)
class Operation:
    """One row: `symbol` as written with `arity` operands, `selection` the weights in {-1, 0, 1}.

    A symbol of one character stands between two operands or before a single one; one that begins with `^` stands behind
    its operand, any other before its operands. `exact` is the operation on Python numbers, arrays or tensors, in their
    own arithmetic, and `domain` says for which operands it has an answer. A unary operation has a weight of 0 on the
    second input, or a primitive that does not read it.
    """

    name: str
    symbol: str
    arity: Literal[1, 2]
    primitive: Primitive
    selection: tuple[int, int]
    exact: Callable[..., Any]
    domain: Domain = Domain()


def _cos(x: Any) -> Any:
    """Cosine in the arithmetic of a tensor, an array or a Python number."""
    return _function("cos", x)


def _sin(x: Any) -> Any:
    """Sine in the arithmetic of a tensor, an array or a Python number."""
    return _function("sin", x)


def _function(name: str, x: Any) -> Any:
    if hasattr(x, name):  # a tensor; torch is not imported for it
        return getattr(x, name)()
    if hasattr(x, "__array_ufunc__"):
        import numpy as np

        return getattr(np, name)(x)
    return getattr(math, name)(x)


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


# Hill Space report: the stable selections of section 3.1 (additive), 3.2 (exponential), 3.3 (unit circle: the first
# weight selects, the second is the phase in half turns) and 3.4 (trigonometric products).
OPERATIONS = table(
    [
        Operation("add", "+", 2, "additive", (1, 1), operator.add),
        Operation("subtract", "-", 2, "additive", (1, -1), operator.sub),
        Operation("identity", "+", 1, "additive", (1, 0), operator.pos),
        Operation("negation", "-", 1, "additive", (-1, 0), operator.neg),
        Operation("multiply", "x", 2, "exponential", (1, 1), operator.mul),
        Operation("divide", "/", 2, "exponential", (1, -1), operator.truediv, Domain(nonzero=(1,))),
        Operation("power-identity", "^1", 1, "exponential", (1, 0), operator.pos),
        Operation("reciprocal", "^-1", 1, "exponential", (-1, 0), lambda a: 1 / a, Domain(nonzero=(0,))),
        Operation("cos", "cos", 1, "unit-circle", (1, 0), _cos),
        Operation("sin", "sin", 1, "unit-circle", (-1, 0), _sin),
        Operation("mix", "mix", 1, "unit-circle", (0, 0), lambda a: (_cos(a) + _sin(a)) / 2),
        Operation("cos-difference", "cos-difference", 2, "trigonometric-products", (1, 1), lambda a, b: _cos(a - b)),
        Operation("cos-sum", "cos-sum", 2, "trigonometric-products", (1, 0), lambda a, b: _cos(a + b)),
        Operation("sin-difference", "sin-difference", 2, "trigonometric-products", (0, 1), lambda a, b: _sin(a - b)),
        Operation("sin-sum", "sin-sum", 2, "trigonometric-products", (0, 0), lambda a, b: _sin(a + b)),
    ]
)


def operation(name: str) -> Operation:
    """The operation called `name`; BadInput lists the names there are."""
    if name not in OPERATIONS:
        raise BadInput(f"unknown operation {name!r}; choose from {', '.join(OPERATIONS)}")
    return OPERATIONS[name]
