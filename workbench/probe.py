"""Linear readouts of many sites at once, fitted on some problems and scored on others.

A readout is ridge regression with an intercept, one penalty a site and target, chosen on the fitting problems alone by
generalised cross-validation (Golub, Heath & Wahba 1979). Everything is solved in float64 as one stack of
eigenproblems, from the moments of the activations.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

PENALTIES = (0.0, *(10.0**power for power in range(-6, 3)))  # in units of a site's mean eigenvalue
ROUNDING = 1e-12  # a direction with less of the activations' square than this is float32 rounding, not a signal
REPLICATES = 1_000  # bootstrap resamples behind an interval
_SITES_AT_ONCE = 16  # sites in float64 at a time, to bound memory

Activations = Float[Tensor, "site problem d_model"]


@dataclass(frozen=True, eq=False)
class Readouts:
    """`target ~ x @ weight + intercept` at every site; `penalty` is the chosen one, in units of the mean eigenvalue."""

    weight: Float[Tensor, "site d_model target"]
    intercept: Float[Tensor, "site target"]
    penalty: Float[Tensor, "site target"]

    def read(self, x: Activations) -> Float[Tensor, "site problem target"]:
        """What the readouts say of each problem, in float64."""
        parts = zip(x.split(_SITES_AT_ONCE), self.weight.split(_SITES_AT_ONCE), strict=True)
        return torch.cat([part.double() @ weight for part, weight in parts]) + self.intercept[:, None]


@dataclass(frozen=True, eq=False)
class _Moments:
    """Sums over problems of centred activations x and targets y."""

    mean_x: Float[Tensor, "site d_model"]
    square: Float[Tensor, " site"]  # of the activations before centring, all dimensions together
    xx: Float[Tensor, "site d_model d_model"]
    xy: Float[Tensor, "site d_model target"]


def _moments(x: Activations, y: Float[Tensor, "problem target"]) -> _Moments:
    parts = []
    for block in x.split(_SITES_AT_ONCE):
        block = block.double()
        mean, square = block.mean(dim=1), block.square().sum(dim=(1, 2))
        block = block - mean[:, None]
        parts.append((mean, square, block.mT @ block, block.mT @ y))
    return _Moments(*(torch.cat(kind) for kind in zip(*parts, strict=True)))


def fit(x: Activations, y: Float[Tensor, "problem target"], penalties: Sequence[float] = PENALTIES) -> Readouts:
    """Readouts of each target at each site.

    Of the penalties, each site and target takes the one with the lowest GCV score `(RSS / n) / (1 - df / n)^2`, where
    df counts the intercept. Directions in which a site's activations hold less than 1e-12 of their square are left out,
    so a site that is the same for every problem reads the mean. Deterministic. Raises ValueError below two problems.
    """
    n = x.shape[1]
    if n < 2:
        raise ValueError(f"{n} problems are too few for a readout")
    y = y.double()
    mean_y = y.mean(dim=0)
    moments = _moments(x, y - mean_y)
    values, vectors = torch.linalg.eigh(moments.xx)
    kept = values > ROUNDING * moments.square[:, None]
    values = torch.where(kept, values, 1.0)[..., None]
    projected = torch.where(kept[..., None], vectors.mT @ moments.xy, 0.0)  # [site, direction, target]

    scale = moments.xx.diagonal(dim1=1, dim2=2).mean(dim=1)[:, None, None]
    total = (y - mean_y).square().sum(dim=0)
    scores, coefficients = [], []
    for penalty in penalties:
        coefficient = projected / (values + penalty * scale)
        rss = total + (values * coefficient.square() - 2 * projected * coefficient).sum(dim=1)
        df = 1 + torch.where(kept[..., None], values / (values + penalty * scale), 0.0).sum(dim=1)
        scores.append(rss.clamp(min=0) / n / (1 - df / n).clamp(min=1 / n) ** 2)
        coefficients.append(coefficient)
    best = torch.stack(scores).argmin(dim=0)  # [site, target]
    chosen = torch.stack(coefficients).gather(0, best[None, :, None].expand(1, *projected.shape))[0]
    weight = vectors @ chosen
    intercept = mean_y - (moments.mean_x[:, None] @ weight)[:, 0]
    return Readouts(weight, intercept, torch.tensor(penalties, dtype=torch.float64)[best])


def resamples(n: int, seed: int, replicates: int = REPLICATES) -> Float[Tensor, "replicate problem"]:
    """How often each of n problems occurs in each bootstrap resample of n (Efron 1979)."""
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=replicates)
    return torch.from_numpy(counts).double()


@dataclass(frozen=True, eq=False)
class Explained:
    """Variance explained with a 95% bootstrap percentile interval over problems."""

    r2: Float[Tensor, "*readout"]
    low: Float[Tensor, "*readout"]
    high: Float[Tensor, "*readout"]


def variance_explained(
    said: Float[Tensor, "*readout problem"],
    exact: Float[Tensor, " problem"],
    mean: float,
    counts: Float[Tensor, "replicate problem"],
) -> Explained:
    """`R^2 = 1 - sum (said - exact)^2 / sum (exact - mean)^2` of each readout over the problems given.

    With `mean` taken from the fitting problems, a readout that knows nothing but that mean has exactly 0, and a worse
    one is negative. `counts` are the problems' bootstrap resamples. Raises ValueError when `exact` never leaves `mean`.
    """
    error, spread = (said - exact).square(), (exact - mean).square()
    if not spread.sum() > 0:
        raise ValueError("the exact values do not vary")
    resampled = 1 - (error @ counts.T) / (spread @ counts.T)
    low, high = resampled.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64), dim=-1)
    return Explained(1 - error.sum(dim=-1) / spread.sum(), low, high)


def shuffled_within(groups: Bool[np.ndarray, " problem"], seed: int) -> np.ndarray:
    """An order of the problems that moves each to a place of its own group, drawn by the seed."""
    rng = np.random.default_rng(seed)
    order = np.arange(len(groups))
    for group in (False, True):
        members = order[groups == group]
        order[groups == group] = rng.permutation(members)
    return order
