"""Do narrower networks and larger steps move the predictor? Its mean and spread over widths, and steps in pairs.

Widths are compared with the infinitely wide network, steps with the published ones from the same initial weights, so
that what differs between two trainings is theirs alone.
"""

import math
import statistics
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from analyses._rows import Row
from analyses.kernel._ntk_ensembles_permutation import ONES, ZERO, Task, generator, permutation_law
from workbench.ntk import kernel
from workbench.ntk.ensemble import LIMIT, PUBLISHED_STEPS, Form, Recipe, batch, chebyshev, plain, published, train
from workbench.ntk.gaussian_law import Law, expected
from workbench.statistics import mean_interval

ERROR = 0.1  # of the count that a mean and a spread imply
FLOW_STEP, FLOW_STEPS = 0.05, 2000  # stands for gradient flow in NTK form
INFINITE = 0  # the width in the rows of the law


def steps(form: Form, k: int) -> tuple[float, ...]:
    """The steps of all trials: Chebyshev's in the standard form, plain ones in NTK form."""
    return chebyshev(k) if form == "standard" else plain(form, k)


def pairs_outputs(recipe: Recipe, k: int, pairs: int, seed: int) -> Float[Tensor, "sign net pair k"]:
    """Outputs on every pair of ones, of networks and of their mirrors, which start with the last layer negated.

    A network's initial weights depend on the seed, its number and the recipe's width.
    """
    task, size = Task(torch.arange(k)), max(1, batch(recipe, k) // 2)
    parts = []
    for first in range(0, pairs, size):
        stream, count = generator(seed, 2, k, recipe.width, first), min(size, pairs - first)
        outputs = train(recipe, task.labels, 2 * count, stream, mirrored=True).outputs(task.inputs)
        parts.append(outputs.unflatten(0, (2, count)))
    return torch.cat(parts, dim=1).double()


def summary(outputs: Float[Tensor, "sign net pair k"], k: int) -> Row:
    """Means where the answer is 1 and where it is 0, and the spread over networks, each with a 95% interval.

    A network and its mirror give one value of each. Of the variance, the part between the pairs' means and the part
    within pairs add up.
    """
    wanted = Task(torch.arange(k)).wanted
    mean, pairs = outputs.mean(dim=0), outputs.shape[1]
    between = (mean - mean.mean(dim=0)).square() * pairs / (pairs - 1)
    variance = (between + (outputs[0] - mean).square()).mean(dim=(1, 2)).tolist()
    found: Row = {"pairs": pairs}
    for name, values, power in (
        ("on", mean[:, wanted].mean(dim=1).tolist(), 1.0),
        ("off", mean[:, ~wanted].mean(dim=1).tolist(), 1.0),
        ("spread", variance, 0.5),
    ):
        low, high = mean_interval(values)
        ends = (statistics.fmean(values), max(low, 0.0) if power < 1 else low, high)
        found |= {f"{name}{end}": value**power for end, value in zip(("", "_low", "_high"), ends, strict=True)}
    return found


def mean_error(form: Form, k: int) -> dict[str, float]:
    """Standard deviation, over networks, of a network's mean output where the answer is 1, and where it is 0.

    By the law: bits are independent and alike, so the variance is that of one bit's mean over its pairs, over k.
    """
    wanted = Task(torch.arange(k)).wanted[:, 0]
    covariance = permutation_law(k, LIMIT[form]).covariance
    return {
        name: math.sqrt(float(covariance[chosen][:, chosen].mean()) / k)
        for name, chosen in (("on", wanted), ("off", ~wanted))
    }


def implied(on: float, off: float, spread: float, k: int) -> int:
    """Networks until the expected accuracy is 0.9 for normal outputs of these means and spread; 0 if that is never.

    Over the interval of `off`, the mean that decides, it gives the interval of the count.
    """
    task = Task(torch.arange(k))
    mean = torch.where(task.wanted, on, off).double()
    covariance = torch.eye(len(mean), dtype=torch.float64) * spread**2
    found = expected(Law(mean, covariance), task.roundings("nngp")[ZERO], torch.ones(len(mean)).long(), ERROR)
    return found or 0


def limit(form: Form, k: int) -> Row:
    """The row of the infinitely wide network."""
    m = torch.tensor(ONES)
    gain, leak = float(kernel.gain(m, LIMIT[form])), float(kernel.leak(m, k, LIMIT[form]))
    spread = math.sqrt(float(kernel.variance(m, k, LIMIT[form])))
    row: Row = {"form": form, "k": k, "width": INFINITE, "pairs": 0}
    for name, value in (("on", gain - leak), ("off", -leak), ("spread", spread)):
        row |= {name: value, f"{name}_low": value, f"{name}_high": value}
    count = implied(gain - leak, -leak, spread, k)
    return row | {"implied": count, "implied_low": count, "implied_high": count}


def widths(form: Form, k: int, every: Sequence[int], pairs: int, seed: int) -> list[Row]:
    """One row a width, trained by the steps of the trials, and first that of the law."""
    found = [limit(form, k)]
    for width in every:
        outputs = pairs_outputs(Recipe(form, width, steps(form, k)), k, pairs, seed)
        row: Row = {"form": form, "k": k, "width": width} | summary(outputs, k)
        for name, off in (("implied", "off"), ("implied_low", "off_low"), ("implied_high", "off_high")):
            row[name] = implied(row["on"], row[off], row["spread"], k)
        found.append(row)
    return found


def reference(form: Form, k: int, width: int) -> Recipe:
    """The published training, its step kept in units of the eigenvalue; in NTK form small steps, close to flow."""
    if form == "standard":
        return published(k, width, PUBLISHED_STEPS)
    return Recipe("ntk", width, (FLOW_STEP,) * FLOW_STEPS)


def compared(form: Form, k: int, width: int, pairs: int, seed: int) -> list[Row]:
    """Other steps against the reference's, from the same initial weights; differences are shares of the spread."""
    wanted = Task(torch.arange(k)).wanted
    spread = limit(form, k)["spread"]
    base = pairs_outputs(reference(form, k, width), k, pairs, seed)
    ways = {"plain": plain(form, k)} | ({"chebyshev": chebyshev(k)} if form == "standard" else {})
    found: list[Row] = []
    for name, taken in ways.items():
        moved = (pairs_outputs(Recipe(form, width, taken), k, pairs, seed) - base) / spread
        row: Row = {"form": form, "k": k, "width": width, "steps": name, "count": len(taken), "pairs": pairs}
        for part, values in (("on", moved[:, :, wanted]), ("off", moved[:, :, ~wanted])):
            low, high = mean_interval(values.mean(dim=(0, 2)).tolist())
            row |= {part: float(values.mean()), f"{part}_low": low, f"{part}_high": high}
        row |= {"rms": float(moved.square().mean().sqrt()), "largest": float(moved.abs().max())}
        found.append(row)
    return found
