import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from workbench import checkpoint, grid, run_state, training
from workbench.errors import BadInput
from workbench.grid import Ended
from workbench.lock import LOCK, hold
from workbench.recipe import Architecture, Recipe, RunConfig

RECIPE = Recipe(steps=6, warmup_steps=2, batch_size=64, validation_every=3)
TINY = RunConfig(Architecture(d_model=8, n_heads=1, d_head=4, d_mlp=8, n_layers=1), RECIPE, engine="plain")
RUNS = {
    "one": TINY,
    "diverges": replace(TINY, recipe=replace(RECIPE, lr=1e30)),
    "in-the-way": TINY,
    "two": replace(TINY, seed=1),
}


class Watch(grid.Silent):
    def __init__(self) -> None:
        self.steps: dict[str, list[int]] = {}
        self.ends: list[Ended] = []

    def progress(self, name: str, step: int, loss: float) -> None:
        self.steps.setdefault(name, []).append(step)

    def ended(self, ended: Ended) -> None:
        self.ends.append(ended)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Ended], Watch]:
    """A grid of four in which two cannot end well."""
    folder = tmp_path_factory.mktemp("grid")
    (folder / "in-the-way").write_text("a file")
    watch = Watch()
    return folder, grid.run_all(RUNS, folder, jobs=2, watcher=watch), watch


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> "Iterator[list[subprocess.Popen[bytes]]]":
    """The worker processes that get started."""
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)  # type: ignore[call-overload]
            started.append(self)

    monkeypatch.setattr(grid.subprocess, "Popen", Recorded)
    yield started
    assert all(process.returncode is not None for process in started)


def test_runs_that_fail_stop_no_other(finished: tuple[Path, list[Ended], Watch]) -> None:
    folder, ended, _ = finished
    states = {one.name: one.state for one in ended}
    assert states == {
        "one": "trained",
        "diverges": "stopped",
        "in-the-way": "failed",
        "two": "trained",
    }
    assert list(states) == list(RUNS)
    for name in ("one", "two"):
        assert checkpoint.read(folder / name).config == RUNS[name]


def test_each_failure_says_what_is_wrong(finished: tuple[Path, list[Ended], Watch]) -> None:
    messages = {one.name: one.message for one in finished[1] if not one.finished}
    assert "diverged at step" in messages["diverges"]
    assert "a file is in the way" in messages["in-the-way"]


def test_progress_and_ends_are_watched(finished: tuple[Path, list[Ended], Watch]) -> None:
    _, ended, watch = finished
    assert sorted(watch.ends, key=lambda one: list(RUNS).index(one.name)) == ended
    for name in ("one", "two"):
        assert watch.steps[name][0] == 1
        assert watch.steps[name][-1] == 6
        assert watch.steps[name] == sorted(watch.steps[name])


def test_nothing_is_left_of_the_lock(finished: tuple[Path, list[Ended], Watch]) -> None:
    assert not (finished[0] / LOCK).exists()


def test_a_run_is_the_same_bytes_as_trained_alone(finished: tuple[Path, list[Ended], Watch], tmp_path: Path) -> None:
    alone = training.train(TINY, tmp_path / "one")
    for file in alone.iterdir():
        assert file.read_bytes() == (finished[0] / "one" / file.name).read_bytes()


def test_what_is_complete_is_skipped(finished: tuple[Path, list[Ended], Watch], workers: list[object]) -> None:
    folder = finished[0]
    left = checkpoint.partial_folder(folder / "one")  # as after a kill between the rename and the tidying up
    left.mkdir()
    (left / "config.json").write_text("{}")
    before = (folder / "one" / "model.safetensors").stat().st_mtime_ns
    ended = grid.run_all({name: RUNS[name] for name in ("one", "two")}, folder, jobs=2)
    assert ended == [Ended("one", "complete"), Ended("two", "complete")]
    assert workers == [] and not left.exists()
    assert (folder / "one" / "model.safetensors").stat().st_mtime_ns == before


def test_another_run_or_a_damaged_one_under_the_name_is_no_success(
    finished: tuple[Path, list[Ended], Watch], tmp_path: Path, workers: list[object]
) -> None:
    (other,) = grid.run_all({"one": RUNS["two"]}, finished[0], jobs=1)
    assert other.state == "failed"
    assert "another configuration" in other.message
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "config.json").write_text("{")
    (damaged,) = grid.run_all({"one": TINY}, tmp_path, jobs=1)
    assert damaged.state == "failed"
    assert "config.json" in damaged.message
    assert workers == []


EXECUTOR = """
import json, subprocess, sys
from pathlib import Path
from workbench import grid
from workbench.recipe import RunConfig

class Told(subprocess.Popen):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        print(self.pid, flush=True)

grid.subprocess.Popen = Told
grid.run_all({"run": RunConfig.from_dict(json.loads(sys.argv[1]))}, Path(sys.argv[2]), jobs=1)
"""


def is_stopped(process: int) -> bool:
    """Whether SIGSTOP has taken effect."""
    stat = Path(f"/proc/{process}/stat")
    if stat.exists():
        return stat.read_text().rpartition(")")[2].split()[0] == "T"
    return subprocess.check_output(["ps", "-o", "stat=", "-p", str(process)], text=True).startswith("T")


def test_a_killed_grid_leaves_no_orphan_and_continues_to_the_same_bytes(tmp_path: Path) -> None:
    config = replace(TINY, recipe=replace(RECIPE, steps=160, warmup_steps=20, validation_every=20))
    command = [sys.executable, "-c", EXECUTOR, json.dumps(config.to_dict()), str(tmp_path)]
    state = tmp_path / "run.partial" / checkpoint.STATE
    with subprocess.Popen(command, stdout=subprocess.PIPE) as executor:
        assert executor.stdout is not None
        worker = int(executor.stdout.readline())
        while not state.exists():
            assert executor.poll() is None
            time.sleep(0.02)
        os.kill(worker, signal.SIGSTOP)
        while not is_stopped(worker):
            time.sleep(0.02)
        executor.send_signal(signal.SIGKILL)
    with pytest.raises(BadInput, match="another grid"), hold(tmp_path, grid.BUSY, patience=0.2):
        pytest.fail("held although the worker has not stopped")
    os.kill(worker, signal.SIGCONT)
    with hold(tmp_path, grid.BUSY, patience=60):
        left = run_state.load(state.parent, config)
        assert 0 < left.step < 160
    watch = Watch()
    assert grid.run_all({"run": config}, tmp_path, jobs=1, watcher=watch) == [Ended("run", "trained")]
    assert watch.steps["run"][0] == left.step + 1
    whole = training.train(config, tmp_path / "whole" / "run")
    for file in whole.iterdir():
        assert file.read_bytes() == (tmp_path / "run" / file.name).read_bytes()


def test_a_worker_that_is_killed_is_a_failure_with_its_reason(
    tmp_path: Path, workers: "list[subprocess.Popen[bytes]]"
) -> None:
    class Kill(grid.Silent):
        def progress(self, name: str, step: int, loss: float) -> None:
            os.kill(workers[0].pid, signal.SIGKILL)

    endless = replace(TINY, recipe=replace(RECIPE, steps=4883, validation_every=4883))
    (ended,) = grid.run_all({"run": endless}, tmp_path, jobs=1, watcher=Kill())
    assert ended.state == "failed"
    assert "killed by SIGKILL" in ended.message
    assert "again to continue" in ended.message


def test_an_interrupt_stops_the_workers_and_frees_the_folder(
    tmp_path: Path, workers: "list[subprocess.Popen[bytes]]"
) -> None:
    class Interrupt(grid.Silent):
        def progress(self, name: str, step: int, loss: float) -> None:
            raise KeyboardInterrupt

    endless = replace(TINY, recipe=replace(RECIPE, steps=4883, validation_every=4883))
    with pytest.raises(KeyboardInterrupt):
        grid.run_all({"run": endless}, tmp_path, jobs=1, watcher=Interrupt())
    assert [process.returncode for process in workers] == [-signal.SIGTERM]
    assert not (tmp_path / LOCK).exists()
    assert (tmp_path / "run.partial").is_dir()


def test_a_worker_that_cannot_start_is_a_failure_with_its_last_words(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONHOME", str(tmp_path / "nowhere"))
    (ended,) = grid.run_all({"run": TINY}, tmp_path, jobs=1)
    assert ended.state == "failed"
    assert "the worker ended with code 1: " in ended.message


def test_one_folder_has_one_grid_at_a_time(tmp_path: Path) -> None:
    with hold(tmp_path, grid.BUSY), pytest.raises(BadInput, match="another grid or sweep is writing there"):
        grid.run_all({"run": TINY}, tmp_path, jobs=1)


def test_bad_input_is_refused_before_anything_runs(tmp_path: Path, workers: list[object]) -> None:
    with pytest.raises(BadInput, match="--jobs is 0"):
        grid.run_all({"run": TINY}, tmp_path, jobs=0)
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="file is a file"):
        grid.run_all({"run": TINY}, tmp_path / "file" / "out", jobs=1)
    assert workers == []
