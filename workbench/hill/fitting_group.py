"""The tensor program: units with equally many steps an epoch, updated together step by step."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.errors import BadInput
from workbench.hill.constraint import partials
from workbench.hill.fitting_gradients import Exponential, Linear, Weights, form
from workbench.hill.fitting_optimizers import DEFAULTS, Stepper
from workbench.hill.fitting_streams import Stream, Turns, Unit

Orders = Mapping[int, Tensor]  # of this epoch, by stream: [step, batch]
CHUNK = 2**23  # numbers in the batches gathered at a time, to bound memory
WIDTH = 16  # units are padded to a multiple: torch's vector loops, not their scalar rest, then compute every unit


@dataclass(frozen=True)
class _Feed:
    """Where a lane's batches come from: a stream, and with `turns` only the steps that are those of `slot`."""

    stream: int
    turns: Turns | None = None
    slot: int = 0


@dataclass(eq=False)
class _Block:
    """The lanes of one form, side by side."""

    form: Linear | Exponential
    feeds: list[_Feed]
    tables: list[Tensor]
    feed_of_lane: Int[Tensor, " lane"] | None  # None where each lane has its own
    units: Int[Tensor, " lane"]
    goal: Float[Tensor, "coefficient lane"]
    batch: int
    steps: list[Tensor] = field(default_factory=list)

    def prepare(self, orders: Orders, turns: Mapping[Turns, Tensor], start: int, end: int) -> None:
        """Gather the batches of steps `start` to `end` (not included)."""
        whole = self.goal.new_empty(self.form.room(len(self.feeds), end - start, self.batch))
        for feed, table, out in zip(self.feeds, self.tables, whole, strict=True):
            order = orders[feed.stream]
            if feed.turns is None:
                self.form.gather(table, order[start:end], out)
                continue
            own = turns[feed.turns] == feed.slot
            before, now = int(own[:start].sum()), own[start:end].nonzero()[:, 0]
            mine = self.goal.new_empty(self.form.room(1, len(now), self.batch))[0]
            self.form.gather(table, order[before : before + len(now)], mine)
            out.zero_().index_copy_(self.form.steps_on - 1, now, mine)  # an empty batch has no loss and no gradient
        if self.feed_of_lane is not None and self.form.gathers == "an epoch":
            whole = whole.index_select(0, self.feed_of_lane)
        self.steps = self.form.arrange(whole)

    def numbers_a_step(self) -> int:
        """What `prepare` holds of one step."""
        copies = len(self.units) if self.form.gathers == "an epoch" else len(self.feeds)
        return math.prod(self.form.room(copies, 1, self.batch))

    def answer(self, W: Weights, at: int) -> tuple[Float[Tensor, " lane"], Weights]:
        """Loss and gradient of the prepared step `at`."""
        batch = self.steps[at]
        if self.feed_of_lane is not None and self.form.gathers == "a step":
            batch = batch.contiguous().index_select(0, self.feed_of_lane)
        return self.form.gradient(W, batch, self.goal, self.batch)


@dataclass(frozen=True, eq=False)
class Record:
    """The state of some units just before a step, and their loss on its batch."""

    step: int
    places: Int[Tensor, " unit"]
    raw: Float[Tensor, "2 2 unit"]
    loss: Float[Tensor, " unit"]


class Group:
    """Units of one number of steps an epoch. `places` are their numbers in the whole stack.

    `raw` is [W_hat or M_hat, input, unit], padded with copies of the last unit, which nothing reads.
    """

    def __init__(self, streams: Sequence[Stream], units: Sequence[Unit], places: Sequence[int], batch: int, every: int):
        self._streams, self._batch, self._every = streams, batch, every
        self._forms = {place: form(stream.target, stream.x) for place, stream in enumerate(streams)}
        kinds, forms = list(DEFAULTS), list(dict.fromkeys(self._forms.values()))
        rank = {
            p: (kinds.index(units[p].optimizer.kind), forms.index(self._forms[units[p].streams[0]])) for p in places
        }
        order = sorted(places, key=rank.__getitem__)
        self.places = torch.tensor(order)
        self._units = [units[place] for place in order]
        padded = self._units + self._units[-1:] * (-len(order) % WIDTH)
        dtype = streams[0].x.dtype
        self.raw = (
            torch.tensor([[unit.W_hat, unit.M_hat] for unit in padded], dtype=dtype).permute(1, 2, 0).contiguous()
        )
        self._stepper = Stepper([unit.optimizer for unit in padded], self.raw)
        self._tables: dict[int, Tensor] = {}
        self._records: list[Record] = []
        self._arrange()

    def streams_read(self) -> list[int]:
        """The streams that the group's units learn from."""
        return sorted({stream for unit in self._units for stream in unit.streams})

    def take_records(self) -> list[Record]:
        """What was recorded since this was last asked."""
        taken, self._records = self._records, []
        return taken

    def _arrange(self) -> None:
        """Sort the lanes of all units into blocks of one form."""
        lanes: dict[Linear | Exponential, list[tuple[int, _Feed]]] = {}
        for place, unit in enumerate(self._units):
            for slot, stream in enumerate(unit.streams):
                feed = _Feed(stream, unit.turns, slot) if unit.turns else _Feed(stream)
                lanes.setdefault(self._forms[stream], []).append((place, feed))
        self._blocks = [self._block(kind, members) for kind, members in lanes.items()]
        self._lanes = torch.cat([block.units for block in self._blocks])
        count = len(self._units)
        self._tiled = self._lanes.tolist() == list(range(count))  # each unit one lane, in the units' own order
        self._rest = self.raw.new_zeros((3, self.raw.shape[-1] - count))
        self._idle = torch.tensor([self._idle_weights(unit) for unit in self._units]).T  # [input, unit]
        self._before = self.raw.clone()
        self._gradient = torch.empty_like(self.raw)
        self._W_hat, self._M_hat = self.raw.unbind()  # views
        self._by = self._gradient.unbind()
        self._total = self.raw.new_zeros(self.raw.shape[-1])

    def _idle_weights(self, unit: Unit) -> tuple[bool, bool]:
        """Which of a unit's weights have no gradient from any of its streams."""
        found = [self._forms[stream].idle(self._table(stream)) for stream in unit.streams]
        return all(first for first, _ in found), all(second for _, second in found)

    def settled(self) -> Bool[Tensor, " unit"]:
        """Units that can never move again: the last epoch left every bit in place, and no gradient can reach them.

        Of each weight, both partial derivatives of the constraint are exactly 0, or its input is 1 throughout.
        """
        count = len(self._units)
        by_W_hat, by_M_hat = partials(*self.raw[..., :count].unbind())
        reached = ((by_W_hat == 0) & (by_M_hat == 0)) | self._idle
        return reached.all(dim=0) & (self.raw == self._before)[..., :count].flatten(0, 1).all(dim=0)

    def _block(self, kind: Linear | Exponential, members: Sequence[tuple[int, _Feed]]) -> _Block:
        feeds = list(dict.fromkeys(feed for _, feed in members))
        of_lane = [feeds.index(feed) for _, feed in members]
        dtype = self.raw.dtype
        goals = [kind.goal(self._streams[feed.stream].target.selection, dtype) for _, feed in members]
        return _Block(
            form=kind,
            feeds=feeds,
            tables=[self._table(feed.stream) for feed in feeds],
            feed_of_lane=None if of_lane == list(range(len(members))) else torch.tensor(of_lane),
            units=torch.tensor([unit for unit, _ in members]),
            goal=torch.stack(goals, dim=-1),
            batch=self._batch,
        )

    def _table(self, place: int) -> Tensor:
        if place not in self._tables:
            stream = self._streams[place]
            self._tables[place] = self._forms[place].table(stream.x, stream.y, stream.target.selection)
        return self._tables[place]

    def epoch(self, number: int, orders: Orders) -> Float[Tensor, " unit"]:
        """Train every unit for epoch `number`; returns each unit's mean loss over it."""
        turns = {unit.turns: unit.turns(number) for unit in self._units if unit.turns}
        steps = sum(len(orders[stream]) for stream in self._units[0].streams)
        for rows in turns.values():
            if len(rows) != steps:
                raise BadInput(f"turns for {len(rows)} steps of an epoch, expected {steps}")
        chunk = max(1, CHUNK // max(block.numbers_a_step() for block in self._blocks))
        self._total.zero_()
        self._before.copy_(self.raw)
        for start in range(0, steps, chunk):
            end = min(start + chunk, steps)
            for block in self._blocks:
                block.prepare(orders, turns, start, end)
            for at in range(end - start):
                self._step(at)
        return self._total[: len(self._units)] / (steps * self._batch)

    def _step(self, at: int) -> None:
        tanh, sigmoid = torch.tanh(self._W_hat), torch.sigmoid(self._M_hat)
        loss, slope = self._answers(tanh * sigmoid, at)
        self._total += loss
        if self._every and self._stepper.taken % self._every == 0:
            count = len(self._units)
            self._records.append(
                Record(self._stepper.taken, self.places, self.raw[..., :count].clone(), loss[:count] / self._batch)
            )
        by_W_hat, by_M_hat = self._by
        torch.ops.aten.tanh_backward.grad_input(slope * sigmoid, tanh, grad_input=by_W_hat)
        torch.ops.aten.sigmoid_backward.grad_input(slope * tanh, sigmoid, grad_input=by_M_hat)
        self._stepper.step(self.raw, self._gradient)

    def _answers(self, W: Float[Tensor, "2 unit"], at: int) -> tuple[Float[Tensor, " unit"], Float[Tensor, "2 unit"]]:
        """Loss and gradient with respect to W of every unit, summed over its lanes."""
        if self._tiled:
            found, first = [], 0
            for block in self._blocks:
                last = first + len(block.units)
                found.append(block.answer(W[:, first:last], at))
                first = last
            loss = torch.cat([*(one for one, _ in found), self._rest[2]])
            return loss, torch.cat([*(slope for _, slope in found), self._rest[:2]], dim=1)
        found = [block.answer(W.index_select(1, block.units), at) for block in self._blocks]
        both = torch.cat([torch.cat([slope, one[None]]) for one, slope in found], dim=1)
        summed = both.new_zeros((3, W.shape[1])).index_add_(1, self._lanes, both)
        return summed[2], summed[:2]

    def keep(self, running: Bool[Tensor, " of_stack"]) -> None:
        """Leave out the units of the stack that no longer run."""
        kept = running[self.places].nonzero()[:, 0]
        if len(kept) == len(self.places):
            return
        self.places = self.places[kept]
        self._units = [self._units[unit] for unit in kept.tolist()]
        if not self._units:
            return
        padded = torch.cat([kept, kept[-1:].expand(-len(kept) % WIDTH)])
        self.raw = self.raw[..., padded]
        self._stepper.keep(padded)
        self._tables = {place: self._tables[place] for place in self.streams_read()}
        self._arrange()
