"""Rows of a table as plain dictionaries: choose, group, and count with a 95% interval."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.statistics import wilson

Row = dict[str, Any]


@dataclass(frozen=True)
class Share:
    """`right` of `n` independent trials, with the 95% Wilson interval of the share; n is at least 1."""

    right: int
    n: int

    @property
    def share(self) -> float:
        """The proportion."""
        return self.right / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """Low and high end of the 95% interval."""
        return wilson(self.right, self.n)

    @property
    def low(self) -> float:
        """Low end of the 95% interval."""
        return self.interval[0]

    @property
    def high(self) -> float:
        """High end of the 95% interval."""
        return self.interval[1]

    def __str__(self) -> str:
        return f"{self.right} of {self.n}"

    def columns(self, name: str) -> Row:
        """As columns of a table: `name` (how many), `name_share`, `name_low`, `name_high`."""
        return {name: self.right, f"{name}_share": self.share, f"{name}_low": self.low, f"{name}_high": self.high}


def where(rows: Iterable[Row], **equal: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in equal.items())]


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by their values under these names, in the order in which these first occur."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def share(rows: Sequence[Row], holds: str | Callable[[Row], Any]) -> Share:
    """How many of the rows have a true value under this name, or fulfil this condition."""
    fulfils = (lambda row: row[holds]) if isinstance(holds, str) else holds
    return Share(sum(bool(fulfils(row)) for row in rows), len(rows))


def mean(rows: Sequence[Row], name: str) -> float:
    """The mean of a column."""
    return statistics.fmean(row[name] for row in rows)


def median(rows: Sequence[Row], name: str) -> float:
    """The median of a column."""
    return statistics.median(row[name] for row in rows)
