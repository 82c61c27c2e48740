"""The exponential primitive, `y = x_1^w_1 * x_2^w_2 * ...` (Hill Space report, section 3.2), computed in three ways.

At the selections multiply [1, 1], divide [1, -1], power-identity [1, 0] and reciprocal [-1, 0]:

===================  ==========================  =======================  =====================================
input                sign-exact                  real                     complex
===================  ==========================  =======================  =====================================
any finite           the native operator's bits  x^-1 rounds by itself,   x^1 is a logarithm and a rotation: not x
                                                 so a / b rounds twice    in 16% (|x| < 1) to 81% (|x| < 1000)
x = 0 under w = 0    1                           1                        NaN
x = 0 under w = -1   infinity, with x's sign     the same                 NaN or infinity
infinite under w = 0 1                           1                        NaN
inf / inf, 0 / 0     NaN                         NaN                      NaN
NaN under w = 0      1 (as IEEE 754's pow)       1                        NaN
===================  ==========================  =======================  =====================================

Away from the selections a negative input under a fractional weight gives NaN in the real form, and the real part of
the rotated product in the other two, which are one function of x and W with one gradient.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from workbench.errors import BadInput
from workbench.hill.axes import meet

Method = Literal["sign-exact", "real", "complex"]


def real(x: Shaped[Tensor, "*samples input"], W: Shaped[Tensor, "*units input"]) -> Float[Tensor, "*answers"]:
    """`y = prod_i x_i^w_i` by real powers in the inputs' own format (report section 3.2, table 4.4.2 "Real").

    Exact for multiply; divide rounds twice, once for 1 / b. A negative input has the right value under a weight of -1,
    0 or 1 but a NaN derivative for that weight, and a NaN value under any other. Shapes as in `workbench.hill.axes`.
    """
    x, W = meet(x, W)
    return torch.pow(x, W).prod(dim=-1)


def complex128(x: Shaped[Tensor, "*samples input"], W: Shaped[Tensor, "*units input"]) -> Float[Tensor, "*answers"]:
    """The real part of `prod_i x_i^w_i` in complex128, rounded to the inputs' format (report section 3.2, as printed).

    A negative input under a fractional weight is a rotation instead of a NaN. A zero, infinite or NaN input gives NaN
    or, for some torch builds and weights, an infinity: do not rely on which. Shapes as in `workbench.hill.axes`.
    """
    x, W = meet(x, W)
    return torch.pow(x.to(torch.complex128), W.double()).prod(dim=-1).real.to(x.dtype)


def sign_exact(x: Shaped[Tensor, "*samples input"], W: Shaped[Tensor, "*units input"]) -> Float[Tensor, "*answers"]:
    """`y = prod_{w_i >= 0} |x_i|^w_i / prod_{w_i < 0} |x_i|^-w_i * cos(pi * sum of w_i over negative x_i)`.

    The real part of the complex product of report section 3.2, `E cos(phi)` with `E = prod |x_i|^w_i`, in real numbers
    only. At a selection each power returns |x_i| itself, the cosine is exactly 1 or -1, and one multiplication or
    division is left to round: multiply and divide give the bits of the native operators, signed zeros included.
    The derivative `dy/dw_i = E (ln|x_i| cos(phi) - pi [x_i < 0] sin(phi))` is finite wherever x is neither 0 nor
    infinite. Shapes as in `workbench.hill.axes`.
    """
    x, W = meet(x, W)
    negative = torch.signbit(x)
    magnitude = torch.where(negative, -x, x)  # not abs, whose derivative at 0 is 0 by convention
    below = W < 0
    power = torch.pow(magnitude, torch.where(below, -W, W))
    size = torch.where(below, 1.0, power).prod(dim=-1) / torch.where(below, power, 1.0).prod(dim=-1)
    return size * torch.cos(torch.pi * (W * negative).sum(dim=-1))


METHODS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sign-exact": sign_exact,
    "real": real,
    "complex": complex128,
}


def exponential(
    x: Shaped[Tensor, "*samples input"], W: Shaped[Tensor, "*units input"], method: str = "sign-exact"
) -> Float[Tensor, "*answers"]:
    """The exponential primitive by the method named; BadInput lists the names there are."""
    if method not in METHODS:
        raise BadInput(f"unknown method {method!r}; choose from {', '.join(METHODS)}")
    return METHODS[method](x, W)
