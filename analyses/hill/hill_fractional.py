"""Analysis `hill-fractional`: roots and powers asked of the exponential primitive (report section 2.3).

The report says that exponents such as 1/2 and 1/3 cannot be represented stably: small steps move a weight around its
target and rarely land on it. It publishes no numbers. Here every root is asked for by the ten optimizer settings of its
section 2.2, from near-neutral starts, with exact answers and with answers that are off by 1%: how often a unit lands on
the root, how near it ends, and how far training still moves it.

The controls are two selections (identity and multiplication) trained in the same way; beside them stand two powers that
no weight can reach.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FULL_SEEDS, FULL_EPOCHS = 5, 50


@dataclass(frozen=True)
class Options:
    """How many units are trained, and for how long."""

    seeds: int = knob(2, "seeds: initial weights, problems and batch orders")
    epochs: int = knob(3, "epochs of 1,000 steps")
    seed: int = knob(0, "the first seed")
    full: bool = knob(False, f"{FULL_EPOCHS} epochs and {FULL_SEEDS} seeds: minutes")

    def __post_init__(self) -> None:
        check_types(self)
        if not (1 <= self.seeds <= 100 and 1 <= self.epochs <= 1000):
            raise BadInput(f"seeds and epochs are {self.seeds:,} and {self.epochs:,}, expected 1 to 100 and 1 to 1,000")
        if not 0 <= self.seed < 2**31:
            raise BadInput(f"seed is {self.seed}, expected 0 to 2**31 - 1")


@analysis(
    question="Can the exponential primitive learn roots and powers: how often, how near, how stably, by optimizer?",
    options=Options,
    inputs="nothing",
)
def hill_fractional(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Where units of roots end, beside units of selections, by ten optimizers, with exact and with noisy answers."""
    import pandas as pd

    from analyses.hill import _hill_fractional_tables as tables
    from analyses.hill._hill_fractional_figures import distances_figure, slopes_figure
    from analyses.hill._hill_fractional_training import train

    seeds, epochs = (FULL_SEEDS, FULL_EPOCHS) if options.full else (options.seeds, options.epochs)
    rows = tables.units(train(epochs, range(options.seed, options.seed + seeds)))
    cells = tables.cells(rows)
    found = {"summary": tables.summary(rows), "cells": cells, "units": pd.DataFrame(rows)}
    figures = {"distances": distances_figure(cells), "slopes": slopes_figure(rows)}
    return Result(found, figures, [*short(epochs), *tables.findings(rows)])


def short(epochs: int) -> list[Finding]:
    """A word on runs shorter than the full one."""
    if epochs >= FULL_EPOCHS:
        return []
    text = f"A short run of {epochs} epochs: slow optimizers are still on their way; --full trains for {FULL_EPOCHS}."
    return [Finding(text, epochs, control="epochs of the full run", control_value=FULL_EPOCHS)]
