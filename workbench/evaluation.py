"""Accuracy on given problems: loss, digit, sequence and sign accuracy, by operator and by category."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float

from workbench import forward
from workbench.recipe import Architecture, Variant
from workbench.scores import Score
from workbench.splits import Splits
from workbench.structure import GROUPINGS, categories, category_names
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, EQUALS_AT, MINUS, PLUS, POSITIONS_READ, Problems, encode

CHUNK = 2_000  # problems a forward pass; a whole number of chunks fits a split


@dataclass(frozen=True, eq=False)
class Outcome:
    """Per problem: cross-entropy (nats a digit), which answer digits are right, whether the sign would be."""

    loss: Float[np.ndarray, " problem"]
    digits: Bool[np.ndarray, "problem 5"]
    sign: Bool[np.ndarray, " problem"]

    @property
    def sequence(self) -> Bool[np.ndarray, " problem"]:
        """All five digits right; the same for teacher-forced and generated digits."""
        return np.all(self.digits, axis=1)


@torch.no_grad()
def run(weights: forward.Weights, architecture: Architecture, problems: Problems, variant: Variant = "all") -> Outcome:
    """Teacher-forced outcome of every problem, in the weights' own dtype and on their device."""
    device = weights["embed.W_E"].device
    losses, digits, signs = [], [], []
    for start in range(0, len(problems), CHUNK):
        part = problems[start : start + CHUNK]
        tokens = torch.from_numpy(encode(part, hide_sign=variant == "sign-hidden")).to(device)
        logits = forward.logits(weights, tokens[:, :POSITIONS_READ], architecture)
        answer, target = logits[:, ANSWER_POSITIONS], tokens[:, ANSWER_TOKENS].long()
        loss = F.cross_entropy(answer.flatten(0, 1), target.flatten(), reduction="none")
        losses.append(loss.view(-1, 5).mean(dim=1).double().cpu().numpy())
        digits.append((answer.argmax(dim=-1) == target).cpu().numpy())
        said = logits[:, EQUALS_AT].argmax(dim=-1).cpu().numpy()
        signs.append(said == np.where(part.negative, MINUS, PLUS))
    if not losses:
        return Outcome(np.empty(0), np.empty((0, 5), bool), np.empty(0, bool))
    return Outcome(np.concatenate(losses), np.concatenate(digits), np.concatenate(signs))


def score(outcome: Outcome, chosen: Bool[np.ndarray, " problem"] | None = None) -> Score:
    """The score of all problems, or of the chosen ones."""
    mask = np.ones(len(outcome.loss), bool) if chosen is None else chosen
    return Score(
        n=int(mask.sum()),
        loss=float(outcome.loss[mask].mean()),
        digits_right=int(outcome.digits[mask].sum()),
        sequences_right=int(outcome.sequence[mask].sum()),
        signs_right=int(outcome.sign[mask].sum()),
    )


def operator_masks(problems: Problems) -> dict[str, Bool[np.ndarray, " problem"]]:
    """Which problems are of `all`, `addition` and `subtraction`, leaving out a group with no problems."""
    groups = {"all": np.ones(len(problems), bool), "addition": ~problems.subtract, "subtraction": problems.subtract}
    return {name: mask for name, mask in groups.items() if mask.any()}


def by_operator(outcome: Outcome, problems: Problems) -> dict[str, Score]:
    """Scores of the groups of `operator_masks`."""
    return {name: score(outcome, mask) for name, mask in operator_masks(problems).items()}


def by_category(
    outcome: Outcome, problems: Problems, groupings: Sequence[str] = GROUPINGS
) -> list[tuple[str, str, Score]]:
    """(grouping, category, score) for every category with at least one problem, in reading order."""
    rows = []
    for grouping in groupings:
        found = categories(problems, grouping)
        for name in category_names(grouping):
            if (mask := found == name).any():
                rows.append((grouping, name, score(outcome, mask)))
    return rows


def on_splits(weights: forward.Weights, architecture: Architecture, splits: Splits) -> dict[str, dict[str, Score]]:
    """Scores by split (validation, test) and operator."""
    found = {}
    for name, problems in (("validation", splits.validation), ("test", splits.test)):
        found[name] = by_operator(run(weights, architecture, problems, splits.variant), problems)
    return found
