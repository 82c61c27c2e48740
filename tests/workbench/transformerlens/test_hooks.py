"""Hooks and caches of HookedRootModule on the decoder, its switches, and what it refuses that would fail silently."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformer_lens import ActivationCache

from workbench import forward
from workbench.decoder import Decoder
from workbench.errors import BadInput
from workbench.recipe import Architecture

TEXTS = ["1234+0567", "0123-0456", "9999+9999"]


@pytest.fixture
def two_layers() -> Decoder:
    return Decoder.untrained(Architecture(n_layers=2), "fan-in", 0)


def test_a_hook_changes_the_run_and_is_gone_afterwards(two_layers: Decoder) -> None:
    plain_logits = two_layers("1+1")
    name = "blocks.1.hook_mlp_out"
    changed = two_layers.run_with_hooks("1+1", fwd_hooks=[(name, lambda value, hook: value * 0)])
    resid = two_layers.run_with_cache("1+1")[1]["resid_mid", 1]
    assert torch.allclose(changed, resid @ two_layers.W_U, atol=1e-6)
    assert not torch.allclose(changed, plain_logits)
    assert torch.equal(two_layers("1+1"), plain_logits)


def test_hooks_are_gone_after_an_exception(two_layers: Decoder) -> None:
    def fail(value: Tensor, hook: Any) -> None:
        raise RuntimeError("in a hook")

    before = two_layers("1+1")
    with pytest.raises(RuntimeError, match="in a hook"):
        two_layers.run_with_hooks(
            "1+1", fwd_hooks=[("hook_embed", lambda v, hook: v * 0), ("blocks.1.hook_resid_mid", fail)]
        )
    with pytest.raises(RuntimeError, match="in a hook"), two_layers.hooks(fwd_hooks=[("hook_embed", fail)]):
        two_layers.run_with_cache("1+1")
    with pytest.raises(BadInput):
        two_layers.run_with_cache(torch.tensor([[99]]))
    assert two_layers.list_hooks() == {}
    assert torch.equal(two_layers("1+1"), before)


@pytest.mark.parametrize("call", ["run_with_hooks", "run_with_cache", "cache_list", "add_hook", "hooks"])
def test_a_name_that_is_no_hook_is_refused_with_close_ones(two_layers: Decoder, call: str) -> None:
    name = "blocks.0.hook_resid_prr"
    with pytest.raises(BadInput, match=r"no hook 'blocks.0.hook_resid_prr'; close: blocks.0.hook_resid_pre"):
        match call:
            case "run_with_hooks":
                two_layers.run_with_hooks("1+1", fwd_hooks=[(name, lambda value, hook: value)])
            case "run_with_cache":
                two_layers.run_with_cache("1+1", names_filter=name)
            case "cache_list":
                two_layers.run_with_cache("1+1", names_filter=["hook_embed", name])
            case "add_hook":
                two_layers.add_hook(name, lambda value, hook: value)
            case "hooks":
                with two_layers.hooks(fwd_hooks=[(name, lambda value, hook: value)]):
                    pass
    assert two_layers.list_hooks() == {}


def test_a_hook_that_would_not_fire_is_refused_until_it_is_switched_on(two_layers: Decoder) -> None:
    switches = {
        "blocks.0.attn.hook_result": two_layers.set_use_attn_result,
        "blocks.0.attn.hook_attn_in": two_layers.set_use_attn_in,
        "blocks.1.attn.hook_k_input": two_layers.set_use_split_qkv_input,
        "blocks.1.hook_mlp_in": two_layers.set_use_hook_mlp_in,
    }
    for name, switch in switches.items():
        assert name not in two_layers.run_with_cache("1+1")[1]
        with pytest.raises(BadInput, match=rf"fires only after model\.{switch.__name__}\(True\)"):
            two_layers.run_with_hooks("1+1", fwd_hooks=[(name, lambda value, hook: value)])
        switch(True)
        assert name in two_layers.run_with_cache("1+1")[1]
        assert name in two_layers.run_with_cache("1+1", names_filter=name)[1]
        switch(False)


def test_the_two_forks_cannot_both_be_on(two_layers: Decoder) -> None:
    two_layers.set_use_attn_in(True)
    with pytest.raises(BadInput, match="exclude each other"):
        two_layers.set_use_split_qkv_input(True)
    assert not two_layers.cfg.use_split_qkv_input
    two_layers.set_use_attn_in(False)
    two_layers.set_use_split_qkv_input(True)


def test_the_parents_caching_options_work_as_they_do_there(two_layers: Decoder) -> None:
    logits, whole = two_layers.run_with_cache(TEXTS)
    assert isinstance(whole, ActivationCache)
    assert list(whole) == forward.hook_names(two_layers.architecture)
    _, some = two_layers.run_with_cache(TEXTS, names_filter=lambda name: name.endswith("hook_z"))
    assert list(some) == ["blocks.0.attn.hook_z", "blocks.1.attn.hook_z"]
    _, listed = two_layers.run_with_cache(TEXTS, names_filter=["hook_embed", "blocks.1.hook_resid_post"])
    assert list(listed) == ["hook_embed", "blocks.1.hook_resid_post"]
    _, sliced = two_layers.run_with_cache(TEXTS, pos_slice=slice(10, 15))
    for name in ("blocks.0.attn.hook_q", "blocks.0.attn.hook_z"):
        assert torch.equal(sliced[name], whole[name][:, 10:15])
    assert torch.equal(sliced["pattern", 1], whole["pattern", 1][:, :, 10:15])
    one, single = two_layers.run_with_cache(TEXTS[0], remove_batch_dim=True)
    assert single["resid_post", -1].shape == (16, 32)
    assert one.shape == (1, 16, 13)
    assert (single.has_batch_dim, whole.has_batch_dim) == (False, True)
    assert torch.allclose(single["resid_post", -1] @ two_layers.W_U, logits[0], atol=1e-5)
    with pytest.raises(AssertionError, match="batch size 3"):
        two_layers.run_with_cache(TEXTS, remove_batch_dim=True)
    assert isinstance(two_layers.run_with_cache(TEXTS, return_cache_object=False)[1], dict)


def test_gradients_are_cached_on_request(two_layers: Decoder) -> None:
    two_layers = two_layers.double()
    _, cache = two_layers.run_with_cache(TEXTS, incl_bwd=True, return_type="loss")
    gradient = cache["blocks.1.hook_resid_post_grad"]
    logits = two_layers(TEXTS)
    probabilities = logits.softmax(-1)
    target = torch.nn.functional.one_hot(two_layers.to_tokens(TEXTS)[:, 11:], 13)
    expected = (probabilities[:, 10:15] - target) @ two_layers.W_U.T / 15  # mean over 3 x 5 digits
    assert torch.allclose(gradient[:, 10:15], expected, atol=1e-12)
    assert not gradient[:, :10].any()
    assert not gradient[:, 15:].any()


def test_writing_in_place_in_a_hook_leaves_the_weights_alone(two_layers: Decoder) -> None:
    before = {name: value.clone() for name, value in two_layers.state_dict().items()}
    everything = [(lambda name: True, lambda value, hook: value.zero_())]
    with torch.no_grad():
        two_layers.run_with_hooks("1+1", fwd_hooks=everything)
    assert all(torch.equal(value, before[name]) for name, value in two_layers.state_dict().items())


def test_a_heads_result_is_what_the_logits_lose_without_it(model: Decoder) -> None:
    """Zeroing `hook_result` of one head is a forward pass with that head's W_O zeroed."""
    layer, head = model.cfg.n_layers - 1, 2
    model.set_use_attn_result(True)

    def ablate(value: Tensor, hook: Any) -> Tensor:
        value[:, :, head] = 0
        return value

    with torch.no_grad():
        ablated = model.run_with_hooks(TEXTS, fwd_hooks=[(f"blocks.{layer}.attn.hook_result", ablate)])
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    weights[f"blocks.{layer}.attn.W_O"][head] = 0
    expected = forward.logits(weights, model.to_tokens(TEXTS), model.architecture)
    assert torch.allclose(ablated, expected, rtol=0, atol=1e-12)
    assert not torch.allclose(ablated, model(TEXTS), atol=1e-3)


def test_the_split_inputs_move_one_path_of_one_head(two_layers: Decoder) -> None:
    """Adding v to head 1's query input adds v W_Q to its queries and changes nothing else."""
    model = two_layers.double()
    v = torch.linspace(-1, 1, 32, dtype=torch.float64)

    def shift_input(value: Tensor, hook: Any) -> Tensor:
        value = value.clone()
        value[:, :, 1] += v
        return value

    def shift_query(value: Tensor, hook: Any) -> Tensor:
        value = value.clone()
        value[:, :, 1] += v @ model.W_Q[1, 1]
        return value

    expected = model.run_with_hooks(TEXTS, fwd_hooks=[("blocks.1.attn.hook_q", shift_query)])
    model.set_use_split_qkv_input(True)
    found = model.run_with_hooks(TEXTS, fwd_hooks=[("blocks.1.attn.hook_q_input", shift_input)])
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)
    assert not torch.allclose(found, model(TEXTS), atol=1e-4)


def test_what_the_mlp_reads_can_change_apart_from_the_stream(model: Decoder) -> None:
    model.set_use_hook_mlp_in(True)
    last = model.cfg.n_layers - 1
    with torch.no_grad():
        _, before = model.run_with_cache(TEXTS)
        blind = model.run_with_hooks(
            TEXTS, fwd_hooks=[(f"blocks.{last}.hook_mlp_in", lambda value, hook: value.zero_())]
        )
    assert torch.allclose(blind, before["resid_mid", last] @ model.W_U, rtol=0, atol=1e-12)


def test_the_copy_for_all_of_a_heads_inputs_moves_queries_keys_and_values(model: Decoder) -> None:
    model.set_use_attn_in(True)
    shift = torch.linspace(-1, 1, 32, dtype=torch.float64)

    def move(value: Tensor, hook: Any) -> Tensor:
        value[:, :, 2] += shift
        return value

    with torch.no_grad(), model.hooks(fwd_hooks=[("blocks.0.attn.hook_attn_in", move)]):
        _, moved = model.run_with_cache(TEXTS)
    _, before = model.run_with_cache(TEXTS)
    for kind, W in (("q", model.W_Q), ("k", model.W_K), ("v", model.W_V)):
        change = moved[kind, 0] - before[kind, 0]
        assert torch.allclose(change[:, :, 2], (shift @ W[0, 2]).expand(3, 16, 8), rtol=0, atol=1e-12)
        assert not change[:, :, [0, 1, 3]].abs().gt(1e-12).any()
