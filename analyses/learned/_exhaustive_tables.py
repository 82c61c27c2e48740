"""Tables of `exhaustive` that come from counts alone.

A *cell* here is a class together with how many places carry or borrow: thirteen classes make 28 cells. Classes alone
are coarse (S1 and N1 hold tens of millions of problems each, from one carry or borrow to four), and the further split
by longest chain adds four cells only, as a class is that chain for all but negative answers.
"""

import re
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.exhaustive.result import Exhaustive
from workbench.exhaustive.tally import PLACES, Line, cell_labels, lines
from workbench.structure import CLASSES

if TYPE_CHECKING:
    import pandas as pd

HARDEST = 10  # cells of each shape in table `hardest`
OPERATORS = ("addition", "subtraction")

Cell = tuple[str, int]  # class, places that carry or borrow
Shapes = dict[str, list[Exhaustive]]  # the counts of each shape's models

_NAME = re.compile(r"(?:arithmetic-)?(?P<shape>(?P<mlp>relu|bilinear)-(?P<layers>\d{1,3})layer.*)-seed(?P<seed>\d+)")


def shape_of(model: str) -> str:
    """What models that differ in their seed share, read off the name: `relu-2layer`; another name is its own shape."""
    found = _NAME.fullmatch(model)
    return found["shape"] if found else model


def reading_order(found: Exhaustive) -> tuple[Any, ...]:
    """Sort key: relu before bilinear, then layers, shape, seed; other names last."""
    name = _NAME.fullmatch(found.model)
    return (name["mlp"] != "relu", int(name["layers"]), name["shape"], int(name["seed"])) if name else (2, found.model)


def cells_of(found: Exhaustive) -> dict[Cell, tuple[int, int]]:
    """(problems, wrong problems) of each cell that has problems, in reading order."""
    cells: dict[Cell, tuple[int, int]] = {}
    for cell in found.counts[:, 0].nonzero()[0].tolist():
        name = cell_labels(cell)[:2]
        n, wrong = cells.get(name, (0, 0))
        n_here, right_here = int(found.counts[cell, 0]), int(found.counts[cell, -1])
        cells[name] = n + n_here, wrong + n_here - right_here
    return cells


def classes_of(found: Exhaustive) -> dict[str, Line]:
    """The counts of each class that has problems, in reading order."""
    return {line.category: line for line in lines(found.counts, "class")}


def operators_of(found: Exhaustive) -> dict[str, Line]:
    """The counts of each operator that has problems."""
    return {line.category: line for line in lines(found.counts, "operator")}


def ranked_cells(models: Sequence[Exhaustive]) -> list[Cell]:
    """Cells in which some model errs, by the error rate of all models together, highest first."""
    by_cell = [cells_of(found) for found in models]
    rates = {cell: sum(one[cell][1] for one in by_cell) / n for cell, (n, _) in by_cell[0].items()}
    return sorted((cell for cell in rates if rates[cell]), key=lambda cell: -rates[cell])


def ranked_classes(models: Sequence[Exhaustive]) -> list[str]:
    """Classes in which some model errs, by the error rate of all models together, highest first."""
    by_class = [classes_of(found) for found in models]
    rates = {name: sum(one[name].wrong for one in by_class) / line["n"] for name, line in by_class[0].items()}
    return sorted((name for name in rates if rates[name]), key=lambda name: -rates[name])


def tables(shapes: Shapes) -> "dict[str, pd.DataFrame]":
    """`summary`, `errors`, `classes`, `digits`, `hardest`, `shape`."""
    import pandas as pd

    models = [(shape, found) for shape, group in shapes.items() for found in group]
    made = {
        "summary": [_summary_row(found) for _, found in models],
        "errors": [_errors_row(shape, found) for shape, found in models],
        "classes": [row for shape, found in models for row in _class_rows(shape, found)],
        "digits": [row for shape, found in models for row in _digit_rows(shape, found)],
        "shape": [row for shape, group in shapes.items() for row in _shape_rows(shape, group)],
    }
    hardest = [row for shape, group in shapes.items() for row in _hardest_rows(shape, group)]
    return {name: pd.DataFrame(rows) for name, rows in made.items()} | {
        "hardest": pd.DataFrame(hardest, columns=list(_HARDEST_KINDS)).astype(_HARDEST_KINDS)
    }


def _wrong_by_sign(found: Exhaustive) -> dict[str, tuple[int, int]]:
    """(problems, wrong) of additions, subtractions, and those subtractions whose answer is negative."""
    there = {line.category: line for grouping in ("operator", "sign") for line in lines(found.counts, grouping)}
    names = {"addition": "addition", "subtraction": "subtraction", "negative": "-"}
    return {
        name: (there[category]["n"], there[category].wrong) if category in there else (0, 0)
        for name, category in names.items()
    }


def _summary_row(found: Exhaustive) -> dict[str, Any]:
    wrong = {f"{name} wrong": value for name, (_, value) in _wrong_by_sign(found).items()}
    hardest = next(iter(ranked_classes([found])), "")
    there = classes_of(found).get(hardest)
    row = {"model": found.model, **wrong, "hardest class": hardest}
    return row | {"wrong there": there.wrong if there else 0, "problems there": there["n"] if there else 0}


def _errors_row(shape: str, found: Exhaustive) -> dict[str, Any]:
    """Exact counts; `float64_*` are the digits that float64 had to decide, right or wrong."""
    row: dict[str, Any] = {"model": found.model, "shape": shape, "problems": found.problems, "by": found.by}
    row |= {"n": found.n, "wrong": found.wrong}
    for name, (n, wrong) in _wrong_by_sign(found).items():
        row |= {f"{name}_n": n, f"{name}_wrong": wrong}
    (everything,) = lines(found.counts, "all")
    row |= {f"{place}_wrong": found.n - everything[place] for place in PLACES}
    row |= {f"{place}_float64": near for place, near in zip(PLACES, found.near, strict=True)}
    return row | {"listed": found.listed}


def _class_rows(shape: str, found: Exhaustive) -> list[dict[str, Any]]:
    return [
        {"model": found.model, "shape": shape, "class": name, "n": line["n"], "wrong": line.wrong,
         "rate": line.wrong / line["n"]}
        for name, line in classes_of(found).items()
    ]  # fmt: skip


def _digit_rows(shape: str, found: Exhaustive) -> list[dict[str, Any]]:
    """Digits by operator and place, each with the right digits before it given."""
    return [
        {"model": found.model, "shape": shape, "operator": name, "place": place, "n": line["n"],
         "wrong": line["n"] - line[place], "accuracy": line[place] / line["n"]}
        for name, line in operators_of(found).items()
        for place in PLACES
    ]  # fmt: skip


def _shape_rows(shape: str, models: Sequence[Exhaustive]) -> list[dict[str, Any]]:
    """Error rates of a class over the seeds of a shape: all there is, and no interval."""
    rows = []
    by_class = [classes_of(found) for found in models]
    for name in [name for name in CLASSES if name in by_class[0]]:
        n = by_class[0][name]["n"]
        rates = sorted(one[name].wrong / n for one in by_class)
        row: dict[str, Any] = {"shape": shape, "class": name, "models": len(models), "n": n}
        rows.append(row | {"lowest": rates[0], "median": statistics.median(rates), "highest": rates[-1]})
    return rows


_HARDEST_KINDS = {
    "shape": "str", "rank": "int64", "class": "str", "count": "int64", "models": "int64", "n": "int64",
    "pooled_n": "int64", "wrong": "int64", "rate": "float64", "lowest": "float64", "highest": "float64",
    "share_of_errors": "float64", "share_of_problems": "float64",
}  # fmt: skip


def _hardest_rows(shape: str, models: Sequence[Exhaustive]) -> list[dict[str, Any]]:
    """The cells of highest pooled error rate; `n` is the cell's problems, `pooled_n` that times the models."""
    rows = []
    by_cell = [cells_of(found) for found in models]
    errors = sum(found.wrong for found in models)
    for rank, cell in enumerate(ranked_cells(models)[:HARDEST], start=1):
        n = by_cell[0][cell][0]
        wrong = [one[cell][1] for one in by_cell]
        pooled = n * len(models)
        row: dict[str, Any] = {"shape": shape, "rank": rank, "class": cell[0], "count": cell[1], "models": len(models)}
        row |= {"n": n, "pooled_n": pooled, "wrong": sum(wrong), "rate": sum(wrong) / pooled}
        row |= {"lowest": min(wrong) / n, "highest": max(wrong) / n}
        rows.append(row | {"share_of_errors": sum(wrong) / errors, "share_of_problems": n / models[0].n})
    return rows
