"""When a causal test places something at a site: one rule for `patching` and `interchange`, written before their runs.

Both count how often an intervention at a site makes the answer's digit the one that is wanted, and how often the same
intervention without the thing in question (the control) does.
"""

from collections.abc import Sequence
from typing import Literal

from workbench.statistics import wilson

Verdict = Literal["yes", "in part", "no", "too few"]

MOST = 0.90  # share from which a site counts as holding a thing; an operator counts as solved from there too
CHANCE = 0.10  # and up to which it counts as not holding it: a digit drawn blindly is the wanted one in a tenth
CONTROL = 0.50  # a control at or above this share explains the effect as well as the thing does
FEWEST = 20  # problems below which nothing is said: a share of 1.0 then has a lower bound below 0.84


def lowest_to_highest(shares: Sequence[float]) -> str:
    """The shares of several models in words: `0.91..0.97`, or the one of a single model."""
    low, high = min(shares), max(shares)
    return f"{low:.2f}" if len(shares) == 1 else f"{low:.2f}..{high:.2f}"


def verdict(hits: int, n: int, control_hits: int = 0, control_n: int = 0) -> Verdict:
    """Whether the thing is at the site, from 95% Wilson intervals of the two shares.

    `yes`: the interval lies at MOST or above and the control's below CONTROL. `no`: the interval lies at CHANCE or
    below, or is nowhere above the control's. `in part`: what lies between. `too few`: fewer than FEWEST problems.
    """
    if n < FEWEST:
        return "too few"
    low, high = wilson(hits, n)
    control_low, control_high = wilson(control_hits, control_n) if control_n else (0.0, 0.0)
    if high <= CHANCE or high <= control_low or (control_n and hits * control_n <= control_hits * n):
        return "no"
    return "yes" if low >= MOST and control_high < CONTROL else "in part"
