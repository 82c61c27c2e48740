"""Every node of a checkpoint ablated in every way, into rows."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from analyses.learned._ablation_forward import Clean, Node
from analyses.learned._ablation_problems import Asked
from workbench import forward
from workbench.checkpoint import Checkpoint
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample
from workbench.task import Problems, encode

Method = Literal["zero", "mean", "resample", "random"]
METHODS: tuple[Method, ...] = get_args(Method)
MEAN, CONTROL = "mean", "random"


def replaced(
    method: Method,
    write: Float[Tensor, "problem place d_model"],
    others: Float[Tensor, "problem place d_model"],
    generator: torch.Generator,
) -> Float[Tensor, "#problem place d_model"]:
    """What is written instead of `write`; `others` is what the same node writes on other problems.

    zero: nothing. mean: the mean of others, by place. resample: another problem's, the same one at every place.
    random, the control: `write` moved as far as the mean is away, in a random direction.
    """
    mean = others.mean(dim=0, keepdim=True)
    match method:
        case "zero":
            return torch.zeros_like(mean)
        case "mean":
            return mean
        case "resample":
            return others
        case "random":
            away = torch.randn(write.shape, generator=generator, dtype=write.dtype)
            away = away / away.norm(dim=-1, keepdim=True)
            return write + (mean - write).norm(dim=-1, keepdim=True) * away


def said(logits: Float[Tensor, "problem 5 d_vocab"]) -> UInt8[np.ndarray, "problem 5"]:
    """The likeliest tokens."""
    return logits.argmax(dim=-1).to(torch.uint8).numpy()


def shape_of(config: RunConfig) -> str:
    """What checkpoints that differ in their seed share: `relu-2layer`, `relu-1layer-ordered`; an unusual d_mlp too."""
    usual = config.architecture.d_mlp == Architecture().d_mlp
    shape = config.name.removeprefix("arithmetic-").rpartition("-seed")[0]
    return shape if usual else f"{shape} d_mlp {config.architecture.d_mlp}"


def measure(
    checkpoint: Checkpoint, problems: Problems, wanted: Iterable[Node], seed: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(table name, row): `asked` by class; `components` at all positions; `nodes` position by position; `needs`.

    What replaces comes from as many problems drawn uniformly, with the next seed.
    """
    config, weights = checkpoint.config, forward.tensors(checkpoint.weights)
    hide = config.problems == "sign-hidden"
    clean, other = (
        Clean.of(weights, config.architecture, torch.from_numpy(encode(of, hide_sign=hide)))
        for of in (problems, sample(len(problems), seed + 1, config.problems))
    )
    asked = Asked(problems, config.problems, said(clean.answers()))
    of = {"shape": shape_of(config), "checkpoint": checkpoint.name}
    yield from (("asked", of | row) for row in asked.clean_rows())
    generator = torch.Generator().manual_seed(seed)
    for node in wanted:
        write, others = clean.write(node), other.write(node)
        place = {"layer": node.layer, "component": node.component, "part": node.part}
        place |= {"node": node.name, "position": node.label}
        grouped = node.part == "layer" and bool(node.positions)
        for method in METHODS:
            answers = said(clean.answers_with(node, replaced(method, write, others, generator)))
            key = of | place | {"method": method}
            if not grouped:
                yield "nodes" if node.positions else "components", key | asked.outcome(answers)
            if grouped or not (node.positions or node.part == "neuron"):
                yield from (("needs", key | row) for row in asked.by_need(answers))
