"""What commands print: results to stdout, remarks and progress to stderr."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any


def print_json(value: Any) -> None:
    """One JSON value on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def say(text: str) -> None:
    """A line of a result on stdout."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A remark on stderr, where it does not mix with results."""
    sys.stderr.write(text + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on stdout; columns that hold numbers are set to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    cells = [[str(value) for value in row] for row in rows]
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        numeric = bool(cells) and all(row[place][:1] in "0123456789.-+" for row in cells if row[place])
        table.add_column(column, justify="right" if numeric else "left", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    console = Console(file=sys.stdout, highlight=False, markup=False)
    whole = console.measure(table, options=console.options.update(width=1000)).maximum
    console.width = max(console.width, whole)  # a narrow terminal folds the lines; no column is cut
    console.print(table)


def with_interval(value: float, interval: tuple[float, float]) -> str:
    """A proportion and its 95% interval: `0.9943 (0.9926 to 0.9956)`."""
    return f"{value:.4f} ({interval[0]:.4f} to {interval[1]:.4f})"


@contextlib.contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """A bar with rate and ETA on stderr; yields `update(done, remark)`. Nothing is shown outside a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, remark="": None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    rate = TextColumn("{task.fields[rate]}")
    columns = (
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        rate,
        TimeElapsedColumn(),
        "ETA",
        TimeRemainingColumn(),
    )
    with Progress(*columns, TextColumn("{task.fields[remark]}"), console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(description, total=total, rate="", remark="")

        def update(done: int, remark: str = "") -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, rate=f"{speed:,.1f}/s" if speed else "", remark=remark)

        yield update
