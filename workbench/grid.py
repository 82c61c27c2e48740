"""Many runs: each in a worker process of its own, some at a time, one executor a folder. Nothing here imports torch.

What is complete is skipped, what is unfinished continues, and a run that fails stops no other.
"""

import collections
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from workbench import checkpoint
from workbench.errors import BadInput
from workbench.files import remove_folder
from workbench.lock import hold
from workbench.recipe import RunConfig

BUSY = "another grid or sweep is writing there; wait for it, stop it, or choose another --out"
SECONDS_TO_STOP = 5.0
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Events = queue.SimpleQueue[tuple[str, "dict[str, Any] | Ended"]]


@dataclass(frozen=True)
class Ended:
    """How one run of a grid ended.

    complete: it was there already. trained: it finished now. stopped: it diverged. failed: anything else.
    """

    name: str
    state: Literal["complete", "trained", "stopped", "failed"]
    message: str = ""

    @property
    def finished(self) -> bool:
        """Whether the checkpoint is there."""
        return self.state in ("complete", "trained")


class Watcher(Protocol):
    """What an executor reports to while it works."""

    def progress(self, name: str, step: int, loss: float) -> None:
        """`step` steps of a run are done; `loss` is that of the last one."""

    def ended(self, ended: Ended) -> None:
        """A run has ended."""


class Silent:
    """The watcher that ignores everything."""

    def progress(self, name: str, step: int, loss: float) -> None:
        """Nothing."""

    def ended(self, ended: Ended) -> None:
        """Nothing."""


def run_all(runs: Mapping[str, RunConfig], folder: Path, *, jobs: int, watcher: Watcher | None = None) -> list[Ended]:
    """Train every run into `folder / name`, `jobs` at a time, and say how each ended, in the order of `runs`.

    Raises BadInput when the folder cannot be made or another grid is writing into it. Interrupted, it stops its
    workers, which keep what they saved; when it is killed they stop by themselves.
    """
    if jobs < 1:
        raise BadInput(f"--jobs is {jobs}, expected at least 1")
    watcher = watcher or Silent()
    ended: dict[str, Ended] = {}

    def note(result: Ended) -> None:
        ended[result.name] = result
        watcher.ended(result)

    with hold(folder, BUSY) as lock:
        waiting: collections.deque[str] = collections.deque()
        for name, config in runs.items():
            if (found := _already_there(config, folder / name)) is None:
                waiting.append(name)
            else:
                note(found)
        with _Workers(folder, lock) as workers:
            while waiting or workers.running:
                while waiting and len(workers.running) < jobs:
                    name = waiting.popleft()
                    workers.start(name, runs[name])
                name, event = workers.events.get()
                if isinstance(event, Ended):
                    workers.running.pop(name)
                    note(event)
                else:
                    watcher.progress(name, event["step"], event["loss"])
    return [ended[name] for name in runs]


def _already_there(config: RunConfig, folder: Path) -> Ended | None:
    """The end of a run whose folder exists: complete, or failed when it is another run or damaged."""
    if not (folder.exists() or folder.is_symlink()):
        return None
    if not folder.is_dir():
        return Ended(folder.name, "failed", f"{folder}: a file is in the way; move it, or choose another --out")
    try:
        if config.accepts(checkpoint.read(folder).config):
            remove_folder(checkpoint.partial_folder(folder))  # of a run killed between its last two acts
            return Ended(folder.name, "complete")
    except BadInput as error:
        return Ended(folder.name, "failed", str(error))
    return Ended(folder.name, "failed", f"{folder}: finished under another configuration; choose another --out")


class _Workers:
    """The running worker processes, each followed by a thread that puts what it tells into `events`."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder, self.lock = folder, lock
        self.events: Events = queue.SimpleQueue()
        self.running: dict[str, tuple[subprocess.Popen[bytes], threading.Thread]] = {}

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, *error: object) -> None:
        """Stop what still runs; a save is atomic, so nothing that was saved is lost."""
        for process, _follower in self.running.values():
            process.terminate()
        deadline = time.monotonic() + SECONDS_TO_STOP
        for process, follower in self.running.values():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
            follower.join()

    def start(self, name: str, config: RunConfig) -> None:
        """Start the worker of one run, with the threads its configuration names."""
        errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by the thread that follows the worker)
        process = subprocess.Popen(
            [sys.executable, "-m", "workbench.worker", str(self.folder / name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(config.threads))},
            pass_fds=(self.lock,),
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died at once; following it tells how
            process.stdin.write((json.dumps(config.to_dict()) + "\n").encode())
            process.stdin.flush()
        thread = threading.Thread(target=_follow, args=(name, process, errors, self.events), daemon=True)
        self.running[name] = process, thread
        thread.start()


def _follow(name: str, process: "subprocess.Popen[bytes]", errors: IO[bytes], events: Events) -> None:
    """Put a worker's lines into `events` until it ends, then how it ended."""
    last: dict[str, Any] = {}
    with errors:
        assert process.stdout is not None and process.stdin is not None
        for line in process.stdout:
            with contextlib.suppress(ValueError):  # a line cut short by a kill; its exit code tells
                last = json.loads(line)
            if "step" in last:
                events.put((name, last))
        code = process.wait()
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        if "state" in last:
            events.put((name, Ended(name, last["state"], last["message"])))
        else:
            events.put((name, Ended(name, "failed", f"{name}: {_death(code, errors)}")))


def _death(code: int, errors: IO[bytes]) -> str:
    """Why a worker that said nothing ended."""
    kept = "what it had saved is kept; run the same command again to continue"
    if code < 0:
        hint = " (the system may be out of memory: use fewer --jobs)" if -code == signal.SIGKILL else ""
        return f"the worker was killed by {signal.Signals(-code).name}{hint}; {kept}"
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines() or ["no message"]
    return f"the worker ended with code {code}: {lines[-1][:200]}; {kept}"
