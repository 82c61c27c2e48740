"""One operation answered by an exact unit, beside the machine's own answer (Hill Space report, section 4.1)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from workbench.errors import BadInput
from workbench.hill.constraint import constrain, raw_values, saturation
from workbench.hill.exponential import Method
from workbench.hill.expression import Expression
from workbench.hill.formats import UNCOUNTED, ulps
from workbench.hill.operations import operation
from workbench.hill.unit import HillUnit


@dataclass(frozen=True)
class Answer:
    """What the unit says and what the machine says of the same operands, both in the unit's format.

    `ulps` is the distance between the two in units in the last place, None where one of them alone is not a number.
    """

    expression: str
    operation: str
    primitive: str
    weights: tuple[float, ...]
    unit: float
    native: float
    ulps: int | None


def answer(asked: Expression, dtype: torch.dtype = torch.float64, method: Method = "sign-exact") -> Answer:
    """Ask a unit whose weights are written down, not trained, in `dtype`; a unary operation gets 1 as second input.

    The native answer is Python's own arithmetic for float64 and torch's operator in the other formats; for a power
    between the selections it is Python's `a ** w`, of which the real part, rounded to `dtype`. Raises BadInput for a
    division by zero, an operand beyond the range of `dtype`, or a dtype without saturation points.
    """
    operands = [_operand(word, dtype) for word in asked.operands]
    if asked.name == "power":
        unit = _power_unit(float(asked.exponent), dtype, method)
        defined = operands[0].item() != 0 or float(asked.exponent) >= 0
    else:
        unit = HillUnit.enumerated(asked.name, dtype, method=method)
        defined = bool(operation(asked.name).domain.contains(*operands))
    if not defined:
        raise BadInput(f"{asked}: a division by zero, which has no answer{_vanished(asked, operands)}")
    said = unit(torch.stack([*operands, torch.ones((), dtype=dtype)][:2]))
    native = _native(asked, operands, dtype)
    distance = int(ulps(said, native))
    return Answer(
        expression=str(asked),
        operation=asked.name,
        primitive=unit.primitive,
        weights=tuple(unit.W.tolist()),
        unit=said.item(),
        native=native.item(),
        ulps=None if distance == UNCOUNTED else distance,
    )


def shortest(value: float, dtype: torch.dtype) -> str:
    """The shortest decimal that `dtype` reads back as `value`, itself a number of `dtype`."""
    if dtype == torch.float64 or not math.isfinite(value):
        return repr(value)
    candidates = (float(f"{value:.{digits}g}") for digits in range(1, 18))
    return repr(next(one for one in candidates if torch.tensor(one, dtype=dtype).item() == value))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _operand(word: str, dtype: torch.dtype) -> Tensor:
    value = torch.tensor(float(word), dtype=dtype)
    if not torch.isfinite(value):
        raise BadInput(f"{word[:40]} is beyond the range of {_name(dtype)}, at most {torch.finfo(dtype).max:.4g}")
    return value


def _vanished(asked: Expression, operands: list[Tensor]) -> str:
    """A remark on an operand that is 0 only because the format holds nothing so small."""
    for word, value in zip(asked.operands, operands, strict=True):
        if value == 0 and any(digit in word.lower().partition("e")[0] for digit in "123456789"):
            return f"; {word[:40]} rounds to 0 in {_name(value.dtype)}"
    return ""


def _power_unit(w: float, dtype: torch.dtype, method: Method) -> HillUnit:
    """The exponential unit with weights [w, 0] for -1 < w < 1, the first as near as its raw parameters come.

    Either tanh makes the weight under an open gate, or the gate does under a saturated tanh (one half, as sigmoid(0),
    only so); of both the neighbours are tried too, since neither function reaches every number of the format.
    """
    found = saturation(dtype)
    size = torch.tensor(abs(w), dtype=torch.float64)
    near = 1 + torch.finfo(dtype).eps * torch.arange(-8, 9, dtype=torch.float64)
    tanh, gate = torch.atanh(size) * near, torch.logit(size).clamp(min=-2 * found.sigmoid_zero) * near
    W_hat = math.copysign(1, w) * torch.cat([tanh, torch.full_like(gate, 2 * found.tanh_one)]).to(dtype)
    M_hat = torch.cat([torch.full_like(tanh, 2 * found.sigmoid_one), gate]).to(dtype)
    best = (constrain(W_hat, M_hat).double() - w).abs().argmin()
    W_zero, M_zero = raw_values((0,), dtype)
    return HillUnit(
        torch.cat([W_hat[best, None], W_zero]),
        torch.cat([M_hat[best, None], M_zero]),
        primitive="exponential",
        method=method,
        trainable=False,
    )


def _native(asked: Expression, operands: list[Tensor], dtype: torch.dtype) -> Tensor:
    if asked.name == "power":
        return torch.tensor(_power(operands[0].item(), float(asked.exponent)), dtype=dtype)
    exact = operation(asked.name).exact
    if dtype == torch.float64:
        return torch.tensor(exact(*(value.item() for value in operands)), dtype=dtype)
    return exact(*operands)


def _power(base: float, w: float) -> float:
    try:
        return base**w if base >= 0 else (complex(base) ** w).real
    except OverflowError:  # Python's word for a result beyond float64
        return math.inf if base > 0 else math.copysign(math.inf, math.cos(math.pi * w))
