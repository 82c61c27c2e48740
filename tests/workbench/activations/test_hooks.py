import pytest
import torch

from workbench import forward
from workbench.activations.hooks import ALL_POSITIONS, choose_hooks, choose_positions, hook_axes, row_shape
from workbench.errors import BadInput
from workbench.initialise import initial_weights
from workbench.recipe import Architecture

SHAPES = [Architecture(mlp=mlp, n_layers=n) for mlp in ("relu", "bilinear") for n in (1, 2)]
ODD = Architecture(mlp="bilinear", n_layers=3, d_model=10, n_heads=3, d_head=5, d_mlp=7)


@pytest.mark.parametrize("architecture", [*SHAPES, ODD], ids=str)
def test_names_and_shapes_are_those_the_decoder_taps(architecture):
    found = {}

    def tap(name, value):
        found[name] = tuple(value.shape[1:])
        return value

    weights = initial_weights(architecture, "gpt2", 0)
    forward.logits(weights, torch.zeros(2, 15, dtype=torch.uint8), architecture, tap)
    assert list(found) == list(hook_axes(architecture))
    assert found == {name: row_shape(architecture, name) for name in found}


def test_fewer_positions_shorten_the_axis_called_pos():
    assert row_shape(ODD, "blocks.0.hook_resid_mid", (9, 10)) == (2, 10)
    assert row_shape(ODD, "blocks.0.attn.hook_q", (9, 10)) == (2, 3, 5)
    assert row_shape(ODD, "blocks.0.attn.hook_pattern", (9, 10)) == (3, 2, 15)
    assert row_shape(ODD, "blocks.0.mlp.hook_pre_linear", (9, 10)) == (2, 7)


def test_patterns_choose_hooks_once_and_in_order():
    chosen = choose_hooks(["blocks.*.hook_resid_post", "hook_embed", "blocks.1.hook_resid_post"], SHAPES[1])
    assert chosen == ("hook_embed", "blocks.0.hook_resid_post", "blocks.1.hook_resid_post")
    assert choose_hooks(["*"], SHAPES[1]) == tuple(hook_axes(SHAPES[1]))


def test_an_unknown_hook_is_answered_with_close_ones():
    with pytest.raises(
        BadInput, match=r"unknown hook 'blocks\.0\.hook_resid_pst' of a relu with 2 layers; close ones: blo"
    ):
        choose_hooks(["hook_embed", "blocks.0.hook_resid_pst"], SHAPES[1])
    with pytest.raises(BadInput, match=r"blocks\.0\.hook_resid_post"):
        choose_hooks(["resid_post"], SHAPES[0])
    with pytest.raises(BadInput, match="close ones: blocks.0.mlp.hook_pre"):  # of the other kind of MLP
        choose_hooks(["blocks.0.mlp.hook_pre_linear"], SHAPES[0])
    with pytest.raises(BadInput, match="of a relu with 1 layer; close ones: blocks.0"):  # a layer too many
        choose_hooks(["blocks.1.hook_resid_post"], SHAPES[0])
    with pytest.raises(BadInput, match="there are: hook_embed, .*hook_resid_post"):
        choose_hooks(["zzz?"], SHAPES[0])
    for nothing in ([], [""]):
        with pytest.raises(BadInput, match="hook"):
            choose_hooks(nothing, SHAPES[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10-14", (10, 11, 12, 13, 14)),
        ("4, 0,4", (0, 4)),
        ("=,s,d4", (9, 10, 11)),
        ("a3-a0,op", (0, 1, 2, 3, 4)),
        ("b0", (8,)),
        ("0-14", ALL_POSITIONS),
        ("=-14", (9, 10, 11, 12, 13, 14)),
    ],
)
def test_positions(text, expected):
    assert choose_positions(text) == expected


@pytest.mark.parametrize(
    "text", ["", "15", "d0", "-1", "14-10", "1,,2", "x", "1-2-3", "00015", "٣", "1e1", "=-", "9" * 99]
)
def test_other_positions_are_refused(text):
    with pytest.raises(BadInput, match="positions") as refused:
        choose_positions(text)
    assert len(str(refused.value)) < 300


def test_position_fifteen_is_explained():
    for text in ("15", "d0", "10-15"):
        with pytest.raises(BadInput, match="predicted, never read"):
            choose_positions(text)
