"""Activations in memory: run a decoder on tokens and keep what chosen hooks see."""

import contextlib
from collections.abc import Collection, Sequence

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from workbench import forward
from workbench.activations.hooks import ALL_POSITIONS, hook_axes
from workbench.recipe import Architecture
from workbench.task import POSITIONS_READ


class _Collected(Exception):
    """Every wanted hook has been seen; what comes after need not be computed."""


@torch.no_grad()
def collect(
    weights: forward.Weights,
    tokens: Integer[Tensor, "problem pos"],
    architecture: Architecture,
    hooks: Collection[str],
    positions: Sequence[int] = ALL_POSITIONS,
) -> dict[str, Float[Tensor, "problem ..."]]:
    """Activations of each problem at the hooks and positions, in the weights' dtype; see `hooks.hook_axes` for axes.

    `tokens` are at least the fifteen that a decoder reads. Attention scores and patterns are cut to the query positions
    and keep all fifteen keys. The computation stops after the last hook asked for.
    """
    axes, wanted = hook_axes(architecture), set(hooks)
    found: dict[str, Tensor] = {}

    def tap(name: str, value: Tensor) -> Tensor:
        if name in wanted:
            found[name] = (
                value if len(positions) == POSITIONS_READ else _cut(value, 1 + axes[name].index("pos"), positions)
            )
            if len(found) == len(wanted):
                raise _Collected
        return value

    with contextlib.suppress(_Collected):
        forward.logits(weights, tokens[:, :POSITIONS_READ], architecture, tap)
    return found


def _cut(value: Tensor, axis: int, positions: Sequence[int]) -> Tensor:
    return value.index_select(axis, torch.tensor(positions, device=value.device))
