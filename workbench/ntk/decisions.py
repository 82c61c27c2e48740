"""One decision of an ensemble, a bit's average against a threshold: how likely it is wrong, in closed form.

A bit with S matched writers of T in a state with m matches has mean `g_m S - h_m T` and a variance of m alone
(`workbench.ntk.kernel`). Averaged over M networks it lands on the wrong side with the normal tail of
`sqrt(M) / rho`, where rho is one network's standard deviation over the mean's distance from the threshold.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from workbench.ntk import kernel

Threshold = Literal["zero", "midpoint"]

MOST = 1 << 40  # networks; more is never


def ratio(
    m: Shaped[Tensor, "*any"],
    matched: Shaped[Tensor, "*any"],
    written: Shaped[Tensor, "*any"],
    templates: int,
    threshold: Threshold = "zero",
    form: kernel.Form = "ntk",
) -> Float[Tensor, "*any"]:
    """rho^2, the variance of one network over the squared distance; `matched` is S, `written` T, wanted is S >= 1.

    0 where the network has no variance (m <= 1); infinite where the mean is not on the wanted side, as at threshold
    zero for a bit that no template writes: its mean is 0, and no ensemble decides it.
    """
    gain = kernel.gain(m, form)
    at = gain / 2 if threshold == "midpoint" else kernel.leak(m, templates, form) * written
    margin = gain * matched - at  # the midpoint g/2 - h T leaves S g - g/2
    distance = torch.where(matched >= 1, margin, -margin) + 0.0
    variance = kernel.variance(m, templates, form).expand(distance.shape)
    found = torch.where(distance > 0, variance / distance.clamp(min=1e-300).square(), torch.inf)
    return torch.where(variance == 0, 0.0, found)


def wrong(ratios: Float[Tensor, "*any"], networks: int) -> Float[Tensor, "*any"]:
    """Probability that the average of so many networks is on the wrong side; a half where rho^2 is infinite."""
    return torch.special.ndtr(-(networks / ratios).sqrt())


def bound(ratios: Float[Tensor, " kind"], decisions: float, failure: float) -> float:
    """`2 rho^2 ln(Q / d)` for the largest rho^2: networks that make all Q decisions right but for probability d.

    From the tail `exp(-M / (2 rho^2))`, the same for every decision; `networks` is the sharper sum.
    """
    return 2 * float(ratios.max()) * math.log(decisions / failure)


def networks(ratios: Float[Tensor, " kind"], logs: Float[Tensor, " kind"], failure: float) -> int | None:
    """The smallest ensemble with a summed probability of wrong decisions of at most `failure`; None if none has.

    There are `exp(logs)` decisions of each kind; logarithms, since there may be more than a float can count.
    """

    def fails(count: int) -> bool:
        tails = torch.special.log_ndtr(-(count / ratios).sqrt())
        return float((logs + tails).logsumexp(dim=0)) > math.log(failure)

    if fails(MOST):
        return None
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high
