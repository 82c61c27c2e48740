"""What each head of `attention` reads at the answer positions, and how what it writes follows from that.

TOGETHER and EXPLAINED were written before any number of the twelve was seen. They showed heads that read the two digits
of a place and are no sum of functions of them; *chooses*, and WINS, were asked after three of these had been looked at.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from analyses.learned._attention_look import TOKENS, Halves, Seen, explained, one_hot
from analyses.learned._conditions import PREDICTED
from workbench.statistics import Z95
from workbench.task import ANSWER_POSITIONS, POSITION_LABELS

TOGETHER = 0.75  # mean weight from which positions are what a head reads: three times all that is left
MOST_READ = 2  # positions up to which a head reads something in particular
EXPLAINED = 0.9  # share of what a head writes, from which it is a function of the tokens that it reads
WINS = 0.9  # share of the pair's weight, on average over problems whose two tokens differ, from which one is chosen


def read_positions(mean: Float[Tensor, " key"]) -> tuple[int, ...]:
    """The fewest positions that together take TOGETHER of the mean weight; none if they are more than MOST_READ."""
    order = mean.argsort(descending=True, stable=True)
    reached = mean[order].cumsum(dim=0) >= TOGETHER
    count = int(reached.long().argmax()) + 1 if reached.any() else len(mean)
    return tuple(sorted(order[:count].tolist())) if count <= MOST_READ else ()


def role(read: tuple[int, ...], r2: float, joint: float, winner: float) -> str:
    """What a head does with the tokens it reads, or nothing if it reads none in particular.

    `copies`: it writes a sum of functions of them. Else, of two: `chooses`, a function of the pair, mostly of the one
    that takes the weight; `joins`, another function of the pair. `reads`: what it writes is not a function of them.
    """
    if not read:
        return ""
    if r2 >= EXPLAINED:
        return "copies"
    if joint >= EXPLAINED:
        return "chooses" if winner >= WINS else "joins"
    return "reads"


@dataclass(frozen=True, eq=False)
class _Reading:
    """One head at one answer digit, on the scoring half."""

    read: tuple[int, ...]
    keys: tuple[int, ...]  # what is read, or the most read two
    error: Float[Tensor, " scored"]
    joint_error: Float[Tensor, " scored"]
    weight: Float[Tensor, " scored"]
    winner: float


def _cell_means(
    fitted: Int64[Tensor, " fitted"], scored: Int64[Tensor, " scored"], left: Float[Tensor, "fitted d_model"]
) -> Float[Tensor, "scored d_model"]:
    """Mean of what is left in each cell of a table of token pairs; 0 in cells that the fitting half never meets."""
    total = torch.zeros(TOKENS * TOKENS, left.shape[1], dtype=left.dtype).index_add_(0, fitted, left)
    met = fitted.bincount(minlength=TOKENS * TOKENS).clamp(min=1)
    return (total / met[:, None])[scored]


def _winner(weights: Float[Tensor, "scored 2"], differ: Tensor) -> float:
    """Mean larger share of two positions' weight where their tokens differ; NaN where they never do."""
    shares = weights.amax(dim=1) / weights.sum(dim=1)
    return shares[differ].mean().item()


class _Group:
    """The moments of one group's problems, and what each head's readings are judged on."""

    def __init__(self, seen: Seen, tokens: UInt8[Tensor, "problem key"], group: Halves) -> None:
        x = one_hot(tokens)
        self.tokens, self.halves = tokens.long(), group
        self.fitting, self.scoring = x[group.fitting], x[group.scoring]
        self.target, self.outside = (seen.result[half].flatten(1, 2) for half in (group.fitting, group.scoring))
        self.mean = self.target.mean(dim=0)
        self.gram = self.fitting.T @ self.fitting
        centred = (self.target - self.mean).flatten(1)
        self.cross = (self.fitting.T @ centred).unflatten(1, self.target.shape[1:])
        self.pattern = seen.pattern[group.scoring].flatten(1, 2)
        self.mean_pattern = seen.pattern[group.fitting].mean(dim=0).flatten(0, 1)

    def reading(self, number: int) -> _Reading:
        """Least squares on the tokens of the read positions, then the mean of what is left by pair of tokens."""
        read = read_positions(self.mean_pattern[number])
        keys = read or tuple(self.mean_pattern[number].topk(MOST_READ).indices.tolist())
        columns = torch.cat([torch.arange(key * TOKENS, (key + 1) * TOKENS) for key in keys])
        fit = torch.linalg.pinv(self.gram[columns][:, columns], hermitian=True) @ self.cross[columns, number]
        left, error = (
            values[:, number] - self.mean[number] - x[:, columns] @ fit
            for values, x in ((self.target, self.fitting), (self.outside, self.scoring))
        )
        joint, winner = error, math.nan
        if len(keys) == 2:
            first, second = (self.tokens[:, key] for key in keys)
            cells = first * TOKENS + second
            joint = error - _cell_means(cells[self.halves.fitting], cells[self.halves.scoring], left)
            differ = (first != second)[self.halves.scoring]
            winner = _winner(self.pattern[:, number, list(keys)], differ)
        weight = self.pattern[:, number, list(keys)].sum(dim=1)
        return _Reading(read, keys, error.square().sum(dim=1), joint.square().sum(dim=1), weight, winner)


def head_rows(
    seen: Seen, layer: int, tokens: UInt8[Tensor, "problem key"], groups: list[Halves]
) -> Iterator[dict[str, Any]]:
    """One row a group, head and answer digit: what is read, with which weight, and how much of the output it explains.

    `r2` is for a sum of functions of the tokens read, `joint` for any function of the two; both are fitted on the first
    half of the group and scored on the second.
    """
    _, n_heads, n_answers, _ = seen.result.shape
    for halves in groups:
        group = _Group(seen, tokens, halves)
        readings = [group.reading(number) for number in range(n_heads * n_answers)]
        spread = (group.outside - group.mean).square().sum(dim=2).T
        stream = seen.resid_pre[halves.scoring][:, ANSWER_POSITIONS].square().sum(dim=(0, 2)).repeat(n_heads)
        shares = {
            name: explained(torch.stack(errors), spread, stream, halves.counts)
            for name, errors in (("r2", [r.error for r in readings]), ("joint", [r.joint_error for r in readings]))
        }
        shares = {"weight": _mean_interval(torch.stack([one.weight for one in readings])), **shares}
        varies = group.outside.var(dim=0, correction=0).sum(dim=1) / group.outside.square().sum(dim=2).mean(dim=0)
        for number, one in enumerate(readings):
            head, answer = divmod(number, n_answers)
            row = _where(layer, head, answer, halves) | {"reads": " ".join(POSITION_LABELS[key] for key in one.keys)}
            for name, values in shares.items():
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), values[:, number].tolist(), strict=True))
            r2, joint = shares["r2"][0, number].item(), shares["joint"][0, number].item()
            row |= {"winner": one.winner, "varies": 0.0 if math.isnan(r2) else varies[number].item()}
            yield row | {"role": role(one.read, r2, joint, one.winner)}


def _where(layer: int, head: int, answer: int, group: Halves) -> dict[str, Any]:
    node = f"P{ANSWER_POSITIONS.start + answer}L{layer}H{head}"
    place = {"layer": layer, "head": head, "node": node, "answer": PREDICTED[answer], "group": group.group}
    return place | {"n_fit": len(group.fitting), "n_score": len(group.scoring)}


def _mean_interval(values: Float[Tensor, "row problem"]) -> Float[Tensor, "3 row"]:
    """Mean with the 95% interval of a normal approximation, sound from some tens of problems on."""
    mean, half = values.mean(dim=1), Z95 * values.std(dim=1) / values.shape[1] ** 0.5
    return torch.stack([mean, mean - half, mean + half])
