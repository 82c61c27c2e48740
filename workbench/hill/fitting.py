"""Hundreds of independent units trained at once: one stack of tensors, each unit as if it were alone.

A unit is one pair of weights, `W = tanh(W_hat) sigmoid(M_hat)` (Hill Space report, section 2), one optimizer and one
stream of batches, or several streams that take turns. Losses are mean squared errors. Nothing a unit computes reads
another unit: one that diverges is dropped, one that stops is frozen, and the rest go on with the same bits.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.errors import BadInput
from workbench.hill.constraint import constrain
from workbench.hill.fitting_gradients import Target
from workbench.hill.fitting_group import Group, Record
from workbench.hill.fitting_optimizers import Optimizer, Stepper, optimizer
from workbench.hill.fitting_streams import Stream, Unit, alternating, check, in_parts, shuffled

__all__ = [
    "Fit",
    "Optimizer",
    "Stack",
    "Stepper",
    "Stream",
    "Target",
    "Trajectory",
    "Unit",
    "alternating",
    "below",
    "fit",
    "in_parts",
    "optimizer",
    "shuffled",
]

Rule = Callable[["Stack"], Bool[Tensor, " unit"]]  # which units have trained long enough; asked after each epoch
Watch = Callable[["Stack"], None]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Where units were just before each recorded step, counted from 0; NaN for a step that a unit did not take."""

    step: Int[Tensor, " record"]
    W_hat: Float[Tensor, "record unit 2"]
    M_hat: Float[Tensor, "record unit 2"]
    loss: Float[Tensor, "record unit"]  # on the batch of that step

    @property
    def W(self) -> Float[Tensor, "record unit 2"]:
        """The weights."""
        return constrain(self.W_hat, self.M_hat)


class Stack:
    """Units in training. `epoch()` trains all that still run for one epoch; `stop` freezes some.

    `history` is [epoch, unit]: each epoch's mean loss, NaN where a unit no longer ran. `epochs` counts the epochs of
    each unit, `running` says which still train, `diverged` which were dropped with a parameter that is not finite.
    With `every` > 0, a point of the trajectory is kept each so many steps. With `settle`, units that no gradient can
    move any more are computed no longer: they go on `running`, where they are to the last bit, and repeat the mean loss
    of their last epoch. Raises BadInput for units and streams that do not fit together.
    """

    def __init__(self, streams: Sequence[Stream], units: Sequence[Unit], *, every: int = 0, settle: bool = False):
        self.streams, self.units = list(streams), list(units)
        check(self.streams, self.units)
        self._orders = {place: stream.order(0) for place, stream in enumerate(self.streams)}
        self._shapes = {place: order.shape for place, order in self._orders.items()}
        for place, order in self._orders.items():
            if int(order.min()) < 0 or int(order.max()) >= len(self.streams[place].y):
                raise BadInput(
                    f"stream {place}: an order of samples {int(order.min())} to {int(order.max())}, there are "
                    f"{len(self.streams[place].y)}"
                )
        groups: dict[tuple[int, int], list[int]] = {}
        for place, unit in enumerate(self.units):
            sizes = {self._shapes[stream][1] for stream in unit.streams}
            if len(sizes) > 1:
                raise BadInput(f"unit {place} shares streams of batches of {sorted(sizes)}, expected one size")
            steps = sum(self._shapes[stream][0] for stream in unit.streams)
            groups.setdefault((steps, sizes.pop()), []).append(place)
        self._groups = [Group(self.streams, self.units, p, batch, every) for (_, batch), p in groups.items()]
        start = [[unit.W_hat, unit.M_hat] for unit in self.units]
        self._raw = torch.tensor(start, dtype=self.streams[0].x.dtype)  # [unit, W_hat or M_hat, input]
        self._records: list[Record] = []
        self._settle = settle
        self._settled = torch.zeros(len(self.units), dtype=torch.bool)
        n = len(self.units)
        self.history = self._raw.new_empty((0, n))
        self.epochs = torch.zeros(n, dtype=torch.int64)
        self.running, self.diverged = torch.ones(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool)

    def _state(self) -> Float[Tensor, "unit 2 2"]:
        for group in self._groups:
            self._raw[group.places] = group.raw[..., : len(group.places)].permute(2, 0, 1)
        return self._raw.clone()

    @property
    def W_hat(self) -> Float[Tensor, "unit 2"]:
        """Raw parameters of every unit, running or not."""
        return self._state()[:, 0]

    @property
    def M_hat(self) -> Float[Tensor, "unit 2"]:
        """Raw parameters of every unit, running or not."""
        return self._state()[:, 1]

    @property
    def W(self) -> Float[Tensor, "unit 2"]:
        """The weights of every unit."""
        return constrain(self.W_hat, self.M_hat)

    @torch.no_grad()
    def epoch(self) -> None:
        """Train every running unit for one epoch."""
        number = len(self.history)
        read = {place for group in self._groups for place in group.streams_read()}
        orders = {place: self._order(place, number) for place in sorted(read)}
        losses = self._raw.new_full((len(self.units),), math.nan)
        waiting = self._settled & self.running
        losses[waiting] = self.history[-1:, waiting].sum(dim=0)
        for group in self._groups:
            losses[group.places] = group.epoch(number, orders)
            self._records += group.take_records()
        self.history = torch.cat([self.history, losses[None]])
        self.epochs += self.running
        broken = self.running & ~self._state().isfinite().flatten(1).all(dim=1)
        self.diverged |= broken
        self.stop(broken)
        if self._settle:
            self._state()
            for group in self._groups:
                self._settled[group.places] = group.settled()
            self._leave()

    def _order(self, place: int, number: int) -> Int[Tensor, "step batch"]:
        if number == 0:
            return self._orders.pop(place)
        order = self.streams[place].order(number)
        if order.shape != self._shapes[place]:
            raise BadInput(f"stream {place}: an order of shape {list(order.shape)} after {list(self._shapes[place])}")
        return order

    def stop(self, units: Bool[Tensor, " unit"]) -> None:
        """Freeze these units where they are; the others keep their bits."""
        if not bool((units & self.running).any()):
            return
        self._state()
        self.running = self.running & ~units
        self._leave()

    def _leave(self) -> None:
        """Take the units out of the tensors that need no more computing."""
        for group in self._groups:
            group.keep(self.running & ~self._settled)
        self._groups = [group for group in self._groups if len(group.places)]

    def trajectory(self) -> Trajectory:
        """What was recorded so far; of no length without `every`."""
        steps = sorted({record.step for record in self._records})
        row = {step: place for place, step in enumerate(steps)}
        raw = self._raw.new_full((len(steps), *self._raw.shape), math.nan)
        loss = raw.new_full(raw.shape[:2], math.nan)
        for record in self._records:
            raw[row[record.step], record.places] = record.raw.permute(2, 0, 1)
            loss[row[record.step], record.places] = record.loss
        return Trajectory(torch.tensor(steps, dtype=torch.int64), raw[:, :, 0], raw[:, :, 1], loss)


def below(loss: float, epochs: int = 1) -> Rule:
    """The rule that stops a unit whose mean loss was below `loss` in each of its last `epochs` epochs."""

    def rule(stack: Stack) -> Bool[Tensor, " unit"]:
        last = stack.history[-epochs:]
        return (last < loss).all(dim=0) & (len(last) == epochs)

    return rule


@dataclass(frozen=True, eq=False)
class Fit:
    """Units after training: raw parameters, weights, epochs trained, each epoch's mean loss, and the way there."""

    W_hat: Float[Tensor, "unit 2"]
    M_hat: Float[Tensor, "unit 2"]
    W: Float[Tensor, "unit 2"]
    epochs: Int[Tensor, " unit"]
    history: Float[Tensor, "epoch unit"]
    diverged: Bool[Tensor, " unit"]
    trajectory: Trajectory


def fit(
    streams: Sequence[Stream],
    units: Sequence[Unit],
    *,
    epochs: int,
    stop: Rule | None = None,
    every: int = 0,
    settle: bool = False,
    watch: Watch | None = None,
) -> Fit:
    """Train all units for up to `epochs` epochs, each until `stop` says so or it diverges.

    `every` and `settle` are those of `Stack`. `watch` is called with the stack after each epoch. Raises BadInput as
    `Stack` does.
    """
    stack = Stack(streams, units, every=every, settle=settle)
    for _ in range(epochs):
        stack.epoch()
        if watch is not None:
            watch(stack)
        if stop is not None:
            stack.stop(stop(stack))
        if not bool(stack.running.any()):
            break
    return Fit(stack.W_hat, stack.M_hat, stack.W, stack.epochs, stack.history, stack.diverged, stack.trajectory())
