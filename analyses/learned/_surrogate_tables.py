"""Tables and findings of `surrogate`: accuracy that survives, its explained share, the smallest set that does it."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float

from analyses._rows import Row, Share, grouped, where
from analyses.learned._conditions import PREDICTED, shape_of
from analyses.learned._surrogate_features import ANSWER, CARRIES, NESTED, NOTHING, SETS, SHUFFLED, TOLD, TOTALS
from analyses.learned._surrogate_measure import Outcome
from analyses.learned._surrogate_swap import ceiled, parts_of, replacements
from workbench.checkpoint import Checkpoint
from workbench.probe import resamples
from workbench.recipe import Architecture
from workbench.result import Finding

# Thresholds of the rules, written before the twelve were measured.
MATTERS = 0.05  # accuracy lost with the mean in a part's place, from which it makes sense to ask what brings it back
EXPLAINED = 0.95  # share of the lost accuracy that a set must bring back to explain a part
REPLICATES = 400  # bootstrap resamples behind an interval of explained accuracy
CONSTANT = 1e-9  # squares a value below which a part writes the same for every problem
BLIND = tuple(name for name in NESTED if name not in TOLD)  # sets from which the answer cannot be read off
NONE, IDLE = "none", "does not matter"  # in place of the smallest set that explains


def rows_of(checkpoint: Checkpoint, outcomes: Sequence[Outcome], seed: int) -> Iterator[Row]:
    """One row a replacement, feature set and operator; `ceiling` where the set is the ceiling of what is replaced."""
    architecture = checkpoint.config.architecture
    who = {"checkpoint": checkpoint.name, "shape": shape_of(checkpoint), "seed": checkpoint.config.seed}
    operators = dict.fromkeys(one.group.operator for one in outcomes)
    for operator in operators:
        chosen = [one for one in outcomes if one.group.operator == operator]
        yield from _of_operator(architecture, chosen, who | {"operator": operator}, seed)


def _of_operator(architecture: Architecture, outcomes: Sequence[Outcome], who: Row, seed: int) -> Iterator[Row]:
    right = np.concatenate([one.group.right for one in outcomes])
    own = np.concatenate([one.own for one in outcomes])
    full, n = (own == right).all(axis=1), len(right)
    counts = resamples(n, seed, REPLICATES).numpy()
    for name in replacements(architecture):
        digits = {of: np.concatenate([one.digits[name, of] for one in outcomes]) for of in SETS}
        correct = {of: (said == right).all(axis=1) for of, said in digits.items()}
        matters = full.mean() - correct[NOTHING].mean() >= MATTERS
        for of, said in digits.items():
            same = (said == own).all(axis=1)
            accuracy, agreement, whole = (Share(int(hits.sum()), n) for hits in (correct[of], same, full))
            explained = _explained(correct[of], correct[NOTHING], full, counts) if matters else (math.nan,) * 3
            wrong = ~full
            row = {**who, "replaced": name, "features": of, "n": n}
            row |= {"ceiling": of == ANSWER and ceiled(name, architecture)}
            row |= {"accuracy": accuracy.share, "low": accuracy.low, "high": accuracy.high, "full": whole.share}
            row |= dict(zip(("explained", "explained_low", "explained_high"), explained, strict=True))
            row |= {"agreement": agreement.share, "agreement_low": agreement.low, "agreement_high": agreement.high}
            row |= {"digit_agreement": float((said == own).mean())}
            row |= {"wrong": int(wrong.sum()), "same_wrong": float(same[wrong].mean()) if wrong.any() else math.nan}
            row |= {place: float((said == right)[:, i].mean()) for i, place in enumerate(PREDICTED)}
            yield row | _r2(architecture, outcomes, name, of)


def _explained(
    correct: np.ndarray, nothing: np.ndarray, full: np.ndarray, counts: Float[np.ndarray, "replicate problem"]
) -> tuple[float, float, float]:
    """`(correct - nothing) / (full - nothing)` with a 95% bootstrap interval over problems, which all three share."""
    gained, lost = (of.astype(float) - nothing for of in (correct, full))
    above, below = counts @ gained, counts @ lost
    low, high = np.quantile(above / np.maximum(below, 1), [0.025, 0.975])  # a resample without a loss counts as one
    return gained.sum() / lost.sum(), float(low), float(high)


def _r2(architecture: Architecture, outcomes: Sequence[Outcome], name: str, of: str) -> Row:
    """Variance of the replaced parts' outputs that the set explains on scored problems, trained and untrained."""
    chosen = [number for number, part in enumerate(parts_of(architecture)) if part in replacements(architecture)[name]]
    found = {}
    for column, fits in (("r2", [one.fit for one in outcomes]), ("untrained_r2", [one.untrained for one in outcomes])):
        error, spread = (
            float(torch.stack([values[chosen] for values in kind]).sum())
            for kind in ([fit.error[of] for fit in fits], [fit.spread for fit in fits])
        )
        n = sum(len(one.own) for one in outcomes) * len(chosen)
        found[column] = 1 - error / spread if spread > CONSTANT * n else math.nan
    return found


def smallest(rows: Sequence[Row]) -> list[Row]:
    """For each replacement the first nested set that brings back EXPLAINED of what `nothing` loses.

    Beside it the accuracy of every set; NaN for `answer digit` where that is no ceiling.
    """
    found = []
    keys = ("checkpoint", "shape", "seed", "operator", "replaced")
    for key, part in grouped(rows, *keys).items():
        sets = {row["features"]: row for row in part}
        reached = [of for of in NESTED if sets[of]["explained"] >= EXPLAINED]
        first = IDLE if math.isnan(sets[NOTHING]["explained"]) else (reached[0] if reached else NONE)
        row = dict(zip(keys, key, strict=True)) | {"smallest": first, "n": part[0]["n"], "full": part[0]["full"]}
        found.append(row | {of: shown(sets[of]) for of in SETS})
    return found


WHOLES = ("all heads", "all MLPs", "everything")


def span(values: Sequence[float]) -> str:
    """`0.31..0.40`, lowest to highest."""
    low, high = (f"{value:.3f}" for value in (min(values), max(values)))
    return low if low == high else f"{low}..{high}"


def shown(row: Row) -> float:
    """Accuracy, NaN of `answer digit` in the place of what writes other things than the digit to predict."""
    return row["accuracy"] if row["features"] != ANSWER or row["ceiling"] else math.nan


def summary(rows: Sequence[Row]) -> list[Row]:
    """Of each shape and operator: accuracy with wholes replaced, lowest..highest over checkpoints, for each set.

    The ceiling, `answer digit`, is empty for heads: they write other things than the digit to predict.
    """
    found = []
    chosen = [row for row in rows if row["replaced"] in WHOLES]
    for (shape, operator, name), part in grouped(chosen, "shape", "operator", "replaced").items():
        row = {"shape": shape, "operator": operator, "replaced": name}
        row |= {of: span([one["accuracy"] for one in where(part, features=of)]) for of in NESTED}
        ceiling = [one["accuracy"] for one in where(part, ceiling=True)]
        row[ANSWER] = span(ceiling) if ceiling else ""
        found.append(row | {"full model": span([one["full"] for one in part])})
    return found


def findings(rows: Sequence[Row], firsts: Sequence[Row]) -> list[Finding]:
    """The gap of everything together, without and with the answer told; all heads; the parts by their smallest set."""
    found = []
    for (shape, operator), part in grouped(rows, "shape", "operator").items():
        words = f"{shape}, {operator}"
        found += [_survives(words, part, name, of) for name in ("everything", "all heads") for of in (CARRIES, TOTALS)]
        found += _agrees(words, part)
        found += _parts(words, where(firsts, shape=shape, operator=operator))
    return found


TELLING = {
    CARRIES: "digits, sums, phases, carries and borrows (no set that spans the answer)",
    TOTALS: "these and each place's total with its carry (which tells the answer)",
}


def _survives(shape: str, rows: Sequence[Row], name: str, of: str) -> Finding:
    """Accuracy with a whole replaced, checkpoints pooled, beside the control; the gap and the seeds in words."""
    chosen = where(rows, replaced=name, features=of)
    accuracy, full = ([row[key] for row in chosen] for key in ("accuracy", "full"))
    gap = span([whole - part for part, whole in zip(accuracy, full, strict=True)])
    text = (
        f"{shape}: accuracy that survives when {name} is a linear readout of {TELLING[of]}, {seeds(accuracy)} "
        f"(full model {span(full)}, gap {gap})"
    ).replace("all heads is a linear readout", "all heads are linear readouts")
    survives, control = (
        pooled(where(rows, replaced=name, features=which), "accuracy", "n") for which in (of, SHUFFLED)
    )
    return Finding(text, survives.share, *survives.interval, survives.n, "shuffled totals", control.share)


def pooled(rows: Sequence[Row], share: str, n: str) -> Share:
    """The problems of all rows together, each row a share of n."""
    return Share(sum(round(row[share] * row[n]) for row in rows), sum(row[n] for row in rows))


def seeds(shares: Sequence[float]) -> str:
    """In words what was pooled, with the lowest and highest of several seeds."""
    if len(shares) == 1:
        return "one seed"
    return f"all problems pooled, lowest to highest of {len(shares)} seeds {min(shares):.3f} to {max(shares):.3f}"


def _agrees(shape: str, rows: Sequence[Row]) -> Iterator[Finding]:
    """How often everything from totals makes the model's own mistake where it makes one; at least 50 of them."""
    chosen = [row for row in where(rows, replaced="everything", features=TOTALS) if row["wrong"] >= 50]
    if not chosen:
        return
    same = pooled(chosen, "same_wrong", "wrong")
    names = {row["checkpoint"] for row in chosen}
    told = [row for row in where(rows, replaced="everything", features=ANSWER) if row["checkpoint"] in names]
    text = (
        f"{shape}: where the model is wrong, how often everything as linear readouts of totals gives its very answer, "
        f"{seeds([row['same_wrong'] for row in chosen])}"
    )
    control = pooled(told, "same_wrong", "wrong").share
    yield Finding(text, same.share, *same.interval, same.n, "told the answer digit alone", control)


def _parts(shape: str, firsts: Sequence[Row]) -> Iterator[Finding]:
    """Of the parts that matter, how many a set explains that does not tell the answer; the parts that none does."""
    parts = [row for row in firsts if row["replaced"] not in WHOLES and row["smallest"] != IDLE]
    if not parts:
        return
    names = [row["smallest"] for row in parts]
    said = ", ".join(f"{name} {names.count(name)}" for name in (*NESTED, NONE) if name in names)
    left = dict.fromkeys(row["replaced"] for row in parts if row["smallest"] == NONE)
    text = (
        f"{shape}: heads and MLPs explained by a set that does not tell the answer, of those that matter in each "
        f"checkpoint; smallest sets: {said}; explained by none in some checkpoint: {', '.join(left) or 'no part'}; "
        "n and interval over parts"
    )
    shuffled = [(row[SHUFFLED] - row[NOTHING]) / (row["full"] - row[NOTHING]) >= EXPLAINED for row in parts]
    share = Share(sum(name in BLIND for name in names), len(names))
    yield Finding(text, share.share, *share.interval, share.n, "shuffled totals", sum(shuffled) / len(shuffled))
