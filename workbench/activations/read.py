"""Read an export back: tensors, problems, an ActivationCache; every shard is checked when it is read."""

import difflib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Float, UInt8
from safetensors import SafetensorError
from torch import Tensor

from workbench.activations.layout import MAX_SHARD_MB, PROBLEMS, TOKEN_IDS, Index, Shard, Stored, read_index
from workbench.activations.store import Rows, is_finite
from workbench.checkpoint import refuse_other_kinds, weight_bytes
from workbench.errors import BadInput
from workbench.files import read_bytes
from workbench.task import CHARACTERS, N_CTX, Problems, encode

if TYPE_CHECKING:
    from transformer_lens import ActivationCache
    from transformer_lens.hook_points import HookedRootModule

RESTORE = "copy the export again or make it anew"


@dataclass(frozen=True, eq=False)
class Export:
    """An export on disk; nothing but its index is held in memory."""

    folder: Path
    index: Index

    def __len__(self) -> int:
        return self.index.n_problems

    @property
    def names(self) -> list[str]:
        """Names of its activation tensors: hooks, or `checkpoint/hook` where several checkpoints are joined."""
        return [stored.name for stored in self.index.tensors]

    def shards(self) -> Iterator[Rows]:
        """The tensors of each shard in turn, with `token_ids` and `problems`; BadInput for one that was changed."""
        for shard in self.index.shards:
            yield self._read(shard)

    def check(self) -> None:
        """Read every shard once; BadInput names the first that is not what the index says."""
        for _ in self.shards():
            pass

    def tensor(self, name: str) -> Float[Tensor, "problem ..."]:
        """One tensor over all problems, in its stored dtype; BadInput for a name that the export lacks."""
        stored = self._stored(name)
        whole = torch.empty((len(self), *self.index.row_shape(stored)), dtype=getattr(torch, stored.dtype))
        for shard, rows in zip(self.index.shards, self.shards(), strict=True):
            whole[shard.start : shard.stop] = rows[name]
        return whole

    @cached_property
    def problems(self) -> Problems:
        """The problems, in the order of the rows."""
        return Problems.from_index(np.concatenate([rows[PROBLEMS].numpy() for rows in self.shards()]))

    @cached_property
    def token_ids(self) -> UInt8[np.ndarray, "problem 16"]:
        """The tokens of each problem and its answer; the model read the first fifteen."""
        return np.concatenate([rows[TOKEN_IDS].numpy() for rows in self.shards()])

    def cache(self, model: "HookedRootModule", checkpoint: str | None = None) -> "ActivationCache":
        """The activations of one checkpoint as TransformerLens's ActivationCache, under their hook names.

        `model` is that checkpoint's Decoder; BadInput when its weights are others. Where positions were chosen, the
        cache's position axis has only those.
        """
        from transformer_lens import ActivationCache

        known = list(self.index.checkpoints)
        name = known[0] if checkpoint is None and len(known) == 1 else checkpoint
        if name not in self.index.checkpoints:
            raise BadInput(f"{self.folder}: choose one of its checkpoints: {', '.join(known)}")
        weights = {key: value.detach().cpu().float().numpy() for key, value in model.state_dict().items()}
        if hashlib.sha256(weight_bytes(weights)).hexdigest() != self.index.checkpoints[name].weights_sha256:
            raise BadInput(f"{self.folder}: the model's weights are not those of {name}, whose activations these are")
        chosen = [stored for stored in self.index.tensors if stored.checkpoint == name]
        return ActivationCache({stored.hook: self.tensor(stored.name) for stored in chosen}, model)

    def _stored(self, name: str) -> Stored:
        for stored in self.index.tensors:
            if stored.name == name:
                return stored
        close = difflib.get_close_matches(name, self.names, n=5, cutoff=0.4) or self.names
        raise BadInput(f"{self.folder}: no tensor {name[:80]!r} in the export; there are {', '.join(close)}")

    def _read(self, shard: Shard) -> Rows:
        path = self.folder / shard.file
        raw = read_bytes(path, limit=2 * MAX_SHARD_MB * 2**20)
        refuse_other_kinds(raw, path)
        if len(raw) != shard.bytes:
            raise BadInput(
                f"{path}: {len(raw):,} bytes, {shard.bytes:,} expected; it is truncated or changed: {RESTORE}"
            )
        if hashlib.sha256(raw).hexdigest() != shard.sha256:
            raise BadInput(f"{path}: its sha256 is not the one in the index; it was changed: {RESTORE}")
        try:
            rows = safetensors.torch.load(raw)
        except (SafetensorError, KeyError, ValueError, TypeError) as error:
            raise BadInput(f"{path}: not a safetensors file ({str(error)[:80]}); {RESTORE}") from None
        self._check(rows, shard.stop - shard.start, path)
        return rows

    def _check(self, rows: Rows, n: int, path: Path) -> None:
        """Raise BadInput unless a shard's tensors are those of the index and its token ids those of its problems."""
        expected = {s.name: ((n, *self.index.row_shape(s)), getattr(torch, s.dtype)) for s in self.index.tensors}
        expected |= {TOKEN_IDS: ((n, N_CTX), torch.uint8), PROBLEMS: ((n,), torch.uint32)}
        if wrong := sorted(expected.keys() ^ rows.keys()):
            raise BadInput(
                f"{path}: tensor {wrong[0][:80]!r} is {'missing' if wrong[0] in expected else 'extra'}; {RESTORE}"
            )
        for name, (shape, dtype) in expected.items():
            found = rows[name]
            if (tuple(found.shape), found.dtype) != (shape, dtype):
                raise BadInput(
                    f"{path}: {name} is {found.dtype} {list(found.shape)}, expected {dtype} {list(shape)}; {RESTORE}"
                )
        for stored in self.index.tensors:
            if not is_finite(stored.hook, rows[stored.name]):
                raise BadInput(f"{path}: {stored.name} holds non-finite values; {RESTORE}")
        ids_of_characters = np.array([self.index.vocabulary.index(character) for character in CHARACTERS], np.uint8)
        try:
            problems = Problems.from_index(rows[PROBLEMS].numpy())
        except BadInput as error:
            raise BadInput(f"{path}: {error}; {RESTORE}") from None
        exact = ids_of_characters[encode(problems, hide_sign=self.index.hides_sign)]
        if not np.array_equal(exact, rows[TOKEN_IDS].numpy()):
            raise BadInput(f"{path}: its token ids are not those of its problems; {RESTORE}")


def read_export(folder: str | Path) -> Export:
    """The export in `folder`, its index checked; BadInput says which file, what was found and what was expected."""
    folder = Path(folder)
    index = read_index(folder)
    for shard in index.shards:
        if not (folder / shard.file).is_file():
            raise BadInput(f"{folder / shard.file}: no such file, but the index lists it; {RESTORE}")
    return Export(folder, index)
