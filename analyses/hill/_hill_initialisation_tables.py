"""The tables of `hill-initialisation`: every training, every cell of table 4.5, and where the published ones differ."""

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_initialisation_runs import OPERATIONS, SCALES, Cell
from analyses.hill._report_numbers import mse_by_avx2, printed_pair
from analyses.published import load
from workbench.hill.operations import operation
from workbench.statistics import mean_interval, wilson

if TYPE_CHECKING:
    import pandas as pd

REPORT, PLAIN = "report", "plain"  # protocols
LEARNED = 1e-6  # extrapolation error below which a run counts as learned; floors are below 1e-15
NEAR_NEUTRAL = (0.0, 0.01, 0.1)
SAME = 1e-9  # relative difference of two errors that counts as none
# Reasons why a run's error is not the published one.
COSINE = "this CPU's code path of MKL's cosine; with its AVX2 code the error is the published one"
ROUNDING = "rounding errors decide it; a start moved by 1e-12 of itself moves the error as well"
ANGLES = "the weights are exact: what is left is where this CPU's cosine and sine round other than numpy's"
POWER = "not found; both are at the floor of complex powers and within 1% of each other"
SHORTER = "fewer epochs than published"
UNKNOWN = "not found"
ROW = {  # the published names
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "power-identity": "identity",
    "reciprocal": "reciprocal", "cos": "cos", "sin": "sin", "cos-sum": "cos_add", "sin-sum": "sin_add",
    "cos-difference": "cos_sub", "sin-difference": "sin_sub",
}  # fmt: skip

Row = dict[str, Any]


def runs(cells: Sequence[Cell], protocol: str) -> list[Row]:
    """One row a training and operation. `mse_avx2` is for cosines and sines in the report's protocol, NaN elsewhere."""
    wanted = [c for c in cells if protocol == REPORT and c.operation.startswith(("cos", "sin"))]
    asked = list(dict.fromkeys((c.operation, c.seed, c.W) for c in wanted))
    avx2 = dict(zip(asked, mse_by_avx2(asked), strict=True)) if asked else {}
    rows = []
    for c in cells:
        row: Row = {"protocol": protocol, "operation": c.operation, "scale": c.scale, "seed": c.seed, "mse": c.mse}
        row |= {"learned": c.mse < LEARNED, "epochs": c.epochs, "mse_nudged": c.nudged}
        row["mse_avx2"] = avx2.get((c.operation, c.seed, c.W), math.nan)
        row |= {"W1": c.W[0], "W2": c.W[1]}
        for when, pair in (("start", c.start), ("end", c.end)):
            for name, values in zip(("W_hat", "M_hat"), pair, strict=True):
                row |= {f"{when}_{name}{place}": value for place, value in enumerate(values, start=1)}
        rows.append(row)
    return rows


def published_runs() -> dict[tuple[str, float, int], float]:
    """The published error of every operation, scale and seed: a failing run's own, or the seed's floor."""
    published, found = load("hill"), {}
    names = {theirs: ours for ours, theirs in ROW.items()}
    for row in published["raw_4_5_floor_per_seed"]:
        found |= {(names[n], s, row["seed"]): mse for n, mse in row.items() if n != "seed" for s in SCALES}
    for row in published["raw_4_5_failing_runs"]:
        found[names[row["operation"]], row["scale"], row["seed"]] = row["mse"]
    return found


def beside_published(
    rows: Sequence[Row], published: dict[tuple[str, float, int], float], *, shorter: bool
) -> list[Row]:
    """The runs of the report's protocol with the published error, whether both learned or both failed, and why not.

    `shorter` says that training had fewer epochs, which changes where a failing run ends.
    """
    found = []
    for row in rows:
        theirs = published.get((row["operation"], row["scale"], row["seed"]), math.nan)
        if row["protocol"] != REPORT or math.isnan(theirs):
            continue
        new = {name: row[name] for name in ("operation", "scale", "seed", "mse", "mse_avx2", "mse_nudged")}
        new |= {"published_mse": theirs, "same_verdict": row["learned"] == (theirs < LEARNED)}
        new["same_number"] = _same(row["mse"], theirs)
        new["reason"] = "" if new["same_number"] else reason(row, theirs, shorter=shorter)
        found.append(new)
    return found


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * abs(other)


def reason(row: Row, published: float, *, shorter: bool) -> str:
    """Why a run's error is not the published one to 1e-9, from what was tried: never from the operation's name alone.

    The AVX2 cosine gives the published digits; or the run failed and had fewer epochs; or a nudge of 1e-12 at the start
    moves the number as well; or the weights are the selection itself, so only who computes the cosine is left (MKL
    takes the same path for it on CPUs that are not Intel's, whatever it is told). Else it is not found.
    """
    if _same(row["mse_avx2"], published):
        return COSINE
    if not math.isnan(row["mse_avx2"]) and (row["W1"], row["W2"]) == operation(row["operation"]).selection:
        return ANGLES
    if not row["learned"] and shorter:
        return SHORTER
    if not row["learned"] and not math.isnan(row["mse_nudged"]) and not _same(row["mse_nudged"], row["mse"]):
        return ROUNDING
    powers = row["operation"] in ("multiply", "divide", "power-identity", "reciprocal")
    return POWER if powers and row["learned"] and abs(row["mse"] - published) < 0.01 * published else UNKNOWN


def cells(rows: Sequence[Row]) -> list[Row]:
    """One row a protocol, operation and scale: mean error with a 95% interval, and how many runs failed, with one."""
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["protocol"], row["operation"], row["scale"]), []).append(row)
    found = []
    for (protocol, name, scale), members in groups.items():
        values = [row["mse"] for row in members]
        n, failed = len(values), sum(not row["learned"] for row in members)
        finite = all(map(math.isfinite, values))
        low, high = mean_interval(values) if n > 1 and finite else (math.nan, math.nan)
        new: Row = {"protocol": protocol, "operation": name, "scale": scale, "n": n}
        new |= {
            "mean": statistics.fmean(values),
            "low": low,
            "high": high,
            "measured": printed_pair(values, sample=False),
        }
        avx2 = [row["mse_avx2"] for row in members]
        new["measured_avx2"] = "" if any(map(math.isnan, avx2)) else printed_pair(avx2, sample=False)
        new |= {"failed": failed} | dict(zip(("failed_low", "failed_high"), wilson(failed, n), strict=True))
        found.append(new)
    return found


def joined(measured: Sequence[Row], compared: Sequence[Row], *, whole: bool) -> list[Row]:
    """The cells of the report's protocol beside table 4.5; compared when `whole` (the published seeds and epochs).

    `published_here` is the mean of the published runs of the same seeds.
    """
    printed = {row["operation"]: row for row in load("hill")["table_4_5_init"]}
    titles = dict(zip(OPERATIONS, printed, strict=True))
    same_seeds: dict[tuple[str, float], list[float]] = {}
    for row in compared:
        same_seeds.setdefault((row["operation"], row["scale"]), []).append(row["published_mse"])
    found = []
    for row in measured:
        if row["protocol"] != REPORT:
            continue
        scale = f"scale_{row['scale']:g}" if row["scale"] < 1 else f"scale_{row['scale']:.1f}"
        theirs = printed[titles[row["operation"]]][scale]["text"]
        agrees = ""
        if whole:
            here, avx2 = (_mean(row[name]) == _mean(theirs) for name in ("measured", "measured_avx2"))
            agrees = "yes" if here else "with AVX2" if avx2 else "no"
        beside = printed_pair(same_seeds[row["operation"], row["scale"]], sample=False)
        new = {"published_row": titles[row["operation"]], "published": theirs, "published_here": beside}
        found.append(row | new | {"agrees": agrees})
    return found


def _mean(text: str) -> str:
    return text.partition(" ± ")[0]


def summary(beside: Sequence[Row]) -> list[Row]:
    """Table 4.5: each scale's mean as measured, and after a slash the published one of these seeds where it differs."""
    rows: dict[str, Row] = {}
    for cell in beside:
        ours, theirs = _mean(cell["measured_avx2"] or cell["measured"]), _mean(cell["published_here"])
        titles = {"operation": cell["operation"], "published row": cell["published_row"]}
        row = rows.setdefault(cell["operation"], titles)
        row[f"{cell['scale']:g}"] = ours if ours == theirs else f"{ours} / {theirs}"
    return list(rows.values())


def table(rows: Sequence[Row], columns: Sequence[str]) -> "pd.DataFrame":
    """Rows as a table that has its columns even when there are no rows."""
    import pandas as pd

    kinds = {"scale": "float64", "seed": "int64", "mse": "float64", "mse_avx2": "float64", "mse_nudged": "float64"}
    kinds |= {"published_mse": "float64", "same_verdict": "bool", "same_number": "bool", "reason": "str"}
    if rows:
        return pd.DataFrame(list(rows), columns=list(columns))
    return pd.DataFrame({name: pd.Series(dtype=kinds.get(name, "str")) for name in columns})
