"""Error-free arithmetic: what a rounded operation lost, as another number of the same format.

For float32 and float64 under round-to-nearest, an answer and its error are two numbers whose sum is the exact result,
so squared errors need no long arithmetic. Sources: Dekker, "A floating-point technique for extending the available
precision" (1971); Knuth, TAOCP volume 2, section 4.2.2; Ogita, Rump & Oishi, "Accurate sum and dot product" (2005).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from workbench.errors import BadInput

Pair = tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]

# Veltkamp's constant 2^s + 1 with s = ceil(p / 2) for a significand of p bits: 24 in float32, 53 in float64 (Dekker
# 1971, section 5).
_SPLITTERS = {torch.float32: 2.0**12 + 1, torch.float64: 2.0**27 + 1}


def two_sum(a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"]) -> Pair:
    """(s, e) with `s = fl(a + b)` and `s + e = a + b` exactly (Knuth, theorem 4.2.2B), whatever their magnitudes.

    Exact unless the sum overflows; underflow does no harm. Raises BadInput unless both are float32 or both float64.
    """
    _check(a, b)
    s = a + b
    share = s - a  # what s holds of b
    return s, (a - (s - share)) + (b - share)


def split(a: Float[Tensor, "*shape"]) -> Pair:
    """(high, low) with `high + low = a` exactly, both so short that products of two such parts are exact (Veltkamp).

    In float32 and float64 the parts have 12 and 26 bits. Magnitudes above about 2^115 and 2^996 overflow to NaN.
    Raises BadInput for another format.
    """
    _check(a, a)
    shifted = a * _SPLITTERS[a.dtype]
    high = shifted - (shifted - a)
    return high, a - high


def two_product(a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"]) -> Pair:
    """(p, e) with `p = fl(a b)` and `p + e = a b` exactly (Dekker 1971, section 5).

    Exact unless something overflows (see `split`) or the error is too small for the format: |a b| of at least 2^-101
    in float32 and 2^-968 in float64 is enough. Raises BadInput unless both are float32 or both float64.
    """
    _check(a, b)
    p = a * b
    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


def division_residual(
    a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"], q: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    """`a - q b` exactly, for the rounded quotient `q = fl(a / b)`, whose residual is a number of the same format.

    The limits are those of `two_product` for q and b. Raises BadInput unless all are float32 or all float64.
    """
    _check(a, q)
    p, e = two_product(q, b)
    return (a - p) - e


def two_difference(a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"]) -> Pair:
    """(d, e) with `d = fl(a - b)` and `d + e = a - b` exactly: `two_sum` of a and -b."""
    return two_sum(a, -b)


def two_quotient(a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"]) -> Pair:
    """(q, e) with `q = fl(a / b)` and `q + e = a / b`, but for one rounding of e, to the format's own digits.

    The error is `division_residual` over b, with its limits; b must not be 0.
    """
    _check(a, b)
    q = a / b
    return q, division_residual(a, b, q) / b


TWO_TERMS: dict[str, Callable[[Tensor, Tensor], Pair]] = {
    "add": two_sum,
    "subtract": two_difference,
    "multiply": two_product,
    "divide": two_quotient,
}


def two_terms(operation: str, a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"]) -> Pair:
    """(rounded answer, its error) of an operation named as in `workbench.hill.operations`; BadInput lists the names."""
    if operation not in TWO_TERMS:
        raise BadInput(f"no error-free form of {operation!r}; choose from {', '.join(TWO_TERMS)}")
    return TWO_TERMS[operation](a, b)


def _check(a: Tensor, b: Tensor) -> None:
    if a.dtype != b.dtype or a.dtype not in _SPLITTERS:
        raise BadInput(f"error-free arithmetic of {a.dtype} and {b.dtype}; expected both float32 or both float64")
