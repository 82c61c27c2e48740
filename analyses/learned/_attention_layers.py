"""Everything `attention` measures of one checkpoint, layer by layer, as tables."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import UInt8
from torch import Tensor

from analyses.learned._attention_choices import choice_rows
from analyses.learned._attention_circuits import circuits, logit_rows, ov_rows, qk_rows, score_rows
from analyses.learned._attention_heads import head_rows
from analyses.learned._attention_look import Halves, halves, look
from analyses.learned._attention_order import order_rows, unit_rows
from analyses.learned._attention_patterns import pattern_rows, turns
from analyses.learned._conditions import Weights, groups_of, models, tokens_of
from workbench.checkpoint import Checkpoint
from workbench.recipe import Architecture
from workbench.task import POSITIONS_READ, Problems

Table = tuple[str, Iterable[dict[str, Any]]]


@dataclass(frozen=True, eq=False)
class Drawn:
    """The problems of one variant, the groups they fall in and the halves of each."""

    problems: Problems
    groups: dict[str, np.ndarray]
    halves: list[Halves]


def drawn(problems: Problems, seed: int) -> Drawn:
    """Groups are all problems together, then operator and sign."""
    groups = {"all": np.ones(len(problems), dtype=bool), **groups_of(problems)}
    return Drawn(problems, groups, halves(groups, seed))


def measure(checkpoint: Checkpoint, on: Drawn, *, full: bool) -> Iterator[tuple[str, pd.DataFrame]]:
    """(table name, rows) of the trained and the untrained model; the circuits themselves, if `full`, of the trained."""
    tokens = tokens_of(checkpoint, on.problems)[:, :POSITIONS_READ]
    architecture = checkpoint.config.architecture
    for model, weights in models(checkpoint).items():
        units = unit_rows(weights, architecture, on.problems, checkpoint.config.problems, on.groups)
        layers = _layers(weights, tokens, architecture, on, full and model == "trained")
        for name, rows in itertools.chain(layers, [("units", units)]):
            condition = {"checkpoint": checkpoint.name, "model": model}
            if listed := [condition | row for row in rows]:
                yield name, pd.DataFrame(listed)


@torch.no_grad()
def _layers(
    weights: Weights, tokens: UInt8[Tensor, "problem key"], architecture: Architecture, on: Drawn, full: bool
) -> Iterator[Table]:
    everything = on.halves[0]
    for layer in range(architecture.n_layers):
        seen = look(weights, tokens, architecture, layer)
        heads = list(head_rows(seen, layer, tokens, on.halves))
        yield "heads", heads
        yield "patterns", pattern_rows(seen.pattern, layer, on.groups)
        yield "turns", turns(seen.pattern, layer, on.groups)
        found = circuits(weights, seen, layer, tokens, everything)
        yield "qk", qk_rows(found, seen, layer, tokens, everything)
        yield "ov", ov_rows(found, weights, layer)
        yield "choices", choice_rows(found, layer, heads)
        yield "order", order_rows(seen, layer, tokens, on.halves)
        if full:
            yield "qk-scores", score_rows(found, layer)
            yield "ov-logits", logit_rows(found, weights, layer)
