"""What stands side by side in an analysis: a model and its untrained self; problems by operator and sign."""

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from workbench import forward
from workbench.checkpoint import Checkpoint
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.task import Problems, encode

GROUPS = ("addition", "subtraction +", "subtraction -")  # operator, and of subtraction the sign of the answer
PREDICTED = ("d4", "d3", "d2", "d1", "d0")  # at the five answer positions
Weights = Mapping[str, Float[Tensor, "..."]]


def models(checkpoint: Checkpoint) -> dict[str, Weights]:
    """The trained weights and those that training started from, in float64."""
    config = checkpoint.config
    start = initial_weights(config.architecture, config.recipe.init, config.seed)
    return {
        "trained": forward.tensors(checkpoint.weights, torch.float64),
        "untrained": {name: value.double() for name, value in start.items()},
    }


def tokens_of(checkpoint: Checkpoint, problems: Problems) -> UInt8[Tensor, "problem 16"]:
    """Each problem and its exact answer as the checkpoint was taught them, the sign hidden if it was trained so."""
    return torch.from_numpy(encode(problems, hide_sign=checkpoint.config.problems == "sign-hidden"))


def groups_of(problems: Problems) -> dict[str, np.ndarray]:
    """Which problems fall in each of GROUPS, those without problems left out."""
    place = problems.subtract.astype(int) + problems.negative
    return {name: place == number for number, name in enumerate(GROUPS) if (place == number).any()}


def shape_of(checkpoint: Checkpoint) -> str:
    """What models that differ in their seed share, in words: MLP kind, layers, and what is unlike the twelve."""
    config, usual = checkpoint.config, Architecture()
    shape = config.architecture
    words = [f"{shape.mlp}, {shape.n_layers} layer{'s' if shape.n_layers > 1 else ''}"]
    for name in ("d_model", "n_heads", "d_head", "d_mlp"):
        if getattr(shape, name) != getattr(usual, name):
            words.append(f"{name} {getattr(shape, name)}")
    return ", ".join([*words, *([config.problems] if config.problems != "all" else [])])
