"""The eager step's order compiled by torch into one program: needs a C++ compiler on CPU, Triton on CUDA.

A program is made for one batch size, which takes half a minute. A batch is filled up to the next power of two with
problems of weight zero, so that the last one of a pass (832 of 1,024) needs no program of its own.
"""

import functools
import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from workbench.engine import eager
from workbench.forward import Weights
from workbench.recipe import Architecture
from workbench.task import ANSWER_TOKENS

Step = Callable[[Weights, Tensor, Tensor], tuple[Tensor, dict[str, Tensor]]]


@functools.cache
def _program(architecture: Architecture, batch: int, device: str, residuals: bool) -> Step:
    """The compiled step for one batch size; weights by name, tokens, and how much each problem counts."""

    def step(weights: Weights, tokens: Tensor, counts: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        logits, found = eager.answer_logits(weights, tokens, architecture)
        losses = F.cross_entropy(logits, tokens.T[ANSWER_TOKENS].long(), reduction="none")
        outward = {name: value.permute(2, 0, 1) for name, value in found.items()} if residuals else {}
        return (losses * counts).sum(), outward

    return torch.compile(step, dynamic=False)


def _run(
    weights: Weights, tokens: Tensor, architecture: Architecture, residuals: bool
) -> tuple[Tensor, dict[str, Tensor]]:
    size = 1 << (len(tokens) - 1).bit_length()
    counts = torch.zeros(size, dtype=weights["embed.W_E"].dtype, device=tokens.device)
    counts[: len(tokens)] = 1 / (5 * len(tokens))
    filled = F.pad(tokens, (0, 0, 0, size - len(tokens)))
    with warnings.catch_warnings():  # of torch about its own compiler
        warnings.simplefilter("ignore")
        loss, found = _program(architecture, size, str(tokens.device), residuals)(weights, filled, counts)
    return loss, {name: value[: len(tokens)] for name, value in found.items()}


def loss(
    weights: Weights,
    tokens: UInt8[Tensor, "batch 16"],
    architecture: Architecture,
) -> Float[Tensor, ""]:
    """Mean cross-entropy (nats a digit) of the five answer digits; `plain.loss` up to rounding."""
    return _run(weights, tokens, architecture, residuals=False)[0]


def loss_and_residuals(
    weights: Weights,
    tokens: UInt8[Tensor, "batch 16"],
    architecture: Architecture,
) -> tuple[Float[Tensor, ""], dict[str, Float[Tensor, "batch 5 d_model"]]]:
    """`loss`, and every layer's resid_mid and resid_post at the answer positions 10..14, by hook name."""
    return _run(weights, tokens, architecture, residuals=True)


def unavailable(device: str) -> str:
    """Why torch cannot compile for this device; empty when it can. Compiles something small once, some seconds."""
    return _tried(torch.device(device).type)


@functools.cache
def _tried(kind: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.compile(lambda x: x.sin() + 1, dynamic=False)(torch.zeros(8, device=kind))
    except Exception as error:  # whatever a broken or missing compiler raises, in any of torch's versions
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return f"torch.compile fails here ({line[:100]})"
    return ""
