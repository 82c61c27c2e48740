"""Analysis `hill-inalu`: addition, subtraction, multiplication and division on iNALU's ranges (table 4.3).

Matched units train on the range they are tested beyond; universal ones train on U(1e-8, 10) alone. The report's
protocol is followed to its random numbers. Four matched cells, multiply and divide on the two ranges that cross zero,
are lotteries of the order of batches: they are run again from many more seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob
from workbench.statistics import wilson

if TYPE_CHECKING:
    from analyses.hill._hill_inalu_tables import Row
    from workbench.checkpoint import Checkpoint

SEEDS, EPOCHS = 10, 100  # published
LOTTERY_EPOCHS = 10  # in a trial of 25 seeds and 100 epochs, no unit won a lottery after the fourth
FULL_LOTTERY = 100  # seeds of each lottery
MOST_LOTTERY = 1000


@dataclass(frozen=True)
class Options:
    """How much of the published protocol is run."""

    seeds: int = knob(1, "runs of each cell, the first of the ten published seeds")
    epochs: int = knob(20, "epochs at most; the published number is 100")
    lottery_seeds: int = knob(20, "seeds of each of the four lotteries, in addition")
    full: bool = knob(False, "the published ten seeds and 100 epochs, and 100 seeds a lottery: 1 to 3 minutes")

    def __post_init__(self) -> None:
        check_types(self)
        for name, value, most in (
            ("seeds", self.seeds, SEEDS),
            ("epochs", self.epochs, EPOCHS),
            ("lottery_seeds", self.lottery_seeds, MOST_LOTTERY),
        ):
            if not 1 <= value <= most:
                raise BadInput(f"{name} is {value}, expected 1 to {most}")


@analysis(
    question="How do exact units trained on iNALU's ranges extrapolate, and how often do they fail?",
    options=Options,
    inputs="nothing",
)
def hill_inalu(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Extrapolation errors of matched and universal units beside the published ones, and the lotteries' odds."""
    import pandas as pd

    from analyses.hill import _hill_inalu_figures as figures
    from analyses.hill import _hill_inalu_runs as training
    from analyses.hill import _hill_inalu_tables as tables

    seeds = training.SEEDS[: SEEDS if options.full else options.seeds]
    epochs = EPOCHS if options.full else options.epochs
    whole = len(seeds) == SEEDS and epochs == EPOCHS
    draws = range(FULL_LOTTERY if options.full else options.lottery_seeds)
    units = training.report_units(seeds, epochs)
    errors, plain = training.report_errors(units, seeds), training.plain_errors(units, seeds)
    lottery = training.lottery_units(draws, min(LOTTERY_EPOCHS, epochs))

    rows = tables.runs(units, errors, plain)
    cells = tables.cells(rows, whole=whole)
    compared, odds = tables.beside_published(rows), tables.lotteries(lottery)
    return Result(
        tables={
            "summary": pd.DataFrame(tables.summary(cells)),
            "cells": pd.DataFrame(cells),
            "lotteries": pd.DataFrame(odds),
            "lottery-runs": tables.lottery_runs(lottery),
            "published-lotteries": pd.DataFrame(compared),
            "runs": pd.DataFrame(rows),
        },
        figures={
            "errors": figures.errors_figure(cells, tables.inalu_means()),
            "lotteries": figures.lotteries_figure(lottery, odds),
        },
        findings=findings(rows, cells, compared, odds, whole=whole),
    )


def findings(
    rows: "Sequence[Row]", cells: "Sequence[Row]", compared: "Sequence[Row]", odds: "Sequence[Row]", *, whole: bool
) -> list[Finding]:
    """What agrees with the report, what the lotteries' odds are, and what remains against float64."""
    found = []
    if whole:
        found += agreement(cells)
    else:
        seeds, epochs = len({row["seed"] for row in rows}), max(row["epochs"] for row in rows)
        words = f"A short run: {seeds} of {SEEDS} seeds, at most {epochs} epochs of {EPOCHS}"
        text = f"{words}. --full also compares the table."
        found.append(Finding(text, value=seeds, n=seeds, control="published seeds", control_value=SEEDS))
    found.append(ten_lotteries(compared, whole=whole))
    found += [chance(row, compared) for row in odds]
    return [*found, universal(rows), *against_float64(cells)]


def agreement(cells: "Sequence[Row]") -> list[Finding]:
    """How many cells read as printed; those that do not by name."""
    found = []
    for words, members in (
        ("cells besides the four lotteries", [cell for cell in cells if not cell["lottery"]]),
        ("lotteries", [cell for cell in cells if cell["lottery"]]),
    ):
        same = sum(cell["agrees"] == "yes" for cell in members)
        spread = sum(cell["spread_agrees"] == "yes" for cell in members)
        verdict = "as asked" if same == len(members) else "TOO FEW"
        start = f"{same} of {len(members)} {words} agree to the printed digits of the mean"
        text = f"{start}, {verdict}; {spread} of the spread."
        wrong = [cell for cell in members if cell["agrees"] == "no"]
        names = "; ".join(
            f"{cell['distribution']} {cell['operation']} {cell['training']}: {cell['measured']}, published "
            f"{cell['published']}"
            for cell in wrong
        )
        found.append(Finding(text + (f" Not: {names}." if names else ""), same, n=len(members), control="all",
                             control_value=len(members)))  # fmt: skip
    return found


def ten_lotteries(compared: "Sequence[Row]", *, whole: bool) -> Finding:
    """The lotteries from the published seeds: who wins, and whether the errors are the published ones."""
    same, n = sum(row["same_verdict"] for row in compared), len(compared)
    equal = sum(row["same_number"] for row in compared)
    start = "From the published seeds and orders of batches"
    text = f"{start}, {same} of {n} runs of the four lotteries are won or lost as published"
    more = f"; {equal} have the published error to 9 digits." if whole else "."
    return Finding(text + more, same / n, *wilson(same, n), n=n)


def chance(row: "Row", compared: "Sequence[Row]") -> Finding:
    """How often a lottery is won, beside the ten published runs."""
    theirs = [
        one for one in compared if (one["distribution"], one["operation"]) == (row["distribution"], row["operation"])
    ]
    won = sum(one["published_mse"] < 1e-6 for one in theirs)
    start = f"{row['operation']} trained on {row['distribution']} reaches its selection"
    text = f"{start} from {row['won']} of {row['n']} seeds"
    if row["won"] < row["n"]:
        text += f"; the others end near weights {row['losing_larger']:.2f} and {row['losing_smaller']:.2f}"
    control = ("published runs of these seeds", won / len(theirs)) if theirs else (None, None)
    return Finding(f"{text}.", row["rate"], row["low"], row["high"], row["n"], *control)


def universal(rows: "Sequence[Row]") -> Finding:
    """How many universal units have the right snapped weights, with the matched ones as the control."""
    counts = {}
    for training in ("universal", "matched"):
        units = {(r["distribution"] * (training == "matched"), r["operation"], r["seed"]): r["right"]
                 for r in rows if r["training"] == training}  # fmt: skip
        counts[training] = (sum(units.values()), len(units))
    (ours, n), (theirs, m) = counts["universal"], counts["matched"]
    text = f"Trained on U(1e-8, 10), {ours} of {n} units reach their selection; on the range itself, {theirs} of {m}."
    return Finding(text, ours / n, *wilson(ours, n), n=n, control="matched", control_value=theirs / m)


def against_float64(cells: "Sequence[Row]") -> list[Finding]:
    """What error is left of the universal units when decimals and complex powers are not in the way."""
    here = [cell for cell in cells if cell["training"] == "universal"]
    zero = sum(cell["float64"] == "0.0" for cell in here)
    text = (
        f"Against float64 and with sign-exact powers, {zero} of {len(here)} universal cells have an error of exactly 0."
    )
    return [Finding(text, zero / len(here), n=len(here), control="as the report measures",
                    control_value=sum(cell["mean"] == 0 for cell in here) / len(here))]  # fmt: skip
