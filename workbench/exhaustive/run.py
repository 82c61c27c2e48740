"""Counting: every block of a decoder's domain, some at a time, resumable."""

import collections
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from workbench.checkpoint import Checkpoint, partial_folder
from workbench.errors import BadInput
from workbench.exhaustive import result, state, tally
from workbench.exhaustive.digits import BLOCK, Predictor
from workbench.exhaustive.result import Exhaustive
from workbench.exhaustive.state import BLOCKS, State
from workbench.files import make_folder, move_folder, remove_folder
from workbench.lock import hold
from workbench.recipe import Variant
from workbench.splits import in_variant
from workbench.task import ANSWER_TOKENS, Problems, encode

SECONDS_BETWEEN_SAVES = 15.0
BUSY = "another process is counting there; wait for it, or stop it"

OnBlock = Callable[[int], None]  # problems counted so far, those counted before an interruption included
Counted = tuple[int, tally.Counts, np.ndarray, np.ndarray]


def blocks_of(variant: Variant) -> list[int]:
    """The blocks that hold problems of a variant; the first half of all is additions."""
    halves = {"addition": range(BLOCKS // 2), "subtraction": range(BLOCKS // 2, BLOCKS)}
    return list(halves.get(variant, range(BLOCKS)))


def whole(variant: Variant) -> bool:
    """Whether a variant holds every problem of its blocks."""
    return variant != "ordered"


def count_block(predictor: Predictor, block: int, variant: Variant) -> Counted:
    """The block, its counts, its near ties by place, and the indices of its wrong problems."""
    digits, near = predictor.block(block)
    index = np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.uint32)
    if not (kept := in_variant(index, variant)).all():
        index, digits, near = index[kept], digits[kept], near[kept]
    problems = Problems.from_index(index)
    right = digits == encode(problems)[:, ANSWER_TOKENS]
    return block, tally.count(problems, right), near.sum(axis=0), index[~right.all(axis=1)]


def count(one: Checkpoint, folder: Path, *, jobs: int, on_block: OnBlock | None = None) -> Exhaustive:
    """Count `one` into `folder`, or read what is there; an unfinished count lives in `folder.partial` and continues.

    Raises BadInput when the folder holds a count of other weights.
    """
    if folder.exists():
        return _already_there(one, folder)
    variant = one.config.problems
    predictor = Predictor.of(one.weights, one.config.architecture, variant == "sign-hidden")
    about = {"weights_sha256": one.weights_sha256, "problems": variant, "by": predictor.by}
    partial = partial_folder(folder)
    with hold(partial, BUSY):
        if folder.exists():  # that process has finished it meanwhile
            return _already_there(one, folder)
        found = state.load(partial, about)
        _continue(predictor, variant, found, partial, about, jobs, on_block)
        _finish(one, predictor, found, partial, folder)
    return result.read(folder)


def _already_there(one: Checkpoint, folder: Path) -> Exhaustive:
    found = result.read(folder)
    if (found.weights_sha256, found.problems) != (one.weights_sha256, one.config.problems):
        raise BadInput(
            f"{folder}: a count of other weights than those of {one.name}; remove it, or choose another --out"
        )
    return found


def _in_order(predictor: Predictor, variant: Variant, blocks: list[int], jobs: int) -> Iterator[Counted]:
    """Blocks counted `jobs` at a time, in order; few wait, so that little is held."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting: collections.deque[Future[Counted]] = collections.deque()
        try:
            for block in blocks:
                waiting.append(pool.submit(count_block, predictor, block, variant))
                if len(waiting) > 2 * jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _continue(
    predictor: Predictor,
    variant: Variant,
    found: State,
    partial: Path,
    about: dict[str, str],
    jobs: int,
    on_block: OnBlock | None,
) -> None:
    """Count what is left, saving now and then and when interrupted."""
    saved = time.monotonic()
    left = [block for block in blocks_of(variant) if not found.done[block]]
    if on_block is not None:
        on_block(int(found.counts[:, 0].sum()))
    try:
        for counted in _in_order(predictor, variant, left, jobs):
            found.add(*counted)
            if on_block is not None:
                on_block(int(found.counts[:, 0].sum()))
            if time.monotonic() - saved > SECONDS_BETWEEN_SAVES:
                state.save(found, partial, about)
                saved = time.monotonic()
    finally:
        state.save(found, partial, about)


def _finish(one: Checkpoint, predictor: Predictor, found: State, partial: Path, folder: Path) -> None:
    """Let the decoder write its answers to the wrong problems, and put the finished count in place."""
    blocks = blocks_of(one.config.problems)
    if not found.done[blocks].all() or (whole(one.config.problems) and found.counts[:, 0].sum() != BLOCK * len(blocks)):
        raise BadInput(f"{partial}: its counts are not of all problems; remove it and count again")
    wrong = None
    if found.wrong is not None:
        wrong = found.wrong, predictor.generated(Problems.from_index(found.wrong))
    ready = partial / "finished"
    remove_folder(ready)
    made = Exhaustive(
        folder, one.name, one.weights_sha256, one.config.problems, predictor.by, found.near.tolist(), found.counts,
        wrong is not None,
    )  # fmt: skip
    result.write(made, ready, wrong)
    move_folder(make_folder(ready), folder)
    remove_folder(partial)
