"""QK and OV circuits of `attention` over (token, position).

A circuit needs a vector for each token at each position. In layer 0 that is the embedding, exactly. Above it is the
mean of the stream over the fitting problems that have the token there; table `qk` says how much of the scores such a
circuit gives, on other problems. (Elhage et al. 2021 name the circuits; the means and the measures are ours.)
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from analyses.learned._attention_look import TOKENS, Halves, Seen, explained, one_hot
from analyses.learned._conditions import PREDICTED, Weights
from workbench.task import ANSWER_POSITIONS, CHARACTERS, POSITION_LABELS, POSITIONS_READ

OPERAND_POSITIONS = (0, 1, 2, 3, 5, 6, 7, 8)
LEVELS = ("position", "key", "tokens")  # what a score is predicted from: each level knows what the one before knows
DIGITS = 10

PairScores = Float[Tensor, "head answer query_token key key_token"]


@dataclass(frozen=True, eq=False)
class Circuits:
    """One layer's circuits: vectors, how often each token stands at each position, and scores of every pair."""

    vectors: Float[Tensor, "key token d_model"]
    frequency: Float[Tensor, "key token"]
    scores: PairScores

    def levels(self) -> dict[str, PairScores]:
        """Scores as known from the key's position alone, with the key's token, and with the query's token too."""
        query = self.frequency[ANSWER_POSITIONS, :]
        by_key = torch.einsum("haqkt,aq->hakt", self.scores, query)
        by_position = torch.einsum("hakt,kt->hak", by_key, self.frequency)
        shape = self.scores.shape
        spread = (by_position[:, :, None, :, None].expand(shape), by_key[:, :, None].expand(shape), self.scores)
        return dict(zip(LEVELS, spread, strict=True))


def circuits(weights: Weights, seen: Seen, layer: int, tokens: UInt8[Tensor, "problem key"], group: Halves) -> Circuits:
    """The circuits of a layer, from the weights and, above layer 0, from the group's fitting half."""
    x = one_hot(tokens[group.fitting]).unflatten(1, (POSITIONS_READ, TOKENS))
    count = x.sum(dim=0)
    if layer == 0:
        vectors = weights["embed.W_E"] + weights["pos_embed.W_pos"][:POSITIONS_READ, None]
    else:
        resid = seen.resid_pre[group.fitting]
        summed = torch.einsum("nkt,nkm->ktm", x, resid)
        met = count[..., None] > 0
        vectors = torch.where(met, summed / count.clamp(min=1)[..., None], resid.mean(dim=0)[:, None])
    W_Q, W_K = (weights[f"blocks.{layer}.attn.W_{name}"] for name in "QK")
    q = torch.einsum("aqm,hmd->haqd", vectors[ANSWER_POSITIONS], W_Q)
    k = torch.einsum("ktm,hmd->hktd", vectors, W_K)
    scores = torch.einsum("haqd,hktd->haqkt", q, k) / math.sqrt(W_Q.shape[2])
    return Circuits(vectors, count / len(x), scores)


def qk_rows(
    found: Circuits, seen: Seen, layer: int, tokens: UInt8[Tensor, "problem key"], group: Halves
) -> Iterator[dict[str, Any]]:
    """One row a head and answer digit: how much of its scores each level gives on the scoring half.

    Scores less their mean over the keys of a query, which a softmax does not see; so what is explained is the sum of
    squares over keys and problems.
    """
    tokens = tokens[group.scoring].long()
    levels, counts = found.levels(), group.counts
    for answer, name in enumerate(PREDICTED):
        keys = ANSWER_POSITIONS.start + answer + 1  # how many are seen from here
        exact = seen.scores[group.scoring, :, answer, :keys]
        square = exact.square().sum(dim=(0, 2))
        exact = exact - exact.mean(dim=2, keepdim=True)
        spread = exact.square().sum(dim=2).T
        query, place = tokens[:, keys - 1, None], torch.arange(keys)
        shares = {}
        for level, scores in levels.items():
            said = scores[:, answer][:, query, place, tokens[:, :keys]].transpose(0, 1)
            error = (said - said.mean(dim=2, keepdim=True) - exact).square().sum(dim=2).T
            shares[level] = explained(error, spread, square, counts)
        for head in range(exact.shape[1]):
            row: dict[str, Any] = {"layer": layer, "head": head, "answer": name, "n": len(tokens)}
            for level, share in shares.items():
                parts = (f"by_{level}", f"by_{level}_low", f"by_{level}_high")
                row |= dict(zip(parts, share[:, head].tolist(), strict=True))
            yield row


def _digit_outputs(found: Circuits, weights: Weights, layer: int) -> Float[Tensor, "head place digit d_model"]:
    """What a head writes of each digit at each operand position, less its mean over the ten."""
    W_V, W_O = (weights[f"blocks.{layer}.attn.W_{name}"] for name in "VO")
    vectors = found.vectors[list(OPERAND_POSITIONS), :DIGITS]
    vectors = vectors - vectors.mean(dim=1, keepdim=True)
    return torch.einsum("ktm,hmd,hdo->hkto", vectors, W_V, W_O)


def dimensions(vectors: Float[Tensor, "*batch digit d_model"]) -> Float[Tensor, "*batch"]:
    """Participation ratio `(sum v)^2 / sum v^2` of the principal variances: how many dimensions the digits take."""
    values = torch.linalg.svdvals(vectors).square()
    return values.sum(dim=-1).square() / values.square().sum(dim=-1)


def linear_share(vectors: Float[Tensor, "*batch digit d_model"]) -> Float[Tensor, "*batch"]:
    """Share of the centred vectors' variance that is linear in the digit's value; 1/9 for ten unrelated vectors."""
    value = torch.arange(DIGITS, dtype=vectors.dtype) - (DIGITS - 1) / 2
    along = torch.einsum("...tm,t->...m", vectors, value / value.norm())
    return along.square().sum(dim=-1) / vectors.square().sum(dim=(-1, -2))


def ov_rows(found: Circuits, weights: Weights, layer: int) -> Iterator[dict[str, Any]]:
    """One row a head and operand position: size, dimensions and order of what it writes of the ten digits.

    `own_logit` counts the digits whose own logit is the one that the head raises most among ten when its output is sent
    straight to the unembedding; 1 by chance.
    """
    written = _digit_outputs(found, weights, layer)
    straight = written @ weights["unembed.W_U"][:, :DIGITS]
    own = straight.diagonal(dim1=-2, dim2=-1)
    others = straight.masked_fill(torch.eye(DIGITS, dtype=torch.bool), -torch.inf).amax(dim=-1)
    size = written.square().sum(dim=(-1, -2)).div(DIGITS).sqrt()
    columns = {"size": size, "dimensions": dimensions(written), "linear": linear_share(written)}
    columns |= {"own_logit": (own > others).sum(dim=-1)}
    for head in range(len(written)):
        for place, position in enumerate(OPERAND_POSITIONS):
            values = {name: value[head, place].item() for name, value in columns.items()}
            yield {"layer": layer, "head": head, "key": POSITION_LABELS[position], **values}


def score_rows(found: Circuits, layer: int) -> Iterator[dict[str, Any]]:
    """The QK circuit itself, averaged over the query's tokens as they occur: a row a key position and token."""
    scores = found.levels()["key"][:, :, 0].tolist()
    met = (found.frequency > 0).tolist()
    for head, by_answer in enumerate(scores):
        for answer, by_key in enumerate(by_answer):
            for key in range(ANSWER_POSITIONS.start + answer + 1):
                for token in range(TOKENS):
                    if met[key][token]:
                        place = {"layer": layer, "head": head, "answer": PREDICTED[answer], "key": POSITION_LABELS[key]}
                        yield place | {"token": CHARACTERS[token], "score": by_key[key][token]}


def logit_rows(found: Circuits, weights: Weights, layer: int) -> Iterator[dict[str, Any]]:
    """The OV circuit itself: what a head adds to each digit's logit for each digit it reads, less the mean."""
    straight = (_digit_outputs(found, weights, layer) @ weights["unembed.W_U"][:, :DIGITS]).tolist()
    for head, by_place in enumerate(straight):
        for position, by_digit in zip(OPERAND_POSITIONS, by_place, strict=True):
            for digit, values in enumerate(by_digit):
                place = {"layer": layer, "head": head, "key": POSITION_LABELS[position], "digit": digit}
                yield place | {f"logit_{logit}": value for logit, value in enumerate(values)}
