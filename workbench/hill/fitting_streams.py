"""What is trained and on what: units, the streams of batches they learn from, and the order of an epoch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbench.errors import BadInput
from workbench.hill.fitting_gradients import Target
from workbench.hill.fitting_optimizers import Optimizer

Order = Callable[[int], Int[Tensor, "step batch"]]
Turns = Callable[[int], Int[Tensor, " turn"]]


@dataclass(frozen=True, eq=False)
class Stream:
    """Problems and the order in which they are visited: inputs x, answers y (of the same dtype), and what to become.

    `order(epoch)` gives the samples of every batch of an epoch, counted from 0, in the same shape each time; it is
    asked once an epoch, in turn. The loss of a batch is the mean of `(unit(x) - y)^2`; `target` names the primitive and
    the weights about which the arithmetic is centred (see `workbench.hill.fitting_gradients`), y may be anything.
    """

    target: Target
    x: Float[Tensor, "sample 2"]
    y: Float[Tensor, " sample"]
    order: Order


@dataclass(frozen=True)
class Unit:
    """One unit to train: which streams it learns from (places in the list of streams), how, and from where.

    With several streams, the pair of weights is shared between them: `turns(epoch)` says for every step of an epoch
    which of its streams (0 the first of `streams`) supplies the next batch, each as often as it has batches.
    """

    streams: tuple[int, ...]
    optimizer: Optimizer
    W_hat: tuple[float, float] = (0.0, 0.0)
    M_hat: tuple[float, float] = (0.0, 0.0)
    turns: Turns | None = None


def shuffled(samples: int, batch: int, seed: int) -> Order:
    """Every epoch a fresh permutation of the samples, a function of (seed, epoch); an incomplete batch is left out."""
    if not 0 < batch <= samples:
        raise BadInput(f"a batch of {batch} from {samples} samples; expected 1 to {samples}")

    def order(epoch: int) -> Int[Tensor, "step batch"]:
        places = np.random.default_rng([seed, epoch]).permutation(samples)
        return torch.from_numpy(places[: samples // batch * batch].reshape(-1, batch))

    return order


def in_parts(order: Order, parts: int) -> Order:
    """The same batches in epochs of a `parts`-th: to watch, evaluate or stop more often; a rest is left out."""
    kept: dict[int, Int[Tensor, "step batch"]] = {}

    def part(epoch: int) -> Int[Tensor, "step batch"]:
        whole, place = divmod(epoch, parts)
        if whole not in kept:
            kept.clear()
            kept[whole] = order(whole)
        steps = len(kept[whole]) // parts
        return kept[whole][place * steps : (place + 1) * steps]

    return part


def alternating(*steps: int) -> Turns:
    """Turns of streams with these many batches an epoch, spread evenly: the one furthest behind its share goes next."""
    share = np.concatenate([(np.arange(count) + 0.5) / count for count in steps])
    whose = torch.from_numpy(np.repeat(np.arange(len(steps)), steps)[np.argsort(share, kind="stable")])
    return lambda epoch: whose


def check(streams: Sequence[Stream], units: Sequence[Unit]) -> None:
    """BadInput for units and streams that do not fit together."""
    if not streams or not units:
        raise BadInput(f"{len(units)} units and {len(streams)} streams, expected some of each")
    dtype = streams[0].x.dtype
    for place, stream in enumerate(streams):
        if stream.x.dtype != dtype or stream.y.dtype != dtype or not dtype.is_floating_point:
            raise BadInput(f"stream {place} is {stream.x.dtype} and {stream.y.dtype}, expected one float dtype for all")
        if stream.x.ndim != 2 or stream.x.shape != (len(stream.y), 2):
            raise BadInput(f"stream {place}: x {list(stream.x.shape)}, y {list(stream.y.shape)}; expected [n, 2], [n]")
    for place, unit in enumerate(units):
        if not unit.streams or not all(0 <= stream < len(streams) for stream in unit.streams):
            raise BadInput(f"unit {place} reads streams {unit.streams}, expected places below {len(streams)}")
        if (len(unit.streams) > 1) != (unit.turns is not None):
            raise BadInput(
                f"unit {place} has {len(unit.streams)} streams; turns are for more than one, and needed there"
            )
