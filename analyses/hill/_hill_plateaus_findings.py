"""The verdicts of analysis `hill-plateaus`: rules in code, their thresholds written before the run."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from analyses._rows import Row, grouped, share, where
from analyses.hill._hill_plateaus_runs import AS_DRAWN, CIRCLE, OTHER_BATCHES, REPORTED, SCALES, needed
from workbench.analysis import Finding

SIGN, RACE, GATE = "a W_hat of the wrong sign", "race below c", "a negative M_hat"
DEPTH, CONSTANT = "largest |raw value| above c", "the commoner answer"
CANDIDATES = tuple(np.linspace(-12, 12, 97).tolist())  # thresholds c
RARE = 0.02  # what the upper end must stay below for "hardly ever"


def straight(rows: Sequence[Row]) -> list[Row]:
    """The rows of operations that only the selection solves: without the unit circle's."""
    return [row for row in rows if row["operation"] not in CIRCLE]


def drawn(rows: Sequence[Row]) -> list[Row]:
    """The report's optimizer on starts as they were drawn."""
    return where(rows, setting=REPORTED, change=AS_DRAWN)


def rule_scores(rows: Sequence[Row]) -> list[Row]:
    """How often each rule says from the start alone whether a run fails: thresholds from even starts, scores on odd."""
    runs = straight(drawn(rows))
    fitted, scored = ([row for row in runs if row["number"] % 2 == half] for half in (0, 1))
    found = []
    for name in (SIGN, RACE, GATE, DEPTH, CONSTANT):
        threshold, says = _rule(name, fitted)
        right = share(scored, lambda row, says=says: says(row) == row["failed"])
        found.append({"rule": name, "threshold": threshold, "n": right.n, **right.columns("right")})
    return found


def _rule(name: str, fitted: Sequence[Row]) -> tuple[float, Callable[[Row], bool]]:
    if name == SIGN:
        return math.nan, lambda row: row["wrong"] > 0
    if name == GATE:
        return math.nan, lambda row: any(
            row[f"start_M_hat_{w + 1}"] < 0 for w, use in enumerate(needed(row["operation"])) if use
        )
    if name == CONSTANT:
        common = share(fitted, "failed").share > 0.5
        return math.nan, lambda row: common
    value: Callable[[Row], float] = (lambda row: row["race"]) if name == RACE else (lambda row: -_depth(row))
    rights = [share(fitted, lambda row, c=c: (value(row) < c) == row["failed"]).right for c in CANDIDATES]
    best = CANDIDATES[rights.index(max(rights))]
    return (best if name == RACE else -best), lambda row: value(row) < best


def _depth(row: Row) -> float:
    return max(abs(row[f"start_{what}_{w}"]) for what in ("W_hat", "M_hat") for w in (1, 2))


def length_of_run(full: bool, rows: Sequence[Row]) -> Finding:
    """What was run, and whether it is the long form."""
    words = "The long form" if full else "A short run (--full: 1,000 starts a cell)"
    cells = len(grouped(drawn(rows), "operation", "scale"))
    text = f"{words}: {len(drawn(rows)) // cells} starts a cell of operation and scale, {len(rows):,} trainings in all."
    return Finding(text, len(rows), n=len(rows), control="runs of the report at these scales", control_value=240)


def sign_finding(rows: Sequence[Row]) -> Finding:
    """Whether a failure needs a W_hat of the wrong sign."""
    runs = straight(drawn(rows))
    right = share([row for row in runs if not row["wrong"]], "failed")
    wrong = share([row for row in runs if row["wrong"]], "failed")
    if right.high < RARE < wrong.low:
        verdict = "A failure needs"
    elif right.low > RARE:
        verdict = "A failure does NOT need"
    else:
        verdict = "NOT decided that a failure needs"
    ones = {count: share(where(runs, wrong=count), "failed") for count in (1, 2)}
    text = (
        f"{verdict} a weight of selection 1 or -1 whose W_hat starts with the wrong sign: {right} runs fail without "
        f"one, {ones[1]} with one and {ones[2]} with two. (Without cos and sin, which the unit circle solves in other "
        "ways too.)"
    )
    return Finding(text, wrong.share, *wrong.interval, wrong.n, "all signs right", right.share)


def rule_finding(scores: Sequence[Row]) -> Finding:
    """What decides among the starts with a wrong sign: the race between W_hat and its own gate."""
    by = {row["rule"]: row for row in scores}
    race = by[RACE]
    others = [by[name] for name in (SIGN, GATE, DEPTH, CONSTANT)]
    best = max(others, key=lambda row: row["right"])
    verdict = "A race decides" if race["right_low"] > best["right_high"] else "NOT decided that a race decides"
    text = (
        f"{verdict} which wrong signs are fatal: until W_hat is back at 0 the gate is being shut, so that a start "
        f"fails when M_hat - |W_hat| is below {race['threshold']:g}. This tells {race['right_share']:.1%} of the "
        f"held-out runs, the next best rule ({best['rule']}) {best['right_share']:.1%}."
    )
    return Finding(text, race["right_share"], race["right_low"], race["right_high"], race["n"], best["rule"],
                   best["right_share"])  # fmt: skip


def gate_finding(rows: Sequence[Row]) -> Finding:
    """Where the weights of failed runs are in the end."""
    failed = [row for row in straight(drawn(rows)) if row["failed"]]
    shut = share(failed, "lost_and_shut")
    turned = share(failed, "signs_right_at_end")
    verdict = "is the gate, not the sign itself" if shut.low > 0.9 and turned.low > 0.5 else "is NOT the gate alone"
    text = (
        f"What is fatal {verdict}: in {shut} failed runs a lost weight ends with its gate shut (M_hat below -20, so a "
        f"weight of 0), and in {turned} every W_hat has the right sign by then, too late."
    )
    return Finding(text, shut.share, *shut.interval, shut.n, "all W_hat signs right in the end", turned.share)


def changes_finding(rows: Sequence[Row]) -> Finding:
    """What happens to the same starts when only signs are changed."""
    large = where(rows, setting=REPORTED, scale=SCALES[-1])
    by = {key: share(found, "failed") for (key,), found in grouped(large, "change").items()}
    changed = {row["operation"] for row in large if row["change"] != AS_DRAWN}
    before = share([row for row in where(large, change=AS_DRAWN) if row["operation"] in changed], "failed")
    right = by["W_hat signs made right"]
    verdict = "rescues" if right.high < RARE else "helps" if right.high < before.low else "does NOT rescue"
    text = (
        f"Making the signs of W_hat right, and nothing else, {verdict} the starts of scale {SCALES[-1]:g}: {right} "
        f"fail instead of {before}; made wrong, {by['W_hat signs made wrong']}; with all gates made open at the start "
        f"{by['M_hat made positive']}, made shut {by['M_hat made negative']}."
    )
    return Finding(text, right.share, *right.interval, right.n, "the same starts as drawn", before.share)


def batches_finding(rows: Sequence[Row]) -> Finding:
    """Whether the lottery is drawn with the starting weights or with the batches."""
    as_drawn = {(r["operation"], r["scale"], r["number"]): r["failed"] for r in drawn(rows)}
    other = where(rows, change=OTHER_BATCHES)
    same = share(other, lambda row: row["failed"] == as_drawn[row["operation"], row["scale"], row["number"]])
    failing = share(other, "failed").share
    chance = failing**2 + (1 - failing) ** 2
    text = (
        "The lottery is "
        f"{'drawn with the starting weights' if same.low > chance else 'NOT drawn with the weights alone'}: on other "
        f"data and other batches {same} starts end as before."
    )
    return Finding(text, same.share, *same.interval, same.n, "if outcomes were independent", chance)


def setting_finding(rows: Sequence[Row]) -> Finding:
    """Whether the same starts fail under an Adam that does not throw."""
    numbers = {row["number"] for row in rows if row["setting"] != REPORTED}
    runs = [row for row in straight(where(rows, change=AS_DRAWN, scale=SCALES[-1])) if row["number"] in numbers]
    by = {key: share(found, "failed") for (key,), found in grouped(runs, "setting").items()}
    reported = by.pop(REPORTED)
    none = by["betas 0, 0.5"]
    verdict = (
        "The optimizer makes the lottery" if none.high < reported.low else "NOT decided that the optimizer does it"
    )
    listed = ", ".join(f"{name}: {found}" for name, found in by.items())
    text = (
        f"{verdict}: of the same starts of scale {SCALES[-1]:g}, {reported} fail with the report's Adam, whose throw "
        f"(see hill-momentum) shuts gates for good. Without a throw: {listed}."
    )
    return Finding(text, none.share, *none.interval, none.n, "the report's Adam", reported.share)


def circle_finding(rows: Sequence[Row]) -> Finding:
    """The unit circle, where right signs are not enough."""
    circle = [row for row in drawn(rows) if row["operation"] in CIRCLE]
    right = share([row for row in circle if not row["wrong"]], "failed")
    wrong = share([row for row in circle if row["wrong"]], "failed")
    calm = share([row for row in where(rows, setting="betas 0, 0.5") if row["operation"] in CIRCLE], "failed")
    text = (
        f"cos and sin are another matter: their loss has further minima in the phase, so that {right} runs fail with "
        f"the right sign, {wrong} with the wrong one, and {calm} without a throw."
    )
    return Finding(text, right.share, *right.interval, right.n, "without a throw", calm.share)


def published_finding(table: Sequence[Row]) -> Finding:
    """The same rule on the report's own failing runs, from its seeds alone: nothing is trained here."""
    rows = straight(table)
    failed, passed = (where(rows, published_failed=what) for what in (True, False))
    explained = share(failed, lambda row: row["wrong"] > 0)
    others = share(passed, lambda row: row["wrong"] > 0)
    verdict = "holds" if explained.share == 1 else "does NOT hold everywhere"
    text = (
        f"On the report's own runs the rule {verdict}: {explained} of its failed runs at scales 1 and 3 (without cos "
        f"and sin) started with a W_hat of the wrong sign, by the published seeds; of those that passed, {others}."
    )
    return Finding(text, explained.share, *explained.interval, explained.n, "of the runs that passed", others.share)
