"""The decoder's mathematics as torch-only functions of named tensors.

Each function takes a `tap`, called as `tap(hook_name, tensor)` at every place TransformerLens names; what it returns is
what the computation goes on with. The hooked decoder passes its HookPoints, export passes a collector, training nothing.
No bias and no normalisation anywhere: `resid_mid = resid_pre + attn_out`, `resid_post = resid_mid + mlp_out`.
"""

import math
from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from workbench.recipe import Architecture

Tap = Callable[[str, Tensor], Tensor]
Weights = Mapping[str, Float[Tensor, "..."]]
Residual = Float[Tensor, "batch pos d_model"]


def untapped(_: str, value: Tensor) -> Tensor:
    """The tap that changes nothing."""
    return value


def _under(prefix: str, tap: Tap) -> Tap:
    return untapped if tap is untapped else lambda name, value: tap(f"{prefix}.{name}", value)


def heads(x: Residual, W: Float[Tensor, "head d_model d_head"]) -> Float[Tensor, "batch pos head d_head"]:
    """`x W` for every head at once: the query, key or value vectors."""
    n_heads, d_model, d_head = W.shape
    return (x @ W.transpose(0, 1).reshape(d_model, n_heads * d_head)).unflatten(-1, (n_heads, d_head))


def attend(
    q: Float[Tensor, "batch query head d_head"],
    k: Float[Tensor, "batch key head d_head"],
    v: Float[Tensor, "batch key head d_head"],
    tap: Tap = untapped,
) -> Float[Tensor, "batch query head d_head"]:
    """Causal softmax attention: `z = softmax(q k^T / sqrt(d_head)) v` per head, each position reading itself and back."""
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    scores = tap("hook_attn_scores", scores.masked_fill(future, -torch.inf))
    pattern = tap("hook_pattern", scores.softmax(dim=-1))
    return torch.einsum("bhqk,bkhd->bqhd", pattern, v)


def merge_heads(z: Float[Tensor, "batch pos head d_head"], W_O: Float[Tensor, "head d_head d_model"]) -> Residual:
    """`sum_h z_h W_O_h`: what attention adds to the residual stream."""
    return z.flatten(-2) @ W_O.flatten(0, 1)


def attention(x: Residual, weights: Weights, layer: int, tap: Tap = untapped) -> Residual:
    """`attn_out` of one layer from its `resid_pre`."""
    name = f"blocks.{layer}.attn"
    q, k, v = (tap(f"hook_{w.lower()}", heads(x, weights[f"{name}.W_{w}"])) for w in "QKV")
    z = tap("hook_z", attend(q, k, v, tap))
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


def logits(
    weights: Weights,
    tokens: Integer[Tensor, "batch pos"],
    architecture: Architecture,
    tap: Tap = untapped,
) -> Float[Tensor, "batch pos d_vocab"]:
    """Logits at every position of at most sixteen tokens."""
    tokens = tokens.int()
    embed = tap("hook_embed", weights["embed.W_E"][tokens])
    positions = weights["pos_embed.W_pos"][: tokens.shape[1]]
    x = embed + tap("hook_pos_embed", positions.expand_as(embed))
    for layer in range(architecture.n_layers):
        block = _under(f"blocks.{layer}", tap)
        x = block("hook_resid_pre", x)
        attn_out = block("hook_attn_out", attention(x, weights, layer, _under(f"blocks.{layer}.attn", tap)))
        x = block("hook_resid_mid", x + attn_out)
        mlp_out = block("hook_mlp_out", mlp(x, weights, layer, _under(f"blocks.{layer}.mlp", tap)))
        x = block("hook_resid_post", x + mlp_out)
    return x @ weights["unembed.W_U"]


def hook_names(architecture: Architecture) -> list[str]:
    """Every name `logits` taps, in the order it computes them."""
    names: list[str] = []

    def note(name: str, value: Tensor) -> Tensor:
        names.append(name)
        return value

    weights = {name: torch.zeros(shape) for name, shape in architecture.shapes.items()}
    logits(weights, torch.zeros(1, 1, dtype=torch.uint8), architecture, note)
    return names
