"""A finished count on disk: `summary.json`, `counts.csv`, and `wrong.parquet` where the wrong problems are listed."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import BadInput
from workbench.exhaustive.tally import CELLS, COUNTED, Counts, cell_labels, count
from workbench.files import json_bytes, make_folder, read_bytes, read_json, write_atomic
from workbench.task import CHARACTERS, DOMAIN_SIZE, Problems

if TYPE_CHECKING:
    import pandas as pd

SUMMARY, COUNTS, WRONG = "summary.json", "counts.csv", "wrong.parquet"
SCHEMA = 1
COLUMNS = ("class", "count", "chain", *COUNTED)
_FIELDS = {"schema": int, "model": str, "weights_sha256": str, "problems": str, "by": str, "near": list, "n": int,
           "wrong": int, "listed": bool}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Exhaustive:
    """The counts of one decoder over every problem of its variant.

    `near` says how many digits, by place from d4 to d0, float64 had to decide; `by` what made the first pass: `kernels`
    or `torch`. `listed` says whether the wrong problems are listed in `folder`.
    """

    folder: Path
    model: str
    weights_sha256: str
    problems: str
    by: str
    near: list[int]
    counts: Counts
    listed: bool

    @property
    def n(self) -> int:
        """Problems counted."""
        return int(self.counts[:, 0].sum())

    @property
    def wrong(self) -> int:
        """Problems with at least one wrong digit."""
        return self.n - int(self.counts[:, -1].sum())

    def wrong_problems(self) -> "pd.DataFrame":
        """Every wrong problem: a, operator (+ or -), b, exact (signed), answer (five characters as written).

        Raises BadInput when there is no list, or it does not fit the counts.
        """
        if not self.listed:
            raise BadInput(f"{self.folder}: its {self.wrong:,} wrong problems are too many to be listed")
        table = _read_wrong(self.folder / WRONG, self.wrong)
        problems = Problems(table.a.to_numpy(), table.b.to_numpy(), (table.operator == "-").to_numpy())
        in_cells = count(problems, np.zeros((len(table), 5), bool))[:, 0]
        if (table.answer.astype(str) == table.exact.abs().astype(str).str.zfill(5)).any():
            raise BadInput(f"{self.folder / WRONG}: a right answer is listed as wrong; restore the file")
        if (in_cells != self.counts[:, 0] - self.counts[:, -1]).any():
            raise BadInput(f"{self.folder / WRONG}: its problems are not those that {COUNTS} counts; restore the file")
        return table


def write(result: Exhaustive, folder: Path, wrong: tuple[np.ndarray, np.ndarray] | None) -> None:
    """Write the files into `folder`; `wrong` holds domain indices in order and the five generated tokens of each."""
    make_folder(folder)
    if wrong is not None:
        write_atomic(folder / WRONG, _wrong_bytes(*wrong))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for cell in np.flatnonzero(result.counts[:, 0]):
        table.writerow([*cell_labels(int(cell)), *result.counts[cell].tolist()])
    write_atomic(folder / COUNTS, text.getvalue().encode())
    summary = {
        "schema": SCHEMA, "model": result.model, "weights_sha256": result.weights_sha256, "problems": result.problems,
        "by": result.by, "near": result.near, "n": result.n, "wrong": result.wrong, "listed": result.listed,
    }  # fmt: skip
    write_atomic(folder / SUMMARY, json_bytes(summary))


def read(folder: Path) -> Exhaustive:
    """A finished count; BadInput says which file does not fit and how."""
    path = folder / SUMMARY
    values: dict[str, Any] = read_json(path, limit=100_000)
    if values.keys() != _FIELDS.keys() or any(type(values[key]) is not kind for key, kind in _FIELDS.items()):
        raise BadInput(f"{path}: not the summary of a count; count again, or restore the file")
    near = values["near"]
    if values["schema"] != SCHEMA or len(near) != 5 or not all(type(x) is int and 0 <= x <= DOMAIN_SIZE for x in near):
        raise BadInput(f"{path}: its schema or its counts of near ties do not fit; count again, or restore the file")
    counts = _read_counts(folder / COUNTS)
    text = {key: values[key] for key in ("model", "weights_sha256", "problems", "by")}
    found = Exhaustive(folder, **text, near=near, counts=counts, listed=values["listed"])
    if (found.n, found.wrong) != (values["n"], values["wrong"]):
        raise BadInput(
            f"{path}: {values['n']:,} problems and {values['wrong']:,} wrong, but {COUNTS} sums to {found.n:,} and "
            f"{found.wrong:,}; the two do not belong together"
        )
    return found


def _read_counts(path: Path) -> Counts:
    labels = {tuple(map(str, cell_labels(cell))): cell for cell in range(CELLS)}
    counts = np.zeros((CELLS, len(COUNTED)), np.int64)
    rows = list(csv.reader(io.StringIO(read_bytes(path, 1_000_000).decode(errors="replace"))))
    if not rows or tuple(rows[0]) != COLUMNS:
        raise BadInput(f"{path}: its columns are not {', '.join(COLUMNS)}; count again, or restore the file")
    for number, row in enumerate(rows[1:], start=2):
        cell = labels.get(tuple(row[:3]))
        values = [int(text) for text in row[3:] if text.isascii() and text.isdigit() and len(text) < 10]
        whole = cell is not None and len(row) == len(COLUMNS) and len(values) == len(COUNTED)
        if not whole or not counts[cell, 0] == 0 < values[0] <= DOMAIN_SIZE or max(values[1:]) > values[0]:
            raise BadInput(f"{path}: line {number} is no count of a class; count again, or restore the file")
        if values[-1] > min(values[1:]):
            raise BadInput(f"{path}: line {number} has more problems right than digits; restore the file")
        counts[cell] = values
    return counts


def _wrong_bytes(index: np.ndarray, tokens: np.ndarray) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    letters = np.array(list(CHARACTERS))[tokens]
    answers = ["".join(row) for row in letters.tolist()]
    table = pa.table({"index": pa.array(index, pa.uint32()), "answer": pa.array(answers, pa.string())})
    sink = io.BytesIO()
    compact = {"compression": "zstd", "compression_level": 19, "use_dictionary": False}
    encodings = {"index": "DELTA_BINARY_PACKED", "answer": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, sink, column_encoding=encodings, **compact)
    return sink.getvalue()


def _read_wrong(path: Path, wrong: int) -> "pd.DataFrame":
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    raw = read_bytes(path, 200_000_000)
    schema = pa.schema([("index", pa.uint32()), ("answer", pa.string())])
    try:
        file = pq.ParquetFile(io.BytesIO(raw))
        if file.schema_arrow != schema or file.metadata.num_rows != wrong:
            raise BadInput(f"{path}: not a list of the {wrong:,} wrong problems; count again, or restore the file")
        table = file.read()
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path}: not readable as parquet ({str(error)[:80]}); restore the file") from None
    index, answers = table["index"].to_numpy(), table["answer"].to_pandas()
    ordered = table["index"].null_count == 0 and bool((np.diff(index.astype(np.int64)) > 0).all())
    if not ordered or (wrong and index.max() >= DOMAIN_SIZE) or not answers.str.fullmatch(r"[0-9+=-]{5}").all():
        raise BadInput(f"{path}: its problems or answers do not fit; count again, or restore the file")
    problems = Problems.from_index(index)
    operators = np.where(problems.subtract, "-", "+")
    columns = {"a": problems.a, "operator": operators, "b": problems.b, "exact": problems.answers, "answer": answers}
    return pd.DataFrame(columns)
