"""Tables and findings of `hill-sharing`; the thresholds of its verdicts were written before its full run."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_sharing_gradients import Escape, Expected
from analyses.hill._hill_sharing_training import GROUPS, OPERATIONS, SCALES, SEPARATE, SHARED, Outcome
from workbench.analysis import Finding
from workbench.statistics import mean_interval, wilson

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

NEUTRAL = (0.0, 0.1)  # scales that the report calls near neutral
RELIABLE = 0.95  # "trains reliably": the interval of the share that is exact lies above this
ARITHMETIC = ("add", "subtract", "multiply", "divide")


def select(rows: Sequence[Outcome], **where: Any) -> list[Outcome]:
    """Outcomes whose fields are as said; a tuple means any of it."""
    wanted = {key: value if isinstance(value, tuple) else (value,) for key, value in where.items()}
    return [row for row in rows if all(getattr(row, key) in values for key, values in wanted.items())]


def cells(rows: Sequence[Outcome]) -> "pd.DataFrame":
    """One row an operation, scale and way: shares exact and lost with 95% Wilson intervals, median batches."""
    import pandas as pd

    lines = []
    for group, names in GROUPS.items():
        for name in names:
            for scale in SCALES:
                for way in (SHARED, SEPARATE):
                    here = select(rows, operation=name, scale=scale, way=way)
                    line: Row = {"selection": group, "operation": name, "scale": scale, "way": way, "n": len(here)}
                    for kind in ("exact", "lost"):
                        k = sum(getattr(row, kind) for row in here)
                        low, high = wilson(k, len(here))
                        line |= {kind: k / len(here), f"{kind}_low": low, f"{kind}_high": high}
                    soon = [row.batches for row in here if row.exact]
                    lines.append(line | {"batches": float(statistics.median(soon)) if soon else float("nan")})
    return pd.DataFrame(lines)


def whole(rows: Sequence[Outcome]) -> dict[tuple[str, float, int, str], bool]:
    """Whether all operations of a group, scale and seed are exact, by way."""
    found: dict[tuple[str, float, int, str], bool] = {}
    for row in rows:
        key = (row.group, row.scale, row.seed, row.way)
        found[key] = found.get(key, True) and row.exact
    return found


def paired(rows: Sequence[Outcome], **where: Any) -> Row:
    """Trainings of whole groups, shared beside separate from the same start: both exact, one of them, neither.

    Of those in which one way alone is exact, the share in which it is the shared pair, with its 95% Wilson interval
    (0 to 1 where there is none). A share whose interval excludes a half is evidence; that is the sign test of pairs.
    """
    found = whole(select(rows, **where))
    starts = {key[:3] for key in found}
    pairs = [(found[(*key, SHARED)], found[(*key, SEPARATE)]) for key in starts]
    shared, separate = pairs.count((True, False)), pairs.count((False, True))
    one = shared + separate
    low, high = wilson(shared, one) if one else (0.0, 1.0)
    return {
        "both": pairs.count((True, True)),
        "only_shared": shared,
        "only_separate": separate,
        "neither": pairs.count((False, False)),
        "share": shared / one if one else 0.5,
        "low": low,
        "high": high,
        "n": len(pairs),
    }


def verdict(pair: Row) -> str:
    """Which way is better, by the interval of the pairs in which one way alone is exact."""
    return (
        "sharing is better" if pair["low"] > 0.5 else "separate pairs are better" if pair["high"] < 0.5 else "neither"
    )


def pairs(rows: Sequence[Outcome]) -> "pd.DataFrame":
    """One row a group and scale, and one a group over all scales."""
    import pandas as pd

    lines = []
    for group in GROUPS:
        for scale in (*SCALES, None):
            where = {"group": group} | ({} if scale is None else {"scale": scale})
            found = paired(rows, **where)
            words = "all" if scale is None else f"{scale:g}"
            lines.append({"selection": group, "scale": words} | found | {"better": verdict(found)})
    return pd.DataFrame(lines)


def summary(rows: Sequence[Outcome]) -> "pd.DataFrame":
    """Exact units of each operation, shared and separate, by scale."""
    import pandas as pd

    lines = []
    for name in OPERATIONS:
        line: Row = {"operation": name, "selection": next(group for group, names in GROUPS.items() if name in names)}
        for scale in SCALES:
            for way in (SHARED, SEPARATE):
                here = select(rows, operation=name, scale=scale, way=way)
                line[f"{scale:g} {way}"] = f"{sum(row.exact for row in here)}/{len(here)}"
        lines.append(line)
    return pd.DataFrame(lines)


def expectations(found: Sequence[Expected]) -> "pd.DataFrame":
    """One row an operation, scale and raw parameter; `zero` where the mean's interval holds 0."""
    import pandas as pd

    return pd.DataFrame([asdict(one) | {"zero": one.low <= 0 <= one.high} for one in found])


def findings(rows: Sequence[Outcome], expected: Sequence[Expected], ways: Sequence[Escape]) -> list[Finding]:
    """What the tables say of sharing, and of the zero expected gradient."""
    return [*sharing(rows), sooner(rows), *zero(expected), escaped(ways), trains(rows)]


def sharing(rows: Sequence[Outcome]) -> list[Finding]:
    """Whether either way is better, by group; the report has "no evidence that either is better"."""
    found = []
    for group, names in GROUPS.items():
        pair = paired(rows, group=group)
        alone = []
        for name in names:
            here = select(rows, operation=name, scale=NEUTRAL, way=SEPARATE)
            alone.append(f"{name} {sum(row.exact for row in here)} of {len(here)}")
        text = (
            f"One pair at {group} for {', '.join(names)}, against one for each: {verdict(pair)}. Of {pair['n']} starts "
            f"all of the group's operations are exact {pair['both']} times both ways, {pair['only_shared']} times only "
            f"shared, {pair['only_separate']} times only separate, {pair['neither']} times neither. Alone, near "
            f"neutral: {', '.join(alone)}."
        )
        one = pair["only_shared"] + pair["only_separate"]
        found.append(Finding(text, pair["share"], pair["low"], pair["high"], one, "no difference", 0.5))
    return found


def sooner(rows: Sequence[Outcome]) -> Finding:
    """How many batches of an operation sharing saves near neutral starts, where both ways end exact."""
    near = {(r.operation, r.scale, r.seed, r.way): r for r in select(rows, scale=NEUTRAL) if r.exact}
    saved = [
        near[(*key[:3], SEPARATE)].batches - row.batches
        for key, row in near.items()
        if key[3] == SHARED and (*key[:3], SEPARATE) in near
    ]
    if len(saved) < 2:
        return Finding("Too few operations are exact both ways to say which way is sooner.", 0.0, n=len(saved))
    mean, (low, high) = statistics.fmean(saved), mean_interval(saved)
    words = "fewer" if low > 0 else "more" if high < 0 else "neither fewer nor more"
    text = (
        f"From near-neutral starts a shared pair needs {words} batches of an operation until it is exact and stays so; "
        f"the difference is {mean:.3g} batches of 64. It takes a step for every operation of its group, though."
    )
    return Finding(text, mean, low, high, len(saved), "batches of separate pairs, in the mean",
                   statistics.fmean(row.batches for key, row in near.items() if key[3] == SEPARATE))  # fmt: skip


def zero(found: Sequence[Expected]) -> list[Finding]:
    """Where the expected gradient of M_hat is zero, and whether the closed form of additive units tells why not."""
    gates = [one for one in found if one.parameter.startswith("M_hat")]
    rest = [one for one in found if one.parameter.startswith("W_hat")]
    parts = []
    for scale in dict.fromkeys(one.scale for one in found):
        here = [one for one in gates if one.scale == scale]
        parts.append(f"{sum(one.low <= 0 <= one.high for one in here)} of {len(here)} at {scale:g}")
    held = sum(one.low <= 0 <= one.high for one in gates)
    text = (
        "The expected gradient of M_hat over zero-mean initial weights (zero, as derived by Madsen & Johansen 2020) "
        f"cannot be told from zero for {', '.join(parts)} (operations and weights, by standard deviation). It is zero "
        "only to first order: dL/dW holds W itself and is not independent of W_hat."
    )
    control = sum(one.low <= 0 <= one.high for one in rest) / len(rest)
    first = Finding(text, held / len(gates), *wilson(held, len(gates)), len(gates), "the same share for W_hat", control)
    known = [one for one in found if one.predicted == one.predicted]
    inside = sum(one.low <= one.predicted <= one.high for one in known)
    text = (
        f"For additive units the means have a closed form; {inside} of {len(known)} intervals hold it (expected: 19 in "
        "20). Above zero, the gradient of M_hat shuts gates."
    )
    return [first, Finding(text, inside / len(known), *wilson(inside, len(known)), len(known), "expected", 0.95)]


def escaped(ways: Sequence[Escape]) -> Finding:
    """How training leaves zero weights although every gradient of M_hat is exactly zero there."""
    still = all(bool((way.by_M_hat[0] == 0).all()) for way in ways)
    ratios = [float(value) for way in ways for value in way.by_M_hat[1] / way.by_W_hat[1]]
    tenth = statistics.median(float(value) for way in ways for value in way.by_M_hat[9] / way.by_W_hat[9])
    text = (
        f"From zero weights the gradient of M_hat is {'exactly zero' if still else 'NOT zero'} before the first step. "
        "That of W_hat is not: one step gives W the selection's signs, and from then on M_hat has a gradient, "
        f"{statistics.fmean(ratios):.2g} of W_hat's before the second step, {tenth:.2g} (median) before the tenth."
    )
    return Finding(text, statistics.fmean(ratios), *mean_interval(ratios), len(ratios), "before the first step", 0.0)


def trains(rows: Sequence[Outcome]) -> Finding:
    """Whether zero-mean starts train reliably all the same; the control are starts of scale 3."""
    here = select(rows, operation=ARITHMETIC, scale=NEUTRAL, way=SEPARATE)
    k, n = sum(row.exact for row in here), len(here)
    low, high = wilson(k, n)
    words = "train reliably" if low >= RELIABLE else "do NOT train reliably" if high < RELIABLE else "undecided"
    far = select(rows, operation=ARITHMETIC, scale=SCALES[-1], way=SEPARATE)
    text = (
        f"Zero-mean starts near neutral: {words} (published: they do). {k} of {n} trainings of {', '.join(ARITHMETIC)} "
        f"are exact."
    )
    return Finding(text, k / n, low, high, n, f"from starts of scale {SCALES[-1]:g}",
                   sum(row.exact for row in far) / len(far))  # fmt: skip
