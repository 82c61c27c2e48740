import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workbench import checkpoint, training, worker
from workbench.recipe import Architecture, Recipe, RunConfig

TINY = RunConfig(
    Architecture(d_model=8, n_heads=1, d_head=4, d_mlp=8, n_layers=1),
    Recipe(steps=6, warmup_steps=2, batch_size=64, validation_every=3),
    engine="plain",
)


def test_it_trains_and_tells_steps_and_the_end(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    assert worker.work(TINY.to_dict(), tmp_path / "run", told.append) == 0
    steps = [message["step"] for message in told[:-1]]
    assert steps[0] == 1
    assert steps[-1] == 6
    assert steps == sorted(set(steps))
    assert told[-1] == {"state": "trained", "message": ""}
    assert checkpoint.read(tmp_path / "run").config == TINY


def test_a_diverging_run_is_stopped(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    config = replace(TINY, recipe=replace(TINY.recipe, lr=1e30))
    assert worker.work(config.to_dict(), tmp_path / "run", told.append) == 1
    assert told[-1]["state"] == "stopped"
    assert "diverged at step" in told[-1]["message"]


def test_a_configuration_that_is_none_fails(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    assert worker.work({"schema": 1}, tmp_path / "run", told.append) == 1
    assert told[-1]["state"] == "failed"
    assert "architecture" in told[-1]["message"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "x/state.safetensors"), "No space left on device: x/state"),
        (MemoryError(), "out of memory"),
    ],
)
def test_a_full_disk_or_memory_is_one_line(tmp_path: Path, monkeypatch, error: Exception, words: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(training, "train", refuse)
    told: list[dict[str, Any]] = []
    assert worker.work(TINY.to_dict(), tmp_path / "run", told.append) == 1
    assert told[-1]["state"] == "failed"
    assert words in told[-1]["message"]


def test_it_stops_when_nobody_listens(tmp_path: Path) -> None:
    def broken(message: dict[str, Any]) -> None:
        raise BrokenPipeError

    assert worker.work(TINY.to_dict(), tmp_path / "run", broken) == 1
    assert not (tmp_path / "run").exists()


def test_the_process_speaks_json_only_and_ends_when_its_stdin_does(tmp_path: Path) -> None:
    endless = replace(TINY, recipe=replace(TINY.recipe, steps=4883, validation_every=4883))
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench.worker", str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(endless.to_dict()).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()).keys() == {"step", "loss"}
        process.stdin.close()
        rest = [json.loads(line) for line in process.stdout]
    assert process.returncode == 1
    assert all(message["step"] < 4883 for message in rest)
    assert not (tmp_path / "run").exists()
