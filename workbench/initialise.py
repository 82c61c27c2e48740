"""Initial weights: the published recipe leaves them open, so the choices are named here and one was selected."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from workbench.recipe import Architecture, Init


def standard_deviation(name: str, shape: tuple[int, ...], d_model: int, init: Init) -> float:
    """Standard deviation of the zero-mean normal that a tensor of this TransformerLens name starts from."""
    match init:
        case "transformer-lens":  # TransformerLens's default initializer_range
            return 0.8 / math.sqrt(d_model)
        case "half":
            return 0.4 / math.sqrt(d_model)
        case "gpt2":  # Radford et al. 2019, as in the GPT-2 code
            return 0.02
        case "fan-in":  # LeCun et al. 1998: unit variance out of unit variance in
            embedding = name in ("embed.W_E", "pos_embed.W_pos")
            inputs = math.prod(shape[:2]) if name.endswith("W_O") else shape[-2]
            return 1 / math.sqrt(d_model if embedding else inputs)


def initial_weights(architecture: Architecture, init: Init, seed: int) -> dict[str, Float[Tensor, "..."]]:
    """Float32 weights of an untrained decoder, drawn tensor by tensor from a CPU generator; no global state changes."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(shape, generator=generator) * standard_deviation(name, shape, architecture.d_model, init)
        for name, shape in architecture.shapes.items()
    }
