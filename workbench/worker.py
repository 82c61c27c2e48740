"""One run in a process of its own: `python -m workbench.worker FOLDER`, started by `workbench.grid`.

The first line of stdin is the configuration as JSON; stdin then stays open, and its end means that the executor is
gone, so the worker stops rather than running on unwatched. Each line of stdout is one JSON object: `{"step": 12,
"loss": 2.31}` a few times a second, and last `{"state": "trained" | "stopped" | "failed", "message": "..."}`. Whatever
else would be printed goes to stderr. An unfinished run in FOLDER is continued; a stopped worker loses nothing that was
saved, since every save is atomic.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.errors import BadInput, RunFailed
from workbench.recipe import RunConfig

SECONDS_BETWEEN_LINES = 0.2

Tell = Callable[[dict[str, Any]], None]


def work(config: dict[str, Any], folder: Path, tell: Tell) -> int:
    """Train or continue one run, telling its progress; the exit code is 0 when it finished."""
    try:
        run = RunConfig.from_dict(config)
        from workbench import training

        training.train(run, folder, resume=True, on_step=_now_and_then(run.recipe.steps, tell))
    except RunFailed as failure:
        tell({"state": "stopped", "message": str(failure)})
    except BadInput as error:
        tell({"state": "failed", "message": str(error)})
    except BrokenPipeError:
        pass
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        tell({"state": "failed", "message": f"{error.strerror or error}{where}; what was saved before is kept"})
    except MemoryError:
        tell({"state": "failed", "message": "out of memory; use fewer --jobs; what was saved before is kept"})
    else:
        tell({"state": "trained", "message": ""})
        return 0
    return 1


def _now_and_then(steps: int, tell: Tell) -> Callable[[int, float], None]:
    """Tell the first step, the last, and some in between."""
    told = -SECONDS_BETWEEN_LINES

    def on_step(step: int, loss: float) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= SECONDS_BETWEEN_LINES or step == steps:
            told = now
            tell({"step": step, "loss": loss})

    return on_step


def _stop_at_end_of(descriptor: int) -> None:
    """End the process when the other side of the pipe is gone."""
    while os.read(descriptor, 4096):
        pass
    os._exit(1)


def main() -> int:
    """Entry point of the worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the executor stops its workers
    out = os.dup(1)
    os.dup2(2, 1)
    config = json.loads(sys.stdin.buffer.raw.readline())  # type: ignore[attr-defined]
    threading.Thread(target=_stop_at_end_of, args=(0,), daemon=True).start()
    return work(config, Path(sys.argv[1]), lambda message: _write_line(out, message))


def _write_line(descriptor: int, message: dict[str, Any]) -> None:
    os.write(descriptor, (json.dumps(message) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main())
