"""Runs in which one activation is replaced, many replacements at a time.

A replacement is what activation patching and interchange both do: put given values in place of what a hook sees at one
position (of one head), and go on. Rows of a batch are independent, so several replacements run as one batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from workbench import forward
from workbench.recipe import Architecture

ROWS = 2_000  # prompts a forward pass


@dataclass(frozen=True)
class Where:
    """A hook and a position; of `attn.hook_z` also a head."""

    hook: str
    position: int
    head: int | None = None

    @property
    def layer(self) -> int:
        """The layer of the hook."""
        return int(self.hook.split(".")[1])

    def of(self, value: Float[Tensor, "row pos *rest"]) -> Float[Tensor, "row _"]:
        """What the hook's tensor holds there; a view, so it can be written to."""
        here = value[:, self.position]
        return here if self.head is None else here[:, self.head]


@torch.no_grad()
def replaced(
    weights: forward.Weights,
    tokens: Integer[Tensor, "prompt pos"],
    architecture: Architecture,
    places: Sequence[Where],
    values: Sequence[Float[Tensor, "prompt _"]],
) -> Float[Tensor, "place prompt digit"]:
    """Logits of the ten digits at the last position of `tokens`, once for each place and its values."""
    n = len(tokens)
    at_once = max(1, ROWS // max(n, 1))
    found = []
    for start in range(0, len(places), at_once):
        chosen = list(zip(places[start : start + at_once], values[start : start + at_once], strict=True))

        def tap(name: str, value: Tensor, chosen: list[tuple[Where, Tensor]] = chosen) -> Tensor:
            if not any(where.hook == name for where, _ in chosen):
                return value
            value = value.clone()
            for number, (where, given) in enumerate(chosen):
                if where.hook == name:
                    where.of(value[number * n : (number + 1) * n]).copy_(given)
            return value

        logits = forward.logits(weights, tokens.repeat(len(chosen), 1), architecture, tap)
        found.append(logits[:, -1, :10].unflatten(0, (len(chosen), n)))
    return torch.cat(found)
