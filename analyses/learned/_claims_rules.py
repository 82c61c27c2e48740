"""When evidence supports or refutes the sources' sentences on the learned decoders: rules, without numbers measured.

Written after the twelve had been counted over the whole domain and before any control model was trained.

Two more are about what the twelve share. "MLP type is the only structural difference" stands beside the 2,048 more
parameters a layer of bilinear: a ReLU of width 96 has bilinear's count at one layer. And models trained with the sign
hidden say whether the sign that the task gives away was needed.

The borrow sentence is "The second layer is buying borrow propagation specifically." What follows from it, for 1-layer
models: where no borrow has to travel they should do as well as on addition, and taking away other difficulties should
not help. So five tests, each on every 1-layer model of an MLP kind, three seeds:

- `no-borrow`: sequence accuracy on subtractions (larger minus smaller) in which no digit borrows;
- `units`: accuracy of the units digit of subtractions, which no borrow reaches;
- `ordered`: sequence accuracy on subtractions with a borrow of models trained on a >= b only, where the direction of
  the difference is never in question;
- `subtraction`: the same, for models trained on subtraction alone, where no layer is shared with addition;
- `direction`: sequence accuracy of 1-layer models on negative against non-negative answers without a borrow.

For the first two a high number is what the sentence predicts, for the next two a low one. The last one only describes.
"""

from collections.abc import Sequence
from typing import Literal

Verdict = Literal["supported", "refuted", "open"]
Test = Literal["holds", "against", "open"]

SOLVED = 0.90  # sequence accuracy from which an operator counts as solved; the lowest that the source calls so is 0.937
FAILED = 0.50  # and up to which it counts as not solved
RIGHT = 0.99  # accuracy from which a single digit counts as known
WRONG = 0.95  # and below which it counts as not known
ALWAYS_ZERO = 0.001  # sign accuracy up to which it is "about 0"
STABLE_RATE = 0.02  # the published learning rate, called the highest at which both kinds are stable


def complete(verdict: Verdict, given: int, wanted: int) -> Verdict:
    """The verdict on a sentence about `wanted` models when `given` were measured: too few refute, but never support."""
    return "open" if verdict == "supported" and given < wanted else verdict


def solved(accuracies: Sequence[float]) -> Verdict:
    """Of "the models have solved": supported if every model has, refuted if one is at FAILED or below."""
    if all(a >= SOLVED for a in accuracies):
        return "supported"
    return "refuted" if any(a <= FAILED for a in accuracies) else "open"


def not_solved(accuracies: Sequence[float]) -> Verdict:
    """Of "the models have not solved": supported if none gets beyond FAILED, refuted if one has solved."""
    if all(a <= FAILED for a in accuracies):
        return "supported"
    return "refuted" if any(a >= SOLVED for a in accuracies) else "open"


def predicted_high(accuracies: Sequence[float], high: float = SOLVED, low: float = FAILED) -> Test:
    """Of a test for which the sentence predicts high accuracy.

    It holds if every seed is at `high` or above, and is against the sentence if every one is below `low`.
    """
    if all(a >= high for a in accuracies):
        return "holds"
    return "against" if all(a < low for a in accuracies) else "open"


def predicted_low(accuracies: Sequence[float], low: float = FAILED, high: float = SOLVED) -> Test:
    """Of a test for which the sentence predicts low accuracy.

    It holds if every seed is at `low` or below, and is against the sentence if every one reaches `high`.
    """
    if all(a <= low for a in accuracies):
        return "holds"
    return "against" if all(a >= high for a in accuracies) else "open"


def borrow_sentence(tests: Sequence[Test]) -> Verdict:
    """Of one MLP kind's four tests: refuted by two that are against, supported if all hold, else open."""
    if sum(test == "against" for test in tests) >= 2:
        return "refuted"
    return "supported" if all(test == "holds" for test in tests) else "open"


def both(kinds: Sequence[Verdict]) -> Verdict:
    """A sentence about all models: refuted if it is for one MLP kind, supported only if it is for each."""
    if "refuted" in kinds:
        return "refuted"
    return "supported" if all(kind == "supported" for kind in kinds) else "open"


def size_explains(narrow: Sequence[float], wide: Sequence[float], bilinear: Sequence[float]) -> float:
    """How much of the difference between the kinds the wider ReLU makes up, of seeds' means; 1 is all of it."""
    base, grown, other = (sum(seeds) / len(seeds) for seeds in (narrow, wide, bilinear))
    return (grown - base) / (other - base)


def sign_needed(hidden: Sequence[float]) -> Verdict:
    """Of "the given sign spares a comparison", from 2-layer models trained without it, on subtraction."""
    return {"supported": "refuted", "refuted": "supported", "open": "open"}[solved(hidden)]  # type: ignore[return-value]


def highest_stable(picked: float | None, *, published_stable: bool) -> Verdict:
    """Of "the highest rate at which both remain stable": the published one must be stable, and the one picked.

    Where a higher one is stable too, the sentence is open: the source does not say what it called stable.
    """
    if not published_stable:
        return "refuted"
    return "supported" if picked == STABLE_RATE else "open"
