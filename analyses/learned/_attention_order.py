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
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from analyses.learned._attention_choices import PAIRS
from analyses.learned._attention_circuits import DIGITS
from analyses.learned._attention_look import CONSTANT, Halves, Seen
from analyses.learned._conditions import GROUPS, PREDICTED, Weights
from analyses.learned._similarity_cka import jackknife
from workbench import evaluation
from workbench.recipe import Architecture, Variant
from workbench.statistics import wilson
from workbench.task import Problems

LEAST = 0.05  # of what is written, by the pair: with less the share that swaps is noise
BATCHES = 20  # of problems, one left out at a time for the interval

Sums = tuple[Float[Tensor, "*batch digit digit d_model"], Int64[Tensor, "*batch digit digit"]]


def _sums(written: Float[Tensor, "problem d_model"], cell: Int64[Tensor, " problem"]) -> Sums:
    """Sum of what is written by batch and pair of digits, and how many problems each has."""
    cell = torch.arange(len(cell)) % BATCHES * DIGITS * DIGITS + cell
    shape = (BATCHES, DIGITS, DIGITS)
    count = cell.bincount(minlength=math.prod(shape))
    total = torch.zeros(len(count), written.shape[1], dtype=written.dtype).index_add_(0, cell, written)
    return total.unflatten(0, shape), count.unflatten(0, shape)


def _parts(first: Sums, second: Sums) -> tuple[float, float, bool]:
    """`swapped` of the means of two halves, and whether both meet some pair of unequal digits in both orders."""
    both = (first[1] > 0) & (second[1] > 0)
    met = (both & both.T).double()
    means = [total / count.clamp(min=1)[..., None] for total, count in (first, second)]
    return *swapped(means[0], means[1], met), bool(met.sum() > met.trace())


def _share(changes: float, stays: float) -> float:
    return changes / (changes + stays) if changes + stays else math.nan


def _interval(first: Sums, second: Sums) -> tuple[float, float]:
    """95% jackknife interval, over batches of problems, of the share that swaps."""
    all_of = [(total.sum(dim=0), count.sum(dim=0)) for total, count in (first, second)]
    shares = [_share(*_parts(*all_of)[:2])]
    for batch in range(BATCHES):
        rest = [
            (total - by_batch[0][batch], count - by_batch[1][batch])
            for (total, count), by_batch in zip(all_of, (first, second), strict=True)
        ]
        shares.append(_share(*_parts(*rest)[:2]))
    _, low, high = jackknife(shares)
    return low, high


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
    by side; of all heads together with a 95% jackknife interval over batches of problems. No number where the pair
    gives less than LEAST, or comes in one order only (the thousands, given the sign).
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
                first, second = (_sums(written[half], cell[half]) for half in halves)
                whole = [(total.sum(dim=0), count.sum(dim=0)) for total, count in (first, second)]
                changes, stays, both_orders = _parts(*whole)
                here = written[torch.cat(halves)]
                variance, square = here.var(dim=0, correction=0).sum().item(), here.square().sum(dim=1).mean().item()
                pair = (changes + stays) / variance if variance > CONSTANT * square else math.nan
                row = {"layer": layer, "head": "all" if head < 0 else str(head), "answer": f"d{place}"}
                row |= {"group": group.group, "n": len(here), "pair": pair}
                known = pair >= LEAST and both_orders
                low, high = _interval(first, second) if known and head < 0 else (math.nan, math.nan)
                share = _share(changes, stays) if known else math.nan
                yield row | {"swapped": share, "swapped_low": low, "swapped_high": high}


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
