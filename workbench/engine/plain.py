"""The training step as written: every position computed, cross-entropy on the five answer digits."""

from collections.abc import Collection

import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from workbench import forward
from workbench.recipe import Architecture
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, POSITIONS_READ


def _loss(
    weights: forward.Weights, tokens: UInt8[Tensor, "batch 16"], architecture: Architecture, tap: forward.Tap
) -> Float[Tensor, ""]:
    logits = forward.logits(weights, tokens[:, :POSITIONS_READ], architecture, tap)[:, ANSWER_POSITIONS]
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, ANSWER_TOKENS].flatten().long())


def loss(
    weights: forward.Weights,
    tokens: UInt8[Tensor, "batch 16"],
    architecture: Architecture,
) -> Float[Tensor, ""]:
    """Mean cross-entropy (nats a digit) of the five answer digits, given everything before each."""
    return _loss(weights, tokens, architecture, forward.untapped)


def loss_and_residuals(
    weights: forward.Weights,
    tokens: UInt8[Tensor, "batch 16"],
    architecture: Architecture,
) -> tuple[Float[Tensor, ""], dict[str, Float[Tensor, "batch 5 d_model"]]]:
    """`loss`, and every layer's resid_mid and resid_post at the answer positions 10..14, by hook name."""
    sites = [f"blocks.{i}.hook_resid_{part}" for i in range(architecture.n_layers) for part in ("mid", "post")]
    return loss_and_sites(weights, tokens, architecture, sites)


def loss_and_sites(
    weights: forward.Weights,
    tokens: UInt8[Tensor, "batch 16"],
    architecture: Architecture,
    sites: Collection[str],
) -> tuple[Float[Tensor, ""], dict[str, Float[Tensor, "batch 5 width"]]]:
    """`loss`, and what passes the hooks named in `sites` at the answer positions 10..14."""
    found = {}

    def keep(name: str, value: Tensor) -> Tensor:
        if name in sites:
            found[name] = value[:, ANSWER_POSITIONS]
        return value

    return _loss(weights, tokens, architecture, keep), found
