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
from workbench.hill.formats import BITS

_WIDTH = (
    33  # values evaluated at once: more than one vector register of every CPU, and one left over for the scalar code
)

SNAP = 1e-2  # the report's snapping threshold, section 2.2: it found 3e-3 to 5e-2 to work


def constrain(W_hat: Float[Tensor, "*shape"], M_hat: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """`W = tanh(W_hat) * sigmoid(M_hat)`, each weight in [-1, 1] (report section 2)."""
    return torch.tanh(W_hat) * torch.sigmoid(M_hat)


def partials(
    W_hat: Float[Tensor, "*shape"], M_hat: Float[Tensor, "*shape"]
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """The constraint's partial derivatives `dW/dW_hat` and `dW/dM_hat` (report section 2.1).

    `(1 - tanh(W_hat)^2) sigmoid(M_hat)` and `tanh(W_hat) sigmoid(M_hat) (1 - sigmoid(M_hat))`, computed in the inputs'
    format: what training sees, so the first is exactly 0 once tanh has rounded to 1 or -1, the second once sigmoid has
    rounded to 0 or 1.
    """
    tanh, sigmoid = torch.tanh(W_hat), torch.sigmoid(M_hat)
    return (1 - tanh * tanh) * sigmoid, tanh * sigmoid * (1 - sigmoid)


def _check_threshold(threshold: float) -> None:
    if not 0 <= threshold <= 0.5:
        raise BadInput(f"a snapping threshold of {threshold!r}, expected one from 0 to 0.5")


@torch.no_grad()
def snap(W: Float[Tensor, "*shape"], threshold: float = SNAP) -> Float[Tensor, "*shape"]:
    """Weights nearer than `threshold` to -1, 0 or 1 moved onto it, the others as they are.

    For evaluation only: the result carries no gradient, since a snapped weight would have none and would never move
    again. Raises BadInput unless the threshold is from 0 (snaps nothing) to 0.5.
    """
    _check_threshold(threshold)
    target = W.round().clamp(-1, 1) + 0.0  # + 0.0 turns -0 into 0
    return torch.where((W - target).abs() < threshold, target, W)


@torch.no_grad()
def constrain_snapped(
    W_hat: Float[Tensor, "*shape"], M_hat: Float[Tensor, "*shape"], threshold: float = SNAP
) -> Float[Tensor, "*shape"]:
    """`constrain` with each factor moved to its limit where it is nearer than `threshold`, as in report section 2.2.

    tanh goes to -1 or 1 (not to 0), sigmoid to 0 or 1, so two factors just inside the threshold still give exactly 1,
    where `snap` would leave their product; a weight that is small through tanh alone is left as it is. For evaluation
    only: the result carries no gradient. Raises BadInput unless the threshold is from 0 to 0.5.
    """
    _check_threshold(threshold)
    tanh, sigmoid = torch.tanh(W_hat), torch.sigmoid(M_hat)
    tanh = torch.where(tanh.abs() > 1 - threshold, tanh.sign(), tanh)
    sigmoid = torch.where(sigmoid > 1 - threshold, 1.0, torch.where(sigmoid < threshold, 0.0, sigmoid))
    return tanh * sigmoid + 0.0  # + 0.0 turns -0 into 0


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
    bits = BITS[dtype]
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
    if dtype not in BITS:
        raise BadInput(
            f"no saturation in {dtype}; choose from {', '.join(str(d).removeprefix('torch.') for d in BITS)}"
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
