import hashlib
import json
import pickle
import warnings

import numpy as np
import pytest
import safetensors.torch
import torch

from workbench import forward
from workbench.activations.export import export
from workbench.activations.hooks import hook_axes
from workbench.activations.read import read_export
from workbench.errors import BadInput
from workbench.sample import sample
from workbench.task import encode

RESID = "blocks.0.hook_resid_post"


def test_tensors_problems_and_shards(exported):
    folder, _ = exported
    found = read_export(folder)
    assert len(found) == 1_000
    assert found.names == [
        "blocks.0.attn.hook_pattern",
        RESID,
        "blocks.1.attn.hook_attn_scores",
        "blocks.1.hook_resid_post",
    ]
    np.testing.assert_array_equal(found.problems.index, sample(1_000, 0).index)
    np.testing.assert_array_equal(found.token_ids, encode(sample(1_000, 0)))
    shards = list(found.shards())
    for name in found.names:
        assert torch.equal(torch.cat([rows[name] for rows in shards]), found.tensor(name))
    found.check()


def test_an_unknown_tensor_is_answered_with_close_ones(exported):
    with pytest.raises(BadInput, match=r"no tensor 'blocks\.0\.hook_resid_pst' .*blocks\.0\.hook_resid_post"):
        read_export(exported[0]).tensor("blocks.0.hook_resid_pst")


def rewrite(folder, edit):
    """Change the first shard's tensors and put its new size and hash in the index, as a forger would."""
    path = folder / "shard-00000.safetensors"
    rows = safetensors.torch.load_file(path)
    edit(rows)
    raw = safetensors.torch.save(rows)
    path.write_bytes(raw)
    index = json.loads((folder / "index.json").read_text())
    index["shards"][0].update(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    (folder / "index.json").write_text(json.dumps(index))


def put(name, change):
    def edit(rows):
        rows[name] = change(rows[name])

    return edit


def poke(value):
    def change(tensor):
        tensor.view(-1)[7] = value
        return tensor

    return change


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda rows: rows.pop(RESID), "fit its tensors|missing"),
        (lambda rows: rows.update(extra=torch.zeros(3)), "tensor 'extra' is extra"),
        (lambda rows: rows.update({"other": rows.pop(RESID)}), f"tensor '{RESID}' is missing|'other' is extra"),
        (put(RESID, lambda t: t.view(torch.int32)), "is torch.int32 .*expected torch.float32"),
        (put(RESID, lambda t: t.transpose(1, 2).contiguous()), r"expected torch.float32 \[\d+, 4, 32\]"),
        (put(RESID, poke(torch.nan)), "holds non-finite values"),
        (put(RESID, poke(-torch.inf)), "holds non-finite values"),
        (put("blocks.1.attn.hook_attn_scores", poke(torch.inf)), "holds non-finite values"),
        (put("token_ids", poke(3)), "token ids are not those of its problems"),
        (put("token_ids", poke(255)), "token ids are not those of its problems"),
        (put("problems", poke(5)), "token ids are not those of its problems"),
        (put("problems", poke(200_000_000)), "outside 0..199999999"),
        (put("problems", lambda t: t.view(torch.int32)), "problems is torch.int32"),
    ],
)
def test_a_forged_shard_is_refused(exported, edit, said):
    folder, _ = exported
    rewrite(folder, edit)
    with pytest.raises(BadInput, match=said) as refused:
        read_export(folder).check()
    assert str(folder) in str(refused.value) and "\n" not in str(refused.value)


def test_a_rewritten_shard_that_is_right_is_read(exported):
    rewrite(exported[0], lambda rows: None)  # the forger above is refused for what it changed, not for forging
    read_export(exported[0]).check()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda raw: raw[:-1], "bytes, .* expected; it is truncated or changed"),
        (lambda raw: raw + b"\0", "bytes, .* expected; it is truncated or changed"),
        (lambda raw: b"", "0 bytes"),
        (lambda raw: raw[:-5] + bytes([raw[-5] ^ 1]) + raw[-4:], "sha256 is not the one in the index"),
        (lambda raw: bytes([raw[0] ^ 1]) + raw[1:], "sha256 is not the one in the index"),
        (lambda raw: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"),
        (lambda raw: b"PK\x03\x04\x14\0\0\0\x08\0" + raw[10:], "pickle or zip archive"),
        (lambda raw: pickle.dumps({"activations": list(raw[:5000])}), "pickle or zip archive"),
    ],
)
def test_a_damaged_shard_is_refused(exported, damage, said):
    folder, _ = exported
    path = folder / "shard-00001.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    found = read_export(folder)
    for use in (found.check, lambda: found.tensor(RESID), lambda: found.problems, lambda: found.token_ids):
        with pytest.raises(BadInput, match=said) as refused:
            use()
        assert str(refused.value).startswith(str(path))


def test_garbage_with_the_right_hash_is_refused(exported):
    folder, _ = exported
    index = json.loads((folder / "index.json").read_text())
    raw = b"\xff" * index["shards"][0]["bytes"]
    (folder / "shard-00000.safetensors").write_bytes(raw)
    index["shards"][0]["sha256"] = hashlib.sha256(raw).hexdigest()
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(BadInput, match="not a safetensors file"):
        read_export(folder).check()


def test_a_missing_shard_is_named(exported):
    (exported[0] / "shard-00002.safetensors").unlink()
    with pytest.raises(BadInput, match=r"shard-00002\.safetensors: no such file"):
        read_export(exported[0])


def test_another_vocabulary_is_read_by_its_own_ids(exported):
    folder, _ = exported
    for number in range(3):
        path = folder / f"shard-{number:05d}.safetensors"
        rows = safetensors.torch.load_file(path)
        rows["token_ids"] = (rows["token_ids"] + 1) % 13  # = is 0, digits are 1..10
        path.write_bytes(safetensors.torch.save(rows))
    index = json.loads((folder / "index.json").read_text())
    index["vocabulary"] = "=0123456789+-"
    for shard in index["shards"]:
        shard["sha256"] = hashlib.sha256((folder / shard["file"]).read_bytes()).hexdigest()
    (folder / "index.json").write_text(json.dumps(index))
    found = read_export(folder)
    found.check()
    assert found.token_ids[0, 9] == 0
    index["vocabulary"] = "0123456789+-="
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(BadInput, match="token ids are not those"):
        read_export(folder).check()


@pytest.fixture
def decoder():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformer_lens's own imports
        from workbench.decoder import Decoder
    return Decoder.from_checkpoint


def test_the_cache_is_the_one_a_forward_pass_makes(make_checkpoint, decoder, tmp_path):
    one, problems = make_checkpoint("bilinear"), sample(40, 0)
    export(one, problems, tmp_path / "out", hooks=["*"])
    model = decoder(one)
    cache = read_export(tmp_path / "out").cache(model)
    logits, expected = model.run_with_cache(torch.from_numpy(encode(problems))[:, :15])
    assert type(cache) is type(expected)
    for name in hook_axes(one.config.architecture):
        torch.testing.assert_close(cache[name], expected[name], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(cache["resid_post", 1], expected["resid_post", 1], rtol=1e-5, atol=1e-6)
    parts, names = cache.decompose_resid(return_labels=True)
    assert names == ["embed", "pos_embed", "0_attn_out", "0_mlp_out", "1_attn_out", "1_mlp_out"]
    torch.testing.assert_close(parts.sum(0) @ forward.tensors(one.weights)["unembed.W_U"], logits)


def test_a_model_with_other_weights_is_refused(make_checkpoint, decoder, tmp_path):
    one = make_checkpoint(seed=0)
    export(one, sample(10, 0), tmp_path / "out", hooks=[RESID])
    found = read_export(tmp_path / "out")
    assert found.cache(decoder(one).double())[RESID].shape == (10, 15, 32)
    for other in (make_checkpoint(seed=1), make_checkpoint(n_layers=1), make_checkpoint("bilinear")):
        with pytest.raises(BadInput, match="the model's weights are not those of arithmetic-relu-2layer-seed0"):
            found.cache(decoder(other))
    with pytest.raises(BadInput, match="choose one of its checkpoints: arithmetic-relu-2layer-seed0"):
        found.cache(decoder(one), "other")


def test_a_header_that_begins_like_a_pickle_is_still_read(exported):
    """The first byte of safetensors is the lowest of its header's length, which may well be a pickle's 0x80."""
    folder, _ = exported
    path = folder / "shard-00000.safetensors"
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    padded = (length // 256 + 1) * 256 + 0x80
    raw = padded.to_bytes(8, "little") + raw[8 : 8 + length] + b" " * (padded - length) + raw[8 + length :]
    assert raw[:1] == b"\x80"
    path.write_bytes(raw)
    index = json.loads((folder / "index.json").read_text())
    index["shards"][0].update(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    (folder / "index.json").write_text(json.dumps(index))
    read_export(folder).check()
