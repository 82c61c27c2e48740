"""Tables and findings of `hill-fractional`; the thresholds of its verdicts were written before its full run."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_fractional_training import BEYOND, CLEAN, NOISES, NOISY, ROOTS, SELECTIONS, TARGETS, Trained
from analyses.hill._hill_optimizers_matrix import RATES
from workbench.analysis import Finding
from workbench.statistics import mean_interval, wilson

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

LANDED = 2.0**-52  # a distance of at most float64's epsilon: on the target, but for the last bit of tanh times sigmoid
NEAR = 1e-6
RARELY = 0.05  # "rarely" land on a root (section 2.3): the share's interval lies below this
MEDIANS = ("away", "jitter", "stays", "slope", "snapped_away", "worst")


def units(found: Trained) -> list[Row]:
    """One row a unit."""
    names = ("size", "away", "mean_away", "jitter", "stays", "slope", "snapped_away", "worst", "diverged")
    columns = {name: getattr(found, name).tolist() for name in names}
    columns |= {f"weight_{place + 1}": found.W[:, place].tolist() for place in range(2)}
    rows = []
    for at, (target, setting, noise, seed) in enumerate(found.keys):
        row: Row = {"target": target, "optimizer": setting, "noise": noise, "seed": seed}
        rows.append(row | {name: values[at] for name, values in columns.items()})
    return rows


def select(rows: Iterable[Row], **where: Any) -> list[Row]:
    """Rows whose columns are as said; a collection means any of it."""
    wanted = {key: value if isinstance(value, (dict, tuple)) else (value,) for key, value in where.items()}
    return [row for row in rows if all(row[key] in values for key, values in wanted.items())]


def share(rows: Sequence[Row], right: Callable[[Row], bool]) -> tuple[int, int]:
    """Rows that are right, of how many."""
    return sum(map(right, rows)), len(rows)


def landed(row: Row) -> bool:
    """Whether a unit ended on its target."""
    return row["away"] <= LANDED


def cells(rows: Sequence[Row]) -> "pd.DataFrame":
    """One row a target, optimizer and noise: how often units land, how near they end, how far they still move.

    Shares with 95% Wilson intervals over the seeds; medians of the unit's numbers; `stays` is the median share of the
    last epoch spent exactly on the target.
    """
    import pandas as pd

    lines = []
    for noise in NOISES:
        for target in TARGETS:
            for setting in RATES:
                here = select(rows, noise=noise, target=target, optimizer=setting)
                (k, n), (near, _) = share(here, landed), share(here, lambda row: row["away"] <= NEAR)
                line: Row = {"target": target, "optimizer": setting, "noise": noise, "n": n}
                for name, count in (("landed", k), ("near", near)):
                    low, high = wilson(count, n)
                    line |= {name: count / n, f"{name}_low": low, f"{name}_high": high}
                line |= {name: statistics.median(row[name] for row in here) for name in MEDIANS}
                lines.append(line)
    return pd.DataFrame(lines)


def summary(rows: Sequence[Row]) -> "pd.DataFrame":
    """A row an optimizer: units that end on their target, and the median distance, of roots and of selections."""
    import pandas as pd

    lines = []
    for setting in RATES:
        line: Row = {"optimizer": setting}
        for words, targets in (("roots", ROOTS), ("selections", SELECTIONS)):
            for noise in NOISES:
                here = select(rows, optimizer=setting, target=targets, noise=noise)
                (k, n), distance = share(here, landed), statistics.median(row["away"] for row in here)
                line[f"{words}, noisy" if noise else words] = f"{k}/{n} {distance:.0e}"
        lines.append(line)
    return pd.DataFrame(lines)


def findings(rows: Sequence[Row]) -> list[Finding]:
    """What the tables say of the report's section 2.3."""
    return [landing(rows), noisy(rows), *opposed(rows), strongest(rows), beyond(rows)]


def landing(rows: Sequence[Row]) -> Finding:
    """Whether units of roots rarely land on their target when the answers are exact; the control are selections."""
    clean = select(rows, target=ROOTS, noise=CLEAN)
    k, n = share(clean, landed)
    low, high = wilson(k, n)
    verdict = "supported" if high < RARELY else "refuted" if low > RARELY else "undecided"
    selections, of = share(select(rows, target=SELECTIONS, noise=CLEAN), landed)
    by = {setting: share(select(clean, optimizer=setting), landed) for setting in RATES}
    most = ", ".join(f"{setting} {hit} of {m}" for setting, (hit, m) in sorted(by.items(), key=lambda one: -one[1][0]))
    text = (
        f"That weights rarely land on a root (rarely: below {RARELY:.0%}) is {verdict} for exact answers: {k} of {n} "
        f"units end within 2^-52 of it ({most}). At the root the error itself vanishes, so an optimizer whose steps "
        "shrink with the gradient comes to rest there, slope or no slope."
    )
    return Finding(text, k / n, low, high, n, "of selections, unsnapped", selections / of)


def noisy(rows: Sequence[Row]) -> Finding:
    """The same with noisy answers, where the gradient does not vanish at the target."""
    k, n = share(select(rows, target=ROOTS, noise=NOISY), landed)
    here = select(rows, target=SELECTIONS, noise=NOISY)
    exact, of = share(here, lambda row: row["snapped_away"] == 0)
    low, high = wilson(k, n)
    verdict = "rarely" if high < RARELY else "NOT rarely" if low > RARELY else "undecided how often"
    distance = statistics.median(row["away"] for row in select(rows, target=ROOTS, noise=NOISY))
    text = (
        f"With answers that are off by {NOISY:.0%}, roots are hit {verdict}: {k} of {n}, median distance "
        f"{distance:.1g}. Of selections, {exact} of {of} are exact once snapped: what tells a selection from a root "
        "is that noise cannot keep its weight away."
    )
    return Finding(text, k / n, low, high, n, "selections, exact once snapped", exact / of)


def opposed(rows: Sequence[Row]) -> list[Finding]:
    """Per optimizer: whether it lands on roots, on selections, on both or on neither, without snapping."""
    kinds: dict[tuple[bool, bool], list[str]] = {}
    for setting in RATES:
        rates = []
        for targets in (ROOTS, SELECTIONS):
            k, n = share(select(rows, optimizer=setting, target=targets, noise=CLEAN), landed)
            rates.append(k / n > 0.5)
        kinds.setdefault((rates[0], rates[1]), []).append(setting)
    words = {(True, True): "both", (True, False): "roots only", (False, True): "selections only",
             (False, False): "neither"}  # fmt: skip
    parts = [f"{words[key]}: {', '.join(kinds[key])}" for key in words if key in kinds]
    both = len(kinds.get((True, True), []))
    text = f"On exact answers, more than half of the units land without snapping on {'; '.join(parts)}."
    return [Finding(text, both, n=len(RATES), control="settings that land on one kind only",
                    control_value=sum(len(kinds.get(key, [])) for key in ((True, False), (False, True))))]  # fmt: skip


def strongest(rows: Sequence[Row]) -> Finding:
    """How steep the constraint is where units of roots end, beside selections; 1 is the steepest it gets anywhere."""
    here = [row["slope"] for row in select(rows, target=ROOTS, noise=CLEAN)]
    there = statistics.fmean(row["slope"] for row in select(rows, target=SELECTIONS, noise=CLEAN))
    mean = statistics.fmean(here)
    text = (
        f"Where units of roots end, the constraint's slope over (W_hat, M_hat) is {mean:.2g} in the mean, and "
        f"{there:.2g} where units of selections end. Its largest value, 1, is not at a root: it lies at a weight of 0 "
        "with an open gate."
    )
    return Finding(text, mean, *mean_interval(here), len(here), "at selections", there)


def beyond(rows: Sequence[Row]) -> Finding:
    """What becomes of exponents above 1: the nearest weight there is, which snapping makes a selection."""
    here = select(rows, target=BEYOND, noise=CLEAN)
    k, n = share(here, lambda row: row["snapped_away"] == TARGETS[row["target"]][0] - 1)
    text = (
        f"Asked for a square or a cube, no weight reaches the exponent: {k} of {n} units end, once snapped, at exactly "
        "1, the nearest weight there is, and answer with their operand. Nothing but the training error tells."
    )
    return Finding(text, k / n, *wilson(k, n), n, "of selections, exact once snapped", _exact(rows))


def _exact(rows: Sequence[Row]) -> float:
    k, n = share(select(rows, target=SELECTIONS, noise=CLEAN), lambda row: row["snapped_away"] == 0)
    return k / n
