"""Analysis `ntk-ensembles`: how many finite networks must be averaged before rounding is exact.

The published experiment (arXiv 2502.16763, version 1) trains networks on a permutation's unit vectors and adds them
until the rounded average is right on 1,000 vectors with two ones. Measured with trained networks in the published
form and in NTK form, for thresholds zero (published) and midpoint (ours), beside the Gaussian laws of both forms.
Then the law on addition and multiplication, over every state that any input meets: does the ensemble grow as l^2?
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint


@dataclass(frozen=True)
class Options:
    """How many trials, how wide the networks, and how much beside them."""

    trials: int = knob(5, "trials with trained networks at every k")
    width: int = knob(2048, "hidden width of trained networks")
    law_trials: int = knob(20, "trials with networks drawn from the Gaussian law at every k")
    pairs: int = knob(16, "networks, each with its mirror, from which mean and spread of a width are taken")
    seed: int = knob(0, "seed of permutations, tests and networks")
    full: bool = knob(False, "both experiments at every k, width 4096, more of everything: 17 minutes")

    def __post_init__(self) -> None:
        check_types(self)
        if not (2 <= self.trials <= 100 and 64 <= self.width <= 65536):
            raise BadInput(
                f"trials and width are {self.trials:,} and {self.width:,}, expected 2 to 100 and 64 to 65,536"
            )
        if not (2 <= self.law_trials <= 1000 and 2 <= self.pairs <= 10_000):
            raise BadInput(
                f"law_trials and pairs are {self.law_trials:,} and {self.pairs:,}, expected 2 to 1,000 and 2 to 10,000"
            )
        if not 0 <= self.seed < 2**31:
            raise BadInput(f"seed is {self.seed}, expected 0 to 2**31 - 1")


@analysis(
    question="How many finite networks must be averaged until rounding is exact, and how does that grow?",
    options=Options,
    inputs="nothing",
)
def ntk_ensembles(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Counts of trained networks beside published ones and the Gaussian laws; then addition and multiplication."""
    import pandas as pd

    from analyses.kernel import _ntk_ensembles_figures as figures
    from analyses.kernel import _ntk_ensembles_findings as findings
    from analyses.kernel import _ntk_ensembles_tables as tables
    from analyses.kernel._ntk_ensembles_protocol import KS, protocol

    plan = protocol(options)
    trials, checks, sums = plan.permutations(), plan.recipes(), plan.arithmetic()
    cells = tables.counts(trials)
    orders = tables.orders(sums.predicted, sums.ceilings)
    found = {
        "summary": tables.beside([cell for cell in cells if cell["k"] in KS]),
        "counts": pd.DataFrame(cells),
        "published": tables.beside(cells),
        "trials": pd.DataFrame(trials),
        "widths": pd.DataFrame(checks.widths),
        "steps": pd.DataFrame(checks.steps),
        "arithmetic": pd.DataFrame(sums.predicted),
        "arithmetic_trials": pd.DataFrame(sums.trials),
        "growth": pd.DataFrame(sums.ceilings),
        "orders": pd.DataFrame(orders),
    }
    drawn = {
        "permutations": figures.permutations(cells),
        "widths": figures.widths(checks.widths),
        "ratios": figures.ratios(sums.predicted),
        "growth": figures.growth(sums),
    }
    return Result(found, drawn, [*short(options), *findings.every(trials, cells, checks, sums, orders)])


def short(options: Options) -> list[Finding]:
    """A word on runs with less than everything."""
    if options.full:
        return []
    text = (
        f"A short run: {options.trials} trials of width {options.width}, the first experiment only, NTK form at three "
        "k; --full takes twice the width, both experiments and every k."
    )
    return [Finding(text, options.trials)]
