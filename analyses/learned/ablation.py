"""`ablation`: which parts of a decoder its answers need, where, and which problems fail first without them.

What a part writes into the residual stream is replaced: by nothing (zero), by its mean over other problems at the same
position (mean), by what it writes on another problem (resample). Parts are layers, their attention, heads, MLPs and
neurons, each at all positions at once (table `components`), and heads and MLPs at every single position (table `nodes`,
the closest peer's map of useful nodes, named as there; neurons too with --full). Failing is counted among the problems
that the whole decoder answers right, as many asked of every class; a class fails when the lower end of its 95% interval
is above 1%, and `first` names the simplest failing class under S, M and N. Columns d4..d0 are shares of right digits
lost there; `carry`, `direction`, `operation`, `other` say what the wrong digits are. Table `needs` splits the failing
by whether a problem carries or borrows, also for every layer but the last at groups of positions.

Control: the same write moved just as far as its mean is away, in a random direction (method `random`). A part counts as
needed for what it says, not for the disturbance, where the mean fails more than that.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analyses.learned._asked import check_checkpoints, check_options
from workbench.analysis import Result, analysis
from workbench.recipe import knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 20, 1_000


@dataclass(frozen=True)
class Options:
    """Options of `ablation`."""

    per_class: int = knob(150, "problems asked of every class S0..S4, M0..M3, N1..N4, 20 to 1,000")
    seed: int = knob(0, "seed of the problems; what replaces is drawn with the next one")
    full: bool = knob(False, "also every neuron at every single position (minutes a model)")

    def __post_init__(self) -> None:
        check_options(self, per_class=(FEWEST, MOST))


@analysis(
    question="Which heads, MLPs and neurons do the answers need, at which positions, and what fails first without?",
    options=Options,
)
def ablation(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Zero, mean and resample ablation of every part of every checkpoint, beside a random change of equal size."""
    check_checkpoints(checkpoints, "ablation")
    import pandas as pd

    from analyses.learned._ablation_figures import figures
    from analyses.learned._ablation_findings import findings, summary
    from analyses.learned._ablation_forward import components, groups, nodes
    from analyses.learned._ablation_measure import measure
    from analyses.learned._ablation_problems import balanced

    problems: dict[str, Any] = {}
    rows: dict[str, list[dict[str, Any]]] = {"asked": [], "components": [], "nodes": [], "needs": []}
    for checkpoint in checkpoints:
        variant, architecture = checkpoint.config.problems, checkpoint.config.architecture
        if variant not in problems:
            problems[variant] = balanced(options.per_class, options.seed, variant)
        wanted = (*components(architecture), *groups(architecture), *nodes(architecture, neurons=options.full))
        for name, row in measure(checkpoint, problems[variant], wanted, options.seed):
            rows[name].append(row)
    tables = {name: pd.DataFrame(of) for name, of in {"summary": summary(rows), **rows}.items()}
    return Result(tables, figures(tables), findings(rows, full=options.full))
