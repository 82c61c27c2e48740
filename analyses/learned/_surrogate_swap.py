"""Which components a surrogate replaces, and what a decoder answers with given outputs in their place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from workbench import forward
from workbench.activations.collect import collect
from workbench.recipe import Architecture
from workbench.task import ANSWER_POSITIONS

CHUNK = 1_000  # problems a forward pass

Weights = Mapping[str, Float[Tensor, "..."]]
Stream = Float[Tensor, "problem pos d_model"]
Values = Float[Tensor, "problem 5 target"]


@dataclass(frozen=True)
class Part:
    """A head (by its z, of which its output is a linear map) or a layer's MLP (by its output)."""

    layer: int
    head: int | None = None

    @property
    def name(self) -> str:
        """L0H2, L1MLP."""
        return f"L{self.layer}" + ("MLP" if self.head is None else f"H{self.head}")

    @property
    def hook(self) -> str:
        """The hook that sees it."""
        return f"blocks.{self.layer}." + ("hook_mlp_out" if self.head is None else "attn.hook_z")


def parts_of(architecture: Architecture) -> list[Part]:
    """Every head and MLP, layer by layer."""
    layers = range(architecture.n_layers)
    return [Part(layer, head) for layer in layers for head in (*range(architecture.n_heads), None)]


def replacements(architecture: Architecture) -> dict[str, list[Part]]:
    """What is replaced together, by name: each part alone, all heads, all MLPs, everything."""
    parts = parts_of(architecture)
    alone = {part.name: [part] for part in parts}
    heads, mlps = ([part for part in parts if (part.head is None) is kind] for kind in (False, True))
    return alone | {"all heads": heads, "all MLPs": mlps, "everything": parts}


def ceiled(name: str, architecture: Architecture) -> bool:
    """Whether the digit to predict is all that what is replaced need write: the last MLP, all MLPs, everything.

    Heads, and an MLP that a later layer reads, write what the digit is made of.
    """
    return name in ("all MLPs", "everything", Part(architecture.n_layers - 1).name)


def columns_of(architecture: Architecture) -> dict[Part, slice]:
    """Where each part stands among the targets of `targets_of`."""
    found, start = {}, 0
    for part in parts_of(architecture):
        width = architecture.d_model if part.head is None else architecture.d_head
        found[part] = slice(start, start + width)
        start += width
    return found


def targets_of(seen: Mapping[str, Tensor], architecture: Architecture) -> Float[Tensor, "problem position target"]:
    """All parts' values side by side, from what their hooks saw at the five answer positions."""
    return torch.cat(
        [seen[p.hook] if p.head is None else seen[p.hook][:, :, p.head] for p in parts_of(architecture)], dim=2
    )


@dataclass(frozen=True, eq=False)
class Run:
    """A decoder on some problems, unchanged: what enters each layer, what attention adds there, all parts' values."""

    weights: Weights
    architecture: Architecture
    entering: list[Stream]
    attention: list[Stream]
    values: Values

    @torch.no_grad()
    def answers(self, given: Values, parts: Sequence[Part]) -> Integer[Tensor, "problem 5"]:
        """The five digits answered when `parts` write what `given` says at the answer positions; the rest follows.

        At earlier positions every part writes what it always writes. Nothing before the first replaced part's layer,
        nor that layer's attention, is computed again.
        """
        first = min((part.layer for part in parts), default=self.architecture.n_layers - 1)
        found = []
        for start in range(0, len(given), CHUNK):
            here = slice(start, start + CHUNK)
            x, values = self.entering[first][here], given[here]
            for layer in range(first, self.architecture.n_layers):
                heads = [part for part in parts if part.layer == layer and part.head is not None]
                if layer == first:
                    written = self._exchanged(self.attention[layer][here], values - self.values[here], heads)
                else:
                    written = forward.attention(x, self.weights, layer, self._writing(values, heads))
                x = x + written
                if last := layer == self.architecture.n_layers - 1:
                    x = x[:, ANSWER_POSITIONS]
                out = forward.mlp(x, self.weights, layer)
                if Part(layer) in parts:
                    mlp = values[..., columns_of(self.architecture)[Part(layer)]]
                    out[:, slice(None) if last else ANSWER_POSITIONS] = mlp
                x = x + out
            found.append((x @ self.weights["unembed.W_U"]).argmax(dim=-1))
        return torch.cat(found)

    def _exchanged(self, written: Stream, change: Values, heads: Sequence[Part]) -> Stream:
        """What attention adds once some heads' z has changed at the answer positions."""
        written = written.clone()
        for part in heads:
            W_O = self.weights[f"blocks.{part.layer}.attn.W_O"][part.head]
            written[:, ANSWER_POSITIONS] += change[..., columns_of(self.architecture)[part]] @ W_O
        return written

    def _writing(self, values: Values, heads: Sequence[Part]) -> forward.Tap:
        """A tap that puts the heads' values in place of their z at the answer positions."""

        def tap(name: str, z: Tensor) -> Tensor:
            if name == "hook_z" and heads:
                z = z.clone()
                for part in heads:
                    z[:, ANSWER_POSITIONS, part.head] = values[..., columns_of(self.architecture)[part]]
            return z

        return tap


def run(weights: Weights, tokens: Integer[Tensor, "problem pos"], architecture: Architecture, values: Values) -> Run:
    """The unchanged run on problems whose parts' values are known."""
    layers = range(architecture.n_layers)
    hooks = [f"blocks.{layer}.{name}" for layer in layers for name in ("hook_resid_pre", "hook_attn_out")]
    parts = [collect(weights, chunk, architecture, hooks) for chunk in tokens.split(CHUNK)]
    streams = [torch.cat([part[hook] for part in parts]) for hook in hooks]
    return Run(weights, architecture, streams[::2], streams[1::2], values)
