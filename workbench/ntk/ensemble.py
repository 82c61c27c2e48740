"""Finite-width two-layer ReLU networks, many at once, trained on unit vectors.

Both forms start from the same weights, `V1 ~ N(0, 1/N)` and `V2 ~ N(0, 1/width)`, and train every weight by
full-batch gradient descent. They differ in which layer moves:

- "ntk" is `W2 relu(W1 x / sqrt(N)) / sqrt(width)` with standard normal W1 and W2 and no biases: V1 moves at 1/N of the
  rate, V2 at 1/width, so both layers matter however wide the network is.
- "standard" is what PyTorch's `nn.Linear` layers do, with biases from 0, and the published form: one rate for all, so
  that the last layer's share of the kernel is larger by about the width, and wide networks follow the NNGP predictor.

Inputs are the N unit vectors, so the first layer is a lookup: `V1[i]` is what the hidden units get from input i.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from workbench.errors import BadInput
from workbench.ntk import kernel

Form = Literal["ntk", "standard"]

LIMIT: dict[Form, kernel.Form] = {"ntk": "ntk", "standard": "nngp"}  # the predictor of infinitely wide ones

PUBLISHED_WIDTH, PUBLISHED_RATE, PUBLISHED_STEPS = 50_000, 1e-3, 10_000  # opallab/permlearn, experiment_1.sh
LAYER_BYTES = 1 << 21  # of a batch of networks trained at once (`batch`); more leaves the cache and is slower


@dataclass(frozen=True)
class Recipe:
    """Which networks, and the steps they take: each a multiple of 1 / (largest eigenvalue of the limiting kernel).

    Gradient descent on half the sum of squares converges while each step is under 2; a mean over entries is the same
    with another unit (`published`). Raises BadInput for no width, no steps, or a step that is not positive.
    """

    form: Form
    width: int
    steps: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.width < 1 or not self.steps or min(self.steps) <= 0:
            raise BadInput(f"width {self.width} and {len(self.steps)} steps: both, and every step, must be positive")


def largest(form: Form, inputs: int, width: int) -> float:
    """Largest eigenvalue of the kernel on the unit vectors of R^N: `(N + ridge) / (2 pi N)`.

    In the standard form it is width times that, the last layer's share alone: those of the first layer and of the
    biases do not grow with the width.
    """
    scale = width if form == "standard" else 1
    return scale * (inputs + kernel.ridge(LIMIT[form])) / (2 * math.pi * inputs)


def plain(form: Form, inputs: int, error: float = 1e-5) -> tuple[float, ...]:
    """Steps of 1, as many as take the slowest direction's error to `error`: it keeps `1 - ridge / (N + ridge)` a step.

    In NTK form 28 for N = 10 inputs, 71 for 30.
    """
    slowest = kernel.ridge(LIMIT[form]) / (inputs + kernel.ridge(LIMIT[form]))
    return (1.0,) * math.ceil(math.log(error) / math.log1p(-slowest))


def chebyshev(inputs: int, count: int = 32, low: float = 0.6, high: float = 1.15) -> tuple[float, ...]:
    """Steps that fit the whole spectrum: the inverses of the Chebyshev nodes between its ends (Young 1953).

    For the standard form, whose kernel hardly moves: 32 of them do what 200 plain ones do at N = 30. `count` is a power
    of two; the order keeps partial products small (Lebedev & Finogenov 1971). `low` and `high` widen the limiting
    spectrum for finite networks, whose eigenvalues scatter about it (ours).
    """
    if count < 1 or count & (count - 1):
        raise BadInput(f"{count} Chebyshev steps were asked for, expected a power of two")
    order = [1]
    while len(order) < count:
        order = [place for i in order for place in (i, 4 * len(order) - i)]
    ridge = kernel.ridge(LIMIT["standard"])
    bottom, top = low * ridge / (inputs + ridge), high
    middle, half = (top + bottom) / 2, (top - bottom) / 2
    return tuple(1 / (middle + half * math.cos(math.pi * place / (2 * count))) for place in order)


def published(inputs: int, width: int = PUBLISHED_WIDTH, steps: int = PUBLISHED_STEPS) -> Recipe:
    """The published training: rate 1e-3 on the mean over the k x k entries, so 2e-3 / k^2 on half the sum.

    Another width keeps the step of width 50,000 in units of the eigenvalue; so does the rate `1e-3 * 50,000 / width`.
    """
    step = 2 * PUBLISHED_RATE / inputs**2 * largest("standard", inputs, PUBLISHED_WIDTH)
    return Recipe("standard", width, (step,) * steps)


@dataclass(frozen=True)
class Networks:
    """Trained networks. `error`: the largest error on a training pair, any network, any bit, before the last step."""

    first: Float[Tensor, "net input hidden"]
    first_bias: Float[Tensor, "net 1 hidden"]
    last: Float[Tensor, "net bit hidden"]
    last_bias: Float[Tensor, "net 1 bit"]
    error: float

    def outputs(self, x: Shaped[Tensor, "batch input"]) -> Float[Tensor, "net batch bit"]:
        """Each network's outputs for each input vector."""
        hidden = torch.relu(x.float() @ self.first + self.first_bias)
        return hidden @ self.last.mT + self.last_bias


def train(
    recipe: Recipe, labels: Shaped[Tensor, "input bit"], nets: int, generator: torch.Generator, mirrored: bool = False
) -> Networks:
    """Networks with weights drawn from `generator`, trained on (unit vector i, row i of `labels`). Float32.

    All at once, so choose `nets` by `batch` for speed. The same generator state, recipe and `nets` give the same
    networks. `mirrored` (ours): network i + nets / 2 starts from the weights of network i with the last layer negated,
    so that the two untrained functions cancel in their mean, which says what all networks' mean is from far fewer.
    Raises BadInput for an odd number of mirrored networks, and when outputs are no longer finite.
    """
    inputs, bits = labels.shape
    if mirrored and nets % 2:
        raise BadInput(f"{nets} mirrored networks were asked for, expected an even number")
    biased = recipe.form == "standard"
    goal = labels.float()
    drawn = nets // 2 if mirrored else nets
    first = torch.randn(drawn, inputs, recipe.width, generator=generator) / math.sqrt(inputs)
    last = torch.randn(drawn, bits, recipe.width, generator=generator) / math.sqrt(recipe.width)
    if mirrored:
        first, last = torch.cat([first, first]), torch.cat([last, -last])
    first_bias, last_bias = torch.zeros(nets, 1, recipe.width), torch.zeros(nets, 1, bits)
    unit = 1 / largest(recipe.form, inputs, recipe.width)
    slow, fast = (unit, unit) if biased else (unit / inputs, unit / recipe.width)
    error = goal
    for step in recipe.steps:
        hidden = torch.relu(first + first_bias if biased else first)
        error = (hidden @ last.mT).add_(last_bias).sub_(goal)
        back = torch.bmm(error, last).mul_(hidden > 0)
        last.baddbmm_(error.mT, hidden, alpha=-step * fast)
        first.sub_(back, alpha=step * slow)
        if biased:
            first_bias.sub_(back.sum(dim=1, keepdim=True), alpha=step * slow)
            last_bias.sub_(error.sum(dim=1, keepdim=True), alpha=step * fast)
    if not bool(error.isfinite().all()):
        raise BadInput(f"training of {recipe.form} networks of width {recipe.width} diverged; take smaller steps")
    return Networks(first, first_bias, last, last_bias, float(error.abs().max()))


def batch(recipe: Recipe, inputs: int) -> int:
    """How many networks to train at once: as many as keep a layer of them within `LAYER_BYTES`, at least one."""
    return max(1, LAYER_BYTES // (4 * inputs * recipe.width))
