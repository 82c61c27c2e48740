"""Measuring of `clock`: every component's values at the places of the answer, and the families they lie in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from analyses._rows import Row
from analyses.learned._clock_families import LOOKUP, RELABELLED, Cells, Shares, bases, shares
from analyses.learned._conditions import groups_of, shape_of, tokens_of
from workbench import forward
from workbench.activations.collect import collect
from workbench.checkpoint import Checkpoint
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.structure import structure
from workbench.task import ANSWER_POSITIONS, POSITION_LABELS, Problems, digits_of

PLACES = ("thousands", "hundreds", "tens", "units")  # of the digit pair; d4 has none
FULL_PLACES = PLACES[1:]  # where all 100 pairs occur whatever the sign
POSITIONS = tuple(range(ANSWER_POSITIONS.start + 1, ANSWER_POSITIONS.stop))  # where the digits of PLACES are predicted
DIRECTIONS = 8  # principal directions of the residual stream that are looked at one by one
FEWEST = 200  # problems of an operator and sign in each half: 2 a pair
SINGLES = ("neuron", "direction", "logit")  # kinds of components that are one number a problem
CHUNK = 2_000  # problems a forward pass

Weights = Mapping[str, Float[Tensor, "..."]]
Columns = Float[Tensor, "problem column"]


@dataclass(frozen=True)
class Component:
    """What is measured: columns of values whose variances add. `kind` is one of those in `components`."""

    kind: str
    layer: int
    name: str
    columns: slice

    @property
    def row(self) -> Row:
        """The component in a table."""
        return {"kind": self.kind, "layer": self.layer, "component": self.name}


def components(architecture: Architecture) -> list[Component]:
    """The components in the order of `columns_of`.

    Kinds: `head` (all it writes), `neuron` (its activation times the norm of what it writes), `neurons` (all of a
    layer), `MLP` (what the layer writes), `residual` (after attention, after the MLP), `direction` (a principal one of
    the residual stream), `logits` (of the ten digits), `logit`.
    """
    found: list[Component] = []
    start = 0

    def take(width: int, kind: str, layer: int, name: str, singles: str = "", kind_of_single: str = "") -> None:
        nonlocal start
        found.append(Component(kind, layer, name, slice(start, start + width)))
        if singles:
            many = range(width if kind != "residual" else min(DIRECTIONS, width))
            found.extend(
                Component(kind_of_single, layer, singles.format(n), slice(start + n, start + n + 1)) for n in many
            )
        start += width

    width = architecture.d_model
    for layer in range(architecture.n_layers):
        for head in range(architecture.n_heads):
            take(architecture.d_head, "head", layer, f"L{layer}H{head}")
        take(architecture.d_mlp, "neurons", layer, f"L{layer} neurons", f"L{layer}M{{}}", "neuron")
        take(width, "MLP", layer, f"L{layer} MLP")
        for after in ("mid", "post"):
            take(
                width,
                "residual",
                layer,
                f"L{layer} resid_{after}",
                f"L{layer} resid_{after} direction {{}}",
                "direction",
            )
    take(10, "logits", architecture.n_layers - 1, "logits", "logit of {}", "logit")
    return found


def hooks_of(architecture: Architecture) -> list[str]:
    """The hooks that `columns_of` reads."""
    parts = ("attn.hook_z", "mlp.hook_post", "hook_mlp_out", "hook_resid_mid", "hook_resid_post")
    return [f"blocks.{layer}.{part}" for layer in range(architecture.n_layers) for part in parts]


def columns_of(seen: Mapping[str, Tensor], weights: Weights, architecture: Architecture, half: int) -> Columns:
    """All components' columns side by side, from what the hooks saw at one position.

    A head's columns have the variances of what it writes, in d_head numbers (`z R` with `W_O^T = Q R`). The residual
    stream is turned to its principal directions, those of the first `half` problems. Logits are taken from their mean
    over the digits, which softmax does not see.
    """
    found = []
    for layer in range(architecture.n_layers):
        block = f"blocks.{layer}"
        for head, W_O in enumerate(weights[f"{block}.attn.W_O"]):
            found.append(seen[f"{block}.attn.hook_z"][:, head] @ torch.linalg.qr(W_O.T).R.T)
        norms = weights[f"{block}.mlp.W_out"].norm(dim=1)
        found += [seen[f"{block}.mlp.hook_post"] * norms, seen[f"{block}.hook_mlp_out"]]
        for after in ("mid", "post"):
            x = seen[f"{block}.hook_resid_{after}"]
            centred = (x[:half] - x[:half].mean(dim=0)).double()
            directions = torch.linalg.eigh(centred.T @ centred).eigenvectors.flip(1)
            found.append(x @ directions.to(x.dtype))
    last = seen[f"blocks.{architecture.n_layers - 1}.hook_resid_post"]
    logits = last @ weights["unembed.W_U"][:, :10]
    found.append(logits - logits.mean(dim=1, keepdim=True))
    return torch.cat(found, dim=1)


def cells_of(problems: Problems, place: int) -> np.ndarray:
    """The cell of each problem at a place (0: the units): `100 * carry + 10 * a + b`, the carry that arrives there."""
    a, b = (digits_of(of)[:, 3 - place].astype(np.int64) for of in (problems.a, problems.b))
    carry = structure(problems).moves[:, place - 1] if place else np.zeros(len(problems), bool)
    return 100 * carry + 10 * a + b


@dataclass(frozen=True, eq=False)
class Group:
    """The problems of one operator and sign, in two halves, with what depends on them alone."""

    name: str
    chosen: np.ndarray
    problems: Problems

    @cached_property
    def cells(self) -> list[Cells]:
        """For each of PLACES."""
        of = self.problems[self.chosen]
        return [Cells(torch.from_numpy(cells_of(of, 3 - n))) for n in range(len(PLACES))]


def split(problems: Problems) -> list[Group]:
    """The operators and signs with enough problems."""
    found = [Group(name, mask.nonzero()[0], problems) for name, mask in groups_of(problems).items()]
    return [group for group in found if len(group.chosen) >= 2 * FEWEST]


def models(checkpoint: Checkpoint) -> dict[str, Weights]:
    """The trained weights and those that training started from."""
    config = checkpoint.config
    start = initial_weights(config.architecture, config.recipe.init, config.seed)
    return {"trained": forward.tensors(checkpoint.weights), "untrained": start}


def measure(checkpoint: Checkpoint, problems: Problems, groups: list[Group]) -> Iterator[list[Row]]:
    """The rows of each model, operator, sign and place: one a component, a column a family, with its interval."""
    architecture = checkpoint.config.architecture
    hooks, listed = hooks_of(architecture), components(architecture)
    tokens = tokens_of(checkpoint, problems)
    who = {"checkpoint": checkpoint.name, "shape": shape_of(checkpoint), "seed": checkpoint.config.seed}
    for model, weights in models(checkpoint).items():
        parts = [collect(weights, part, architecture, hooks, POSITIONS) for part in tokens.split(CHUNK)]
        seen = {hook: torch.cat([part[hook] for part in parts]) for hook in hooks}
        for group in groups:
            for n, place in enumerate(PLACES):
                here = {hook: value[group.chosen, n] for hook, value in seen.items()}
                cells = group.cells[n]
                values = columns_of(here, weights, architecture, cells.half)
                found = shares(values, [component.columns for component in listed], cells)
                where = {"model": model, "group": group.name, "place": place, "position": POSITION_LABELS[POSITIONS[n]]}
                yield _rows(listed, found, who | where, len(values))


def _rows(listed: list[Component], found: Shares, where: Row, n: int) -> list[Row]:
    """A single number's row has an interval for the lookup only. Six decimals: the intervals are wider than that."""
    names = list(bases())
    share, low, high = (ends.T.numpy().round(6).tolist() for ends in (found.share, found.low, found.high))
    rows: list[Row] = []
    for number, component in enumerate(listed):
        row = {**where, **component.row, "n": n, "variance": found.variance[number].item()}
        for family, *values in zip(names, share[number], low[number], high[number], strict=True):
            single = component.kind in SINGLES
            if single and family.endswith(RELABELLED):
                continue
            row[family] = values[0]
            if not single or family == LOOKUP:
                row[f"{family} low"], row[f"{family} high"] = values[1:]
        rows.append(row)
    return rows
