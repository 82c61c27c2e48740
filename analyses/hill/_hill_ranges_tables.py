"""Tables and findings of `hill-ranges`; the thresholds of its verdicts were written before its full run."""

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_ranges_training import (
    ARITHMETIC,
    EXPONENTIAL,
    OPERATIONS,
    OPTIMIZERS,
    PLACES,
    RANGES,
    SIZES,
    Range,
    Slope,
    Trained,
)
from workbench.analysis import Finding
from workbench.statistics import wilson

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

HOME = 10.0  # the size of the range the report recommends
LARGE = 1e4  # and the one it warns of
GROWS = 100.0  # "large gradient magnitudes": this many times those of HOME
TROUBLE = 0.05  # "without trouble": the interval of the share that is lost lies below this
REPORTS = "Adam, beta2 0.5"  # the optimizer of the report's section 4.5


def slopes(found: Sequence[Slope]) -> list[Row]:
    """One row an operation, range and place: the gradient's size, and its growth over the range of size 10."""
    home = {(one.operation, one.where.signs, one.place): one.size for one in found if one.where.size == HOME}
    return [
        {
            "operation": one.operation,
            "signs": one.where.signs,
            "size": one.where.size,
            "place": one.place,
            "gradient": one.size,
            "largest": one.largest,
            "growth": one.size / home[one.operation, one.where.signs, one.place],
            "n": one.n,
        }
        for one in found
    ]


def units(found: Trained) -> list[Row]:
    """One row a unit."""
    rows = []
    for place, (name, where, setting, seed) in enumerate(found.keys):
        row: Row = {"operation": name, "signs": where.signs, "size": where.size, "optimizer": setting, "seed": seed}
        row |= {f"snapped_{k + 1}": float(found.snapped[place, k]) for k in range(2)}
        flags = (("exact", found.exact), ("lost", found.lost), ("diverged", found.diverged))
        rows.append(row | {name: bool(values[place]) for name, values in flags})
    return rows


def select(rows: Sequence[Row], **where: Any) -> list[Row]:
    """Rows whose columns are as said; a tuple means any of it."""
    wanted = {key: value if isinstance(value, tuple) else (value,) for key, value in where.items()}
    return [row for row in rows if all(row[key] in values for key, values in wanted.items())]


def cells(rows: Sequence[Row]) -> "pd.DataFrame":
    """One row an operation, range and optimizer: shares of units lost and exact, with 95% Wilson intervals."""
    import pandas as pd

    lines = []
    for name in OPERATIONS:
        for where in RANGES:
            for setting in OPTIMIZERS:
                here = select(rows, operation=name, signs=where.signs, size=where.size, optimizer=setting)
                line: Row = {"operation": name, "signs": where.signs, "size": where.size, "optimizer": setting}
                for kind in ("lost", "exact"):
                    k = sum(row[kind] for row in here)
                    low, high = wilson(k, len(here))
                    line |= {kind: k / len(here), f"{kind}_low": low, f"{kind}_high": high}
                diverged = sum(row["diverged"] for row in here)
                lines.append(line | {"diverged": diverged, "n": len(here)})
    return pd.DataFrame(lines)


def summary(rows: Sequence[Row]) -> "pd.DataFrame":
    """Units lost by range and operation, of all optimizers together."""
    import pandas as pd

    lines = []
    for where in RANGES:
        line: Row = {"inputs": str(where)}
        for name in OPERATIONS:
            here = select(rows, operation=name, signs=where.signs, size=where.size)
            line[name] = f"{sum(row['lost'] for row in here)}/{len(here)}"
        lines.append(line)
    return pd.DataFrame(lines)


def findings(steep: Sequence[Row], rows: Sequence[Row], bits: dict[str, tuple[int, int]]) -> list[Finding]:
    """What the tables say of the report's section 2.4."""
    return [growth(steep), large(rows), positive(rows), signs(rows), trigonometric(rows), small(rows), general(bits)]


def growth(steep: Sequence[Row]) -> Finding:
    """Whether gradients grow with the range; the control are trigonometric operations."""

    def factor(names: tuple[str, ...]) -> list[float]:
        here = [
            max(row["growth"] for row in select(steep, operation=name, signs="positive", size=LARGE)) for name in names
        ]
        return here

    growing, others = factor(ARITHMETIC), factor(tuple(name for name in OPERATIONS if name not in ARITHMETIC))
    over = [name for name, value in zip(ARITHMETIC, growing, strict=True) if value >= GROWS]
    verdict = "supported" if len(over) == len(ARITHMETIC) else "refuted" if not over else f"true of {', '.join(over)}"
    most = ", ".join(f"{name} {value:.2g}" for name, value in zip(ARITHMETIC, growing, strict=True))
    text = (
        f"That large ranges lead to large gradients (at least {GROWS:g} times larger on (0, {LARGE:g}) than on "
        f"(0, {HOME:g})) is {verdict}: {most} times, at the steepest of {len(PLACES)} places on the way. A quotient "
        "has no scale, so division's gradients do not grow."
    )
    return Finding(text, len(over), n=len(ARITHMETIC), control="largest growth of a trigonometric operation",
                   control_value=max(others))  # fmt: skip


def _lost(rows: Sequence[Row], **where: Any) -> tuple[int, int]:
    here = select(rows, **where)
    return sum(row["lost"] for row in here), len(here)


def _compare(k: int, n: int, other: int, of: int) -> str:
    """Whether one share is beyond the other's interval."""
    (low, high), (other_low, other_high) = wilson(k, n), wilson(other, of)
    return "more" if low > other_high else "fewer" if high < other_low else "not clearly more"


def large(rows: Sequence[Row]) -> Finding:
    """Whether large positive ranges lose more units than the recommended one, by optimizer."""
    (k, n), (home, of) = (_lost(rows, signs="positive", size=size, operation=ARITHMETIC) for size in (LARGE, HOME))
    by = [f"{s} {_lost(rows, signs='positive', size=LARGE, operation=ARITHMETIC, optimizer=s)[0]}" for s in OPTIMIZERS]
    which = [f"{o} {_lost(rows, signs='positive', size=LARGE, operation=o)[0]}" for o in ARITHMETIC]
    broken = sum(row["diverged"] for row in rows)
    text = (
        f"Trained on (0, {LARGE:g}), {k} of {n} arithmetic units are lost, {_compare(k, n, home, of)} than on "
        f"(0, {HOME:g}). By optimizer: {', '.join(by)}; by operation: {', '.join(which)}. Of all {len(rows):,} units "
        f"on any range {broken} ended with a number that is not finite."
    )
    return Finding(text, k / n, *wilson(k, n), n, f"lost on (0, {HOME:g})", home / of)


def positive(rows: Sequence[Row]) -> Finding:
    """Whether exponential units train without trouble on the recommended positive range."""
    k, n = _lost(rows, signs="positive", size=HOME, operation=EXPONENTIAL)
    low, high = wilson(k, n)
    verdict = "supported" if high < TROUBLE else "refuted" if low > TROUBLE else "undecided"
    crossing, of = _lost(rows, signs="crossing", size=HOME, operation=EXPONENTIAL)
    text = (
        f"That exponential units train without trouble on positive inputs (lost: below {TROUBLE:.0%}) is {verdict} on "
        f"(0, {HOME:g}): {k} of {n} lost. On (-{HOME:g}, {HOME:g}) {crossing} of {of} are."
    )
    return Finding(text, k / n, low, high, n, f"lost on (-{HOME:g}, {HOME:g})", crossing / of)


def signs(rows: Sequence[Row]) -> Finding:
    """What it is about zero-crossing ranges: the crossing, or the negative inputs."""
    (k, n), (crossing, of) = (_lost(rows, signs=kind, operation=EXPONENTIAL) for kind in ("negative", "crossing"))
    parts = [
        f"{name} {lost} of {count}"
        for name in EXPONENTIAL
        for lost, count in [_lost(rows, signs="negative", operation=name)]
    ]
    text = (
        f"On ranges of negative inputs alone, which do not cross zero, {k} of {n} exponential units are lost "
        f"({', '.join(parts)}), {_compare(k, n, crossing, of)} than on ranges that do."
    )
    return Finding(text, k / n, *wilson(k, n), n, "lost on ranges that cross zero", crossing / of)


def trigonometric(rows: Sequence[Row]) -> Finding:
    """Whether trigonometric units do not care about sign."""
    names = tuple(name for name in OPERATIONS if name not in ARITHMETIC)
    (k, n), (home, of) = (_lost(rows, operation=names, signs=kind) for kind in (("negative", "crossing"), "positive"))
    where = sorted({str(Range(row["signs"], row["size"])) for row in select(rows, operation=names) if row["lost"]})
    verdict = {"more": "refuted", "fewer": "refuted"}.get(_compare(k, n, home, of), "supported")
    text = (
        f"That trigonometric units do not care about sign is {verdict}: {k} of {n} are lost on ranges with negative "
        f"inputs. Ranges on which any is lost: {'; '.join(where) or 'none'}."
    )
    return Finding(text, k / n, *wilson(k, n), n, "lost on positive ranges", home / of)


def small(rows: Sequence[Row]) -> Finding:
    """Ranges below the recommended one, of which the report says nothing."""
    k, n = _lost(rows, signs="positive", size=SIZES[0], operation=ARITHMETIC)
    home, of = _lost(rows, signs="positive", size=HOME, operation=ARITHMETIC)
    which = [f"{name} {_lost(rows, signs='positive', size=SIZES[0], operation=name)[0]}" for name in ARITHMETIC]
    text = (
        f"A range can be too small: on (0, {SIZES[0]:g}) {k} of {n} arithmetic units are lost ({', '.join(which)}), "
        f"{_compare(k, n, home, of)} than on (0, {HOME:g})."
    )
    return Finding(text, k / n, *wilson(k, n), n, f"lost on (0, {HOME:g})", home / of)


def general(bits: dict[str, tuple[int, int]]) -> Finding:
    """Whether units that are exact answer any range exactly."""
    k, n = (sum(pair[place] for pair in bits.values()) for place in range(2))
    if not n:
        return Finding("No unit was exact on the recommended range: nothing to say of other ranges.", 0.0, n=0)
    verdict = "supported" if k == n else "refuted"
    text = (
        f"That units trained on (0, {HOME:g}) generalise to any range is {verdict}: {k:,} of {n:,} answers of exact "
        f"units ({', '.join(bits)}) to inputs of magnitude 1e-100 to 1e100 have the native operator's bits."
    )
    return Finding(text, k / n, *wilson(k, n), n)


def exponent(steep: Sequence[Row], name: str, place: float) -> float:
    """The power of the range's size with which a gradient grows on positive ranges, over the three largest."""
    here = [row for row in select(steep, operation=name, signs="positive", place=place) if row["size"] >= HOME]
    return statistics.linear_regression(
        [math.log(row["size"]) for row in here], [math.log(row["gradient"]) for row in here]
    ).slope


def exponents(steep: Sequence[Row]) -> "pd.DataFrame":
    """One row an operation and place: the power of the size with which the gradient grows."""
    import pandas as pd

    rows = []
    for name in OPERATIONS:
        row: Row = {"operation": name}
        rows.append(row | {f"at {place:g} of the way": exponent(steep, name, place) for place in PLACES})
    return pd.DataFrame(rows)
