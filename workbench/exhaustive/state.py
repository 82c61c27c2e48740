"""The state of an unfinished count: which blocks are done and what they came to, in one file replaced atomically."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import safetensors.numpy
from jaxtyping import Bool, Int64, UInt32
from safetensors import SafetensorError, safe_open

from workbench.errors import BadInput
from workbench.exhaustive.digits import BLOCK
from workbench.exhaustive.tally import CELLS, COUNTED, Counts
from workbench.files import write_atomic
from workbench.task import DOMAIN_SIZE

STATE = "state.safetensors"
BLOCKS = DOMAIN_SIZE // BLOCK
MOST_LISTED = 5_000_000  # wrong problems that a list still holds


def _no_counts() -> Counts:
    return np.zeros((CELLS, len(COUNTED)), np.int64)


@dataclass
class State:
    """What is counted so far; `wrong` is None once there are too many to list."""

    done: Bool[np.ndarray, " block"] = field(default_factory=lambda: np.zeros(BLOCKS, bool))
    counts: Counts = field(default_factory=_no_counts)
    near: Int64[np.ndarray, "5"] = field(default_factory=lambda: np.zeros(5, np.int64))
    wrong: UInt32[np.ndarray, " problem"] | None = field(default_factory=lambda: np.empty(0, np.uint32))

    def add(
        self, block: int, counts: Counts, near: Int64[np.ndarray, "5"], wrong: UInt32[np.ndarray, " problem"]
    ) -> None:
        """Take in one block; `near` counts its digits, by place, that float64 decided."""
        done = self.done.copy()
        done[block] = True
        listed = None if self.wrong is None else np.concatenate([self.wrong, wrong])
        if listed is not None and len(listed) > MOST_LISTED:
            listed = None
        # one assignment, so that an interruption leaves the block counted or not counted
        self.__dict__ |= {"done": done, "counts": self.counts + counts, "near": self.near + near, "wrong": listed}


def save(state: State, folder: Path, about: dict[str, str]) -> None:
    """Replace the saved state; `about` says of which weights and by which means it is."""
    arrays = {"done": state.done, "counts": state.counts, "near": state.near}
    if state.wrong is not None:
        arrays["wrong"] = state.wrong
    write_atomic(folder / STATE, safetensors.numpy.save(arrays, metadata={"about": json.dumps(about, sort_keys=True)}))


def load(folder: Path, about: dict[str, str]) -> State:
    """The saved state, or an empty one; BadInput when it is damaged or of another count than `about` says."""
    path = folder / STATE
    if not path.exists():
        return State()
    try:
        with safe_open(path, framework="np") as file:
            found = json.loads((file.metadata() or {})["about"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        state = State(arrays.pop("done"), arrays.pop("counts"), arrays.pop("near"), arrays.pop("wrong", None))
        fits = not arrays and _fits(state)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: not a saved count ({str(error)[:80]}); remove {folder} and count again") from None
    if found != about:
        raise BadInput(f"{path}: a count of other weights or by other means; remove {folder} and count again")
    if not fits:
        raise BadInput(f"{path}: its counts do not fit together; remove {folder} and count again")
    return state


def _fits(state: State) -> bool:
    kinds = state.done.dtype == bool and state.counts.dtype == np.int64 and state.near.dtype == np.int64
    shapes = state.done.shape == (BLOCKS,) and state.counts.shape == (CELLS, len(COUNTED)) and state.near.shape == (5,)
    if not (kinds and shapes) or (state.counts < 0).any() or (state.counts > state.counts[:, :1]).any():
        return False
    n, right = state.counts[:, 0].sum(), state.counts[:, -1].sum()
    if n > BLOCK * state.done.sum() or (state.near < 0).any():
        return False
    listed = state.wrong is None or (state.wrong.dtype == np.uint32 and len(state.wrong) == n - right)
    return listed and (state.wrong is None or bool((state.wrong < DOMAIN_SIZE).all()))
