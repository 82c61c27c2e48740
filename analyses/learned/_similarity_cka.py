"""Linear CKA from an unbiased HSIC that is centred within strata, and its jackknife over batches of problems.

Linear CKA of two sites (Kornblith et al. 2019, eq. 3-4) is `HSIC(x, y) / sqrt(HSIC(x, x) HSIC(y, y))`, where HSIC of
linear kernels is the squared norm of the cross-covariance. The plain estimate is biased up, so each batch of problems
gives the unbiased one (Song et al. 2012, eq. 5) and batches are averaged before dividing (Nguyen et al. 2021, eq. 3).

Within strata s of n_s problems and weight w_s = n_s / n, what is estimated is `|sum_s w_s C_s|^2`: two strata's
cross-covariances C_s are independent, so the product of their unbiased estimates is unbiased, and Song's estimate
serves for each square. With one stratum it is Song's. CKA does not change with rotation, shift or scale of a site.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from workbench.statistics import student_quantile

FEWEST = 4  # problems of a stratum from which Song's estimate exists
CONSTANT = 1e-12  # of a site's mean square: less variance than this is rounding


@dataclass(frozen=True, eq=False)
class Strata:
    """The problems of strata large enough, by stratum, and the factor of every term of the estimate."""

    chosen: Int64[Tensor, " kept"]
    code: Int64[Tensor, " kept"]
    sizes: Float[Tensor, " stratum"]
    pair: Float[Tensor, " pair"]  # of k(i, j) l(i, j), pairs i < j
    own: Float[Tensor, " kept"]  # of k(i, i) l(i, i)
    total: Float[Tensor, " stratum"]  # of sum k(i, i) sum l(i, i)


def strata(codes: Int64[np.ndarray, " problem"]) -> Strata:
    """Problems of one code form a stratum; smaller ones than FEWEST are left out."""
    _, code, counts = np.unique(codes, return_inverse=True, return_counts=True)
    kept = np.flatnonzero(counts[code] >= FEWEST)
    names, of = np.unique(code[kept], return_inverse=True)
    n = torch.from_numpy(counts[names]).double()
    at = torch.from_numpy(of)
    square = (n / n.sum()).square()
    inside, outside = (square / (n * (n - 3)))[at], (n / n.sum() / (n - 1))[at]
    i, j = torch.triu_indices(len(at), len(at), 1)
    pair = 2 * torch.where(at[i] == at[j], inside[i], outside[i] * outside[j])
    own = (-2 * square / (n * (n - 2) * (n - 3)))[at]
    return Strata(torch.from_numpy(kept), at, n, pair, own, square / (n * (n - 1) * (n - 2) * (n - 3)))


@dataclass(frozen=True, eq=False)
class Grams:
    """Inner products of every two problems at every site, each stratum centred apart."""

    pair: Float[Tensor, "site pair"]
    own: Float[Tensor, "site kept"]
    total: Float[Tensor, "site stratum"]


def centred(
    x: Float[Tensor, "site problem width"], codes: Int64[np.ndarray, " problem"]
) -> Float[Tensor, "site problem width"]:
    """Less the mean of its stratum."""
    names, of, counts = np.unique(codes, return_inverse=True, return_counts=True)
    code, sizes = torch.from_numpy(of), torch.from_numpy(counts)
    sums = torch.zeros(len(x), len(names), x.shape[2], dtype=x.dtype).index_add_(1, code, x)
    return x - (sums / sizes[:, None])[:, code]


def without(
    x: Float[Tensor, "site problem width"], *codes: Int64[np.ndarray, " problem"]
) -> Float[Tensor, "site problem width"]:
    """What the least-squares sum of an effect of each code leaves."""
    design = np.concatenate([code[:, None] == np.unique(code) for code in codes], axis=1).astype(float)
    u, s, _ = np.linalg.svd(design, full_matrices=False)
    basis = torch.from_numpy(u[:, s > 1e-9 * s[0]])
    return x - basis @ (basis.T @ x)


def grams(x: Float[Tensor, "site problem width"], of: Strata) -> Grams:
    """Of activations that all have the same width; narrower ones may be filled up with zeros."""
    x = centred(x[:, of.chosen].double(), of.code.numpy())
    own = x.square().sum(dim=2)
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    pair = (x @ x.mT).flatten(1)[:, i * x.shape[1] + j]
    return Grams(pair, own, torch.zeros(len(x), len(of.sizes), dtype=x.dtype).index_add_(1, of.code, own))


def hsic(one: Grams, other: Grams, of: Strata) -> Float[Tensor, "site other_site"]:
    """The unbiased estimate for every two sites; it may fall below 0."""
    return (
        (one.pair * of.pair) @ other.pair.T
        + (one.own * of.own) @ other.own.T
        + (one.total * of.total) @ other.total.T
    )  # fmt: skip


def varies(own: Float[np.ndarray, "*at"], square: Float[np.ndarray, "*at"]) -> Bool[np.ndarray, "*at"]:
    """Whether a site varies at all, by its HSIC with itself and its mean square."""
    return own > (CONSTANT * square) ** 2


def cka(
    cross: Float[np.ndarray, "*at site other_site"],
    own: Float[np.ndarray, "*at site"],
    others: Float[np.ndarray, "*at other_site"],
    square: Float[np.ndarray, "*at site"],
    others_square: Float[np.ndarray, "*at other_site"],
) -> Float[np.ndarray, "*at site other_site"]:
    """CKA from HSIC of two sites and of each with itself; NaN where one does not vary, by its mean square."""
    roots = [np.sqrt(np.where(varies(*of), of[0], np.nan)) for of in ((own, square), (others, others_square))]
    return cross / (roots[0][..., :, None] * roots[1][..., None, :])


def left_out(values: Float[np.ndarray, "batch ..."]) -> Float[np.ndarray, "batch_and_all ..."]:
    """The mean over all batches, then over all but each one."""
    total = values.sum(axis=0, keepdims=True)
    return np.concatenate([total / len(values), (total - values) / (len(values) - 1)])


def jackknife(values: Sequence[float] | Float[np.ndarray, " batch_and_all"]) -> tuple[float, float, float]:
    """A number from all batches and its 95% interval from the numbers without each (Tukey 1958), by Student's t."""
    value, rest = float(values[0]), np.asarray(values[1:], dtype=float)
    error = np.sqrt((len(rest) - 1) / len(rest) * np.square(rest - rest.mean()).sum())
    half = student_quantile(len(rest) - 1) * float(error)
    return value, value - half, value + half


def known_mean(values: Float[np.ndarray, "*shape"], axis: int) -> Float[np.ndarray, "*rest"]:
    """Mean of those that are numbers, NaN where none is."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    return np.where(count, np.where(there, values, 0).sum(axis=axis) / np.maximum(count, 1), np.nan)
