"""Write the shards and index of an export: one shard in memory at a time, a whole export or none on disk."""

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from workbench.activations.layout import INDEX, KIND, PROBLEMS, SHARD_FILE, Index, Shard
from workbench.errors import BadInput
from workbench.files import json_bytes, make_folder, move_folder, read_json, remove_folder, write_atomic
from workbench.lock import LOCK, hold

PARTIAL, REPLACED = ".partial", ".replaced"
Rows = dict[str, Tensor]  # the tensors of consecutive problems
Report = Callable[[int], None]  # told how many problems are written


def silent(done: int) -> None:
    """The report that tells nobody."""


def is_finite(hook: str, value: Tensor) -> bool:
    """Whether a tensor holds what a hook can: finite numbers, and minus infinity where attention scores are masked."""
    if hook.endswith("hook_attn_scores"):
        return not (value.isnan() | (value == torch.inf)).any()
    return bool(value.isfinite().all())


def write_shards(
    folder: Path, index: Index, pieces: Iterable[Rows], *, overwrite: bool = False, report: Report = silent
) -> Index:
    """Write each of `pieces` as one shard and last the index that lists them; returns that index.

    Everything is written to `folder.partial`, which is renamed when it is whole: a stopped export is never read, and
    an export that it was to replace is still there. Raises BadInput when the folder holds something and is not an
    export to overwrite, when a value does not fit its dtype, and when the disk is full.
    """
    with _new_folder(Path(folder), overwrite) as partial:
        shards: list[Shard] = []
        done = 0
        for rows in pieces:
            for stored in index.tensors:
                if not is_finite(stored.hook, rows[stored.name]):
                    wider = "float64" if stored.dtype == "float32" else "float32"
                    raise BadInput(
                        f"{stored.name} holds values that are not finite in {stored.dtype}; export as {wider}"
                    )
            raw = safetensors.torch.save({name: value.contiguous() for name, value in rows.items()})
            file, stop = f"shard-{len(shards):05d}.safetensors", done + len(rows[PROBLEMS])
            try:
                write_atomic(partial / file, raw)
            except OSError as error:
                raise BadInput(
                    f"{folder}: {error.strerror} after {done:,} of {index.n_problems:,} problems; all need "
                    f"{index.n_problems * index.row_bytes / 1e6:,.0f} MB: free space, or choose another disk or less"
                ) from None
            shards.append(Shard(file, done, stop, len(raw), hashlib.sha256(raw).hexdigest()))
            done = stop
            report(done)
        index = dataclasses.replace(index, shards=tuple(shards))
        write_atomic(partial / INDEX, json_bytes(index.to_dict()))
    return index


@contextlib.contextmanager
def _new_folder(folder: Path, overwrite: bool) -> Iterator[Path]:
    """A folder to write to, which takes the place of `folder` at the end, or disappears when the body raises."""
    place = folder.resolve()
    partial, replaced = Path(f"{place}{PARTIAL}"), Path(f"{place}{REPLACED}")
    if Path.cwd().is_relative_to(place):
        raise BadInput(f"{folder} is the folder you are in, or above it; name a new one")
    for old in (partial, replaced):
        _refuse_other_files(old)
    make_folder(place if place.exists() else place.parent)
    held = [child.name for child in place.iterdir()] if place.exists() else []
    if held and not _is_export(folder, held):
        raise BadInput(f"{folder} holds files that are not an export's ({min(held)[:60]}); choose a new folder")
    if held and not overwrite:
        raise BadInput(f"{folder} already holds an export; choose a new folder, or replace it with --overwrite")
    with hold(partial, "another export is writing there; wait for it, or choose another --out", patience=1.0):
        try:
            for old in partial.iterdir():
                if old.name != LOCK:
                    old.unlink()
            yield partial
        except BaseException:
            remove_folder(partial)
            raise
        (partial / LOCK).unlink()
        if held:
            remove_folder(replaced)
            place.rename(replaced)
        move_folder(partial, place)
        remove_folder(replaced)


def _refuse_other_files(folder: Path) -> None:
    """Raise BadInput unless a folder that is to be removed holds nothing but parts of an export.

    The unfinished run of a checkpoint is also called `.partial`, and must survive an export to the checkpoint's name.
    """
    names = [child.name for child in folder.iterdir()] if folder.exists() else []
    for name in names:
        part = name.removeprefix(".").removesuffix(".writing")
        if name != LOCK and part != INDEX and not SHARD_FILE.fullmatch(part):
            raise BadInput(
                f"{folder} is in the way, and holds {name[:60]}, which is not of an export; choose another --out"
            )


def _is_export(folder: Path, names: list[str]) -> bool:
    """Whether a folder holds an export and nothing else."""
    if INDEX not in names or not all(name == INDEX or SHARD_FILE.fullmatch(name) for name in names):
        return False
    with contextlib.suppress(BadInput):
        return read_json(folder / INDEX).get("kind") == KIND
    return False
