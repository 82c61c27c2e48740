import dataclasses
import json
import math
from typing import Any

import pytest

from workbench.errors import BadInput
from workbench.recipe import Architecture, Auxiliary, Recipe, RunConfig, twelve

# Parameters by hand: 13*32 + 16*32 + 32*13 = 1344 outside the layers; a layer has 4*4*32*8 = 4096 in attention and
# 2*32*64 = 4096 in a relu MLP, 3*32*64 = 6144 in a bilinear one.
PARAMETERS = {("relu", 1): 9_536, ("relu", 2): 17_728, ("bilinear", 1): 11_584, ("bilinear", 2): 21_824}

GRID = [
    "arithmetic-relu-1layer-seed0",
    "arithmetic-relu-1layer-seed1",
    "arithmetic-relu-1layer-seed2",
    "arithmetic-relu-2layer-seed0",
    "arithmetic-relu-2layer-seed1",
    "arithmetic-relu-2layer-seed2",
    "arithmetic-bilinear-1layer-seed0",
    "arithmetic-bilinear-1layer-seed1",
    "arithmetic-bilinear-1layer-seed2",
    "arithmetic-bilinear-2layer-seed0",
    "arithmetic-bilinear-2layer-seed1",
    "arithmetic-bilinear-2layer-seed2",
]


def changed(part: str, **values: Any) -> dict[str, Any]:
    """config.json's object with fields replaced, in `architecture`, `recipe` or (part "") the object itself."""
    config = json.loads(json.dumps(RunConfig().to_dict()))
    (config[part] if part else config).update(values)
    return config


@pytest.mark.parametrize(("mlp", "n_layers"), PARAMETERS)
def test_parameter_counts_are_the_hand_counted_ones(mlp: Any, n_layers: int) -> None:
    assert Architecture(mlp=mlp, n_layers=n_layers).n_params == PARAMETERS[mlp, n_layers]


def test_tensors_have_the_names_and_shapes_of_the_published_decoder() -> None:
    assert Architecture(mlp="bilinear", n_layers=1).shapes == {
        "embed.W_E": (13, 32),
        "pos_embed.W_pos": (16, 32),
        "blocks.0.attn.W_Q": (4, 32, 8),
        "blocks.0.attn.W_K": (4, 32, 8),
        "blocks.0.attn.W_V": (4, 32, 8),
        "blocks.0.attn.W_O": (4, 8, 32),
        "blocks.0.mlp.W_gate": (32, 64),
        "blocks.0.mlp.W_in": (32, 64),
        "blocks.0.mlp.W_out": (64, 32),
        "unembed.W_U": (32, 13),
    }
    relu = list(Architecture(mlp="relu", n_layers=2).shapes)
    assert not any("W_gate" in name for name in relu)
    assert [name for name in relu if name.startswith("blocks.1.")] == [
        f"blocks.1.{name}" for name in ("attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O", "mlp.W_in", "mlp.W_out")
    ]


def test_the_default_recipe_is_the_published_one() -> None:
    recipe = Recipe()
    assert (recipe.lr, recipe.warmup_steps, recipe.batch_size, recipe.weight_decay) == (0.02, 200, 1024, 0.01)
    assert (recipe.grad_clip, recipe.validation_every) == (1.0, 200)
    assert recipe.steps == 4_883  # 5,000,000 / 1024 = 4882.8
    assert recipe.steps * 1024 - 5_000_000 == 1024 - 832


def test_the_grid_is_the_published_twelve_in_reading_order() -> None:
    configs = twelve()
    assert [config.name for config in configs] == GRID
    assert {config.data_seed for config in configs} == {1234}
    short = Recipe(steps=10)
    assert {config.recipe for config in twelve(short)} == {short}


def test_a_variant_is_part_of_the_name() -> None:
    assert RunConfig(problems="sign-hidden", seed=7).name == "arithmetic-relu-2layer-sign-hidden-seed7"


def test_every_knob_carries_its_help() -> None:
    for kind in (Architecture, Recipe):
        assert all(len(field.metadata["help"]) > 10 for field in dataclasses.fields(kind))


@pytest.mark.parametrize("config", [*twelve(), RunConfig(problems="ordered", recipe=Recipe(lr=1e-7, init="gpt2"))])
def test_a_configuration_reads_back_equal_from_json(config: RunConfig) -> None:
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (changed("", schema=2), "schema is '2', expected 1"),
        (changed("", schema=None), "schema is 'None'"),
        (changed("", surprise=1), "config: unknown field 'surprise'"),
        ({key: value for key, value in changed("").items() if key != "seed"}, "config: missing field 'seed'"),
        (changed("", recipe=[1]), "recipe is list, expected an object"),
        (changed("", architecture=None), "architecture is NoneType"),
        (changed("architecture", mlp="gelu"), "mlp is 'gelu', expected one of relu, bilinear"),
        (changed("architecture", mlp=["relu"]), "mlp is"),
        (changed("architecture", n_layers=1.0), "n_layers is '1.0', expected int"),
        (changed("architecture", n_layers=True), "n_layers is 'True'"),
        (changed("architecture", n_layers=65), "n_layers is 65, expected at most 64"),
        (changed("architecture", d_model=0), "between 1 and 4096"),
        (changed("architecture", d_mlp=10**9), "between 1 and 4096"),
        (changed("architecture", n_ctx=17), "16 tokens a problem"),
        (changed("architecture", d_vocab=14), "13 token kinds"),
        (changed("recipe", lr=math.nan), "lr is 'nan'"),
        (changed("recipe", lr=math.inf), "lr is 'inf'"),
        (changed("recipe", lr=10**400), "lr is '1000"),
        (changed("recipe", lr=0.0), "lr and grad_clip must be positive"),
        (changed("recipe", lr="0.02"), "lr is '0.02', expected float"),
        (changed("recipe", lr=True), "lr is 'True'"),
        (changed("recipe", grad_clip=-1.0), "lr and grad_clip must be positive"),
        (changed("recipe", weight_decay=-0.1), "weight_decay must not be negative"),
        (changed("recipe", steps=0), "must be at least 1"),
        (changed("recipe", steps=4_884), "4884 steps of 1024 are more than one pass (4883 steps)"),
        (changed("recipe", batch_size=0), "batch_size must be between"),
        (changed("recipe", warmup_steps=-1), "warmup_steps must not be negative"),
        (changed("recipe", init="xavier"), "init is 'xavier', expected one of"),
        (changed("", problems="multiplication"), "problems is 'multiplication'"),
        (changed("", seed=-1), "seeds must be between"),
        (changed("", data_seed=2**63), "seeds must be between"),
        (changed("", engine="magic"), "engine is 'magic'"),
        (changed("", device="tpu"), "unknown device 'tpu'"),
        (changed("", threads=0), "threads must be between"),
    ],
)
def test_a_bad_field_is_refused_by_name(values: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput) as refusal:
        RunConfig.from_dict(values)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 250


def test_a_head_is_part_of_the_configuration_and_absent_without_one() -> None:
    assert "auxiliary" not in RunConfig().to_dict()
    config = RunConfig(auxiliary=Auxiliary(head="carry", head_form="linear", head_weight=0.5))
    stored = json.loads(json.dumps(config.to_dict()))
    assert stored["auxiliary"]["head"] == "carry" and RunConfig.from_dict(stored) == config
    assert config.name == "arithmetic-relu-2layer-carry-linear-seed0"
    assert not config.accepts(RunConfig()) and not RunConfig().accepts(config)


@pytest.mark.parametrize(
    ("site", "n_layers", "found"),
    [
        ("resid_mid", 1, "blocks.0.hook_resid_mid"),
        ("resid_post", 2, "blocks.1.hook_resid_post"),
        ("blocks.0.hook_resid_pre", 2, "blocks.0.hook_resid_pre"),
        ("blocks.1.hook_mlp_out", 2, "blocks.1.hook_mlp_out"),
    ],
)
def test_where_a_head_reads(site: str, n_layers: int, found: str) -> None:
    head = Auxiliary(head_site=site)
    assert head.site(n_layers) == found
    assert head.every_engine == found.endswith(("resid_mid", "resid_post"))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"head": "modular"}, "head is 'modular'"),
        ({"head_form": "exact"}, "head_form is 'exact'"),
        ({"head_weight": -1.0}, "head_weight is -1"),
        ({"head_weight": 1e7}, "expected 0 to 1,000,000"),
        ({"head_weight": math.nan}, "head_weight is"),
        ({"head_schedule": "cosine"}, "head_schedule is 'cosine'"),
        ({"head_site": "resid_pre"}, r"or blocks\.LAYER\.hook_"),
        ({"head_site": "blocks.0.attn.hook_z"}, r"or blocks\.LAYER\.hook_"),
        ({"head_site": "blocks.2.hook_resid_mid"}, "the decoder has 2 layers"),
    ],
)
def test_a_head_that_cannot_be_is_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        RunConfig(auxiliary=Auxiliary(**values))
    stored = changed("") | {"auxiliary": Auxiliary().__dict__ | values}
    with pytest.raises(BadInput, match=says):
        RunConfig.from_dict(stored)


@pytest.mark.parametrize("value", [None, 3, [], {"head": "carry"}])
def test_an_auxiliary_that_is_no_head_is_refused(value: Any) -> None:
    with pytest.raises(BadInput, match="auxiliary"):
        RunConfig.from_dict(changed("") | {"auxiliary": value})
