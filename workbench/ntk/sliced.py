"""The machine of `workbench.ntk.machine` with 64 states to a word: the same states, flips and margins, much faster.

A template's condition is a few ANDs of whole words; m and S are counted in words too. What a bit becomes is still the
sign of `g_m S - h_m T`: it is computed in float64 for every (m, S, T) that can occur, by the expression of the plain
machine, and the next state is put together from those signs and from where each m and each S stand. Only where the
signs of all m that occur in a step agree is m not looked at for it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.ntk import kernel, words
from workbench.ntk.machine import EPSILON
from workbench.ntk.templates import TemplateSet
from workbench.ntk.words import Packed, Row, Words

CHUNK = 4096  # words of a row that are worked on at a time: 32 KiB, so that what a step reads again is still in a cache

Point = tuple[int, int, int]  # (m, S, T) of one bit of one state
Watch = Callable[[int, Packed], None]


@dataclass
class Survey:
    """What occurred over all states and steps: how often each m, which (m, S, T), how many flips."""

    matched: Int[np.ndarray, " m"]
    points: set[Point] = field(default_factory=set)
    flips: int = 0

    def add(self, other: "Survey") -> None:
        """Take in what occurred elsewhere."""
        self.matched = self.matched + other.matched
        self.points |= other.points
        self.flips += other.flips


@dataclass(frozen=True)
class SlicedRun:
    """States after all steps, as the plain machine's `Run`, and what occurred on the way."""

    states: Packed
    steps: int
    fixed: bool  # the last step changed no state
    flips: int
    margin: float  # the smallest |mean| of a bit that some template writes while m >= 2 or S >= 1
    survey: Survey


@dataclass(frozen=True)
class _Reading:
    """How, in one step, bits with the same T and as many writers that match anywhere read S."""

    groups: list[tuple[tuple[bool, ...], Row]]  # which S give a 1, and the states whose m this holds for (None: all)
    odd: bool  # some sign is not that of `S >= 1`
    sought: list[int]  # the S of which it is not known whether they occur with every m there is


class Sliced:
    """A template set, and the signs of `g_m S - h_m T` for every m = 0 .. N and S = 0 .. T.

    `leaking` multiplies h_m: 1 is the predictor, anything else a control that shows what the leak decides.
    """

    def __init__(self, templates: TemplateSet, form: kernel.Form = "ntk", leaking: float = 1.0) -> None:
        self.templates = templates
        m = torch.arange(len(templates.templates) + 1)
        self.gain, self.leak = kernel.gain(m, form), leaking * kernel.leak(m, templates.count, form)
        self.writers: list[list[int]] = [[] for _ in range(templates.layout.bits)]
        for place, one in enumerate(templates.templates):
            for bit in one.writes:
                self.writers[bit].append(place)
        self.signs = {t: (self.means(t) > EPSILON).numpy() for t in sorted({len(w) for w in self.writers})}

    def means(self, written: int) -> Float[Tensor, "writers m"]:
        """`g_m S - h_m T` for S = 0 .. T and every m."""
        return self.gain * torch.arange(written + 1)[:, None] - self.leak * torch.tensor(written)

    def margin(self, points: Iterable[Point]) -> float:
        """The smallest |mean| of these points, but for those whose mean is 0 by construction."""
        means = {t: self.means(t) for t in {t for _, _, t in points}}
        return min((abs(float(means[t][s, m])) for m, s, t in points if t and (s or m >= 2)), default=np.inf)

    def run(self, states: Packed, steps: int, watch: Watch | None = None) -> SlicedRun:
        """Up to `steps` iterations; ends early once a step changes nothing. `watch(i, states)` sees each, i from 1."""
        survey = self._empty()
        parts = words.split(states, CHUNK)
        settled: list[Survey | None] = [None] * len(parts)  # what occurs in each step of a part that stands still
        taken = 0
        while taken < steps and not (taken and all(settled)):
            taken += 1
            for place, part in enumerate(parts):
                if (there := settled[place]) is None:
                    rows, there = self._step(part, survey.points)
                    settled[place] = there if words.same(part.rows, rows) else None
                    parts[place] = Packed(rows, part.states)
                survey.add(there)
            if watch:
                watch(taken, words.join(parts))
        fixed = taken > 0 and all(settled)
        return SlicedRun(words.join(parts), taken, fixed, survey.flips, self.margin(survey.points), survey)

    def _empty(self) -> Survey:
        return Survey(np.zeros(len(self.gain), np.int64))

    def _step(self, states: Packed, known: set[Point]) -> tuple[list[Row], Survey]:
        """The rows after one step, and what occurred in it; `known` points are not looked for again."""
        valid = states.valid()
        matches = [_match(states.rows, one.on, one.off) for one in self.templates.templates]
        places = words.sort_out(words.count(matches), valid)
        survey, rows = self._empty(), []
        for m, where in places.items():
            survey.matched[m] = np.bitwise_count(where).sum()
        readings: dict[tuple[int, int], _Reading] = {}
        seen: dict[tuple[int, int], list[Words]] = {}
        for writers in self.writers:
            live = [matches[place] for place in writers if matches[place] is not None]
            kind = (len(writers), len(live))
            if (reading := readings.get(kind)) is None:
                reading = readings[kind] = self._reading(*kind, places, known)
            digits = words.count(live)
            row = _chosen(digits, reading, valid)
            rows.append(row)
            if reading.odd:
                survey.flips += words.different([row], [words.differs(digits, 0)], valid)
            for s in reading.sought:
                seen.setdefault((s, len(writers)), []).append(words.equals(digits, s, len(valid)))
        for (s, written), found in seen.items():
            anywhere = np.bitwise_or.reduce(found)
            survey.points |= {(m, s, written) for m, where in places.items() if (where & anywhere).any()}
        return rows, survey

    def _reading(self, written: int, live: int, places: dict[int, Words], known: set[Point]) -> _Reading:
        """The reading of bits with T = `written` and at most `live` matched writers, given where each m stands."""
        signs: Bool[np.ndarray, "writers m"] = self.signs[written][: live + 1, list(places)]
        alike: dict[tuple[bool, ...], list[Words]] = {}
        for column, where in zip(signs.T.tolist(), places.values(), strict=True):
            alike.setdefault(tuple(column), []).append(where)
        one = len(alike) == 1
        groups = [(column, None if one else np.bitwise_or.reduce(where)) for column, where in alike.items()]
        odd = bool((signs != (np.arange(live + 1) >= 1)[:, None]).any())
        sought = [s for s in range(live + 1) if any((m, s, written) not in known for m in places)]
        return _Reading(groups, odd, sought)


def _match(rows: Sequence[Row], on: Sequence[int], off: Sequence[int]) -> Row:
    """Where the `on` bits are 1 and the `off` bits 0."""
    found = None
    for place in on:
        if (row := rows[place]) is None:
            return None
        found = row if found is None else found & row
    for place in off:
        if (row := rows[place]) is not None:
            found = found & ~row
    return found if found is not None and found.any() else None


def _chosen(digits: Sequence[Words], reading: _Reading, valid: Words) -> Row:
    """The bit of every state with S in `digits`."""
    found = None
    for column, where in reading.groups:
        here = words.among(digits, column, len(valid))
        if here is None:
            continue
        here = here & (valid if where is None else where)
        found = here if found is None else found | here
    return found if found is not None and found.any() else None
