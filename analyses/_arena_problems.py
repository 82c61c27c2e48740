"""The arena's problems: drawn at random, and so many of every class, none of which a decoder was trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt32

from workbench.errors import BadInput
from workbench.recipe import Variant
from workbench.splits import TOTAL_EXAMPLES, draw
from workbench.structure import CLASSES, categories
from workbench.task import Problems

if TYPE_CHECKING:
    from workbench.recipe import RunConfig

POOL = 3_000_000  # problems drawn at least; the rarest class, N4, is 1 in 4,938 of them


@dataclass(frozen=True, eq=False)
class Asked:
    """Problems uniform over the task, and others of each class, uniform within it."""

    random: Problems
    classes: Problems


def unseen(seed: int, count: int, runs: "Sequence[RunConfig]") -> UInt32[np.ndarray, " problem"]:
    """Domain indices of a draw of `count` problems, less those that a run trained, chose or tested its weights on."""
    found = draw(seed, count)
    drawn: dict[tuple[int, Variant], None] = dict.fromkeys((run.data_seed, run.problems) for run in runs)
    for data_seed, variant in drawn:
        found = found[~np.isin(found, draw(data_seed, TOTAL_EXAMPLES, variant), kind="table")]
    return found


def problems(seed: int, random: int, of_each_class: int, runs: "Sequence[RunConfig]") -> Asked:
    """`random` problems and up to `of_each_class` of every class; BadInput when too few are unseen.

    That happens only where a run drew its own training problems with the arena's seed.
    """
    pool = Problems.from_index(unseen(seed, max(POOL, 2 * random), runs))
    if len(pool) < random:
        raise BadInput(f"seed {seed} draws {len(pool):,} problems that no run saw, expected {random:,}; choose another")
    rest = pool[random:]
    names = categories(rest, "class")
    chosen = [np.flatnonzero(names == name)[:of_each_class] for name in CLASSES]
    return Asked(pool[:random], rest[np.concatenate(chosen)])
