"""The pace at which Adam walks into saturation, and when there is none: arithmetic on its two averages.

On a plateau a raw weight's gradient shrinks by a fixed factor a unit of the weight: it goes as exp(-k x). At a steady
pace of s a step the gradient therefore shrinks by `r = exp(-k s)` a step. Adam's averages of such a gradient are
geometric series; their quotient, times the rate, is the step they lead to, and a pace is steady when the two agree.
The averages forget by beta1 and by sqrt(beta2) a step, so none can shrink faster: r must exceed both. Where no r does
and agrees, the gradient outruns the first average; then the steps grow by beta1 / sqrt(beta2) each, a throw.
"""

import math

import numpy as np
from jaxtyping import Float

# With W = tanh(W_hat) sigmoid(M_hat), the last thing missing from |W| = 1 is exp(-M_hat), the slower of the two; the
# loss's slope is in proportion to what is missing, and so is the sigmoid's derivative: together exp(-2 M_hat).
DECAY = 2.0
POINTS = 4000


def quotient(r: Float[np.ndarray, " r"] | float, beta1: float, beta2: float) -> Float[np.ndarray, " r"] | float:
    """Adam's step over its rate when the gradient has long shrunk by r a step, max(beta1, sqrt(beta2)) < r < 1.

    `(1 - b1) / (1 - b1 / r) / sqrt((1 - b2) / (1 - b2 / r^2))`: the two geometric series, without epsilon.
    """
    return (1 - beta1) / (1 - beta1 / r) * np.sqrt((1 - beta2 / r**2) / (1 - beta2))


def _between(beta1: float, beta2: float) -> Float[np.ndarray, " r"]:
    """Values of r from the slowest average's own factor to 1, both left out, crowded towards both."""
    low = max(beta1, math.sqrt(beta2))
    near = np.geomspace(1e-11, 0.5, POINTS // 2)
    return low + (1 - low) * np.concatenate([near, 1 - near[-2::-1]])


def critical_rate(beta1: float, beta2: float, decay: float = DECAY) -> float:
    """The learning rate above which no steady pace exists; infinite when beta2 > beta1^2, where one always does."""
    if beta2 > beta1**2:
        return math.inf
    r = _between(beta1, beta2)
    return float(np.max(-np.log(r) / quotient(r, beta1, beta2))) / decay


def steady_pace(rate: float, beta1: float, beta2: float, decay: float = DECAY) -> float:
    """Units of the raw weight a step of the steady pace, the slowest where there are several; NaN where there is none.

    As beta2 > beta1^2 and the rate grows, it tends to `-ln(beta2) / (2 decay)`: the second average's memory alone.
    """
    r = _between(beta1, beta2)[::-1]  # from the slow end
    excess = -np.log(r) - decay * rate * quotient(r, beta1, beta2)
    reached = np.flatnonzero(excess >= 0)
    return float(-np.log(r[reached[0]]) / decay) if len(reached) else math.nan


def growth(beta1: float, beta2: float) -> float:
    """The factor from one step of a throw to the next, `beta1 / sqrt(beta2)`; a throw needs more than 1.

    The same quotient must stay below 1 in the convergence proof of Adam (Reddi, Kale & Kumar 2018, theorem 4).
    """
    return beta1 / math.sqrt(beta2)
