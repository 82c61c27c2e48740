"""Whether what the heads of `attention` write tells the first operand's digit from the second's.

Asked after the first of the twelve had been seen. A head that looks at both digits of a place and chooses by the digit
alone writes a function of the unordered pair. Addition needs no more; subtraction does, at every place but the top one
(there the sign tells). Of the units digits of subtractions a function of the unordered pair, operator and sign cannot
have more than 0.600 right (`best_without_order`); table `units` puts that beside what each model has right.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from analyses.learned._attention_choices import PAIRS
from analyses.learned._attention_circuits import DIGITS
from analyses.learned._attention_look import CONSTANT, Halves, Seen
from analyses.learned._conditions import GROUPS, PREDICTED, Weights
from workbench import evaluation
from workbench.recipe import Architecture, Variant
from workbench.statistics import wilson
from workbench.task import Problems

LEAST = 0.05  # of what is written, by the pair: with less the share that swaps is noise


def _table(written: Float[Tensor, "problem d_model"], cell: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of what is written by pair of digits, and how many problems each pair has."""
    total = torch.zeros(DIGITS * DIGITS, written.shape[1], dtype=written.dtype).index_add_(0, cell, written)
    count = cell.bincount(minlength=DIGITS * DIGITS)
    shape = (DIGITS, DIGITS)
    return (total / count.clamp(min=1)[:, None]).unflatten(0, shape), count.unflatten(0, shape)


def swapped(
    first: Float[Tensor, "digit digit d_model"],
    second: Float[Tensor, "digit digit d_model"],
    met: Float[Tensor, "digit digit"],
) -> tuple[float, float]:
    """(changes, stays): mean squares of a table's parts that do and do not change sign when the two digits swap.

    The table, less its mean, is `symmetric + antisymmetric`. Each size is an inner product of two independent
    estimates, so that noise adds nothing on average. `met` is 1 for pairs that both estimates have seen in both orders.
    """
    n = met.sum().clamp(min=1)
    odd = [(table - table.transpose(0, 1)) / 2 * met[..., None] for table in (first, second)]
    even = [(table + table.transpose(0, 1)) / 2 for table in (first, second)]
    even = [(table - (table * met[..., None]).sum(dim=(0, 1)) / n) * met[..., None] for table in even]
    changes, stays = (((one * other).sum() / n).item() for one, other in (odd, even))
    return changes, stays


def order_rows(
    seen: Seen, layer: int, tokens: UInt8[Tensor, "problem key"], groups: list[Halves]
) -> Iterator[dict[str, Any]]:
    """One row a group, answer digit d3..d0 and head (and all heads together), about the two digits of its place.

    `pair` is the share of what is written that a table of the two digits gives; `swapped` the share of that table's
    variance that changes sign when they swap places: 0 for a function of the unordered pair, 0.5 for both digits side
    by side. No number where the pair gives less than LEAST, or comes in one order only (the thousands, given the sign).
    """
    n_heads = seen.result.shape[1]
    for group in groups:
        halves = (group.fitting, group.scoring)
        for place, (a, b) in PAIRS.items():
            answer = PREDICTED.index(f"d{place}")
            cell = tokens[:, a].long() * DIGITS + tokens[:, b].long()
            summed = seen.result[:, :, answer].sum(dim=1)
            for head in (*range(n_heads), -1):
                written = summed if head < 0 else seen.result[:, head, answer]
                (first, n), (second, m) = (_table(written[half], cell[half]) for half in halves)
                both = (n > 0) & (m > 0)
                met = (both & both.T).double()
                changes, stays = swapped(first, second, met)
                here = written[torch.cat(halves)]
                variance, square = here.var(dim=0, correction=0).sum().item(), here.square().sum(dim=1).mean().item()
                pair = (changes + stays) / variance if variance > CONSTANT * square else math.nan
                row = {"layer": layer, "head": "all" if head < 0 else str(head), "answer": f"d{place}"}
                row |= {"group": group.group, "n": len(here), "pair": pair}
                known = pair >= LEAST and met.sum() > met.trace()
                yield row | {"swapped": changes / (changes + stays) if known else math.nan}


def best_without_order(group: str) -> float:
    """The most units digits that a function of the unordered pair of units digits can have right, given the group.

    Exact, over all problems: of the upper three digits, 499,500 pairs of a thousand by a thousand have a above b, as
    many below, and 1,000 are equal, where the units decide the sign.
    """
    if group == GROUPS[0]:
        return 1.0
    a, b = np.divmod(np.arange(DIGITS * DIGITS), DIGITS)
    positive = group == GROUPS[1]
    weight = 499_500 + 1_000 * (a >= b if positive else a < b)
    digit = (a - b if positive else b - a) % DIGITS
    unordered = np.minimum(a, b) * DIGITS + np.maximum(a, b)
    table = np.zeros((DIGITS * DIGITS, DIGITS))
    np.add.at(table, (unordered, digit), weight)
    return float(table.max(axis=1).sum() / weight.sum())


def unit_rows(
    weights: Weights, architecture: Architecture, problems: Problems, variant: Variant, groups: dict[str, np.ndarray]
) -> Iterator[dict[str, Any]]:
    """One row an operator and sign: the share of units digits right, with its Wilson interval, beside the bound."""
    right = evaluation.run(weights, architecture, problems, variant).digits[:, PREDICTED.index("d0")]
    for group, chosen in groups.items():
        if group != "all":
            n, count = int(chosen.sum()), int(right[chosen].sum())
            low, high = wilson(count, n)
            row = {"group": group, "right": count / n, "low": low, "high": high, "n": n}
            yield row | {"best_without_order": best_without_order(group)}
