"""Analysis `hill-ranges`: gradients and failures against the range of the training inputs (report section 2.4).

The report says, without numbers, that large ranges lead to large gradients, which can explode; that positive inputs
train without trouble and ranges that cross zero do not; that trigonometric units do not care about sign; and that a
unit trained on its recommended range (1e-8, 10) generalises to any. Here:

- *gradients*: the size of the loss's gradient over W at zero weights, half of the way to the selection and nine tenths
  of it, for seven operations on 15 ranges: positive, negative and zero-crossing, of sizes 1 to 10,000;
- *training*: every operation on every range by four optimizers from zero weights, some seeds each. A unit is *lost*
  when it ends nearer to another selection;
- *answers* of the exact units to inputs of any magnitude, against the native operator's bits.

The controls are the operations whose targets have no scale, and the recommended range.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FULL_SEEDS, FULL_EPOCHS = 10, 50
ASKED = ("add", "subtract", "multiply", "divide")  # of which the exact units are asked on other ranges


@dataclass(frozen=True)
class Options:
    """How many units are trained, and for how long."""

    seeds: int = knob(2, "seeds: problems and batch orders; weights begin at 0")
    epochs: int = knob(20, "epochs of 100 steps")
    seed: int = knob(0, "the first seed")
    full: bool = knob(False, f"{FULL_EPOCHS} epochs and {FULL_SEEDS} seeds: minutes")

    def __post_init__(self) -> None:
        check_types(self)
        if not (1 <= self.seeds <= 100 and 1 <= self.epochs <= 1000):
            raise BadInput(f"seeds and epochs are {self.seeds:,} and {self.epochs:,}, expected 1 to 100 and 1 to 1,000")
        if not 0 <= self.seed < 2**31:
            raise BadInput(f"seed is {self.seed}, expected 0 to 2**31 - 1")


@analysis(
    question="What does the range of the training inputs do to gradients and to training?",
    options=Options,
    inputs="nothing",
)
def hill_ranges(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Gradients, lost units and answers of seven operations on fifteen ranges, by four optimizers."""
    import pandas as pd

    from analyses.hill import _hill_ranges_tables as tables
    from analyses.hill._hill_ranges_figures import gradients_figure, lost_figure
    from analyses.hill._hill_ranges_training import bits, gradients, train

    seeds, epochs = (FULL_SEEDS, FULL_EPOCHS) if options.full else (options.seeds, options.epochs)
    steep = tables.slopes(gradients(options.seed))
    trained = train(epochs, range(options.seed, options.seed + seeds))
    rows = tables.units(trained)
    answers = {name: bits(trained, name, options.seed) for name in ASKED}
    cells = tables.cells(rows)
    found = {
        "summary": tables.summary(rows),
        "cells": cells,
        "gradients": pd.DataFrame(steep),
        "exponents": tables.exponents(steep),
        "units": pd.DataFrame(rows),
    }
    figures = {"gradients": gradients_figure(steep), "lost": lost_figure(cells)}
    return Result(found, figures, [*short(epochs), *tables.findings(steep, rows, answers)])


def short(epochs: int) -> list[Finding]:
    """A word on runs shorter than the full one."""
    if epochs >= FULL_EPOCHS:
        return []
    text = f"A short run of {epochs} epochs: some units are still on their way; --full trains for {FULL_EPOCHS}."
    return [Finding(text, epochs, control="epochs of the full run", control_value=FULL_EPOCHS)]
