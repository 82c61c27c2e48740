"""The tables of `hill-optimizers`: every cell beside the published one, and why some differ."""

import math
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_optimizers_matrix import (
    DEFAULT,
    NUDGED,
    OPERATIONS,
    PLAIN,
    REPORT,
    SETTINGS,
    SNAPS,
    Trained,
)
from analyses.published import load
from workbench.hill.operations import operation
from workbench.statistics import wilson

if TYPE_CHECKING:
    import pandas as pd
    import torch

Row = dict[str, Any]
Key = tuple[str, str, float]  # operation, setting, snapping

FLOOR, MARGINAL = 1e-6, 1e-2  # mean squared errors that part the published classes
REACHED, SHORT, FAILED = "reached", "short", "failed"  # below both, between them, above
PUBLISHED_OPERATIONS = {"power-identity": "identity", "cos-sum": "cos_add"}  # where the report's name is another
PUBLISHED_SETTINGS = {
    "Adam": "Adam(def)", "Adam, beta2 0.5": "Adam(β₂=0.5)", "SGD with momentum": "SGD+mom",
}  # fmt: skip
SINE = "who computes the sine: the weights are exact"
ROUNDING = "rounding: the same training begun 1e-12 away ends as far off"
UNREASONED = "not found"


def kind(mse: float) -> str:
    """The class of a mean squared error; one that is no number has failed."""
    return REACHED if mse < FLOOR else SHORT if mse < MARGINAL else FAILED


def published_cells() -> dict[Key, float]:
    """The 240 published mean squared errors."""
    operations = {PUBLISHED_OPERATIONS.get(name, name): name for name in OPERATIONS}
    settings = {PUBLISHED_SETTINGS.get(name, name): name for name in SETTINGS}
    rows = load("hill")["optimizer_matrix"]["rows"]
    return {(operations[r["op"]], settings[r["optimizer"]], r["snap"] or 0.0): r["mse"] for r in rows}


def places() -> list[tuple[Key, tuple[int, int, int]]]:
    """Every cell, with its place among snappings, settings and operations."""
    return [
        ((name, setting, snap), (k, s, o))
        for k, snap in enumerate(SNAPS)
        for s, setting in enumerate(SETTINGS)
        for o, name in enumerate(OPERATIONS)
    ]


def cells(trained: dict[str, Trained], comparable: bool) -> list[Row]:
    """One row a cell: the published protocol beside the published number, then the plain columns over their seeds.

    `agrees` and `digits` (the same class, the same three digits) are yes, no, or empty for a run that is not
    `comparable`. `nudged_low` and `nudged_high` span the same training begun elsewhere by as little as 1e-12. Of the
    plain columns: the median, smallest and largest error over the seeds, and the share below 1e-6 with its 95% Wilson
    interval.
    """
    published, rows = published_cells(), []
    for (name, setting, snap), at in places():
        measured = float(trained[REPORT].mse[0][at])
        theirs = published[name, setting, snap]
        nudged = sorted([measured, *_values(trained[NUDGED].mse, at)], key=_order)
        row: Row = {"operation": name, "optimizer": setting, "snapping": snap}
        row |= {"measured": measured, "published": theirs}
        row |= {"class": kind(measured), "published_class": kind(theirs)}
        row |= {"agrees": _yes(kind(measured) == kind(theirs)) if comparable else ""}
        row |= {"digits": _yes(as_printed(measured) == as_printed(theirs)) if comparable else ""}
        row |= {"nudged_low": nudged[0], "nudged_high": nudged[-1]}
        for column in (PLAIN, DEFAULT):
            row |= _spread(column, _values(trained[column].mse, at))
        rows.append(row)
    return rows


def _yes(true: bool) -> str:
    return "yes" if true else "no"


def _order(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _values(mse: "torch.Tensor", at: tuple[int, int, int]) -> list[float]:
    return mse[(slice(None), *at)].tolist()


def _spread(column: str, values: list[float]) -> Row:
    """Median (the upper one of an even number), ends and share below 1e-6; what is no number counts as largest."""
    ordered = sorted(values, key=_order)
    low, high = wilson(below := sum(value < FLOOR for value in values), len(values))
    return {
        f"{column}_median": ordered[len(values) // 2],
        f"{column}_smallest": ordered[0],
        f"{column}_largest": ordered[-1],
        f"{column}_share_reached": below / len(values),
        f"{column}_share_low": low,
        f"{column}_share_high": high,
        f"{column}_seeds": len(values),
    }


def as_printed(mse: float) -> str:
    """Three digits, as many as are compared."""
    return f"{mse:.2e}"


def differing(rows: list[Row], exact: dict[Key, bool]) -> list[Row]:
    """The cells of another class or other digits than published, each with the reason found."""
    columns = ("operation", "optimizer", "snapping", "measured", "published", "class", "published_class")
    found = []
    for row in (row for row in rows if "no" in (row["agrees"], row["digits"])):
        why = reason(row, exact[row["operation"], row["optimizer"], row["snapping"]])
        kept = {name: row[name] for name in (*columns, "nudged_low", "nudged_high")}
        found.append(kept | {"reason": why})
    return found


def reason(row: Row, exact: bool) -> str:
    """Why a cell differs.

    Exact weights leave nothing of the training: what remains of a trigonometric operation is the difference between two
    sines. Otherwise, when the published number is no farther (in its logarithm) from those of the nudged trainings than
    these are apart, rounding alone decides it.
    """
    if exact and operation(row["operation"]).primitive in ("unit-circle", "trigonometric-products"):
        return SINE
    ends = row["nudged_low"], _order(row["nudged_high"])
    low, high, published = (math.log(value) if value > 0 else -math.inf for value in (*ends, row["published"]))
    return ROUNDING if low < high and 2 * low - high <= published <= 2 * high - low else UNREASONED


def exact_cells(trained: dict[str, Trained]) -> dict[Key, bool]:
    """Whether the weights of each cell of the published protocol are exactly the selection."""
    return {key: bool(trained[REPORT].exact[0][at]) for key, at in places()}


def summary(rows: list[Row]) -> "pd.DataFrame":
    """A row an optimizer: how many of the eight operations are below 1e-6 at each snapping, by column of the tables."""
    import pandas as pd

    lines = []
    for setting in SETTINGS:
        line: Row = {"optimizer": setting}
        for snap in SNAPS:
            here = [row for row in rows if (row["optimizer"], row["snapping"]) == (setting, snap)]
            words = f"snap {snap:g}" if snap else "no snap"
            ours, theirs = (sum(row[key] == REACHED for row in here) for key in ("class", "published_class"))
            line[words] = f"{ours} ({theirs})"
        for column, words in ((PLAIN, "plain"), (DEFAULT, "defaults")):
            shares = []
            for snap in SNAPS:
                here = [row for row in rows if (row["optimizer"], row["snapping"]) == (setting, snap)]
                shares.append(f"{sum(row[f'{column}_share_reached'] for row in here):.3g}")
            line[f"{words}: none, 1e-6, 1e-2"] = ", ".join(shares)
        mine = [row for row in rows if row["optimizer"] == setting]
        line["agree"] = f"{sum(row['agrees'] == 'yes' for row in mine)} of {len(mine)}" if mine[0]["agrees"] else ""
        lines.append(line)
    return pd.DataFrame(lines)
