import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from workbench.activations.export import export
from workbench.activations.read import read_export
from workbench.activations.store import is_finite, write_shards
from workbench.errors import BadInput
from workbench.sample import sample

HOOK = "hook_embed"


def names(folder):
    return sorted(child.name for child in Path(folder).iterdir())


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_export_is_replaced_only_when_asked(exported):
    folder, one = exported
    before = tree(folder)
    with pytest.raises(BadInput, match="already holds an export; .*--overwrite"):
        export(one, sample(10, 0), folder, hooks=[HOOK])
    assert tree(folder) == before
    export(one, sample(10, 0), folder, hooks=[HOOK], overwrite=True)
    assert sorted(tree(folder)) == ["index.json", "shard-00000.safetensors"]
    assert read_export(folder).names == [HOOK] and names(folder.parent) == [folder.name]


def test_a_failed_replacement_leaves_the_old_export(exported):
    folder, _ = exported
    before, index = tree(folder.parent), read_export(folder).index

    def broken():
        yield from [next(read_export(folder).shards())]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shards(folder, index, broken(), overwrite=True)
    assert tree(folder.parent) == before


@pytest.mark.parametrize("name", ["notes.txt", "index.json", "shard-00000.safetensors"])
def test_a_folder_with_other_files_is_never_touched(make_checkpoint, tmp_path, name):
    (tmp_path / name).write_text('{"kind": "something else"}')
    for overwrite in (False, True):
        with pytest.raises(BadInput, match=f"not an export's .{name}.; choose a new folder"):
            export(make_checkpoint(), sample(10, 0), tmp_path, hooks=[HOOK], overwrite=overwrite)
    assert names(tmp_path) == [name]


def test_an_export_beside_other_files_is_never_removed(exported):
    folder, one = exported
    (folder / "mine.txt").write_text("notes")
    before = tree(folder)
    with pytest.raises(BadInput, match="not an export's"):
        export(one, sample(10, 0), folder, hooks=[HOOK], overwrite=True)
    assert tree(folder) == before


@pytest.mark.parametrize("suffix", [".partial", ".replaced"])
def test_an_unfinished_run_beside_the_folder_is_never_removed(make_checkpoint, tmp_path, suffix):
    run = tmp_path / f"arithmetic-relu-2layer-seed0{suffix}"
    run.mkdir()
    (run / "state.safetensors").write_text("hours of training")
    for overwrite in (False, True):
        with pytest.raises(BadInput, match="holds state.safetensors, which is not of an export; choose another --out"):
            export(make_checkpoint(), sample(10, 0), tmp_path / run.stem, hooks=[HOOK], overwrite=overwrite)
    assert tree(tmp_path) == {f"{run.name}/state.safetensors": b"hours of training"} and names(tmp_path) == [run.name]


def test_what_a_killed_export_left_is_cleared(make_checkpoint, tmp_path):
    (tmp_path / "out.partial").mkdir()
    for name in ("shard-00000.safetensors", ".shard-00001.safetensors.writing", "index.json", ".index.json.writing"):
        (tmp_path / "out.partial" / name).write_text("")
    export(make_checkpoint(), sample(10, 0), tmp_path / "out", hooks=[HOOK])
    assert names(tmp_path) == ["out"] and len(read_export(tmp_path / "out")) == 10


def test_an_empty_folder_is_taken_and_a_file_in_the_way_is_refused(make_checkpoint, tmp_path):
    (tmp_path / "empty").mkdir()
    export(make_checkpoint(), sample(10, 0), tmp_path / "empty", hooks=[HOOK])
    assert len(read_export(tmp_path / "empty")) == 10
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "under"):
        with pytest.raises(BadInput, match="file is a file; choose another path"):
            export(make_checkpoint(), sample(10, 0), out, hooks=[HOOK])


def test_the_folder_one_is_in_is_refused(make_checkpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (".", "..", "/", ""):
        with pytest.raises(BadInput, match="is the folder you are in, or above it; name a new one"):
            export(make_checkpoint(), sample(10, 0), Path(name), hooks=[HOOK])
    assert names(tmp_path) == []


def test_relative_and_linked_folders_are_taken(make_checkpoint, tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    for name in ("link", "plain", "deep/er"):
        export(make_checkpoint(), sample(10, 0), Path(name), hooks=[HOOK])
        export(make_checkpoint(), sample(11, 0), Path(name), hooks=[HOOK], overwrite=True)
        assert len(read_export(tmp_path / name)) == 11
    assert (tmp_path / "link").is_symlink() and names(tmp_path) == ["deep", "link", "plain", "real"]


# A process that writes shards until something stops it; argv: folder, what stops it.
WRITER = """
import os, resource, signal, sys
from pathlib import Path
from workbench.activations.read import read_export
from workbench.activations.store import write_shards
from workbench.errors import BadInput
source, folder, stop = read_export(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
def pieces():
    for number, rows in enumerate(source.shards()):
        if number == 2 and stop == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 2 and stop == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        yield rows
try:
    write_shards(folder, source.index, pieces(), overwrite=True)
except BadInput as error:
    print(error)
"""


def stopped_by(what, source, folder):
    command = [sys.executable, "-c", WRITER, str(source), str(folder), what]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_killed_export_does_not_read_and_the_next_one_clears_it(exported, tmp_path):
    folder, one = exported
    out = tmp_path / "out"
    assert stopped_by("kill", folder, out).returncode == -signal.SIGKILL
    partial = tmp_path / "out.partial"
    assert names(partial) == [".lock", "shard-00000.safetensors", "shard-00001.safetensors"]
    with pytest.raises(BadInput, match="no such folder"):
        read_export(out)
    with pytest.raises(BadInput, match="their export was stopped"):
        read_export(partial)
    export(one, sample(10, 0), out, hooks=[HOOK])
    assert len(read_export(out)) == 10 and not partial.exists()


def test_a_killed_replacement_leaves_the_old_export(exported, tmp_path):
    folder, one = exported
    out = tmp_path / "out"
    export(one, sample(10, 0), out, hooks=[HOOK])
    before = tree(out)
    assert stopped_by("kill", folder, out).returncode == -signal.SIGKILL
    assert tree(out) == before


def test_a_full_disk_is_one_line_and_leaves_what_was_there(exported, tmp_path):
    # a limit on file size stands in for the disk: the write fails with an OSError all the same
    folder, one = exported
    out = tmp_path / "out"
    export(one, sample(10, 0), out, hooks=[HOOK])
    before = tree(out)
    done = stopped_by("full", folder, out)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert f"{out}: File too large after" in done.stdout and "of 1,000 problems" in done.stdout
    assert tree(out) == before and names(tmp_path) == ["exports", "out"]


def test_only_masked_scores_may_be_infinite(exported):
    folder, _ = exported
    scores = read_export(folder).tensor("blocks.1.attn.hook_attn_scores")
    assert (scores == -torch.inf).any() and is_finite("blocks.1.attn.hook_attn_scores", scores)
    for hook in ("blocks.1.attn.hook_attn_scores", "hook_embed"):
        assert not is_finite(hook, torch.tensor([0.0, torch.nan]))
        assert not is_finite(hook, torch.tensor([0.0, torch.inf]))
    assert not is_finite("hook_embed", torch.tensor([-torch.inf]))


def test_the_index_written_is_the_index_returned(exported, make_checkpoint, tmp_path):
    index = export(make_checkpoint(), sample(10, 0), tmp_path / "out", hooks=[HOOK])
    assert index.to_dict() == json.loads((tmp_path / "out" / "index.json").read_text())
    assert read_export(tmp_path / "out").index == index
