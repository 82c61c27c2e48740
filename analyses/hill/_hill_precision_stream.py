"""Statistics of a stream of squared errors: exact mean, maximum and high quantile without keeping them all."""

import math

import numpy as np
from jaxtyping import Float

from workbench.statistics import Z95, mean_interval, wilson

QUANTILE = 0.9999


class Largest:
    """The `count` largest of all values seen, exactly, in memory for a few times as many."""

    def __init__(self, count: int):
        self.count = count
        self._below = -math.inf  # `count` values of at least this are held, so nothing up to it can matter
        self._held = np.empty(0)
        self._waiting: list[np.ndarray] = []

    def add(self, values: Float[np.ndarray, " sample"]) -> None:
        """Take in finite values."""
        over = values > self._below
        if over.any():
            self._waiting.append(values[over])
            if sum(map(len, self._waiting)) > 3 * self.count:
                self._settle()

    def _settle(self) -> None:
        together = np.concatenate([self._held, *self._waiting])
        self._waiting = []
        if len(together) > self.count:
            together = np.partition(together, len(together) - self.count)[-self.count :]
        self._held = together
        if len(together) == self.count:
            self._below = float(together.min())

    def descending(self) -> Float[np.ndarray, " rank"]:
        """The largest values so far, the largest first."""
        self._settle()
        return np.sort(self._held)[::-1]


def held_for(samples: int) -> int:
    """How many of the largest values the quantile of `samples`, its interval and the share of the largest ten need."""
    above = samples * (1 - QUANTILE)
    return math.ceil(above + 3 * Z95 * math.sqrt(above)) + 10


class Tally:
    """Squared errors of one method against the exact result, and how often its bits are the native operator's."""

    def __init__(self, samples: int):
        self.n = self.equal = self.not_finite = 0
        self._largest = Largest(held_for(samples))
        self._sums: list[float] = []
        self._counts: list[int] = []

    def add(self, squares: Float[np.ndarray, " sample"], equal: int) -> None:
        """Take in one piece of the stream, of which `equal` answers have the native bits.

        What is not finite is counted and left out, as in the published protocol.
        """
        self.equal += equal
        total = float(squares.sum())
        if not math.isfinite(total):
            finite = np.isfinite(squares)
            self.not_finite += int(len(squares) - finite.sum())
            squares = squares[finite]
            total = float(squares.sum())
        self.n += len(squares)
        self._counts.append(len(squares))
        self._sums.append(total)
        self._largest.add(squares)

    @property
    def mean(self) -> float:
        """Mean squared error; NaN of nothing."""
        return math.fsum(self._sums) / self.n if self.n else math.nan

    def mean_interval(self, baseline: "Tally | None" = None) -> tuple[float, float]:
        """95% interval of the mean, or of its excess over `baseline` on the same samples, from the means of pieces.

        Means nothing where the squared error has no finite variance, as in division by numbers that come near 0.
        """
        theirs = baseline._sums if baseline else [0.0] * len(self._sums)
        pieces = zip(self._sums, theirs, self._counts, strict=True)
        means = [(ours - other) / count for ours, other, count in pieces if count]
        return mean_interval(means) if len(means) > 1 else (math.nan, math.nan)

    @property
    def maximum(self) -> float:
        """The largest squared error; NaN of nothing."""
        return float(self._largest.descending()[0]) if self.n else math.nan

    def quantile(self) -> tuple[float, float, float]:
        """The 99.99% quantile, interpolated as `numpy.quantile` does, and the order statistics that bracket it at 95%.

        The number of samples above the true quantile is binomial, so its 2.5% and 97.5% points (normal approximation)
        are the ranks of a distribution-free interval (David & Nagaraja, "Order Statistics", section 7.1).
        """
        if not self.n:
            return math.nan, math.nan, math.nan
        top = self._largest.descending()
        place = QUANTILE * (self.n - 1)
        below = math.floor(place)
        rank = self.n - 1 - below  # of the value below, counted from the largest
        lower, upper = float(top[rank]), float(top[max(rank - 1, 0)])
        above = self.n * (1 - QUANTILE)
        spread = Z95 * math.sqrt(above * QUANTILE)
        low = float(top[min(math.ceil(above + spread), len(top) - 1)])
        high = float(top[max(math.floor(above - spread) - 1, 0)])
        return lower + (upper - lower) * (place - below), low, high

    def share_of_largest(self, count: int) -> float:
        """The share of the sum that the `count` largest squared errors carry; 0 when there is no error at all."""
        total = math.fsum(self._sums)
        return math.fsum(self._largest.descending()[:count]) / total if total else 0.0

    def equal_interval(self) -> tuple[float, float]:
        """95% interval of the share of samples with the native operator's bits."""
        return wilson(self.equal, self.n + self.not_finite)
