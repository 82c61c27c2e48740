"""The verdicts of analysis `hill-zero-crossing`: rules in code, their thresholds written before the run."""

from collections.abc import Sequence

import numpy as np

from analyses._rows import Row, Share, share, where
from workbench.analysis import Finding

AWAY = 0.8  # verdicts look at scales below this share of the critical one, or above its inverse
CLEAR = 0.04  # and at starts at least this far from the saddle
OFTEN, SELDOM = 0.9, 0.1  # what the intervals must exceed, or stay below


def length_of_run(full: bool, trainings: int, steps: int) -> Finding:
    """What was run, and whether it is the long form."""
    words = "The long form" if full else "A short run (--full: 200 seeds, 20 epochs)"
    text = f"{words}: {trainings:,} trainings of {steps:,} steps, batches of 64 of 64,000 problems."
    return Finding(text, steps, n=trainings, control="steps of the report's 100 epochs", control_value=100_000)


def at_reported(surface: Sequence[Row]) -> Row:
    """The row of U(-5, 5)."""
    return where(surface, family="uniform", scale=5.0)[0]


def _pooled(rows: Sequence[Row]) -> Share:
    return Share(sum(row["success"] for row in rows), sum(row["n"] for row in rows))


def _shape(scales: Sequence[Row], name: str) -> Row:
    return where(scales, shape=name)[0]


def width_or_crossing(summary: Sequence[Row], scales: Sequence[Row]) -> Finding:
    """Whether training fails because inputs cross zero, or because they cross it on too wide a range."""
    edge = _shape(scales, "hill")
    crossing = where(summary, positive=False)
    narrow, wide = (
        _pooled([row for row in crossing if inside(row["scale"] / edge[row["family"]])])
        for inside in (lambda ratio: ratio < AWAY, lambda ratio: ratio > 1 / AWAY)
    )
    if narrow.low > OFTEN and wide.high < SELDOM:
        verdict = "The width fails it, not the crossing of zero"
    elif wide.high < SELDOM and narrow.share < 0.5:
        verdict = "Crossing zero fails it at every width"
    else:
        verdict = "Not decided between width and crossing"
    text = (
        f"{verdict}: from zero weights, {narrow} runs succeed on ranges across zero narrower than {AWAY} of the "
        f"critical scale, {wide} on ranges wider than {1 / AWAY:g} of it; on positive inputs, as the control, "
        f"{_pooled(where(summary, positive=True))} at all widths."
    )
    return Finding(text, narrow.share, *narrow.interval, narrow.n, "success on the wider ranges", wide.share)


def pair(scales: Sequence[Row], surface: Sequence[Row]) -> Finding:
    """Where the spurious minima appear, and where they are at the report's width."""
    edge, here = _shape(scales, "pair"), at_reported(surface)
    text = (
        f"U(-c, c) has two spurious minima from c = {edge['uniform']:.5f} on, the cut normal from a deviation of "
        f"{edge['normal']:.5f}; at c = 5 they lie at [{here['w_low']:.4f}, {here['w_high']:.4f}] and mirrored, with "
        f"{here['spurious_loss_share']:.1%} of the loss at zero, and the way from zero to [1, 1] climbs to "
        f"{here['pass_share']:.1%} of it."
    )
    return Finding(text, edge["uniform"], control="half width of the report", control_value=5.0)


def hill(summary: Sequence[Row], scales: Sequence[Row]) -> Finding:
    """The closed-form width at which the diagonal is blocked, beside the width at which half the runs succeed."""
    edge = _shape(scales, "hill")
    rows = sorted(where(summary, family="uniform", positive=False), key=lambda row: row["scale"])
    half = crossing_of([row["scale"] for row in rows], [row["success_share"] for row in rows])
    near = abs(half / edge["uniform"] - 1) < 0.1
    normal = _pooled(where(summary, family="normal", scale=1.0))
    text = (
        f"What decides is a hill on the diagonal, where equal weights train. It stands from c = {edge['uniform']:.5f} "
        f"on, and half the runs succeed at c = {half:.2f}, {'within' if near else 'NOT within'} 10% of it; the slope "
        f"at zero turns only at c = {_shape(scales, 'slope')['uniform']:.5f}. The report's N(-3, 3) has deviation 1, "
        f"just short of the {edge['normal']:.5f} from which its hill stands: {normal} succeed."
    )
    return Finding(text, edge["uniform"], control="half width at which half succeed", control_value=half)


def crossing_of(scale: Sequence[float], share: Sequence[float]) -> float:
    """Where the share first falls through one half, linear between two scales; the last scale where it does not."""
    for at in range(len(scale) - 1):
        if share[at] >= 0.5 > share[at + 1]:
            return float(np.interp(0.5, [share[at + 1], share[at]], [scale[at + 1], scale[at]]))
    return float(scale[-1])


def rescue(starts: Sequence[Row], surface: Sequence[Row]) -> Finding:
    """Whether weights that start past the hill arrive, beside those that start short of it."""
    saddle = at_reported(surface)["diagonal_saddle"]
    past = _pooled([row for row in starts if row["start_1"] > saddle + CLEAR])
    short = _pooled([row for row in starts if row["start_1"] < saddle - CLEAR])
    rescued = past.low > OFTEN and short.high < SELDOM
    text = (
        f"Starting past the hill {'rescues' if rescued else 'does NOT rescue'} it. On U(-5, 5) the top is at both "
        f"weights {saddle:.4f}: {past} runs from {saddle + CLEAR:.2f} or more succeed, {short} from "
        f"{saddle - CLEAR:.2f} or less."
    )
    return Finding(text, past.share, *past.interval, past.n, "from short of the hill", short.share)


def map_finding(mapped: Sequence[Row]) -> Finding:
    """Whether the surface alone says where a run from random weights ends; nearness to [1, 1] is the control."""
    right = share(mapped, lambda row: row["predicted"] == row["success"])
    distance = np.array([np.hypot(1 - row["start_1"], 1 - row["start_2"]) for row in mapped])
    success = np.array([row["success"] for row in mapped])
    near = max(float(((distance < at) == success).mean()) for at in np.linspace(0, 2.2, 221))
    if right.low > max(near, OFTEN):
        verdict = "The expected loss alone tells where a run ends, and nearness to [1, 1] does not"
    elif right.low > OFTEN:
        verdict = "The expected loss alone tells where a run ends, though on U(-5, 5) nearness to [1, 1] does as well"
    else:
        verdict = "The expected loss alone does NOT tell where a run ends"
    text = (
        f"{verdict}: followed without noise from {right.n} random starts it gives the outcome of {right.right} "
        f"trainings ({int(success.sum())} succeed), with nothing fitted; the best threshold on the distance from "
        f"[1, 1], chosen on these very runs, that of {near:.1%}."
    )
    return Finding(text, right.share, *right.interval, right.n, "best threshold on distance", near)


def rescaled(summary: Sequence[Row]) -> Finding:
    """What rescues without knowing the answer: dividing the inputs by their half width."""
    unit, five = (_pooled(where(summary, family="uniform", scale=c, positive=False)) for c in (1.0, 5.0))
    text = (
        f"Dividing the inputs of U(-5, 5) by 5 gives U(-1, 1), which has no spurious minimum: {unit} succeed against "
        f"{five}. Rescaling {'rescues' if unit.low > five.high else 'does NOT rescue'} training across zero, without a "
        "word about the selection."
    )
    return Finding(text, unit.share, *unit.interval, unit.n, "U(-5, 5) as it is", five.share)


def keeps_moving(rows: Sequence[Row]) -> Finding:
    """Adam with beta2 = 0.5 at rate 0.1 on U(-5, 5), from zero."""
    adam = share(where(rows, adam=True), "success")
    zero = share(where(rows, adam=False, positive=False, family="uniform", scale=5.0, start_1=0.0), "success")
    words = "helps" if adam.low > zero.high else "does not help"
    text = (
        f"An optimizer that keeps moving {words}: the report's Adam (beta2 = 0.5) succeeds in {adam} runs on U(-5, 5)."
    )
    return Finding(text, adam.share, *adam.interval, adam.n, "RMSprop", zero.share)


def outside_finding(row: Row) -> Finding:
    """The error outside the range, which tells the weights that the report's runs ended with."""
    near = abs(row["spurious_minimum"] - row["published"]) < 2 * row["published_deviation"]
    text = (
        f"The report's failed runs {'ended' if near else 'may NOT have ended'} in these minima: a unit at the "
        f"spurious minimum errs by {row['spurious_minimum']:.1f} on U(-10, -5) (exactly), our failed runs by "
        f"{row['measured']:.1f}, the report's ten by {row['published']:.1f} (deviation "
        f"{row['published_deviation']:.1f}); on N(-3, 3), short of the hill, the report's ten err by "
        f"{row['published_normal']:.1e}."
    )
    return Finding(text, row["measured"], row["low"], row["high"], row["n"], "published", row["published"])
