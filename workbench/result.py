"""What an analysis found, in memory and on disk: `result.json`, `tables/NAME.csv`, `figures/NAME.json`."""

import csv
import dataclasses
import hashlib
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import BadInput
from workbench.files import MAX_JSON_BYTES, json_bytes, make_folder, read_bytes, read_json, write_atomic
from workbench.recipe import check_types

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import plotly.graph_objects as go

INDEX = "result.json"
SCHEMA = 1
MAX_TABLE_BYTES = 256 * 1024 * 1024
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, csv.Error)
KINDS = ("bool", "str", "float32", "float64", *INTEGERS)  # what a column of a table may hold


@dataclass(frozen=True)
class Finding:
    """One sentence with its number: the value with a 95% interval, how many it rests on, and what a control gives.

    Numbers of any kind become Python's; raises ValueError for one that is not finite.
    """

    text: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    control: str | None = None
    control_value: float | None = None

    def __post_init__(self) -> None:
        for name in ("value", "low", "high", "control_value"):
            if (number := getattr(self, name)) is None:
                continue
            if not math.isfinite(number):
                raise ValueError(
                    f"{name} of the finding {self.text[:80]!r} is {number}; say in words what has no number"
                )
            object.__setattr__(self, name, float(number))
        if self.n is not None:
            object.__setattr__(self, "n", int(self.n))


@dataclass(frozen=True, eq=False)
class Result:
    """What an analysis found: tables, plotly figures and findings, by name. Two results are equal when all of it is.

    A table named `summary` is shown in the terminal, so it should fit there.

    A table's columns hold booleans, integers, floats (NaN where there is no number) or text ("" where there is none),
    and its row numbers carry no meaning: this is what a CSV file gives back. Raises TypeError for anything else.
    """

    tables: "dict[str, pd.DataFrame]"
    figures: "dict[str, go.Figure]"
    findings: list[Finding]

    def __post_init__(self) -> None:
        for name in (*self.tables, *self.figures):
            _plain(name)
        object.__setattr__(self, "tables", {name: _checked(name, table) for name, table in self.tables.items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return (
            self.findings == other.findings
            and list(self.tables) == list(other.tables)
            and list(self.figures) == list(other.figures)
            and all(table.equals(other.tables[name]) for name, table in self.tables.items())
            and all(_content(figure) == _content(other.figures[name]) for name, figure in self.figures.items())
        )

    __hash__ = None  # type: ignore[assignment]


def _plain(name: str) -> str:
    """`name`, when it is the stem of a file inside its folder; BadInput otherwise."""
    if not (isinstance(name, str) and name.isprintable() and 0 < len(name.encode()) <= 200) or name[0] in ". ":
        raise BadInput(f"{str(name)[:60]!r} cannot name a table or figure")
    if any(character in name for character in '/\\:*?"<>|'):
        raise BadInput(f"{name[:60]!r} cannot name a table or figure: it holds a character that files may not have")
    return name


def _checked(name: str, table: "pd.DataFrame") -> "pd.DataFrame":
    """The table with rows numbered from 0 and text of one dtype; TypeError for what a CSV file cannot give back."""
    if not len(table.columns) or not table.columns.is_unique:
        raise TypeError(f"table {name} has no columns, or two of one name")
    columns = {}
    for column, values in table.items():
        if not (isinstance(column, str) and column):
            raise TypeError(f"table {name}: a column is named {column!r}, expected text")
        kind = values.dtype.name
        if kind == "str" or kind not in KINDS:
            if other := [value for value in values if not isinstance(value, str)]:
                raise TypeError(f"table {name}, column {column} ({kind}) holds {other[0]!r}, expected a number or text")
            if any("\r" in value or "\0" in value for value in values):
                raise TypeError(f"table {name}, column {column}: a text holds a carriage return or a null character")
            values = values.astype(str)
        columns[column] = values.reset_index(drop=True)
    return type(table)(columns)


def _kinds(table: "pd.DataFrame") -> dict[str, str]:
    """The kind of every column of a checked table; before pandas 3, text is of dtype object."""
    return {str(column): dtype.name if dtype.name in KINDS else "str" for column, dtype in table.dtypes.items()}


def _content(figure: "go.Figure") -> Any:
    """A figure as plain values, whatever the order in which its properties were set."""
    return json.loads(_figure_text(figure))


def _figure_text(figure: "go.Figure") -> str:
    import plotly.io

    return str(plotly.io.to_json(figure)) + "\n"


def save(result: Result, folder: Path, *, analysis_name: str, options: Any, inputs: Sequence[str] = ()) -> list[Path]:
    """Write `tables/NAME.csv`, `figures/NAME.json`, and last `result.json`; returns the files written.

    `result.json` also records the analysis, its options, the names of its inputs and the sha256 of every other file.
    Parts of an earlier result in the folder that this one lacks are removed: a folder holds one result.
    """
    parts: dict[str, bytes] = {}
    for name, table in result.tables.items():
        parts[f"tables/{name}.csv"] = table.to_csv(index=False, lineterminator="\n").encode()
    for name, figure in result.figures.items():
        parts[f"figures/{name}.json"] = _figure_text(figure).encode()
    for path, content in parts.items():
        if len(content) > _limit(path):
            raise BadInput(
                f"{path} would take {len(content):,} bytes, at most {_limit(path):,}; ask for less at a time"
            )
    index = {
        "schema": SCHEMA,
        "analysis": analysis_name,
        "options": dataclasses.asdict(options),
        "inputs": list(inputs),
        "findings": [dataclasses.asdict(finding) for finding in result.findings],
        "tables": {name: _kinds(table) for name, table in result.tables.items()},
        "figures": list(result.figures),
        "sha256": {path: hashlib.sha256(content).hexdigest() for path, content in parts.items()},
    }
    text = json_bytes(index)
    earlier = _parts_listed(make_folder(folder))
    for path, content in parts.items():
        make_folder((folder / path).parent)
        write_atomic(folder / path, content)
    write_atomic(folder / INDEX, text)
    for path in earlier - parts.keys():
        (folder / path).unlink(missing_ok=True)
    return [*(folder / path for path in parts), folder / INDEX]


def _limit(path: str) -> int:
    return MAX_TABLE_BYTES if path.endswith(".csv") else MAX_JSON_BYTES


def _parts_listed(folder: Path) -> set[str]:
    """The files of the result that `folder` holds, none when it holds no readable one."""
    try:
        index = read_json(folder / INDEX)
        names = [(f"tables/{_plain(name)}.csv") for name in index["tables"]]
        return {*names, *(f"figures/{_plain(name)}.json" for name in index["figures"])}
    except (BadInput, KeyError, TypeError):
        return set()


def load(folder: Path) -> Result:
    """The result saved in `folder`, equal to what was saved; BadInput when a part is missing, changed or damaged."""
    index = read_json(folder / INDEX)
    if index.get("schema") != SCHEMA:
        raise BadInput(f"{folder / INDEX}: schema {str(index.get('schema'))[:20]!r}, expected {SCHEMA}")
    try:
        hashes: dict[str, str] = index["sha256"]
        tables = {name: _read_table(folder, name, kinds, hashes) for name, kinds in index["tables"].items()}
        figures = {name: _read_figure(folder, name, hashes) for name in index["figures"]}
        findings = [Finding(**finding) for finding in index["findings"]]
        for finding in findings:
            check_types(finding)
        return Result(tables, figures, findings)
    except UNREADABLE as error:
        raise BadInput(f"{folder}: not a saved result ({_line(error)}); run the analysis again") from None


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__} {error}".split())[:120]


def _read_part(folder: Path, path: str, hashes: dict[str, str]) -> bytes:
    content = read_bytes(folder / path, _limit(path))
    if hashlib.sha256(content).hexdigest() != hashes[path]:
        raise BadInput(f"{folder / path}: not the file that {INDEX} describes; run the analysis again")
    return content


def _read_table(folder: Path, name: str, kinds: dict[str, str], hashes: dict[str, str]) -> "pd.DataFrame":
    import pandas as pd

    text = _read_part(folder, f"tables/{_plain(name)}.csv", hashes).decode()
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    if header != list(kinds):
        raise ValueError(f"table {name} has other columns than {INDEX} says")
    cells = zip(*rows, strict=True) if rows else [()] * len(kinds)
    columns = zip(kinds.items(), cells, strict=True)
    return pd.DataFrame({column: pd.Series(_parsed(values, kind), dtype=kind) for (column, kind), values in columns})


def _parsed(cells: Sequence[str], kind: str) -> "np.ndarray | list[str]":
    """A column's cells as its kind: Python's own reading of numbers is exact; an empty cell of floats is NaN."""
    import numpy as np

    if kind == "str":
        return list(cells)
    if kind == "bool":
        return np.array([("False", "True").index(cell) for cell in cells], dtype=bool)
    read = int if kind in INTEGERS else float
    return np.array([read(cell or "nan") for cell in cells], dtype=kind)


def _read_figure(folder: Path, name: str, hashes: dict[str, str]) -> "go.Figure":
    import plotly.io

    text = _read_part(folder, f"figures/{_plain(name)}.json", hashes).decode()
    content = json.loads(text)
    if not (isinstance(content, dict) and content.keys() == {"data", "layout"}):
        raise ValueError(f"figure {name} is not data and layout")
    return plotly.io.from_json(text)  # type: ignore[return-value]
