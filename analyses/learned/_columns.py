"""A column of a table as plain numbers: listed, averaged, said."""

import math
from collections.abc import Sequence

import pandas as pd


def numbers(table: pd.DataFrame, column: str) -> list[float]:
    """The column as floats, NaN where there is no number."""
    return [float(value) for value in table[column].to_numpy()]


def mean(values: Sequence[float | int]) -> float:
    """Mean of those that are numbers; NaN if none is."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def seeds(values: Sequence[float | int], form: str = ".3f") -> str:
    """One number a seed, in words: `seeds 0.91 0.88 0.95`, or the number of a single model."""
    said = " ".join(format(value, form) for value in values)
    return said if len(values) == 1 else f"seeds {said}"
