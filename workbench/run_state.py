"""The state of an unfinished run: one safetensors file, replaced atomically at every save."""

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor

from workbench import checkpoint
from workbench.errors import BadInput
from workbench.files import write_atomic
from workbench.recipe import RunConfig

Named = dict[str, Float[Tensor, "..."]]
PARTS = ("weights", "best", "exp_avg", "exp_avg_sq")


def _empty_curve() -> dict[str, list[float]]:
    return {"loss": [], "grad_norm": []}


@dataclass
class RunState:
    """Everything a resumed run needs besides its configuration; `step` optimizer steps are done."""

    weights: Named
    best: Named = field(default_factory=dict)
    exp_avg: Named = field(default_factory=dict)
    exp_avg_sq: Named = field(default_factory=dict)
    step: int = 0
    best_step: int | None = None
    validations: list[dict[str, Any]] = field(default_factory=list)
    curve: dict[str, list[float]] = field(default_factory=_empty_curve)


def save(state: RunState, partial: Path) -> None:
    """Replace the saved state in `partial`; a process killed meanwhile leaves the former one."""
    tensors = {f"{part}/{name}": t.contiguous() for part in PARTS for name, t in getattr(state, part).items()}
    progress = json.dumps({key: getattr(state, key) for key in ("step", "best_step", "validations", "curve")})
    metadata = {"progress": progress, "sha256": _digest(tensors, progress)}
    write_atomic(partial / checkpoint.STATE, safetensors.torch.save(tensors, metadata=metadata))


def _digest(tensors: Named, progress: str) -> str:
    """sha256 of everything that is saved, so that a damaged state is not continued."""
    digest = hashlib.sha256(progress.encode())
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].numpy().tobytes())
    return digest.hexdigest()


def _records_fit(state: RunState) -> bool:
    """Whether the curve has every step, and the validations, with finite losses, the step whose weights are kept."""
    whole = all(len(state.curve[name]) == state.step for name in _empty_curve())
    kept = state.best_step in [row["step"] for row in state.validations]
    return whole and kept and all(math.isfinite(row["loss"]) for row in state.validations)


def load(partial: Path, config: RunConfig) -> RunState:
    """The saved state of a run of `config`; BadInput when it is damaged or of another shape."""
    path = partial / checkpoint.STATE
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        if _digest(tensors, metadata["progress"]) != metadata["sha256"]:
            raise ValueError("it was damaged: its sha256 differs")
        progress = json.loads(metadata["progress"])
        parts = {part: {name: tensors.pop(f"{part}/{name}") for name in config.architecture.shapes} for part in PARTS}
        state = RunState(**parts, **progress)
        consistent = not tensors and 1 <= state.step <= config.recipe.steps and _records_fit(state)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: not a saved run ({str(error)[:80]}); remove {partial} and train again") from None
    for part, named in parts.items():
        for name, shape in config.architecture.shapes.items():
            value = named[name]
            if value.dtype != torch.float32 or tuple(value.shape) != shape or not value.isfinite().all():
                raise BadInput(f"{path}: {part}/{name} does not fit the run; remove {partial} and train again")
    if not consistent:
        raise BadInput(f"{path}: its step or tensors do not fit the run; remove {partial} and train again")
    return state
