"""The twenty `get_act_patch_*` of TransformerLens and PatchingResult on the decoder.

Every patched number is compared with the plain functions of `workbench.forward` under a tap that puts the clean slice
in place, so nothing of TransformerLens stands on the other side. TransformerLens stores results as float32.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformer_lens import ActivationCache, patching

from workbench import forward
from workbench.decoder import Decoder

AT = 14  # where the metric is read

# Sweep -> (hook inside the block, axes after the layer, the slice those axes pick).
SWEEPS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "resid_pre": ("hook_resid_pre", "p", lambda p: (slice(None), p)),
    "resid_mid": ("hook_resid_mid", "p", lambda p: (slice(None), p)),
    "attn_out": ("hook_attn_out", "p", lambda p: (slice(None), p)),
    "mlp_out": ("hook_mlp_out", "p", lambda p: (slice(None), p)),
    "attn_head_out_by_pos": ("attn.hook_z", "ph", lambda p, h: (slice(None), p, h)),
    "attn_head_q_by_pos": ("attn.hook_q", "ph", lambda p, h: (slice(None), p, h)),
    "attn_head_k_by_pos": ("attn.hook_k", "ph", lambda p, h: (slice(None), p, h)),
    "attn_head_v_by_pos": ("attn.hook_v", "ph", lambda p, h: (slice(None), p, h)),
    "attn_head_pattern_by_pos": ("attn.hook_pattern", "hp", lambda h, p: (slice(None), h, p)),
    "attn_head_pattern_dest_src_pos": ("attn.hook_pattern", "hps", lambda h, p, s: (slice(None), h, p, s)),
    "attn_head_out_all_pos": ("attn.hook_z", "h", lambda h: (slice(None), slice(None), h)),
    "attn_head_q_all_pos": ("attn.hook_q", "h", lambda h: (slice(None), slice(None), h)),
    "attn_head_k_all_pos": ("attn.hook_k", "h", lambda h: (slice(None), slice(None), h)),
    "attn_head_v_all_pos": ("attn.hook_v", "h", lambda h: (slice(None), slice(None), h)),
    "attn_head_pattern_all_pos": ("attn.hook_pattern", "h", lambda h: (slice(None), h)),
}


def difference(logits: Tensor) -> Tensor:
    """Logit of `7` less that of `2` at one position, for each problem."""
    return logits[:, AT, 7] - logits[:, AT, 2]


def metric(logits: Tensor) -> Tensor:
    return difference(logits).mean()


@pytest.fixture(autouse=True)
def no_gradients() -> Any:
    with torch.no_grad():
        yield


@pytest.fixture
def cache(model: Decoder, clean: Tensor) -> ActivationCache:
    return model.run_with_cache(clean)[1]


def patched(model: Decoder, tokens: Tensor, edits: dict[str, Callable[[Tensor], Tensor]]) -> Tensor:
    """Logits of the plain functions with some activations edited."""
    weights = dict(model.state_dict())
    return forward.logits(weights, tokens, model.architecture, lambda name, value: edits.get(name, lambda v: v)(value))


def expected_metric(model: Decoder, tokens: Tensor, name: str, where: Any, clean_value: Tensor) -> float:
    def put(value: Tensor) -> Tensor:
        value = value.clone()
        value[where] = clean_value[where]
        return value

    return metric(patched(model, tokens, {name: put})).item()


@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_sweep_puts_the_clean_slice_where_it_says(
    model: Decoder, corrupted: Tensor, cache: ActivationCache, sweep: str
) -> None:
    hook, axes, where = SWEEPS[sweep]
    if "s" in axes:  # every query and key: two problems are enough
        corrupted = corrupted[:2]
        cache = cache.apply_slice_to_batch_dim(slice(0, 2))
    found = getattr(patching, f"get_act_patch_{sweep}")(model, corrupted, cache, metric)
    sizes = {"p": 15, "h": 4, "s": 15}
    assert found.shape == (model.cfg.n_layers, *(sizes[axis] for axis in axes))
    matters = (found - metric(model(corrupted))).abs().max() > 1e-4
    # In one layer the query where the metric is read sees its own token only, which is the same in both batches.
    assert matters == (not (model.cfg.n_layers == 1 and "_q_" in sweep))
    generator = torch.Generator().manual_seed(0)
    cells = torch.cartesian_prod(*(torch.arange(size) for size in found.shape))
    for cell in cells[torch.randperm(len(cells), generator=generator)[:40]].tolist():
        name = f"blocks.{cell[0]}.{hook}"
        expected = expected_metric(model, corrupted, name, where(*cell[1:]), cache[name])
        assert found[tuple(cell)].item() == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("gradients", [False, True])
def test_patching_what_differs_restores_the_clean_metric(
    model: Decoder, clean: Tensor, corrupted: Tensor, cache: ActivationCache, gradients: bool
) -> None:
    """The batches differ at position 7 only, and the last layer's stream is read at the metric's position only."""
    with torch.set_grad_enabled(gradients):
        wanted, unpatched = metric(model(clean)).item(), metric(model(corrupted)).item()
        assert abs(wanted - unpatched) > 1e-3
        first = patching.get_act_patch_resid_pre(model, corrupted, cache, metric)[0]
        assert first[7].item() == pytest.approx(wanted, rel=1e-5)
        others = [position for position in range(15) if position != 7]
        assert torch.allclose(first[others], torch.full((14,), unpatched))
        last = patching.get_act_patch_resid_mid(model, corrupted, cache, metric)[-1]
        assert last[AT].item() == pytest.approx(wanted, rel=1e-5)
        assert torch.allclose(last[:AT], torch.full((AT,), unpatched))


def test_the_helpers_stack_the_sweeps_they_are_made_of(
    model: Decoder, corrupted: Tensor, cache: ActivationCache
) -> None:
    def sweep(name: str) -> Tensor:
        return getattr(patching, f"get_act_patch_{name}")(model, corrupted, cache, metric)

    assert torch.equal(
        sweep("block_every"), torch.stack([sweep(name) for name in ("resid_pre", "attn_out", "mlp_out")])
    )
    kinds = ("out", "q", "k", "v", "pattern")
    every = sweep("attn_head_all_pos_every")
    assert torch.equal(every, torch.stack([sweep(f"attn_head_{kind}_all_pos") for kind in kinds]))
    by_pos = [sweep(f"attn_head_{kind}_by_pos") for kind in kinds]
    by_pos[-1] = by_pos[-1].transpose(1, 2)
    assert torch.equal(sweep("attn_head_by_pos_every"), torch.stack(by_pos))


@pytest.mark.parametrize("component", ["q", "k", "v"])
def test_a_direct_path_adds_one_heads_change_to_one_later_heads_input(
    model: Decoder, corrupted: Tensor, cache: ActivationCache, component: Any
) -> None:
    _, other = model.run_with_cache(corrupted)
    found = patching.get_act_patch_direct_path_all_sources(
        model, corrupted, cache, other, metric, component, verbose=False
    )
    n = model.cfg.n_layers
    assert found.shape == (n, 4, n, 4)
    assert not model.cfg.use_split_qkv_input
    if n == 1:
        assert not found.any()  # no later layer
        return
    W = {"q": model.W_Q, "k": model.W_K, "v": model.W_V}[component]
    for source, head in ((0, 3), (2, 2), (3, 1)):
        change = (cache["z", 0] - other["z", 0])[:, :, source] @ model.W_O[0, source] @ W[1, head]

        def add(value: Tensor, change: Tensor = change, head: int = head) -> Tensor:
            value = value.clone()
            value[:, :, head] += change
            return value

        expected = metric(patched(model, corrupted, {f"blocks.1.attn.hook_{component}": add})).item()
        assert found[0, source, 1, head].item() == pytest.approx(expected, rel=1e-5)
    one = patching.get_act_patch_direct_path(model, corrupted, cache, other, metric, 0, 2, component, verbose=False)
    assert torch.equal(one, found[0, 2])


def test_a_patching_result_keeps_each_problem_and_its_statistics(
    model: Decoder, clean: Tensor, corrupted: Tensor, cache: ActivationCache
) -> None:
    result = patching.get_act_patch_resid_pre(model, corrupted, cache, difference, reduce="none", baseline=True)
    assert result.values.shape == (model.cfg.n_layers, 15, 3)
    scalar = patching.get_act_patch_resid_pre(model, corrupted, cache, metric)
    assert torch.allclose(result.mean(), scalar, atol=1e-6)
    assert torch.allclose(result.baseline, difference(model(corrupted)).float(), atol=1e-6)
    recovered = result.normalized(difference(model(clean)).float())[0]
    assert torch.allclose(recovered[7], torch.ones(3), atol=1e-4)
    assert torch.allclose(recovered[:7], torch.zeros(7, 3), atol=1e-4)
    values = result.values[0, 7]
    assert result.stderr()[0, 7].item() == pytest.approx((values.std() / 3**0.5).item(), rel=1e-5)
    low, high = result.bootstrap_ci(n_resamples=200, of_effect=True)
    effect = result.effect()
    assert ((low <= effect.mean(-1) + 1e-6) & (effect.mean(-1) - 1e-6 <= high)).all()
    assert torch.allclose(low[0, :7], torch.zeros(7), atol=1e-6)
    assert (low >= effect.amin(-1) - 1e-6).all()
    assert (high <= effect.amax(-1) + 1e-6).all()
    p = result.permutation_pvalue()
    assert ((p * 8).round() / 8 - p).abs().max() < 1e-6  # three problems: exact, in eighths
    assert len(result.to_dataframe()) == result.values.numel()


def test_several_metrics_are_read_off_the_same_runs(model: Decoder, corrupted: Tensor, cache: ActivationCache) -> None:
    both = {"difference": difference, "seven": lambda logits: logits[:, AT, 7]}
    result = patching.get_act_patch_attn_head_all_pos_every(model, corrupted, cache, both, reduce="none")
    assert result.patch_type_names == ["out", "q", "k", "v", "pattern"]
    assert result.values.shape == (2, 5, model.cfg.n_layers, 4, 3)
    alone = patching.get_act_patch_attn_head_v_all_pos(model, corrupted, cache, both["seven"], reduce="none")
    assert torch.equal(result["seven"].values[3], alone.values)
