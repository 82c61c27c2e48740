"""`exact-probe`: where can linear readouts feed an exact unit, and where is the exact result linearly readable.

A site is a hook and a position. Two probes, by operator:

- *operands, then unit*: readouts of a and b, fitted to the operands on problems of both operators alike; the frozen
  enumerated unit (add or subtract) computes from the two. It asks whether the operands are linearly there.
- *linear probe of the result*: two readouts fitted through the frozen unit to the exact signed result of one operator.
  The unit is linear, so minimising its output's error is an ordinary linear probe of the result, and is called that.

Variance explained is taken on problems that no readout was fitted on, against the error of the fitting half's mean.
Operands of four digits have 99% of their variance in the thousands, so table `places` asks the same of each decimal
place: digit readouts, the frozen unit on the two digits, how often its rounded output is exactly their sum or
difference. Table `digits` holds its rows at the position where the answer's digit of that place is predicted.

Controls: the untrained model (the weights training started from), labels shuffled among the fitting problems of an
operator, and the embedding (`blocks.0.hook_resid_pre`). At s a model has read the sign, and from d4 on digits of the
answer; so table `layers` and the findings take the best site before d4, chosen on the fitting half.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses.learned._asked import check_checkpoints, check_options
from workbench.analysis import Result, analysis
from workbench.recipe import knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 1_000, 100_000


@dataclass(frozen=True)
class Options:
    """Options of `exact-probe`."""

    problems: int = knob(
        20_000, "problems drawn, 1,000 to 100,000: readouts are fitted on the first half, scored on the second"
    )
    seed: int = knob(0, "seed of the problems, of the shuffled labels and of the bootstrap")
    full: bool = knob(False, "also positions before the operands are read, and what attention and MLP write")

    def __post_init__(self) -> None:
        check_options(self, problems=(FEWEST, MOST))


@analysis(
    question="Where do linear readouts feed an exact unit, and where is the exact result itself linearly readable?",
    options=Options,
)
def exact_probe(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Both probes and the decimal places at every site of every checkpoint, beside the controls."""
    check_checkpoints(checkpoints, "exact-probe")
    import pandas as pd

    from analyses.learned._exact_probe_figures import figures
    from analyses.learned._exact_probe_fit import Split, measure_checkpoint
    from analyses.learned._exact_probe_summary import best_of_each_layer, best_of_each_place, findings
    from workbench.sample import sample

    splits: dict[str, Split] = {}
    parts: dict[str, list[pd.DataFrame]] = {"sites": [], "places": []}
    for checkpoint in checkpoints:
        variant = checkpoint.config.problems
        if variant not in splits:
            splits[variant] = Split(sample(options.problems, options.seed, variant))
        for name, rows in measure_checkpoint(checkpoint, splits[variant], full=options.full, seed=options.seed):
            parts[name].append(rows)
    sites, places = (pd.concat(rows, ignore_index=True) for rows in parts.values())
    tables = {"layers": best_of_each_layer(sites), "digits": best_of_each_place(places)}
    tables |= {"sites": sites, "places": places}
    return Result(tables, figures(tables), findings(tables, splits, options.seed))
