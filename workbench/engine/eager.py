"""The same step in a faster order: the batch innermost, the last layer only where an answer is read.

Tensors are [position, feature, batch], so that attention's narrow heads run along the batch. Layer 0 reads token plus
position, so its queries, keys and values are products of a table with one-hot tokens. The last layer's queries, MLP
and unembedding exist at the five answer positions only, and only causal pairs of positions are computed.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from workbench.forward import Weights
from workbench.recipe import Architecture
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, POSITIONS_READ

Inner = Float[Tensor, "pos feature batch"]


def _one_hot(tokens: UInt8[Tensor, "batch 16"], d_vocab: int, dtype: torch.dtype) -> Inner:
    kinds = torch.arange(d_vocab, dtype=torch.uint8, device=tokens.device)[:, None]
    return (tokens.T[:POSITIONS_READ, None, :] == kinds).to(dtype)


def _columns(W: Float[Tensor, "head d_model d_head"]) -> Float[Tensor, "feature d_model"]:
    """The heads' matrices, transposed, below each other."""
    return W.transpose(1, 2).flatten(0, 1)


def _attend(
    q: Float[Tensor, "query feature batch"],
    k: Float[Tensor, "key feature batch"],
    v: Float[Tensor, "key feature batch"],
    n_heads: int,
) -> Float[Tensor, "query feature batch"]:
    """`softmax(q k^T / sqrt(d_head)) v` for queries at the last len(q) positions, a query at a time."""
    q, k, v = (x.unflatten(1, (n_heads, -1)) for x in (q, k, v))
    before = len(k) - len(q)
    outputs = []
    for i, query in enumerate(q / math.sqrt(q.shape[2])):
        pattern = (query * k[: before + i + 1]).sum(dim=2).softmax(dim=0)
        outputs.append((pattern.unsqueeze(2) * v[: before + i + 1]).sum(dim=0).flatten(0, 1))
    return torch.stack(outputs)


def _mlp(x: Inner, weights: Weights, name: str) -> Inner:
    hidden = weights[f"{name}.W_in"].T @ x
    gate = weights.get(f"{name}.W_gate")
    return weights[f"{name}.W_out"].T @ (hidden.relu() if gate is None else (gate.T @ x) * hidden)


def answer_logits(
    weights: Weights, tokens: UInt8[Tensor, "batch 16"], architecture: Architecture
) -> tuple[Float[Tensor, "5 d_vocab batch"], dict[str, Float[Tensor, "5 d_model batch"]]]:
    """Logits of the five answer digits, and resid_mid and resid_post there by hook name, in the weights' dtype."""
    table = weights["embed.W_E"] + weights["pos_embed.W_pos"][:POSITIONS_READ, None]
    one_hot = _one_hot(tokens, architecture.d_vocab, table.dtype)
    x = table.transpose(1, 2) @ one_hot
    residuals = {}
    for layer in range(architecture.n_layers):
        attn = f"blocks.{layer}.attn"
        W_Q, W_K, W_V = (_columns(weights[f"{attn}.W_{letter}"]) for letter in "QKV")
        asked = ANSWER_POSITIONS if layer == architecture.n_layers - 1 else slice(0, POSITIONS_READ)
        if layer == 0:
            tables = [(table @ W.T).transpose(1, 2) for W in (W_Q, W_K, W_V)]
            q, k, v = tables[0][asked] @ one_hot[asked], tables[1] @ one_hot, tables[2] @ one_hot
        else:
            q, k, v = W_Q @ x[asked], W_K @ x, W_V @ x
        x = x[asked] + weights[f"{attn}.W_O"].flatten(0, 1).T @ _attend(q, k, v, architecture.n_heads)
        residuals[f"blocks.{layer}.hook_resid_mid"] = x[-5:]
        x = x + _mlp(x, weights, f"blocks.{layer}.mlp")
        residuals[f"blocks.{layer}.hook_resid_post"] = x[-5:]
    return weights["unembed.W_U"].T @ x, residuals


def loss(
    weights: Weights,
    tokens: UInt8[Tensor, "batch 16"],
    architecture: Architecture,
) -> Float[Tensor, ""]:
    """Mean cross-entropy (nats a digit) of the five answer digits; `plain.loss` up to rounding."""
    logits, _ = answer_logits(weights, tokens, architecture)
    return F.cross_entropy(logits, tokens.T[ANSWER_TOKENS].long())


def loss_and_residuals(
    weights: Weights,
    tokens: UInt8[Tensor, "batch 16"],
    architecture: Architecture,
) -> tuple[Float[Tensor, ""], dict[str, Float[Tensor, "batch 5 d_model"]]]:
    """`loss`, and every layer's resid_mid and resid_post at the answer positions 10..14, by hook name."""
    logits, residuals = answer_logits(weights, tokens, architecture)
    outward = {name: value.permute(2, 0, 1) for name, value in residuals.items()}
    return F.cross_entropy(logits, tokens.T[ANSWER_TOKENS].long()), outward
