"""The training step as written: every position computed, cross-entropy on the five answer digits."""

import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from workbench import forward
from workbench.recipe import Architecture
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, POSITIONS_READ


def loss(
    weights: forward.Weights,
    tokens: UInt8[Tensor, "batch 16"],
    architecture: Architecture,
) -> Float[Tensor, ""]:
    """Mean cross-entropy (nats a digit) of the five answer digits, given everything before each."""
    logits = forward.logits(weights, tokens[:, :POSITIONS_READ], architecture)[:, ANSWER_POSITIONS]
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, ANSWER_TOKENS].flatten().long())
