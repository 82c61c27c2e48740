import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from workbench import forward
from workbench.activations.collect import collect
from workbench.activations.export import export
from workbench.activations.hooks import hook_axes
from workbench.activations.read import read_export
from workbench.errors import BadInput
from workbench.sample import sample
from workbench.task import encode

HOOK = "blocks.0.hook_resid_post"


def computed(one, problems, hook, dtype=torch.float32, positions=tuple(range(15))):
    """What a reader of the export should find, in one forward pass."""
    tokens = torch.from_numpy(encode(problems, hide_sign=one.config.problems == "sign-hidden"))
    return collect(forward.tensors(one.weights, dtype), tokens, one.config.architecture, [hook], positions)[hook]


@pytest.mark.parametrize("mlp", ["relu", "bilinear"])
def test_every_hook_reads_back_across_shards(make_checkpoint, tmp_path, mlp):
    one, problems = make_checkpoint(mlp), sample(150, 0)
    index = export(one, problems, tmp_path / "out", hooks=["*"], shard_mb=2)
    assert len(index.shards) > 3
    assert [stored.name for stored in index.tensors] == list(hook_axes(one.config.architecture))
    found = read_export(tmp_path / "out")
    np.testing.assert_array_equal(found.problems.index, problems.index)
    np.testing.assert_array_equal(found.token_ids, encode(problems))
    for name in hook_axes(one.config.architecture):
        torch.testing.assert_close(found.tensor(name), computed(one, problems, name), rtol=1e-5, atol=1e-6)


def test_the_folder_holds_one_tensor_a_hook_in_each_shard(make_checkpoint, tmp_path):
    one, problems, out = make_checkpoint(), sample(1_200, 4), tmp_path / "out"
    export(one, problems, out, hooks=["blocks.*.hook_resid_post"], positions=(9, 14), shard_mb=1, chosen="by me")
    index = json.loads((out / "index.json").read_text())
    assert (index["schema"], index["kind"], index["n_problems"], index["chosen"]) == (1, "activations", 1_200, "by me")
    assert index["vocabulary"] == "0123456789+-="
    source = index["checkpoints"]["arithmetic-relu-2layer-seed0"]
    assert (source["weights_sha256"], source["variant"]) == (one.weights_sha256, "all")
    assert source["architecture"]["n_layers"] == 2
    assert index["tensors"][1] == {
        "name": "blocks.1.hook_resid_post",
        "checkpoint": "arithmetic-relu-2layer-seed0",
        "hook": "blocks.1.hook_resid_post",
        "positions": [9, 14],
        "dtype": "float32",
        "axes": ["problem", "pos", "d_model"],
        "shape": [1_200, 2, 32],
    }
    assert {child.name for child in out.iterdir()} == {"index.json", *(shard["file"] for shard in index["shards"])}
    start = 0
    for shard in index["shards"]:
        raw = (out / shard["file"]).read_bytes()
        assert len(raw) == shard["bytes"] <= 2**20 + 1_000
        assert hashlib.sha256(raw).hexdigest() == shard["sha256"]
        with safe_open(out / shard["file"], "np") as tensors:
            assert set(tensors.keys()) == {
                "blocks.0.hook_resid_post",
                "blocks.1.hook_resid_post",
                "token_ids",
                "problems",
            }
            assert tensors.get_tensor("problems").dtype == np.uint32
            assert tensors.get_tensor("token_ids").dtype == np.uint8
            rows = len(tensors.get_tensor("problems"))
        assert (shard["start"], shard["stop"]) == (start, start + rows)
        start += rows
    assert start == 1_200


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_dtypes(make_checkpoint, tmp_path, dtype):
    one, problems = make_checkpoint(), sample(50, 0)
    export(one, problems, tmp_path / "out", hooks=[HOOK], dtype=dtype)
    found = read_export(tmp_path / "out").tensor(HOOK)
    kind = getattr(torch, dtype)
    assert found.dtype == kind
    exact = computed(one, problems, HOOK, torch.float64)
    # float64 is computed so, not rounded up from float32; the others carry the rounding of their format
    relative = {"float64": 1e-14, "float32": 1e-5, "float16": 2**-11, "bfloat16": 2**-8}[dtype]
    assert ((found.double() - exact).abs() / exact.abs().max()).max() < relative
    if dtype in ("float16", "bfloat16"):
        assert torch.equal(found, computed(one, problems, HOOK).to(kind))


def test_the_variant_with_the_sign_hidden_hides_it(make_checkpoint, tmp_path):
    one, problems = make_checkpoint(variant="sign-hidden"), sample(20, 0)
    export(one, problems, tmp_path / "out", hooks=[HOOK])
    found = read_export(tmp_path / "out")
    assert (found.token_ids[:, 10] == 12).all()
    torch.testing.assert_close(found.tensor(HOOK), computed(one, problems, HOOK))


def test_the_same_export_gives_the_same_bytes(make_checkpoint, tmp_path):
    one, problems = make_checkpoint(), sample(100, 0)
    for name in ("a", "b"):
        export(one, problems, tmp_path / name, hooks=[HOOK])
    for child in (tmp_path / "a").iterdir():
        assert child.read_bytes() == (tmp_path / "b" / child.name).read_bytes()


def test_progress_counts_problems_to_the_end(make_checkpoint, tmp_path):
    told = []
    export(make_checkpoint(), sample(1_200, 0), tmp_path / "out", hooks=[HOOK], shard_mb=1, report=told.append)
    assert told[-1] == 1_200 and told == sorted(set(told)) and len(told) > 2


def test_what_cannot_be_exported_is_refused_and_leaves_nothing(make_checkpoint, tmp_path):
    one, problems, out = make_checkpoint(), sample(10, 0), tmp_path / "out"
    for changed, said in [
        ({"hooks": ["blocks.0.hook_resid"]}, "close ones: blocks.0.hook_resid_p"),
        ({"dtype": "int8"}, "unknown dtype 'int8'; choose from float32"),
        ({"shard_mb": 0}, "choose 1 to 1024"),
        ({"shard_mb": 2000}, "choose 1 to 1024"),
        ({"positions": ()}, "ascending"),
        ({"positions": (3, 2)}, "ascending"),
        ({"positions": (15,)}, "ascending"),
    ]:
        with pytest.raises(BadInput, match=said):
            export(one, problems, out, **{"hooks": [HOOK], **changed})
    with pytest.raises(BadInput, match="no problems"):
        export(one, problems[:0], out, hooks=[HOOK])
    assert list(tmp_path.iterdir()) == []


def test_a_value_beyond_the_format_is_refused_not_stored_as_infinity(make_checkpoint, tmp_path):
    one = make_checkpoint()
    one.weights["embed.W_E"][:] *= 1e6
    with pytest.raises(BadInput, match="hook_embed holds values that are not finite in float16; export as float32"):
        export(one, sample(10, 0), tmp_path / "out", hooks=["hook_embed"], dtype="float16")
    assert list(tmp_path.iterdir()) == []
    export(one, sample(10, 0), tmp_path / "out", hooks=["hook_embed"], dtype="bfloat16")


MEMORY = """
import sys
from pathlib import Path
from benchmarks.encoding import peak_bytes
from workbench.activations.export import export
from workbench.checkpoint import Checkpoint
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample
config = RunConfig(Architecture(n_layers=1))
weights = {k: w.numpy() for k, w in initial_weights(config.architecture, "gpt2", 0).items()}
one = Checkpoint(Path("one"), config, {}, "0" * 64, weights, {})
for name, count in (("small", 20_000), ("large", 120_000)):
    export(one, sample(count, 0), Path(sys.argv[1]) / name, hooks=["blocks.0.hook_resid_pre"], shard_mb=4)
    print(peak_bytes())
"""


def test_memory_does_not_grow_with_the_number_of_problems(tmp_path):
    root = Path(__file__).parents[3]  # where the benchmarks are importable
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path)], check=True, capture_output=True, text=True, timeout=300, cwd=root
    )
    small, large = map(int, done.stdout.split())
    written = sum(child.stat().st_size for child in (tmp_path / "large").iterdir())
    assert written > 230e6  # bytes, 190 million more than the first export's
    assert large - small < 60e6  # shards are 4 MiB; what grows is the allocator's waste, which levels off
