import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from workbench import checkpoint, forward
from workbench.errors import BadInput
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.task import Problems, encode

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
TRAINED = [f"arithmetic-{mlp}-{n}layer-seed{k}" for mlp in ("relu", "bilinear") for n in (1, 2) for k in (0, 1, 2)]
SHAPES = [Architecture(mlp=mlp, n_layers=n) for mlp in ("relu", "bilinear") for n in (1, 2)]


def plain_forward(w: dict[str, Tensor], tokens: Tensor, n_layers: int, bilinear: bool) -> Tensor:
    """The formulas of the published decoder, a head and a position at a time, sharing no code with the package."""
    n = tokens.shape[1]
    x = w["embed.W_E"][tokens] + w["pos_embed.W_pos"][:n]
    for layer in range(n_layers):
        attn = {k: w[f"blocks.{layer}.attn.W_{k}"] for k in "QKVO"}
        added = torch.zeros_like(x)
        for head in range(4):
            q, k, v = (x @ attn[kind][head] for kind in "QKV")
            for t in range(n):
                scores = (k[:, : t + 1] * q[:, t : t + 1]).sum(-1) / math.sqrt(8)
                pattern = torch.softmax(scores, dim=1)
                added[:, t] += (pattern[..., None] * v[:, : t + 1]).sum(1) @ attn["O"][head]
        x = x + added
        if bilinear:
            hidden = (x @ w[f"blocks.{layer}.mlp.W_gate"]) * (x @ w[f"blocks.{layer}.mlp.W_in"])
        else:
            hidden = torch.clamp(x @ w[f"blocks.{layer}.mlp.W_in"], min=0)
        x = x + hidden @ w[f"blocks.{layer}.mlp.W_out"]
    return x @ w["unembed.W_U"]


def some_tokens(count: int, seed: int = 0) -> Tensor:
    """Tokens of `count` problems drawn uniformly."""
    index = np.random.default_rng(seed).integers(0, 200_000_000, count)
    return torch.from_numpy(encode(Problems.from_index(index)))


def random_weights(architecture: Architecture, seed: int = 0) -> dict[str, Tensor]:
    weights = initial_weights(architecture, "fan-in", seed)
    # Larger queries, so that attention is not flat.
    return {name: value.double() * (6 if name.endswith("W_Q") else 1) for name, value in weights.items()}


@pytest.mark.parametrize("name", TRAINED)
def test_trained_weights_give_the_logits_of_the_plain_formulas(name: str) -> None:
    run = checkpoint.read(CHECKPOINTS / name)
    shape, tokens = run.config.architecture, some_tokens(64)
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        weights = forward.tensors(run.weights, dtype)
        expected = plain_forward(weights, tokens.long(), shape.n_layers, shape.mlp == "bilinear")
        difference = (forward.logits(weights, tokens, shape) - expected).abs().max().item()
        assert difference <= tolerance * (1 if dtype == torch.float64 else expected.abs().max().item())
    assert expected.std() > 5  # trained weights, not initial ones (about 1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_weights_give_the_logits_of_the_plain_formulas(shape: Architecture) -> None:
    weights, tokens = random_weights(shape), some_tokens(5)
    expected = plain_forward(weights, tokens.long(), shape.n_layers, shape.mlp == "bilinear")
    assert torch.allclose(forward.logits(weights, tokens, shape), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_taps_see_the_same_logits_and_every_name_in_order(shape: Architecture) -> None:
    weights, tokens, seen = initial_weights(shape, "half", 1), some_tokens(3), []

    def tap(name: str, value: Tensor) -> Tensor:
        seen.append(name)
        return value

    assert torch.equal(forward.logits(weights, tokens, shape, tap), forward.logits(weights, tokens, shape))
    assert seen == forward.hook_names(shape)
    linear = ["blocks.0.mlp.hook_pre_linear"] if shape.mlp == "bilinear" else []
    assert seen[:14] == [
        "hook_embed",
        "hook_pos_embed",
        "blocks.0.hook_resid_pre",
        "blocks.0.attn.hook_q",
        "blocks.0.attn.hook_k",
        "blocks.0.attn.hook_v",
        "blocks.0.attn.hook_attn_scores",
        "blocks.0.attn.hook_pattern",
        "blocks.0.attn.hook_z",
        "blocks.0.hook_attn_out",
        "blocks.0.hook_resid_mid",
        "blocks.0.mlp.hook_pre",
        *(linear or ["blocks.0.mlp.hook_post"]),
        "blocks.0.mlp.hook_post" if linear else "blocks.0.hook_mlp_out",
    ]
    assert len(seen) == 2 + shape.n_layers * (13 + len(linear))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_a_tap_sees_is_what_its_name_says(shape: Architecture) -> None:
    weights, tokens, seen = random_weights(shape), some_tokens(3), {}
    forward.logits(weights, tokens, shape, lambda name, value: seen.setdefault(name, value))
    assert torch.equal(seen["hook_embed"], weights["embed.W_E"][tokens.long()])
    assert torch.equal(seen["hook_pos_embed"][2], weights["pos_embed.W_pos"])
    assert torch.equal(seen["blocks.0.hook_resid_pre"], seen["hook_embed"] + seen["hook_pos_embed"])
    last = f"blocks.{shape.n_layers - 1}"
    pre, mid, post = (seen[f"{last}.hook_resid_{point}"] for point in ("pre", "mid", "post"))
    W = {name.removeprefix(f"{last}.").split(".")[1]: w for name, w in weights.items() if name.startswith(last)}
    for kind in "qkv":
        assert torch.allclose(seen[f"{last}.attn.hook_{kind}"][:, :, 3], pre @ W[f"W_{kind.upper()}"][3])
    q, k = seen[f"{last}.attn.hook_q"][0, 9, 1], seen[f"{last}.attn.hook_k"][0, 4, 1]
    scores, pattern = seen[f"{last}.attn.hook_attn_scores"], seen[f"{last}.attn.hook_pattern"]
    assert scores[0, 1, 9, 4].item() == pytest.approx((q @ k).item() / math.sqrt(8), rel=1e-12)
    assert (scores.triu(1).isinf() == torch.ones(16, 16).triu(1).bool()).all()
    v = seen[f"{last}.attn.hook_v"]
    assert torch.allclose(seen[f"{last}.attn.hook_z"][2, 9, 1], pattern[2, 1, 9] @ v[2, :, 1])
    assert torch.allclose(mid, pre + seen[f"{last}.hook_attn_out"])
    assert torch.allclose(post, mid + seen[f"{last}.hook_mlp_out"])
    before, after = seen[f"{last}.mlp.hook_pre"], seen[f"{last}.mlp.hook_post"]
    if shape.mlp == "bilinear":
        linear = seen[f"{last}.mlp.hook_pre_linear"]
        assert torch.allclose(before, mid @ W["W_gate"])
        assert torch.allclose(linear, mid @ W["W_in"])
        assert torch.allclose(after, before * linear)
    else:
        assert torch.allclose(before, mid @ W["W_in"])
        assert torch.equal(after, before.clamp(min=0))
    assert torch.allclose(seen[f"{last}.hook_mlp_out"], after @ W["W_out"])


def test_what_a_tap_returns_is_what_the_computation_goes_on_with() -> None:
    shape, tokens = Architecture(n_layers=2), some_tokens(4)
    weights = random_weights(shape)

    def without_head_2(name: str, value: Tensor) -> Tensor:
        return value * torch.tensor([1, 1, 0, 1]).view(1, 1, 4, 1) if name == "blocks.1.attn.hook_z" else value

    cut = dict(weights)
    cut["blocks.1.attn.W_O"] = weights["blocks.1.attn.W_O"].clone()
    cut["blocks.1.attn.W_O"][2] = 0
    tapped = forward.logits(weights, tokens, shape, without_head_2)
    assert torch.allclose(tapped, forward.logits(cut, tokens, shape), rtol=0, atol=1e-12)
    assert not torch.allclose(tapped, forward.logits(weights, tokens, shape), atol=1e-3)


def test_a_tap_that_writes_in_place_leaves_the_weights_alone() -> None:
    shape = Architecture(n_layers=1)
    weights = initial_weights(shape, "half", 0)
    before = {name: value.clone() for name, value in weights.items()}

    def zero(_: str, value: Tensor) -> Tensor:
        return value.zero_()

    forward.logits(weights, some_tokens(1), shape, zero)
    assert all(torch.equal(weights[name], before[name]) for name in weights)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_position_reads_a_later_one(shape: Architecture) -> None:
    weights, tokens = random_weights(shape), some_tokens(6)
    logits = forward.logits(weights, tokens, shape)
    for cut in (1, 7, 15):
        assert torch.allclose(forward.logits(weights, tokens[:, :cut], shape), logits[:, :cut], rtol=0, atol=1e-12)


def test_equal_scores_average_what_came_before() -> None:
    q = torch.zeros(1, 4, 1, 2, dtype=torch.float64)
    v = torch.tensor([6.0, 2.0, 1.0, 7.0], dtype=torch.float64).view(1, 4, 1, 1).expand(1, 4, 1, 2)
    z = forward.attend(q, torch.randn(1, 4, 1, 2, dtype=torch.float64), v)
    assert torch.allclose(z[0, :, 0, 0], torch.tensor([6.0, 4.0, 3.0, 4.0], dtype=torch.float64))


def test_scores_are_scaled_by_the_root_of_the_head_width() -> None:
    # q.k is 4 ln 3 at position 0 and 0 at position 1; over sqrt(16) the odds are 3 to 1.
    q = torch.full((1, 2, 1, 16), math.log(3) / 4, dtype=torch.float64)
    k = torch.zeros(1, 2, 1, 16, dtype=torch.float64)
    k[:, 0] = 1.0
    v = torch.tensor([1.0, 0.0], dtype=torch.float64).view(1, 2, 1, 1).expand(1, 2, 1, 16)
    assert torch.allclose(forward.attend(q, k, v)[0, :, 0, 5], torch.tensor([1.0, 0.75], dtype=torch.float64))


def test_the_two_mlps_on_numbers_worked_by_hand() -> None:
    x = torch.tensor([[[1.0, -2.0]]])
    W = torch.tensor([[1.0, 3.0, 0.0], [1.0, 1.0, -1.0]])  # x W = (-1, 1, 2)
    V = torch.tensor([[2.0, 0.0, 1.0], [0.0, 1.0, 1.0]])  # x V = (2, -2, -1)
    W_out = torch.tensor([[1.0, 0.0], [10.0, 0.0], [100.0, 1.0]])
    assert forward.relu_mlp(x, W, W_out).tolist() == [[[210.0, 2.0]]]
    assert forward.bilinear_mlp(x, W, V, W_out).tolist() == [[[-2.0 - 20.0 - 200.0, -2.0]]]


EXTRAS: list[dict[str, Any]] = [
    {"attn_result": True},
    {"attn_in": True},
    {"split_qkv_input": True, "attn_result": True},
    {"hook_mlp_in": True},
]


@pytest.mark.parametrize("flags", EXTRAS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_extras_add_names_and_change_logits_by_rounding_only(shape: Architecture, flags: dict[str, Any]) -> None:
    weights, tokens, extras = random_weights(shape), some_tokens(3), forward.Extras(**flags)
    logits = forward.logits(weights, tokens, shape, extras=extras)
    assert torch.allclose(logits, forward.logits(weights, tokens, shape), rtol=0, atol=1e-11)
    added = set(forward.hook_names(shape, extras)) - set(forward.hook_names(shape))
    names = {
        "attn_result": {"attn.hook_result"},
        "attn_in": {"attn.hook_attn_in"},
        "split_qkv_input": {"attn.hook_q_input", "attn.hook_k_input", "attn.hook_v_input"},
        "hook_mlp_in": {"hook_mlp_in"},
    }
    expected = set.union(*(names[flag] for flag in flags))
    assert added == {f"blocks.{layer}.{name}" for layer in range(shape.n_layers) for name in expected}


def test_the_two_forks_of_the_stream_exclude_each_other() -> None:
    with pytest.raises(BadInput, match="exclude each other"):
        forward.Extras(attn_in=True, split_qkv_input=True)


def test_head_results_sum_to_the_merged_heads() -> None:
    z, W_O = torch.randn(2, 5, 4, 8, dtype=torch.float64), torch.randn(4, 8, 32, dtype=torch.float64)
    results = forward.head_results(z, W_O)
    assert torch.allclose(results[1, 3, 2], z[1, 3, 2] @ W_O[2])
    assert torch.allclose(results.sum(2), forward.merge_heads(z, W_O))


def test_importing_it_loads_no_transformer_lens() -> None:
    heavy = "('transformer_lens', 'transformers', 'pandas', 'plotly')"
    code = f"import sys, workbench.forward; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
