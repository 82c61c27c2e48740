"""One operation as a user types it: `1339.7364 - 2.7364`, `-5 - -3`, `- 5`, `2 ^ -1`, `cos 0.5`. No torch here."""

import re
from dataclasses import dataclass

from workbench.errors import BadInput
from workbench.hill.operations import OPERATIONS, Operation

NUMBER = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
BETWEEN = {row.symbol: row.name for row in OPERATIONS.values() if row.arity == 2 and len(row.symbol) == 1}
BEFORE = {row.symbol: row.name for row in OPERATIONS.values() if row.arity == 1 and len(row.symbol) == 1}
POWERS = {
    float(row.symbol[1:]): row.name for row in OPERATIONS.values() if row.arity == 1 and row.symbol.startswith("^")
}
LONGEST = 200  # characters

_INFIX = re.compile(rf"{NUMBER}\s*([{re.escape(''.join(BETWEEN))}*^])\s*{NUMBER}")
_PREFIX = re.compile(rf"([{re.escape(''.join(BEFORE))}])\s*{NUMBER}")
_NAMED = re.compile(rf"([a-z]+(?:-[a-z]+)*)\s+{NUMBER}(?:\s+{NUMBER})?")


@dataclass(frozen=True)
class Expression:
    """An operation of the table with its operands as typed, or, where `name` is `power`, `operands[0] ^ exponent`."""

    name: str
    operands: tuple[str, ...]
    exponent: str = ""

    def __str__(self) -> str:
        symbol = f"^{self.exponent}" if self.name == "power" else OPERATIONS[self.name].symbol
        if len(self.operands) == 2 and len(symbol) == 1:
            return f"{self.operands[0]} {symbol} {self.operands[1]}"
        if symbol.startswith("^"):
            base = self.operands[0]
            return f"({base}) ^ {symbol[1:]}" if base[0] in "+-" else f"{base} ^ {symbol[1:]}"
        return f"{symbol} {' '.join(self.operands)}"


def parse(text: str) -> Expression:
    """The operation in `text`; BadInput says what was found instead.

    A number is written as in Python, with an optional sign. `*` is another way to write `x`. `a ^ w` is the exponential
    primitive with the weights [w, 0]: power-identity for w = 1, reciprocal for w = -1, `power` for the weights between,
    which lie outside the selections. A unit reaches no exponent beyond, because its weights end at -1 and 1. A sign
    belongs to its number: `-8 ^ w` is (-8) ^ w.
    """
    if len(text) > LONGEST:
        raise BadInput(f"an operation of {len(text):,} characters, expected at most {LONGEST}")
    text = text.strip()
    if found := _INFIX.fullmatch(text):
        first, symbol, second = found.groups()
        if symbol == "^":
            return _power(first, second)
        return Expression(BETWEEN["x" if symbol == "*" else symbol], (first, second))
    if found := _PREFIX.fullmatch(text):
        return Expression(BEFORE[found[1]], (found[2],))
    if found := _NAMED.fullmatch(text):
        row, operands = _row(found[1]), tuple(word for word in found.groups()[1:] if word)
        if len(operands) != row.arity:
            raise BadInput(f"{row.name} takes {row.arity} number{'s'[: row.arity - 1]}, {len(operands)} were given")
        return Expression(row.name, operands)
    raise BadInput(
        f"{text[:60]!r} is not one operation on numbers; write 1339.7364 - 2.7364, - 5, 3 x 4 (or 3 '*' 4), 1 / 3, "
        f"2 ^ -1, or a name and its numbers: {', '.join(OPERATIONS)}"
    )


def _row(word: str) -> Operation:
    if word not in OPERATIONS:
        raise BadInput(f"unknown operation {word[:40]!r}; choose from {', '.join(OPERATIONS)}")
    return OPERATIONS[word]


def _power(base: str, exponent: str) -> Expression:
    w = float(exponent)
    if abs(w) > 1:
        hint = f"; for a square, {base} x {base}" if w == 2 else ""
        raise BadInput(f"a unit's weight lies between -1 and 1, so it raises to no power of {exponent}{hint}")
    return Expression(POWERS[w], (base,)) if w in POWERS else Expression("power", (base,), exponent)
