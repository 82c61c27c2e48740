"""Analysis `hill-composition`: circuits of two and three units trained end to end (the report's open question, 2.6)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FULL = (100, 10_000)  # seeds, steps


@dataclass(frozen=True)
class Options:
    """How many seeds, and how long."""

    seeds: int = knob(20, "seeds a circuit and arm")
    steps: int = knob(2000, "steps of a circuit of two units; one of three gets twice as many")
    full: bool = knob(False, "100 seeds and 10,000 steps: about ten minutes")
    seed: int = knob(500, "the first seed")

    def __post_init__(self) -> None:
        check_types(self)
        if not 2 <= self.seeds <= 1000 or not 100 <= self.steps <= 100_000:
            raise BadInput(f"{self.seeds} seeds of {self.steps} steps, expected 2 to 1000 of 100 to 100,000")
        if not 0 <= self.seed < 10**9:
            raise BadInput(f"seed is {self.seed}, expected 0 to 10^9")


@analysis(
    question="Do circuits of exact units train end to end: do they lock in piecewise, and what rescues the stranded?",
    options=Options,
    inputs="nothing",
)
def hill_composition(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Train four circuits end to end and with help from near-neutral weights; judge them on unseen problems."""
    import pandas as pd

    from analyses.hill import _hill_composition_figures as figures
    from analyses.hill import _hill_composition_findings as findings
    from analyses.hill import _hill_composition_locks as locks
    from analyses.hill import _hill_composition_runs as runs

    count, steps = FULL if options.full else (options.seeds, options.steps)
    seeds = range(options.seed, options.seed + count)
    lengths = [steps * (len(task.units) - 1) for task in runs.TASKS]
    trained = [runs.train_all(task, seeds, length) for task, length in zip(runs.TASKS, lengths, strict=True)]
    rows = [
        {**ended, **locked}
        for parts in trained
        for part in parts
        for ended, locked in zip(runs.rows(part), locks.rows(part), strict=True)
    ]
    table = findings.arms_table(rows)
    found = [
        findings.length_of_run(options.full, rows, lengths),
        findings.stranded(rows),
        findings.piecewise(rows),
        findings.order(rows),
        findings.holds(rows),
        findings.what_strands(rows),
        findings.snapping_at_evaluation(rows),
        *findings.helpers(rows, table),
        findings.crossing(rows, runs.TASKS[-1].name),
    ]
    shown = {
        "arms": figures.arms_figure(table),
        "locks": figures.locks_figure(rows),
        "paths": figures.paths_figure([parts[0] for parts in trained]),
    }
    summary = [{name: row[name] for name in ("circuit", "arm", "n", "solved", "solved_low", "solved_high", "effect")}
               for row in table]  # fmt: skip
    tables = {"summary": summary, "arms": table, "runs": rows}
    return Result({name: pd.DataFrame(part) for name, part in tables.items()}, shown, found)
