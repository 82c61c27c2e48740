"""What `hill-optimizers` says of its tables; the thresholds of its verdicts were written before the run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_optimizers_matrix import (
    DEFAULT,
    DEFAULTS,
    FULL_EPOCHS,
    OPERATIONS,
    PLAIN,
    RATES,
    SETTINGS,
    SNAPS,
)
from analyses.hill._hill_optimizers_tables import REACHED, as_printed
from workbench.analysis import Finding
from workbench.statistics import wilson

if TYPE_CHECKING:
    from analyses.hill._hill_optimizers_tables import Row

ASKED = 230  # of the 240 cells, in the published class
ALMOST_ALL = 0.9  # "almost all optimizers hit the floor" (section 2.2): that share of the cells at 1e-2


def findings(rows: "Sequence[Row]", different: "Sequence[Row]", epochs: int) -> list[Finding]:
    """Every sentence, the comparison with the published matrix first."""
    return [*compared(rows, different, epochs), snapped(rows), movers(rows), *defaults(rows)]


def compared(rows: "Sequence[Row]", different: "Sequence[Row]", epochs: int) -> list[Finding]:
    """How many cells are of the published class, and a sentence for the cells that differ for the same reason."""
    total = [row for row in rows if row["agrees"]]
    if not total:
        text = (
            f"A short run of {epochs} epochs: published numbers stand beside the measured ones but are not compared; "
            "--full is the published protocol."
        )
        return [Finding(text, epochs, control="published epochs", control_value=FULL_EPOCHS)]
    agree, digits = (sum(row[key] == "yes" for row in total) for key in ("agrees", "digits"))
    verdict = "which is enough" if agree >= ASKED else "which is TOO FEW"
    text = (
        f"{agree} of {len(total)} cells fall in the published class, {verdict}; {digits} agree to three digits as well."
    )
    found = [Finding(text, agree, n=len(total), control="asked for", control_value=ASKED)]
    for why in dict.fromkeys(row["reason"] for row in different):
        same = [row for row in different if row["reason"] == why]
        text = f"{len(same)} cells differ: {'; '.join(map(_named, same))}. Reason: {why}."
        other = sum(row["class"] != row["published_class"] for row in same)
        found.append(Finding(text, len(same), n=len(total), control="of these in another class", control_value=other))
    return found


def _named(row: "Row") -> str:
    snap = f"snapped at {row['snapping']:g}" if row["snapping"] else "not snapped"
    numbers = f"{as_printed(row['measured'])}, published {as_printed(row['published'])}"
    return f"{row['operation']} by {row['optimizer']}, {snap}: {numbers}"


def _reached(rows: "Sequence[Row]", column: str, **where: Any) -> tuple[int, int]:
    """Trainings of a plain column that reached, and their number, in the rows whose columns are as in `where`."""
    here = [row for row in rows if all(row[key] == value for key, value in where.items())]
    seeds = here[0][f"{column}_seeds"]
    return sum(round(row[f"{column}_share_reached"] * seeds) for row in here), len(here) * seeds


def snapped(rows: "Sequence[Row]") -> Finding:
    """Whether almost all optimizers reach at a threshold of 1e-2, beside no snapping."""
    (reached, n), (bare, _) = (_reached(rows, PLAIN, snapping=snap) for snap in (SNAPS[-1], SNAPS[0]))
    low, high = wilson(reached, n)
    verdict = "almost all reach" if low >= ALMOST_ALL else "NOT almost all" if high < ALMOST_ALL else "undecided"
    here = [row for row in rows if row["snapping"] == SNAPS[-1]]
    ours, theirs = (sum(row[key] == REACHED for row in here) for key in ("class", "published_class"))
    text = (
        f'Snapped at 1e-2, "almost all optimizers hit the floor" (almost all: {ALMOST_ALL:.0%}): {verdict}. Of plain '
        f"trainings {reached} of {n} reach; of the published matrix's {len(here)} cells {ours}, published {theirs}."
    )
    return Finding(text, reached / n, low, high, n, "the same without snapping", bare / n)


def movers(rows: "Sequence[Row]") -> Finding:
    """The settings that reach on every operation and seed without snapping: those that keep moving."""
    found = {setting: _reached(rows, PLAIN, snapping=0.0, optimizer=setting) for setting in SETTINGS}
    always = [setting for setting, (reached, n) in found.items() if reached == n]
    published = [
        setting
        for setting in SETTINGS
        if all(r["published_class"] == REACHED for r in rows if (r["optimizer"], r["snapping"]) == (setting, 0.0))
    ]
    text = (
        f"Without snapping {len(always)} of {len(SETTINGS)} settings reach on all {len(OPERATIONS)} operations and "
        f"all seeds: {', '.join(always) or 'none'}. In the published matrix: {', '.join(published)}."
    )
    (reached, n), (stalled, of) = found["Adam, beta2 0.5"], found["Adam"]
    text += f" Adam with beta2 = 0.5 reaches on {reached} of {n}, with the default 0.999 on {stalled} of {of}."
    return Finding(text, reached / n, *wilson(reached, n), n, "Adam's share with beta2 = 0.999", stalled / of)


def defaults(rows: "Sequence[Row]") -> list[Finding]:
    """What torch's default settings reach, beside the published rates on the same problems."""
    found = []
    same = [setting for setting in SETTINGS if RATES[setting] == DEFAULTS[setting]]
    for snap in SNAPS:
        (reached, n), (control, _) = (_reached(rows, column, snapping=snap) for column in (DEFAULT, PLAIN))
        low, high = wilson(reached, n)
        rate_low, rate_high = wilson(control, n)
        verdict = "fewer than" if high < rate_low else "more than" if low > rate_high else "about as many as"
        words = f"snapped at {snap:g}" if snap else "not snapped"
        text = (
            f"With torch's default settings, which the report's text names, {reached} of {n} trainings reach when "
            f"{words}: {verdict} with the settings of its experiment file (defaults only for {', '.join(same)})."
        )
        found.append(Finding(text, reached / n, low, high, n, "with those settings", control / n))
    return found
