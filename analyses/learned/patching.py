"""`patching`: which sites hold a carry, a borrow, the direction of a difference, the operator, a digit.

Pairs of prompts differ in exactly one thing (`_patching_pairs`). The model runs on the corrupted prompt with the clean
prompt's activation put in at one site, and the answer's digit is read where it is predicted. A site holds the thing
when that alone brings the clean digit back. Patched are heads, attention, the stream after it, the MLP and the stream
after that, of every layer, at every position between the changed token and the prediction. Only pairs count on which
the model says both digits; of the impossible prompts with the wrong sign, those on which it no longer says the right
digit.

What could fool this, and what stands against it: any change disrupts, so each site at the predicting position is also
patched from a control prompt that lacks the thing; some sites restore the answer of any model because everything that
differs passes through them, so they are marked `by_construction` and given no verdict. The untrained model answers too
few pairs to be patched (`untrained_usable` in the table of pairs). Whether patching is TransformerLens's is shown in
the tests.

Intervals are 95% Wilson intervals over pairs. Of a shape the pairs of its models are pooled; they are drawn alike for
every model, so the interval is about these models and not about further seeds.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses.learned._asked import check_checkpoints, check_options
from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import knob

if TYPE_CHECKING:
    import pandas as pd

    from analyses._rows import Row
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 20, 4_096
FULL = 256
DRAWN = 4  # pairs drawn for each that is used; a model may answer few of them


@dataclass(frozen=True)
class Options:
    """Options of `patching`."""

    pairs: int = knob(48, "pairs a kind and digit of the answer, 20 to 4,096; four times as many are drawn")
    seed: int = knob(0, "seed that draws the pairs")
    full: bool = knob(False, f"at least {FULL} pairs a kind and digit")

    def __post_init__(self) -> None:
        check_options(self, pairs=(FEWEST, MOST))


@analysis(
    question="Which sites hold a carry, a borrow, the direction, the operator or a digit, by activation patching?",
    options=Options,
)
def patching(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Patches every site that can matter, one at a time, on every kind of pair, beside the controls."""
    _check(checkpoints)
    from analyses.learned import _patching_between as middle
    from analyses.learned import _patching_summary as summary
    from analyses.learned._conditions import shape_of
    from analyses.learned._patching_figures import figures
    from analyses.learned._patching_measure import measure
    from analyses.learned._patching_pairs import Pairs, draw, kinds_of

    count = max(options.pairs, FULL) if options.full else options.pairs
    sets: dict[str, list[Pairs]] = {}
    sites, pairs = [], []
    for checkpoint in checkpoints:
        variant = checkpoint.config.problems
        if variant not in sets:
            kinds = [(kind, place) for kind in kinds_of(variant) for place in kind.places]
            sets[variant] = [draw(kind, place, DRAWN * count, options.seed, variant) for kind, place in kinds]
        measured = measure(checkpoint, sets[variant], count)
        sites += measured[0]
        pairs += measured[1]
    if not sites:
        raise BadInput("no checkpoint answers any pair of prompts; give trained ones")
    answer, between = summary.answer_position(sites), middle.between_layers(sites)
    standing = middle.standing(between)
    shapes = {checkpoint.name: shape_of(checkpoint) for checkpoint in checkpoints}
    short = "" if options.full else f" (short run: {count} pairs a digit, --full takes {max(FULL, count)})"
    rows = {"summary": summary.by_shape(answer, shapes), "answer_position": answer, "standing": standing}
    return Result(
        _tables(rows | {"between_layers": between, "sites": sites, "pairs": pairs}),
        figures(sites, answer, between),
        middle.findings(standing, shapes) + summary.findings(answer, pairs, shapes, short),
    )


def _tables(rows: "dict[str, list[Row]]") -> "dict[str, pd.DataFrame]":
    """The tables that have rows; of one layer there is nothing between layers."""
    import pandas as pd

    return {name: pd.DataFrame(table) for name, table in rows.items() if table}


def _check(checkpoints: "list[Checkpoint]") -> None:
    check_checkpoints(checkpoints, "patching")
