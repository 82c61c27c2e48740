"""Hill Space: `W = tanh(W_hat) * sigmoid(M_hat)`, and raw values which a number format rounds to exactly -1, 0 or 1.

The constraint is that of Trask et al. 2018 (NALU); its name and its saturation points are those of the Hill Space
report, sections 2, 2.1 and 2.2.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from workbench.errors import BadInput

_BITS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
_WIDTH = (
    33  # values evaluated at once: more than one vector register of every CPU, and one left over for the scalar code
)


def constrain(W_hat: Float[Tensor, "*shape"], M_hat: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """`W = tanh(W_hat) * sigmoid(M_hat)`, each weight in [-1, 1] (report section 2)."""
    return torch.tanh(W_hat) * torch.sigmoid(M_hat)


@dataclass(frozen=True)
class Saturation:
    """Smallest positive raw values of one format at which rounding makes the constraint's factors exact.

    `tanh(x) == 1` from `tanh_one`, `sigmoid(x) == 1` from `sigmoid_one`, `sigmoid(-x) == 0` from `sigmoid_zero` on.
    """

    tanh_one: float
    sigmoid_one: float
    sigmoid_zero: float


def _smallest(reached: Callable[[Tensor], Tensor], dtype: torch.dtype) -> float:
    """The smallest positive number of `dtype` at which `reached` holds, given that it goes on holding above it.

    Positive floats are ordered as their bit patterns are, so bisecting the patterns ends at one number of the format.
    """
    bits = _BITS[dtype]
    low, high = 0, int(torch.tensor(torch.finfo(dtype).max, dtype=dtype).view(bits))
    while high - low > 1:
        middle = (low + high) // 2
        if bool(reached(torch.full((_WIDTH,), middle, dtype=bits).view(dtype)).all()):
            high = middle
        else:
            low = middle
    return float(torch.tensor(high, dtype=bits).view(dtype))


@functools.cache
def saturation(dtype: torch.dtype) -> Saturation:
    """Where float16, bfloat16, float32 or float64 saturates, found by search on this CPU (report section 2.2).

    Raises BadInput for another dtype.
    """
    if dtype not in _BITS:
        raise BadInput(
            f"no saturation in {dtype}; choose from {', '.join(str(d).removeprefix('torch.') for d in _BITS)}"
        )
    return Saturation(
        tanh_one=_smallest(lambda x: torch.tanh(x) == 1, dtype),
        sigmoid_one=_smallest(lambda x: torch.sigmoid(x) == 1, dtype),
        sigmoid_zero=_smallest(lambda x: torch.sigmoid(-x) == 0, dtype),
    )


def raw_values(
    selection: Sequence[int], dtype: torch.dtype
) -> tuple[Float[Tensor, " weight"], Float[Tensor, " weight"]]:
    """Finite (W_hat, M_hat) that `constrain` maps to exactly `selection`, a sequence of -1, 0 and 1, in `dtype`.

    A weight of 1 or -1 needs both factors saturated; 0 has `tanh(0) = 0` and its gate shut, so that all three sit where
    both partial derivatives vanish (section 2.1). They lie at twice the smallest saturating values, so that neither
    another device's rounding nor a different vector length can take them back. Raises BadInput for any other weight.
    """
    if wrong := [weight for weight in selection if weight not in (-1, 0, 1)]:
        raise BadInput(f"a selection holds {wrong[0]!r}, expected -1, 0 or 1")
    found = saturation(dtype)
    W_hat = [2 * found.tanh_one * weight for weight in selection]
    M_hat = [2 * found.sigmoid_one if weight else -2 * found.sigmoid_zero for weight in selection]
    return torch.tensor(W_hat, dtype=dtype), torch.tensor(M_hat, dtype=dtype)
