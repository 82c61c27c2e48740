"""95% intervals of a mean over models that were asked the same problems."""

from collections.abc import Sequence

import numpy as np

OVER_PROBLEMS = "95% interval over problems, for these models"
COUNTED = "counted, so without an interval"


def mean_bounds(
    low: Sequence[float], high: Sequence[float], weights: Sequence[float | int] | None = None
) -> tuple[float, float] | tuple[None, None]:
    """Mean lower and upper end of the models' own intervals; (None, None) where there is none, or one is no number.

    It holds at least 95% for these models, however their errors go together: the standard deviation of a mean is at
    most the mean of the standard deviations.
    """
    if not len(low):
        return None, None
    ends = [float(np.average(of, weights=weights)) for of in (low, high)]
    return (None, None) if any(np.isnan(ends)) else (ends[0], ends[1])
