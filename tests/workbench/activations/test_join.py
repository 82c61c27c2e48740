import hashlib
import json

import numpy as np
import pytest
import safetensors.torch
import torch

from workbench.activations.export import export
from workbench.activations.join import align, append, check_same_problems, rechunk
from workbench.activations.read import read_export
from workbench.errors import BadInput
from workbench.sample import sample

EMBED, MID, POST = "hook_embed", "blocks.0.hook_resid_mid", "blocks.0.hook_resid_post"


@pytest.fixture
def made(make_checkpoint, tmp_path):
    """Exports by folder: made(folder, problems=..., hooks=..., **of the checkpoint)."""

    def make(folder, *, problems=None, hooks=(POST,), positions=tuple(range(15)), dtype="float32", shard_mb=1, **which):
        chosen = sample(1_000, 0) if problems is None else problems
        one = make_checkpoint(**which)
        export(one, chosen, tmp_path / folder, hooks=hooks, positions=positions, dtype=dtype, shard_mb=shard_mb)
        return read_export(tmp_path / folder)

    return make


def test_hooks_of_one_checkpoint_side_by_side(made, tmp_path):
    parts = [made("a", hooks=[POST]), made("b", hooks=[EMBED, MID], positions=(14,), dtype="float16", shard_mb=2)]
    index = align(parts, tmp_path / "both", shard_mb=1)
    both = read_export(tmp_path / "both")
    assert both.index == index and both.names == [POST, EMBED, MID]
    for part in parts:
        for name in part.names:
            assert torch.equal(both.tensor(name), part.tensor(name))
    np.testing.assert_array_equal(both.token_ids, parts[0].token_ids)
    np.testing.assert_array_equal(both.problems.index, sample(1_000, 0).index)
    assert len(index.shards) == 2 and len(parts[1].index.shards) == 1
    assert [stored.positions for stored in both.index.tensors] == [tuple(range(15)), (14,), (14,)]


def test_several_checkpoints_side_by_side_are_named(made, tmp_path):
    relu, bilinear = made("a"), made("b", mlp="bilinear", n_layers=1)
    index = align([relu, bilinear], tmp_path / "both")
    names = ["arithmetic-relu-2layer-seed0", "arithmetic-bilinear-1layer-seed0"]
    both = read_export(tmp_path / "both")
    assert both.names == [f"{name}/{POST}" for name in names]
    for name, part in zip(names, (relu, bilinear), strict=True):
        assert torch.equal(both.tensor(f"{name}/{POST}"), part.tensor(POST))
        assert index.checkpoints[name] == part.index.checkpoints[name]
    third = made("c", seed=2)
    align([both, third], tmp_path / "three")
    three = read_export(tmp_path / "three")
    assert three.names == [*both.names, f"arithmetic-relu-2layer-seed2/{POST}"]
    assert torch.equal(three.tensor(three.names[2]), third.tensor(POST))


def test_two_checkpoints_of_one_name_are_told_apart(made, tmp_path):
    one, two = made("a", seed=0, name="mine"), made("b", seed=1, name="mine")
    align([one, two], tmp_path / "both")
    both = read_export(tmp_path / "both")
    assert both.names == [f"mine@{part.index.checkpoints['mine'].weights_sha256[:12]}/{POST}" for part in (one, two)]
    assert torch.equal(both.tensor(both.names[1]), two.tensor(POST))


def test_the_same_hook_twice_is_refused(made, tmp_path):
    with pytest.raises(BadInput, match=f"two of the exports hold {POST}"):
        align([made("a"), made("b", hooks=[EMBED, POST])], tmp_path / "both")


def test_different_problems_do_not_belong_side_by_side(made, tmp_path):
    problems = sample(1_000, 0)
    swapped = np.arange(1_000)
    swapped[[617, 900]] = [900, 617]
    parts = [made("a"), made("b", mlp="bilinear", problems=problems[swapped])]
    texts = ["".join("0123456789+-="[token] for token in part.token_ids[617]) for part in parts]
    place = next(i for i in range(16) if texts[0][i] != texts[1][i])
    label = ["a3", "a2", "a1", "a0", "op", "b3", "b2", "b1", "b0", "="][place]
    with pytest.raises(BadInput) as refused:
        align(parts, tmp_path / "both")
    message = str(refused.value)
    assert f"token ids differ first in row 617 ({texts[0]} and {texts[1]}) at position {place} ({label})" in message
    assert "do not belong side by side" in message and str(parts[0].folder) in message
    assert not (tmp_path / "both").exists()


def test_a_hidden_sign_is_another_token(made):
    with pytest.raises(BadInput, match=r"row 0 .* at position 10 \(s\)"):
        check_same_problems([made("a"), made("b", mlp="bilinear"), made("c", variant="sign-hidden")])


def test_more_problems_on_one_side_are_refused(made):
    with pytest.raises(BadInput, match="1,000 and 1,001 problems; .*do not belong side by side"):
        check_same_problems([made("a"), made("b", problems=sample(1_001, 0), hooks=[EMBED])])


def test_other_token_ids_of_the_same_problems_are_refused(made, tmp_path):
    """A model whose vocabulary begins with = reads the same problems under other ids."""
    parts = [made("a"), made("b", hooks=[EMBED])]
    folder = parts[1].folder
    index = json.loads((folder / "index.json").read_text())
    index["vocabulary"] = "=0123456789+-"
    for shard in index["shards"]:
        rows = safetensors.torch.load_file(folder / shard["file"])
        rows["token_ids"] = (rows["token_ids"] + 1) % 13
        raw = safetensors.torch.save(rows)
        (folder / shard["file"]).write_bytes(raw)
        shard["sha256"] = hashlib.sha256(raw).hexdigest()
    (folder / "index.json").write_text(json.dumps(index))
    parts[1] = read_export(folder)
    parts[1].check()
    with pytest.raises(BadInput, match="token ids differ: 0 is '0' in one and '=' in the other; .*do not belong"):
        align(parts, tmp_path / "both")
    with pytest.raises(BadInput, match="token ids differ"):
        append(parts, tmp_path / "both")


def test_problems_one_after_another(made, tmp_path):
    problems = sample(2_500, 0)
    parts = [
        made("a", problems=problems[:1_700]),
        made("b", problems=problems[1_700:1_701]),
        made("c", problems=problems[1_701:]),
    ]
    index = append(parts, tmp_path / "all", shard_mb=2)
    whole = made("whole", problems=problems, shard_mb=2)
    found = read_export(tmp_path / "all")
    assert len(found) == index.n_problems == 2_500
    np.testing.assert_array_equal(found.problems.index, problems.index)
    torch.testing.assert_close(found.tensor(POST), whole.tensor(POST))
    assert [shard.stop for shard in index.shards] == [shard.stop for shard in whole.index.shards]
    assert index.chosen == "given by the caller; then given by the caller; then given by the caller"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"seed": 1}, "checkpoints differ"),
        ({"mlp": "bilinear"}, "checkpoints differ"),
        ({"variant": "ordered"}, "checkpoints differ"),
        ({"hooks": [EMBED]}, "hooks, positions or dtypes differ"),
        ({"positions": (14,)}, "hooks, positions or dtypes differ"),
        ({"dtype": "float16"}, "hooks, positions or dtypes differ"),
    ],
)
def test_unlike_exports_are_not_appended(made, tmp_path, other, said):
    with pytest.raises(BadInput, match=said):
        append([made("a"), made("b", **other)], tmp_path / "all")
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize("join", [align, append])
def test_a_join_never_writes_over_its_sources(made, tmp_path, join):
    parts = [made("a"), made("b", hooks=[EMBED] if join is align else [POST], problems=sample(1_000, 0))]
    with pytest.raises(BadInput, match="one of the exports to join"):
        join(parts, tmp_path / "x" / ".." / "b", overwrite=True)
    with pytest.raises(BadInput, match="two or more"):
        join(parts[:1], tmp_path / "out")
    join(parts, tmp_path / "out")
    with pytest.raises(BadInput, match="already holds an export"):
        join(parts, tmp_path / "out")
    join(parts, tmp_path / "out", overwrite=True)


def test_a_damaged_source_leaves_nothing(made, tmp_path):
    parts = [made("a"), made("b", hooks=[EMBED])]
    (tmp_path / "b" / "shard-00001.safetensors").write_bytes(b"")
    for join in (align, append):
        with pytest.raises(BadInput):
            join(parts, tmp_path / "out")
    assert sorted(child.name for child in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("size", [1, 3, 4, 10, 100])
def test_rechunking_keeps_rows_in_order(size):
    values = torch.arange(23)
    pieces = [{"problems": part, "x": part[:, None] * 2} for part in values.split([5, 1, 0, 10, 7])]
    found = list(rechunk(pieces, size))
    assert all(len(piece["problems"]) == size for piece in found[:-1]) and 1 <= len(found[-1]["problems"]) <= size
    assert torch.equal(torch.cat([piece["problems"] for piece in found]), values)
    assert torch.equal(torch.cat([piece["x"] for piece in found]), values[:, None] * 2)
