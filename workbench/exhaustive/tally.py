"""Counts of right digits over cells: a cell is a peer class, a count of carries or borrows, and a longest chain.

Operator and sign follow from the class, so every category of `workbench.structure` is a sum of cells.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from workbench.structure import CLASSES, category_names, structure
from workbench.task import Problems

COUNTED = ("n", "d4", "d3", "d2", "d1", "d0", "right")  # problems; right digits by place; problems with all five right
PLACES = COUNTED[1:6]
_MOST = 5  # counts and chains go from 0 to 4
CELLS = len(CLASSES) * _MOST * _MOST

Counts = Int64[np.ndarray, "cell 7"]


def cells(problems: Problems) -> Int64[np.ndarray, " problem"]:
    """The cell of each problem."""
    found = structure(problems)
    letter = 5 * problems.subtract.astype(int) + 3 * problems.negative.astype(int)  # S0.., M0.., N1.. as in CLASSES
    return ((letter + found.peer_chain) * _MOST + found.count) * _MOST + found.chain


def count(problems: Problems, right: Bool[np.ndarray, "problem 5"]) -> Counts:
    """How many problems each cell has, and how many of their digits are right."""
    cell = cells(problems)
    columns = [cell, *(cell[right[:, place]] for place in range(5)), cell[right.all(axis=1)]]
    return np.stack([np.bincount(column, minlength=CELLS) for column in columns], axis=1)


def cell_labels(cell: int) -> tuple[str, int, int]:
    """Class, count and chain of a cell."""
    rest, chain = divmod(cell, _MOST)
    kind, moves = divmod(rest, _MOST)
    return CLASSES[kind], moves, chain


@dataclass(frozen=True)
class Line:
    """The counts of one category, with COUNTED's names."""

    grouping: str
    category: str
    counts: tuple[int, ...]

    def __getitem__(self, name: str) -> int:
        return self.counts[COUNTED.index(name)]

    @property
    def wrong(self) -> int:
        """Problems with at least one wrong digit."""
        return self["n"] - self["right"]


def _categories(cell: int) -> dict[str, str]:
    """The category of a cell under each grouping, named as in `workbench.structure`."""
    kind, moves, chain = cell_labels(cell)
    subtract = kind[0] != "S"
    return {
        "operator": "subtraction" if subtract else "addition",
        "sign": "-" if kind[0] == "N" else "+",
        "count": category_names("count")[5 * subtract + moves],
        "chain": category_names("chain")[5 * subtract + chain],
        "class": kind,
    }


def lines(counts: Counts, grouping: str) -> Iterator[Line]:
    """The counts of every category of a grouping that has problems, in reading order; `all` is one line."""
    there = np.flatnonzero(counts[:, 0])
    of = {int(cell): "all" if grouping == "all" else _categories(int(cell))[grouping] for cell in there}
    for name in ["all"] if grouping == "all" else category_names(grouping):
        chosen = [cell for cell, category in of.items() if category == name]
        if chosen:
            yield Line(grouping, name, tuple(int(value) for value in counts[chosen].sum(axis=0)))
