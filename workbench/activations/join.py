"""Join exports: more hooks or other checkpoints over the same problems (align), or more problems (append)."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch

from workbench.activations.layout import PROBLEMS, TOKEN_IDS, Index, Source, Stored
from workbench.activations.read import Export
from workbench.activations.store import Report, Rows, silent, write_shards
from workbench.errors import BadInput
from workbench.task import N_CTX, POSITION_LABELS


def check_same_problems(exports: Sequence[Export]) -> None:
    """Raise BadInput unless all exports hold the same problems in the same order with the same token ids.

    Activations of different problems, or of models that number the tokens differently, do not belong side by side:
    position by position they would answer to different inputs.
    """
    first = exports[0]
    for other in exports[1:]:
        difference = _first_difference(first, other)
        if difference:
            raise BadInput(
                f"{first.folder} and {other.folder}: {difference}; activations of different problems, or of models "
                "with different token ids, do not belong side by side: export both with the same --problems, "
                "--seed and --category from models of one vocabulary"
            )


def _first_difference(first: Export, other: Export) -> str | None:
    if first.index.vocabulary != other.index.vocabulary:
        pairs = itertools.zip_longest(first.index.vocabulary, other.index.vocabulary, fillvalue="nothing")
        token, (a, b) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
        return f"token ids differ: {token} is {a!r} in one and {b!r} in the other"
    n = min(len(first), len(other))
    differs = first.token_ids[:n] != other.token_ids[:n]
    if differs.any():
        row, place = divmod(int(differs.argmax()), N_CTX)
        texts = ["".join(one.index.vocabulary[token] for token in one.token_ids[row]) for one in (first, other)]
        where = f"row {row} ({' and '.join(texts)}) at position {place} ({POSITION_LABELS[place]})"
        return f"token ids differ first in {where}"
    return f"{len(first):,} and {len(other):,} problems" if len(first) != len(other) else None


def align(
    exports: Sequence[Export], folder: Path, *, shard_mb: int = 64, overwrite: bool = False, report: Report = silent
) -> Index:
    """Put the activations of exports over the same problems side by side in a new export at `folder`.

    Tensors keep their hook's name; where several checkpoints come together, each is named `checkpoint/hook`. Raises
    BadInput when the problems or token ids differ, or two exports hold the same hook of the same checkpoint.
    """
    _refuse_own_input(exports, folder)
    check_same_problems(exports)
    renamed = _side_by_side([one.index for one in exports])
    tensors = [stored for names in renamed for stored in names.values()]
    found = [stored.name for stored in tensors]
    if twice := sorted({name for name in found if found.count(name) > 1}):
        raise BadInput(f"two of the exports hold {twice[0]}; join exports of different hooks or checkpoints")
    checkpoints = {
        new.checkpoint: one.index.checkpoints[old.checkpoint]
        for one, names in zip(exports, renamed, strict=True)
        for old in one.index.tensors
        for new in [names[old.name]]
    }
    index = dataclasses.replace(exports[0].index, checkpoints=checkpoints, tensors=tuple(tensors), shards=())
    rows = index.rows_a_shard(shard_mb)
    columns = [rechunk(one.shards(), rows) for one in exports]
    pieces = (
        {
            **{names[old].name: part[old] for names, part in zip(renamed, parts, strict=True) for old in names},
            TOKEN_IDS: parts[0][TOKEN_IDS],
            PROBLEMS: parts[0][PROBLEMS],
        }
        for parts in zip(*columns, strict=True)
    )
    return write_shards(folder, index, pieces, overwrite=overwrite, report=report)


def append(
    exports: Sequence[Export], folder: Path, *, shard_mb: int = 64, overwrite: bool = False, report: Report = silent
) -> Index:
    """Put the problems of exports one after another in a new export at `folder`; repeated problems are kept.

    Raises BadInput unless all hold the same hooks, positions and dtypes of the same checkpoints and the same
    vocabulary.
    """
    _refuse_own_input(exports, folder)
    first = exports[0].index
    for one in exports[1:]:
        for field in ("vocabulary", "checkpoints", "tensors"):
            if getattr(one.index, field) != getattr(first, field):
                what = {"tensors": "hooks, positions or dtypes", "vocabulary": "token ids"}.get(field, field)
                raise BadInput(
                    f"{exports[0].folder} and {one.folder}: {what} differ, so the problems of one cannot follow the "
                    "other's; export both from one checkpoint with the same --hooks, --positions and --dtype"
                )
    n = sum(map(len, exports))
    chosen = "; then ".join(one.index.chosen for one in exports)
    index = dataclasses.replace(first, n_problems=n, chosen=chosen, shards=())
    pieces = rechunk(itertools.chain.from_iterable(one.shards() for one in exports), index.rows_a_shard(shard_mb))
    return write_shards(folder, index, pieces, overwrite=overwrite, report=report)


def rechunk(pieces: Iterable[Rows], size: int) -> Iterator[Rows]:
    """The same rows, `size` at a time; memory holds one piece and `size` rows."""
    held: list[Rows] = []
    for piece in pieces:
        at, length = 0, len(piece[PROBLEMS])
        while at < length:
            take = min(size - sum(len(part[PROBLEMS]) for part in held), length - at)
            held.append({name: value[at : at + take] for name, value in piece.items()})
            at += take
            if sum(len(part[PROBLEMS]) for part in held) == size:
                yield _together(held)
                held = []
    if held:
        yield _together(held)


def _together(parts: list[Rows]) -> Rows:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _refuse_own_input(exports: Sequence[Export], folder: Path) -> None:
    if len(exports) < 2:
        raise BadInput("one export cannot be joined; give two or more")
    if any(one.folder.resolve() == Path(folder).resolve() for one in exports):
        raise BadInput(f"{folder} is one of the exports to join; choose a new folder")


def _side_by_side(indices: Sequence[Index]) -> list[dict[str, Stored]]:
    """For each index, what each of its tensors becomes in the join, by its name so far.

    A checkpoint keeps its name, with a piece of its hash where one name has two sets of weights.
    """
    sources: dict[str, set[Source]] = {}
    for index in indices:
        for name, source in index.checkpoints.items():
            sources.setdefault(name, set()).add(source)

    def moved(index: Index, old: Stored) -> Stored:
        key = old.checkpoint
        if len(sources[key]) > 1:
            key += f"@{index.checkpoints[old.checkpoint].weights_sha256[:12]}"
        several = len(sources) > 1 or key != old.checkpoint
        return dataclasses.replace(old, checkpoint=key, name=f"{key}/{old.hook}" if several else old.hook)

    return [{old.name: moved(index, old) for old in index.tensors} for index in indices]
