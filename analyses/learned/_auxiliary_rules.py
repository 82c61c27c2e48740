"""When a head counts as helping, and when its exact unit does: rules written before any head was trained on the grid.

Every comparison is between two runs of one decoder (same MLP kind, layers and seed, so the same initial weights and the
same problems in the same order) that differ in the head. The number compared is the logarithm of the ratio of their
cross-entropies on the test problems, below 0 if the first learns better. A verdict takes the mean over the twelve and
its 95% t-interval; of one shape there are three seeds, whose numbers are shown and get no verdict of their own.

- A head helps (harms) if the interval lies below (above) zero.
- It is the exact unit that helps if the frozen head helps, and does better than both controls: the linear head on the
  same target, and random frozen weights of equal norm. If it helps and does not beat the linear head, what helps is
  the target.
- Behind free readouts an additive unit computes a linear function of the stream. For such a head a difference from the
  linear one cannot come from what the unit can express, only from how it is trained.
"""

from collections.abc import Sequence
from typing import Literal

from workbench.statistics import mean_interval

Effect = Literal["helps", "harms", "open"]
Source = Literal["the exact unit", "the target", "nothing shown"]

FOUND = 0.95  # nearness of a trained weight to -1, 0 or 1 is 1 - |w - that|; from here on it counts as there
STEPS_TO = 0.99  # sequence accuracy whose first validation counts as reached


def effect(log_ratios: Sequence[float]) -> Effect:
    """Of one head against another, or none, over decoders: whether the mean's 95% t-interval excludes zero."""
    low, high = mean_interval(log_ratios)
    return "helps" if high < 0 else "harms" if low > 0 else "open"


def source(against_none: Sequence[float], against_linear: Sequence[float], against_random: Sequence[float]) -> Source:
    """What the frozen head's help comes from."""
    if effect(against_none) != "helps":
        return "nothing shown"
    both = effect(against_linear) == effect(against_random) == "helps"
    return "the exact unit" if both else "the target"


def selected(weights: Sequence[float]) -> tuple[int, ...] | None:
    """The selection a trained unit has landed on, None when a weight is not near -1, 0 or 1."""
    nearest = [round(w) for w in weights]
    return tuple(nearest) if all(abs(w - n) <= 1 - FOUND for w, n in zip(weights, nearest, strict=True)) else None
