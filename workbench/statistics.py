"""Intervals printed beside every measured proportion and mean."""

import math
import statistics
from collections.abc import Sequence

Z95 = 1.959963984540054  # 97.5% quantile of the standard normal


def wilson(successes: int, n: int) -> tuple[float, float]:
    """95% score interval of a proportion from `successes` of `n` independent trials (Wilson 1927).

    Raises ValueError unless 0 <= successes <= n and n >= 1.
    """
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} successes of {n}")
    p, z2 = successes / n, Z95 * Z95
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return (centre - half if successes else 0.0), (centre + half if successes < n else 1.0)


def _student_inside(angle: float, freedom: int) -> float:
    """P(|T| <= t) of Student's t for t = sqrt(freedom) tan(angle) (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= (k - 1) / k * math.cos(angle) ** 2
        total += term
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total


def student_quantile(freedom: int) -> float:
    """97.5% quantile of Student's t with `freedom` >= 1 degrees of freedom, by bisection: 12.706, 4.303, 3.182, ..."""
    low, high = 0.0, math.pi / 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_inside(middle, freedom) < 0.95 else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95% interval of the mean of independent values (Student 1908); raises ValueError for fewer than two."""
    if len(values) < 2:
        raise ValueError(f"{len(values)} values give no interval of their mean")
    mean, spread = statistics.fmean(values), statistics.stdev(values)
    half = student_quantile(len(values) - 1) * spread / math.sqrt(len(values))
    return mean - half, mean + half
