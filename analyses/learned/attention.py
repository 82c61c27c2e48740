"""`attention`: what each head looks at and writes where the five answer digits are predicted.

*Looks*: the mean pattern at each answer position, by operator and sign (table `patterns`; a row sums to 1). A head
*reads* the one or two positions that together take three quarters of its mean weight. *Writes*: how much of a head's
output those positions' tokens explain, fitted on one half of the problems and scored on the other (table `heads`).
Looking is not yet telling: only a head whose output they explain by nine tenths *copies* them (a sum of functions of
the tokens, identity of the digits or not), *chooses* one of two (table `choices`: which digit wins) or *joins* them.
Table `order` asks whether what is written tells a's digit of a place from b's, which addition can do without and
subtraction cannot; table `units` puts beside it the units digits that a model has right.

*Circuits* over (token, position): table `qk` says how much of the attention scores the key's position gives, then the
key's token, then the query's token; table `ov` what a head makes of the ten digits at each operand position: in how
many dimensions, how linear in the digit, and whether a digit raises its own logit. In layer 0 the circuits are exact;
above it they stand on the mean stream of each token at each position, and `by_tokens` says what that leaves out.
Table `turns` says how far the mean pattern moves with operator and sign.

Control: the untrained model of the same shape and seed, through the same measurement. The reading and the copying are
descriptions; which heads matter is asked by `ablation` and `patching`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses.learned._asked import check_checkpoints, check_options
from workbench.analysis import Result, analysis
from workbench.recipe import knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 400, 50_000


@dataclass(frozen=True)
class Options:
    """Options of `attention`."""

    problems: int = knob(6_000, "problems drawn, 400 to 50,000: the first half of each group is fitted on")
    seed: int = knob(0, "seed of the problems and of the bootstrap")
    full: bool = knob(
        False, "also the circuits themselves: scores of each position and token, logits of each digit read"
    )

    def __post_init__(self) -> None:
        check_options(self, problems=(FEWEST, MOST))


@analysis(
    question="Which digits does each head read for each digit of the answer, and what does it write?", options=Options
)
def attention(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Patterns, what is read and copied, and both circuits, of every head beside the untrained ones."""
    check_checkpoints(checkpoints, "attention")
    import pandas as pd

    from analyses.learned._attention_figures import figures
    from analyses.learned._attention_layers import Drawn, drawn, measure
    from analyses.learned._attention_summary import findings, short, summarise
    from workbench.sample import sample

    on: dict[str, Drawn] = {}
    parts: dict[str, list[pd.DataFrame]] = {}
    for checkpoint in checkpoints:
        variant = checkpoint.config.problems
        if variant not in on:
            on[variant] = drawn(sample(options.problems, options.seed, variant), options.seed)
        for name, rows in measure(checkpoint, on[variant], full=options.full):
            parts.setdefault(name, []).append(rows)
    measured = {name: pd.concat(rows, ignore_index=True) for name, rows in parts.items()}
    measured["layers"] = summarise(measured)
    tables = {"summary": short(measured["layers"]), **measured}
    return Result(tables, figures(tables), findings(checkpoints, tables, options.problems))
