"""The tables of `hill-precision`: every measured number, the published one beside it, and why some differ."""

import math
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_precision_measure import (
    COMPLEX,
    LOG_NUMPY,
    LOG_ROUNDED,
    LOG_SPACE,
    NATIVE,
    REAL,
    SIGN_EXACT,
    Config,
)
from analyses.hill._hill_precision_stream import Tally
from analyses.published import load

if TYPE_CHECKING:
    import pandas as pd

    from analyses.hill._hill_precision_check import Agreement

Measured = dict[Config, dict[str, Tally]]
Row = dict[str, Any]

QUANTITIES = ("mean", "max", "99.99%")  # of the squared error; the mean is that beyond native, but for native itself
METHODS = (NATIVE, REAL, COMPLEX, LOG_SPACE, SIGN_EXACT)  # in the order of the tables; the others explain differences
REASONED = "logarithm and exponential of the library"
UNREASONED = "not found"


def numbers(measured: Measured) -> list[Row]:
    """One row a number: the value, its 95% interval where there is one, and the samples it rests on.

    A maximum has no interval. Neither has the mean of division: a divisor's density does not vanish at 0, so the
    squared error's variance (and nearly its mean) is set by the few smallest divisors, however many samples there are.
    """
    rows = []
    for config, tallies in measured.items():
        native = tallies[NATIVE]
        for method, tally in tallies.items():
            baseline = None if method == NATIVE else native
            interval = (math.nan, math.nan) if config.operation == "divide" else tally.mean_interval(baseline)
            value = tally.mean - baseline.mean if baseline else tally.mean
            quantile, *bracket = tally.quantile()
            for quantity, number, (low, high) in (
                ("mean", value, interval),
                ("max", tally.maximum, (math.nan, math.nan)),
                ("99.99%", quantile, tuple(bracket)),
            ):
                row = {"operation": config.operation, "format": config.precision, "method": method}
                rows.append(row | {"quantity": quantity, "measured": number, "low": low, "high": high, "n": tally.n})
    return rows


def published_numbers() -> dict[tuple[str, str, str, str], str]:
    """The printed text of every number of tables 4.4.1 and 4.4.2 by operation, format, method and quantity."""
    published, found = load("hill"), {}
    for row in [*published["table_4_4_1_native"], *published["table_4_4_2_additional"]]:
        for quantity, text in zip(QUANTITIES, row["text"], strict=True):
            found[row["operation"], row["precision"].lower(), row.get("method", NATIVE), quantity] = text
    return found


def as_printed(value: float) -> str:
    """`value` as the report prints it: two decimals, one below 1e-15, and `0.0` for exactly 0."""
    return "0.0" if value == 0 else f"{value:.1e}" if abs(value) < 1e-15 else f"{value:.2e}"


def beside_published(rows: list[Row], comparable: bool) -> list[Row]:
    """The rows of the published methods and our own, with `published` and `agrees` (yes, no, or empty)."""
    texts, found = published_numbers(), []
    for row in rows:
        if row["method"] in METHODS:
            text = texts.get((row["operation"], row["format"], row["method"], row["quantity"]), "")
            agrees = "" if not (text and comparable) else "yes" if as_printed(row["measured"]) == text else "no"
            found.append({**row, "published": text, "agrees": agrees})
    return found


def differing(rows: list[Row], beside: list[Row]) -> list[Row]:
    """The numbers that do not agree, each with the range that other logarithms and exponentials give, and the reason.

    The reason is found when the published number lies among those of the log-space method under three implementations
    of the two functions on the same samples: torch's, correctly rounded, and numpy's.
    """
    found = []
    for row in (row for row in beside if row["agrees"] == "no"):
        key = (row["operation"], row["format"], row["quantity"])
        same = {r["method"]: r["measured"] for r in rows if (r["operation"], r["format"], r["quantity"]) == key}
        ours = [same[method] for method in (LOG_SPACE, LOG_ROUNDED, LOG_NUMPY) if method in same]
        why = reason(row["method"], float(row["published"]), ours)
        lowest, highest = (min(ours), max(ours)) if row["method"] == LOG_SPACE else (math.nan, math.nan)
        found.append({**row, "lowest": lowest, "highest": highest, "reason": why})
    return found


def reason(method: str, published: float, implementations: list[float]) -> str:
    """Why a number differs: the library's functions when the published one lies between several implementations'."""
    if method != LOG_SPACE or len(implementations) < 2:
        return UNREASONED
    return REASONED if min(implementations) <= published <= max(implementations) else UNREASONED


def summary(beside: list[Row]) -> list[Row]:
    """One row a method of an operation and format: each quantity beside the published one, as text.

    `agree` holds a `=` or an `x` for each of the three.
    """
    lines: dict[tuple[str, str, str], Row] = {}
    agree: dict[tuple[str, str, str], str] = {}
    for row in sorted(beside, key=lambda row: METHODS.index(row["method"]) > 0):  # table 4.4.1, then 4.4.2
        key = (row["operation"], row["format"], row["method"])
        line = lines.setdefault(key, {"operation": key[0], "format": key[1], "method": key[2]})
        line[row["quantity"]] = as_printed(row["measured"])
        line[f"{row['quantity']}, published"] = row["published"]
        agree[key] = agree.get(key, "") + {"yes": "=", "no": "x", "": ""}[row["agrees"]]
    return [line | {"agree": agree[key]} for key, line in lines.items()]


def bits(measured: Measured) -> "pd.DataFrame":
    """Share of samples on which a method returns the native operator's bits, with 95% Wilson intervals."""
    import pandas as pd

    raw = {(r["operation"], r["precision"]): r for r in load("hill")["raw_4_4_error_floor"]["rows"]}
    names = {REAL: "analytical", COMPLEX: "complex128", LOG_SPACE: "logspace"}
    rows = []
    for config, tallies in measured.items():
        for method in [m for m in METHODS[1:] if m in tallies]:
            tally = tallies[method]
            low, high = tally.equal_interval()
            published = raw[config.operation, config.precision].get(names.get(method, ""), {})
            row = {"operation": config.operation, "format": config.precision, "method": method}
            row |= {"share": tally.equal / (tally.n + tally.not_finite), "low": low, "high": high, "n": tally.n}
            rows.append(row | {"published": published.get("bitwise_equal_native", math.nan)})
    return pd.DataFrame(rows)


def checks(agreements: "dict[Config, dict[str, Agreement]]") -> "pd.DataFrame":
    """Table `check`: how the error-free squares agree with 50-digit ones."""
    import pandas as pd

    return pd.DataFrame(
        {
            "operation": config.operation,
            "format": config.precision,
            "method": method,
            "n": found.n,
            "equal": found.equal,
            "largest_relative_difference": found.largest,
            "passed": found.passed,
        }
        for config, methods in agreements.items()
        for method, found in methods.items()
    )
