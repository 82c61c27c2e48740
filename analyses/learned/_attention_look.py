"""What `attention` looks at: one layer on every problem, in two halves of each group; and variance explained."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from analyses.learned._conditions import Weights
from workbench.activations.collect import collect
from workbench.forward import head_results
from workbench.probe import resamples
from workbench.recipe import Architecture
from workbench.task import ANSWER_POSITIONS

CHUNK = 2_000  # problems a forward pass
CONSTANT = 1e-12  # of a mean square: less variance than this is rounding
TOKENS = 13


@dataclass(frozen=True, eq=False)
class Seen:
    """One layer on every problem: what enters it, and its heads at the answer positions."""

    resid_pre: Float[Tensor, "problem key d_model"]
    scores: Float[Tensor, "problem head answer key"]
    pattern: Float[Tensor, "problem head answer key"]
    result: Float[Tensor, "problem head answer d_model"]


def look(weights: Weights, tokens: UInt8[Tensor, "problem key"], architecture: Architecture, layer: int) -> Seen:
    """Runs the model as far as this layer."""
    block = f"blocks.{layer}"
    hooks = [f"{block}.{name}" for name in ("hook_resid_pre", "attn.hook_attn_scores", "attn.hook_pattern")]
    parts: list[tuple[Tensor, ...]] = []
    for chunk in tokens.split(CHUNK):
        found = collect(weights, chunk, architecture, [*hooks, f"{block}.attn.hook_z"])
        resid, scores, pattern = (found[hook] for hook in hooks)
        z = found[f"{block}.attn.hook_z"][:, ANSWER_POSITIONS]
        result = head_results(z, weights[f"{block}.attn.W_O"]).transpose(1, 2)
        parts.append((resid, scores[:, :, ANSWER_POSITIONS], pattern[:, :, ANSWER_POSITIONS], result))
    return Seen(*(torch.cat(kind) for kind in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class Halves:
    """Problems of one group: what is fitted on, what is scored, and bootstrap resamples of the second."""

    group: str
    fitting: Int[Tensor, " fitted"]
    scoring: Int[Tensor, " scored"]
    counts: Float[Tensor, "replicate scored"]


def halves(groups: Mapping[str, np.ndarray], seed: int) -> list[Halves]:
    """Each group in two halves by the order of its problems; groups of fewer than four problems are left out."""
    found = []
    for name, chosen in groups.items():
        members = torch.from_numpy(chosen).nonzero()[:, 0]
        half = len(members) // 2
        if half >= 2:
            scoring = members[half:]
            found.append(Halves(name, members[:half], scoring, resamples(len(scoring), seed)))
    return found


def explained(
    error: Float[Tensor, "row problem"],
    spread: Float[Tensor, "row problem"],
    square: Float[Tensor, " row"],
    counts: Float[Tensor, "replicate problem"],
) -> Float[Tensor, "3 row"]:
    """`1 - sum error / sum spread` of each row with its 95% bootstrap interval; NaN where nothing varies.

    `square` is a sum of squares against which variance is judged to be rounding.
    """
    constant = spread.sum(dim=1) <= CONSTANT * square
    resampled = 1 - (error @ counts.T) / (spread @ counts.T)
    low, high = resampled.nan_to_num(0, 0, 0).quantile(torch.tensor([0.025, 0.975], dtype=error.dtype), dim=1)
    value = 1 - error.sum(dim=1) / spread.sum(dim=1)
    return torch.stack([value, low, high]).masked_fill(constant, torch.nan)


def one_hot(tokens: UInt8[Tensor, "problem key"]) -> Float[Tensor, "problem key_token"]:
    """1 in the column of each position's token."""
    return torch.nn.functional.one_hot(tokens.long(), TOKENS).double().flatten(1)
