import math
from typing import Any, get_args

import pytest
import torch

from workbench.initialise import initial_weights
from workbench.recipe import Architecture, Init

# Standard deviation by tensor, worked by hand for d_model 32, d_head 8, 4 heads, d_mlp 64:
# 0.8/sqrt(32) = 0.141421, 0.4/sqrt(32) = 0.070711, 1/sqrt(32) = 0.176777, 1/sqrt(64) = 0.125.
FAN_IN = {
    "embed.W_E": 0.176777,
    "pos_embed.W_pos": 0.176777,
    "blocks.0.attn.W_Q": 0.176777,
    "blocks.0.attn.W_K": 0.176777,
    "blocks.0.attn.W_V": 0.176777,
    "blocks.0.attn.W_O": 0.176777,  # 4 heads x 8 inputs
    "blocks.0.mlp.W_gate": 0.176777,
    "blocks.0.mlp.W_in": 0.176777,
    "blocks.0.mlp.W_out": 0.125,
    "unembed.W_U": 0.176777,
}
ONE_FOR_ALL = {"transformer-lens": 0.141421, "half": 0.070711, "gpt2": 0.02}
SMALL = Architecture(mlp="bilinear", n_layers=1)


def expected_std(name: str, init: Init) -> float:
    return FAN_IN[name] if init == "fan-in" else ONE_FOR_ALL[init]


@pytest.mark.parametrize("init", get_args(Init))
def test_every_tensor_has_the_standard_deviation_of_its_rule(init: Any) -> None:
    draws = [initial_weights(SMALL, init, seed) for seed in range(20)]
    for name in SMALL.shapes:
        values = torch.stack([draw[name] for draw in draws]).double().flatten()
        expected, n = expected_std(name, init), values.numel()
        # Of a normal sample, the mean has standard error sd/sqrt(n) and the deviation sd/sqrt(2n).
        assert abs(values.mean().item()) < 5 * expected / math.sqrt(n), name
        assert abs(values.std().item() / expected - 1) < 5 / math.sqrt(2 * n), name


def test_fan_in_keeps_unit_variance_of_wider_shapes() -> None:
    wide = Architecture(d_model=64, n_heads=2, d_head=16, d_mlp=256, n_layers=1)
    weights = initial_weights(wide, "fan-in", 0)
    for name, inputs in (("attn.W_Q", 64), ("attn.W_O", 32), ("mlp.W_in", 64), ("mlp.W_out", 256)):
        value = weights[f"blocks.0.{name}"]
        assert abs(value.std().item() * math.sqrt(inputs) - 1) < 5 / math.sqrt(2 * value.numel()), name


def test_names_shapes_and_dtype_are_those_of_the_architecture() -> None:
    weights = initial_weights(Architecture(n_layers=2), "fan-in", 0)
    assert {name: tuple(value.shape) for name, value in weights.items()} == Architecture(n_layers=2).shapes
    assert {value.dtype for value in weights.values()} == {torch.float32}


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    first, again, other = (initial_weights(SMALL, "transformer-lens", seed) for seed in (3, 3, 4))
    assert all(first[name].numpy().tobytes() == again[name].numpy().tobytes() for name in first)
    assert all(not torch.equal(first[name], other[name]) for name in first)


def test_tensors_of_one_draw_are_not_copies_of_each_other() -> None:
    weights = initial_weights(SMALL, "half", 0)
    assert not torch.equal(weights["blocks.0.attn.W_Q"], weights["blocks.0.attn.W_K"])
    assert not torch.equal(weights["blocks.0.mlp.W_gate"], weights["blocks.0.mlp.W_in"])


def test_no_global_random_state_is_touched() -> None:
    before = torch.random.get_rng_state()
    initial_weights(SMALL, "gpt2", 0)
    assert torch.equal(torch.random.get_rng_state(), before)
