"""The verdicts of analysis `hill-snapped-training`: rules in code, their thresholds written before the run."""

import math
import statistics
from collections.abc import Sequence

from analyses._rows import Row, Share, grouped, median, share, where
from analyses.hill._hill_snapped_training_runs import MODES, OPTIMIZERS, SCALES, Mode
from workbench.analysis import Finding
from workbench.statistics import mean_interval

EVALUATION, HARD, THROUGH = MODES
WORDS = {EVALUATION: "without snapping", HARD: "with hard masks", THROUGH: "straight through"}
CHANCE = 0.05  # of a sign test at which pairs count as different
ALIKE = 0.02  # a ratio of steps within this share of 1 counts as no difference


def pairs(rows: Sequence[Row], mode: Mode) -> list[tuple[Row, Row]]:
    """Runs snapped at evaluation beside those of `mode` with the same operation, optimizer and start."""
    keys = ("operation", "optimizer", "scale", "number")
    other = {tuple(row[key] for key in keys): row for row in where(rows, mode=mode)}
    return [(row, other[tuple(row[key] for key in keys)]) for row in where(rows, mode=EVALUATION)]


def discordant(rows: Sequence[Row], mode: Mode) -> Share | None:
    """Of the pairs in which one alone is right, those in which it is the one that trained with `mode`."""
    one = [(a, b) for a, b in pairs(rows, mode) if a["right"] != b["right"]]
    return Share(sum(b["right"] for _, b in one), len(one)) if one else None


def sign_test(of: Share) -> float:
    """Two-sided exact probability that fair coins part as unevenly as these pairs."""
    extreme = max(of.right, of.n - of.right)
    return min(1.0, 2 * sum(math.comb(of.n, k) for k in range(extreme, of.n + 1)) / 2**of.n)


def effect(rows: Sequence[Row], mode: Mode) -> str:
    """Whether training with `mode` wins or loses runs against snapping at evaluation, by a sign test of pairs."""
    found = discordant(rows, mode)
    if found is None or sign_test(found) >= CHANCE:
        return "no difference shown"
    return "wins runs" if found.share > 0.5 else "loses runs"


def ratios(rows: Sequence[Row], mode: Mode, what: str) -> list[float]:
    """Logarithms of the steps of `mode` over those with snapping at evaluation, where both got there."""
    both = [(a[what], b[what]) for a, b in pairs(rows, mode)]
    return [math.log(b / a) for a, b in both if not (math.isnan(a) or math.isnan(b))]


def length_of_run(full: bool, rows: Sequence[Row], steps: int) -> Finding:
    """What was run, and whether it is the long form."""
    words = "The long form" if full else "A short run (--full: 40 starts a cell, 10,000 steps)"
    cells = len(grouped(rows, "operation", "mode", "optimizer", "scale"))
    text = f"{words}: {len(rows):,} trainings of {steps:,} steps, {len(rows) // cells} starts a cell."
    return Finding(text, steps, n=len(rows))


def frozen_finding(rows: Sequence[Row]) -> Finding:
    """Whether hard masks strand what starts snapped on the wrong side, and what becomes of it otherwise."""
    masked = where(rows, masked=True)
    hard, through, evaluated = (share(where(masked, mode=mode), "right") for mode in (HARD, THROUGH, EVALUATION))
    verdict = "strands" if hard.high < min(through.low, evaluated.low) else "does NOT strand"
    text = (
        f"A hard mask {verdict} what starts snapped on the wrong side (|W_hat| above 2.65 of the wrong sign, or a gate "
        f"below -4.6): {hard} such runs find the selection, {through} of the same starts straight through, {evaluated} "
        "when only evaluation snaps."
    )
    return Finding(text, hard.share, *hard.interval, hard.n, "snapped at evaluation only", evaluated.share)


def failures_finding(rows: Sequence[Row], mode: Mode) -> Finding:
    """Failures of a way to snap in training against evaluation-time snapping, on the same starts."""
    by_scale = "; ".join(
        f"scale {scale:g}: {share(where(rows, mode=mode, scale=scale), 'right')} against "
        f"{share(where(rows, mode=EVALUATION, scale=scale), 'right')}"
        for scale in SCALES
    )
    found = discordant(rows, mode)
    of = share(where(rows, mode=mode), "right")
    other = share(where(rows, mode=EVALUATION), "right")
    differ = "no pair differs" if found is None else f"of {found.n} pairs that differ it is right in {found.right}"
    text = f"Training {WORDS[mode]}: {effect(rows, mode)} ({differ}). Right in time, {by_scale}."
    return Finding(text, of.share, *of.interval, of.n, "snapped at evaluation only", other.share)


def speed_finding(rows: Sequence[Row], mode: Mode) -> Finding:
    """Steps until the snapped weights are right for good, over those with snapping at evaluation only, by optimizer."""
    near = where(rows, scale=SCALES[0])
    found = {name: ratios(where(near, optimizer=name), mode, "right_since") for name in OPTIMIZERS}
    parts = [f"{name}: {speed(logs)}" for name, logs in found.items() if len(logs) > 1]
    logs = [value for values in found.values() for value in values]
    if len(logs) < 2:
        return Finding(
            f"Trained {WORDS[mode]}, too few runs are right to compare speeds.", float(len(logs)), n=len(logs)
        )
    low, high = (math.exp(end) for end in mean_interval(logs))
    text = (
        f"Steps to the right snapped weights from near-neutral starts, trained {WORDS[mode]} over snapped at "
        f"evaluation only. {'; '.join(parts)}."
    )
    return Finding(text, math.exp(statistics.fmean(logs)), low, high, len(logs), "no difference", 1.0)


def speed(logs: Sequence[float]) -> str:
    """The verdict on some logarithms of ratios of steps, with their geometric mean and its 95% interval."""
    low, high = (math.exp(end) for end in mean_interval(logs))
    words = "faster" if high < 1 - ALIKE else "slower" if low > 1 + ALIKE else "neither faster nor slower"
    return f"{words}, {math.exp(statistics.fmean(logs)):.3f} ({low:.3f} to {high:.3f})"


def stop_finding(rows: Sequence[Row]) -> Finding:
    """How soon the training loss itself falls below 1e-14, which is what ends the report's runs."""
    near = where(rows, scale=SCALES[0])
    walking = [row for row in near if row["optimizer"] != list(OPTIMIZERS)[-1]]
    there = {mode: share(where(walking, mode=mode), lambda row: not math.isnan(row["converged_at"])) for mode in MODES}
    through, evaluated = there[THROUGH], there[EVALUATION]
    verdict = "What converges faster is the stopping rule" if through.low > evaluated.high else "NOT the stopping rule"
    text = (
        f"{verdict}: computed with snapped weights, the loss of a batch falls below 1e-14 within the run in {through} "
        f"trainings (straight through; hard mask {there[HARD]}), computed with the weights as they are in {evaluated}, "
        "for the optimizers that do not throw."
    )
    return Finding(text, through.share, *through.interval, through.n, "weights as they are", evaluated.share)


def parked_finding(rows: Sequence[Row]) -> Finding:
    """How far from the selection the weights are left when they are right, without snapping."""
    right = [row for row in where(rows, right=True) if row["optimizer"] != list(OPTIMIZERS)[-1]]
    off = {mode: [row["distance"] for row in where(right, mode=mode)] for mode in MODES}
    text = "No training with snapping parks its weights: nothing was right to compare."
    if all(off.values()):
        middle = {mode: statistics.median(values) for mode, values in off.items()}
        farther = min(middle[HARD], middle[THROUGH]) > 3 * middle[EVALUATION]
        text = (
            f"Snapping in training {'parks' if farther else 'does NOT park'} the weights short of the selection, since "
            f"nothing pulls once they snap: right weights are off by {middle[THROUGH]:.1e} (straight through) and "
            f"{middle[HARD]:.1e} (hard mask) without the snap, by {middle[EVALUATION]:.1e} after training without it. "
            "Such a unit must be snapped for ever after."
        )
        return Finding(text, middle[THROUGH], n=len(off[THROUGH]), control="trained without snapping",
                       control_value=middle[EVALUATION])  # fmt: skip
    return Finding(text, 0.0, n=0)


def operations_finding(rows: Sequence[Row], table: Sequence[Row]) -> Finding:
    """Which operations training with snapping wins or loses runs of."""
    named = {
        (mode, what): [row["operation"] for row in where(table, mode=mode, effect=what)]
        for mode in (HARD, THROUGH)
        for what in ("wins runs", "loses runs")
    }
    parts = [f"{mode} {what} of {', '.join(names)}" for (mode, what), names in named.items() if names]
    text = f"By operation: {'; '.join(parts)}." if parts else "By operation: no difference shown for any."
    changed = Share(sum(len(names) for names in named.values()), len(table))
    return Finding(text, changed.share, *changed.interval, changed.n, "rows of the table that differ by chance", 0.05)


def by_operation(rows: Sequence[Row]) -> list[Row]:
    """Right runs of each operation and way to snap in training, beside evaluation-time snapping on the same starts."""
    found = []
    for (name,), group in grouped(rows, "operation").items():
        other = share(where(group, mode=EVALUATION), "right")
        for mode in (HARD, THROUGH):
            here, differ = share(where(group, mode=mode), "right"), discordant(group, mode)
            found.append(
                {"operation": name, "mode": mode, "n": here.n, **here.columns("right"), "evaluation": other.right,
                 "evaluation_share": other.share, "pairs_that_differ": differ.n if differ else 0,
                 "right_of_them": differ.right if differ else 0, "effect": effect(group, mode)}
            )  # fmt: skip
    return found


def summary(rows: Sequence[Row]) -> list[Row]:
    """Right runs, steps and distance by way to snap, optimizer and scale."""
    found = []
    for (scale, name, mode), group in grouped(rows, "scale", "optimizer", "mode").items():
        since = [row["right_since"] for row in group if row["right"]]
        found.append(
            {"scale": scale, "optimizer": name, "mode": mode, "n": len(group), **share(group, "right").columns("right"),
             "median_steps": statistics.median(since) if since else math.nan,
             "median_distance": median(group, "distance")}
        )  # fmt: skip
    return found
