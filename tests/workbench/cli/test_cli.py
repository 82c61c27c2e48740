"""The command line as a whole: bad input is one line and exit code 2."""

import errno
import hashlib
import os
import shutil

import numpy as np
import pytest

from workbench import checkpoint, files
from workbench.cli import output, run
from workbench.lock import hold


def one_error_line(capsys) -> str:
    """The single `Error:` line on stderr; a usage line may stand before it."""
    lines = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("engine ")]  # a remark where there are no kernels
    errors = [line for line in lines if line.startswith("Error: ")]
    assert len(errors) == 1 and lines[-1] == errors[0], lines
    assert all(line.startswith(("Usage: ", "Try ")) for line in lines[:-1]), lines
    assert "Traceback" not in "".join(lines)
    return errors[0]


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        ("12a4+1", "'a', which no problem contains"),
        ("12345+1", "operand of 5 digits"),
        ("1+2-3", "2 operators"),
        ("1++2", "2 operators"),
        ("12", "0 operators"),
        ("", "the problem is empty"),
        ("   ", "the problem is empty"),
        ("١٢+٣", "not one of the ASCII digits"),
        ("\N{FULLWIDTH DIGIT ONE}+2", "not one of the ASCII digits"),
        ("1\N{MINUS SIGN}2", "not the ASCII minus"),
        ("1 2+3", "not a problem"),
        ("+5", "not a problem"),
        ("1+2\n", "which no problem contains"),
    ],
)
def test_solve_refuses_what_is_no_problem(short_run, capsys, problem, says):
    assert run(["solve", str(short_run), problem]) == 2
    assert says in one_error_line(capsys)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["list", "nowhere"], "no such folder"),
        (["evaluate", "nowhere"], "no such folder"),
        (["solve", "nowhere", "1+1"], "no such folder"),
        (["solve"], "Missing argument"),
        (["nonsense"], "No such command"),
        (["train", "--steps", "many"], "--steps"),
        (["train", "--mlp", "gelu"], "gelu"),
        (["train", "--steps", "999999"], "more than one pass"),
        (["train", "--lr", "-1"], "lr and grad_clip must be positive"),
        (["train", "--device", "tpu"], "unknown device 'tpu'"),
        (["analyze", "nonsense", "x"], "unknown analysis 'nonsense'; choose from"),
        (["analyze", "exact-probe"], "needs checkpoints"),
    ],
)
def test_bad_words_are_one_line(tmp_path, monkeypatch, capsys, words, says):
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    assert says in one_error_line(capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_checkpoints(tmp_path, capsys):
    for command in ("list", "evaluate"):
        assert run([command, str(tmp_path)]) == 2
        assert "no checkpoints in it" in one_error_line(capsys)


def test_a_damaged_checkpoint(short_run, tmp_path, capsys):
    copy = shutil.copytree(short_run, tmp_path / "copy")
    raw = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    for words in (["solve", str(copy), "1+1"], ["evaluate", str(copy)], ["analyze", "exact-probe", str(copy)]):
        assert run(words) == 2
        assert "model.safetensors" in one_error_line(capsys)


def test_an_output_path_under_a_file(short_run, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "deeper")
    assert run(["train", "--steps", "1", "--out", out]) == 2
    assert "file is a file" in one_error_line(capsys)
    assert run(["export", str(short_run), "--hooks", "hook_embed", "--problems", "3", "--out", out]) == 2
    assert "file is a file" in one_error_line(capsys)


def test_a_disk_that_fills_during_a_save_loses_nothing_saved_before(
    short_config, short_run, tmp_path, monkeypatch, capsys
):
    words = ["train", "--n-layers", "1", "--steps", "12", "--warmup-steps", "4", "--batch-size", "64"]
    words += ["--validation-every", "4", "--engine", "plain", "--out", str(tmp_path)]
    saves = []
    write = os.fsync

    def filling(handle):
        saves.append(handle)
        if len(saves) > 7:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(handle)

    monkeypatch.setattr(files.os, "fsync", filling)
    assert run(words) == 2
    assert "No space left on device" in one_error_line(capsys)
    monkeypatch.undo()
    partial = tmp_path / f"{short_config.name}.partial"
    assert (partial / "state.safetensors").exists() and not list(partial.glob(".*"))
    assert run([*words, "--resume"]) == 0
    ours = (tmp_path / short_config.name / "model.safetensors").read_bytes()
    assert ours == (short_run / "model.safetensors").read_bytes()


def test_a_diverged_run_exits_with_1_and_one_line(tmp_path, capsys):
    words = [
        "train",
        "--mlp",
        "bilinear",
        "--n-layers",
        "1",
        "--lr",
        "1e18",
        "--batch-size",
        "64",
        "--out",
        str(tmp_path),
    ]
    assert run(words) == 1
    assert "diverged at step" in one_error_line(capsys)


def test_version_and_help(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == "workbench 0.1.0\n"
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    for command in ("train", "grid", "lr-sweep", "list", "evaluate", "solve", "analyses", "analyze", "export"):
        assert f"\n  {command} " in text


def test_further_commands_join_through_the_entry_point_group(monkeypatch, capsys):
    import importlib.metadata

    class Entry:
        def load(self):
            return lambda app: app.command("extra")(lambda: output.say("hello"))

    found = importlib.metadata.entry_points

    def with_extra(*, group):
        return [Entry()] if group == "workbench.commands" else found(group=group)

    monkeypatch.setattr(importlib.metadata, "entry_points", with_extra)
    assert run(["extra"]) == 0
    assert capsys.readouterr().out == "hello\n"


def test_two_exports_do_not_write_one_folder(short_run, tmp_path, capsys):
    words = ["export", str(short_run), "--hooks", "hook_embed", "--problems", "3", "--out", str(tmp_path / "out")]
    with hold(tmp_path / "out.partial", "busy"):
        assert run(words) == 2
        assert "another export is writing there" in one_error_line(capsys)
    assert run(words) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index.json", "shard-00000.safetensors"]


def test_an_output_path_that_is_a_link_to_nothing(short_run, tmp_path, capsys):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    out = str(tmp_path / "link" / "deeper")
    assert run(["train", "--steps", "1", "--out", out]) == 2
    assert "a link to nothing is in the way" in one_error_line(capsys)


def test_weights_that_overflow_have_no_answer(short_run, tmp_path, capsys):
    copy = shutil.copytree(short_run, tmp_path / "copy")
    one = checkpoint.read(copy)
    raw = checkpoint.weight_bytes({name: w * np.float32(1e30) for name, w in one.weights.items()})
    (copy / "model.safetensors").write_bytes(raw)
    sha256 = hashlib.sha256(raw).hexdigest()
    (copy / "config.json").write_bytes(checkpoint.config_bytes(one.config, one.versions, sha256))
    for words in (["solve", str(copy), "1+1", "--json"], ["evaluate", str(copy), "--split", "test"]):
        assert run(words) == 2
        assert "overflow float32" in one_error_line(capsys)


@pytest.mark.parametrize("name", ["../x", "a/b", "", "x.partial", ".hidden"])
def test_the_name_of_a_run_stays_in_its_folder(tmp_path, capsys, name):
    assert run(["train", "--steps", "1", "--out", str(tmp_path / "out"), "--name", name]) == 2
    assert "is not the name of a folder" in one_error_line(capsys)
    assert list(tmp_path.iterdir()) == []


def test_an_analysis_leaves_other_files_alone(short_run, tmp_path, capsys):
    for held in (short_run, tmp_path):
        (tmp_path / "notes.txt").write_text("mine")
        assert run(["analyze", "exact-probe", str(short_run), "--out", str(held)]) == 2
        assert "holds other files than a result of exact-probe" in one_error_line(capsys)


def test_a_checkpoint_and_a_file_given_as_a_folder_are_named_for_what_they_are(short_run, capsys):
    assert run(["list", str(short_run)]) == 2
    assert "is itself a checkpoint" in one_error_line(capsys)
    assert run(["list", str(short_run / "config.json")]) == 2
    assert "a file, not a folder" in one_error_line(capsys)
