"""The tables of `hill-inalu`: every unit, every cell of table 4.3 beside the published one, and the lotteries."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_inalu_runs import LOTTERIES, OPERATIONS, UNIVERSAL, Trained
from analyses.hill._report_numbers import printed_pair
from analyses.published import load
from workbench.hill.operations import OPERATIONS as TABLE
from workbench.statistics import mean_interval, wilson

if TYPE_CHECKING:
    import pandas as pd

MATCHED = "matched"
SAME = 1e-9  # relative difference of two errors that counts as none
TITLES: dict[str, str] = dict(zip(OPERATIONS, ("a + b", "a - b", "a \N{MULTIPLICATION SIGN} b", "a ÷ b"), strict=True))

Row = dict[str, Any]
Errors = Mapping[tuple[str, str, str, int], float]


def right(unit: Trained) -> bool:
    """Whether the snapped weights are the operation's selection."""
    return unit.snapped == TABLE[unit.operation].selection


def runs(units: Sequence[Trained], errors: Errors, plain: Errors) -> list[Row]:
    """One row a test range, training and seed: weights, epochs, error as the report measures it and against float64."""
    at = {(unit.trained_on, unit.operation, unit.seed): unit for unit in units}
    rows = []
    for (tested_on, training, name, seed), error in errors.items():
        unit = at[UNIVERSAL if training == UNIVERSAL else tested_on, name, seed]
        row: Row = {"distribution": tested_on, "operation": name, "training": training, "seed": seed, "mse": error}
        row["mse_float64"] = plain[tested_on, training, name, seed]
        row |= {"right": right(unit), "converged": unit.converged, "epochs": unit.epochs}
        row |= {"W1": unit.W[0], "W2": unit.W[1], "snapped1": unit.snapped[0], "snapped2": unit.snapped[1]}
        rows.append(row)
    return rows


def cells(rows: Sequence[Row], *, whole: bool) -> list[Row]:
    """One row a cell of table 4.3: measured mean with a 95% interval, and the published text.

    `agrees` compares the printed mean, `spread_agrees` the printed deviation; both "" unless `whole` (the published
    seeds and epochs). `lottery` marks the four whose outcome depends on the order of batches.
    """
    published = {(row["distribution"], row["operation"]): row for row in load("hill")["table_4_3_inalu"]}
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["distribution"], row["operation"], row["training"]), []).append(row)
    found = []
    for (tested_on, name, training), members in groups.items():
        values = [row["mse"] for row in members]
        theirs = published[tested_on, TITLES[name]]
        n = len(values)
        low, high = mean_interval(values) if n > 1 and all(map(math.isfinite, values)) else (math.nan, math.nan)
        new: Row = {"distribution": tested_on, "operation": name, "training": training, "n": n}
        new |= {
            "mean": statistics.fmean(values),
            "low": low,
            "high": high,
            "measured": printed_pair(values, sample=True),
        }
        new |= {"published": theirs[training]["text"], "inalu": theirs["inalu"]["text"] if theirs["inalu"] else ""}
        new["float64"] = printed_pair([row["mse_float64"] for row in members], sample=True)
        new |= {"right": sum(row["right"] for row in members), "lottery": is_lottery(new)}
        ours, printed = new["measured"].partition(" ± "), new["published"].partition(" ± ")
        new["agrees"] = ("yes" if ours[0] == printed[0] else "no") if whole else ""
        new["spread_agrees"] = ("yes" if ours[2] == printed[2] else "no") if whole else ""
        found.append(new)
    return found


def is_lottery(cell: Row) -> bool:
    """Whether a row is one of the four lotteries."""
    return cell["training"] == MATCHED and (cell["distribution"], cell["operation"]) in LOTTERIES


def summary(found: Sequence[Row]) -> list[Row]:
    """Table 4.3: measured, and after a slash the published text where its mean reads otherwise."""
    rows: dict[tuple[str, str], Row] = {}
    for cell in found:
        titles = {"distribution": cell["distribution"], "operation": TITLES[cell["operation"]], "iNALU": cell["inalu"]}
        row = rows.setdefault((cell["distribution"], cell["operation"]), titles)
        same = cell["measured"].partition(" ± ")[0] == cell["published"].partition(" ± ")[0]
        row[cell["training"]] = cell["measured"] if same else f"{cell['measured']} / {cell['published']}"
    return list(rows.values())


def beside_published(rows: Sequence[Row]) -> list[Row]:
    """The lotteries' runs with the published error and epochs of the same seed.

    `published_epochs` counts from 0 and is 100 for a run that never converged, as the report's code has it.
    """
    theirs = {(r["distribution"], r["operation"], r["seed"]): r for r in load("hill")["raw_4_3_lottery_runs"]}
    found = []
    for row in rows:
        if not is_lottery(row):
            continue
        one = theirs[row["distribution"], row["operation"], row["seed"]]
        new = {name: row[name] for name in ("distribution", "operation", "seed", "mse", "right", "epochs")}
        new |= {"published_mse": one["matched_mse"], "published_epochs": one["matched_epochs"]}
        new["same_verdict"] = row["right"] == (one["matched_mse"] < 1e-6)
        new["same_number"] = abs(row["mse"] - one["matched_mse"]) <= SAME * one["matched_mse"]
        found.append(new)
    return found


def lotteries(units: Sequence[Trained]) -> list[Row]:
    """How often each lottery is won, with a 95% interval, and where the losing units' weights are on average.

    The larger and the smaller weight, since which input gets which is a lottery of its own for multiply.
    """
    found = []
    for trained_on, name in LOTTERIES:
        members = [unit for unit in units if (unit.trained_on, unit.operation) == (trained_on, name)]
        lost = [unit for unit in members if not unit.converged]
        won, n = len(members) - len(lost), len(members)
        low, high = wilson(won, n)
        row: Row = {"distribution": trained_on, "operation": name, "n": n, "won": won, "rate": won / n}
        row |= {"low": low, "high": high}
        row["losing_larger"] = statistics.fmean(max(unit.W) for unit in lost) if lost else math.nan
        row["losing_smaller"] = statistics.fmean(min(unit.W) for unit in lost) if lost else math.nan
        row["last_win_epoch"] = max((unit.epochs for unit in members if unit.converged), default=0)
        found.append(row)
    return found


def lottery_runs(units: Sequence[Trained]) -> "pd.DataFrame":
    """One row a unit of the lotteries."""
    import pandas as pd

    return pd.DataFrame(
        [
            {"distribution": unit.trained_on, "operation": unit.operation, "seed": unit.seed, "won": unit.converged}
            | {"epochs": unit.epochs, "W1": unit.W[0], "W2": unit.W[1]}
            for unit in units
        ]
    )


def inalu_means() -> dict[tuple[str, str], float]:
    """Published mean errors of iNALU by range and operation."""
    names = {title: name for name, title in TITLES.items()}
    rows = [row for row in load("hill")["table_4_3_inalu"] if row["inalu"] and row["inalu"]["text"]]
    return {(row["distribution"], names[row["operation"]]): row["inalu"]["mean"] for row in rows}
