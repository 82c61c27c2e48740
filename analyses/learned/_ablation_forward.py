"""Clean activations of a batch of problems, and the answers when what some part writes is replaced.

A part's write is what it adds to the residual stream, so replacing a write is replacing the activation behind it: a
head's result, the MLP's output, a neuron's value times its row of W_out. Nothing before the part is computed again, and
of the last layer only the five positions that predict an answer digit.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from workbench import forward
from workbench.recipe import Architecture
from workbench.task import ANSWER_POSITIONS, POSITION_LABELS, POSITIONS_READ

Part = Literal["layer", "attention", "head", "MLP", "neuron"]
ANSWER = range(ANSWER_POSITIONS.start, ANSWER_POSITIONS.stop)
ALL = "all"  # positions at once


GROUPS = (range(0, 5), range(5, 9), range(9, 10), ANSWER)  # a3..op, b3..b0, =, s..d1


@dataclass(frozen=True)
class Node:
    """A part of a layer at some positions; none given means all from which it reaches an answer."""

    layer: int
    part: Part
    number: int = 0  # of the head or neuron
    positions: tuple[int, ...] = ()

    @property
    def component(self) -> str:
        """The part's name without a position: L0H2, L1MLP, L1M17 for neuron 17, `L0` for a whole layer."""
        short = {"head": f"H{self.number}", "neuron": f"M{self.number}", "MLP": "MLP", "attention": "attn", "layer": ""}
        return f"L{self.layer}{short[self.part]}"

    @property
    def name(self) -> str:
        """As the closest peer draws it: P12L0H2 is head 2 of layer 0 at position 12; without P, at all positions."""
        if not self.positions:
            return self.component
        return "P" + "-".join(map(str, sorted({self.positions[0], self.positions[-1]}))) + self.component

    @property
    def label(self) -> str:
        """The token that stands at the position, or those at the first and last one."""
        ends = dict.fromkeys(POSITION_LABELS[at] for at in (self.positions[:1] + self.positions[-1:]))
        return "..".join(ends) or ALL

    def places(self, architecture: Architecture) -> list[int]:
        """The positions at which it is replaced."""
        return list(self.positions or reaching(architecture, self.layer))


def reaching(architecture: Architecture, layer: int) -> range:
    """Positions from which a layer's writes reach an answer: in the last layer, where answer digits are predicted."""
    return ANSWER if layer == architecture.n_layers - 1 else range(POSITIONS_READ)


def components(architecture: Architecture) -> Iterator[Node]:
    """Every layer, its attention, heads, MLP and neurons, at all positions at once."""
    for layer in range(architecture.n_layers):
        yield from (Node(layer, part) for part in ("layer", "attention"))
        yield from (Node(layer, "head", number) for number in range(architecture.n_heads))
        yield Node(layer, "MLP")
        yield from (Node(layer, "neuron", number) for number in range(architecture.d_mlp))


def groups(architecture: Architecture) -> Iterator[Node]:
    """Every layer but the last at each of GROUPS."""
    for layer in range(architecture.n_layers - 1):
        yield from (Node(layer, "layer", positions=tuple(positions)) for positions in GROUPS)


def nodes(architecture: Architecture, neurons: bool) -> Iterator[Node]:
    """Every head and MLP, and every neuron if told, at every single position from which it reaches an answer."""
    for node in components(architecture):
        if node.part in ("head", "MLP") or (neurons and node.part == "neuron"):
            for position in reaching(architecture, node.layer):
                yield replace(node, positions=(position,))


@dataclass(frozen=True, eq=False)
class Clean:
    """A decoder and its activations on a batch, by hook name."""

    weights: forward.Weights
    architecture: Architecture
    seen: dict[str, Float[Tensor, "problem pos ..."]]

    @classmethod
    @torch.no_grad()
    def of(cls, weights: forward.Weights, architecture: Architecture, tokens: Integer[Tensor, "problem 16"]) -> "Clean":
        """Runs the decoder once."""
        wanted = ("attn.hook_result", "hook_attn_out", "hook_resid_mid", "mlp.hook_post", "hook_mlp_out")
        hooks = {f"blocks.{n}.{hook}" for n in range(architecture.n_layers) for hook in (*wanted, "hook_resid_post")}
        seen: dict[str, Tensor] = {}

        def keep(name: str, value: Tensor) -> Tensor:
            if name in hooks:
                seen[name] = value
            return value

        extras = forward.Extras(attn_result=True)
        forward.logits(weights, tokens[:, :POSITIONS_READ], architecture, keep, extras)
        return cls(weights, architecture, seen)

    def at(self, layer: int, hook: str) -> Float[Tensor, "problem pos ..."]:
        """What a hook of a layer saw."""
        return self.seen[f"blocks.{layer}.{hook}"]

    def answers(self) -> Float[Tensor, "problem 5 d_vocab"]:
        """Logits of the answer digits, nothing replaced."""
        last = self.at(self.architecture.n_layers - 1, "hook_resid_post")
        return last[:, ANSWER_POSITIONS] @ self.weights["unembed.W_U"]

    def write(self, node: Node) -> Float[Tensor, "problem place d_model"]:
        """What the node adds to the residual stream at its places."""
        places, layer = node.places(self.architecture), node.layer
        match node.part:
            case "head":
                return self.at(layer, "attn.hook_result")[:, places, node.number]
            case "neuron":
                value = self.at(layer, "mlp.hook_post")[:, places, node.number, None]
                return value * self.weights[f"blocks.{layer}.mlp.W_out"][node.number]
            case "attention":
                return self.at(layer, "hook_attn_out")[:, places]
            case "MLP":
                return self.at(layer, "hook_mlp_out")[:, places]
            case "layer":
                return (self.at(layer, "hook_attn_out") + self.at(layer, "hook_mlp_out"))[:, places]

    @torch.no_grad()
    def answers_with(
        self, node: Node, write: Float[Tensor, "#problem #place d_model"]
    ) -> Float[Tensor, "problem 5 d_vocab"]:
        """Logits of the answer digits when the node writes `write` instead."""
        places, layer = node.places(self.architecture), node.layer
        change = write - self.write(node)
        if node.part in ("head", "attention"):
            mid = self.at(layer, "hook_resid_mid")[:, places] + change
            after = mid + forward.mlp(mid, self.weights, layer)
        else:
            after = self.at(layer, "hook_resid_post")[:, places] + change
        stream = self.at(layer, "hook_resid_post").clone()
        stream[:, places] = after
        return _rest(stream, self.weights, self.architecture, layer + 1)


def _rest(
    x: Float[Tensor, "problem pos d_model"], weights: forward.Weights, architecture: Architecture, first: int
) -> Float[Tensor, "problem 5 d_vocab"]:
    """Logits of the answer digits from the residual stream before layer `first`."""
    last = architecture.n_layers - 1
    for layer in range(first, last):
        x = x + forward.attention(x, weights, layer)
        x = x + forward.mlp(x, weights, layer)
    x = _last_layer(x, weights, last) if first <= last else x[:, ANSWER_POSITIONS]
    return x @ weights["unembed.W_U"]


def _last_layer(
    x: Float[Tensor, "problem pos d_model"], weights: forward.Weights, layer: int
) -> Float[Tensor, "problem 5 d_model"]:
    """The residual stream after a layer, at the positions that predict an answer digit."""
    name, asking = f"blocks.{layer}.attn", x[:, ANSWER_POSITIONS]
    q = forward.heads(asking, weights[f"{name}.W_Q"])
    k, v = (forward.heads(x, weights[f"{name}.W_{kind}"]) for kind in "KV")
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(ANSWER_POSITIONS.start + 1)
    scores = scores.masked_fill(future, -torch.inf)
    shares = (
        scores - scores.amax(dim=-1, keepdim=True)
    ).exp()  # torch's softmax over fifteen keys takes five times that
    pattern = shares / shares.sum(dim=-1, keepdim=True)
    asking = asking + forward.merge_heads(torch.einsum("bhqk,bkhd->bqhd", pattern, v), weights[f"{name}.W_O"])
    return asking + forward.mlp(asking, weights, layer)
