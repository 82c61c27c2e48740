"""The kernels' predictions against the plain float64 forward."""

from pathlib import Path

import numpy as np
import pytest
import torch

from workbench import checkpoint, forward
from workbench.initialise import initial_weights
from workbench.native import library, predict
from workbench.recipe import Architecture, twelve
from workbench.task import Problems, encode

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(bool(library.missing()), reason=library.missing())
SHAPES = [c for c in twelve() if c.seed == 1]


def plain_logits(arrays, architecture, tokens):
    weights = forward.tensors(arrays, torch.float64)
    return forward.logits(weights, torch.from_numpy(tokens[:, :15]), architecture)[:, 10:15].detach().numpy()


def gaps(logits):
    top = np.sort(logits, axis=-1)
    return (top[..., -1] - top[..., -2]) / np.abs(logits).max(axis=-1)


@pytest.mark.parametrize("config", SHAPES, ids=lambda c: c.name)
@pytest.mark.parametrize(("subtract", "hide_sign"), [(False, False), (True, False), (True, True)])
def test_a_block_is_what_the_plain_forward_predicts(config, subtract, hide_sign):
    arrays = checkpoint.read(ROOT / "checkpoints" / config.name).weights
    operands = np.array([0, 9999, *range(4990, 5004)], np.int32)  # neither neighbours nor in order
    digits, near = predict.block_digits(
        arrays, config.architecture, operands, subtract=subtract, hide_sign=hide_sign, nearness=1e-3
    )
    assert digits.shape == near.shape == (160_000, 5)
    draw = np.random.default_rng(0)
    lane, b = draw.integers(0, 16, 600), np.concatenate([[0, 9999, 999, 1000], draw.integers(0, 10_000, 596)])
    problems = Problems(operands[lane].astype(np.uint16), b.astype(np.uint16), np.full(600, subtract))
    logits = plain_logits(arrays, config.architecture, encode(problems, hide_sign=hide_sign))
    found, close = digits[lane * 10_000 + b], near[lane * 10_000 + b]
    assert (found == logits.argmax(-1))[~close].all()
    gap = gaps(logits)
    assert close[gap < 0.9e-3].all() and not close[gap > 1.1e-3].any()


@pytest.mark.parametrize("config", SHAPES, ids=lambda c: c.name)
def test_any_problems_in_float64(config):
    arrays = checkpoint.read(ROOT / "checkpoints" / config.name).weights
    index = np.random.default_rng(1).integers(0, 200_000_000, 333).astype(np.uint32)
    tokens = encode(Problems.from_index(index))
    digits, near = predict.digits_of_any(arrays, config.architecture, tokens, 1e-9)
    logits = plain_logits(arrays, config.architecture, tokens)
    assert not near.any()
    assert (digits == logits.argmax(-1)).all()
    _, near = predict.digits_of_any(arrays, config.architecture, tokens, 0.01)
    assert (near == (gaps(logits) < 0.01)).all()


def test_untrained_ties_are_near():
    shape = Architecture(n_layers=1)
    arrays = {name: np.zeros(dims, np.float32) for name, dims in shape.shapes.items()}
    arrays["unembed.W_U"][0, :2] = 1
    arrays["pos_embed.W_pos"][:, 0] = 1
    tokens = encode(Problems.from_index(np.arange(5, dtype=np.uint32)))
    digits, near = predict.digits_of_any(arrays, shape, tokens, 1e-9)
    assert near.all() and (digits == 0).all()  # two equal logits, the first is taken


def test_three_layers():
    shape = Architecture(mlp="bilinear", n_layers=3)
    arrays = {name: w.numpy() for name, w in initial_weights(shape, "fan-in", 0).items()}
    digits, near = predict.block_digits(
        arrays, shape, np.arange(16, dtype=np.int32), subtract=True, hide_sign=False, nearness=1e-3
    )
    index = np.random.default_rng(2).integers(0, 160_000, 200)
    tokens = encode(Problems.from_index((100_000_000 + index).astype(np.uint32)))
    logits = plain_logits(arrays, shape, tokens)
    assert (digits[index] == logits.argmax(-1))[~near[index]].all()
