"""Where each number format makes the constraint's factors exact: found by search, and every number around it tried."""

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import torch
from torch import Tensor

from workbench.hill.constraint import constrain, constrain_snapped, saturation
from workbench.hill.formats import BITS, ulps

FORMATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
AROUND = 2**20  # numbers tried on either side of a threshold where a format has too many to try all
CHUNK = 2**20
INALU = 20.0  # iNALU's regularizer pushes |W_hat| and |M_hat| past this (Schloer, Ring & Hotho 2020; report, 2.2)

# What must hold from a threshold on, and nowhere below it, by name.
FACTORS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh(x) = 1": lambda x: torch.tanh(x) == 1,
    "sigmoid(x) = 1": lambda x: torch.sigmoid(x) == 1,
    "sigmoid(-x) = 0": lambda x: torch.sigmoid(-x) == 0,
}


def name(dtype: torch.dtype) -> str:
    """The format's name, as in `float32`."""
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Threshold:
    """The smallest positive number of a format at which one factor is exact, and how that was checked.

    `tried` positive numbers, `everything` when these are all finite ones of the format; at `exceptions` of them the
    factor is exact below the threshold or not exact above. `rounded` is what a correctly rounded function would give.
    """

    dtype: torch.dtype
    factor: str
    found: float
    rounded: float
    tried: int
    exceptions: int
    everything: bool


def thresholds(dtype: torch.dtype, full: bool) -> list[Threshold]:
    """The three thresholds of a format; `full` tries all float32 numbers too."""
    found = saturation(dtype)
    values = (found.tanh_one, found.sigmoid_one, found.sigmoid_zero)
    return [
        Threshold(dtype, factor, value, correctly_rounded(dtype, factor), *tried(dtype, FACTORS[factor], value, full))
        for factor, value in zip(FACTORS, values, strict=True)
    ]


def tried(dtype: torch.dtype, exact: Callable[[Tensor], Tensor], threshold: float, full: bool) -> tuple[int, int, bool]:
    """(numbers tried, exceptions, whether these are all positive finite numbers of the format)."""
    bits = BITS[dtype]
    last = int(torch.tensor(torch.finfo(dtype).max, dtype=dtype).view(bits))
    at = int(torch.tensor(threshold, dtype=dtype).view(bits))
    everything = bits is torch.int16 or (full and bits is torch.int32)
    first, last = (1, last) if everything else (max(1, at - AROUND), min(last, at + AROUND - 1))
    exceptions = 0
    for start in range(first, last + 1, CHUNK):
        places = torch.arange(start, min(start + CHUNK, last + 1), dtype=bits if bits is torch.int64 else torch.int32)
        exceptions += int((exact(places.to(bits).view(dtype)) != (places >= at)).sum())
    return last - first + 1, exceptions, everything


def correctly_rounded(dtype: torch.dtype, factor: str) -> float:
    """The threshold that a function rounded once, to nearest with ties to even, would have in the format.

    With p significant bits, 1 is what everything from 1 - 2^-(p+1) on rounds to, the tie included: there tanh is at
    `ln(2^(p+2) - 1) / 2` and sigmoid at `ln(2^(p+1) - 1)`. sigmoid(-x) rounds to 0 from half the smallest subnormal
    number 2^s downward, at `ln(2^(1-s) - 1)`.
    """
    digits, bits = 1 - round(math.log2(torch.finfo(dtype).eps)), BITS[dtype]
    smallest = round(math.log2(float(torch.tensor(1, dtype=bits).view(dtype))))
    context = decimal.Context(prec=60)
    exact = {
        "tanh(x) = 1": context.divide(context.ln(Decimal(2 ** (digits + 2) - 1)), Decimal(2)),
        "sigmoid(x) = 1": context.ln(Decimal(2 ** (digits + 1) - 1)),
        "sigmoid(-x) = 0": context.ln(Decimal(2 ** (1 - smallest) - 1)),
    }[factor]
    near = torch.tensor(float(exact), dtype=dtype)
    while Decimal(float(near)) < exact:
        near = torch.nextafter(near, torch.tensor(math.inf, dtype=dtype))
    while Decimal(float(below := torch.nextafter(near, torch.tensor(0.0, dtype=dtype)))) >= exact:
        near = below
    return float(near)


def first_hundredth(dtype: torch.dtype, factor: str, found: float) -> float:
    """The first multiple of 0.01 which, as a number of the format, reaches the threshold: what was published."""
    step = max(math.floor(100 * found) - 2, 0)
    while float(torch.tensor(step / 100, dtype=dtype)) < found:
        step += 1
    return step / 100


@dataclass(frozen=True)
class AtTwenty:
    """The factors at raw values of 20 in one format, the weight, its distance from 1 in ulps, and it snapped."""

    dtype: torch.dtype
    tanh: float
    sigmoid: float
    W: float
    ulps: int
    snapped: float


def at_twenty(dtype: torch.dtype) -> AtTwenty:
    """The raw values (20, 20) of iNALU in a format."""
    raw = torch.full((1,), INALU, dtype=dtype)
    W = constrain(raw, raw)
    apart = int(ulps(W, torch.ones_like(W)))
    snapped = constrain_snapped(raw, raw).item()
    return AtTwenty(dtype, torch.tanh(raw).item(), torch.sigmoid(raw).item(), W.item(), apart, snapped)
