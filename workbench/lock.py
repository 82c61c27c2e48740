"""One process a folder: a lock that a killed process cannot leave behind."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import BadInput
from workbench.files import make_folder

LOCK = ".lock"


@contextlib.contextmanager
def hold(folder: Path, busy: str, patience: float = 3.0) -> Iterator[int]:
    """Hold a folder alone, made if need be, through a lock file removed at the end; yields its descriptor.

    Children that inherit the descriptor hold it too: the lock outlives a killed executor until its last worker has
    stopped. Raises BadInput, saying what is `busy`, when another process holds it for longer than `patience` seconds.
    """
    path, deadline = folder / LOCK, time.monotonic() + patience
    while True:
        make_folder(folder)  # whoever held it may have removed it
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, handle):
                break
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(handle)
                raise BadInput(f"{folder}: {busy}") from None
            time.sleep(0.1)
        os.close(handle)
    try:
        yield handle
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    """Whether the open file is still the one at `path`: its last holder may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
