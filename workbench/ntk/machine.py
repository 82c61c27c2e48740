"""A machine: a template set run by the infinitely wide network's mean predictor, many states at once.

Every bit of the next state is the sign of `g_m S - h_m T` in float64 (`workbench.ntk.kernel`), never a logical OR;
where the two differ, that is counted as a flip. This is the plain form, two matrix products a step, and the oracle of
the bit-sliced one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped, UInt8
from torch import Tensor

from workbench.ntk import kernel
from workbench.ntk.templates import TemplateSet

EPSILON = 1e-10  # a bit is 1 above this; a mean that is 0 in exact arithmetic is not (the authors' code)


@dataclass(frozen=True)
class Step:
    """What one step did to each state."""

    states: UInt8[Tensor, "batch bit"]  # after it
    matched: Int[Tensor, " batch"]  # m: templates whose condition held
    writers: Int[Tensor, "batch bit"]  # S: those of them that write each bit
    mean: Float[Tensor, "batch bit"]  # the predictor, float64
    flips: Bool[Tensor, "batch bit"]  # the sign is not the wanted `S >= 1`


@dataclass(frozen=True)
class Run:
    """States after all steps; how many bits flipped on the way; the step after which nothing changed, if any."""

    states: UInt8[Tensor, "batch bit"]
    steps: int
    flips: int
    margin: float  # the smallest |mean| of a bit that some template writes while m >= 2 or S >= 1
    fixed: bool  # the last step changed no state


Watch = Callable[[int, Step], None]


class Machine:
    """A template set with the tables of g_m and h_m of its size, m = 0 .. N."""

    def __init__(self, templates: TemplateSet, form: kernel.Form = "ntk") -> None:
        self.templates = templates
        m = torch.arange(len(templates.templates) + 1)
        self.gain = kernel.gain(m, form)
        self.leak = kernel.leak(m, templates.count, form)

    def matches(self, states: UInt8[Tensor, "batch bit"]) -> Bool[Tensor, "batch template"]:
        """Which conditions hold. Exact: sums of at most a few hundred ones in float32."""
        return states.float() @ self.templates.literals == self.templates.needed

    def step(self, states: UInt8[Tensor, "batch bit"]) -> Step:
        """One iteration: match, encode, predict, threshold."""
        match = self.matches(states)
        matched = match.sum(dim=1)
        writers = (match.float() @ self.templates.labels).long()
        mean = self.gain[matched, None] * writers - self.leak[matched, None] * self.templates.written
        bits = mean > EPSILON
        return Step(bits.to(torch.uint8), matched, writers, mean, bits != (writers >= 1))

    def run(self, states: UInt8[Tensor, "batch bit"], steps: int, watch: Watch | None = None) -> Run:
        """Up to `steps` iterations; ends early once a step changes nothing. `watch(i, step)` sees each, i from 1."""
        flips, margin, taken, fixed = 0, torch.inf, 0, False
        while taken < steps and not fixed:
            step = self.step(states)
            taken += 1
            flips += int(step.flips.sum())
            margin = min(margin, decisive(step, self.templates.written))
            fixed = bool((step.states == states).all())
            states = step.states
            if watch:
                watch(taken, step)
        return Run(states, taken, flips, margin, fixed)


def decisive(step: Step, written: Shaped[Tensor, " bit"]) -> float:
    """The smallest |mean| of a step over the bits whose mean is not 0 by construction.

    A bit that no template writes, or that no matched one writes while m <= 1, has mean exactly 0 and is read as 0.
    """
    counts = (written > 0) & ((step.writers > 0) | (step.matched[:, None] >= 2))
    return float(step.mean.abs().masked_fill(~counts, torch.inf).min())
