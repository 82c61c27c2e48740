"""`surrogate`: how much accuracy survives when parts of a model are replaced by linear readouts of exact features.

A surrogate of a head or MLP is least squares from exact features of the problem to what the part writes, fitted for
each answer position, operator and sign on some problems. On others it takes the part's place at the answer positions,
each part alone, all heads, all MLPs, everything together; with everything replaced, nothing of the model is left but
its embedding and unembedding. The sets of features are nested:

- `digits`: each digit read, of the operands and of the answer above, one-hot: the part is additive in them;
- `phases`: and the clock, `cos` and `sin` of `2 pi k (a_i +- b_i) / 10`, k = 1..5, at each place;
- `sums`: and a_i + b_i and a_i - b_i, one-hot;
- `carries`: and the carry or borrow out of each place;
- `totals`: and each place's sum or difference joined with the carry that arrives, one-hot. From these the answer can be
  read off, so what survives shows only that the part's output is a function of it, not how it is made.

Beside them: `nothing` (the part's mean, the floor), `answer digit` (told the digit to predict and nothing else),
`shuffled totals` (the control: fitted to other problems' outputs), and the untrained model's explained variance.
`answer digit` is a ceiling for the last layer's MLP, all MLPs and everything only. A head, or an MLP that a later layer
reads, writes other things than that digit: there it may lie below any set, and summary and figures leave it empty.
Intervals of accuracy are 95% Wilson intervals over problems. Of a shape the models are pooled; they are scored on the
same problems, so the interval is about these models and not about further seeds.
Explained accuracy is the share of what `nothing` loses that a set brings back. The gap between `everything` and the
full model is what is not understood as a linear readout. What parts write at earlier positions is left as it is: it
reaches an answer only through heads of a later layer, which are parts of their own.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses.learned._asked import check_checkpoints, check_options
from workbench.analysis import Result, analysis
from workbench.recipe import knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FULL = 4  # times as many problems


@dataclass(frozen=True)
class Options:
    """Options of `surrogate`."""

    problems: int = knob(16_000, "problems that readouts are fitted on, 2,000 to 200,000")
    scored: int = knob(4_000, "other problems that they are scored on, 500 to 100,000")
    seed: int = knob(0, "seed of the problems, of the shuffled labels and of the bootstrap")
    full: bool = knob(False, f"{FULL} times as many problems of both kinds")

    def __post_init__(self) -> None:
        check_options(self, problems=(2_000, 200_000), scored=(500, 100_000))


@analysis(
    question="How much accuracy survives when heads and MLPs are replaced by linear readouts of exact features?",
    options=Options,
)
def surrogate(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Accuracy and agreement with every part replaced from every feature set, beside floor, ceiling and control."""
    _check(checkpoints)
    import pandas as pd

    from analyses._rows import Row
    from analyses.learned._surrogate_figures import figures
    from analyses.learned._surrogate_measure import Group, outcome, split
    from analyses.learned._surrogate_tables import findings, rows_of, smallest, summary
    from workbench.sample import sample

    fitted, scored = (size * (FULL if options.full else 1) for size in (options.problems, options.scored))
    groups: dict[str, list[Group]] = {}
    rows: list[Row] = []
    for checkpoint in checkpoints:
        variant = checkpoint.config.problems
        if variant not in groups:
            groups[variant] = split(sample(fitted + scored, options.seed, variant), fitted, options.seed)
        outcomes = [outcome(checkpoint, group) for group in groups[variant]]
        rows += rows_of(checkpoint, outcomes, options.seed)
    firsts = smallest(rows)
    tables = {"summary": summary(rows), "smallest": firsts, "surrogates": rows}
    frames = {name: pd.DataFrame(table) for name, table in tables.items()}
    return Result(frames, figures(rows, firsts), findings(rows, firsts))


def _check(checkpoints: "list[Checkpoint]") -> None:
    check_checkpoints(checkpoints, "surrogate")
