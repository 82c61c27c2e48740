"""What a unit computes with its weights: the primitives of the Hill Space report, section 3.

Each takes inputs x and weights W, of the shapes told in `workbench.hill.axes`: one unit [input], or units
[*stack unit input] beside samples [*stack sample input].
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from workbench.errors import BadInput
from workbench.hill.axes import meet
from workbench.hill.exponential import exponential


def additive(x: Shaped[Tensor, "*samples input"], W: Shaped[Tensor, "*units input"]) -> Shaped[Tensor, "*answers"]:
    """`y = x W` (report section 3.1): with weights in {-1, 0, 1}, the selected sum of the inputs.

    Two inputs make one rounding, the same as native addition or subtraction in that format (a zero may lose its minus
    sign); integers under integer weights stay integers. An infinite or NaN input under a weight of 0 gives NaN.
    Written as a product and a sum rather than a matrix product, because reduced-precision matrix products are a global
    setting of torch.
    """
    x, W = meet(x, W, floating=False)
    return (x * W).sum(dim=-1)


def unit_circle(x: Shaped[Tensor, "*samples input"], W: Shaped[Tensor, "*units input"]) -> Float[Tensor, "*answers"]:
    """`y = (cos(t) (1 + w_1) + sin(t) (1 - w_1)) / 2` at the angle `t = x_1 + pi w_2` in radians (report section 3.3).

    The first weight selects (1 cosine, -1 sine, 0 half the sum of both), the second is the phase in half turns. The
    second input is not read. Without a phase, cosine and sine are torch's own to the last bit; with one of 1 or -1 the
    angle takes the rounding of pi and of one addition. An infinite or NaN angle gives NaN.
    """
    x, W = meet(x, W, inputs=2)
    selector, phase = W.unbind(dim=-1)
    t = x[..., 0] + torch.pi * phase
    return (torch.cos(t) * (1 + selector) + torch.sin(t) * (1 - selector)) / 2


def trigonometric_products(
    x: Shaped[Tensor, "*samples input"], W: Shaped[Tensor, "*units input"]
) -> Float[Tensor, "*answers"]:
    """Cosine or sine of the difference or the sum of two angles in radians (report section 3.4).

    `y = w_1 (w_2 cos(a - b) + (1 - w_2) cos(a + b)) + (1 - w_1) (w_2 sin(a - b) + (1 - w_2) sin(a + b))`, each of the
    four by its angle-sum identity from products of cos a, sin a, cos b and sin b. The products round twice and their
    sum once, so an answer near 0 is off by many of its own ulps, though by no more than about 2 ulps of 1. An infinite
    or NaN angle gives NaN.
    """
    x, W = meet(x, W, inputs=2)
    cos_a, cos_b = torch.cos(x).unbind(dim=-1)
    sin_a, sin_b = torch.sin(x).unbind(dim=-1)
    cosine, difference = W.unbind(dim=-1)
    cos = difference * (cos_a * cos_b + sin_a * sin_b) + (1 - difference) * (cos_a * cos_b - sin_a * sin_b)
    sin = difference * (sin_a * cos_b - cos_a * sin_b) + (1 - difference) * (sin_a * cos_b + cos_a * sin_b)
    return cosine * cos + (1 - cosine) * sin


PRIMITIVES: dict[str, Callable[..., Tensor]] = {
    "additive": additive,
    "exponential": exponential,
    "unit-circle": unit_circle,
    "trigonometric-products": trigonometric_products,
}


def compute(
    primitive: str,
    x: Shaped[Tensor, "*samples input"],
    W: Shaped[Tensor, "*units input"],
    method: str = "sign-exact",
) -> Shaped[Tensor, "*answers"]:
    """The primitive named, at inputs x and weights W; `method` is how the exponential one computes its powers.

    Raises BadInput for an unknown primitive or method, or shapes that do not fit.
    """
    if primitive not in PRIMITIVES:
        raise BadInput(f"unknown primitive {primitive!r}; choose from {', '.join(PRIMITIVES)}")
    if primitive == "exponential":
        return exponential(x, W, method)
    return PRIMITIVES[primitive](x, W)
