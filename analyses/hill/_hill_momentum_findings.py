"""The verdicts of analysis `hill-momentum`: rules in code, their thresholds written before the run."""

import math
from collections.abc import Callable, Sequence

from analyses._rows import Row, Share, grouped, mean, median, share, where
from analyses.hill._hill_momentum_runs import EPSILON, FITTED, RATE, SCORED
from workbench.analysis import Finding
from workbench.statistics import mean_interval

ALONE = ("beta1 alone", "beta2 alone")
RELATION, OUTRUN, CONSTANT = "beta2 < beta1^2", "rate above the critical one", "the commoner answer"
NEAR = 0.05  # a measured factor counts as the predicted one within this share of it

Rule = Callable[[Row], bool]


def rule_scores(rows: Sequence[Row]) -> list[Row]:
    """How often each rule says right whether a run ends exact, on the operations that set no threshold.

    A case is an operation with a pair of betas; its answer is that of most of its seeds. The rules on one beta get the
    threshold that is best on the fitted operations; the others have none to choose.
    """
    cases = [
        {**group[0], "exact": share(group, "exact").share > 0.5}
        for group in grouped(rows, "operation", "beta1", "beta2").values()
    ]
    fitted = [case for case in cases if case["operation"] in FITTED]
    scored = [case for case in cases if case["operation"] in SCORED]
    found = []
    for name in (*ALONE, RELATION, OUTRUN, CONSTANT):
        threshold, says = _rule(name, fitted)
        right = share(scored, lambda case, says=says: says(case) == case["exact"])
        found.append({"rule": name, "threshold": threshold, "n": right.n, **right.columns("right")})
    return found


def _rule(name: str, fitted: Sequence[Row]) -> tuple[float, Rule]:
    """The rule's threshold (NaN without one), and what it says of a case."""
    if name == RELATION:
        return math.nan, lambda case: case["throw"]
    if name == OUTRUN:
        return math.nan, lambda case: case["outrun"]
    if name == CONSTANT:
        common = share(fitted, "exact").share > 0.5
        return math.nan, lambda case: common
    column, sign = (("beta1", 1), ("beta2", -1))[ALONE.index(name)]

    def says(threshold: float) -> Rule:
        return lambda case: sign * case[column] >= sign * threshold

    candidates = [*sorted({case[column] for case in fitted}), math.inf * sign]
    rights = [share(fitted, lambda c, t=t: says(t)(c) == c["exact"]).right for t in candidates]
    best = candidates[rights.index(max(rights))]
    return best, says(best)


def length_of_run(full: bool, seeds: int, epochs: int) -> Finding:
    """What was run, and whether it is the long form."""
    words = "The long form" if full else "A short run (--full: five seeds, 100 epochs)"
    text = f"{words}: {seeds} seeds of {epochs} epochs of 1,000 steps in the sweep over both betas."
    return Finding(text, epochs, n=seeds, control="epochs of the report", control_value=100)


def verdict(scores: Sequence[Row]) -> Finding:
    """Which rule tells exact from not: the relation, or one beta alone. Decided where 95% intervals do not overlap."""
    by = {row["rule"]: row for row in scores}
    relation = by[RELATION]
    alone = max((by[name] for name in ALONE), key=lambda row: row["right"])
    if relation["right_low"] > alone["right_high"]:
        text = "It is a relation between both betas: beta2 < beta1^2"
    elif alone["right_low"] > relation["right_high"]:
        text = f"It is {alone['rule']}, not a relation"
    else:
        text = "Not decided between beta2 < beta1^2 and one beta alone"
    text = (
        f"{text}. At rate {RATE} the relation tells in {relation['right_share']:.1%} of the held-out cases whether a "
        f"run ends exact, the best threshold on {alone['rule']} in {alone['right_share']:.1%}, the critical rate, "
        f"which both betas set, in {by[OUTRUN]['right_share']:.1%}."
    )
    return Finding(text, relation["right_share"], relation["right_low"], relation["right_high"], relation["n"],
                   f"threshold on {alone['rule']}", alone["right_share"])  # fmt: skip


def beta2_alone(grid: Sequence[Row]) -> Finding:
    """The report's beta2 with its beta1 and without any, and a beta2 far from it under a larger beta1."""
    with_momentum, without, far = (
        share(where(grid, epsilon=EPSILON, beta1=b1, beta2=b2), "exact")
        for b1, b2 in ((0.9, 0.5), (0.0, 0.5), (0.99, 0.95))
    )
    needed = with_momentum.low > without.high
    text = (
        f"beta2 = 0.5 {'does nothing alone' if needed else 'may do alone'}: exact in {without} runs without momentum "
        f"(beta1 = 0), in {with_momentum} with beta1 = 0.9; beta2 = 0.95, far from it, under beta1 = 0.99: {far}."
    )
    return Finding(text, with_momentum.share, *with_momentum.interval, with_momentum.n, "beta1 = 0, beta2 = 0.5",
                   without.share)  # fmt: skip


def growth_finding(throws: Sequence[Row]) -> Finding:
    """Whether steps of a throw grow by beta1 / sqrt(beta2)."""
    ratios = [row["measured"] / row["predicted"] for row in throws if not math.isnan(row["measured"])]
    near = sum(abs(ratio - 1) < NEAR for ratio in ratios) / len(ratios)
    one = where(throws, beta1=0.9, beta2=0.5)[0]
    text = (
        f"It is a throw, not a walk: each step is longer than the last by beta1 / sqrt(beta2), "
        f"{'as' if near >= 0.9 else 'NOT as'} predicted ({near:.0%} of runs within {NEAR:.0%}). The report's Adam: "
        f"{one['measured']:.4f} a step, predicted {one['predicted']:.4f}, up to raw values of {one['raw']:.1e}."
    )
    return Finding(text, sum(ratios) / len(ratios), *mean_interval(ratios), len(ratios), "measured as predicted", 1.0)


def rate_finding(rates: Sequence[Row]) -> Finding:
    """Whether runs well below the critical rate end short, and those well above end exact."""
    below = share([row for row in rates if row["factor"] < 0.4], "exact")
    above = share([row for row in rates if row["factor"] > 1.9], "exact")
    right = Share(below.n - below.right + above.right, below.n + above.n)
    critical = where(rates, beta1=0.9)[0]["critical_rate"]
    text = (
        f"The relation needs a learning rate too: beta2 = 0.5 under beta1 = 0.9 throws only above {critical:.4f}. The "
        f"predicted critical rates {'hold' if right.low > 0.9 else 'do NOT hold'}: {below} runs end exact at 0.35 of "
        f"them or less, {above} at twice or more."
    )
    return Finding(text, right.share, *right.interval, right.n, "exact below", below.share)


def default_rate(default: Sequence[Row], grid: Sequence[Row]) -> Finding:
    """Adam with the report's betas at torch's default rate."""
    exact = share(default, "exact")
    there = share(where(grid, epsilon=EPSILON, beta1=0.9, beta2=0.5), "exact")
    needed = exact.high < there.low
    text = (
        f"At torch's default rate, 0.001, beta2 = 0.5 ends exact in {exact} runs after "
        f"{max(row['epochs'] for row in default)} epochs (median distance {median(default, 'distance'):.1e}): the "
        f"rate of {RATE} is {'as much a part of it' if needed else 'NOT shown to matter'}."
    )
    return Finding(text, exact.share, *exact.interval, exact.n, f"the same betas at {RATE}", there.share)


def epsilon_finding(grid: Sequence[Row]) -> Finding:
    """What stops the runs that are not thrown: epsilon, or the memory of the second average."""
    walking = [row for row in grid if not row["throw"] and row["beta2"] <= 0.95]
    stopped = [row for row in walking if row["epsilon"] == EPSILON]
    held, free = (share(rows, "exact") for rows in (stopped, [row for row in walking if row["epsilon"] != EPSILON]))
    text = (
        f"Where nothing is thrown and beta2 is at most 0.95, epsilon = 1e-8 "
        f"{'is' if free.low > held.high else 'is NOT'} what stops Adam short, at a median distance of "
        f"{median(stopped, 'distance'):.1e}: without it {free} such runs end exact, with it {held}."
    )
    return Finding(text, free.share, *free.interval, free.n, "with epsilon", held.share)


def pace_finding(paces: Sequence[Row]) -> Finding:
    """Whether the walk without a throw has the predicted pace, and how little the rate matters at a slow beta2."""
    ratios = [row["ratio"] for row in paces]
    beta2 = max(row["beta2"] for row in paces)
    slow = {rate: mean(rows, "measured") for (rate,), rows in grouped(where(paces, beta2=beta2), "rate").items()}
    near = max(abs(ratio - 1) for ratio in ratios) < NEAR
    words = "the second average sets it, not the rate" if max(slow.values()) < 1.1 * min(slow.values()) else "it varies"
    text = (
        f"A walk has the pace at which the averages can follow the vanishing gradient, {'as' if near else 'NOT as'} "
        f"predicted; with beta2 = {beta2:g} that is {min(slow.values()):.5f} to {max(slow.values()):.5f} of a raw unit "
        f"a step for rates from {min(slow):g} to {max(slow):g} (-ln(beta2) / 4 = {-math.log(beta2) / 4:.5f}): {words}."
    )
    return Finding(text, sum(ratios) / len(ratios), *mean_interval(ratios), len(ratios), "measured as predicted", 1.0)


def hazard(hazards: Sequence[Row]) -> Finding:
    """Which operations a throw lands on the wrong selection, and whether the same runs without one find it."""
    thrown = [row for row in hazards if row["outrun"]]
    walked = [row for row in hazards if not row["outrun"]]
    lost = [name for (name,), rows in grouped(thrown, "operation").items() if share(rows, "found").share < 0.5]
    if not lost:
        right, other = share(thrown, "found"), share(walked, "found")
        text = "A throw finds the selection of every operation in most runs."
        return Finding(text, right.share, *right.interval, right.n, "found without a throw", other.share)
    right, other = (share([row for row in rows if row["operation"] in lost], "found") for rows in (thrown, walked))
    text = (
        "A throw does not know where to stop: it carries a weight whose target is 0 past it, onto a plateau, so that "
        f"with the report's Adam {' and '.join(lost)} find their selection in {right} runs."
    )
    return Finding(text, right.share, *right.interval, right.n, "found without a throw", other.share)
