"""`selection-probe`: the whole family of exact units on linear readouts, and units that choose their selection.

Frozen units, at every depth of the residual stream where an answer digit is predicted, by operator and sign, for the
two operand digits a_i and b_i of its place: `add` and `subtract` on the digits as read; the clock, `cos` and `sin` of
`2 pi k (a_i +- b_i) / 10`, k = 1..5, by the trigonometric-product units on the operands' angles as read; the carry or
borrow that leaves, by the additive selection [1, 1, 1, -1] on a_i, b_i, the carry that arrives and the answer's digit,
over ten. Each beside a linear probe of the same result. Readouts are fitted on one half of the problems, on all
operators together, probes of results on one operator and sign, and scored on the other half.

Selection probes: a unit with trainable (W_hat, M_hat) reads a_i and b_i as read there, and is trained towards what the
model's own digit says they make (the digit, unwrapped by the exact carries): which of [1, 1], [1, -1], [-1, 1] it snaps
to, from five starts. A readout that knows nothing lands somewhere too, so a unit *selects* only if its snapped weights
explain half of the variance on problems it was not trained on; where it *lands* is shown beside that, for the untrained
model and for shuffled labels too.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses.learned._asked import check_checkpoints, check_options
from workbench.analysis import Result, analysis
from workbench.recipe import knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 2_000, 100_000


@dataclass(frozen=True)
class Options:
    """Options of `selection-probe`."""

    problems: int = knob(8_000, "problems drawn, 2,000 to 100,000: fitted on the first half, scored on the second")
    seed: int = knob(0, "seed of the problems, of the shuffled labels and of the units' starts")
    full: bool = knob(False, "every place at every position from b0 on, not only where its digit is predicted")

    def __post_init__(self) -> None:
        check_options(self, problems=(FEWEST, MOST))


@analysis(
    question="Which exact units do linear readouts feed (digits, clocks, carries), and which selection do units learn?",
    options=Options,
)
def selection_probe(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Frozen units, linear probes of their results and trained units of every checkpoint, beside the controls."""
    check_checkpoints(checkpoints, "selection-probe")
    import pandas as pd

    from analyses._rows import Row
    from analyses.learned._conditions import shape_of
    from analyses.learned._selection_probe_figures import figures
    from analyses.learned._selection_probe_fit import Split, measure, split
    from analyses.learned._selection_probe_tables import averages, findings, landed, summary
    from workbench.sample import sample

    splits: dict[str, Split] = {}
    parts: dict[str, list[Row]] = {"units": [], "selections": []}
    for checkpoint in checkpoints:
        variant = checkpoint.config.problems
        if variant not in splits:
            splits[variant] = split(sample(options.problems, options.seed, variant))
        who = {"checkpoint": checkpoint.name, "shape": shape_of(checkpoint), "seed": checkpoint.config.seed}
        for name, rows in measure(checkpoint, splits[variant], full=options.full, seed=options.seed):
            parts[name] += [who | row for row in rows]
    means, lands = averages(parts["units"]), landed(parts["selections"])
    tables = {"summary": summary(means, lands), "means": means, "landed": lands, **parts}
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    return Result(frames, figures(means, lands), findings(means, lands))
