"""The expected loss of multiplication over the weights (w_1, w_2), in closed form, when inputs cross zero.

Inputs are independent, symmetric about 0, of scale c: x = c u. The unit says `|x_1|^w_1 |x_2|^w_2 cos(pi s)`, with s
the sum of the weights over negative inputs (report section 3.2). A sign is independent of its magnitude, so with
`m(p) = E|x|^p` every expectation is a product of moments with one average over the four pairs of signs:

    L(w) = m(2 w_1) m(2 w_2) C(w) - 2 m(w_1 + 1) m(w_2 + 1) D(w) + m(2)^2
    C = (1 + cos^2 pi w_1 + cos^2 pi w_2 + cos^2 pi (w_1 + w_2)) / 4
    D = (1 - cos pi w_1 - cos pi w_2 + cos pi (w_1 + w_2)) / 4

The first moment is infinite for a weight of -1/2 or less: there the expected loss is infinite, though that of any
finite set of samples is not. Division has no such surface: its expected loss is infinite everywhere but at [1, -1].
"""

import functools
import heapq
import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

CUT = 3.0  # standard deviations at which the normal is cut (report section 4.3.1)
TERMS = 60  # of its power series in u^2 / 2 <= 4.5: the last is below 1e-40
EDGE = -0.5  # a weight at which the second moment of its power becomes infinite
Family = Literal["uniform", "normal"]
Shape = Literal["pair", "hill", "slope"]
FAMILIES: tuple[Family, ...] = get_args(Family)
SHAPES: dict[Shape, str] = {
    "pair": "two spurious minima, weights of opposite sign",
    "hill": "a hill on the diagonal between the zero start and [1, 1]",
    "slope": "at the zero start the loss falls towards negative weights",
}


@dataclass(frozen=True)
class Inputs:
    """Both inputs: uniform on [-scale, scale], or normal of standard deviation `scale` cut at three of them."""

    family: Family
    scale: float

    def log_moment(self, p: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """`ln E|x|^p` for p > -1: `c^p / (p + 1)`, or the cut normal's by the power series of its density."""
        scaled = p * math.log(self.scale)
        if self.family == "uniform":
            return scaled - torch.log1p(p)
        k = torch.arange(TERMS, dtype=p.dtype)
        terms = torch.exp((2 * k + 1) * math.log(CUT) - k * math.log(2) - torch.lgamma(k + 1)) * (-1) ** k
        series = (terms / (p[..., None] + 2 * k + 1)).sum(dim=-1)
        whole = math.log(math.sqrt(math.pi / 2) * math.erf(CUT / math.sqrt(2)))
        return scaled + p * math.log(CUT) + series.log() - whole


def loss(w1: Float[Tensor, "*shape"], w2: Float[Tensor, "*shape"], inputs: Inputs) -> Float[Tensor, "*shape"]:
    """The expected squared error of multiplication, infinite where a weight is -1/2 or less."""
    cos1, cos2, both = torch.cos(math.pi * w1), torch.cos(math.pi * w2), torch.cos(math.pi * (w1 + w2))
    second = (1 + cos1**2 + cos2**2 + both**2) / 4
    cross = (1 - cos1 - cos2 + both) / 4
    outside = (w1 <= EDGE) | (w2 <= EDGE)
    a, b = (torch.where(outside, 0.0, w) for w in (w1, w2))
    one = torch.ones((), dtype=w1.dtype)
    found = (
        torch.exp(inputs.log_moment(2 * a) + inputs.log_moment(2 * b)) * second
        - 2 * torch.exp(inputs.log_moment(a + 1) + inputs.log_moment(b + 1)) * cross
        + torch.exp(2 * inputs.log_moment(2 * one))
    )
    return torch.where(outside, math.inf, found)


def derivatives(
    w: Float[np.ndarray, "2"], inputs: Inputs
) -> tuple[float, Float[np.ndarray, "2"], Float[np.ndarray, "2 2"]]:
    """Loss, gradient and Hessian at one point."""
    point = torch.tensor(w, dtype=torch.float64, requires_grad=True)
    value = loss(point[0], point[1], inputs)
    (slope,) = torch.autograd.grad(value, point, create_graph=True)
    rows = [torch.autograd.grad(part, point, retain_graph=True)[0] for part in slope]
    return float(value.detach()), slope.detach().numpy(), torch.stack(rows).numpy()


def stationary(near: Float[np.ndarray, "2"], inputs: Inputs) -> Float[np.ndarray, "2"] | None:
    """The stationary point that Newton's method reaches from `near`; None when it leaves the finite region."""
    w = np.array(near, dtype=float)
    for _ in range(60):
        _, slope, curvature = derivatives(w, inputs)
        step = np.linalg.solve(curvature, slope)
        w = w - step * min(1.0, 0.1 / float(np.abs(step).max() + 1e-300))
        if (w <= EDGE).any() or (w > 1.5).any():
            return None
        if np.abs(step).max() < 1e-13:
            return w
    return None


@dataclass(frozen=True)
class Minimum:
    """A minimum of the expected loss inside the weights' range; `spurious` unless it is [1, 1]."""

    w: tuple[float, float]
    loss: float
    spurious: bool


def surface(inputs: Inputs, points: int = 151) -> tuple[Float[np.ndarray, " w"], Float[np.ndarray, "w w"]]:
    """Weights from just above -1/2 to 1, and the loss over both of them."""
    axis = np.linspace(EDGE + 0.01, 1.0, points)
    w = torch.from_numpy(axis)
    return axis, loss(w[:, None].expand(-1, points), w[None, :].expand(points, -1), inputs).numpy()


@functools.cache
def minima(inputs: Inputs) -> tuple[Minimum, ...]:
    """All local minima with -1/2 < w <= 1, from a grid, then by Newton's method; the lowest first."""
    axis, values = surface(inputs)
    padded = np.pad(values, 1, constant_values=np.inf)
    around = [padded[1 + i : len(axis) + 1 + i, 1 + j : len(axis) + 1 + j] for i in (-1, 0, 1) for j in (-1, 0, 1)]
    lowest = np.argwhere(values <= np.min(around, axis=0))
    found: list[Minimum] = []
    for i, j in lowest:
        near = np.array([axis[i], axis[j]])
        w = near if near.max() == 1.0 else stationary(near, inputs)
        if w is None or (w.max() < 1 and np.linalg.eigvalsh(derivatives(w, inputs)[2])[0] <= 0):
            continue
        value = derivatives(w, inputs)[0]
        spurious = bool(np.abs(w - 1).max() > 1e-6)
        if not any(np.abs(np.array(one.w) - w).max() < 1e-4 for one in found):
            found.append(Minimum((float(w[0]), float(w[1])), value, spurious))
    return tuple(sorted(found, key=lambda one: one.loss))


def mountain_pass(inputs: Inputs, start: tuple[float, float] = (0.0, 0.0)) -> float:
    """The least height that a path from `start` to [1, 1] must climb to, on the grid of `surface`.

    The start's own loss where no hill lies between. The way is searched from low ground up (Dijkstra with maxima).
    """
    axis, values = surface(inputs, 101)
    first = tuple(int(np.abs(axis - w).argmin()) for w in start)
    begin = float(derivatives(np.array(start), inputs)[0])
    best = np.full(values.shape, np.inf)
    best[first] = begin
    queue = [(begin, first)]
    while queue:
        height, (i, j) = heapq.heappop(queue)
        if (i, j) == (len(axis) - 1, len(axis) - 1):
            return height
        if height > best[i, j]:
            continue
        for a, b in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1), (i + 1, j + 1), (i - 1, j - 1), (i + 1, j - 1),
                     (i - 1, j + 1)):  # fmt: skip
            if 0 <= a < len(axis) and 0 <= b < len(axis) and (reach := max(height, values[a, b])) < best[a, b]:
                best[a, b] = reach
                heapq.heappush(queue, (reach, (a, b)))
    return math.inf


def diagonal(w: Float[Tensor, "*shape"], inputs: Inputs) -> Float[Tensor, "*shape"]:
    """The loss at w_1 = w_2 = w: where training from equal weights stays, but for the noise of batches."""
    return loss(w, w, inputs)


def diagonal_saddle(inputs: Inputs) -> float | None:
    """The highest point of the diagonal between the start at 0 and the solution at 1; None without a hill there."""
    w = torch.linspace(0.0, 1.0, 20_001, dtype=torch.float64)
    values = diagonal(w, inputs)
    rising = (values.diff() > 0).nonzero()[:, 0]
    return float(w[int(rising[-1]) + 1]) if len(rising) else None


@functools.cache
def appears(shape: Shape, family: Family) -> float:
    """The scale c above which one of `SHAPES` is there, to 1e-6, by bisection from 0.5 to 3.

    The slope turns where `E ln|x| = 0` (c = e when uniform): at 0 the derivative by a weight is `2 E ln|x|`, since D
    and its slope vanish there.
    """
    there = {"pair": _Pair(family), "hill": _has_hill, "slope": _falls_below}[shape]
    low, high = 0.5, 3.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if there(Inputs(family, middle)) else (middle, high)
    return high


def _falls_below(inputs: Inputs) -> bool:
    return float(derivatives(np.zeros(2), inputs)[1][0]) > 0


def _has_hill(inputs: Inputs) -> bool:
    return diagonal_saddle(inputs) is not None


class _Pair:
    """Whether a minimum with weights of opposite sign exists; asked of falling scales it follows the last one found."""

    def __init__(self, family: Family):
        self.w = np.array([-0.36, 0.68])  # where it is at c = 3 (uniform)
        self.scale = 3.0 if family == "uniform" else 1.7

    def __call__(self, inputs: Inputs) -> bool:
        w: Float[np.ndarray, "2"] | None = self.w
        for scale in np.geomspace(self.scale, inputs.scale, 2 + int(4 * abs(math.log(self.scale / inputs.scale)))):
            w = stationary(w, Inputs(inputs.family, float(scale)))
            if w is None or np.linalg.eigvalsh(derivatives(w, Inputs(inputs.family, float(scale)))[2])[0] <= 0:
                return False
        if w.min() > 0 or w.max() < 0:
            return False
        self.w, self.scale = w, inputs.scale
        return True
