"""Every method of TransformerLens's ActivationCache on the decoder, in float64."""

import pytest
import torch
from torch import Tensor
from transformer_lens import ActivationCache

from workbench.decoder import Decoder


@pytest.fixture
def cache(model: Decoder, clean: Tensor) -> ActivationCache:
    return model.run_with_cache(clean)[1]


@pytest.fixture
def logits(model: Decoder, clean: Tensor) -> Tensor:
    return model(clean)


def close(found: Tensor, expected: Tensor) -> bool:
    return found.shape == expected.shape and torch.allclose(found, expected, rtol=0, atol=1e-11)


def test_decompose_resid_sums_to_the_stream_it_decomposes(model: Decoder, cache: ActivationCache) -> None:
    n = model.cfg.n_layers
    stack, labels = cache.decompose_resid(return_labels=True)
    layers = [f"{layer}_{part}_out" for layer in range(n) for part in ("attn", "mlp")]
    assert labels == ["embed", "pos_embed", *layers]
    assert close(stack.sum(0), cache["resid_post", -1])
    assert close(cache.decompose_resid(n - 1, mlp_input=True).sum(0), cache["resid_mid", n - 1])
    attn, mlp = (cache.decompose_resid(mode=mode, incl_embeds=False) for mode in ("attn", "mlp"))
    assert attn.shape == mlp.shape == (n, 3, 15, 32)
    assert close(attn.sum(0) + mlp.sum(0) + stack[:2].sum(0), cache["resid_post", -1])
    assert close(cache.decompose_resid(pos_slice=-1, apply_ln=True).sum(0), cache["resid_post", -1][:, -1])


def test_accumulated_resid_is_the_stream_after_each_part(model: Decoder, cache: ActivationCache) -> None:
    n = model.cfg.n_layers
    stack, labels = cache.accumulated_resid(incl_mid=True, return_labels=True)
    assert labels == [f"{layer}_{point}" for layer in range(n) for point in ("pre", "mid")] + ["final_post"]
    assert close(stack[1] - stack[0], cache["attn_out", 0])
    assert close(stack[2] - stack[1], cache["mlp_out", 0])
    assert close(cache.accumulated_resid(apply_ln=True), stack[::2])
    assert len(cache.accumulated_resid(n - 1, mlp_input=True)) == n + 1


def test_logit_attrs_sum_to_the_logits(cache: ActivationCache, clean: Tensor, logits: Tensor) -> None:
    stack = cache.decompose_resid()
    assert close(cache.logit_attrs(stack, 7).sum(0), logits[..., 7])
    assert close(cache.logit_attrs(stack, "7").sum(0), logits[..., 7])
    difference = cache.logit_attrs(stack, "7", incorrect_tokens="+").sum(0)
    assert close(difference, logits[..., 7] - logits[..., 10])
    targets = torch.tensor([1, 2, 3])
    assert close(cache.logit_attrs(stack, targets).sum(0)[1], logits[1, :, 2])
    at_each = cache.logit_attrs(stack[:, :, :-1], clean[:, 1:]).sum(0)
    assert close(at_each, logits[:, :-1].gather(2, clean[:, 1:, None]).squeeze(2))
    picked = cache.logit_attrs(stack, 5, batch_slice=[0, 2])
    assert close(picked.sum(0), logits[[0, 2], :, 5])


def test_head_results_are_z_times_W_O_and_sum_with_the_rest(
    model: Decoder, cache: ActivationCache, clean: Tensor
) -> None:
    n = model.cfg.n_layers
    stack, labels = cache.stack_head_results(incl_remainder=True, return_labels=True)
    assert labels == [f"L{layer}H{head}" for layer in range(n) for head in range(4)] + ["remainder"]
    assert close(stack.sum(0), cache["resid_post", -1])
    assert close(stack[labels.index(f"L{n - 1}H2")], cache["z", n - 1][:, :, 2] @ model.W_O[n - 1, 2])
    assert close(stack[4 * n - 4 : 4 * n].sum(0), cache["attn_out", n - 1])
    model.set_use_attn_result(True)
    _, computed = model.run_with_cache(clean)
    computed.compute_head_results()  # finds them there
    assert close(computed["result", n - 1], stack[4 * n - 4 : 4 * n].permute(1, 2, 0, 3))
    assert close(cache.stack_head_results(pos_slice=3, apply_ln=True), stack[:-1, :, 3])


def test_neuron_results_sum_to_what_the_mlps_wrote(model: Decoder, cache: ActivationCache) -> None:
    n = model.cfg.n_layers
    stack, labels = cache.stack_neuron_results(n, return_labels=True, incl_remainder=True)
    assert stack.shape == (64 * n + 1, 3, 15, 32)
    assert (labels[0], labels[-1]) == ("L0N0", "remainder")
    assert close(stack.sum(0), cache["resid_post", -1])
    assert close(stack[:64].sum(0), cache["mlp_out", 0])
    one = cache.get_neuron_results(0, neuron_slice=[5], pos_slice=slice(2, 4))
    assert close(one.squeeze(2), cache["post", 0][:, 2:4, 5, None] * model.W_out[0, 5])
    projected = cache.stack_neuron_results(n, project_output_onto=model.W_U[:, 3])
    assert close(projected[:64].sum(0), cache["mlp_out", 0] @ model.W_U[:, 3])
    middle = cache.stack_neuron_results(n - 1, mlp_input=True, incl_remainder=True)
    assert close(middle.sum(0), cache["resid_mid", n - 1])


def test_the_full_decomposition_has_every_part_once(model: Decoder, cache: ActivationCache, logits: Tensor) -> None:
    n = model.cfg.n_layers
    stack, labels = cache.get_full_resid_decomposition(return_labels=True)
    assert len(labels) == len(set(labels)) == n * (4 + 64) + 3
    assert labels[-3:] == ["embed", "pos_embed", "bias"]
    assert close(stack.sum(0), cache["resid_post", -1])
    assert not stack[-1].any()
    whole = cache.get_full_resid_decomposition(expand_neurons=False, apply_ln=True)
    assert whole.shape[0] == n * 5 + 3
    assert close(whole.sum(0), cache["resid_post", -1])
    projected = cache.get_full_resid_decomposition(project_output_onto=model.W_U, pos_slice=-1)
    assert close(projected.sum(0), logits[:, -1])
    assert close(cache.get_full_resid_decomposition(n - 1, mlp_input=True).sum(0), cache["resid_mid", n - 1])


def test_the_logit_lens_ends_in_the_logits(
    model: Decoder, cache: ActivationCache, clean: Tensor, logits: Tensor
) -> None:
    n = model.cfg.n_layers
    lens = cache.logit_lens(positions=None, incl_mid=True)
    assert lens.labels[0] == "0_pre"
    assert close(lens.values[-1], logits)
    assert close(lens.values[0], (cache["embed"] + cache["pos_embed"]) @ model.W_U)
    following = cache.logit_lens(positions=slice(0, 14), targets=clean[:, 1:])
    assert close(following.values[-1, ..., 0], logits[:, :-1].gather(2, clean[:, 1:, None]).squeeze(2))
    ranks = (logits[:, :-1] > logits[:, :-1].gather(2, clean[:, 1:, None])).sum(-1)
    assert torch.equal(following.rank_trajectory()[-1], ranks)
    best = cache.logit_lens(top_k=1)
    assert torch.equal(best.readout.top_ids[-1, :, 0], logits[:, -1].argmax(-1))
    assert best.top_tokens(model.tokenizer)["final_post"] == [
        [model.to_string(row)] for row in logits[:, -1].argmax(-1)
    ]
    table = cache.logit_lens(targets=["+", "-"], return_type="log_probs").to_dataframe(model.tokenizer)
    assert len(table) == (n + 1) * 3 * 2
    assert set(table["token_string"]) == {"+", "-"}


def test_activations_are_found_by_their_short_names(model: Decoder, cache: ActivationCache) -> None:
    n = model.cfg.n_layers
    for short, name in {"q": "attn.hook_q", "pattern": "attn.hook_pattern", "pre": "mlp.hook_pre"}.items():
        assert cache[short, 0] is cache[f"blocks.0.{name}"]
    assert cache["resid_post", -1] is cache[f"blocks.{n - 1}.hook_resid_post"]
    assert cache.stack_activation("z").shape == (n, 3, 15, 4, 8)
    assert len(cache) == len(list(cache.items())) == len(list(cache.values())) == len(set(cache))
    assert list(cache.keys()) == list(cache)


def test_batches_can_be_sliced_moved_and_dropped(model: Decoder, cache: ActivationCache, clean: Tensor) -> None:
    sliced = cache.apply_slice_to_batch_dim([0, 2])
    assert torch.equal(sliced["resid_pre", 0], cache["resid_pre", 0][[0, 2]])
    one = model.run_with_cache(clean[1:2])[1].remove_batch_dim()
    assert close(one["pattern", 0], cache["pattern", 0][1])
    assert close(one.decompose_resid().sum(0), one["resid_post", -1])
    assert close(one.stack_head_results(incl_remainder=True).sum(0), one["resid_post", -1])
    assert cache.to("cpu") is cache
    cache.toggle_autodiff(torch.is_grad_enabled())  # global state: set to what it is


def test_normalisation_is_the_identity_it_is_in_the_model(cache: ActivationCache) -> None:
    stack = cache.decompose_resid()
    assert torch.equal(cache.apply_ln_to_stack(stack), stack)
    assert torch.equal(cache.apply_ln_to_stack(stack, batch_slice=1, recompute_ln=True), stack[:, 1])


def test_normalising_and_projecting_at_once_asks_for_a_scale_that_is_not_there(
    model: Decoder, cache: ActivationCache
) -> None:
    for stacked in (cache.get_full_resid_decomposition, lambda **k: cache.stack_neuron_results(1, **k)):
        with pytest.raises(LookupError):
            stacked(apply_ln=True, project_output_onto=model.W_U)


def test_there_is_no_recurrent_state_to_compute(cache: ActivationCache) -> None:
    assert cache.ssm_layers() == []
    for compute in (cache.compute_ssm_state, cache.compute_ssm_effective_attention):
        with pytest.raises(RuntimeError, match="No SSM mixer layers"):
            compute()
