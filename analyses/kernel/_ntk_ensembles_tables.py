"""Tables of analysis `ntk-ensembles`: medians and bands of counts, beside the published ones; orders of growth."""

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analyses._rows import Row, grouped, where
from analyses.kernel._ntk_ensembles_permutation import LAW, MIDPOINT, TRAINED, ZERO
from analyses.published import load
from workbench.statistics import mean_interval, student_quantile

if TYPE_CHECKING:
    import pandas as pd

ALL_INPUTS = "all inputs"
BAND = (0.05, 0.95)  # quantiles of single trials under the law
COLUMNS = {("nngp", LAW): "law_nngp", ("nngp", TRAINED): "standard", ("ntk", LAW): "law_ntk", ("ntk", TRAINED): "ntk"}


def published(error: float) -> dict[int, int]:
    """The published count of every k of the experiment with this error."""
    every = [value for name, value in load("ntk").items() if name.startswith("experiment_")]
    return next((dict(zip(e["k"], e["networks"], strict=True)) for e in every if e["error"] == error), {})


def counts(rows: Sequence[Row]) -> list[Row]:
    """One row a k, form, kind, threshold and error: the trials' median, range and 90% band."""
    keys = ("k", "form", "kind", "threshold", "error")
    found = []
    for key, here in grouped(rows, *keys).items():
        networks = [row["networks"] for row in here]
        low, high = (float(end) for end in np.quantile(networks, BAND))
        found.append(
            dict(zip(keys, key, strict=True))
            | {"trials": len(here), "median": float(statistics.median(networks)), "least": min(networks),
               "most": max(networks), "band_low": low, "band_high": high,
               "unreached": sum(not row["reached"] for row in here)}
        )  # fmt: skip
    return found


def beside(cells: Sequence[Row]) -> "pd.DataFrame":
    """The published counts beside the medians, one row a k and error: threshold zero, and the midpoint's last."""
    import pandas as pd

    lines = []
    for error in sorted({cell["error"] for cell in cells}, reverse=True):
        theirs = published(error)
        for k in sorted({cell["k"] for cell in where(cells, error=error)}):
            line: Row = {"k": k, "error": f"{error:g}", "published": str(theirs.get(k, ""))}
            for (form, kind), name in COLUMNS.items():
                (cell,) = where(cells, error=error, k=k, form=form, kind=kind, threshold=ZERO) or [None]
                line[name] = _shown(cell)
            middle = [cell["median"] for cell in where(cells, error=error, k=k, kind=TRAINED, threshold=MIDPOINT)]
            lines.append(line | {"midpoint": "" if not middle else f"{max(middle):g}"})
    return pd.DataFrame(lines)


def _shown(cell: Row | None) -> str:
    if cell is None:
        return ""
    low, high = (cell["least"], cell["most"]) if cell["kind"] == TRAINED else (cell["band_low"], cell["band_high"])
    return f"{cell['median']:g} ({low:.0f} to {high:.0f})"


def quotients(rows: Sequence[Row], error: float) -> list[Row]:
    """Networks in NTK form over those in the standard form, trained, at each k: geometric mean with 95% interval.

    The trials are independent; those of one number are paired.
    """
    found = []
    of = where(rows, kind=TRAINED, threshold=ZERO, error=error)
    for k in sorted({row["k"] for row in where(of, form="ntk")} & {row["k"] for row in where(of, form="nngp")}):
        ntk, standard = ([row["networks"] for row in where(of, form=form, k=k)] for form in ("ntk", "nngp"))
        logs = [math.log(a / b) for a, b in zip(ntk, standard, strict=False)]
        low, high = mean_interval(logs)
        middle = statistics.fmean(logs)
        found.append({"k": k, "times": math.exp(middle), "low": math.exp(low), "high": math.exp(high), "n": len(logs)})
    return found


def order(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """The exponent p of `y ~ x^p` by least squares of logarithms, with its 95% interval by Student's t.

    The points are exact, so the interval says how far from a straight line they lie. Raises ValueError below three.
    """
    if len(x) < 3:
        raise ValueError(f"{len(x)} points give no interval of a slope")
    u, v = np.log(x), np.log(y)
    spread = u - u.mean()
    slope = float(spread @ v / (spread @ spread))
    rest = v - v.mean() - slope * spread
    error = math.sqrt(float(rest @ rest) / (len(x) - 2) / float(spread @ spread))
    half = student_quantile(len(x) - 2) * error
    return slope, slope - half, slope + half


def orders(predicted: Sequence[Row], ceilings: Sequence[Row]) -> list[Row]:
    """Exponents in l: of what the exhaustive runs give at each threshold, and of the last doubling of the ceilings."""
    found = []
    for operation, threshold in dict.fromkeys((row["operation"], row["threshold"]) for row in predicted):
        rows = where(predicted, operation=operation, threshold=threshold)
        if len(rows) < 3:
            continue
        for name in ("ratio", "networks", "bound"):
            slope, low, high = order([row["bits"] for row in rows], [row[name] for row in rows])
            found.append(
                {"operation": operation, "threshold": threshold, "of": name, "source": ALL_INPUTS,
                 "from": rows[0]["bits"], "to": rows[-1]["bits"], "exponent": slope, "low": low, "high": high}
            )  # fmt: skip
    for operation in dict.fromkeys(row["operation"] for row in ceilings):
        first, last = where(ceilings, operation=operation)[-2:]
        for name in ("networks", "bound"):
            slope = math.log(last[name] / first[name]) / math.log(last["bits"] / first["bits"])
            found.append(
                {"operation": operation, "threshold": ZERO, "of": name, "source": "last doubling",
                 "from": first["bits"], "to": last["bits"], "exponent": slope, "low": slope, "high": slope}
            )  # fmt: skip
    return found
