"""Every input of an algorithm through the sliced machine, and what its signs hung on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from workbench.ntk import kernel
from workbench.ntk.arithmetic import Algorithm
from workbench.ntk.sliced import CHUNK, Point, Sliced, Survey
from workbench.ntk.templates import to_bits
from workbench.ntk.words import Packed, Row, different, pack

BATCH = 64 * CHUNK  # inputs at a time, so that memory does not grow with their number


@dataclass(frozen=True)
class Checked:
    """What came of all inputs of one algorithm."""

    algorithm: Algorithm
    label: str  # which permutation; "" where there is one algorithm of its size
    leaking: float  # h was multiplied by this; 1 is the predictor
    wrong: int  # inputs whose answer after the last step is not the exact one
    settled: int  # the first count of steps from which on no answer was wrong; 0 where there is none
    survey: Survey

    @cached_property
    def numbers(self) -> dict[str, float]:
        """What follows from the points that occurred.

        `most`: the largest m. `one` and `zero`: the smallest mean of a bit to be 1, and minus the largest of one to be
        0 where that is not 0 by construction (NaN where there is none). `load`: the largest `T (m - 1/g_m) / S`, which
        the sign rule wants below `N + 2 pi - 1`. `tolerance`: the factor on h at which the first sign fails.
        """
        machine = Sliced(self.algorithm.templates, leaking=self.leaking)
        ones = [point for point in self.survey.points if point[1] >= 1]
        zeros = [(m, s, t) for m, s, t in self.survey.points if s == 0 and t and m >= 2]
        load = max((_load(point) for point in ones), default=0.0)
        return {
            "most": max((m for m, _, _ in self.survey.points), default=0),
            "one": min((mean(machine, point) for point in ones), default=np.nan),
            "zero": -max((mean(machine, point) for point in zeros), default=np.nan),
            "load": load,
            "tolerance": (self.algorithm.templates.count + kernel.ridge()) / load if load else np.inf,
        }


def mean(machine: Sliced, point: Point) -> float:
    """The predictor at (m, S, T)."""
    m, writers, written = point
    return float(machine.gain[m] * writers - machine.leak[m] * written)


def _load(point: Point) -> float:
    m, writers, written = point
    return written * (m - 1 / float(kernel.gain(torch.tensor(m)))) / writers


def check(algorithm: Algorithm, label: str = "", leaking: float = 1.0) -> Checked:
    """Run every input for the algorithm's steps and compare the answer after each step with integer arithmetic's."""
    machine = Sliced(algorithm.templates, leaking=leaking)
    survey = Survey(np.zeros(len(algorithm.templates.templates) + 1, np.int64))
    wrong = last = 0
    for first in range(0, algorithm.inputs, BATCH):
        numbers = algorithm.pairs(first, BATCH)
        wanted = pack(to_bits(algorithm.exact(*numbers), len(algorithm.result))).rows

        def watch(at: int, states: Packed, wanted: list[Row] = wanted) -> None:
            nonlocal last
            if at > last and _wrong(algorithm, states, wanted):
                last = at

        run = machine.run(pack(algorithm.start(*numbers)), algorithm.steps, watch)
        survey.add(run.survey)
        wrong += _wrong(algorithm, run.states, wanted)
    return Checked(algorithm, label, leaking, wrong, 0 if wrong else last + 1, survey)


def _wrong(algorithm: Algorithm, states: Packed, wanted: list[Row]) -> int:
    """How many states hold another answer than the wanted one."""
    return different([states.rows[place] for place in algorithm.result], wanted, states.valid())
