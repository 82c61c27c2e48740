"""The report's training data, targets, initial weights and batch orders, number by number, from its seeds.

What the report's text leaves out is taken from its repository (justindujardin/hillspace on GitHub): numpy's legacy
generator draws the data, one global torch generator the initial weights and the order of each operation's samples,
Python's generator the order in which the batches of all operations mix. Nothing global is touched here.
"""

import decimal
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbench.hill.error_free import two_product, two_terms
from workbench.hill.fitting_streams import Order, Turns
from workbench.hill.operations import operation

BATCH = 64
SAMPLES = 64_000
MIN_DIVISOR, MAX_RATIO = 1e-6, 1e3  # |x_2| at least; |x_1 / x_2| and its inverse at most, where something is divided
RESEEDED = 1000  # the check between epochs draws its data, and torch goes on, from the seed plus this
SLOTS = (  # the weight pairs of the report's model, in the order in which their initial weights are drawn
    "multiply", "add", "subtract", "divide", "power-identity", "reciprocal", "sin",
    "cos-difference", "sin-difference", "cos-sum", "sin-sum",
)  # fmt: skip
SHARED = {"cos": "power-identity"}  # trained on the pair of another operation that has the same selection

Generator = np.random.RandomState | np.random.Generator
Pair = tuple[tuple[float, float], tuple[float, float]]  # W_hat, M_hat


@dataclass(frozen=True)
class Distribution:
    """Where both inputs come from: uniform on [low, high], exponential of scale `low`, or truncated normal.

    The normal has mean (low + high) / 2 and standard deviation (high - low) / 6 and is cut to [low, high] (report
    section 4.3.1).
    """

    kind: Literal["uniform", "exponential", "normal"]
    low: float
    high: float

    def draw(self, generator: Generator, count: int) -> Float[np.ndarray, " sample"]:
        """`count` values; the normal's through its inverse distribution function."""
        if self.kind == "uniform":
            return generator.uniform(self.low, self.high, count)
        if self.kind == "exponential":
            return generator.exponential(self.low, count)
        mean, deviation = (self.low + self.high) / 2, (self.high - self.low) / 6
        ends = torch.special.ndtr(torch.tensor([self.low - mean, self.high - mean], dtype=torch.float64) / deviation)
        places = torch.from_numpy(generator.uniform(size=count))
        return torch.special.ndtri(torch.lerp(ends[0], ends[1], places)).numpy() * deviation + mean


GOLDILOCKS = Distribution("uniform", 1e-8, 10.0)  # report section 2.4


def inputs(name: str, within: Distribution, generator: Generator, count: int) -> Float[np.ndarray, "sample 2"]:
    """Inputs of an operation as the report draws them: x_1, x_2, a permutation, then the repairs of a division.

    A unary operation has x_2 = 1, set after the repairs.
    """
    x1, x2 = within.draw(generator, count), within.draw(generator, count)
    order = generator.permutation(count)
    x1, x2 = x1[order], x2[order]
    if name in ("divide", "reciprocal"):
        _repair(x1, x2, within, generator)
    return np.stack([x1, x2 if operation(name).arity == 2 else np.ones(count)], axis=1)


def _repair(
    x1: Float[np.ndarray, " sample"], x2: Float[np.ndarray, " sample"], within: Distribution, generator: Generator
) -> None:
    """Redraw, in place, divisors near 0, then one operand of each ratio that is too large, then of each too small."""
    near = np.abs(x2) < MIN_DIVISOR
    if near.any():
        sizes = generator.uniform(max(MIN_DIVISOR, within.low * 0.1), within.high, near.sum())
        x2[near] = sizes * generator.choice([-1, 1], near.sum())
    ratio = np.abs(x1 / x2)
    for wrong, low, high in ((ratio > MAX_RATIO, 1.0, MAX_RATIO), (ratio < 1 / MAX_RATIO, 1 / MAX_RATIO, 1.0)):
        if not wrong.any():
            continue
        first = np.zeros_like(wrong)
        first[wrong] = generator.random(wrong.sum()) < 0.5
        second = wrong & ~first
        if first.any():
            x1[first] = np.abs(x2[first]) * generator.uniform(low, high, first.sum()) * np.sign(x1[first])
        if second.any():
            x2[second] = np.abs(x1[second]) / generator.uniform(low, high, second.sum()) * np.sign(x2[second])


def _printed_beyond(value: str) -> tuple[int, int]:
    """The whole number n and the k of a printed number `n / 10^k`."""
    mantissa, _, exponent = value.partition("e")
    whole, _, places = mantissa.partition(".")
    return int(whole + places), len(places) - int(exponent or 0)


def printed_rests(values: Sequence[float]) -> Float[np.ndarray, " value"]:
    """What the shortest decimal form of each float64 has more than the float: below half a unit in the last place.

    `n - a 10^k` is exact in two terms while 10^k is a float64, k <= 22; the few smaller numbers go through Decimal.
    """
    printed = list(map(repr, values))
    whole, places = zip(*map(_printed_beyond, printed), strict=True)
    n, k, a = np.array(whole), np.array(places), torch.tensor(values, dtype=torch.float64)
    exact = k <= 22
    power = torch.from_numpy(10.0 ** np.where(exact, k, 0))
    product, error = two_product(a, power)
    near = n.astype(np.float64)
    rests = ((near - product.numpy()) + (n - near.astype(np.int64)) - error.numpy()) / power.numpy()
    for place in np.flatnonzero(~exact).tolist():
        rests[place] = float(decimal.Decimal(printed[place]) - decimal.Decimal(values[place]))
    return rests


def targets(
    name: str, x: Float[np.ndarray, "sample 2"], read: dict[float, float] | None = None
) -> Float[np.ndarray, " sample"]:
    """Answers in float64; with `read`, those of + - x / go through the shortest decimal form of the inputs.

    That is the report's way: `a + b` in decimals of the printed a and b, rounded to float64, is not always the float64
    sum of a and b. It is computed without decimals: the rounded answer, its error, and what the printed forms have
    beyond the inputs. `read` keeps the latter for the next operation on the same inputs.
    """
    row = operation(name)
    if read is None or name not in ("add", "subtract", "multiply", "divide"):
        return np.asarray(row.exact(*x.T[: row.arity]))
    columns = x.T.tolist()
    if new := list(dict.fromkeys(value for column in columns for value in column if value not in read)):
        read.update(zip(new, printed_rests(new).tolist(), strict=True))
    rest_a, rest_b = (np.fromiter(map(read.__getitem__, column), np.float64, len(x)) for column in columns)
    a, b = np.ascontiguousarray(x.T)
    answer, error = (part.numpy() for part in two_terms(name, torch.from_numpy(a), torch.from_numpy(b)))
    beyond = {
        "add": lambda: rest_a + rest_b,
        "subtract": lambda: rest_a - rest_b,
        "multiply": lambda: a * rest_b + b * rest_a,
        "divide": lambda: (rest_a - answer * rest_b) / b,
    }[name]()
    return answer + (error + beyond)


Problems = tuple[Tensor, Tensor]  # inputs [sample, 2], answers [sample]


def problem_sets(names: Sequence[str], within: Distribution, seed: int, count: int) -> dict[str, Problems]:
    """Inputs and answers of the report's data sets of these operations, each drawn afresh from the seed."""
    read: dict[float, float] = {}
    drawn = {name: inputs(name, within, np.random.RandomState(seed), count) for name in names}
    return {name: (torch.from_numpy(x), torch.from_numpy(targets(name, x, read))) for name, x in drawn.items()}


class Run:
    """The random choices of one training run of the report's: initial weights, and the order of all batches.

    `names` are the operations trained together, in their order. `checked(epoch)`, epochs from 0, says after which
    epochs the report's code looks at its check data: that draws from the same torch generator. With `mixed` the batches
    of all operations are shuffled together, as in sections 4.3 and 4.5. Epochs are asked for in rising order.
    """

    def __init__(
        self,
        seed: int,
        names: Sequence[str],
        *,
        torch_seed: int,
        samples: int = SAMPLES,
        checked: Callable[[int], bool] = lambda epoch: False,
        mixed: bool = True,
    ):
        self.names, self.samples, self.checked, self.mixed = list(names), samples, checked, mixed
        self._torch = torch.Generator().manual_seed(torch_seed)
        self._python = random.Random(seed)
        drawn = [torch.randn(2, 1, dtype=torch.float64, generator=self._torch) for _ in range(2 * len(SLOTS))]
        pairs = [tuple(values[:, 0].tolist()) for values in drawn]
        self.starts: dict[str, Pair] = dict(zip(SLOTS, zip(pairs[::2], pairs[1::2], strict=True), strict=True))
        self._epoch = -1
        self._seeds: list[int] = []
        self._mix = np.empty(0, dtype=np.int64)

    def start(self, name: str, scale: float) -> Pair:
        """(W_hat, M_hat) that the operation begins with: standard normal numbers times the scale."""
        W_hat, M_hat = self.starts[SHARED.get(name, name)]
        return (W_hat[0] * scale, W_hat[1] * scale), (M_hat[0] * scale, M_hat[1] * scale)

    def _seed(self) -> int:
        return int(torch.empty((), dtype=torch.int64).random_(generator=self._torch))

    def _loader_seeds(self) -> list[int]:
        """What torch's DataLoader draws for each operation: a seed for workers, not used here, and the sampler's."""
        return [(self._seed(), self._seed())[1] for _ in self.names]

    def _advance(self, epoch: int) -> None:
        while self._epoch < epoch:
            if self._epoch >= 0 and self.checked(self._epoch):
                self._loader_seeds()
            self._epoch += 1
            self._seeds = self._loader_seeds()
            mix = list(range(len(self.names) * self.batches))
            if self.mixed:
                self._python.shuffle(mix)
            self._mix = np.array(mix)

    @property
    def batches(self) -> int:
        """Of each operation, an epoch; an incomplete batch is left out."""
        return self.samples // BATCH

    def order(self, name: str) -> Order:
        """The samples of each of the operation's batches, in the order in which an epoch comes to them."""
        place = self.names.index(name)

        def order(epoch: int) -> Int[Tensor, "step batch"]:
            self._advance(epoch)
            generator = torch.Generator().manual_seed(self._seeds[place])
            samples = torch.randperm(self.samples, generator=generator)[: self.batches * BATCH].view(-1, BATCH)
            return samples[self._mix[self._mix // self.batches == place] % self.batches]

        return order

    def turns(self, names: Sequence[str]) -> Turns:
        """Which of these operations the next batch of any of them belongs to, step by step."""
        places = [self.names.index(name) for name in names]

        def turns(epoch: int) -> Int[Tensor, " turn"]:
            self._advance(epoch)
            whose = self._mix // self.batches
            slots = np.full(len(self.names), -1)
            slots[places] = range(len(places))
            return torch.from_numpy(slots[whose][np.isin(whose, places)])

        return turns
