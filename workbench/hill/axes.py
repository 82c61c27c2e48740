"""How the axes of inputs and weights meet: samples, output units, and a leading stack of independent units."""

import torch
from jaxtyping import Shaped
from torch import Tensor

from workbench.errors import BadInput


def meet(
    x: Shaped[Tensor, "*samples input"],
    W: Shaped[Tensor, "*units weight"],
    *,
    inputs: int | None = None,
    floating: bool = True,
) -> tuple[Shaped[Tensor, "*left input"], Shaped[Tensor, "*right weight"]]:
    """Inputs and weights in one dtype, shaped so that they broadcast against each other.

    - W [input], one unit: x [*batch input]; a sum over the last axis of both leaves the answers [*batch].
    - W [*stack unit input]: x [*stack sample input], or x without the stack, which every unit of it then reads; the
      answers are [*stack sample unit].

    The dtype is the one torch promotes both to: integers take the weights' format, rounded where it is too short. With
    `floating`, integers under integer weights become float64. Raises BadInput when the shapes do not fit, or when
    `inputs` is given and the last axis is not that long.
    """
    last = W.shape[-1] if W.ndim else 0
    if x.shape[-1:] != (last,) or (W.ndim > 1 and x.ndim < 2) or inputs not in (None, last):
        n = inputs or last or "input"
        raise BadInput(
            f"inputs of shape {list(x.shape)} and weights of shape {list(W.shape)}; expected [*batch {n}] and [{n}] "
            f"for one unit, [*stack sample {n}] and [*stack unit {n}] for more"
        )
    dtype = torch.promote_types(x.dtype, W.dtype)
    if floating and not dtype.is_floating_point:
        dtype = torch.float64
    x, W = x.to(dtype), W.to(dtype)
    if W.ndim == 1:
        return x, W
    try:
        torch.broadcast_shapes(x.shape[:-2], W.shape[:-2])
    except RuntimeError:
        raise BadInput(
            f"inputs of a stack {list(x.shape[:-2])} and units of a stack {list(W.shape[:-2])}; expected the same"
        ) from None
    return x.unsqueeze(-2), W.unsqueeze(-3)
