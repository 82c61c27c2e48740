"""What `clock` says: for every shape, operator and sign, then for each checkpoint, then of the embeddings."""

from collections.abc import Iterator, Sequence

from analyses._rows import Row, grouped, mean, where
from analyses.learned._clock_families import (
    CARRY,
    DIFFERENCE,
    DIFFERENCE_MOD,
    FREQUENCIES,
    LOOKUP,
    ONE_DIGIT,
    RELABELLED,
    SUM,
    SUM_MOD,
    TURNS,
    frequency_of,
)
from analyses.learned._clock_tables import (
    ALL_KINDS,
    LITTLE,
    NOT_THE_PAIR,
    SILENT_KIND,
    frequencies_of,
    of_the_pair,
    span,
)
from workbench.result import Finding
from workbench.statistics import wilson

AT = "over units, tens and hundreds"


def findings(averages: Sequence[Row], counted: Sequence[Row], spectra: Sequence[Row]) -> list[Finding]:
    """Logits, neurons and their frequencies by shape; the kinds of neurons; embeddings."""
    found = []
    for (shape, group), part in grouped(where(averages, model="trained"), "shape", "group").items():
        found.append(_logits(f"{shape}, {group}", where(part, kind="logits")))
        for (layer,), neurons in grouped(where(part, kind="neurons"), "layer").items():
            start = where(averages, model="untrained", shape=shape, group=group, kind="neurons", layer=layer)
            found.append(_neurons(f"{shape}, {group}", layer, neurons, start))
    for (name,), part in grouped(counted, "checkpoint").items():
        found += _kinds(name, part)
    return found + list(_embeddings(spectra))


def _logits(shape: str, rows: Sequence[Row]) -> Finding:
    """How much of the logits is a function of the answer's clock, and of its frequency 1."""
    clock, name = (SUM_MOD, SUM) if rows[0]["group"] == "addition" else (DIFFERENCE_MOD, DIFFERENCE)
    first = [of_the_pair(row, frequency_of(name, 1)) for row in rows]
    present = [" ".join(map(str, frequencies_of(row, name))) or "none" for row in rows]
    text = (
        f"{shape}: share of the logits' variance that is a function of the {clock} (and the carry), {AT}, mean of "
        f"{len(rows)} checkpoints ({span([row[clock] for row in rows])}); of what they hold of the pair, frequency 1 "
        f"has {span(first)} (of a flat spectrum {2 / 9:.2f}); frequencies there: {'; '.join(dict.fromkeys(present))}"
    )
    low, high = mean(rows, f"{clock} low"), mean(rows, f"{clock} high")
    control = "the same after renaming the digits"
    return Finding(text, mean(rows, clock), low, high, _fewest(rows), control, mean(rows, clock + RELABELLED))


def _neurons(shape: str, layer: int, rows: Sequence[Row], untrained: Sequence[Row]) -> Finding:
    """How the neurons' variance over the pair divides."""
    said = ", ".join(
        f"{family} {span([of_the_pair(row, family) for row in rows])} (random table {values / 99:.2f})"
        for family, values in {ONE_DIGIT: 18, SUM: 18, DIFFERENCE: 18, TURNS: 17}.items()
    )
    pair = [row[LOOKUP] - row[CARRY] for row in rows]
    text = (
        f"{shape}: share of what the MLP neurons of layer {layer} write that varies with the digit pair beyond its "
        f"carry, {AT}, mean of {len(rows)} checkpoints ({span(pair)}); of that a function of: {said}; verdicts "
        f"{', '.join(dict.fromkeys(row['verdict'] for row in rows))}"
    )
    carry = mean(rows, CARRY)
    value, low, high = (mean(rows, LOOKUP + end) - carry for end in ("", " low", " high"))
    control = mean(untrained, LOOKUP) - mean(untrained, CARRY)
    return Finding(text, value, low, high, _fewest(rows), "untrained models", control)


def _fewest(rows: Sequence[Row]) -> int:
    return min(row["n"] for row in rows)


def _kinds(checkpoint: str, rows: Sequence[Row]) -> Iterator[Finding]:
    """Of each checkpoint, which kinds its neurons are of, all operators, signs and places together."""
    shares = {}
    for model in ("trained", "untrained"):
        totals = {kind: sum(row[kind] for row in where(rows, model=model)) for kind in ALL_KINDS if kind != SILENT_KIND}
        heard = sum(totals.values())
        shares[model] = {kind: count / heard for kind, count in totals.items() if count}, heard
    (trained, heard), (untrained, there) = shares.values()
    if not (heard and there):
        return
    of_kinds = ", ".join(f"{kind} {share:.2f}" for kind, share in trained.items())
    text = (
        f"{checkpoint}: share of neurons that are about the pair (at least {LITTLE:.0%} of their variance), over "
        f"layers, places, operators and signs, silent ones left out; kinds: {of_kinds}"
    )
    about = 1 - trained.get(NOT_THE_PAIR, 0)
    low, high = wilson(round(about * heard), heard)
    yield Finding(text, about, low, high, heard, "untrained model", 1 - untrained.get(NOT_THE_PAIR, 0))


def _embeddings(spectra: Sequence[Row]) -> Iterator[Finding]:
    """Share of frequency 1 in embedding and unembedding."""
    for matrix, what in (("W_E", "the digits' embedding"), ("W_U", "the digits' unembedding")):
        rows, start = (where(spectra, matrix=matrix, model=model) for model in ("trained", "untrained"))
        if not (rows and start):
            continue
        names = [*(f"k={k}" for k in FREQUENCIES), "line"]
        all_of = ", ".join(f"{name} {span([row[name] for row in rows])}" for name in names)
        text = (
            f"{what}: share of its variance at frequency 1, mean of {len(rows)} checkpoints with lowest and highest "
            f"({all_of}; a straight line of the digit has k=1 0.63, random rows 0.22)"
        )
        first = [row["k=1"] for row in rows]
        yield Finding(
            text, mean(rows, "k=1"), min(first), max(first), len(rows), "untrained models", mean(start, "k=1")
        )
