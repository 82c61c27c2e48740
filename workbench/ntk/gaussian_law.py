"""The Gaussian law of trained networks in the limit of width: their joint outputs on any inputs.

Trained on the unit vectors X of R^N, a network's outputs are Gaussian over its initial weights. With A(x) =
kernel(x, X) kernel(X, X)^-1 of its form and K the NNGP kernel, their mean is A Y and, bit by bit,

    cov(x, x') = K(x, x') + A(x) K(X, X) A(x')^T - A(x) K(X, x') - K(x, X) A(x')^T      (Lee et al. 2019, eq. 16)

for "ntk"; for "nngp", A is K's own and this is the posterior K(x, x') - A(x) K(X, x'). Bits of one network are
independent and share the covariance. Averages over networks follow; float64 throughout, draws in float32.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float32, Float64, Int, Shaped
from torch import Tensor

from workbench.ntk import kernel
from workbench.ntk.counting import Draw, Rounding

EXACT = 1e-12  # a variance below this over the number of templates is that of one matched template: 0
FARTHEST = 1 << 40  # networks; more is never


@dataclass(frozen=True)
class Law:
    """Mean output of each bit, and the covariance over inputs that every bit has."""

    mean: Float64[Tensor, "input bit"]
    covariance: Float64[Tensor, "input input"]

    def draws(self, generator: torch.Generator) -> Draw:
        """Outputs of so many networks at a time, from `generator`."""
        values, vectors = torch.linalg.eigh(self.covariance)
        factor = (vectors * values.clamp(min=0).sqrt()).float()
        mean = self.mean.float()

        def draw(nets: int) -> Float32[Tensor, "net input bit"]:
            noise = torch.randn(len(factor), nets * mean.shape[1], generator=generator)
            return (factor @ noise).view(len(factor), nets, -1).transpose(0, 1) + mean

        return draw


def law(x: Shaped[Tensor, "input template"], labels: Shaped[Tensor, "template bit"], form: kernel.Form = "ntk") -> Law:
    """The law on these inputs, trained on (unit vector i, row i of `labels`). A solve of N x N: the kernel as it is."""
    x, unit = x.double(), torch.eye(x.shape[1], dtype=torch.float64)
    by = torch.linalg.solve(kernel.kernel(unit, unit, form), kernel.kernel(unit, x, form)).T
    cross = by @ kernel.kernel(unit, x, "nngp")
    covariance = kernel.kernel(x, x, "nngp") + by @ kernel.kernel(unit, unit, "nngp") @ by.T - cross - cross.T
    return Law(by @ labels.double(), covariance)


def accuracy(found: Law, rounding: Rounding, tests: Int[Tensor, " input"], nets: int) -> float:
    """Expected share of tests whose every read bit is right after averaging `nets` networks: normal tails."""
    spread = found.covariance.diagonal().clamp(min=0)[:, None].sqrt()
    margin = torch.where(rounding.wanted, 1.0, -1.0) * (found.mean - rounding.threshold)
    sure = spread < (EXACT / found.covariance.shape[0]) ** 0.5
    tail = torch.special.log_ndtr(margin * nets**0.5 / torch.where(sure, 1.0, spread))
    exact = torch.where((margin > 0) | ~rounding.wanted & (margin > -1e-10), 0.0, -torch.inf)
    bits = torch.where(rounding.read, torch.where(sure, exact, tail), 0.0)
    return float(bits.sum(dim=1).exp() @ (tests / tests.sum()).double())


def expected(found: Law, rounding: Rounding, tests: Int[Tensor, " input"], error: float) -> int | None:
    """The smallest ensemble whose expected accuracy is at least 1 - error; None when no size is enough.

    The count of a trial is the first size at which that trial's accuracy is: usually a little smaller.
    """
    if accuracy(found, rounding, tests, FARTHEST) < 1 - error:
        return None
    low, high = 0, FARTHEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if accuracy(found, rounding, tests, middle) >= 1 - error else (middle, high)
    return high
