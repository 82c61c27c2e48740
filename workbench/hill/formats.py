"""The float formats that units are written in: their bit patterns, and how far apart two of their numbers are."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from workbench.errors import BadInput

BITS = {  # a format, and the integers that hold its bits
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
UNCOUNTED = torch.iinfo(torch.int64).max


def _rank(x: Tensor) -> Tensor:
    """The place of each float in the order of its format, counted from 0 at the zeros.

    Positive floats are ordered as their bit patterns are, negative ones the other way round.
    """
    bits = x.contiguous().view(BITS[x.dtype]).long()
    lowest = torch.iinfo(BITS[x.dtype]).min
    return torch.where(bits < 0, lowest - bits, bits)


def ulps(a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"]) -> Int64[Tensor, "*shape"]:
    """Steps from one float to the next that lead from a to b, in units in the last place; 0 means the same number.

    Both zeros are one number, an infinity is one step from the largest finite number, two NaNs are 0 apart. A NaN
    beside a number, and a distance above int64, count `UNCOUNTED` (2**63 - 1). Raises BadInput for tensors of two
    dtypes, or of one without a bit pattern here.
    """
    if a.dtype != b.dtype or a.dtype not in BITS:
        raise BadInput(f"ulps between {a.dtype} and {b.dtype}; expected two of one float format of 16, 32 or 64 bits")
    first, second = _rank(a), _rank(b)
    steps = first - second
    beyond = (((first ^ second) & (first ^ steps)) < 0) | (steps == -UNCOUNTED - 1)
    distance = torch.where(beyond, UNCOUNTED, steps.abs())
    distance = torch.where(a.isnan() != b.isnan(), UNCOUNTED, distance)
    return torch.where(a.isnan() & b.isnan(), 0, distance)
