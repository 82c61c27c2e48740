"""The verdicts of analysis `hill-composition`: rules in code, their thresholds written before the run."""

from collections.abc import Sequence

from analyses._rows import Row, Share, grouped, median, share, where
from analyses.hill._hill_composition_runs import END_TO_END, MOVING, SOLVED
from workbench.analysis import Finding

APART = 0.1  # units lock apart when the gap between their locks is more than this share of the time to the last
STATES = ("on the function", "locked", "diverged", "between")


def arms_table(rows: Sequence[Row]) -> list[Row]:
    """A row a circuit and arm: how many seeds are solved, against end to end, and what became of the others."""
    found = []
    for (circuit, arm), group in grouped(rows, "circuit", "arm").items():
        here, base = share(group, "solved"), share(where(rows, circuit=circuit, arm=END_TO_END), "solved")
        states = {state: len(where(group, state=state)) for state in STATES}
        found.append(
            {"circuit": circuit, "arm": arm, "n": here.n, **here.columns("solved"),
             **{state.replace(" ", "_"): count for state, count in states.items()},
             "zeroed": share(group, "zeroed").right, "as_it_is": share(group, lambda row: row["error"] < SOLVED).right,
             "effect": effect(here, base) if arm != END_TO_END else ""}
        )  # fmt: skip
    return found


def effect(here: Share, base: Share) -> str:
    """Whether an arm solves more or fewer seeds than another, where their 95% intervals do not overlap."""
    return "rescues" if here.low > base.high else "harms" if here.high < base.low else "no difference shown"


def length_of_run(full: bool, rows: Sequence[Row], steps: Sequence[int]) -> Finding:
    """What was run, and whether it is the long form."""
    seeds = len({row["seed"] for row in rows})
    words = "The long form" if full else "A short run (--full: 100 seeds, 10,000 steps)"
    text = f"{words}: {len(rows):,} circuits trained, {seeds} seeds an arm, {min(steps):,} to {max(steps):,} steps."
    return Finding(text, seeds, n=len(rows), control="seeds asked for, at least", control_value=20)


def stranded(rows: Sequence[Row]) -> Finding:
    """How often a circuit trained end to end is stranded, and whether that depends on the circuit."""
    base = where(rows, arm=END_TO_END)
    by = {circuit: share(group, "solved") for (circuit,), group in grouped(base, "circuit").items()}
    best, worst = (pick(by.values(), key=lambda one: one.share) for pick in (max, min))
    verdict = "It depends on the circuit" if best.low > worst.high else "NOT decided whether it depends on the circuit"
    every = share(base, lambda row: not row["solved"])
    listed = "; ".join(f"{circuit} is solved in {found}" for circuit, found in by.items())
    text = (
        f"{verdict} whether training end to end strands it: {listed}. The constraint is the same in all, the "
        "formulation differs."
    )
    return Finding(text, every.share, *every.interval, every.n, "stranded, of the most often solved", 1 - best.share)


def free_runs(rows: Sequence[Row]) -> list[Row]:
    """Solved runs in which every unit was trained and has locked."""
    return [row for row in rows if row["solved"] and row["all_trained"] and row["spread"] == row["spread"]]


def piecewise(rows: Sequence[Row]) -> Finding:
    """Whether weights lock one after the other, and whether more so than those of a single unit, the control."""
    runs = free_runs(rows)
    single = [row for row in rows if row["solved"] and row["units_trained"] == 1 and row["spread"] == row["spread"]]
    if not runs or not single:
        return Finding("No circuit was solved with every unit trained: nothing to say of the order.", 0.0, n=0)
    apart, alone = (share(group, lambda row: row["spread"] > APART) for group in (runs, single))
    if apart.high < 0.5:
        verdict = "Circuits do NOT lock in piecewise: all weights lock together"
    elif apart.low <= 0.5:
        verdict = "NOT decided that circuits lock in piecewise"
    elif apart.low > alone.high:
        verdict = "Circuits lock in piecewise, more so than single units"
    else:
        verdict = "Circuits lock in piecewise, but so do single units"
    by = "; ".join(
        f"{circuit} {median(group, 'gap'):.0%} and {median(group, 'inner_gap'):.0%}"
        for (circuit,), group in grouped(runs, "circuit").items()
    )
    text = (
        f"{verdict}: between the first and the last weight's lock lies more than {APART:.0%} of the time to the last "
        f"in {apart} solved runs with every unit trained, in {alone} with one. Median gap between units, and between "
        f"the weights of a unit: {by}."
    )
    return Finding(text, apart.share, *apart.interval, apart.n, "circuits with one unit trained", alone.share)


def order(rows: Sequence[Row]) -> Finding:
    """Which unit locks first."""
    runs = [row for row in free_runs(rows) if row["last_unit"]]
    if not runs:
        return Finding("No two units of a solved circuit lock apart: there is no order.", 0.0, n=0)
    parts, first = [], share(runs, lambda row: row["last_unit"] != 1)
    for (circuit,), group in grouped(runs, "circuit").items():
        inner = share(group, lambda row: row["last_unit"] != 1)
        words = "inner first" if inner.low > 0.5 else "outer first" if inner.high < 0.5 else "no order shown"
        parts.append(f"{circuit} {words} ({inner})")
    text = (
        f"In which order, by circuit (runs in which the unit nearest the inputs is not the last): {'; '.join(parts)}."
    )
    return Finding(text, first.share, *first.interval, first.n, "no order", 0.5)


def holds(rows: Sequence[Row]) -> Finding:
    """Whether a weight that has locked ever leaves again."""
    left = share(rows, "left_a_lock")
    kept = left.high < 0.05
    verdict, so = (
        ("A lock holds", ", so that what locks wrongly stays") if kept else ("A lock does NOT always hold", "")
    )
    stuck = share(where(rows, solved=False), "left_a_lock")
    text = f"{verdict}: in {left} circuits a weight left -1, 0 or 1 again after 300 steps there{so}."
    return Finding(text, left.share, *left.interval, left.n, "among the stranded", stuck.share)


def what_strands(rows: Sequence[Row]) -> Finding:
    """How stranded circuits end: a unit at zero, or on an exact function that no selection names."""
    lost = [row for row in where(rows, arm=END_TO_END) if not row["solved"]]
    if not lost:
        return Finding("No circuit was stranded end to end.", 0.0, n=0)
    parts = []
    for (circuit,), group in grouped(lost, "circuit").items():
        zeroed = share(group, "zeroed")
        near = share(group, lambda row: row["state"] == "on the function")
        parts.append(f"{circuit}: a unit shut to 0 in {zeroed}, near the function off the selection in {near}")
    every = share(lost, lambda row: row["zeroed"] or row["state"] == "on the function")
    text = (
        f"How stranded circuits end: {'; '.join(parts)}. A unit shut to 0 under a small negative exponent is a "
        "constant; weights scaled alike above and below a fraction compute the same, so that nothing pulls them to 1."
    )
    return Finding(text, every.share, *every.interval, every.n)


def helper(rows: Sequence[Row], table: Sequence[Row], arm: str, words: str) -> Finding:
    """What one arm does to each circuit against training end to end."""
    here = where(table, arm=arm)
    parts = [f"{row['circuit']}: {row['effect']} ({row['solved']} of {row['n']})" for row in here]
    mine = share(where(rows, arm=arm), "solved")
    circuits = {row["circuit"] for row in here}
    base = share([row for row in where(rows, arm=END_TO_END) if row["circuit"] in circuits], "solved")
    return Finding(f"{words}: {'; '.join(parts)}.", mine.share, *mine.interval, mine.n, "end to end", base.share)


def helpers(rows: Sequence[Row], table: Sequence[Row]) -> list[Finding]:
    """What the issue's three rescues do, their controls, and two starts."""
    asked = {
        "snapped straight through": "Snapping in training",
        MOVING: "An optimizer that keeps moving",
        "first unit enumerated": "Enumerating the first unit",
        "first unit enumerated wrongly": "The control, the first unit enumerated with another operation",
        "last unit enumerated": "Enumerating the last unit instead",
        "signs of W_hat right": "Starting with the signs of the selection",
        "scale 1": "Starting from scale 1 instead of 0.1",
    }
    return [helper(rows, table, arm, words) for arm, words in asked.items()]


def snapping_at_evaluation(rows: Sequence[Row]) -> Finding:
    """Whether snapping the trained weights solves what is not solved by them as they are."""
    base = where(rows, arm=END_TO_END)
    snapped, as_is = share(base, "solved"), share(base, lambda row: row["error"] < SOLVED)
    text = (
        f"Snapping at evaluation {'rescues the last digits' if snapped.low > as_is.high else 'changes little'}: "
        f"{snapped} circuits are exact with it, {as_is} without."
    )
    return Finding(text, snapped.share, *snapped.interval, snapped.n, "weights as they are", as_is.share)


def crossing(rows: Sequence[Row], circuit: str) -> Finding:
    """Whether a last unit fails behind an exact first one because its input crosses zero on a wide range."""
    arms = {name: share(where(rows, circuit=circuit, arm=name), "solved")
            for name in ("all but last enumerated", "all but last, inputs over 10", END_TO_END)}  # fmt: skip
    wide, narrow, end = arms.values()
    verdict = "is" if narrow.low > wide.high else "is NOT shown to be"
    text = (
        f"What fails in {circuit} when all before the last unit is exact {verdict} the wide range across zero that "
        f"a - b then has (see hill-zero-crossing): {wide} are solved as it is, {narrow} with all inputs divided by 10, "
        f"where only the range differs; {end} end to end."
    )
    return Finding(text, narrow.share, *narrow.interval, narrow.n, "inputs as they are", wide.share)
