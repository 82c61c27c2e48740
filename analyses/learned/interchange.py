"""`interchange`: does the answer follow what a linear probe reads? The causal version of the probe.

At the position where a digit of the answer is predicted, linear readouts of an exact variable (the carry or borrow into
the place, the sum or difference of its digits, the direction of a difference) are fitted on the first half of the
problems. On the second half, two runs whose variables differ are taken, and in the first run's residual stream only the
readouts' subspace gets the second run's values. If the model computes with it, the digit becomes the one that exact
units give for the first problem with the second one's variable.

Two ways to swap: `readout` replaces the projection on the readouts' span; `pattern` moves along the covariance of the
stream with the variable (of a carry, the difference of the class means) until the readouts say what they say in the
second run. A readout may find a direction in which the stream hardly varies and nothing is read (Haufe et al. 2014), so
the two can differ. Each has a control drawn with the stream's own covariance: as many random directions swapped, and a
random move of the same length as the pattern's.

Only problems count that the model answers right at the place, in both runs. The untrained model answers too few.
Intervals are 95% Wilson intervals over swaps. Of a shape the swaps of its models are pooled; the problems are the same
for every model, so the interval is about these models and not about further seeds.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses.learned._asked import check_checkpoints, check_options
from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import knob

if TYPE_CHECKING:
    from analyses._rows import Row
    from workbench.checkpoint import Checkpoint
    from workbench.task import Problems

FEWEST, MOST = 1_000, 100_000
FULL_PROBLEMS, FULL_SWAPS = 20_000, 500


@dataclass(frozen=True)
class Options:
    """Options of `interchange`."""

    problems: int = knob(
        6_000, "problems drawn, 1,000 to 100,000: readouts are fitted on the first half, swapped in the second"
    )
    swaps: int = knob(100, "swaps a variable and digit, 20 to 10,000")
    seed: int = knob(0, "seed of the problems, of their partners and of the random directions")
    full: bool = knob(False, f"at least {FULL_PROBLEMS:,} problems and {FULL_SWAPS} swaps")

    def __post_init__(self) -> None:
        check_options(self, problems=(FEWEST, MOST), swaps=(20, 10_000))


@analysis(
    question="Does the answer follow the carry, the borrow, the digit sum or the direction that a linear probe reads?",
    options=Options,
)
def interchange(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Swaps the subspace of each exact variable between runs, at every site, beside random subspaces."""
    _check(checkpoints)
    import pandas as pd

    from analyses.learned import _interchange_summary as of_sites
    from analyses.learned._conditions import shape_of
    from analyses.learned._interchange_figures import summary
    from analyses.learned._interchange_measure import measure
    from workbench.sample import sample

    count, most = options.problems, options.swaps
    if options.full:
        count, most = max(count, FULL_PROBLEMS), max(most, FULL_SWAPS)
    drawn: dict[str, Problems] = {}
    swaps: list[Row] = []
    for checkpoint in checkpoints:
        variant = checkpoint.config.problems
        if variant not in drawn:
            drawn[variant] = sample(count, options.seed, variant)
        swaps += measure(checkpoint, drawn[variant], most, options.seed)
    if not swaps:
        raise BadInput("no checkpoint answers any problem that could be swapped; give trained ones")
    sites = of_sites.sites_of_swaps(swaps)
    shapes = {checkpoint.name: shape_of(checkpoint) for checkpoint in checkpoints}
    short = "" if options.full else f" (short run: {most} swaps a digit, --full takes {max(FULL_SWAPS, most)})"
    tables = {"summary": of_sites.by_shape(sites, shapes), "sites": sites, "swaps": swaps}
    return Result(
        {name: pd.DataFrame(rows) for name, rows in tables.items()},
        {"summary": summary(sites)},
        of_sites.findings(sites, shapes, short),
    )


def _check(checkpoints: "list[Checkpoint]") -> None:
    check_checkpoints(checkpoints, "interchange")
