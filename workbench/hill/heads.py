"""Auxiliary heads: linear readouts of the decoder's stream, an exact unit behind them, and what its output should be.

A head reads the five answer positions, computes a few scalars there (its readouts, without bias), and feeds them to
one unit an operator, addition and subtraction. What the unit says must be an exact quantity of the problem:

- additive: two readouts of all five positions together -> additive unit -> the signed result in ten thousands;
- digitwise: two angles (radians) at each position -> trigonometric products -> cosine and sine of the angle
  2 pi d / 10 of the answer digit d predicted there;
- carry: four readouts at each of the positions of d3..d0 -> additive unit -> the carry out of that place, or the
  borrow. Long addition says a + b + carry in - digit = 10 x carry out, and of the larger minus the smaller
  -larger + smaller + borrow in + digit = 10 x borrow out; readouts are in tens.

The readouts are free: nothing but the output is trained. So an additive unit behind them is, as a function of the
stream, a linear readout; only the trigonometric products are not. The `linear` form is that control.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from workbench.hill.constraint import constrain, raw_values
from workbench.hill.operations import Primitive, operation
from workbench.hill.primitives import compute
from workbench.recipe import Architecture, Auxiliary
from workbench.structure import structure
from workbench.task import OPERAND_COUNT, Problems, encode

Named = dict[str, Tensor]

ANSWERS = 5  # positions read, those that predict d4..d0
RAW_STD = 0.1  # of W_hat and M_hat of a trainable unit; Hill Space report 4.5 finds anything near neutral to do
TURN = 2 * np.pi / 10  # radians a digit
READOUT_STREAM, UNIT_STREAM = 1_000_003, 2_000_003  # added to a run's seed, so that no draw repeats the decoder's


@dataclass(frozen=True)
class Kind:
    """One head: its unit's primitive, the selection of each (operator, output), and the places it has an answer at."""

    primitive: Primitive
    selections: tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
    places: int

    @property
    def outputs(self) -> int:
        """Values told at a place."""
        return len(self.selections[0])

    @property
    def inputs(self) -> int:
        """Readouts at a place."""
        return len(self.selections[0][0])


def _selections(*names: str) -> tuple[tuple[int, ...], ...]:
    return tuple(operation(name).selection for name in names)


KINDS: dict[str, Kind] = {
    "additive": Kind("additive", (_selections("add"), _selections("subtract")), 1),
    "digitwise": Kind(
        "trigonometric-products",
        (_selections("cos-sum", "sin-sum"), _selections("cos-difference", "sin-difference")),
        ANSWERS,
    ),
    "carry": Kind("additive", (((1, 1, 1, -1),), ((-1, 1, 1, 1),)), ANSWERS - 1),
}


def shapes(auxiliary: Auxiliary, architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """Every trained tensor of the head, in the order they are drawn.

    `readout` is [place input feature], of the linear form [operator place output feature]; `W_hat` and `M_hat`, of the
    trainable form, [operator output input]. Operators are addition, subtraction.
    """
    kind = KINDS[auxiliary.head]
    features = architecture.d_model * (ANSWERS if kind.places == 1 else 1)
    if auxiliary.head_form == "linear":
        return {"readout": (2, kind.places, kind.outputs, features)}
    found: dict[str, tuple[int, ...]] = {"readout": (kind.places, kind.inputs, features)}
    if auxiliary.head_form == "trainable":
        found |= dict.fromkeys(("W_hat", "M_hat"), (2, kind.outputs, kind.inputs))
    return found


def initial(auxiliary: Auxiliary, architecture: Architecture, seed: int) -> Named:
    """The trained tensors before training, float32, from a generator of the head's own; no global state changes.

    Readouts are N(0, 1/sqrt(features)), as the decoder's `fan-in` matrices.
    """
    generator = torch.Generator().manual_seed(seed + READOUT_STREAM)
    return {
        name: torch.randn(shape, generator=generator) * (shape[-1] ** -0.5 if name == "readout" else RAW_STD)
        for name, shape in shapes(auxiliary, architecture).items()
    }


def enumerated(head: str) -> tuple[Float[Tensor, "operator output input"], Float[Tensor, "operator output input"]]:
    """(W_hat, M_hat) which float32 rounds to exactly the head's selections (report, section 2.5)."""
    selections = [weight for rows in KINDS[head].selections for row in rows for weight in row]
    W_hat, M_hat = raw_values(selections, torch.float32)
    shape = (2, KINDS[head].outputs, KINDS[head].inputs)
    return W_hat.view(shape), M_hat.view(shape)


def unit_weights(auxiliary: Auxiliary, trained: Named, seed: int) -> Float[Tensor, "operator output input"]:
    """The weights of a head's units; gradients reach a trainable one's raw values.

    Random ones are normal, from the seed, scaled to the norm that all of the enumerated ones have together.
    """
    exact = constrain(*enumerated(auxiliary.head))
    match auxiliary.head_form:
        case "trainable":
            return constrain(trained["W_hat"], trained["M_hat"])
        case "random":
            drawn = torch.randn(exact.shape, generator=torch.Generator().manual_seed(seed + UNIT_STREAM))
            return drawn * (exact.norm() / drawn.norm())
        case _:
            return exact


def _read(head: str, x: Float[Tensor, "batch 5 width"]) -> Float[Tensor, "batch place feature"]:
    """What a head sees at each of its places."""
    places = KINDS[head].places
    return x.flatten(1)[:, None] if places == 1 else x[:, ANSWERS - places :]


def outputs(
    auxiliary: Auxiliary,
    trained: Named,
    unit: Float[Tensor, "operator output input"],
    x: Float[Tensor, "batch 5 width"],
    minus: Bool[Tensor, " batch"],
) -> Float[Tensor, "batch place output"]:
    """What the head says of each problem; `minus` picks the operator's unit. A linear head has no use for `unit`."""
    seen, readout = _read(auxiliary.head, x), trained["readout"]
    if auxiliary.head_form == "linear":
        both = torch.einsum("bpf,opuf->obpu", seen, readout)
    else:
        r = torch.einsum("bpf,pif->bpi", seen, readout)
        both = compute(KINDS[auxiliary.head].primitive, r.flatten(0, 1), unit).unflatten(1, r.shape[:2])
    return torch.where(minus[:, None, None], both[1], both[0])


def targets(head: str, problems: Problems) -> Float[np.ndarray, "batch place output"]:
    """What the head should say, float32; places from the highest down."""
    if head == "additive":
        found = (problems.answers / OPERAND_COUNT)[:, None, None]
    elif head == "digitwise":
        angle = TURN * encode(problems)[:, 11:16]
        found = np.stack([np.cos(angle), np.sin(angle)], axis=2)
    else:
        found = structure(problems).moves[:, ::-1, None]
    return found.astype(np.float32)


def squared_error(said: Float[Tensor, "batch place output"], wanted: Float[Tensor, "batch place output"]) -> Tensor:
    """The head's loss: the mean squared error over problems, places and outputs."""
    return (said - wanted).square().mean()
