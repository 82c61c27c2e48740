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
from workbench.hill import heads
from workbench.recipe import RunConfig

Named = dict[str, Float[Tensor, "..."]]
PARTS = ("weights", "best", "exp_avg", "exp_avg_sq")
HEAD = "head."  # before the name of a head's tensor, which stands beside the decoder's


def empty_curve(config: RunConfig) -> dict[str, list[float]]:
    """What is kept of every step: loss (cross-entropy), gradient norm; of a head its loss and gradient norm too."""
    names = ("loss", "grad_norm") + (("head_loss", "head_grad_norm") if config.auxiliary else ())
    return {name: [] for name in names}


def shapes(config: RunConfig) -> dict[str, tuple[int, ...]]:
    """Every trained tensor of a run: the decoder's, and its head's."""
    extra = heads.shapes(config.auxiliary, config.architecture) if config.auxiliary else {}
    return config.architecture.shapes | {HEAD + name: shape for name, shape in extra.items()}


@dataclass
class RunState:
    """Everything a resumed run needs besides its configuration; `step` optimizer steps are done."""

    weights: Named
    curve: dict[str, list[float]]
    best: Named = field(default_factory=dict)
    exp_avg: Named = field(default_factory=dict)
    exp_avg_sq: Named = field(default_factory=dict)
    step: int = 0
    best_step: int | None = None
    validations: list[dict[str, Any]] = field(default_factory=list)


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


def _records_fit(state: RunState, config: RunConfig) -> bool:
    """Whether the curve has every step, and the validations, with finite losses, the step whose weights are kept."""
    whole = all(len(state.curve[name]) == state.step for name in empty_curve(config))
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
        parts = {part: {name: tensors.pop(f"{part}/{name}") for name in shapes(config)} for part in PARTS}
        state = RunState(**parts, **progress)
        consistent = not tensors and 1 <= state.step <= config.recipe.steps and _records_fit(state, config)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: not a saved run ({str(error)[:80]}); remove {partial} and train again") from None
    for part, named in parts.items():
        for name, shape in shapes(config).items():
            value = named[name]
            if value.dtype != torch.float32 or tuple(value.shape) != shape or not value.isfinite().all():
                raise BadInput(f"{path}: {part}/{name} does not fit the run; remove {partial} and train again")
    if not consistent:
        raise BadInput(f"{path}: its step or tensors do not fit the run; remove {partial} and train again")
    return state
