import numpy as np
import pytest
import torch

from workbench import forward
from workbench.activations.collect import collect
from workbench.activations.hooks import hook_axes
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.sample import sample
from workbench.task import encode

TOKENS = torch.from_numpy(encode(sample(7, 0)))


@pytest.fixture(params=["relu", "bilinear"])
def decoder(request):
    architecture = Architecture(mlp=request.param, n_layers=2)
    weights = {name: w.double() for name, w in initial_weights(architecture, "transformer-lens", 0).items()}
    return weights, architecture


def test_the_residual_stream_adds_up(decoder):
    weights, architecture = decoder
    found = collect(weights, TOKENS, architecture, hook_axes(architecture))
    assert list(found) == list(hook_axes(architecture))
    torch.testing.assert_close(found["hook_embed"], weights["embed.W_E"][TOKENS[:, :15].int()], rtol=0, atol=0)
    stream = found["hook_embed"] + weights["pos_embed.W_pos"][:15]
    for layer in range(2):
        block = f"blocks.{layer}"
        torch.testing.assert_close(found[f"{block}.hook_resid_pre"], stream)
        z = found[f"{block}.attn.hook_z"]
        attn_out = torch.einsum("bphd,hdm->bpm", z, weights[f"{block}.attn.W_O"])
        torch.testing.assert_close(found[f"{block}.hook_attn_out"], attn_out)
        stream = stream + attn_out
        torch.testing.assert_close(found[f"{block}.hook_resid_mid"], stream)
        stream = stream + found[f"{block}.mlp.hook_post"] @ weights[f"{block}.mlp.W_out"]
        torch.testing.assert_close(found[f"{block}.hook_resid_post"], stream)
        pattern = found[f"{block}.attn.hook_pattern"]
        torch.testing.assert_close(pattern.sum(-1), torch.ones_like(pattern[..., 0]))
        assert (pattern.triu(1) == 0).all() and (pattern[:, :, 0, 0] == 1).all()
    logits = forward.logits(weights, TOKENS[:, :15], architecture)
    torch.testing.assert_close(stream @ weights["unembed.W_U"], logits)


def test_the_fifteenth_token_is_read_and_the_sixteenth_is_not(decoder):
    weights, architecture = decoder
    hook = "blocks.1.hook_resid_post"
    whole = collect(weights, TOKENS, architecture, [hook])[hook]
    assert whole.shape == (7, 15, 32)
    other = TOKENS.clone()
    other[:, 15] = 3
    assert torch.equal(collect(weights, other, architecture, [hook])[hook], whole)
    other[:, 14] = (other[:, 14] + 1) % 10
    changed = (collect(weights, other, architecture, [hook])[hook] != whole).any(dim=-1)
    assert changed[:, 14].all() and not changed[:, :14].any()


def test_positions_cut_the_query_axis(decoder):
    weights, architecture = decoder
    hooks, places = list(hook_axes(architecture)), (0, 9, 14)
    whole = collect(weights, TOKENS, architecture, hooks)
    part = collect(weights, TOKENS, architecture, hooks, places)
    for name in hooks:
        expected = whole[name][:, :, places] if name.endswith(("scores", "pattern")) else whole[name][:, places]
        assert torch.equal(part[name], expected), name


def test_nothing_after_the_last_hook_is_computed(decoder):
    weights, architecture = decoder
    first = {name: w for name, w in weights.items() if "blocks.1" not in name and "unembed" not in name}
    found = collect(first, TOKENS, architecture, ["blocks.0.hook_resid_post", "hook_embed", "hook_embed"])
    assert set(found) == {"hook_embed", "blocks.0.hook_resid_post"}
    with pytest.raises(KeyError):
        collect(first, TOKENS, architecture, ["blocks.1.hook_attn_out"])


def test_no_gradient_is_kept():
    architecture = Architecture(n_layers=1)
    weights = {name: w.requires_grad_() for name, w in initial_weights(architecture, "gpt2", 0).items()}
    found = collect(weights, TOKENS, architecture, ["blocks.0.mlp.hook_post"])["blocks.0.mlp.hook_post"]
    assert not found.requires_grad and np.isfinite(found.numpy()).all()
