"""The decoder's mathematics as torch-only functions of named tensors.

Each function takes a `tap`, called as `tap(hook_name, tensor)` at every place TransformerLens names; the computation
goes on with what it returns. The hooked decoder passes its HookPoints, export passes a collector, training nothing.
No bias and no normalisation anywhere: `resid_mid = resid_pre + attn_out`, `resid_post = resid_mid + mlp_out`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32, Integer
from torch import Tensor

from workbench.errors import BadInput
from workbench.recipe import Architecture

Tap = Callable[[str, Tensor], Tensor]
Weights = Mapping[str, Float[Tensor, "..."]]
Residual = Float[Tensor, "batch pos d_model"]
PerHead = Float[Tensor, "batch pos head d_model"]


def tensors(
    arrays: Mapping[str, Float32[np.ndarray, "..."]],
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
) -> dict[str, Float[Tensor, "..."]]:
    """A checkpoint's arrays as torch tensors of the given dtype."""
    return {name: torch.from_numpy(array.copy()).to(device, dtype) for name, array in arrays.items()}


@dataclass(frozen=True)
class Extras:
    """Tensors computed only when asked for, each named after the TransformerLens flag that asks for it.

    `attn_in` and `split_qkv_input` exclude each other: both fork the residual stream before the queries.
    """

    attn_result: bool = False  # what each head adds to the stream: attn.hook_result
    attn_in: bool = False  # one copy of resid_pre a head, shared by q, k and v: attn.hook_attn_in
    split_qkv_input: bool = False  # a copy a head for each of q, k and v: attn.hook_q_input, hook_k_input, hook_v_input
    hook_mlp_in: bool = False  # the copy of resid_mid that the MLP reads: hook_mlp_in

    def __post_init__(self) -> None:
        if self.attn_in and self.split_qkv_input:
            raise BadInput("use_attn_in and use_split_qkv_input exclude each other; switch one off first")


NO_EXTRAS = Extras()


def untapped(_: str, value: Tensor) -> Tensor:
    """The tap that changes nothing."""
    return value


def _under(prefix: str, tap: Tap) -> Tap:
    return untapped if tap is untapped else lambda name, value: tap(f"{prefix}.{name}", value)


def heads(x: Residual | PerHead, W: Float[Tensor, "head d_model d_head"]) -> Float[Tensor, "batch pos head d_head"]:
    """`x_h W_h` for every head at once, the query, key or value vectors; `x` is one for all heads or one for each."""
    if x.ndim == 4:
        return torch.einsum("bphm,hmd->bphd", x, W)
    n_heads, d_model, d_head = W.shape
    return (x @ W.transpose(0, 1).reshape(d_model, n_heads * d_head)).unflatten(-1, (n_heads, d_head))


def attend(
    q: Float[Tensor, "batch query head d_head"],
    k: Float[Tensor, "batch key head d_head"],
    v: Float[Tensor, "batch key head d_head"],
    tap: Tap = untapped,
) -> Float[Tensor, "batch query head d_head"]:
    """Causal softmax attention per head: `z = softmax(q k^T / sqrt(d_head)) v`, over the position itself and back."""
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    scores = tap("hook_attn_scores", scores.masked_fill(future, -torch.inf))
    pattern = tap("hook_pattern", scores.softmax(dim=-1))
    return torch.einsum("bhqk,bkhd->bqhd", pattern, v)


def merge_heads(z: Float[Tensor, "batch pos head d_head"], W_O: Float[Tensor, "head d_head d_model"]) -> Residual:
    """`sum_h z_h W_O_h`: what attention adds to the residual stream."""
    return z.flatten(-2) @ W_O.flatten(0, 1)


def head_results(z: Float[Tensor, "batch pos head d_head"], W_O: Float[Tensor, "head d_head d_model"]) -> PerHead:
    """`z_h W_O_h`: what each head adds to the residual stream; their sum is `merge_heads`, up to rounding."""
    return torch.einsum("bphd,hdm->bphm", z, W_O)


def _qkv_inputs(x: Residual, n_heads: int, tap: Tap, extras: Extras) -> tuple[Residual | PerHead, ...]:
    """What the queries, keys and values are read from: `resid_pre`, or copies of it that a tap can change apart."""

    def fork() -> PerHead:
        return x.unsqueeze(2).repeat(1, 1, n_heads, 1)

    if extras.split_qkv_input:
        return tap("hook_q_input", fork()), tap("hook_k_input", fork()), tap("hook_v_input", fork())
    if extras.attn_in:
        return (tap("hook_attn_in", fork()),) * 3
    return x, x, x


def attention(x: Residual, weights: Weights, layer: int, tap: Tap = untapped, extras: Extras = NO_EXTRAS) -> Residual:
    """`attn_out` of one layer from its `resid_pre`."""
    name = f"blocks.{layer}.attn"
    inputs = _qkv_inputs(x, len(weights[f"{name}.W_Q"]), tap, extras)
    q, k, v = (tap(f"hook_{w.lower()}", heads(x, weights[f"{name}.W_{w}"])) for w, x in zip("QKV", inputs, strict=True))
    z = tap("hook_z", attend(q, k, v, tap))
    if extras.attn_result:
        return tap("hook_result", head_results(z, weights[f"{name}.W_O"])).sum(dim=2)
    return merge_heads(z, weights[f"{name}.W_O"])


def relu_mlp(
    x: Residual,
    W_in: Float[Tensor, "d_model d_mlp"],
    W_out: Float[Tensor, "d_mlp d_model"],
    tap: Tap = untapped,
) -> Residual:
    """`W_out ReLU(W_in x)`."""
    return tap("hook_post", tap("hook_pre", x @ W_in).relu()) @ W_out


def bilinear_mlp(
    x: Residual,
    W_gate: Float[Tensor, "d_model d_mlp"],
    W_in: Float[Tensor, "d_model d_mlp"],
    W_out: Float[Tensor, "d_mlp d_model"],
    tap: Tap = untapped,
) -> Residual:
    """`W_out[(W_L x) * (W_R x)]` with W_L named W_gate (hook_pre) and W_R named W_in (hook_pre_linear)."""
    gate = tap("hook_pre", x @ W_gate)
    return tap("hook_post", gate * tap("hook_pre_linear", x @ W_in)) @ W_out


def mlp(x: Residual, weights: Weights, layer: int, tap: Tap = untapped) -> Residual:
    """`mlp_out` of one layer from its `resid_mid`; bilinear when the layer has a W_gate."""
    name = f"blocks.{layer}.mlp"
    W_in, W_out = weights[f"{name}.W_in"], weights[f"{name}.W_out"]
    if f"{name}.W_gate" in weights:
        return bilinear_mlp(x, weights[f"{name}.W_gate"], W_in, W_out, tap)
    return relu_mlp(x, W_in, W_out, tap)


def _embedded(weights: Weights, tokens: Integer[Tensor, "batch pos"], tap: Tap) -> Residual:
    """Token plus position; a tap may write into what it is given, so it gets a copy and never a view of the weights."""
    embed = tap("hook_embed", weights["embed.W_E"][tokens])
    positions = weights["pos_embed.W_pos"][: tokens.shape[1]].expand_as(embed)
    return embed + (positions if tap is untapped else tap("hook_pos_embed", positions.clone()))


def logits(
    weights: Weights,
    tokens: Integer[Tensor, "batch pos"],
    architecture: Architecture,
    tap: Tap = untapped,
    extras: Extras = NO_EXTRAS,
) -> Float[Tensor, "batch pos d_vocab"]:
    """Logits at every position of at most sixteen tokens."""
    x = _embedded(weights, tokens.int(), tap)
    for layer in range(architecture.n_layers):
        block, attn = _under(f"blocks.{layer}", tap), _under(f"blocks.{layer}.attn", tap)
        x = block("hook_resid_pre", x)
        attn_out = block("hook_attn_out", attention(x, weights, layer, attn, extras))
        x = block("hook_resid_mid", x + attn_out)
        mlp_in = block("hook_mlp_in", x.clone()) if extras.hook_mlp_in else x
        mlp_out = block("hook_mlp_out", mlp(mlp_in, weights, layer, _under(f"blocks.{layer}.mlp", tap)))
        x = block("hook_resid_post", x + mlp_out)
    return x @ weights["unembed.W_U"]


def hook_names(architecture: Architecture, extras: Extras = NO_EXTRAS) -> list[str]:
    """Every name `logits` taps, in the order it computes them."""
    names: list[str] = []

    def note(name: str, value: Tensor) -> Tensor:
        names.append(name)
        return value

    weights = {name: torch.zeros(shape) for name, shape in architecture.shapes.items()}
    logits(weights, torch.zeros(1, 1, dtype=torch.uint8), architecture, note, extras)
    return names
