"""The kernels of the infinitely wide two-layer ReLU network, and its predictor on orthonormal templates in closed form.

The network is `f(x) = W_2 relu(W_1 x / sqrt(N)) / sqrt(width)`, N(0, 1) weights, no biases; N inputs, one a template,
whose training inputs are the unit vectors of R^N (arXiv 2502.16763, and the authors' code: `stax.serial(Dense, Relu,
Dense)` in NTK parameterization). Two predictors share one algebra:

- "ntk": both layers trained by gradient flow to the end; kernel `NTK = NNGP + the first layer's part`;
- "nngp": only the last layer moves (what nets in standard parameterization do as the width grows).

A state that matches m templates is `x = sum of their unit vectors / sqrt(m)`. Both kernels are then one constant b on
unmatched templates and p_m b on matched ones, so the mean is `g_m S - h_m T` for an output bit that S of the matched
templates and T of all templates write. All numbers are float64.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

Form = Literal["ntk", "nngp"]

_TIMES = {"ntk": 2, "nngp": 1}  # (pi - t) cos t counts once a layer that is trained


def angular(t: Float[Tensor, "*any"], form: Form = "ntk") -> Float[Tensor, "*any"]:
    """`sin t + k (pi - t) cos t`, k = 1 (nngp) or 2 (ntk): the arc-cosine kernel's dependence on the angle t."""
    return t.sin() + _TIMES[form] * (math.pi - t) * t.cos()


def kernel(u: Float[Tensor, "a input"], v: Float[Tensor, "b input"], form: Form = "ntk") -> Float[Tensor, "a b"]:
    """`|u| |v| / (2 pi N) * angular(angle)` for every pair of rows; 0 where either is 0. Float64."""
    u, v = u.double(), v.double()
    lengths = u.norm(dim=1)[:, None] * v.norm(dim=1)[None, :]
    cosine = torch.where(lengths > 0, u @ v.T / lengths.clamp(min=torch.finfo(lengths.dtype).tiny), 0.0)
    return lengths / (2 * math.pi * u.shape[1]) * angular(cosine.clamp(-1, 1).arccos(), form)


def ridge(form: Form = "ntk") -> float:
    """`(a - b) / b` of the training kernel, a on its diagonal and b off it: 2 pi - 1 (ntk) or pi - 1 (nngp)."""
    return _TIMES[form] * math.pi - 1


def _overlap(m: Shaped[Tensor, "*any"], form: Form) -> Float[Tensor, "*any"]:
    """p_m: the kernel of a state with a template that it matches, over that with one that it does not."""
    return angular(m.double().clamp(min=1).rsqrt().arccos(), form)


def gain(m: Shaped[Tensor, "*any"], form: Form = "ntk") -> Float[Tensor, "*any"]:
    """g_m: what one matched template adds to a bit that it writes. g_0 = 0 (no match, mean 0), g_1 = 1."""
    found = torch.where(m == 1, 1.0, (_overlap(m, form) - 1) / ridge(form))
    return torch.where(m == 0, 0.0, found)


def leak(m: Shaped[Tensor, "*any"], templates: int, form: Form = "ntk") -> Float[Tensor, "*any"]:
    """h_m: what every template that writes a bit, matched or not, takes from it. h_0 = h_1 = 0, positive from m = 2."""
    return torch.where(m == 0, 0.0, (m * gain(m, form) - 1) / (templates + ridge(form)))


def mean(
    m: Shaped[Tensor, "*batch"],
    matched: Shaped[Tensor, "*batch bit"],
    written: Shaped[Tensor, " bit"],
    templates: int,
    form: Form = "ntk",
) -> Float[Tensor, "*batch bit"]:
    """`g_m S - h_m T`: mean output of each bit; `matched` S and `written` T count templates that write it."""
    return gain(m, form)[..., None] * matched - leak(m, templates, form)[..., None] * written


def variance(m: Shaped[Tensor, "*any"], templates: int, form: Form = "ntk") -> Float[Tensor, "*any"]:
    """Variance of one trained network's output over its initial weights, the same for every bit.

    "nngp" is the posterior `k(x, x) - k(x, X) k(X, X)^-1 k(X, x)`; "ntk" the covariance of networks trained to the end
    (Lee et al. 2019, eq. 16), both in closed form. 0 at m = 1; at m = 0 the input, and so the output, is 0.
    """
    n, count = m.double(), float(templates)
    g, h = gain(m, form), leak(m, templates, form)
    if form == "nngp":
        found = math.pi - n * (g - h) * _overlap(m, form) + (count - n) * h
    else:
        q = _overlap(m, "nngp")
        a = n * (g - h).square() + (count - n) * h.square()
        b, c = n * g - count * h, n * (g - h) * q - (count - n) * h
        found = math.pi + (math.pi - 1) * a + b.square() - 2 * c
    return torch.where(m <= 1, 0.0, found / (2 * math.pi * count))


def positive(
    m: Shaped[Tensor, "*#any"],
    matched: Shaped[Tensor, "*#any"],
    written: Shaped[Tensor, "*#any"],
    templates: int,
    form: Form = "ntk",
) -> Shaped[Tensor, "*any"]:
    """The exact sign rule: is the mean of a bit positive, as `T (m - 1/g_m) < S (N + ridge)` with S >= 1.

    Algebra, not the predictor: the machines take the sign of `mean`, the tests compare the two.
    """
    g = gain(m, form)
    return (matched >= 1) & (written * (m - 1 / g.clamp(min=1e-300)) < matched * (templates + ridge(form)))


def padding(written: int, most_matched: int, templates: int, form: Form = "ntk") -> int:
    """How many templates that never match and write nothing make every bit's sign right.

    `written` is the largest T of any bit, `most_matched` a bound on m over all states that occur. Padding only raises N
    in the sign rule. 0 where it already holds for S = 1.
    """
    m = torch.tensor(float(max(most_matched, 1)))
    needed = written * float(m - 1 / gain(m, form)) - ridge(form)
    return max(0, math.floor(needed) + 1 - templates)


def midpoint(
    m: Shaped[Tensor, "*batch"], written: Shaped[Tensor, " bit"], templates: int, form: Form = "ntk"
) -> Float[Tensor, "*batch bit"]:
    """`g_m / 2 - h_m T`: half way between the means of S = 0 and S = 1; an ensemble's other threshold, beside zero."""
    return gain(m, form)[..., None] / 2 - leak(m, templates, form)[..., None] * written
