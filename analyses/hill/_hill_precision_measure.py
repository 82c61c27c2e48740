"""Squared errors of the exact units on the published samples of section 4.4, by error-free transformations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from analyses.hill._hill_precision_stream import Tally
from workbench.hill.error_free import two_terms
from workbench.hill.exponential import Method as Power
from workbench.hill.operations import operation
from workbench.hill.unit import HillUnit

# The published protocol (files error_floor_*.json of the report's repository): config 0 to 3 is float32 add, subtract,
# multiply, divide, 4 to 7 the same in float64; batch by batch, each from SeedSequence([seed, config, batch]).
SEED = 20260724
FULL = 100_000_000
BATCH = 250_000
RANGE = 1e4  # inputs are uniform on (-RANGE, RANGE)
SMALLEST_DIVISOR = 1e-10
OPERATIONS = ("add", "subtract", "multiply", "divide")
PIECE = 25_000  # samples at a time, few enough for every array to stay in a core's cache; divides BATCH

# iNALU's guards (Schloer, Ring & Hotho 2020, section 3): a floor under magnitudes and a cap on the exponent.
FLOOR, CAP = 1e-7, 20.0

NATIVE, REAL, COMPLEX, LOG_SPACE, SIGN_EXACT = "Native", "Real", "Complex128", "Log-space", "Sign-exact"
LOG_ROUNDED, LOG_NUMPY = "Log-space, log and exp correctly rounded", "Log-space, log and exp of numpy"

Samples = Float[Tensor, "sample 2"]
Answers = Float[Tensor, " sample"]


@dataclass(frozen=True)
class Config:
    """One operation in one format; `index` is its place in the published order, which its samples depend on."""

    operation: str
    dtype: torch.dtype
    index: int

    @property
    def precision(self) -> str:
        """The format's name, as in `float32`."""
        return str(self.dtype).removeprefix("torch.")


CONFIGS = tuple(
    Config(name, dtype, 4 * half + at)
    for half, dtype in enumerate((torch.float32, torch.float64))
    for at, name in enumerate(OPERATIONS)
)


def pieces(config: Config, samples: int, seed: int) -> Iterator[Samples]:
    """The first `samples` input pairs of a config in its format, a piece at a time.

    Each is numpy's `uniform(-RANGE, RANGE)`, which is `-RANGE + 2 RANGE random()`, written out to save its copies.
    Division leaves out the pairs whose divisor is at most SMALLEST_DIVISOR in size.
    """
    drawn = np.empty((BATCH, 2))
    for batch, start in enumerate(range(0, samples, BATCH)):
        rng = np.random.default_rng(np.random.SeedSequence([seed, config.index, batch]))
        rng.random(out=drawn)
        for piece in torch.from_numpy(drawn[: samples - start]).split(PIECE):
            x = (piece * (2 * RANGE) - RANGE).to(config.dtype)
            if config.operation == "divide" and not bool((kept := x[:, 1].abs() > SMALLEST_DIVISOR).all()):
                x = x[kept]
            yield x


def methods(config: Config) -> dict[str, Callable[[Samples], Answers]]:
    """Every way the answer is computed, by name; the native operator first.

    `Real`, `Complex128` and `Sign-exact` are the enumerated unit with its weights computed, not typed in.
    """
    row, name, dtype = operation(config.operation), config.operation, config.dtype
    found: dict[str, Callable[[Samples], Answers]] = {NATIVE: lambda x: row.exact(x[:, 0], x[:, 1])}
    if row.primitive == "additive":
        return found | {REAL: HillUnit.enumerated(name, dtype=dtype)}
    powers: dict[str, Power] = {REAL: "real", COMPLEX: "complex", SIGN_EXACT: "sign-exact"}
    found |= {label: HillUnit.enumerated(name, dtype=dtype, method=power) for label, power in powers.items()}
    W = HillUnit.enumerated(name, dtype=dtype).W.detach()
    found[LOG_SPACE] = lambda x: log_space(x, W)
    if dtype is torch.float32:
        found[LOG_ROUNDED] = lambda x: log_space(x, W, _rounded(torch.log), _rounded(torch.exp))
        found[LOG_NUMPY] = lambda x: log_space(x, W, _of_numpy(np.log), _of_numpy(np.exp))
    return found


def log_space(
    x: Samples,
    W: Float[Tensor, " 2"],
    log: Callable[[Tensor], Tensor] = torch.log,
    exp: Callable[[Tensor], Tensor] = torch.exp,
) -> Answers:
    """`sign(a) sign(b) exp(min(w_1 ln max(|a|, FLOOR) + w_2 ln max(|b|, FLOOR), CAP))`, the report's section 4.4.

    The published rows take the sign exactly, where iNALU learns one: only the logarithm and the exponential are tested.
    """
    exponent = torch.matmul(log(x.abs().clamp(min=FLOOR)), W).clamp(max=CAP)
    return x[:, 0].sign() * x[:, 1].sign() * exp(exponent)


def _rounded(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function of float32 values rounded once: float64 holds it nearly always on the right side of a tie."""
    return lambda x: function(x.double()).float()


def _of_numpy(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.from_numpy(function(x.numpy()))


def exact(x: Samples, name: str) -> tuple[Answers, Answers]:
    """The exact results of the operation `name` in two float64 terms, head + tail (the tail of a quotient rounded)."""
    a, b = x.unbind(dim=1)
    return two_terms(name, a.double().contiguous(), b.double().contiguous())


def squared_errors(answer: Answers, head: Answers, tail: Answers) -> Float[np.ndarray, " sample"]:
    """`(answer - exact)^2` in float64.

    The head lies near every answer, so answer - head is exact or as good as, and the square is right to a few parts in
    1e16.
    """
    return ((answer.double() - head) - tail).square_().numpy()


@torch.no_grad()
def measure(config: Config, samples: int, seed: int = SEED) -> dict[str, Tally]:
    """The tally of every method over `samples` input pairs. Answers that are the native ones share their squares."""
    compute = methods(config)
    tallies = {method: Tally(samples) for method in compute}
    for x in pieces(config, samples, seed):
        head, tail = exact(x, config.operation)
        native = compute[NATIVE](x)
        shared = squared_errors(native, head, tail)
        tallies[NATIVE].add(shared, len(x))
        for method in [method for method in compute if method != NATIVE]:
            answer = compute[method](x)
            if torch.equal(answer, native):
                tallies[method].add(shared, len(x))
            else:
                equal = int(np.count_nonzero(answer.numpy() == native.numpy()))
                tallies[method].add(squared_errors(answer, head, tail), equal)
    return tallies


@dataclass(frozen=True)
class Powers:
    """Float64 numbers x and pairs of them: how many `x^1` in complex128 gives back, and what its products are.

    Of `numbers`, `kept` have x as the real part of x^1; of half as many pairs, on `explained` Complex128's answer is
    the product of the two real parts, so that all it adds to the native error is what the powers had lost.
    """

    numbers: int
    kept: int
    explained: int


def complex_powers(samples: int, seed: int = SEED) -> Powers:
    """What the complex power does to the first float64 inputs of multiply."""
    (config,) = (c for c in CONFIGS if (c.operation, c.dtype) == ("multiply", torch.float64))
    x = torch.cat(list(pieces(config, samples, seed)))
    power = torch.pow(x.to(torch.complex128), torch.ones(2, dtype=torch.float64)).real
    explained = methods(config)[COMPLEX](x) == power[:, 0] * power[:, 1]
    return Powers(x.numel(), int((power == x).sum()), int(explained.sum()))
