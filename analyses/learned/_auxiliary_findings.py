"""Findings of `auxiliary`; verdicts by `_auxiliary_rules`, and below by a rule written before the grid was trained."""

import math
import statistics
from collections.abc import Iterator, Sequence

from analyses._rows import Row, Share, grouped, where
from analyses.learned._auxiliary_rules import effect, source
from analyses.learned._auxiliary_runs import NONE, Condition, Grid
from analyses.learned._auxiliary_tables import known, listed, mean_of, ratios_between, span, verdict
from workbench.hill.heads import KINDS
from workbench.result import Finding

OPERATORS = ("addition", "subtraction")
NAMED = 4  # missing runs that are named
LINEAR, RANDOM = "linear", "random"


def linearly(gains: Sequence[float]) -> str:
    """Of R2 with a head less R2 without, over decoders: `more` (`less`) if the 95% t-interval lies above (below) 0."""
    _, low, high = mean_of(gains)
    return "more" if low > 0 else "less" if high < 0 else "no difference shown"


def findings(grid: Grid, runs: Sequence[Row], readouts: Sequence[Row], selections: Sequence[Row]) -> list[Finding]:
    """The answer, what is missing, each head against none, what helps, what is linearly there, selections, sweep."""
    found = [*_answer(grid, runs), *_missing(grid)]
    for condition in grid.with_head:
        found += _against_none(condition, runs)
    for condition in grid.with_head:
        found += _source(grid, condition)
    for condition in grid.with_head:
        found += _expresses(condition, runs, readouts)
        found += _linearly_there(condition, readouts)
    for (head,), units in grouped(selections, "head").items():
        found.append(_selections(head, units))
    return [*found, *_sweep(runs)]


def interval(values: Sequence[float], form: str = "+.3f") -> str:
    """`-0.03 (-0.10 to 0.04)`: mean and t-interval."""
    mean, low, high = mean_of(values)
    ends = "" if math.isnan(low) else f" ({format(low, form)} to {format(high, form)})"
    return format(mean, form) + ends if values else "nothing to compare"


def _ends(values: Sequence[float]) -> tuple[float | None, float | None]:
    _, low, high = mean_of(values)
    return (None, None) if math.isnan(low) else (low, high)


def _of(runs: Sequence[Row], condition: Condition) -> list[Row]:
    return where(runs, sweep=False, head=condition.head, form=condition.form)


def _answer(grid: Grid, runs: Sequence[Row]) -> Iterator[Finding]:
    """Whether any exact head helps; the value is the head with controls, or the best frozen one of most decoders."""
    ratios = {condition: known(_of(runs, condition), "log_ratio") for condition in grid.with_head}
    exact = {c: values for c, values in ratios.items() if values and c.form in ("frozen", "trainable")}
    if not exact:
        yield Finding("No head can be compared: the same decoders without one are missing", 0.0)
        return
    effects = {condition: verdict(values) for condition, values in exact.items()}
    helping, harming = ([str(c) for c, said in effects.items() if said == word] for word in ("helps", "harms"))
    said = "; ".join(f"{c} {interval(exact[c])}, {effects[c]}" for c in exact)
    controlled = [c for c in exact if c.form == "frozen" and Condition(c.head, LINEAR) in ratios]
    chosen = (
        controlled or sorted(exact, key=lambda c: (c.form != "frozen", -len(exact[c]), statistics.fmean(exact[c])))
    )[0]
    text = (
        f"Does exact arithmetic beside it help a decoder to learn? Helps: {', '.join(helping) or 'no head'}; harms: "
        f"{', '.join(harming) or 'no head'}. Mean of ln(test cross-entropy with the head / of the same decoder without "
        f"it), 95% t-interval over decoders: {said}. Intervals: {len(exact)}, uncorrected; of twenty, one misses "
        f"zero by chance. Value: {chosen}"
    )
    values = exact[chosen]
    yield Finding(text, statistics.fmean(values), *_ends(values), len(values), "none", 0.0)


def _missing(grid: Grid) -> Iterator[Finding]:
    if grid.missing:
        more = f" and {len(grid.missing) - NAMED} more" if len(grid.missing) > NAMED else ""
        names = ", ".join(grid.missing[:NAMED])
        text = (
            f"Runs that were planned and are not there, so that verdicts rest on fewer: {names}{more}. Value: how many"
        )
        yield Finding(text, len(grid.missing))


def _against_none(condition: Condition, runs: Sequence[Row]) -> Iterator[Finding]:
    """One head: log ratio by shape, accuracy, steps to 99% and calibration beside those without."""
    rows = [row for row in _of(runs, condition) if not math.isnan(row["log_ratio"])]
    if not rows:
        return
    without = {(row["shape"], row["seed"]): row for row in _of(runs, NONE)}
    pairs = [(row, without[row["shape"], row["seed"]]) for row in rows]
    ratios = [row["log_ratio"] for row in rows]
    parts = []
    for (shape,), of in grouped(rows, "shape").items():
        beside = [without[row["shape"], row["seed"]] for row in of]
        accuracies = ", ".join(
            f"{name} {span([row[name] for row in of], '.3f')} (without {span([row[name] for row in beside], '.3f')})"
            for name in OPERATORS
            if name in of[0]
        )
        parts.append(f"{shape}: {listed([row['log_ratio'] for row in of])}, {accuracies}")
    reached = [Share(len(known(side, "steps_99")), len(rows)) for side in zip(*pairs, strict=True)]
    steps = [row["steps_99"] - base["steps_99"] for row, base in pairs]
    steps = [value for value in steps if not math.isnan(value)]
    earlier = f"; where both do, {interval(steps, '+.0f')} steps" if steps else ""
    calibration = [row["calibration"] - base["calibration"] for row, base in pairs]
    text = (
        f"{condition}, against none: {verdict(ratios)}. Log ratio a seed, sequence accuracy on test problems lowest to "
        f"highest seed: {'; '.join(parts)}. {reached[0]} reach 0.99 on validation (without {reached[1]}){earlier}. "
        f"Calibration error of {rows[0]['digits']:,} digits {span([row['calibration'] for row in rows])}, less that "
        f"without {interval(calibration, '+.4f')}. Value: mean log ratio"
    )
    yield Finding(text, statistics.fmean(ratios), *_ends(ratios), len(ratios), "none", 0.0)


def _source(grid: Grid, condition: Condition) -> Iterator[Finding]:
    """What a frozen head's help comes from, where there are controls."""
    controls = [Condition(condition.head, form) for form in (LINEAR, RANDOM)]
    if condition.form != "frozen" or not any(c in grid.conditions for c in controls):
        return
    ratios = [ratios_between(grid, condition, other) for other in (NONE, *controls)]
    if min(map(len, ratios)) < 2:
        return
    limit = (
        " Such a head is a linear function of the stream, so a difference from the linear head is one of training."
        if _is_linear(condition.head)
        else ""
    )
    text = (
        f"{condition}: what helps: {source(*ratios)}. Mean log ratio against none {interval(ratios[0])}, against a "
        f"linear head on the same target {interval(ratios[1])}, against random frozen weights of equal norm "
        f"{interval(ratios[2])}.{limit} Value: against the linear head, {effect(ratios[1])}"
    )
    control = mean_of(ratios_between(grid, controls[0], NONE))[0]
    known_control = (None, None) if math.isnan(control) else ("linear head against none", control)
    yield Finding(text, statistics.fmean(ratios[1]), *_ends(ratios[1]), len(ratios[1]), *known_control)


def _is_linear(head: str) -> bool:
    """Whether a head's unit behind free readouts is a linear function of what they read."""
    return KINDS[head].primitive == "additive"  # type: ignore[index]


def _expresses(condition: Condition, runs: Sequence[Row], readouts: Sequence[Row]) -> Iterator[Finding]:
    """What a frozen head's own output explains beside a linear readout fitted afterwards on the same stream."""
    rows = [row for row in _of(runs, condition) if not any(math.isnan(row[f"told_{name}"]) for name in OPERATORS)]
    if condition.form != "frozen" or not rows:
        return
    linear = {(row["run"], row["operator"]): row["r2"] for row in where(readouts, target=condition.head)}
    told, fitted = [], []
    for row in rows:
        told.append(statistics.fmean(row[f"told_{name}"] for name in OPERATORS))
        fitted.append(statistics.fmean(linear[row["run"], name] for name in OPERATORS))
    kind = (
        "an additive unit behind free readouts, so a linear function of the stream, nothing a linear readout is not"
        if _is_linear(condition.head)
        else "products of cosines and sines of readouts, which no linear readout is"
    )
    apart = [mine - other for mine, other in zip(told, fitted, strict=True)]
    text = (
        f"{condition} is {kind}. Its own output explains {span(told, '.3f')} of the variance of its target, a linear "
        f"readout with intercept, fitted for it on the trained stream, {span(fitted, '.3f')}; the difference is "
        f"{interval(apart)} (mean of both operators, test problems). Value: its own output, mean"
    )
    control = "linear readout of the same stream", statistics.fmean(fitted)
    yield Finding(text, statistics.fmean(told), *_ends(told), len(told), *control)


def _linearly_there(condition: Condition, readouts: Sequence[Row]) -> Iterator[Finding]:
    """Whether a head's quantity is more linearly there than without it, beside what other heads do to it."""
    target = where(readouts, target=condition.head)
    own = [row for row in where(target, head=condition.head, form=condition.form) if not math.isnan(row["gain"])]
    by_operator = grouped(own, "operator")
    if not own or len(own) < 2 * len(by_operator):
        return
    parts = [
        f"{operator} {span(known(rows, 'r2'), '.3f')} (without {span(known(rows, 'r2_without'), '.3f')}), "
        f"{interval(known(rows, 'gain'))}, {linearly(known(rows, 'gain'))}"
        for (operator,), rows in by_operator.items()
    ]
    gains = [statistics.fmean(row["gain"] for row in rows) for rows in grouped(own, "run").values()]
    others = known([row for row in target if row["head"] not in (condition.head, NONE.head)], "gain")
    scored = span([float(row["n"]) for row in own], ",.0f")
    text = (
        f"{condition}: is its quantity more linearly in the stream with the head than without? {linearly(gains)}. R2 "
        f"of a linear readout, fitted on validation, scored on {scored} test problems, "
        f"and what the head adds: {'; '.join(parts)}. Value: what it adds, mean of both operators"
    )
    control = ("other heads", statistics.fmean(others)) if others else ("none", 0.0)
    yield Finding(text, statistics.fmean(gains), *_ends(gains), len(gains), *control)


def _selections(head: str, units: Sequence[Row]) -> Finding:
    """What a head's trainable units became."""
    names = ("units", "landed", "landed_before", "same", "same_before")
    n, landed, landed_before, same, before = (sum(row[name] for row in units) for name in names)
    parts = "; ".join(
        f"{row['operator']} {row['output']} (enumerated {row['enumerated']}): {row['selections']}" for row in units
    )
    text = (
        f"{head} trainable: {landed} of {n} units are at a selection of -1, 0 and 1 (before training, near 0, "
        f"{landed_before}), {same} at the enumerated one (before, {before}): {parts}. Readouts are free, so another "
        "selection need not be worse. Value: share at the enumerated one"
    )
    share = Share(same, n)
    return Finding(text, share.share, share.low, share.high, n, "before training", before / n)


def _sweep(runs: Sequence[Row]) -> Iterator[Finding]:
    """The sweep on one decoder, beside how far seeds differ without a head."""
    swept = [row for row in where(runs, sweep=True) if not math.isnan(row["log_ratio"])]
    if not swept:
        return
    best, worst = (pick(swept, key=lambda row: row["log_ratio"]) for pick in (min, max))
    losses = known(where(_of(runs, NONE), shape=best["shape"]), "loss")
    spread = math.log(max(losses) / min(losses))
    text = (
        f"Weights and schedules on one decoder ({best['shape']}, seed {best['seed']}), {len(swept)} runs: log ratio "
        f"{best['log_ratio']:+.3f} (weight {best['weight']:g}, {best['schedule']}, {best['site']}) to "
        f"{worst['log_ratio']:+.3f} (weight {worst['weight']:g}, {worst['schedule']}, {worst['site']}). One seed has "
        f"no interval, and the lowest of {len(swept)} is low by being picked. Value: the lowest"
    )
    yield Finding(
        text, best["log_ratio"], n=1, control="ln of largest to smallest of seeds, none", control_value=spread
    )
