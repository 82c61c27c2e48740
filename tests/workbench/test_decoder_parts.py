import copy

import pytest
import torch
from transformer_lens import FactoredMatrix

from workbench.decoder import Decoder
from workbench.recipe import Architecture


def test_the_stacked_weights_are_the_layers_weights(model: Decoder) -> None:
    n_layers, state = model.cfg.n_layers, model.state_dict()
    sizes = {"W_Q": (4, 32, 8), "W_K": (4, 32, 8), "W_V": (4, 32, 8), "W_O": (4, 8, 32)}
    sizes |= {"W_in": (32, 64), "W_out": (64, 32)}
    if model.architecture.mlp == "bilinear":
        sizes["W_gate"] = (32, 64)
    else:
        assert model.W_gate is None
    for name, size in sizes.items():
        stacked = getattr(model, name)
        assert stacked.shape == (n_layers, *size)
        part = "attn" if name in ("W_Q", "W_K", "W_V", "W_O") else "mlp"
        assert torch.equal(stacked[-1], state[f"blocks.{n_layers - 1}.{part}.{name}"])
    assert model.W_E is model.embed.W_E
    assert torch.equal(model.W_E_pos, torch.cat([state["embed.W_E"], state["pos_embed.W_pos"]]))
    assert torch.equal(model.W_U, state["unembed.W_U"])


def test_the_biases_are_zeros_of_transformer_lens_shapes(model: Decoder) -> None:
    n = model.cfg.n_layers
    sizes = {"b_Q": (n, 4, 8), "b_K": (n, 4, 8), "b_V": (n, 4, 8), "b_O": (n, 32), "b_in": (n, 64), "b_out": (n, 32)}
    for name, size in {**sizes, "b_U": (13,)}.items():
        assert getattr(model, name).shape == size
        assert not getattr(model, name).any()
    for part, names in (("attn", ("b_Q", "b_K", "b_V", "b_O")), ("mlp", ("b_in", "b_out"))):
        for name in names:
            assert getattr(getattr(model.blocks[0], part), name).shape == sizes[name][1:]
    assert model.unembed.b_U.shape == (13,)
    assert not model.accumulated_bias(n, include_mlp_biases=False).any()
    assert model.accumulated_bias(0, mlp_input=True).shape == (32,)


def test_the_circuits_are_products_of_the_weights(model: Decoder) -> None:
    assert isinstance(model.QK, FactoredMatrix)
    assert model.QK.shape == model.OV.shape == (model.cfg.n_layers, 4, 32, 32)
    W_Q, W_K = model.W_Q[0, 3], model.W_K[0, 3]
    assert torch.allclose(model.QK.AB[0, 3], W_Q @ W_K.T, atol=1e-6)
    assert torch.allclose(model.OV.AB[0, 1], model.W_V[0, 1] @ model.W_O[0, 1], atol=1e-6)
    # Through the hooks: scores are x_query QK x_key / sqrt(8).
    _, cache = model.run_with_cache("1234-0987")
    x = cache["resid_pre", 0][0]
    assert torch.allclose(cache["attn_scores", 0][0, 3, 9, 2], x[9] @ model.QK.AB[0, 3] @ x[2] / 8**0.5, atol=1e-5)


def test_the_config_says_what_tools_read_off_it(model: Decoder) -> None:
    cfg, bilinear = model.cfg, model.architecture.mlp == "bilinear"
    assert (cfg.d_model, cfg.n_heads, cfg.d_head, cfg.d_mlp, cfg.n_ctx) == (32, 4, 8, 64, 16)
    assert (cfg.d_vocab, cfg.d_vocab_out, cfg.n_layers) == (13, 13, model.architecture.n_layers)
    assert (cfg.normalization_type, cfg.attn_only, cfg.parallel_attn_mlp) == (None, False, False)
    assert (cfg.act_fn, cfg.gated_mlp) == (("identity", True) if bilinear else ("relu", False))
    assert (cfg.attention_dir, cfg.n_key_value_heads, cfg.default_prepend_bos) == ("causal", None, False)
    assert cfg.attn_scale == pytest.approx(8**0.5)
    assert cfg.n_params == sum(value.numel() for value in model.parameters())
    assert cfg.model_name == f"arithmetic-{model.architecture.mlp}-{cfg.n_layers}layer"


def test_float64_reaches_every_tensor_and_the_config(model: Decoder) -> None:
    assert (model.cfg.dtype, model.cfg.device) == (torch.float32, "cpu")
    assert model.double() is model
    assert model.cfg.dtype == torch.float64
    logits, cache = model.run_with_cache("1+1")
    assert {logits.dtype, *(value.dtype for value in cache.values())} == {torch.float64}
    assert model.accumulated_bias(0).dtype == torch.float64


def test_a_copy_has_its_own_weights_and_hooks(two_layers: Decoder) -> None:
    twin = copy.deepcopy(two_layers)
    with torch.no_grad():
        twin.W_U.zero_()
    twin.add_hook("hook_embed", lambda value, hook: value * 0)
    assert two_layers.W_U.any()
    assert two_layers.list_hooks() == {}
    assert list(twin.list_hooks()) == ["hook_embed"]


def test_reset_parameters_draws_the_models_own_initialisation(two_layers: Decoder) -> None:
    model = Decoder(two_layers.architecture, init="gpt2")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for part in model.modules():
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
    drawn = torch.cat([value.flatten() for value in model.state_dict().values()])
    assert drawn.std().item() == pytest.approx(0.02, rel=0.03)  # 17,728 draws: standard error 0.5%
    assert all(value.any() for value in model.state_dict().values())


def test_building_and_running_change_no_global_state() -> None:
    torch_state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    model = Decoder.untrained(Architecture(n_layers=1), "fan-in", 0)
    model.run_with_cache("1+1")
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == (threads, True)
