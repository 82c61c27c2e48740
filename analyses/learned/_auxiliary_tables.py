"""Tables of `auxiliary`: each head against none in a line, the same by shape, selections, the sweep, bytes."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

from analyses._rows import Row, Share, grouped, share, where
from analyses.learned._auxiliary_rows import NOT_THERE, who
from analyses.learned._auxiliary_rules import effect
from analyses.learned._auxiliary_runs import NONE, Condition, Grid
from workbench.statistics import mean_interval

NOT_REACHED = "not reached"
Interval = tuple[float, float]


def known(rows: Sequence[Row], name: str) -> list[float]:
    """A column's numbers, those that are NaN left out."""
    return [row[name] for row in rows if not math.isnan(row[name])]


def mean_of(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean with its 95% t-interval, NaN where there are too few values for either."""
    low, high = mean_interval(values) if len(values) > 1 else (math.nan, math.nan)
    return statistics.fmean(values) if values else math.nan, low, high


def span(values: Sequence[float], form: str = ".4f") -> str:
    """`0.0312 to 0.4000`, lowest to highest."""
    if not values:
        return ""
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def listed(values: Sequence[float], form: str = "+.2f") -> str:
    """One number a seed: `-0.11 +0.02 -0.30`."""
    return " ".join(format(value, form) for value in values)


def verdict(values: Sequence[float]) -> str:
    """`effect` of log ratios; one decoder has none."""
    return effect(values) if len(values) > 1 else "one decoder"


def summary_rows(runs: Sequence[Row], selections: Sequence[Row]) -> Iterator[Row]:
    """One row a condition: log ratio of test cross-entropies against none over decoders, in all and by shape."""
    shapes = list(dict.fromkeys(row["shape"] for row in runs))
    for (head, form), rows in _conditions(runs).items():
        ratios = known(rows, "log_ratio")
        row: Row = {"head": head, "form": form, "decoders": len(rows)}
        is_none = head == NONE.head
        row |= dict(zip(("log_ratio", "low", "high"), (math.nan,) * 3 if is_none else mean_of(ratios), strict=True))
        row["verdict"] = "" if is_none or not ratios else verdict(ratios)
        for shape in shapes:
            row[shape] = "" if is_none else listed(known(where(rows, shape=shape), "log_ratio"))
        row["reached_99"] = str(Share(len(known(rows, "steps_99")), len(rows)))
        row["calibration"] = mean_of(known(rows, "calibration"))[0]
        units = where(selections, head=head) if form == "trainable" else []
        row["enumerated"] = f"{sum(of['same'] for of in units)} of {sum(of['units'] for of in units)}" if units else ""
        yield row


def _conditions(runs: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows of the grid by condition, in its order."""
    return cast("dict[tuple[str, str], list[Row]]", grouped(where(runs, sweep=False), "head", "form"))


def shape_rows(runs: Sequence[Row], readouts: Sequence[Row]) -> Iterator[Row]:
    """One row a condition and shape: what the seeds of a shape did, lowest to highest or a number a seed.

    Columns `r2 TARGET OPERATOR` are the mean over seeds of how much is linearly there at the site.
    """
    for (head, form), of_head in _conditions(runs).items():
        for (shape,), rows in grouped(of_head, "shape").items():
            row: Row = {"head": head, "form": form, "shape": shape, "seeds": len(rows)}
            row |= {operator: span([one[operator] for one in rows if operator in one]) for operator in _OPERATORS}
            row["loss"] = statistics.geometric_mean(one["loss"] for one in rows)
            ratios = [] if head == NONE.head else known(rows, "log_ratio")
            row |= {"log_ratios": listed(ratios), "log_ratio": mean_of(ratios)[0]}
            steps = [NOT_REACHED if math.isnan(one["steps_99"]) else f"{one['steps_99']:,.0f}" for one in rows]
            row |= {"steps_99": "; ".join(steps), "calibration": span(known(rows, "calibration"))}
            row |= {f"told {name}": span(known(rows, f"told_{name}"), ".3f") for name in _OPERATORS}
            here = where(readouts, head=head, form=form, shape=shape)
            for (target, operator), parts in grouped(here, "target", "operator").items():
                row[f"r2 {target} {operator}"] = mean_of(known(parts, "r2"))[0]
            yield row


_OPERATORS = ("addition", "subtraction")


def selection_rows(units: Sequence[Row]) -> Iterator[Row]:
    """Of each unit of the trainable heads, over decoders: how often it is at a selection, and at the enumerated one.

    Beside both, how often it was there before training; the interval is Wilson's, of `same`.
    """
    there = [row for row in units if row["weights"] != NOT_THERE]
    for (head, operator, output), rows in grouped(there, "head", "operator", "output").items():
        row: Row = {"head": head, "operator": operator, "output": output, "enumerated": rows[0]["enumerated"]}
        row |= {"units": len(rows)} | {name: share(rows, name).right for name in ("landed", "landed_before", "same")}
        row |= dict(zip(("low", "high"), share(rows, "same").interval, strict=True))
        row["same_before"] = share(rows, "same_before").right
        names = Counter(one["selection"] or "none" for one in rows)
        yield row | {"selections": "; ".join(f"{name} x{times}" for name, times in names.most_common())}


def sweep_rows(runs: Sequence[Row]) -> Iterator[Row]:
    """The sweep's runs and, of their decoders, those without a head and at the grid's weight; by weight."""
    swept = where(runs, sweep=True)
    places = {(row["shape"], row["seed"]) for row in swept}
    heads = {(row["head"], row["form"]) for row in swept} | {tuple(NONE)}
    chosen = [row for row in runs if (row["shape"], row["seed"]) in places and (row["head"], row["form"]) in heads]
    columns = ("run", "head", "form", "weight", "schedule", "site", "addition", "subtraction", "loss", "log_ratio",
               "steps_99", "calibration")  # fmt: skip
    for row in sorted(chosen, key=lambda row: (row["head"] != NONE.head, row["site"], row["schedule"], row["weight"])):
        yield {name: row.get(name, math.nan) for name in columns}


def none_rows(grid: Grid) -> Iterator[Row]:
    """The decoders without a head: weights, and whether a head watched them."""
    for one in grid.conditions.get(NONE, {}).values():
        row = {name: value for name, value in who(one).items() if name in ("run", "shape", "seed")}
        watched = "a head of weight 0" if one.config.auxiliary else "no head"
        yield row | {"beside": watched, "weights_sha256": one.weights_sha256}


def ratios_between(grid: Grid, first: Condition, second: Condition) -> list[float]:
    """Log ratios of test cross-entropies of one condition against another, over the decoders that have both."""
    losses = [[one.results["test"]["all"].loss for one in pair] for pair in grid.pairs(first, second)]
    return [math.log(loss / other) for loss, other in losses]
