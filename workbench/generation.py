"""What a decoder answers when it writes the answer itself, token by token, always the likeliest."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8

from workbench import forward
from workbench.recipe import Architecture
from workbench.task import N_CTX, SIGN_AT, Problems, encode


@dataclass(frozen=True, eq=False)
class Generated:
    """Per problem: the six answer tokens (sign, d4..d0) and the probability the decoder gave each.

    A sign that was given, not generated, has probability 1.
    """

    tokens: UInt8[np.ndarray, "problem 6"]
    probabilities: Float[np.ndarray, "problem 6"]


@torch.no_grad()
def generate(
    weights: forward.Weights,
    architecture: Architecture,
    problems: Problems,
    *,
    give_sign: bool = True,
    hide_sign: bool = False,
) -> Generated:
    """Greedy answers, with the exact sign given (as in training) or with the sign the decoder says itself.

    With `hide_sign` (a decoder of that variant) the digits are always generated after `=`, as in training, and a sign
    of its own is only reported.
    """
    tokens = torch.from_numpy(encode(problems, hide_sign=hide_sign)).to(weights["embed.W_E"].device)
    said = tokens[:, SIGN_AT:].clone()
    probabilities = torch.ones(len(problems), N_CTX - SIGN_AT, dtype=weights["embed.W_E"].dtype)
    for place in range(SIGN_AT + give_sign, N_CTX):
        logits = forward.logits(weights, tokens[:, :place], architecture)[:, -1]
        best, token = logits.softmax(dim=-1).max(dim=-1)
        probabilities[:, place - SIGN_AT] = best.cpu()
        said[:, place - SIGN_AT] = token.to(tokens.dtype)
        if not (hide_sign and place == SIGN_AT):
            tokens[:, place] = token.to(tokens.dtype)
    return Generated(said.cpu().numpy(), probabilities.numpy())
