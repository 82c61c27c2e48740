"""What `selection-probe` found in a few rows, and in sentences."""

from collections.abc import Iterator, Sequence

from analyses._rows import Row, grouped, mean, where
from analyses.learned._selection_probe_fit import PROBE, SHUFFLED, TRAINED, UNIT, UNTRAINED
from analyses.learned._selection_probe_targets import CARRY, DIFFERENCE, FREQUENCIES, PLACES, SUM
from analyses.learned._selection_probe_units import HOLDS
from workbench.result import Finding
from workbench.statistics import wilson

LOWER = PLACES[:-1]  # averaged over; what stands before the thousands' digit, sign or carry, tells of them by itself
KEYS = ("checkpoint", "shape", "seed", "model", "group", "layer", "hook")


def averages(units: Sequence[Row]) -> list[Row]:
    """Of every hook, result and frequency, variance explained averaged over units, tens and hundreds.

    Only at the position that predicts the place's digit. Ends of intervals are averaged too.
    """
    found = []
    rows = [row for row in units if row["place"] in LOWER and row["predicted"]]
    for key, part in grouped(rows, *KEYS, "result", "k", "probe").items():
        numbers = {name: mean(part, name) for name in ("r2", "low", "high")}
        numbers |= {row["place"]: row["r2"] for row in part}
        found.append(dict(zip((*KEYS, "result", "k", "probe"), key, strict=True)) | {"n": part[0]["n"]} | numbers)
    return found


def landed(selections: Sequence[Row]) -> list[Row]:
    """Of every hook, how many trained units select what is expected, over units, tens and hundreds and starts."""
    found = []
    rows = [row for row in selections if row["place"] in LOWER and row["predicted"]]
    for key, part in grouped(rows, *KEYS).items():
        starts = sum(row["starts"] for row in part)
        hits = sum(row["starts"] * row["selects"] for row in part)
        low, high = wilson(round(hits), starts)
        row = dict(zip(KEYS, key, strict=True)) | {
            "expected": part[0]["expected"],
            "units": len(part),
            "starts": starts,
        }
        row |= {"selects": hits / starts, "low": low, "high": high, "lands": mean(part, "lands")}
        found.append(row | {"snapped_r2": mean(part, "snapped_r2")})
    return found


def span(values: Sequence[float]) -> str:
    """`0.31..0.40`, lowest to highest."""
    low, high = (f"{value:.2f}" for value in (min(values), max(values)))
    return low if low == high else f"{low}..{high}"


SHOWN = (
    ("sum", SUM, 0),
    ("difference", DIFFERENCE, 0),
    ("carry", CARRY, 0),
    ("a+b k=1", SUM, 1),
    ("a-b k=1", DIFFERENCE, 1),
)


def summary(means: Sequence[Row], lands: Sequence[Row]) -> list[Row]:
    """Of each shape, operator and sign and hook: linear probes and selections, lowest..highest over checkpoints."""
    found = []
    for (shape, group, hook), part in grouped(
        where(means, model=TRAINED, probe=PROBE), "shape", "group", "hook"
    ).items():
        row = {"shape": shape, "group": group, "hook": hook.removeprefix("blocks.")}
        for name, result, k in SHOWN:
            row[name] = span([one["r2"] for one in where(part, result=result, k=k)])
        here = where(lands, shape=shape, group=group, hook=hook, model=TRAINED)
        found.append(row | {"selects": f"{here[0]['expected']} {span([one['selects'] for one in here])}"})
    return found


def findings(means: Sequence[Row], lands: Sequence[Row]) -> list[Finding]:
    """Of each shape, operator and sign: sum, difference and carry before the last MLP, clocks after it, selections."""
    found = []
    for (shape, group), part in grouped(means, "shape", "group").items():
        layers = max(row["layer"] for row in part)
        before, after = (f"blocks.{layers}.hook_resid_{where_}" for where_ in ("mid", "post"))
        words = f"{shape}, {group}"
        for result, unit in ((SUM, "add"), (DIFFERENCE, "subtract")):
            text = f"{words}: a_i and b_i read linearly, then the frozen unit {unit}, before the last MLP"
            found.append(_explained(text, part, before, result, 0, UNIT))
        result = SUM if group == "addition" else DIFFERENCE
        sign = "+" if result == SUM else "-"
        clocks = [where(part, model=TRAINED, probe=PROBE, hook=after, result=result, k=k) for k in FREQUENCIES]
        every = ", ".join(
            f"k={k} {span([row['r2'] for row in rows])}" for k, rows in zip(FREQUENCIES, clocks, strict=True)
        )
        text = f"{words}: linear probe of cos and sin of 2 pi (a_i {sign} b_i) / 10 after the last MLP (all: {every})"
        found.append(_explained(text, part, after, result, 1, PROBE))
        text = f"{words}: angles of a_i and b_i read linearly, then the clock unit of a_i {sign} b_i, k=1, before it"
        found.append(_explained(text, part, before, result, 1, UNIT))
        text = f"{words}: linear probe of the carry out, before the last MLP"
        found.append(_explained(text, part, before, CARRY, 0, PROBE))
        found += _selects(words, where(lands, shape=shape, group=group), before)
    return found


def _explained(text: str, rows: Sequence[Row], hook: str, result: str, k: int, probe: str) -> Finding:
    """Mean over checkpoints, with the untrained models beside it."""
    here = where(rows, hook=hook, result=result, k=k, probe=probe)
    trained = where(here, model=TRAINED)
    shuffled, untrained = (mean(where(here, model=model), "r2") for model in (SHUFFLED, UNTRAINED))
    places = ", ".join(f"{place} {span([row[place] for row in trained])}" for place in LOWER)
    text = (
        f"{text}: variance explained, mean of places and of {len(trained)} checkpoints "
        f"({span([row['r2'] for row in trained])}; {places}; shuffled labels {shuffled:.2f})"
    )
    value, low, high = (mean(trained, name) for name in ("r2", "low", "high"))
    return Finding(text, value, low, high, min(row["n"] for row in trained), "untrained models", untrained)


def _selects(words: str, rows: Sequence[Row], hook: str) -> Iterator[Finding]:
    """How often trained units select what the operation needs, and how often they only land there."""
    by_model = {model: where(rows, model=model, hook=hook) for model in (TRAINED, UNTRAINED, SHUFFLED)}
    trained = by_model[TRAINED]
    starts = sum(row["starts"] for row in trained)
    hits = sum(row["starts"] * row["selects"] for row in trained)
    low, high = wilson(round(hits), starts)
    lands_of = ", ".join(f"{name} {mean(part, 'lands'):.2f}" for name, part in by_model.items())
    text = (
        f"{words}: units trained on a_i and b_i as read before the last MLP towards what the model answers: share of "
        f"starts, places and checkpoints that select {trained[0]['expected']} and explain {HOLDS:.0%} "
        f"({span([row['selects'] for row in trained])}); landing there, explaining or not: {lands_of}"
    )
    yield Finding(text, hits / starts, low, high, starts, "untrained models", mean(by_model[UNTRAINED], "selects"))
