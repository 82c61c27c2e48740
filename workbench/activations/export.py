"""Export the activations of a checkpoint at chosen hooks and positions, computed and written a shard at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from workbench import forward
from workbench.activations.collect import collect
from workbench.activations.hooks import ALL_POSITIONS, DTYPES, choose_hooks
from workbench.activations.layout import PROBLEMS, TOKEN_IDS, Index, Source, Stored
from workbench.activations.store import Report, Rows, silent, write_shards
from workbench.checkpoint import Checkpoint
from workbench.errors import BadInput
from workbench.task import Problems, encode

CHUNK = 2_000  # problems a forward pass


def export(
    checkpoint: Checkpoint,
    problems: Problems,
    folder: Path,
    *,
    hooks: Sequence[str],
    positions: Sequence[int] = ALL_POSITIONS,
    dtype: str = "float32",
    shard_mb: int = 64,
    chosen: str = "given by the caller",
    overwrite: bool = False,
    report: Report = silent,
) -> Index:
    """Write the activations of `problems` at `hooks` (names or glob patterns) and `positions` to `folder`.

    Computed in float32, or float64 for the dtype float64, and rounded to `dtype` when stored. `chosen` says in words
    how the problems were chosen. Memory holds one shard of `shard_mb` MiB at most three times over, whatever the
    number of problems. Raises BadInput for what cannot be done as asked; then nothing is left on disk.
    """
    if dtype not in DTYPES:
        raise BadInput(f"unknown dtype {dtype!r}; choose from {', '.join(DTYPES)}")
    if not len(problems):
        raise BadInput("no problems to export; choose at least one")
    if not positions or sorted(set(positions)) != list(positions) or not set(positions) <= set(ALL_POSITIONS):
        raise BadInput(f"positions {list(positions)} are not ascending numbers 0..{ALL_POSITIONS[-1]}")
    shape = checkpoint.config.architecture
    tensors = [Stored(hook, checkpoint.name, hook, tuple(positions), dtype) for hook in choose_hooks(hooks, shape)]
    source = Source(checkpoint.weights_sha256, shape, checkpoint.config.problems)
    index = Index({checkpoint.name: source}, tuple(tensors), len(problems), chosen)
    pieces = _compute(checkpoint, problems, index, index.rows_a_shard(shard_mb))
    return write_shards(folder, index, pieces, overwrite=overwrite, report=report)


def _compute(checkpoint: Checkpoint, problems: Problems, index: Index, rows: int) -> Iterator[Rows]:
    """The tensors of `rows` problems at a time."""
    architecture, positions = checkpoint.config.architecture, index.tensors[0].positions
    dtype = getattr(torch, index.tensors[0].dtype)
    weights = forward.tensors(checkpoint.weights, torch.float64 if dtype == torch.float64 else torch.float32)
    hooks = [stored.hook for stored in index.tensors]
    for start in range(0, len(problems), rows):
        part = problems[start : start + rows]
        tokens = torch.from_numpy(encode(part, hide_sign=index.hides_sign))
        filled = {one.name: torch.empty((len(part), *index.row_shape(one)), dtype=dtype) for one in index.tensors}
        for at in range(0, len(part), CHUNK):
            found = collect(weights, tokens[at : at + CHUNK], architecture, hooks, positions)
            for hook, value in found.items():
                filled[hook][at : at + CHUNK] = value
        yield {**filled, TOKEN_IDS: tokens, PROBLEMS: torch.from_numpy(part.index)}
