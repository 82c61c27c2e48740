"""The squared errors of `hill-precision` once more, by 50-digit decimal arithmetic, on the first samples of a row."""

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import torch
from jaxtyping import Float

from analyses.hill._hill_precision_measure import Config, exact, methods, pieces, squared_errors

DIGITS = 50
# Both the error and its square round a few times in float64: 1e-15 is nine roundings of 2^-53. Written before the run.
TOLERANCE = 1e-15


@dataclass(frozen=True)
class Agreement:
    """Of `n` squared errors, how many are exactly equal, and the largest relative difference."""

    n: int
    equal: int
    largest: float

    @property
    def passed(self) -> bool:
        """Whether every difference is within TOLERANCE."""
        return self.largest <= TOLERANCE


def exact_results(operation: str, x: Float[np.ndarray, "sample 2"], context: decimal.Context) -> list[Decimal]:
    """The result of every sample to the context's digits, from inputs converted exactly."""
    compute: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
        "add": context.add,
        "subtract": context.subtract,
        "multiply": context.multiply,
        "divide": context.divide,
    }
    return [compute[operation](Decimal(a), Decimal(b)) for a, b in x.tolist()]


def decimal_squares(
    operation: str, x: Float[np.ndarray, "sample 2"], answers: dict[str, Float[np.ndarray, " sample"]]
) -> dict[str, list[Decimal]]:
    """`(answer - exact)^2` of every method, nothing rounded to fewer than DIGITS digits; `answers` may be float32."""
    context = decimal.Context(prec=DIGITS)
    results = exact_results(operation, x.astype(np.float64), context)
    found: dict[str, list[Decimal]] = {}
    for method, answer in answers.items():
        errors = [context.subtract(Decimal(a), e) for a, e in zip(answer.astype(float).tolist(), results, strict=True)]
        found[method] = [context.multiply(error, error) for error in errors]
    return found


@torch.no_grad()
def check(config: Config, samples: int, seed: int) -> dict[str, Agreement]:
    """How the error-free squares of every method agree with 50-digit ones on the first `samples` of a row."""
    compute = methods(config)
    x = torch.cat(list(pieces(config, samples, seed)))
    answers = {method: function(x) for method, function in compute.items()}
    head, tail = exact(x, config.operation)
    free = {method: squared_errors(answer, head, tail) for method, answer in answers.items()}
    long = decimal_squares(config.operation, x.numpy(), {name: answer.numpy() for name, answer in answers.items()})
    return {method: agreement(free[method], long[method]) for method in compute}


def agreement(free: Float[np.ndarray, " sample"], long: list[Decimal]) -> Agreement:
    """Compare float64 squares with decimal ones; where the exact square is 0 any other value is infinitely far off."""
    context = decimal.Context(prec=DIGITS)
    apart = [_apart(Decimal(value), exact, context) for value, exact in zip(free.tolist(), long, strict=True)]
    equal = sum(value == float(exact) for value, exact in zip(free.tolist(), long, strict=True))
    return Agreement(len(apart), equal, max(apart, default=0.0))


def _apart(value: Decimal, exact: Decimal, context: decimal.Context) -> float:
    if not exact:
        return 0.0 if not value else float("inf")
    return abs(float(context.divide(context.subtract(value, exact), exact)))
