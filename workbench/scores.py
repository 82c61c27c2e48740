"""Counts of right answers over a group of problems, and the proportions and intervals that follow. No torch here."""

from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput
from workbench.recipe import build, check_types
from workbench.statistics import wilson


@dataclass(frozen=True)
class Score:
    """Counts over a group of problems; proportions and intervals follow from them."""

    n: int
    loss: float
    digits_right: int
    sequences_right: int
    signs_right: int

    @property
    def digit_acc(self) -> float:
        """Share of the 5n answer digits that are right."""
        return self.digits_right / (5 * self.n)

    @property
    def seq_acc(self) -> float:
        """Share of problems with all five digits right."""
        return self.sequences_right / self.n

    @property
    def sign_acc(self) -> float:
        """Share of problems whose sign the model would produce itself (about 0: no loss ever fell on it)."""
        return self.signs_right / self.n

    @property
    def seq_interval(self) -> tuple[float, float]:
        """95% Wilson interval of `seq_acc`, n problems."""
        return wilson(self.sequences_right, self.n)

    @property
    def digit_interval(self) -> tuple[float, float]:
        """95% Wilson interval of `digit_acc`, taking a problem's five digits as independent: a little narrow."""
        return wilson(self.digits_right, 5 * self.n)

    @property
    def sign_interval(self) -> tuple[float, float]:
        """95% Wilson interval of `sign_acc`, n problems."""
        return wilson(self.signs_right, self.n)

    def row(self) -> dict[str, Any]:
        """The score as one flat table row."""
        row: dict[str, Any] = {"n": self.n, "loss": self.loss}
        for name in ("digit", "seq", "sign"):
            row[f"{name}_acc"] = getattr(self, f"{name}_acc")
            row[f"{name}_low"], row[f"{name}_high"] = getattr(self, f"{name}_interval")
        return row


def stored_score(counts: Any) -> Score:
    """The score stored as plain values; BadInput when a field is missing, unknown or no count over `n` problems."""
    score: Score = build(Score, counts, "a score")
    check_types(score)
    rights = ((score.digits_right, 5 * score.n), (score.sequences_right, score.n), (score.signs_right, score.n))
    if score.n < 1 or score.loss < 0 or not all(0 <= right <= most for right, most in rights):
        raise BadInput(f"a score is not one of n problems: {str(counts)[:120]}")
    return score
