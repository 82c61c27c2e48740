"""One exact unit: raw parameters, the constraint, a primitive. Enumerated (written down) or trained."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from workbench.errors import BadInput
from workbench.hill.constraint import constrain, raw_values
from workbench.hill.operations import Primitive, operation
from workbench.hill.primitives import additive

_COMPUTE = {"additive": additive}


class HillUnit(nn.Module):
    """A unit over two inputs: `primitive(x, tanh(W_hat) * sigmoid(M_hat))` (Hill Space report, sections 2 and 3).

    `W_hat` and `M_hat` are its only parameters (and its whole `state_dict`), one value an input. A frozen unit's
    parameters take no gradient; its output always passes gradients on to its inputs.
    """

    def __init__(
        self,
        W_hat: Float[Tensor, " input"],
        M_hat: Float[Tensor, " input"],
        *,
        primitive: Primitive = "additive",
        trainable: bool = True,
    ):
        super().__init__()
        if W_hat.shape != (2,) or M_hat.shape != (2,) or W_hat.dtype != M_hat.dtype:
            found = f"{list(W_hat.shape)} {W_hat.dtype} and {list(M_hat.shape)} {M_hat.dtype}"
            raise BadInput(f"W_hat and M_hat are {found}, expected two values each, of one dtype")
        if primitive not in _COMPUTE:
            raise BadInput(f"unknown primitive {primitive!r}; choose from {', '.join(_COMPUTE)}")
        self.primitive = primitive
        self.W_hat = nn.Parameter(W_hat.detach().clone(), requires_grad=trainable)
        self.M_hat = nn.Parameter(M_hat.detach().clone(), requires_grad=trainable)

    @classmethod
    def enumerated(cls, name: str, *, dtype: torch.dtype = torch.float64, trainable: bool = False) -> "HillUnit":
        """The unit of an operation (`add`, `subtract`, ...), its weights exactly the selection in `dtype`, untrained.

        Enumeration is section 2.5 of the report. Raises BadInput for an unknown operation or a dtype without one of the
        saturation points.
        """
        row = operation(name)
        W_hat, M_hat = raw_values(row.selection, dtype)
        return cls(W_hat, M_hat, primitive=row.primitive, trainable=trainable)

    @property
    def W(self) -> Float[Tensor, " input"]:
        """The weights, recomputed from the raw parameters."""
        return constrain(self.W_hat, self.M_hat)

    def forward(self, x: Shaped[Tensor, "*batch input"]) -> Float[Tensor, "*batch"]:
        """The unit's output for inputs of two values each, computed in the unit's dtype.

        Integers are exact up to 2**53 in float64 and 2**24 in float32. A unary operation ignores its second input,
        which must be finite. Raises BadInput when the last axis is not two long.
        """
        if x.shape[-1:] != (2,):
            raise BadInput(f"inputs of shape {list(x.shape)}, expected the last axis to hold two values")
        return _COMPUTE[self.primitive](x.to(self.W_hat.dtype), self.W)
