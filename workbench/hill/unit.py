"""One exact unit or a stack of them: raw parameters, the constraint, a primitive. Enumerated (written) or trained."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from workbench.errors import BadInput
from workbench.hill.constraint import constrain, constrain_snapped, raw_values
from workbench.hill.exponential import METHODS, Method
from workbench.hill.operations import Primitive, operation
from workbench.hill.primitives import PRIMITIVES, compute


class HillUnit(nn.Module):
    """Units over two inputs: `primitive(x, tanh(W_hat) * sigmoid(M_hat))` (Hill Space report, sections 2 and 3).

    `W_hat` and `M_hat` are its only parameters (and its whole `state_dict`): one value an input for one unit,
    [*stack unit 2] for several output units and a stack of independent ones. A frozen unit's parameters take no
    gradient; its output always passes gradients on to its inputs. `method` is how the exponential primitive computes
    its powers; the others do not use it.
    """

    def __init__(
        self,
        W_hat: Float[Tensor, "*units input"],
        M_hat: Float[Tensor, "*units input"],
        *,
        primitive: Primitive = "additive",
        method: Method = "sign-exact",
        trainable: bool = True,
    ):
        super().__init__()
        same = W_hat.shape == M_hat.shape and W_hat.dtype == M_hat.dtype and W_hat.is_floating_point()
        if not same or W_hat.shape[-1:] != (2,):
            found = f"{list(W_hat.shape)} {W_hat.dtype} and {list(M_hat.shape)} {M_hat.dtype}"
            raise BadInput(f"W_hat and M_hat are {found}, expected two values each, of one dtype")
        for what, value, known in (("primitive", primitive, PRIMITIVES), ("method", method, METHODS)):
            if value not in known:
                raise BadInput(f"unknown {what} {value!r}; choose from {', '.join(known)}")
        self.primitive: Primitive = primitive
        self.method: Method = method
        self.W_hat = nn.Parameter(W_hat.detach().clone(), requires_grad=trainable)
        self.M_hat = nn.Parameter(M_hat.detach().clone(), requires_grad=trainable)

    @classmethod
    def enumerated(
        cls,
        name: str,
        dtype: torch.dtype = torch.float64,
        *,
        method: Method = "sign-exact",
        trainable: bool = False,
    ) -> "HillUnit":
        """The unit of an operation (`add`, `divide`, ...), its weights exactly the selection in `dtype`, untrained.

        Enumeration is section 2.5 of the report. Raises BadInput for an unknown operation or a dtype without one of the
        saturation points.
        """
        row = operation(name)
        W_hat, M_hat = raw_values(row.selection, dtype)
        return cls(W_hat, M_hat, primitive=row.primitive, method=method, trainable=trainable)

    @property
    def W(self) -> Float[Tensor, "*units input"]:
        """The weights, recomputed from the raw parameters."""
        return constrain(self.W_hat, self.M_hat)

    def forward(self, x: Shaped[Tensor, "*samples input"], *, snap: float | None = None) -> Float[Tensor, "*answers"]:
        """The output for inputs of two values each, computed in the unit's dtype.

        One unit takes x [*batch 2] to [*batch]; units [*stack unit 2] take x [*stack sample 2], or [sample 2] which all
        of the stack reads, to [*stack sample unit]. Integers are exact up to 2**53 in float64 and 2**24 in float32. A
        unary operation ignores its second input, which must be finite. With `snap`, a threshold, the weights are
        snapped as in report section 2.2, for evaluation: no gradient reaches the parameters. Raises BadInput when the
        shapes do not fit.
        """
        if x.shape[-1:] != (2,):
            raise BadInput(f"inputs of shape {list(x.shape)}, expected the last axis to hold two values")
        W = self.W if snap is None else constrain_snapped(self.W_hat, self.M_hat, snap)
        return compute(self.primitive, x.to(self.W_hat.dtype), W, self.method)
