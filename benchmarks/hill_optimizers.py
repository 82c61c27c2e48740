"""The optimizer matrix as one stack, against a plain loop that trains one unit at a time, in the same run.

A unit-step of the loop is what the report's code does for a batch: forward by torch's functions, complex powers,
autograd, torch.optim; its time is the mean over the 80 pairs of optimizer setting and operation.

python -m benchmarks.hill_optimizers [--full]

With --full the whole analysis `hill-optimizers --full` is run and timed (minutes).
"""

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from analyses.hill import _hill_optimizers_matrix as matrix
from analyses.hill.hill_optimizers import FULL_SEEDS, Options, hill_optimizers
from benchmarks.encoding import peak_bytes
from benchmarks.hill_fitting import one_unit, seconds
from benchmarks.hill_precision import Cost, cost
from workbench.hill.fitting import Stack, Stream, Unit

LOOP_STEPS, ROUNDS = 20, 7


@dataclass(frozen=True)
class Timing:
    """Seconds of CPU of one step of a whole stack and of one step of the loop for one unit; medians over rounds."""

    units: int
    stack: float
    loop: float
    ratio: float  # of the loop's unit-step to the stack's: the median of the rounds' ratios


def timing(streams: Sequence[Stream], units: Sequence[Unit], rounds: int = ROUNDS) -> Timing:
    """Time the stack of `units` by whole epochs, and between them the loops of the first 80 of them."""
    first = units[: len(matrix.SETTINGS) * len(matrix.OPERATIONS)]
    loops = [one_unit(streams[unit.streams[0]], unit, LOOP_STEPS)[0] for unit in first]
    steps, stack = len(streams[0].order(0)), Stack(streams, units)
    stack.epoch()
    whole, single = [], []
    for _ in range(rounds):
        whole.append(seconds(stack.epoch) / steps)
        single.append(statistics.fmean(seconds(loop) for loop in loops) / LOOP_STEPS)
    ratios = [one * len(units) / every for one, every in zip(single, whole, strict=True)]
    return Timing(len(units), statistics.median(whole), statistics.median(single), statistics.median(ratios))


def line(what: str, found: Timing) -> str:
    """The sentence printed of one stack."""
    return (
        f"{what}, {found.units} units: {found.stack * 1e3:.3f} ms a step of the stack, {found.loop * 1e6:.0f} us a "
        f"step of the plain loop for one unit: {found.ratio:,.0f} times as fast a unit-step"
    )


def anew(found: Timing) -> str:
    """The sentence printed of what the report's code does: it trains a unit again for each way to evaluate it."""
    ways = len(matrix.SNAPS)
    return (
        f"the report's code trains each of these units {ways} times, once a snapping; the stack trains it once and "
        f"evaluates it {ways} times: {ways * found.ratio:,.0f} times as fast a step of a published cell"
    )


def end_to_end(took: Cost, units: int, loop: float) -> str:
    """The sentence printed of the whole analysis: the loop would train each published cell by itself, thrice a unit."""
    steps = matrix.FULL_EPOCHS * matrix.SAMPLES // matrix.BATCH
    one, published = loop * steps, len(matrix.SETTINGS) * len(matrix.OPERATIONS)
    return (
        f"hill-optimizers --full: {took.wall:.0f} s, {took.cpu:.0f} s of CPU for {units} units; the loop would take "
        f"{one * published / 3600:.1f} hours of CPU for the {published} published ones alone (extrapolated), "
        f"{len(matrix.SNAPS)} times that as published, where each snapping trains anew"
    )


def main() -> None:
    """Print the measurements."""
    torch.set_num_threads(1)
    streams, units, _ = matrix.build(range(FULL_SEEDS))
    published = len(matrix.SETTINGS) * len(matrix.OPERATIONS)
    alone = timing(streams[: len(matrix.OPERATIONS)], units[:published])
    print(line("the published matrix alone", alone))
    print(anew(alone))
    whole = timing(streams, units, rounds=3)
    print(line("all that hill-optimizers --full trains", whole))
    if "--full" in sys.argv[1:]:
        took, _ = cost(lambda: hill_optimizers.function([], Options(full=True)))
        print(end_to_end(took, len(units), alone.loop))
    print(f"peak memory {peak_bytes() / 2**20:,.0f} MiB")


if __name__ == "__main__":
    main()
