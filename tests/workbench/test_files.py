"""Atomic writes and hostile JSON."""

import errno
import os
import sys
from pathlib import Path

import pytest

from workbench import files
from workbench.errors import BadInput


def test_a_full_disk_during_a_write_leaves_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "kept.bin"
    files.write_atomic(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_atomic(path, b"new content")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_replaces_the_whole_file(tmp_path):
    path = tmp_path / "x"
    files.write_atomic(path, b"a long first content")
    files.write_atomic(path, b"short")
    assert path.read_bytes() == b"short"


@pytest.mark.skipif(sys.platform != "linux", reason="names of open files are read from /proc")
def test_content_is_durable_before_its_name_is_and_then_the_name(tmp_path, monkeypatch):
    done = []

    def note(module, name, told):
        real = getattr(module, name)

        def call(*arguments):
            done.append(told(*arguments))
            return real(*arguments)

        monkeypatch.setattr(module, name, call)

    note(os, "fsync", lambda handle: str(Path(f"/proc/self/fd/{handle}").readlink()))
    note(os, "replace", lambda *_: "replace")
    note(Path, "rename", lambda *_: "rename")
    files.write_atomic(tmp_path / "x", b"content")
    assert done == [str(tmp_path / ".x.writing"), "replace", str(tmp_path)]
    done.clear()
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "y").write_bytes(b"y")
    files.move_folder(tmp_path / "made", tmp_path / "final")
    assert done == [str(tmp_path / "made" / "y"), str(tmp_path / "made"), "rename", str(tmp_path)]


def test_a_folder_under_a_file_is_refused_and_names_the_file(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(BadInput, match="taken is a file"):
        files.make_folder(tmp_path / "taken" / "deeper")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "not readable as JSON"),
        (b"[1]", "expected an object"),
        (b"[" * 100_000, "not readable as JSON"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"\xff\xfe", "not readable as JSON"),
    ],
)
def test_hostile_json_is_named_for_what_it_is(tmp_path, content, says):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=says):
        files.read_json(path)


def test_a_huge_file_is_not_read(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(b" " * 2000)
    with pytest.raises(BadInput, match="2,000 bytes, expected at most 1,000"):
        files.read_json(path, limit=1000)


def test_json_refuses_what_json_has_no_word_for():
    with pytest.raises(ValueError, match="JSON compliant"):
        files.json_bytes({"loss": float("nan")})
