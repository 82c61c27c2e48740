"""Analysis `hill-snapped-training`: snapping during training, by hard masks and straight through (report section 2.2).

The report says of snapping in training that it "also works and sometimes converges faster", without more.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FULL = (40, 10_000)  # starts a cell, steps


@dataclass(frozen=True)
class Options:
    """How many starting weights, and how long."""

    starts: int = knob(10, "starting weights a cell of operation, optimizer and scale; every way to snap gets the same")
    steps: int = knob(2400, "steps a training, in epochs of 300")
    full: bool = knob(False, "40 starting weights a cell and 10,000 steps: about ten minutes")
    seed: int = knob(400, "seed of the starting weights and of the data")

    def __post_init__(self) -> None:
        check_types(self)
        if not 2 <= self.starts <= 1000 or not 300 <= self.steps <= 100_000:
            raise BadInput(f"{self.starts} starts of {self.steps} steps, expected 2 to 1000 of 300 to 100,000")
        if not 0 <= self.seed < 10**9:
            raise BadInput(f"seed is {self.seed}, expected 0 to 10^9")


@analysis(
    question="Does snapping during training help: how fast, how often does it fail, and with which operations?",
    options=Options,
    inputs="nothing",
)
def hill_snapped_training(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Train every operation with hard masks, straight through and unsnapped, from the same starts; evaluation snaps."""
    import pandas as pd

    from analyses.hill import _hill_snapped_training_figures as figures
    from analyses.hill import _hill_snapped_training_findings as findings
    from analyses.hill import _hill_snapped_training_runs as runs

    starts, steps = FULL if options.full else (options.starts, options.steps)
    rows = runs.train_all(starts, options.seed, steps)
    summary, operations = findings.summary(rows), findings.by_operation(rows)
    shown = {
        "right": figures.right_figure(summary),
        "operations": figures.operations_figure(operations),
        "speed": figures.speed_figure(rows),
    }
    found = [
        findings.length_of_run(options.full, rows, steps),
        findings.failures_finding(rows, findings.HARD),
        findings.failures_finding(rows, findings.THROUGH),
        findings.frozen_finding(rows),
        findings.speed_finding(rows, findings.HARD),
        findings.speed_finding(rows, findings.THROUGH),
        findings.stop_finding(rows),
        findings.parked_finding(rows),
        findings.operations_finding(rows, operations),
    ]
    tables = {"summary": summary, "operations": operations, "runs": rows}
    return Result({name: pd.DataFrame(table) for name, table in tables.items()}, shown, found)
