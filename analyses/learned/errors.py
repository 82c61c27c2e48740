"""`errors`: what the models get wrong, and whether they get the same problems wrong.

Where `workbench evaluate --exhaustive` has listed every wrong problem of a checkpoint (`exhaustive` beside the
checkpoints, or --counts), the list is used; the others are asked a sample. How often each class is wrong, and by how
much answers are off, analysis `exhaustive` says. Here: do models err on the same problems beyond chance, and beyond
what the kinds of their four digit pairs explain (table `pairs`; `times`: wrong in how many models); what the first
wrong digit is (`kinds`: another carry or borrow, the other direction, the other operation); the most confusable
problems (`hardest`); and whether problems seen in training are spared (`trained`).

Controls: independent errors at the models' own rates, over an operator and within patterns of digit pairs; any other
digit at the same place; the share of all problems that were trained on. A table without rows is left out.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analyses.learned._asked import check_checkpoints, check_options
from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 1_000, 5_000_000
MORE = 10  # times as many problems with --full


@dataclass(frozen=True)
class Options:
    """Options of `errors`."""

    problems: int = knob(40_000, "problems asked of models without a list of wrong ones, 1,000 to 5,000,000")
    seed: int = knob(0, "seed of the problems and of the bootstrap")
    counts: str = knob("", "folder with a finished exhaustive count a model; `exhaustive` beside each model if empty")
    full: bool = knob(False, "ten times as many problems")

    def __post_init__(self) -> None:
        check_options(self)
        if not FEWEST <= self.problems * (MORE if self.full else 1) <= MOST:
            raise BadInput(f"problems is {self.problems:,}, expected {FEWEST:,} to {MOST:,} (--full asks ten times it)")


@analysis(
    question="What do the models get wrong, and are the errors of different seeds the same problems?",
    options=Options,
)
def errors(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Agreement of errors beyond chance, kinds of first wrong digits and the most confusable problems."""
    check_checkpoints(checkpoints, "errors")
    import pandas as pd

    from analyses.learned._errors_agreement import pairs, times_rows
    from analyses.learned._errors_figures import figures
    from analyses.learned._errors_findings import findings, summary
    from analyses.learned._errors_hardest import hardest_rows
    from analyses.learned._errors_read import ask
    from analyses.learned._errors_tables import class_rows, kind_rows, trained_rows

    counts = Path(options.counts) if options.counts else None
    if counts and not counts.is_dir():
        raise BadInput(f"{counts}: no such folder; give one that holds a finished count a model")
    asked = ask(checkpoints, options.problems * (MORE if options.full else 1), options.seed, counts)
    rows = {
        "classes": [row for one in asked for row in class_rows(one)],
        "kinds": [row for one in asked for row in kind_rows(one)],
        "pairs": [row for one in asked for row in pairs(one, options.seed)],
        "times": [row for one in asked for row in times_rows(one)],
        "hardest": [row for one in asked for row in hardest_rows(one)],
        "trained": [row for one in asked for row in trained_rows(one)],
    }
    rows = {"summary": summary(asked, rows), **rows}
    tables = {name: pd.DataFrame(of) for name, of in rows.items() if of}
    return Result(tables, figures(tables), findings(asked, rows, full=options.full))
