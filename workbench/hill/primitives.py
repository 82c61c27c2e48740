"""What a unit computes with its weights: the primitives of the Hill Space report, section 3."""

from jaxtyping import Shaped
from torch import Tensor


def additive(x: Shaped[Tensor, "*batch input"], W: Shaped[Tensor, " input"]) -> Shaped[Tensor, "*batch"]:
    """`y = x W` (report section 3.1): with weights in {-1, 0, 1}, the selected sum of the inputs.

    Two inputs make one rounding, the same as native addition or subtraction in that format: an infinite input under a
    weight of 0 gives NaN. Written as a product and a sum rather than a matrix product, because reduced-precision matrix
    products are a global setting of torch.
    """
    return (x * W).sum(dim=-1)
