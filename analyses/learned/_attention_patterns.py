"""Mean patterns of `attention` at the answer positions, by group, and how far they move between groups."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from analyses.learned._conditions import PREDICTED
from workbench.statistics import Z95
from workbench.task import ANSWER_POSITIONS, POSITION_LABELS

Pattern = Float[Tensor, "problem head answer key"]


def pattern_rows(pattern: Pattern, layer: int, groups: Mapping[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    """Mean and standard deviation of every weight from an answer position to it and back, by group."""
    for group, chosen in groups.items():
        here = pattern[torch.from_numpy(chosen)]
        mean, spread = here.mean(dim=0).tolist(), here.std(dim=0, correction=0).tolist()
        for head, by_answer in enumerate(mean):
            for answer, by_key in enumerate(by_answer):
                for key in range(ANSWER_POSITIONS.start + answer + 1):
                    place = {"layer": layer, "head": head, "answer": PREDICTED[answer], "group": group}
                    value = {"key": POSITION_LABELS[key], "weight": by_key[key]}
                    yield place | value | {"sd": spread[head][answer][key], "n": len(here)}


def turns(pattern: Pattern, layer: int, groups: Mapping[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    """How far the mean pattern moves between two groups: half the sum of absolute differences, 0 to 1.

    Its 95% interval holds the signs of the differences fixed and is cut off at 0 and 1. Beside it the same between the
    two halves of the first group, which is what drawing problems alone does.
    """
    means, chosen_of = {}, {}
    for group, chosen in groups.items():
        members = chosen_of[group] = torch.from_numpy(chosen).nonzero()[:, 0]
        parts = members[: len(members) // 2], members[len(members) // 2 :]
        means[group] = [pattern[part].mean(dim=0) for part in (members, *parts)]
    names = [name for name in means if name != "all"]
    for first, second in itertools.pairwise(names):
        moved, drawn = (
            (a - b).abs().sum(dim=-1) / 2 for a, b in ((means[first][0], means[second][0]), means[first][1:])
        )
        signs = (means[first][0] - means[second][0]).sign()
        variance = sum(_along(pattern[chosen_of[name]], signs) for name in (first, second))
        half = Z95 / 2 * torch.as_tensor(variance).sqrt()
        low, high = (moved - half).clamp(min=0), (moved + half).clamp(max=1)
        for head, by_answer in enumerate(moved.tolist()):
            for answer, value in enumerate(by_answer):
                place = {"layer": layer, "head": head, "answer": PREDICTED[answer], "from": first, "to": second}
                ends = {"moved_low": float(low[head, answer]), "moved_high": float(high[head, answer])}
                yield place | {"moved": value} | ends | {"by_drawing": float(drawn[head, answer])}


def _along(pattern: Pattern, signs: Float[Tensor, "head answer key"]) -> Float[Tensor, "head answer"]:
    """Variance of the mean over problems of a pattern's signed sum."""
    return torch.einsum("nhak,hak->nha", pattern, signs).var(dim=0) / len(pattern)
