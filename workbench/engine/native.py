"""The same step by the hand-written kernels of `workbench/native`: CPU, float32, the published widths.

The kernels compute loss and gradients in one pass over the batch; here they appear to torch as differentiable
functions. With several threads the batch is cut into as many parts, whose gradients are added in order.
"""

import ctypes
import functools
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from workbench.forward import Weights
from workbench.native.library import TILE, library
from workbench.native.library import missing as library_missing
from workbench.recipe import Architecture
from workbench.task import N_CTX

Residuals = list[Float[Tensor, "batch 5 d_model"]]


def _pointers(tensors: Sequence[Tensor | None]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(tensors))(*[None if x is None else x.data_ptr() for x in tensors])


def _parts(batch: int, count: int) -> list[slice]:
    """At most `count` parts of whole tiles."""
    size = TILE * math.ceil(batch / (TILE * count))
    return [slice(start, min(start + size, batch)) for start in range(0, batch, size)]


def _step(
    weights: Sequence[Tensor],
    tokens: Tensor,
    architecture: Architecture,
    scale: float,
    *,
    gradients: bool,
    out: Residuals | None = None,
    into: Sequence[Tensor | None] | None = None,
) -> tuple[float, Tensor | None]:
    """Summed cross-entropy, and the flat gradient of `scale` times it plus that which comes in at the residuals.

    `out` and `into` hold resid_mid of every layer, then resid_post of every layer.
    """
    n_layers = architecture.n_layers

    def part(rows: slice) -> tuple[float, Tensor | None]:
        flat = torch.empty(architecture.n_params) if gradients else None
        grads = None if flat is None else _pointers(_split(flat, architecture))
        sides: list[Any] = []
        for residuals in (out, into):
            for half in (slice(0, n_layers), slice(n_layers, None)):
                sides.append(residuals and _pointers([r if r is None else r[rows] for r in residuals[half]]))
        given = tokens[rows]
        loss = library().workbench_step(
            _pointers(weights), n_layers, int(architecture.mlp == "bilinear"), ctypes.c_void_p(given.data_ptr()),
            len(given), ctypes.c_float(scale), grads, *sides,
        )  # fmt: skip
        return loss, flat

    parts = _parts(len(tokens), torch.get_num_threads())
    if len(parts) == 1:
        return part(parts[0])
    with ThreadPoolExecutor(len(parts)) as pool:
        found = list(pool.map(part, parts))
    flats = [flat for _, flat in found if flat is not None]
    return sum(loss for loss, _ in found), functools.reduce(torch.add, flats) if flats else None


def _split(flat: Tensor, architecture: Architecture) -> list[Tensor]:
    """Views of a flat vector, one a tensor of the decoder."""
    shapes = list(architecture.shapes.values())
    pieces = flat.split([math.prod(shape) for shape in shapes])
    return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]


class _Loss(torch.autograd.Function):
    """Mean cross-entropy; its gradients are computed on the way forward."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, architecture: Architecture, *weights: Tensor) -> Tensor:
        scale = 1 / (5 * len(tokens))
        wanted = any(ctx.needs_input_grad)
        loss, ctx.flat = _step(weights, tokens, architecture, scale, gradients=wanted)
        ctx.architecture = architecture
        return torch.tensor(loss * scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *_split(ctx.flat * grads[0], ctx.architecture)


class _LossAndResiduals(torch.autograd.Function):
    """Mean cross-entropy, then every layer's resid_mid and resid_post; the way back computes both ways again."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, architecture: Architecture, *weights: Tensor) -> Any:
        scale = 1 / (5 * len(tokens))
        out = [torch.empty(len(tokens), 5, architecture.d_model) for _ in range(2 * architecture.n_layers)]
        loss, _ = _step(weights, tokens, architecture, scale, gradients=False, out=out)
        ctx.save_for_backward(tokens, *weights)
        ctx.architecture = architecture
        return torch.tensor(loss * scale), *out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        tokens, *weights = ctx.saved_tensors
        into = [grad.contiguous() for grad in grads[1:]]
        scale = float(grads[0]) / (5 * len(tokens))
        _, flat = _step(weights, tokens, ctx.architecture, scale, gradients=True, into=into)
        assert flat is not None
        return None, None, *_split(flat, ctx.architecture)


def _given(weights: Weights, tokens: Tensor, architecture: Architecture) -> list[Tensor]:
    """The weights in the kernels' order, as they must lie in memory; ValueError for what the kernels cannot read."""
    if missing := library_missing(architecture):
        raise ValueError(missing)
    for name, shape in architecture.shapes.items():
        weight = weights[name]
        if weight.dtype != torch.float32 or weight.device.type != "cpu" or tuple(weight.shape) != shape:
            raise ValueError(
                f"{name} is {weight.dtype} {list(weight.shape)} on {weight.device}, expected float32 on cpu"
            )
    if tokens.dtype != torch.uint8 or tokens.device.type != "cpu" or tokens.shape[1:] != (N_CTX,) or not len(tokens):
        raise ValueError(f"tokens are {tokens.dtype} {list(tokens.shape)}, expected uint8 [batch, {N_CTX}] on cpu")
    if int(tokens.max()) >= architecture.d_vocab:
        raise ValueError(f"a token is {int(tokens.max())}, expected at most {architecture.d_vocab - 1}")
    return [weights[name].contiguous() for name in architecture.shapes]


def loss(
    weights: Weights,
    tokens: UInt8[Tensor, "batch 16"],
    architecture: Architecture,
) -> Float[Tensor, ""]:
    """Mean cross-entropy (nats a digit) of the five answer digits; `plain.loss` up to rounding."""
    return _Loss.apply(tokens.contiguous(), architecture, *_given(weights, tokens, architecture))  # type: ignore[return-value]


def loss_and_residuals(
    weights: Weights,
    tokens: UInt8[Tensor, "batch 16"],
    architecture: Architecture,
) -> tuple[Float[Tensor, ""], dict[str, Float[Tensor, "batch 5 d_model"]]]:
    """`loss`, and every layer's resid_mid and resid_post at the answer positions 10..14, by hook name."""
    found: Any = _LossAndResiduals.apply(tokens.contiguous(), architecture, *_given(weights, tokens, architecture))
    mids, posts = found[1 : 1 + architecture.n_layers], found[1 + architecture.n_layers :]
    residuals = {}
    for layer, (mid, post) in enumerate(zip(mids, posts, strict=True)):
        residuals |= {f"blocks.{layer}.hook_resid_mid": mid, f"blocks.{layer}.hook_resid_post": post}
    return found[0], residuals
