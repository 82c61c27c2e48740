"""A run on disk: config.json, model.safetensors, history.json and a card, read back as hostile input. No torch here."""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from jaxtyping import Float32
from safetensors import SafetensorError

from workbench.errors import BadInput
from workbench.files import json_bytes, read_bytes, read_json
from workbench.recipe import Architecture, RunConfig
from workbench.scores import Score, stored_score

CONFIG, WEIGHTS, HISTORY, CARD, STATE = (
    "config.json",
    "model.safetensors",
    "history.json",
    "README.md",
    "state.safetensors",
)
PARTIAL = ".partial"
HEADER_LIMIT = 100_000  # bytes of safetensors header beyond the tensors themselves

Arrays = dict[str, Float32[np.ndarray, "..."]]


@dataclass(frozen=True)
class Checkpoint:
    """One finished run as read from its folder, every part checked."""

    folder: Path
    config: RunConfig
    versions: dict[str, str]
    weights_sha256: str
    weights: Arrays
    history: dict[str, Any]

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def kept_step(self) -> int:
        """The step whose weights these are."""
        return self.history["selection"]["kept_step"]

    @property
    def results(self) -> dict[str, dict[str, Score]]:
        """The stored scores by split and operator."""
        return _scores(self.history)


def partial_folder(folder: Path) -> Path:
    """Where the unfinished run of `folder` lives."""
    return folder.with_name(folder.name + PARTIAL)


def weight_bytes(weights: Arrays) -> bytes:
    """model.safetensors: the tensors and nothing else, the same bytes for the same values."""
    return safetensors.numpy.save({name: np.ascontiguousarray(value) for name, value in weights.items()})


def config_bytes(config: RunConfig, versions: dict[str, str], sha256: str | None) -> bytes:
    """config.json; `sha256` is of model.safetensors, None while the run is unfinished."""
    return json_bytes({**config.to_dict(), "versions": versions, "weights_sha256": sha256})


def read_config(folder: Path) -> tuple[RunConfig, dict[str, str], str | None]:
    """Configuration, library versions and weight hash of a finished or unfinished run."""
    path = folder / CONFIG
    values = read_json(path, limit=1_000_000)
    versions, sha256 = values.pop("versions", None), values.pop("weights_sha256", None)
    if not isinstance(versions, dict) or not all(isinstance(v, str) for v in versions.values()):
        raise BadInput(f"{path}: versions is not an object of strings; restore the file from its source")
    if sha256 is not None and not (isinstance(sha256, str) and len(sha256) == 64):
        raise BadInput(f"{path}: weights_sha256 is not 64 hexadecimal digits; restore the file from its source")
    try:
        config = RunConfig.from_dict(values)
        if config.engine == "auto":
            raise BadInput("engine is 'auto', expected the one that ran")
        return config, versions, sha256
    except BadInput as error:
        raise BadInput(f"{path}: {error}; restore the file from its source") from None


def refuse_other_kinds(raw: bytes, path: Path) -> None:
    """Raise BadInput when the bytes are a Git LFS pointer, a pickle or a zip archive instead of safetensors."""
    if raw.startswith(b"version https://git-lfs"):
        raise BadInput(f"{path}: a Git LFS pointer, not the tensors; run `git lfs pull`")
    is_safetensors = raw[4:9] == b"\0\0\0\0{"  # a header length below 4 GiB may itself begin with 0x80
    if not is_safetensors and (raw.startswith(b"PK\x03\x04") or raw[:1] == b"\x80"):
        raise BadInput(f"{path}: a pickle or zip archive under another name, never loaded; expected safetensors")


def parse_tensors(raw: bytes, path: Path) -> Arrays:
    """The tensors of a safetensors file already in memory; BadInput says what the file is instead."""
    refuse_other_kinds(raw, path)
    try:
        return safetensors.numpy.load(raw)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise BadInput(
            f"{path}: {len(raw):,} bytes that are not a whole safetensors file ({str(error)[:80]}); "
            "it is truncated or damaged: copy it again"
        ) from None


def check_tensors(weights: Arrays, architecture: Architecture, path: Path) -> None:
    """Raise BadInput unless names, dtypes, shapes and finiteness are those of the architecture."""
    expected = architecture.shapes
    for problem, names in (("missing", expected.keys() - weights), ("extra", weights.keys() - expected)):
        if names:
            raise BadInput(
                f"{path}: {problem} tensor {min(names)[:80]!r} ({len(weights)} found, {len(expected)} expected for "
                f"{architecture.mlp} {architecture.n_layers} layers); weights and {CONFIG} do not belong together"
            )
    for name, shape in expected.items():
        value = weights[name]
        if value.dtype != np.float32:
            raise BadInput(f"{path}: {name} has dtype {value.dtype}, expected float32; convert or restore it")
        if value.shape != shape:
            raise BadInput(f"{path}: {name} has shape {list(value.shape)}, expected {list(shape)}; restore it")
        if not np.isfinite(value).all():
            raise BadInput(f"{path}: {name} holds {int((~np.isfinite(value)).sum())} non-finite values; restore it")


def read_weights(folder: Path, architecture: Architecture, sha256: str | None) -> Arrays:
    """The checked weights of a finished run."""
    path = folder / WEIGHTS
    sizes = architecture.shapes.values()
    raw = read_bytes(path, limit=4 * sum(math.prod(shape) for shape in sizes) + HEADER_LIMIT)
    weights = parse_tensors(raw, path)
    check_tensors(weights, architecture, path)
    found = hashlib.sha256(raw).hexdigest()
    if found != sha256:
        raise BadInput(
            f"{path}: sha256 is {found[:12]}…, {CONFIG} expects {str(sha256)[:12]}…; the file was changed: restore it"
        )
    return weights


def read_history(folder: Path) -> dict[str, Any]:
    """history.json of a finished run: training curve, validations, selection, results."""
    path = folder / HISTORY
    history = read_json(path)
    try:
        kept, results = history["selection"]["kept_step"], _scores(history)
    except (KeyError, TypeError, AttributeError):
        raise BadInput(f"{path}: no selection or results in it; restore the file from its source") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}; restore the file from its source") from None
    if type(kept) is not int or kept < 1 or "all" not in results.get("validation", {}):
        raise BadInput(f"{path}: no kept_step, or no results on validation; restore the file from its source")
    return history


def _scores(history: dict[str, Any]) -> dict[str, dict[str, Score]]:
    return {
        split: {name: stored_score(counts) for name, counts in groups.items()}
        for split, groups in history["results"].items()
    }


def read(folder: Path) -> Checkpoint:
    """The finished run in `folder`; BadInput says which file, what was found, what was expected and what to do."""
    folder = Path(folder)
    if folder.name.endswith(PARTIAL):
        raise BadInput(f"{folder}: an unfinished run; finish it with `workbench train --resume` or `workbench grid`")
    if not (folder / CONFIG).is_file():
        hint = "an unfinished run of that name exists" if partial_folder(folder).is_dir() else f"no {CONFIG} in it"
        state = "not a checkpoint" if folder.is_dir() else "no such folder"
        raise BadInput(f"{folder}: {state} ({hint}); see `workbench list` for what a folder holds")
    config, versions, sha256 = read_config(folder)
    weights = read_weights(folder, config.architecture, sha256)
    return Checkpoint(folder, config, versions, str(sha256), weights, read_history(folder))


def find(folder: Path) -> tuple[list[Path], list[Path]]:
    """(finished, unfinished) runs that are direct children of `folder`; BadInput when it is none or has neither."""
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInput(f"{folder}: {'a file, not a folder' if folder.exists() else 'no such folder'}")
    if (folder / CONFIG).is_file():
        raise BadInput(f"{folder}: is itself a checkpoint; name the folder it lies in, {folder.parent}")
    children = sorted(child for child in folder.iterdir() if (child / CONFIG).is_file())
    finished = [child for child in children if not child.name.endswith(PARTIAL)]
    unfinished = [child for child in children if child.name.endswith(PARTIAL)]
    if not children:
        raise BadInput(f"{folder}: no checkpoints in it; train them with `workbench grid --out {folder}`")
    return finished, unfinished


def reading_order(checkpoint: Checkpoint) -> tuple[Any, ...]:
    """Sort key: relu before bilinear, then layers, then seed, then name."""
    shape = checkpoint.config.architecture
    return (shape.mlp != "relu", shape.n_layers, checkpoint.config.seed, checkpoint.name)


def read_all(folder: Path) -> Iterator[Checkpoint]:
    """Every finished run in `folder`, in reading order."""
    finished, _ = find(folder)
    yield from sorted(map(read, finished), key=reading_order)


def read_given(path: Path) -> tuple[list[Checkpoint], list[str]]:
    """What a path on the command line names: one checkpoint, or the finished runs of a folder; unfinished ones by name.

    Raises BadInput as `read` and `find` do, and when a folder holds unfinished runs only.
    """
    if (path / CONFIG).exists() or not path.is_dir():
        return [read(path)], []
    finished, unfinished = find(path)
    if not finished:
        raise BadInput(f"{path}: only unfinished runs in it; continue them with `workbench grid` or train --resume")
    return list(read_all(path)), [folder.name for folder in unfinished]


def refuse_namesakes(checkpoints: Sequence[Checkpoint]) -> None:
    """Raise BadInput when two have one name, by which the tables of an analysis tell them apart."""
    names = [one.name for one in checkpoints]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"two checkpoints are named {twice[0]}; analyse one at a time, or rename a folder")


def history_bytes(history: dict[str, Any]) -> bytes:
    """history.json: one line a key and one line a validation, so that it stays readable and small."""

    def compact(value: Any) -> str:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))

    lines = []
    for key, value in history.items():
        if isinstance(value, list):
            body = "[\n  " + ",\n  ".join(map(compact, value)) + "\n ]"
        else:
            body = "{\n  " + ",\n  ".join(f'"{k}": {compact(v)}' for k, v in value.items()) + "\n }"
        lines.append(f' "{key}": {body}')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()
