"""What `hill-saturation` found, in sentences: rules, and the thresholds of their verdicts."""

import math
from typing import TYPE_CHECKING, Any

from workbench.analysis import Finding
from workbench.statistics import wilson

if TYPE_CHECKING:
    from analyses.hill._hill_saturation_snapping import Band, Parked, Snapped
    from analyses.hill._hill_saturation_thresholds import AtTwenty, Threshold

FULL_EPOCHS = 100  # of the published sweep
PUBLISHED_BAND = (3e-3, 5e-2)  # "roughly", report section 2.2
PUBLISHED_DISTANCE = 2e-3  # "about", the same place: how near to a target converged optimizers land
ROUGHLY = 2.0  # an end of the band agrees when it is within this factor of the published one


def of_thresholds(beside: list[dict[str, Any]], found: "list[Threshold]", twenty: "list[AtTwenty]") -> list[Finding]:
    """The findings that no training enters."""
    return [agreement(beside), early_sigmoid(found), inalu(twenty)]


def of_snapping(parked: "Parked", rows: "list[Snapped]", comparable: bool) -> list[Finding]:
    """The findings of the snapping sweep; `comparable` when it trained as long as the published one."""
    from analyses.hill._hill_saturation_snapping import FACTORS, RULES, WEIGHT, band

    bands = {rule: band([row for row in rows if row.rule == rule]) for rule in RULES}
    return [
        *safe_band(bands[FACTORS], parked, comparable),
        at_default(rows),
        other_rule(parked, bands[WEIGHT]),
        near(parked),
    ]


def short(epochs: int) -> list[Finding]:
    """That the run is a short one, when it is."""
    if epochs >= FULL_EPOCHS:
        return []
    text = (
        f"A short run: the snapping sweep trains {epochs} epochs, the published one {FULL_EPOCHS}. Slow optimizers "
        "have not arrived, so its band is not the published one; --full trains as long."
    )
    return [Finding(text, epochs, control="published epochs", control_value=FULL_EPOCHS)]


def agreement(beside: list[dict[str, Any]]) -> Finding:
    """Whether the published thresholds are the first hundredths at or above those found."""
    compared = [row for row in beside if row["agrees"]]
    agree, exceptions = sum(row["agrees"] == "yes" for row in compared), sum(row["exceptions"] for row in beside)
    wrong = "; ".join(f"{r['format']} {r['factor']}: {r['from']:.6g}" for r in compared if r["agrees"] == "no")
    verdict = "all of them" if agree == len(compared) else f"NOT these: {wrong}"
    text = (
        f"{agree} of {len(compared)} thresholds of table 2.2 are the first multiple of 0.01 at which the factor is "
        f"exactly 1, {verdict}. Below every threshold the factor is never exact and from it on always, with "
        f"{exceptions} exceptions in {sum(row['tried'] for row in beside):,} numbers tried."
    )
    return Finding(text, agree, n=len(compared), control="published thresholds", control_value=len(compared))


def early_sigmoid(found: "list[Threshold]") -> Finding:
    """Why float64's sigmoid saturates where it does: a rounding inside it."""
    import torch

    one = next(t for t in found if t.dtype is torch.float64 and t.factor == "sigmoid(x) = 1")
    verdict = "earlier than" if one.found < one.rounded else "no earlier than"
    text = (
        f"In float64 torch's sigmoid is exactly 1 from {one.found:.4f}, {verdict} a correctly rounded one, "
        f"{one.rounded:.4f}: from ln 2^53 = {math.log(2**53):.4f} on, 1 + exp(-x) has already rounded to 1."
    )
    return Finding(text, one.found, n=one.tried, control="correctly rounded", control_value=one.rounded)


def inalu(twenty: "list[AtTwenty]") -> Finding:
    """The report's remark that raw values of 20 are deep saturation in float64, but not exactness."""
    import torch

    from analyses.hill._hill_saturation_thresholds import name

    double = next(one for one in twenty if one.dtype is torch.float64)
    holds = double.tanh == 1 and double.sigmoid < 1
    others = [name(one.dtype) for one in twenty if one.dtype is not torch.float64 and one.W == 1]
    snapped = "exactly 1 once snapped" if double.snapped == 1 else "not exact even when snapped"
    text = (
        f"The remark on iNALU's 20 {'holds' if holds else 'does NOT hold'} in float64: tanh(20) is {double.tanh!r}, "
        f"sigmoid(20) {double.sigmoid!r}, the weight {double.ulps:,} ulps below 1, {snapped}. Exact at 20 already: "
        f"{', '.join(others) or 'no other format'}."
    )
    return Finding(text, 1 - double.W, control="below 1 when snapped", control_value=1 - double.snapped)


def roughly(found: float, published: float) -> bool:
    """Whether two numbers are within the factor ROUGHLY of each other."""
    return found > 0 and max(found / published, published / found) <= ROUGHLY


def safe_band(found: "Band", parked: "Parked", comparable: bool) -> list[Finding]:
    """The measured band of the report's rule beside the published one, which only an equally long run is held to."""
    n, roots = int(parked.learned.sum()), int(parked.root.sum())
    if found.empty:
        text = (
            "No threshold is safe under the report's rule: those that make most units exact touch roots, or none does."
        )
        return [Finding(text, 0.0, n=n, control="published: a band from", control_value=PUBLISHED_BAND[0])]
    pairs = zip((found.low, found.high), PUBLISHED_BAND, strict=True)
    words = [
        f"; this {'agrees' if roughly(*pair) else 'does NOT agree'} with the report's, within a factor of {ROUGHLY:g}"
        for pair in pairs
    ]
    low, high = words if comparable else ("", "")
    first = (
        f"The safe band begins at {found.low:.1e}, from where on 95% of the units are exact that it makes exact "
        f"anywhere{low}."
    )
    second = f"The safe band ends at {found.high:.1e}, the last threshold that touches no root{high}."
    return [
        Finding(first, found.low, n=n, control="published", control_value=PUBLISHED_BAND[0]),
        Finding(second, found.high, n=roots, control="published", control_value=PUBLISHED_BAND[1]),
    ]


def at_default(rows: "list[Snapped]") -> Finding:
    """What the default threshold does under the report's rule, beside no snapping at all."""
    from analyses.hill._hill_saturation_snapping import FACTORS
    from workbench.hill.constraint import SNAP

    here = [row for row in rows if row.rule == FACTORS]
    none, default = (min(here, key=lambda row: abs(row.threshold - t)) for t in (0.0, SNAP))
    n = default.learned
    text = (
        f"Snapping at {SNAP:g} makes {default.exact} of {n} learned units exact and touches {default.touched} of "
        f"{default.roots} roots; without it {none.exact} are exact."
    )
    share = default.exact / n if n else 0.0
    bounds = wilson(default.exact, n) if n else (None, None)
    return Finding(text, share, *bounds, n, "exact without snapping", none.exact / n if n else 0.0)


def other_rule(parked: "Parked", found: "Band") -> Finding:
    """Snapping the weight itself at the default threshold, and why the report's rule leaves some units behind."""
    import torch

    from analyses.hill._hill_saturation_snapping import FACTORS, WEIGHT, exact
    from workbench.hill.constraint import SNAP

    weight, factors = (exact(parked, rule, SNAP) & parked.learned for rule in (WEIGHT, FACTORS))
    left = weight & ~factors
    open_gate = (parked.goal == 0) & parked.matters & (torch.sigmoid(parked.M_hat) > SNAP)
    held = int((left & open_gate.any(dim=1)).sum())
    n, k = int(parked.learned.sum()), int(weight.sum())
    span = "at no threshold safely" if found.empty else f"safe from {found.low:.1e} to {found.high:.1e}"
    text = (
        f"Snapping the weight itself at {SNAP:g} makes {k} of {n} exact ({span}). Of the {int(left.sum())} that the "
        f"report's rule leaves, {held} hold a zero by tanh with sigmoid above the threshold: its rule snaps tanh "
        "only to -1 and 1."
    )
    bounds = wilson(k, n) if n else (None, None)
    control = "the report's rule"
    return Finding(text, k / n if n else 0.0, *bounds, n, control, int(factors.sum()) / n if n else 0.0)


def near(parked: "Parked") -> Finding:
    """How many learned units lie within the published distance of their selection, and how far the farthest is."""
    distance = parked.distance[parked.learned]
    if not len(distance):
        return Finding("No unit has learned its selection.", 0.0, n=0)
    n, inside = len(distance), int((distance <= PUBLISHED_DISTANCE).sum())
    farthest = int((parked.distance * parked.learned).argmax())
    where = f"{parked.names[farthest]} by {parked.optimizers[farthest]}"
    text = (
        f"{inside} of {n} learned units end within {PUBLISHED_DISTANCE:g} of their selection, where the report says "
        f"that converged optimizers land; the farthest, {where}, is {float(distance.max()):.2g} away."
    )
    return Finding(text, inside / n, *wilson(inside, n), n, "all of them", 1.0)
