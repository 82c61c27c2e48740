"""Analysis `hill-optimizers`: which optimizers bring weights to a selection, with and without snapping (section 2.2).

Ten optimizer settings by eight operations, evaluated without snapping and with thresholds of 1e-6 and 1e-2: the 240
published cells. Each unit is trained once and evaluated three times. A cell has *reached* below a mean squared error of
1e-6, is *short* below 1e-2 and has *failed* above.

- *measured*: the published seed, data, answers through decimals, batch order, rates and complex powers. Beside it the
  same trainings *nudged*, begun 1e-12 to 4e-12 away: the spread that rounding alone can cause.
- *plain*: the same rates, float64 answers, other seeds and sign-exact powers.
- *defaults*: the same with torch's default settings, which the report's text claims and its experiment does not use.

Why 14 cells, all of sines, can differ in digits though not in class. Ten have exact weights: what is left is the
difference between torch's sine and numpy's, and torch takes it from Intel MKL, whose code for AVX-512 rounds some
results other than its code for AVX2; in a process started with MKL_ENABLE_INSTRUCTIONS=AVX2 the ten agree. Four are
AdamW's, whose weight decay keeps the weights moving for ever: rounding decides where they are when training ends.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FULL_SEEDS = 3
MOST_EPOCHS, MOST_SEEDS = 1000, 100


@dataclass(frozen=True)
class Options:
    """How long the units are trained, and on how many seeds besides the published one."""

    epochs: int = knob(5, "epochs of 1,000 steps; weights are still on their way when a short run ends")
    seeds: int = knob(2, "seeds of the plain columns")
    seed: int = knob(0, "the first of them")
    full: bool = knob(
        False, f"the published 100 epochs, which alone can be compared, and {FULL_SEEDS} seeds: 2 minutes"
    )

    def __post_init__(self) -> None:
        check_types(self)
        if not (1 <= self.epochs <= MOST_EPOCHS and 1 <= self.seeds <= MOST_SEEDS):
            raise BadInput(
                f"epochs and seeds are {self.epochs:,} and {self.seeds:,}, expected 1 to {MOST_EPOCHS:,} and 1 to "
                f"{MOST_SEEDS}"
            )
        if not 0 <= self.seed < 2**31:
            raise BadInput(f"seed is {self.seed}, expected 0 to 2**31 - 1")


@analysis(
    question="Which optimizers bring an exact unit's weights to its selection, and what does snapping add?",
    options=Options,
    inputs="nothing",
)
def hill_optimizers(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """The published matrix beside the measured one, plain trainings, true defaults, and every cell that differs."""
    import pandas as pd

    from analyses.hill import _hill_optimizers_tables as tables
    from analyses.hill._hill_optimizers_figures import beside_figure, matrix_figure, plain_figure
    from analyses.hill._hill_optimizers_findings import findings
    from analyses.hill._hill_optimizers_matrix import FULL_EPOCHS, measure

    epochs, count = (FULL_EPOCHS, FULL_SEEDS) if options.full else (options.epochs, options.seeds)
    trained = measure(epochs, range(options.seed, options.seed + count))
    rows = tables.cells(trained, comparable=epochs == FULL_EPOCHS)
    different = tables.differing(rows, tables.exact_cells(trained))
    columns = ["operation", "optimizer", "snapping", "measured", "published", "class", "published_class",
               "nudged_low", "nudged_high", "reason"]  # fmt: skip
    numbers = ("snapping", "measured", "published", "nudged_low", "nudged_high")
    kinds = {column: "float64" if column in numbers else "str" for column in columns}
    found = {
        "summary": tables.summary(rows),
        "cells": pd.DataFrame(rows),
        "differing": pd.DataFrame(different, columns=columns).astype(kinds),
    }
    figures = {"matrix": matrix_figure(rows), "plain": plain_figure(rows), "beside": beside_figure(rows)}
    return Result(found, figures, findings(rows, different, epochs))
