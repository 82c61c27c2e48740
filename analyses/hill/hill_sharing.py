"""Analysis `hill-sharing`: one weight pair for several operations, and the zero expected gradient.

Two remarks of the report's section 5 are measured.

- Operations that want the same selection can share one weight pair, or each have its own; it has "no evidence that
  either is better". Four groups of two or three operations are trained both ways from the same starts, on the same
  batches, by the optimizer of section 4.5. A group succeeds when all its operations are exact; what decides is the
  pairs of trainings in which one way alone succeeds.
- Madsen & Johansen (2020) derive that the expected gradient of M_hat is zero at zero-mean initial weights, and the
  report finds that such starts train reliably. The mean gradient is taken over many starts; for additive units it
  has a closed form. At weights of exactly zero, the first steps show how training leaves.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FULL_SEEDS, FULL_EPOCHS, FULL_STARTS = 50, 30, 10_000


@dataclass(frozen=True)
class Options:
    """How many units are trained, for how long, and how many starts are averaged."""

    seeds: int = knob(5, "seeds: starts, problems and batch orders")
    epochs: int = knob(10, "epochs of 100 steps an operation")
    starts: int = knob(1000, "initial weights over which a gradient is averaged")
    seed: int = knob(0, "the first seed")
    full: bool = knob(False, f"{FULL_SEEDS} seeds, {FULL_EPOCHS} epochs and {FULL_STARTS:,} starts: minutes")

    def __post_init__(self) -> None:
        check_types(self)
        if not (2 <= self.seeds <= 500 and 1 <= self.epochs <= 1000 and 2 <= self.starts <= 1_000_000):
            raise BadInput(
                f"seeds, epochs and starts are {self.seeds:,}, {self.epochs:,} and {self.starts:,}, expected 2 to 500, "
                "1 to 1,000 and 2 to 1,000,000"
            )
        if not 0 <= self.seed < 2**31:
            raise BadInput(f"seed is {self.seed}, expected 0 to 2**31 - 1")


@analysis(
    question="Is a weight pair shared by operations better or worse, and is a zero mean gradient an obstacle?",
    options=Options,
    inputs="nothing",
)
def hill_sharing(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Shared against separate weight pairs, mean gradients over zero-mean starts, and the way out of zero weights."""
    from analyses.hill import _hill_sharing_tables as tables
    from analyses.hill._hill_sharing_figures import escape_figure, expected_figure, sharing_figure
    from analyses.hill._hill_sharing_gradients import escape, expected
    from analyses.hill._hill_sharing_training import train

    seeds, epochs, starts = (
        (FULL_SEEDS, FULL_EPOCHS, FULL_STARTS) if options.full else (options.seeds, options.epochs, options.starts)
    )
    every = range(options.seed, options.seed + seeds)
    rows = train(epochs, every)
    means, ways = expected(options.seed, starts), escape(every)
    cells = tables.cells(rows)
    found = {
        "summary": tables.summary(rows),
        "cells": cells,
        "pairs": tables.pairs(rows),
        "expected": tables.expectations(means),
    }
    figures = {"sharing": sharing_figure(cells), "expected": expected_figure(means), "escape": escape_figure(ways)}
    return Result(found, figures, [*short(seeds), *tables.findings(rows, means, ways)])


def short(seeds: int) -> list[Finding]:
    """A word on runs with fewer seeds than the full one."""
    if seeds >= FULL_SEEDS:
        return []
    text = f"A short run of {seeds} seeds: intervals are wide; --full takes {FULL_SEEDS}."
    return [Finding(text, seeds, control="seeds of the full run", control_value=FULL_SEEDS)]
