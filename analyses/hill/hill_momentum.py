"""Analysis `hill-momentum`: whether beta2 = 0.5 carries Adam into saturation, or a relation of both its averages.

The report (section 2.2) has Adam with beta2 = 0.5 keep moving, since its second average forgets quickly. Here both
betas are swept, the learning rate and epsilon too, and what is found is set beside the arithmetic of the two averages
(`_hill_momentum_theory`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses._rows import Row
    from workbench.checkpoint import Checkpoint

FULL_SEEDS, FULL_EPOCHS = 5, 100


@dataclass(frozen=True)
class Options:
    """How many runs of each kind, and how long."""

    seeds: int = knob(2, "data seeds a setting")
    epochs: int = knob(6, "epochs of 1,000 steps of the sweep over beta1 and beta2; slow rates get five times as many")
    full: bool = knob(False, "five seeds and the report's 100 epochs: about ten minutes")
    seed: int = knob(100, "the first data seed")

    def __post_init__(self) -> None:
        check_types(self)
        if not 1 <= self.seeds <= 100 or not 3 <= self.epochs <= 1000:
            raise BadInput(f"{self.seeds} seeds of {self.epochs} epochs, expected 1 to 100 of 3 to 1000")
        if not 0 <= self.seed < 10**9:
            raise BadInput(f"seed is {self.seed}, expected 0 to 10^9")


@analysis(
    question="Is it beta2 = 0.5 that lets Adam keep moving into saturation, or a relation between beta1 and beta2?",
    options=Options,
    inputs="nothing",
)
def hill_momentum(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Sweep beta1 and beta2 with and without epsilon, then rates, throws and paces, then where it all ends."""
    import pandas as pd

    from analyses._rows import where
    from analyses.hill import _hill_momentum_figures as figures
    from analyses.hill import _hill_momentum_findings as findings
    from analyses.hill import _hill_momentum_runs as runs

    count, epochs = (FULL_SEEDS, FULL_EPOCHS) if options.full else (options.seeds, options.epochs)
    seeds = range(options.seed, options.seed + count)
    grid = runs.grid(seeds, epochs)
    rates = runs.rates(seeds, max(epochs, 5 * options.epochs))
    default = runs.torch_default_rate(seeds, max(epochs, 5 * options.epochs))
    throws, paces = runs.throws(seeds[:1]), runs.paces(seeds[:1], 3)
    hazards = runs.hazards(range(options.seed, options.seed + max(5, count)), options.epochs)
    scores = findings.rule_scores(where(grid, epsilon=runs.EPSILON))
    counted = {
        "grid": shares(grid, "epsilon", "beta1", "beta2"),
        "rates": shares(rates, "beta1", "factor"),
        "hazards": shares(hazards, "operation", "rate", "beta1", "beta2"),
    }
    trainings = [*grid, *default, *hazards, *({k: v for k, v in row.items() if k != "factor"} for row in rates)]
    tables = {"summary": scores, **counted, "throws": throws, "paces": paces, "runs": trainings}
    shown = {
        "grid": figures.grid_figure(counted["grid"]),
        "throws": figures.throws_figure(throws),
        "rates": figures.rates_figure(counted["rates"]),
        "hazards": figures.hazards_figure(counted["hazards"]),
        "paths": figures.paths_figure(runs.paths(options.seed)),
    }
    found = [
        findings.length_of_run(options.full, count, epochs),
        findings.verdict(scores),
        findings.beta2_alone(grid),
        findings.growth_finding(throws),
        findings.rate_finding(rates),
        findings.default_rate(default, grid),
        findings.epsilon_finding(grid),
        findings.pace_finding(paces),
        findings.hazard(hazards),
    ]
    return Result({name: pd.DataFrame(rows) for name, rows in tables.items()}, shown, found)


def shares(rows: "Sequence[Row]", *by: str) -> "list[Row]":
    """A row a setting: how many runs ended exact or at least found the selection, with 95% intervals."""
    from analyses._rows import grouped, median, share

    return [
        {
            **dict(zip(by, key, strict=True)),
            "n": len(group),
            **share(group, "exact").columns("exact"),
            **share(group, "found").columns("found"),
            "median_distance": median(group, "distance"),
            "median_raw": median(group, "raw"),
            "critical_rate": group[0]["critical_rate"],
        }
        for key, group in grouped(rows, *by).items()
    ]
