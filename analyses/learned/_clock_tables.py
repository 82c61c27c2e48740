"""Tables of `clock`: kinds of components, means over places, digits in the Fourier basis. The rules are here."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float

from analyses._rows import Row, grouped, mean, where
from analyses.learned._clock_families import (
    CARRY,
    DIFFERENCE,
    DIFFERENCE_MOD,
    FREQUENCIES,
    LOOKUP,
    ONE_DIGIT,
    SUM,
    SUM_MOD,
    TURNS,
    frequency_of,
)
from analyses.learned._clock_measure import FULL_PLACES, models
from workbench.checkpoint import Checkpoint

# Thresholds of the rules, written before the twelve were measured.
LITTLE = 0.05  # a component with less of its variance in the pair, beyond the carry, is not about the pair
OF_KIND = 0.90  # share of what it holds of the pair from which a component counts as of a kind; a lookup has 18/99
MIXED = 0.50  # and below which no kind describes it: a lookup
SILENT = 1e-3  # a neuron with less of the variance its layer writes is not counted
PRESENT = 0.05  # share from which a frequency counts as there; of a flat spectrum k = 5 has 1/9
KINDS = (ONE_DIGIT, SUM_MOD, DIFFERENCE_MOD, TURNS, SUM, DIFFERENCE)  # the first that fits names the component
NOT_THE_PAIR, LOOKUP_KIND, MIXED_KIND, SILENT_KIND = "not the pair", "lookup", "mixed", "silent"
ALL_KINDS = (*KINDS, MIXED_KIND, LOOKUP_KIND, NOT_THE_PAIR, SILENT_KIND)


def of_the_pair(row: Row, family: str) -> float:
    """What a family holds of the variance over the pair: beyond the carry alone, over what a lookup holds beyond it.

    NaN for a component that is not about the pair (LITTLE).
    """
    pair = row[LOOKUP] - row[CARRY]
    return (row[family] - row[CARRY]) / pair if pair >= LITTLE else float("nan")


def kind_of(row: Row) -> str:
    """The first of KINDS that holds OF_KIND of the pair's variance; else `mixed`, or `lookup` if none holds MIXED."""
    if row[LOOKUP] - row[CARRY] < LITTLE:
        return NOT_THE_PAIR
    held = {kind: of_the_pair(row, kind) for kind in KINDS}
    for kind, share in held.items():
        if share >= OF_KIND:
            return kind
    return MIXED_KIND if max(held.values()) >= MIXED else LOOKUP_KIND


def frequencies_of(row: Row, name: str) -> list[int]:
    """Frequencies of the sum (or difference) that hold at least PRESENT of the pair's variance."""
    return [k for k in FREQUENCIES if of_the_pair(row, frequency_of(name, k)) >= PRESENT]


def kinds(rows: Sequence[Row]) -> Iterator[Row]:
    """How many of one model's neurons are of each kind in each layer, at one place of one operator and sign."""
    for (layer,), part in grouped(where(rows, kind="neuron"), "layer").items():
        loudest = SILENT * sum(row["variance"] for row in part)
        named = [SILENT_KIND if row["variance"] < loudest else kind_of(row) for row in part]
        same = {name: part[0][name] for name in ("checkpoint", "model", "group", "place")}
        yield {**same, "layer": layer, "neurons": len(part)} | {kind: named.count(kind) for kind in ALL_KINDS}


KEYS = ("checkpoint", "shape", "seed", "model", "group", "kind", "layer", "component")


def means(components: Sequence[Row]) -> list[Row]:
    """Each component's shares averaged over units, tens and hundreds, by model, operator and sign.

    At the thousands of a subtraction only 55 pairs occur, so the families are not orthogonal there; table `components`
    has that place. Ends of intervals are averaged too, which is no narrower than the average's own interval.
    """
    found = []
    for key, part in grouped((row for row in components if row["place"] in FULL_PLACES), *KEYS).items():
        numbers = [name for name in part[0] if name not in (*KEYS, "place", "position", "n")]
        row = dict(zip(KEYS, key, strict=True)) | {"n": part[0]["n"]} | {name: mean(part, name) for name in numbers}
        found.append(row | {"verdict": kind_of(row)})
    return found


PARTS = ("neurons", "logits")  # shown in the terminal


def shown(averages: Sequence[Row]) -> list[Row]:
    """Of each shape, operator and sign: what neurons and logits hold of the pair, lowest..highest over checkpoints."""
    found = []
    rows = [row for row in where(averages, model="trained") if row["kind"] in PARTS]
    for (shape, group, name), part in grouped(rows, "shape", "group", "component").items():
        row = {"shape": shape, "group": group, "part": name, "models": len(part)}
        row["pair"] = span([one[LOOKUP] - one[CARRY] for one in part])
        row |= {
            family: span([of_the_pair(one, family) for one in part]) for family in (ONE_DIGIT, SUM_MOD, DIFFERENCE_MOD)
        }
        found.append(row | {"verdict": ", ".join(dict.fromkeys(one["verdict"] for one in part))})
    return found


def span(values: list[float]) -> str:
    """`0.31..0.40`, lowest to highest; `-` when one is not there."""
    if any(np.isnan(values)):
        return "-"
    low, high = (f"{value:.2f}" for value in (min(values), max(values)))
    return low if low == high else f"{low}..{high}"


def spectrum(rows: Float[np.ndarray, "digit d_model"]) -> dict[str, float]:
    """Share of the rows' variance over the ten digits at each frequency, and in a straight line of the digit.

    Random rows have 2/9 at k = 1..4 and 1/9 at k = 5 (cosine and sine count together) and 1/9 in the line; the line
    itself has 0.634 at k = 1.
    """
    centred = rows - rows.mean(axis=0)
    total = np.square(centred).sum()
    power = np.square(np.abs(np.fft.fft(centred, axis=0))).sum(axis=1) / 10
    shares = {f"k={k}": float((power[k] + (power[10 - k] if k < 5 else 0)) / total) for k in FREQUENCIES}
    line = np.arange(10) - 4.5
    return shares | {"line": float(np.square(line @ centred).sum() / (np.square(line).sum() * total))}


def embeddings(checkpoint: Checkpoint) -> Iterator[Row]:
    """Spectra of the digits' embedding, of what each head of layer 0 writes of it, and of the unembedding."""
    for model, weights in models(checkpoint).items():
        digits, attn = weights["embed.W_E"][:10], "blocks.0.attn"
        matrices = {"W_E": digits}
        for head, (W_V, W_O) in enumerate(zip(weights[f"{attn}.W_V"], weights[f"{attn}.W_O"], strict=True)):
            matrices[f"W_E through L0H{head}"] = digits @ W_V @ W_O
        matrices["W_U"] = weights["unembed.W_U"][:, :10].T
        for name, matrix in matrices.items():
            if torch.any(matrix != matrix[0]):
                who = {"checkpoint": checkpoint.name, "model": model, "matrix": name}
                yield who | spectrum(matrix.double().numpy())
