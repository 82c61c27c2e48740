"""Analysis `hill-initialisation`: at which initial scales units learn their operation (table 4.5).

Twelve operations, five scales, ten seeds, in one stack. The report's protocol is followed to its random numbers, and in
three places it is narrower than its text: targets of + - x / go through decimal forms of the inputs, which alone is
the floor of a + b and a - b; `cos` and the identity train one weight pair; and the row "a" is the exponential identity.
The plain protocol beside it undoes all three.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob
from workbench.statistics import wilson

if TYPE_CHECKING:
    from analyses.hill._hill_initialisation_tables import Row
    from workbench.checkpoint import Checkpoint

SEEDS, EPOCHS = 10, 100  # published
ASKED_MEANS, ASKED_CELLS = 36, 230  # of 36 near-neutral means and of 240 pass/fail cells; written before the run


@dataclass(frozen=True)
class Options:
    """How much of the published protocol is run."""

    seeds: int = knob(2, "runs of each scale, the first of the ten published seeds")
    epochs: int = knob(6, "epochs at most; near-neutral scales need one")
    full: bool = knob(False, "the published ten seeds and 100 epochs: 1 to 3 minutes")

    def __post_init__(self) -> None:
        check_types(self)
        if not 1 <= self.seeds <= SEEDS:
            raise BadInput(f"seeds is {self.seeds}, expected 1 to {SEEDS}")
        if not 1 <= self.epochs <= EPOCHS:
            raise BadInput(f"epochs is {self.epochs}, expected 1 to {EPOCHS}")


@analysis(
    question="At which initial scales do units learn their operation, and what decides a failure?",
    options=Options,
    inputs="nothing",
)
def hill_initialisation(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Extrapolation error of every unit, as the report trains them and each by itself, beside the published ones."""
    import pandas as pd

    from analyses.hill import _hill_initialisation_figures as figures
    from analyses.hill import _hill_initialisation_runs as training
    from analyses.hill import _hill_initialisation_tables as tables

    seeds = training.SEEDS[: SEEDS if options.full else options.seeds]
    epochs = EPOCHS if options.full else options.epochs
    whole = len(seeds) == SEEDS and epochs == EPOCHS
    rows = tables.runs(training.report_cells(seeds, training.SCALES, epochs), tables.REPORT)
    rows += tables.runs(training.plain_cells(seeds, training.SCALES, epochs), tables.PLAIN)
    measured = tables.cells(rows)
    compared = tables.beside_published(rows, tables.published_runs(), shorter=epochs < EPOCHS)
    beside = tables.joined(measured, compared, whole=whole)
    different = [row for row in compared if not (row["same_verdict"] and row["same_number"])]
    return Result(
        tables={
            "summary": pd.DataFrame(tables.summary(beside)),
            "cells": pd.DataFrame(beside),
            "plain": pd.DataFrame([row for row in measured if row["protocol"] == tables.PLAIN]),
            "runs": pd.DataFrame(rows),
            "differing": tables.table(different, list(compared[0])),
        },
        figures={"plateaus": figures.plateau_figure(rows), "failures": figures.failures_figure(measured)},
        findings=findings(rows, measured, beside, compared, whole=whole),
    )


def findings(
    rows: "Sequence[Row]", measured: "Sequence[Row]", beside: "Sequence[Row]", compared: "Sequence[Row]", *, whole: bool
) -> list[Finding]:
    """What agrees with the report, what does not and why, and what the plain protocol says."""
    seeds = len({row["seed"] for row in rows})
    found = []
    if not whole:
        words = (
            f"A short run: {seeds} of {SEEDS} seeds, at most {max(row['epochs'] for row in rows)} epochs of {EPOCHS}"
        )
        text = f"{words}. Runs are compared with the published ones of their seeds; --full also compares the table."
        found.append(Finding(text, value=seeds, n=seeds, control="published seeds", control_value=SEEDS))
    else:
        found.append(near_neutral(beside))
    found.append(verdicts(compared))
    found += numbers(compared)
    found += [failures(rows, scales) for scales in ((0.0, 0.01, 0.1), (1.0,), (3.0,))]
    return [*found, *floors(measured), sharing(measured)]


def near_neutral(beside: "Sequence[Row]") -> Finding:
    """How many means at scales up to 0.1 read as printed."""
    cells = [row for row in beside if row["scale"] <= 0.1]
    here = sum(row["agrees"] == "yes" for row in cells)
    either = here + sum(row["agrees"] == "with AVX2" for row in cells)
    verdict = "as asked" if either >= ASKED_MEANS else "TOO FEW"
    how = "" if here == either else f" ({either - here} of them, cos and sin, only with MKL kept to its AVX2 code)"
    text = f"{either} of {len(cells)} near-neutral means agree to the printed digits{how}, {verdict}."
    wrong = "; ".join(f"{r['operation']} at {r['scale']:g}: {r['measured']}, published {r['published']}"
                      for r in cells if r["agrees"] == "no")  # fmt: skip
    return Finding(text + (f" Not: {wrong}." if wrong else ""), either, n=len(cells), control="asked for",
                   control_value=ASKED_MEANS)  # fmt: skip


def verdicts(compared: "Sequence[Row]") -> Finding:
    """How many runs at scales 1 and 3 learn or fail as the published run of the same seed did."""
    large = [row for row in compared if row["scale"] >= 1]
    same = sum(row["same_verdict"] for row in large)
    low, high = wilson(same, len(large))
    enough = same * 240 >= ASKED_CELLS * len(large)
    verdict = "enough" if enough else "TOO FEW"
    text = f"{same} of {len(large)} runs at scales 1 and 3 learn or fail as published, {verdict}."
    wrong = [row for row in large if not row["same_verdict"]]
    if wrong:
        text += " Not: " + "; ".join(f"{r['operation']}, scale {r['scale']:g}, seed {r['seed']}" for r in wrong) + "."
    return Finding(text, same / len(large), low, high, len(large), "share asked for", ASKED_CELLS / 240)


def numbers(compared: "Sequence[Row]") -> list[Finding]:
    """How many errors equal the published ones to 1e-9, and the reasons of the others."""
    same = sum(row["same_number"] for row in compared)
    text = f"{same} of {len(compared)} errors equal the published ones to 9 digits, run by run."
    found = [Finding(text, same / len(compared), *wilson(same, len(compared)), n=len(compared))]
    groups: dict[str, list[Row]] = {}
    for row in compared:
        if row["reason"]:
            groups.setdefault(row["reason"], []).append(row)
    for why, members in groups.items():
        names = ", ".join(dict.fromkeys(row["operation"] for row in members))
        furthest = max(abs(row["mse"] / row["published_mse"] - 1) for row in members)
        text = f"{len(members)} differ ({names}), by up to {furthest:.2g} of the published error. Reason: {why}."
        found.append(Finding(text, len(members), n=len(compared)))
    return found


def failures(rows: "Sequence[Row]", scales: Sequence[float]) -> Finding:
    """How often a run fails at these scales: as the report trains, with the plain protocol as the control."""
    counts = {}
    for protocol in ("report", "plain"):
        here = [row for row in rows if row["protocol"] == protocol and row["scale"] in scales]
        here = [row for row in here if not row["operation"].startswith("identity")]  # the report has no such row
        counts[protocol] = (sum(not row["learned"] for row in here), len(here))
    failed, n = counts["report"]
    alone, m = counts["plain"]
    names = " and ".join(f"{scale:g}" for scale in scales)
    text = f"At scale {names}, {failed} of {n} runs fail; each operation by itself, {alone} of {m}."
    return Finding(text, failed / n, *wilson(failed, n), n=n, control="each by itself", control_value=alone / m)


def floors(measured: "Sequence[Row]") -> list[Finding]:
    """What a learned unit's error is without decimal targets and complex powers."""
    at = {(cell["protocol"], cell["operation"], cell["scale"]): cell for cell in measured}
    found = []
    for name in ("add", "subtract", "multiply", "divide", "power-identity"):
        report, plain = at["report", name, 0.0], at["plain", name, 0.0]
        here, exact = report["measured"], plain["measured"]
        text = f"{name} from zero weights: {here} as the report measures, {exact} against float64."
        found.append(Finding(text, report["mean"], n=report["n"], control="float64", control_value=plain["mean"]))
    additive, of_one = at["plain", "identity", 0.0], at["plain", "identity, b = 1", 0.0]
    text = (
        f'The row "a" is the exponential identity. An additive identity trained the same way ends at '
        f"{additive['measured']} when its second input is drawn; when that is 1, Adam's momentum carries both weights "
        f"onto the plateau at 1, and {of_one['failed']} of {of_one['n']} runs fail."
    )
    control = ("second input 1: share that fails", of_one["failed"] / of_one["n"])
    return [*found, Finding(text, additive["mean"], n=additive["n"], control=control[0], control_value=control[1])]


def sharing(measured: "Sequence[Row]") -> Finding:
    """Whether cos escapes failure at scale 1 because it shares its pair with the identity."""
    at = {(cell["protocol"], cell["operation"], cell["scale"]): cell for cell in measured}
    shared, alone = at["report", "cos", 1.0], at["plain", "cos", 1.0]
    one, other = (f"{cell['failed']} of {cell['n']}" for cell in (shared, alone))
    text = f"cos on the identity's weight pair fails in {one} runs at scale 1; on a pair of its own in {other}."
    share, control = shared["failed"] / shared["n"], alone["failed"] / alone["n"]
    return Finding(text, share, shared["failed_low"], shared["failed_high"], shared["n"], "own pair", control)
