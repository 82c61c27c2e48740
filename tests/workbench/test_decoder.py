from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformer_lens.utilities import get_act_name

from workbench import checkpoint, forward
from workbench.decoder import Decoder, load_all
from workbench.engine import plain
from workbench.errors import BadInput
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, Recipe, RunConfig
from workbench.task import Problems, encode

PARAMETERS = {("relu", 1): 9_536, ("relu", 2): 17_728, ("bilinear", 1): 11_584, ("bilinear", 2): 21_824}
TEXTS = ["1234+0567", "0123-0456", "9999+9999"]


def weights_of(model: Decoder) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in model.named_parameters()}


# --- what it is


def test_state_dict_holds_the_named_tensors_and_nothing_else(model: Decoder) -> None:
    shape = model.architecture
    assert {name: tuple(value.shape) for name, value in model.state_dict().items()} == shape.shapes
    assert list(model.state_dict()) == list(shape.shapes)
    assert sum(value.numel() for value in model.state_dict().values()) == PARAMETERS[shape.mlp, shape.n_layers]
    assert sum(value.numel() for value in model.parameters()) == PARAMETERS[shape.mlp, shape.n_layers]
    assert not list(model.buffers())


def test_logits_are_those_of_the_plain_functions_bit_for_bit(model: Decoder) -> None:
    tokens = model.to_tokens(TEXTS)
    for _ in range(2):  # float32, then float64
        expected = forward.logits(weights_of(model), tokens, model.architecture)
        assert torch.equal(model(tokens), expected)
        assert torch.equal(model.run_with_cache(tokens)[0], expected)
        model = model.double()


def test_hooks_fire_under_transformer_lens_names_and_shapes(model: Decoder) -> None:
    """Against a GPT-2 of the same shape in TransformerLens's own model class, with its per-head hooks on."""
    from tokenizers import Tokenizer, models
    from transformer_lens.model_bridge.sources import transformers as source
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    n_layers = model.cfg.n_layers
    sizes = {"vocab_size": 13, "n_positions": 16, "n_embd": 32, "n_layer": n_layers, "n_head": 4, "n_inner": 64}
    words = models.WordLevel({c: i for i, c in enumerate("0123456789+-=")}, unk_token="=")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(words), eos_token="=", pad_token="=", unk_token="=")
    gpt2 = source.boot("gpt2", hf_model=GPT2LMHeadModel(GPT2Config(**sizes)), device="cpu", tokenizer=tokenizer)
    gpt2.enable_compatibility_mode(no_processing=True)
    shapes = []
    for each in (gpt2, model):
        each.set_use_attn_result(True)
        each.set_use_hook_mlp_in(True)
        each.set_use_split_qkv_input(True)
        cache = dict(each.run_with_cache(torch.zeros(2, 11, dtype=torch.long))[1].items())
        each.set_use_split_qkv_input(False)
        each.set_use_attn_in(True)
        cache |= dict(each.run_with_cache(torch.zeros(2, 11, dtype=torch.long))[1].items())
        shapes.append({name: tuple(value.shape)[1:] for name, value in cache.items()})
    theirs, ours = shapes
    if model.architecture.mlp == "bilinear":  # GPT-2 has no gate; the name is TransformerLens's all the same
        for layer in range(n_layers):
            assert ours.pop(get_act_name("pre_linear", layer)) == (11, 64)
    assert ours == {name: theirs[name] for name in ours}
    assert set(model.hook_dict) >= set(ours)
    assert len(model.hook_dict) == len(ours) + (n_layers if model.architecture.mlp == "bilinear" else 0)


def test_every_hook_point_is_one_that_the_functions_tap(model: Decoder) -> None:
    extras = [forward.Extras(True, True, False, True), forward.Extras(True, False, True, True)]
    assert set(model.hook_dict) == {name for extra in extras for name in forward.hook_names(model.architecture, extra)}


def test_attention_patterns_are_causal_distributions(model: Decoder) -> None:
    _, cache = model.double().run_with_cache(TEXTS)
    for layer in range(model.cfg.n_layers):
        pattern = cache["pattern", layer]
        assert pattern.shape == (3, 4, 16, 16)
        assert torch.allclose(pattern.sum(-1), torch.ones(3, 4, 16, dtype=torch.float64))
        assert (pattern >= 0).all()
        assert (pattern.triu(1) == 0).all()


# --- loading


def test_a_new_decoder_is_zero_and_an_untrained_one_is_where_a_run_begins(model: Decoder) -> None:
    shape = model.architecture
    assert all(not value.any() for value in Decoder(shape).state_dict().values())
    expected = initial_weights(shape, "fan-in", 0)
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())
    assert not model.training
    assert Decoder.untrained(shape, "fan-in", 0).to_tokens("1-2")[0, 10] == 11
    assert Decoder.untrained(shape, "fan-in", 0, problems="sign-hidden").to_tokens("1-2")[0, 10] == 12


def test_from_directory_gives_what_is_on_disk(tmp_path: Path, write_run: Callable[..., Path]) -> None:
    config = RunConfig(
        Architecture(mlp="bilinear", n_layers=2), Recipe(init="half"), problems="sign-hidden", seed=5, engine="plain"
    )
    weights = initial_weights(config.architecture, "half", 5)
    write_run(tmp_path / config.name, config, {1: 2.0})
    model, found = Decoder.from_directory(str(tmp_path / config.name))
    assert found == config
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert not model.training
    assert all(value.requires_grad for value in model.parameters())  # attribution patching needs gradients
    same = Decoder.from_checkpoint(checkpoint.read(tmp_path / config.name))
    assert torch.equal(same("1+1"), model("1+1"))
    assert model.to_string(model.to_tokens("0123-0456")) == ["0123-0456==00333"]  # the variant hides the sign


def test_from_directory_refuses_what_a_checkpoint_must_not_be(tmp_path: Path, write_run: Callable[..., Path]) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        Decoder.from_directory(tmp_path / "nothing")
    config = RunConfig(Architecture(n_layers=1))
    weights = initial_weights(config.architecture, "half", 0)
    weights["unembed.W_U"][3, 3] = torch.nan
    bad = write_run(tmp_path / "bad", config, {1: 2.0}) / checkpoint.WEIGHTS
    bad.write_bytes(checkpoint.weight_bytes({name: value.numpy() for name, value in weights.items()}))
    with pytest.raises(BadInput, match=r"unembed\.W_U holds 1 non-finite"):
        Decoder.from_directory(tmp_path / "bad")


def test_load_all_is_in_reading_order_and_says_what_it_skips(tmp_path: Path, write_run: Callable[..., Path]) -> None:
    configs = [
        RunConfig(Architecture(mlp=mlp, n_layers=n), Recipe(init="half"), seed=seed)
        for mlp, n, seed in [("bilinear", 1, 0), ("relu", 2, 0), ("relu", 1, 10), ("relu", 1, 2)]
    ]
    for config in configs:
        write_run(tmp_path / config.name, config, {1: 2.0})
    unfinished = tmp_path / "arithmetic-bilinear-2layer-seed0.partial"
    unfinished.mkdir()
    (unfinished / checkpoint.CONFIG).write_text("{}")
    with pytest.warns(UserWarning, match=r"arithmetic-bilinear-2layer-seed0\.partial: an unfinished run, skipped"):
        loaded = list(load_all(tmp_path))
    assert [config.name for _, config in loaded] == [
        "arithmetic-relu-1layer-seed2",
        "arithmetic-relu-1layer-seed10",
        "arithmetic-relu-2layer-seed0",
        "arithmetic-bilinear-1layer-seed0",
    ]
    for model, config in loaded:
        assert torch.equal(model.W_E, initial_weights(config.architecture, "half", config.seed)["embed.W_E"])


# --- what a forward pass returns


def test_the_loss_is_the_one_training_uses(model: Decoder) -> None:
    model = model.double()
    tokens = torch.from_numpy(encode(Problems.from_index(np.arange(0, 200_000_000, 2_000_003))))
    loss = model(tokens, return_type="loss")
    assert loss.item() == pytest.approx(plain.loss(weights_of(model), tokens, model.architecture).item(), rel=1e-12)
    each = model(tokens, return_type="loss", loss_per_token=True)
    assert each.shape == (100, 5)
    assert each.mean().item() == pytest.approx(loss.item(), rel=1e-12)
    logits, both = model(tokens, return_type="both")
    assert torch.equal(logits, model(tokens))
    assert torch.equal(both, loss)
    # Digit d2 of the first problem, by hand: predicted at position 12, standing at 13.
    assert each[0, 2].item() == pytest.approx(-logits[0, 12].log_softmax(-1)[int(tokens[0, 13])].item(), rel=1e-12)
    assert model(tokens, return_type=None) is None


def test_one_row_of_tokens_is_a_batch_of_one(two_layers: Decoder) -> None:
    tokens = two_layers.to_tokens("1+1")
    assert torch.equal(two_layers(tokens[0]), two_layers(tokens))
    assert two_layers(tokens[:0]).shape == (0, 16, 13)


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (torch.tensor([[-1]]), "outside 0..12"),
        (torch.tensor([[13]]), "outside 0..12"),
        (torch.zeros(1, 17, dtype=torch.long), "expected integers"),
        (torch.zeros(1, 0, dtype=torch.long), "expected integers"),
        (torch.zeros(1, 3), "torch.float32"),
        (torch.zeros(1, 1, 3, dtype=torch.long), "expected integers"),
    ],
)
def test_tokens_that_mean_nothing_are_refused(two_layers: Decoder, tokens: Tensor, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        two_layers(tokens)


def test_a_loss_of_part_of_a_problem_and_an_unknown_return_are_refused(two_layers: Decoder) -> None:
    with pytest.raises(BadInput, match="16 tokens, found 15"):
        two_layers(two_layers.to_tokens("1+1")[:, :15], return_type="loss")
    with pytest.raises((BadInput, TypeError), match="perplexity"):  # the shape checker may come first
        two_layers("1+1", return_type="perplexity")  # type: ignore[arg-type]
