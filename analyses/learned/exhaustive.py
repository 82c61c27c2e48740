"""Analysis `exhaustive`: what each decoder gets wrong, of every problem there is.

It reads counts made by `workbench evaluate --exhaustive`. They are complete, so a rate has no sampling interval; seeds
of a shape are given by their lowest and highest. Digits are counted with the right ones before them given, which
changes no whole answer: all five are right then exactly when a generated answer is. The lists of wrong problems hold
generated answers.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analyses.learned import _exhaustive_kinds as kinds
from analyses.learned._exhaustive_figures import figures
from analyses.learned._exhaustive_findings import findings
from analyses.learned._exhaustive_tables import Shapes, cells_of, reading_order, shape_of, tables
from workbench.analysis import Result, analysis
from workbench.checkpoint import PARTIAL
from workbench.errors import BadInput
from workbench.exhaustive.result import SUMMARY, Exhaustive, read
from workbench.task import DOMAIN_SIZE, OPERAND_COUNT, PAIR_COUNT

if TYPE_CHECKING:
    import pandas as pd

SIZES = {
    "all": DOMAIN_SIZE,
    "sign-hidden": DOMAIN_SIZE,
    "addition": PAIR_COUNT,
    "subtraction": PAIR_COUNT,
    "ordered": OPERAND_COUNT * (OPERAND_COUNT + 1),  # a >= b, both operators
}


@dataclass(frozen=True)
class Options:
    """Nothing to choose: every problem is counted, and a threshold that could be moved would not be a rule."""


@analysis(
    question="Which of the 200,000,000 problems does each decoder get wrong?",
    options=Options,
    inputs="folder",
    within="exhaustive",
)
def exhaustive(folder: Path, options: Options) -> Result:
    """Exact errors by operator, place, class and cell, and the kinds of wrong answers where they are listed.

    `folder` holds a finished count a model; unfinished ones are named and left out. Raises BadInput when there is none,
    one is damaged or not of the whole domain, or two do not go together.
    """
    found, unfinished = read_counts(folder)
    shapes = by_shape(found)
    made = [row for shape, group in shapes.items() for one in group if one.listed for row in kinds.rows(shape, one)]
    every = tables(shapes) | {"kinds": _kinds_table(made)}
    return Result(every, figures(every), findings(shapes, made, unfinished))


def _kinds_table(rows: kinds.Rows) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows, columns=list(kinds.KINDS)).astype(kinds.KINDS)


def read_counts(folder: Path) -> tuple[list[Exhaustive], list[str]]:
    """The finished counts in `folder`, in reading order, and the names of unfinished ones."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    children = sorted(child for child in folder.iterdir() if child.is_dir())
    unfinished = [child.name for child in children if child.name.endswith(PARTIAL)]
    found = [read(child) for child in children if (child / SUMMARY).exists() and not child.name.endswith(PARTIAL)]
    if not found:
        hint = "name the folder it lies in" if (folder / SUMMARY).exists() else "make them with evaluate --exhaustive"
        raise BadInput(f"{folder}: no finished counts in it; {hint}")
    for one in found:
        if one.n != SIZES.get(one.problems):
            raise BadInput(f"{one.folder}: {one.n:,} problems, not all there are of {one.problems[:40]!r}; count again")
    _refuse_twins(found)
    return sorted(found, key=reading_order), unfinished


def _refuse_twins(found: list[Exhaustive]) -> None:
    """Raise BadInput when two counts have one name, or are of the same weights and would pass for two seeds."""
    for what, values in (("name", [one.model for one in found]), ("weights", [one.weights_sha256 for one in found])):
        for at, value in enumerate(values):
            if (first := values.index(value)) != at:
                raise BadInput(f"{found[first].folder} and {found[at].folder} have the same {what}; remove one")


def by_shape(found: list[Exhaustive]) -> Shapes:
    """The counts of each shape; BadInput when two of a shape are not of the same problems."""
    shapes: Shapes = {}
    for one in found:
        shapes.setdefault(shape_of(one.model), []).append(one)
    for group in shapes.values():
        first, *others = [{cell: n for cell, (n, _) in cells_of(one).items()} for one in group]
        for one, other in zip(group[1:], others, strict=True):
            if other != first:
                raise BadInput(f"{group[0].folder} and {one.folder} count other problems; give them names that differ")
    return shapes
