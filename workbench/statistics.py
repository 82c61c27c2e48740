"""Intervals printed beside every measured proportion."""

import math

Z95 = 1.959963984540054  # 97.5% quantile of the standard normal


def wilson(successes: int, n: int) -> tuple[float, float]:
    """95% interval of a proportion from `successes` of `n` independent trials (Wilson 1927, eq. for the score interval).

    Raises ValueError unless 0 <= successes <= n and n >= 1.
    """
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} successes of {n}")
    p, z2 = successes / n, Z95 * Z95
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)
