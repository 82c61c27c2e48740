"""Writing files so that a reader sees the old content or the new, never a part; reading JSON that may be hostile."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from workbench.errors import BadInput

MAX_JSON_BYTES = 32 * 1024 * 1024


def sync_folder(folder: Path) -> None:
    """Ask the file system to make the folder's entries durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomic(path: Path, content: bytes) -> None:
    """Write `content` to `path` by temporary file, fsync and rename.

    Raises OSError (disk full, no permission) with the old content of `path` untouched.
    """
    temporary = path.with_name(f".{path.name}.writing")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def move_folder(source: Path, target: Path) -> None:
    """Rename a finished folder to its final name; the rename is the moment it exists."""
    for file in source.iterdir():
        with open(file, "rb") as handle:
            os.fsync(handle.fileno())
    sync_folder(source)
    source.rename(target)
    sync_folder(target.parent)


def remove_folder(folder: Path) -> None:
    """Remove a folder of ours and everything in it; nothing happens when it does not exist."""
    shutil.rmtree(folder, ignore_errors=True)


def make_folder(folder: Path) -> Path:
    """Create `folder` and its parents; raises BadInput when a file stands in the way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        files = [part for part in [folder, *folder.parents] if part.exists() and not part.is_dir()]
        blocking = f"{files[0]} is a file" if files else "a link to nothing is in the way"
        raise BadInput(f"cannot create the folder {folder}: {blocking}; choose another path") from None
    return folder


def json_bytes(value: Any) -> bytes:
    """JSON with keys in the order given, two-space indent and a final newline; refuses NaN and infinities."""
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def read_bytes(path: Path, limit: int) -> bytes:
    """The whole file, refused with BadInput when it is missing, not a regular file or over `limit` bytes."""
    if not path.is_file():
        raise BadInput(f"{path}: no such file")
    size = path.stat().st_size
    if size > limit:
        raise BadInput(f"{path}: {size:,} bytes, expected at most {limit:,}; this is not a file of the workbench")
    return path.read_bytes()


def read_json(path: Path, limit: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """A JSON object from disk; BadInput names the file and what is wrong with it."""
    raw = read_bytes(path, limit)
    if raw.startswith(b"version https://git-lfs"):
        raise BadInput(f"{path}: a Git LFS pointer, not the file itself; run `git lfs pull`")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not readable as JSON ({str(error)[:80]}); restore it from its source") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path}: a JSON {type(value).__name__}, expected an object")
    return value
