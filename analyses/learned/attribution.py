"""`attribution`: which component adds what to the logit of the correct answer digit, less that of the runner-up.

Nothing is normalised between the residual stream and the logits, so embedding, positions, heads and MLPs add up to the
logit difference exactly, and neurons to their MLP (table `margins` has the largest gap left by rounding). Tables give
means by answer digit and category: `components`, `neurons`, and `crowds`, how many neurons make an MLP's part of one
problem. A component's *share* is of the mean difference; the fewest that reach nine tenths of it *make* the answer.
Table `lens` is the logit lens: what each depth's stream would answer if it were sent straight to the unembedding.

This is the direct effect alone: what an early component does through later ones counts as theirs; `ablation` and
`patching` ask for the rest. A share is of what the component adds to all tokens, so it can be large without being about
the problem. Controls: the same component on the correct digit and runner-up of another problem of the same category
(`elsewhere`), and the untrained model.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses.learned._asked import check_checkpoints, check_options
from workbench.analysis import Result, analysis
from workbench.recipe import knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 200, 20_000


@dataclass(frozen=True)
class Options:
    """Options of `attribution`."""

    problems: int = knob(4_000, "problems drawn, 200 to 20,000")
    each: int = knob(200, "problems of every peer class beside them, as far as there are (2 to 20,000)")
    seed: int = knob(0, "seed of the problems and of the bootstrap")
    full: bool = knob(False, "also neurons by class")

    def __post_init__(self) -> None:
        check_options(self, problems=(FEWEST, MOST), each=(2, MOST))


@analysis(question="Which component makes each answer digit, and at which depth is it there?", options=Options)
def attribution(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Direct logit attribution of every component and neuron, and the logit lens, beside the controls."""
    check_checkpoints(checkpoints, "attribution")
    import pandas as pd

    from analyses.learned._attribution_figures import figures
    from analyses.learned._attribution_problems import Drawn, draw
    from analyses.learned._attribution_summary import findings, makers_table, summarise
    from analyses.learned._attribution_tables import measure

    on: dict[str, Drawn] = {}
    parts: dict[str, list[pd.DataFrame]] = {}
    for checkpoint in checkpoints:
        variant = checkpoint.config.problems
        if variant not in on:
            on[variant] = draw(options.problems, options.each, options.seed, variant)
        for name, rows in measure(checkpoint, on[variant], full=options.full):
            parts.setdefault(name, []).append(rows)
    measured = {name: pd.concat(rows, ignore_index=True) for name, rows in parts.items()}
    tables = {"summary": summarise(measured), "makers": makers_table(measured["components"]), **measured}
    return Result(tables, figures(tables), findings(checkpoints, tables))
