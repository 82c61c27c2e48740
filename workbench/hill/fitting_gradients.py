"""Loss and gradient of many units at once, each on its own batch: mean squared error, by primitive.

A *lane* is one unit on one stream of batches. The additive, unit-circle and trigonometric-product primitives are linear
in a few coefficients c of their weights (report sections 3.1, 3.3, 3.4: products and angle sums written out), so all a
batch has to say is the Gram matrix of its features. About the known coefficients c* of the target,

    batch * loss = e' G e,  e = (c(W) - c*, 1),  G = F'F,  F = (features, features c* - y),

which keeps the digits of a residual that is about to vanish; written about zero it would lose them to cancellation.
The exponential primitive is not linear in anything so small: it takes every sample, from precomputed logarithms, about
the target likewise (`expm1`). Its value is `E cos(phi)`, `E = prod |x|^w`, `phi = pi * (sum of w over negative x)`, the
real part of the complex power of section 3.2, and `d/dw = E (ln|x| cos(phi) - pi [x < 0] sin(phi))`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbench.errors import BadInput
from workbench.hill.operations import Primitive, operation

Weights = Float[Tensor, "2 lane"]
Answer = tuple[Float[Tensor, " lane"], Weights]  # squared errors summed over the batch; dW of their mean


@dataclass(frozen=True)
class Target:
    """What a unit is to become: the primitive, and the weights at which it computes the operation."""

    primitive: Primitive
    selection: tuple[float, float]

    @classmethod
    def of(cls, name: str) -> "Target":
        """The target of an operation of the table, such as `divide`; BadInput for an unknown one."""
        row = operation(name)
        return cls(row.primitive, (float(row.selection[0]), float(row.selection[1])))

    def __post_init__(self) -> None:
        if self.primitive not in FORMS:
            raise BadInput(f"unknown primitive {self.primitive!r}; choose from {', '.join(FORMS)}")


@dataclass(frozen=True)
class Linear:
    """A primitive that is linear in a few coefficients c of its weights, over as many features of x.

    `coefficients(W)` also returns what `pull`, the chain rule from c back to W, wants to see again.
    """

    terms: int
    features: Callable[[Float[Tensor, "sample 2"]], Float[Tensor, "sample term"]]
    coefficients: Callable[[Weights], tuple[Float[Tensor, "term lane"], Any]]
    pull: Callable[[Weights, Any, Float[Tensor, "term lane"]], Weights]
    gathers = "an epoch"  # when what lanes share is copied to each of them
    steps_on = 1  # the axis of `room` that counts steps

    @property
    def rows(self) -> int:
        """Columns of the table: the terms, the rest, and padding to four: numpy copies 32 bytes much faster than 24."""
        return max(4, self.terms + 1)

    def table(
        self, x: Float[Tensor, "sample 2"], y: Float[Tensor, " sample"], selection: tuple[float, float]
    ) -> Float[Tensor, "sample row"]:
        """Features of each sample, and what the target leaves unexplained of its y."""
        features = self.features(x)
        left = (features * self.goal(selection, x.dtype)[: self.terms]).sum(dim=1) - y
        columns = [*features.unbind(1), left]
        return torch.stack(columns + [torch.zeros_like(y)] * (self.rows - len(columns)), dim=1)

    def idle(self, table: Float[Tensor, "sample row"]) -> tuple[bool, bool]:
        """Which weights have no gradient whatever they are: none here."""
        return False, False

    def goal(self, selection: tuple[float, float], dtype: torch.dtype) -> Float[Tensor, " row"]:
        """The coefficients at the target's weights, a 1, and zeros."""
        c, _ = self.coefficients(torch.tensor(selection, dtype=dtype)[:, None])
        return torch.cat([c[:, 0], torch.eye(self.rows - self.terms, dtype=dtype)[0]])

    def room(self, feeds: int, steps: int, batch: int) -> tuple[int, ...]:
        """The shape of the batches of an epoch, or a part of it, of several feeds."""
        return feeds, steps, self.rows, self.rows

    def gather(
        self, table: Float[Tensor, "sample row"], samples: Int[Tensor, "step batch"], out: Float[Tensor, "step row row"]
    ) -> None:
        """Of each batch, all that its loss and gradient need: the Gram matrix of its rows of the table."""
        rows = torch.from_numpy(table.numpy().take(samples.numpy(), axis=0))
        torch.bmm(rows.mT, rows, out=out)

    def arrange(self, gathered: Float[Tensor, "lane step row row"]) -> list[Tensor]:
        """What `gradient` takes at each step."""
        return list(gathered.permute(1, 2, 3, 0).contiguous().unbind())

    def gradient(
        self, W: Weights, gram: Float[Tensor, "row row lane"], goal: Float[Tensor, "row lane"], batch: int
    ) -> Answer:
        """Loss and gradient of one step."""
        c, seen = self.coefficients(W)
        error = torch.cat([c - goal[: self.terms], goal[self.terms :]])
        half = (gram * error).sum(dim=1)
        return (error * half).sum(dim=0), self.pull(W, seen, half[: self.terms].mul_(2 / batch))


def _additive_coefficients(W: Weights) -> tuple[Weights, None]:
    return W, None


def _additive_pull(W: Weights, seen: None, gradient: Tensor) -> Weights:
    return gradient


def _circle_features(x: Float[Tensor, "sample 2"]) -> Float[Tensor, "sample 2"]:
    return torch.stack([torch.cos(x[:, 0]), torch.sin(x[:, 0])], dim=1)


def _circle_coefficients(W: Weights) -> tuple[Float[Tensor, "2 lane"], tuple[Tensor, Tensor, Tensor]]:
    """Of cos and sin of the angle t in `(cos(t + f) (1 + s) + sin(t + f) (1 - s)) / 2`, with s = w_1, f = pi w_2."""
    selector, phase = W[0], W[1] * math.pi
    cos, sin = torch.cos(phase), torch.sin(phase)
    a, b = (1 + selector) / 2, (1 - selector) / 2
    c = torch.stack([a * cos + b * sin, b * cos - a * sin])
    return c, (c, cos, sin)


def _circle_pull(W: Weights, seen: tuple[Tensor, Tensor, Tensor], gradient: Tensor) -> Weights:
    (c, cos, sin), (g_cos, g_sin) = seen, gradient.unbind()
    selector = (g_cos * (cos - sin)).sub_(g_sin * (cos + sin)).div_(2)
    return torch.stack([selector, (g_cos * c[1]).sub_(g_sin * c[0]).mul_(math.pi)])


def _product_features(x: Float[Tensor, "sample 2"]) -> Float[Tensor, "sample 4"]:
    """cos(a - b), cos(a + b), sin(a - b), sin(a + b), each from the products of section 3.4."""
    (cos_a, cos_b), (sin_a, sin_b) = torch.cos(x).unbind(1), torch.sin(x).unbind(1)
    both, crossed = cos_a * cos_b, sin_a * sin_b
    left, right = sin_a * cos_b, cos_a * sin_b
    return torch.stack([both + crossed, both - crossed, left - right, left + right], dim=1)


def _product_coefficients(W: Weights) -> tuple[Float[Tensor, "4 lane"], None]:
    """w_1 w_2, w_1 (1 - w_2), (1 - w_1) w_2, (1 - w_1) (1 - w_2)."""
    pairs = torch.stack([W, 1 - W])  # [this or the other, weight, lane]
    return (pairs[:, None, 0] * pairs[None, :, 1]).flatten(0, 1), None


def _product_pull(W: Weights, seen: None, gradient: Tensor) -> Weights:
    by = gradient.unflatten(0, (2, 2))  # [cosine or sine, difference or sum, lane]
    cosine, difference = by[0] - by[1], by[:, 0] - by[:, 1]
    first = torch.lerp(cosine[1], cosine[0], W[1])
    return torch.stack([first, torch.lerp(difference[1], difference[0], W[0])])


@dataclass(frozen=True)
class Exponential:
    """The exponential primitive, sample by sample; `signed` where some input is negative."""

    signed: bool
    gathers = "a step"
    steps_on = 2

    def table(
        self, x: Float[Tensor, "sample 2"], y: Float[Tensor, " sample"], selection: tuple[float, float]
    ) -> Float[Tensor, "column sample"]:
        """ln|x_1|, ln|x_2|, the target's own y*, y* - y, and with signs [x_1 < 0], [x_2 < 0] times pi / 2."""
        exact = torch.ones_like(y)
        for value, weight in zip(x.unbind(1), selection, strict=True):
            if weight == -1:
                exact = exact / value
            elif weight:
                exact = exact * (value if weight == 1 else value.pow(weight))
        columns = [*x.abs().log().unbind(1), exact, exact - y]
        if self.signed:
            columns += ((x < 0) * torch.tensor(math.pi / 2, dtype=x.dtype)).unbind(1)
        return torch.stack(columns)

    def idle(self, table: Float[Tensor, "column sample"]) -> tuple[bool, bool]:
        """Which weights have no gradient whatever they are: those of an input that is 1 throughout."""
        return not bool(table[0].any()), not bool(table[1].any())

    def goal(self, selection: tuple[float, float], dtype: torch.dtype) -> Float[Tensor, " weight"]:
        """The target's weights."""
        return torch.tensor(selection, dtype=dtype)

    def room(self, feeds: int, steps: int, batch: int) -> tuple[int, ...]:
        """The shape of the batches of an epoch, or a part of it, of several feeds."""
        return feeds, 6 if self.signed else 4, steps, batch

    def gather(
        self,
        table: Float[Tensor, "column sample"],
        samples: Int[Tensor, "step batch"],
        out: Float[Tensor, "column step batch"],
    ) -> None:
        """The samples themselves."""
        for column, place in zip(table.unbind(), out.unbind(), strict=True):
            torch.index_select(column, 0, samples.flatten(), out=place.view(-1))

    def arrange(self, gathered: Float[Tensor, "feed column step batch"]) -> list[Tensor]:
        """What `gradient` takes at each step: [feed, column, batch]."""
        return list(gathered.unbind(2))

    def gradient(
        self, W: Weights, samples: Float[Tensor, "lane column batch"], goal: Float[Tensor, "2 lane"], batch: int
    ) -> Answer:
        """Loss and gradient of one step: the value is y* exp(d) cos(f), d and f linear in W - W*."""
        first, second = (W - goal)[:, :, None].unbind()
        columns = samples.unbind(1)
        grown = torch.addcmul(first * columns[0], second, columns[1]).expm1_()
        exact, left = columns[2:4]
        error, slope = torch.addcmul(left, exact, grown), torch.addcmul(exact, exact, grown)
        if self.signed:
            half = torch.addcmul(first * columns[4], second, columns[5])  # f / 2
            sin, cos = torch.sin(half), torch.cos(half)
            square = sin * sin
            error.addcmul_(slope, square, value=-2)  # cos(f) = 1 - 2 sin(f / 2)^2, exact near 0
            slope.mul_(error)
            gradient = torch.bmm(samples[:, :2], torch.addcmul(slope, slope, square, value=-2)[:, :, None])
            gradient.baddbmm_(samples[:, 4:], slope.mul_(sin).mul_(cos)[:, :, None], alpha=-4)  # sin(f); pi / 2
        else:
            gradient = torch.bmm(samples[:, :2], slope.mul_(error)[:, :, None])
        return torch.linalg.vecdot(error, error), gradient[:, :, 0].T * (2 / batch)


FORMS: dict[Primitive, tuple[Linear | Exponential, ...]] = {  # without and with negative inputs
    "additive": (Linear(2, lambda x: x, _additive_coefficients, _additive_pull),),
    "exponential": (Exponential(signed=False), Exponential(signed=True)),
    "unit-circle": (Linear(2, _circle_features, _circle_coefficients, _circle_pull),),
    "trigonometric-products": (Linear(4, _product_features, _product_coefficients, _product_pull),),
}


def form(target: Target, x: Float[Tensor, "sample 2"]) -> Linear | Exponential:
    """How the target's primitive is computed on these inputs.

    Raises BadInput for an exponential target with a zero input, where no form of the power has a derivative, or with a
    negative input under a fractional weight of the target, where the power is not real.
    """
    forms = FORMS[target.primitive]
    if target.primitive != "exponential":
        return forms[0]
    if bool((x == 0).any()):
        raise BadInput("an exponential unit cannot be fitted to an input of 0, where its power has no derivative")
    negative = bool((x < 0).any())
    if negative and any(weight not in (-1, 0, 1) for weight in target.selection):
        raise BadInput(f"weights {target.selection} of negative inputs give no real power; draw positive inputs")
    return forms[negative]
