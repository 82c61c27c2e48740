"""How many networks an ensemble needs: they are added until the rounded average is right often enough."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.errors import BadInput

MOST = 5000  # networks of an ensemble (opallab/permlearn, experiment.py)
BATCH = 16


@dataclass(frozen=True)
class Rounding:
    """How averages become bits, and which are looked at.

    A bit is 1 above its threshold, and should be `wanted`; bits that are not `read` may be anything.
    """

    wanted: Bool[Tensor, "input bit"]
    threshold: Float[Tensor, "input bit"]
    read: Bool[Tensor, "input bit"]


Draw = Callable[[int], Float[Tensor, "net input bit"]]  # the outputs of so many more networks


def needed(
    draw: Draw,
    roundings: Mapping[str, Rounding],
    tests: Int[Tensor, " input"],
    errors: Sequence[float],
    most: int = MOST,
    batch: int = BATCH,
) -> dict[tuple[str, float], int | None]:
    """The first number of networks with accuracy at least 1 - error, for every rounding and error.

    Accuracy is the share of test vectors whose every read bit is right; `tests` says how often each input is one. One
    sequence of networks serves all; None where `most` did not do. Raises BadInput for errors outside [0, 1).
    """
    if not all(0 <= error < 1 for error in errors):
        raise BadInput(f"errors are {list(errors)}, expected shares of the tests from 0 to below 1")
    enough = {error: math.ceil(int(tests.sum()) * (1 - error) - 1e-9) for error in errors}
    found: dict[tuple[str, float], int | None] = {(name, error): None for name in roundings for error in errors}
    total, done = torch.zeros(()), 0
    while done < most and None in found.values():
        outputs = draw(min(batch, most - done))
        sums = outputs.cumsum(dim=0).add_(total)
        numbers = torch.arange(done + 1, done + 1 + len(sums))
        for name, rounding in roundings.items():
            missing = [error for error in errors if found[name, error] is None]
            if not missing:
                continue
            correct = right(sums, numbers, rounding).double() @ tests.double()
            for error in missing:
                hits = (correct >= enough[error]).nonzero()
                if len(hits):
                    found[name, error] = int(numbers[hits[0, 0]])
        total, done = sums[-1], done + len(sums)
    return found


def right(
    sums: Float[Tensor, "count input bit"], networks: Int[Tensor, " count"], rounding: Rounding
) -> Bool[Tensor, "count input"]:
    """Whether every read bit of each input is right when `sums` of that many networks' outputs are averaged."""
    bits = sums > networks[:, None, None] * rounding.threshold
    return ((bits == rounding.wanted) | ~rounding.read).all(dim=2)
