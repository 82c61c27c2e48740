"""The logit difference of `attribution` taken apart, problem by problem, and the logit lens.

The residual stream is a sum, and the unembedding is linear without bias or normalisation, so the logit of the correct
digit less that of the runner-up is exactly the sum of what embedding, positions, heads and MLPs add to it ("direct
logit attribution", Elhage et al. 2021), and an MLP's part the sum of its neurons'. The runner-up is the other token, of
all thirteen, with the highest logit; so the difference is above zero exactly when the model is right.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from analyses.learned._conditions import Weights
from workbench import forward
from workbench.recipe import Architecture
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, POSITIONS_READ

CHUNK = 1_000  # problems a forward pass

Chosen = Int64[Tensor, "problem answer"]


@dataclass(frozen=True, eq=False)
class Parts:
    """Of every problem, at the five answer positions.

    `margin`: logit of the correct digit less the runner-up's. `parts`: what each component adds to it. `elsewhere`:
    what each adds to the difference of another problem's two tokens. `neurons`: what each neuron of each layer adds.
    `right`, `lens`: whether each depth's stream, sent straight to the unembedding, gives the correct digit, and its
    log-probability (nats).
    """

    margin: Float[Tensor, "problem answer"]
    parts: Float[Tensor, "problem answer component"]
    elsewhere: Float[Tensor, "problem answer component"]
    neurons: Float[Tensor, "problem answer neuron"]
    right: Float[Tensor, "problem answer depth"]
    lens: Float[Tensor, "problem answer depth"]


def components(architecture: Architecture) -> list[str]:
    """Names of the components, in the order of computation: `embed`, `pos`, `L0H0`.., `L0MLP`, .."""
    names = ["embed", "pos"]
    for layer in range(architecture.n_layers):
        names += [*(f"L{layer}H{head}" for head in range(architecture.n_heads)), f"L{layer}MLP"]
    return names


def depths(architecture: Architecture) -> list[str]:
    """Names of the depths of the logit lens: the stream after the embedding, and after each attention and MLP."""
    return ["embedding"] + [f"after L{n} {part}" for n in range(architecture.n_layers) for part in ("attention", "MLP")]


def runner_up(logits: Float[Tensor, "problem answer d_vocab"], correct: Chosen) -> Chosen:
    """The token other than the correct one with the highest logit, the lower id on a tie."""
    return logits.scatter(2, correct[..., None], -torch.inf).argmax(dim=2)


def _stream(found: Mapping[str, Tensor], architecture: Architecture) -> tuple[Tensor, Tensor]:
    """What each component adds at the answer positions, and the stream at each depth."""
    added = [found["hook_embed"][:, :, None], found["hook_pos_embed"][:, :, None]]
    depth = [found["blocks.0.hook_resid_pre"]]
    for layer in range(architecture.n_layers):
        block = f"blocks.{layer}"
        added += [found[f"{block}.attn.hook_result"], found[f"{block}.hook_mlp_out"][:, :, None]]
        depth += [found[f"{block}.hook_resid_mid"], found[f"{block}.hook_resid_post"]]
    return torch.cat(added, dim=2), torch.stack(depth, dim=2)


def _wanted(architecture: Architecture) -> set[str]:
    names = {"hook_embed", "hook_pos_embed", "blocks.0.hook_resid_pre"}
    parts = ("attn.hook_result", "hook_mlp_out", "mlp.hook_post", "hook_resid_mid", "hook_resid_post")
    return names | {f"blocks.{layer}.{part}" for layer in range(architecture.n_layers) for part in parts}


def _run(
    weights: Weights, tokens: UInt8[Tensor, "problem key"], architecture: Architecture
) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits and the wanted activations at the answer positions."""
    wanted, found = _wanted(architecture), {}

    def tap(name: str, value: Tensor) -> Tensor:
        if name in wanted:
            found[name] = value[:, ANSWER_POSITIONS]
        return value

    extras = forward.Extras(attn_result=True)
    return forward.logits(weights, tokens, architecture, tap, extras)[:, ANSWER_POSITIONS], found


def _directions(
    weights: Weights, tokens: UInt8[Tensor, "problem pos"], architecture: Architecture
) -> tuple[Chosen, Float[Tensor, "problem answer d_model"]]:
    """The runner-up of each problem and what the unembedding reads for the correct token less for it."""
    correct, W_U = tokens[:, ANSWER_TOKENS].long(), weights["unembed.W_U"]
    second = torch.cat(
        [
            runner_up(forward.logits(weights, chunk[:, :POSITIONS_READ], architecture)[:, ANSWER_POSITIONS], right)
            for chunk, right in zip(tokens.split(CHUNK), correct.split(CHUNK), strict=True)
        ]
    )
    return second, (W_U[:, correct] - W_U[:, second]).permute(1, 2, 0)


@torch.no_grad()
def take_apart(
    weights: Weights,
    tokens: UInt8[Tensor, "problem pos"],
    architecture: Architecture,
    other: Int64[Tensor, " problem"],
) -> Parts:
    """Parts of every problem; `other` names the problem whose correct digit and runner-up are the control.

    `tokens` are all sixteen of each problem, the answer being the correct one.
    """
    correct, W_U = tokens[:, ANSWER_TOKENS].long(), weights["unembed.W_U"]
    second, direction = _directions(weights, tokens, architecture)
    kept = []
    for at in torch.arange(len(tokens)).split(CHUNK):
        logits, found = _run(weights, tokens[at, :POSITIONS_READ], architecture)
        along, elsewhere = direction[at], direction[other[at]]
        added, depth = _stream(found, architecture)
        neurons = [
            found[f"blocks.{n}.mlp.hook_post"] * (along @ weights[f"blocks.{n}.mlp.W_out"].T)
            for n in range(architecture.n_layers)
        ]
        margin = (logits.gather(2, correct[at, :, None]) - logits.gather(2, second[at, :, None]))[..., 0]
        lens = (depth @ W_U).log_softmax(dim=-1)
        own = lens.gather(3, correct[at, :, None, None].expand(*lens.shape[:3], 1))[..., 0]
        right = (lens.argmax(dim=-1) == correct[at, :, None]).double()
        parts = (torch.einsum("nacm,nam->nac", added, toward) for toward in (along, elsewhere))
        kept.append((margin, *parts, torch.cat(neurons, dim=2), right, own))
    return Parts(*(torch.cat(values) for values in zip(*kept, strict=True)))
