"""Analysis `hill-plateaus`: what decides a failure at large initial scale (report section 4.5, "plateau lottery")."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses.published import load
from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses._rows import Row
    from workbench.checkpoint import Checkpoint

FULL = (1000, 200)  # starts a cell, and under each other setting
PUBLISHED_NAMES = {"power-identity": "identity", "cos-sum": "cos_add", "sin-sum": "sin_add",
                   "cos-difference": "cos_sub", "sin-difference": "sin_sub"}  # fmt: skip


@dataclass(frozen=True)
class Options:
    """How many starting weights."""

    starts: int = knob(100, "starting weights a cell of operation and scale")
    others: int = knob(30, "of these, how many are also trained with each other setting of Adam")
    full: bool = knob(False, "1,000 starting weights a cell and 200 under other settings: about five minutes")
    seed: int = knob(300, "seed of the starting weights and of the data")

    def __post_init__(self) -> None:
        check_types(self)
        if not 4 <= self.starts <= 10_000 or not 2 <= self.others <= self.starts:
            raise BadInput(f"{self.starts} starts and {self.others} others, expected 4 to 10,000 and 2 to starts")
        if not 0 <= self.seed < 10**9:
            raise BadInput(f"seed is {self.seed}, expected 0 to 10^9")


@analysis(
    question="What decides a failure at large initial scale: which weights' signs at the start?",
    options=Options,
    inputs="nothing",
)
def hill_plateaus(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Train from large random weights, as drawn and with signs, batches or Adam changed; rules on the start."""
    import pandas as pd

    from analyses.hill import _hill_plateaus_figures as figures
    from analyses.hill import _hill_plateaus_findings as findings
    from analyses.hill import _hill_plateaus_runs as runs

    starts, others = FULL if options.full else (options.starts, options.others)
    rows = runs.train(runs.plans(starts, others), options.seed)
    scores, published = findings.rule_scores(rows), with_published(published_starts())
    cells = by_operation(rows)
    tables = {
        "summary": scores,
        "operations": cells,
        "changes": by_change(rows),
        "settings": by_setting(rows),
        "published": published,
        "runs": rows,
    }
    shown = {
        "plane": figures.plane_figure(findings.drawn(rows), scores),
        "operations": figures.operations_figure(cells),
        "changes": figures.changes_figure(tables["changes"], tables["settings"]),
    }
    found = [
        findings.length_of_run(options.full, rows),
        findings.sign_finding(rows),
        findings.rule_finding(scores),
        findings.gate_finding(rows),
        findings.changes_finding(rows),
        findings.batches_finding(rows),
        findings.setting_finding(rows),
        findings.circle_finding(rows),
        findings.published_finding(published),
    ]
    return Result({name: pd.DataFrame(table) for name, table in tables.items()}, shown, found)


def _counted(rows: "Sequence[Row]", *by: str) -> "list[Row]":
    from analyses._rows import grouped, share

    groups = grouped(rows, *by).items()
    return [
        {**dict(zip(by, key, strict=True)), "n": len(group), **share(group, "failed").columns("failed")}
        for key, group in groups
    ]


def by_operation(rows: "Sequence[Row]") -> "list[Row]":
    """Failures of the report's Adam by operation, scale and number of wrong signs."""
    from analyses.hill._hill_plateaus_findings import drawn

    found = _counted(drawn(rows), "operation", "scale", "wrong")
    return sorted(found, key=lambda row: (row["scale"], [r["operation"] for r in found].index(row["operation"])))


def by_change(rows: "Sequence[Row]") -> "list[Row]":
    """Failures at the larger scale by what was changed of the starts, over the operations that were changed."""
    from analyses._rows import where
    from analyses.hill._hill_plateaus_runs import AS_DRAWN, REPORTED, SCALES

    large = where(rows, setting=REPORTED, scale=SCALES[-1])
    changed = {row["operation"] for row in large if row["change"] != AS_DRAWN}
    return _counted([row for row in large if row["operation"] in changed], "change")


def by_setting(rows: "Sequence[Row]") -> "list[Row]":
    """Failures by Adam's setting on the same starts, apart for the unit circle."""
    from analyses._rows import where
    from analyses.hill._hill_plateaus_runs import AS_DRAWN, CIRCLE, REPORTED

    numbers = {row["number"] for row in rows if row["setting"] != REPORTED}
    same = [row for row in where(rows, change=AS_DRAWN) if row["number"] in numbers]
    return _counted([{**row, "unit_circle": row["operation"] in CIRCLE} for row in same],
                    "unit_circle", "scale", "setting")  # fmt: skip


def published_starts() -> "list[Row]":
    """The starts of the report's 240 runs at scales 1 and 3, drawn from its seeds as its code draws them."""
    from analyses.hill import _hill_plateaus_runs as runs
    from analyses.hill._hill_initialisation_runs import SEEDS
    from analyses.hill._report_protocol import RESEEDED, Run

    rows = []
    for seed in SEEDS:
        drawn = Run(seed, runs.OPERATIONS, torch_seed=seed + RESEEDED)
        for scale in runs.SCALES:
            for name in runs.OPERATIONS:
                W_hat, M_hat = drawn.start(name, scale)
                wrong = [goal * value < 0 for goal, value in zip(runs.signed(name), W_hat, strict=True)]
                rows.append(
                    {"operation": name, "scale": scale, "seed": seed, "start_W_hat_1": W_hat[0],
                     "start_W_hat_2": W_hat[1], "start_M_hat_1": M_hat[0], "start_M_hat_2": M_hat[1],
                     "wrong": sum(wrong)}
                )  # fmt: skip
    return rows


def with_published(rows: "Sequence[Row]") -> "list[Row]":
    """The rows with whether the report lists the run among those that failed."""
    failed = {(row["scale"], row["seed"], row["operation"]) for row in load("hill")["raw_4_5_failing_runs"]}
    return [
        {**row, "published_failed": (row["scale"], row["seed"], PUBLISHED_NAMES.get(row["operation"], row["operation"]))
         in failed}
        for row in rows
    ]  # fmt: skip
