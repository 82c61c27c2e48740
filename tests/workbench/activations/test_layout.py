import copy
import json

import pytest

from workbench.activations.layout import Index, Shard, Source, Stored, read_index
from workbench.errors import BadInput
from workbench.recipe import Architecture

NAME = "arithmetic-relu-2layer-seed0"
HOOKS = ("blocks.0.attn.hook_pattern", "blocks.0.hook_resid_post", "blocks.1.hook_resid_post")
# 4 heads x 4 queries x 15 keys and two residual streams of 4 positions x 32, in float32; 16 token ids; one problem
ROW_BYTES = 4 * (4 * 4 * 15 + 2 * 4 * 32) + 16 + 4


@pytest.fixture
def stored(tmp_path):
    """A folder with an index of 3,000 problems in three shards, and the index's values."""
    tensors = tuple(Stored(hook, NAME, hook, (8, 9, 10, 14), "float32") for hook in HOOKS)
    shards = tuple(
        Shard(f"shard-{i:05d}.safetensors", 1_000 * i, 1_000 * (i + 1), 1_000 * ROW_BYTES + 400, "0" * 64)
        for i in range(3)
    )
    index = Index({NAME: Source("a" * 64, Architecture(), "all")}, tensors, 3_000, "by hand", shards=shards)
    (tmp_path / "index.json").write_text(json.dumps(index.to_dict()))
    return tmp_path, index.to_dict()


def test_an_index_is_what_it_was(stored):
    folder, values = stored
    index = read_index(folder)
    assert index.to_dict() == values and Index.from_dict(values) == index
    assert index.row_bytes == ROW_BYTES
    assert index.rows_a_shard(4) == 4 * 2**20 // ROW_BYTES
    assert not index.hides_sign


def test_a_row_larger_than_a_shard_still_gets_one():
    hook = "blocks.0.attn.hook_pattern"
    source = Source("a" * 64, Architecture(n_heads=4096), "sign-hidden")
    index = Index({"wide": source}, (Stored(hook, "wide", hook, (0, 1), "float64"),), 10, "")
    assert index.row_bytes == 8 * 4096 * 2 * 15 + 20
    assert [index.rows_a_shard(mb) for mb in (1, 2)] == [1, 2]
    assert index.hides_sign


def change(path, value):
    """A function that sets (or with `...` removes) one field deep in the index."""

    def apply(values):
        *inner, last = path
        for key in inner:
            values = values[key]
        if value is ...:
            del values[last]
        else:
            values[last] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["schema"], 2, "not the index of an export"),
        (["schema"], "1", "not the index of an export"),
        (["kind"], ..., "not the index of an export"),
        (["n_problems"], True, "n_problems is bool, expected int"),
        (["n_problems"], 3000.0, "n_problems is float, expected int"),
        (["n_problems"], -1, "n_problems is -1"),
        (["n_problems"], 10**30, "n_problems is 1000"),
        (["n_problems"], 2999, "axes or shape"),
        (["chosen"], None, "chosen is NoneType, expected str"),
        (["vocabulary"], "0123456789+-", "vocabulary .* lacks"),
        (["vocabulary"], "0123456789+-==", "vocabulary .* repeats"),
        (["vocabulary"], [0], "vocabulary is list"),
        (["checkpoints"], [], "checkpoints is list"),
        (["checkpoints", NAME], None, "something that is not an object"),
        (["checkpoints", NAME, "weights_sha256"], "0" * 63, "weights_sha256 is not 64"),
        (["checkpoints", NAME, "weights_sha256"], "G" * 64, "weights_sha256 is not 64"),
        (["checkpoints", NAME, "variant"], "other", "variant is 'other'"),
        (["checkpoints", NAME, "architecture", "n_layers"], 10**9, "n_layers|sizes?"),
        (["checkpoints", NAME, "architecture", "n_layers"], "2", "n_layers"),
        (["checkpoints", NAME, "architecture", "extra"], 1, "unknown field 'extra'"),
        (["checkpoints", NAME, "architecture", "d_model"], 64, "axes or shape"),
        (["tensors"], [], "tensors is empty"),
        (["tensors"], {}, "tensors is dict"),
        (["tensors", 0], "hook_embed", "not an object"),
        (["tensors", 0, "name"], "token_ids", "a tensor is named 'token_ids'"),
        (["tensors", 0, "name"], "", "a tensor is named ''"),
        (["tensors", 0, "name"], "blocks.1.hook_resid_post", "names one twice"),
        (["tensors", 0, "checkpoint"], "other", "unknown checkpoint 'other'"),
        (["tensors", 0, "hook"], "blocks.7.hook_resid_post", "unknown hook"),
        (["tensors", 0, "dtype"], "float8", "dtype 'float8'"),
        (["tensors", 0, "positions"], [], "positions of"),
        (["tensors", 0, "positions"], [9, 8, 10, 14], "positions of"),
        (["tensors", 0, "positions"], [8, 9, 10, 15], "positions of"),
        (["tensors", 0, "positions"], [8, 9, True, 14], "positions of"),
        (["tensors", 0, "positions"], [8, 9, [], 14], "positions of"),
        (["tensors", 0, "shape"], [3000, 4, 33], "axes or shape"),
        (["tensors", 0, "axes"], ["problem", "pos"], "axes or shape"),
        (["shards"], None, "shards is NoneType"),
        (["shards"], [], "shards hold 0 problems"),
        (["shards", 0, "file"], "../shard-00000.safetensors", "not the name of a shard"),
        (["shards", 0, "file"], "/etc/passwd", "not the name of a shard"),
        (["shards", 0, "file"], "shard-00000.safetensors\n", "not the name of a shard"),
        (["shards", 0, "file"], "shard-00001.safetensors", "listed twice"),
        (["shards", 0, "start"], 1, "holds problems 1 to"),
        (["shards", 0, "stop"], 0, "holds problems 0 to 0"),
        (["shards", 2, "stop"], 2999, "does not fit|shards hold"),
        (["shards", 0, "bytes"], 10**12, "does not fit its tensors"),
        (["shards", 0, "bytes"], 0, "does not fit its tensors"),
        (["shards", 0, "sha256"], ..., "sha256 is NoneType"),
    ],
)
def test_a_hostile_index_is_refused_in_one_line(stored, path, value, said):
    folder, values = stored
    changed = copy.deepcopy(values)
    change(path, value)(changed)
    (folder / "index.json").write_text(json.dumps(changed))
    with pytest.raises(BadInput, match=said) as refused:
        read_index(folder)
    message = str(refused.value)
    assert message.startswith(f"{folder / 'index.json'}: ") and message.endswith("export again")
    assert "\n" not in message and len(message) < 600


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not readable as JSON"),
        (b"[1, 2]", "a JSON list, expected an object"),
        (b"\x80\x04pickle", "not readable as JSON"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"[" * 100_000, "not readable as JSON"),
    ],
)
def test_what_is_no_index_is_named(stored, content, said):
    folder, _ = stored
    (folder / "index.json").write_bytes(content)
    with pytest.raises(BadInput, match=said):
        read_index(folder)


def test_where_there_is_no_export(tmp_path):
    with pytest.raises(BadInput, match="no such folder"):
        read_index(tmp_path / "missing")
    with pytest.raises(BadInput, match="no export in it"):
        read_index(tmp_path)
    (tmp_path / "shard-00000.safetensors").write_bytes(b"")
    with pytest.raises(BadInput, match="shards without an index"):
        read_index(tmp_path)
