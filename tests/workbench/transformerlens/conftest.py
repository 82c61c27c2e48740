"""An untrained decoder of each shape in float64, and two batches of problems that differ in one operand digit."""

from typing import Any

import pytest
import torch
from torch import Tensor

from workbench.decoder import Decoder
from workbench.recipe import Architecture

SHAPES = [Architecture(mlp=mlp, n_layers=n) for mlp in ("relu", "bilinear") for n in (1, 2)]


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape.mlp}-{shape.n_layers}")
def model(request: Any) -> Decoder:
    decoder = Decoder.untrained(request.param, "fan-in", 0).double()
    with torch.no_grad():
        for block in decoder.blocks:
            block.attn.W_Q.mul_(4)  # so that attention is not flat
    return decoder


@pytest.fixture
def clean(model: Decoder) -> Tensor:
    """Three problems with wrong but equal answers: [3, 15]."""
    return model.to_tokens(["1234+0567=+0123", "9876-1234=+0123", "0042+9000=+0123"])


@pytest.fixture
def corrupted(clean: Tensor) -> Tensor:
    """The same with another digit at position 7 (b1) only."""
    changed = clean.clone()
    changed[:, 7] = (changed[:, 7] + 5) % 10
    return changed
