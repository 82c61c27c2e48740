"""The eager order against the plain one; in float64 they agree to rounding, so the mathematics is the same."""

import pytest
import torch

from workbench.engine import eager
from workbench.initialise import initial_weights
from workbench.recipe import Architecture


def test_in_float64_it_is_the_plain_step(decoder, tokens, distance):
    weights, architecture = decoder
    found = distance(eager, weights, architecture, tokens, torch.float64)
    assert found.loss < 1e-12
    assert found.gradient < 1e-11 and found.with_residuals < 1e-11
    assert found.residuals < 1e-10


def test_float32_stays_as_near_as_the_plain_step_does(decoder, tokens, distance, plain_distance):
    found, plainly = distance(eager, *decoder, tokens), plain_distance(*decoder, tokens)
    assert found.loss < 1e-6
    assert found.gradient < max(1e-5, 3 * plainly.gradient)


@pytest.mark.parametrize("mlp", ["relu", "bilinear"])
def test_other_widths_and_depths(mlp, tokens, distance):
    architecture = Architecture(mlp=mlp, n_layers=3, d_model=12, n_heads=3, d_head=5, d_mlp=7)
    found = distance(eager, initial_weights(architecture, "fan-in", 1), architecture, tokens, torch.float64)
    assert found.loss < 1e-12 and found.gradient < 1e-11
