"""`auxiliary`: whether exact units as auxiliary heads help a decoder to learn.

Given runs with heads (`workbench.auxiliary_grid`), each is held against the run of the same decoder without one: test
cross-entropy, accuracy by operator and class, steps to 99%, calibration. What the trainable units became, and how much
of each head's quantity a linear readout finds at the site, with the heads and without.

Controls: the decoder without a head; a linear head on the same target; random frozen weights of equal norm; for what is
linearly there, the other heads. A part of the grid will do: a finding says what is missing. Rules of verdicts are in
`_auxiliary_rules.py`. A table or figure without rows is left out.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Result, analysis
from workbench.errors import BadInput

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint


@dataclass(frozen=True)
class Options:
    """Nothing to choose: the problems are those of the validation and test splits."""


@analysis(
    question="Does exact arithmetic as an auxiliary head help a decoder to learn?",
    options=Options,
    within="auxiliary",
)
def auxiliary(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Heads against none, their controls, what they make linearly readable, and the sweep."""
    from workbench.checkpoint import refuse_namesakes

    if not checkpoints:
        raise BadInput("auxiliary needs checkpoints; give the folder of those trained with heads")
    refuse_namesakes(checkpoints)
    import pandas as pd

    from analyses.learned import _auxiliary_rows as rows
    from analyses.learned import _auxiliary_tables as tables
    from analyses.learned._auxiliary_figures import figures
    from analyses.learned._auxiliary_findings import findings
    from analyses.learned._auxiliary_measure import look
    from analyses.learned._auxiliary_runs import sort

    grid = sort(checkpoints)
    looks = {one.name: look(one) for one in grid.runs}
    runs, readouts = list(rows.run_rows(grid, looks)), list(rows.readout_rows(grid, looks))
    units = list(rows.unit_rows(grid))
    selections = list(tables.selection_rows(units))
    found = {
        "summary": list(tables.summary_rows(runs, selections)),
        "shapes": list(tables.shape_rows(runs, readouts)),
        "classes": list(rows.class_rows(grid, looks)),
        "sweep": list(tables.sweep_rows(runs)),
        "selections": selections,
        "units": units,
        "readouts": readouts,
        "without": list(tables.none_rows(grid)),
        "runs": runs,
    }
    return Result(
        {name: pd.DataFrame(of) for name, of in found.items() if of},
        figures(grid, runs, readouts),
        findings(grid, runs, readouts, selections),
    )
