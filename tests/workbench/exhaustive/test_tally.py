"""Counts by cell: worked problems, and sums that are known without any model."""

import numpy as np

from workbench.exhaustive import tally
from workbench.structure import CLASSES, GROUPINGS, categories
from workbench.task import Problems, parse_all


def test_cells_of_worked_problems():
    problems = parse_all(["0999+0001", "1234+0567", "1235+0507", "0055+0055", "5000-0001", "0123-0456", "7-7"])
    labels = [tally.cell_labels(int(cell)) for cell in tally.cells(problems)]
    assert labels == [("S3", 3, 3), ("S2", 2, 2), ("S1", 1, 1), ("S1", 2, 1), ("M3", 3, 3), ("N1", 0, 0), ("M0", 0, 0)]


def test_every_category_is_a_sum_of_cells():
    index = np.random.default_rng(0).integers(0, 200_000_000, 20_000).astype(np.uint32)
    problems = Problems.from_index(index)
    right = np.random.default_rng(1).random((20_000, 5)) < 0.7
    counts = tally.count(problems, right)
    for grouping in GROUPINGS:
        found = categories(problems, grouping)
        lines = list(tally.lines(counts, grouping))
        assert [line.category for line in lines] == [
            name for name in dict.fromkeys(tally.category_names(grouping)) if (found == name).any()
        ]
        for line in lines:
            mask = found == line.category
            assert line["n"] == mask.sum()
            assert [line[place] for place in tally.PLACES] == right[mask].sum(axis=0).tolist()
            assert line["right"] == right[mask].all(axis=1).sum() == line["n"] - line.wrong
    (everything,) = tally.lines(counts, "all")
    assert everything["n"] == 20_000


def test_every_cell_has_a_label_of_its_own():
    labels = {tally.cell_labels(cell) for cell in range(tally.CELLS)}
    assert len(labels) == tally.CELLS and {label[0] for label in labels} == set(CLASSES)
