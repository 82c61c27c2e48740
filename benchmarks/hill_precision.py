"""The analysis `hill-precision` against a plain loop over 50-digit decimals, end to end at 100,000,000 pairs a row.

python -m benchmarks.hill_precision [--full]

The loop is always extrapolated from a timed part. So is the analysis without --full, which runs it whole (minutes).
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import torch

from analyses.hill._hill_precision_measure import CONFIGS, FULL, SEED, Config, measure, methods, pieces
from analyses.hill.hill_precision import Options, hill_precision
from benchmarks.encoding import peak_bytes

PART = 1_000_000  # pairs a row of the analysis that are timed without --full
LOOP_PART = 12_500  # pairs a row of the loop that are timed


@dataclass(frozen=True)
class Cost:
    """What something took: seconds on the clock, and seconds of CPU, which other processes disturb less."""

    wall: float
    cpu: float

    def times(self, factor: float) -> "Cost":
        """The same work so many times."""
        return Cost(self.wall * factor, self.cpu * factor)


def cost(work: Callable[[], Any]) -> tuple[Cost, Any]:
    """What `work` takes, and what it returns."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu), result


@torch.no_grad()
def plain_loop(config: Config, samples: int, seed: int = SEED) -> dict[str, tuple[float, float, float]]:
    """Mean, maximum and 99.99% quantile of the squared error by method: the same methods, the exact result by decimals.

    Pair by pair, the result to 50 digits becomes its nearest float64 and the rest; all squared errors are kept.
    """
    context = Context(prec=50)
    exact = getattr(context, config.operation)
    compute, squares = methods(config), {}
    for x in pieces(config, samples, seed):
        head, tail = np.empty(len(x)), np.empty(len(x))
        for place, (a, b) in enumerate(x.tolist()):
            result = exact(Decimal(a), Decimal(b))
            head[place] = float(result)
            tail[place] = float(context.subtract(result, Decimal(head[place])))
        for name, method in compute.items():
            errors = (method(x).double().numpy() - head) - tail
            squares.setdefault(name, []).append(errors * errors)
    whole = {name: np.concatenate(parts) for name, parts in squares.items()}
    return {name: (float(s.mean()), float(s.max()), float(np.quantile(s, 0.9999))) for name, s in whole.items()}


def analysis_part(samples: int) -> dict[Config, Any]:
    """The measuring of the analysis, which is all of it that grows with the samples."""
    return {config: measure(config, samples) for config in CONFIGS}


def agreeing(samples: int) -> bool:
    """Whether loop and analysis find the same on the same samples."""
    for config in CONFIGS:
        ours = measure(config, samples)
        for name, (mean, largest, quantile) in plain_loop(config, samples).items():
            pairs = ((ours[name].mean, mean), (ours[name].maximum, largest), (ours[name].quantile()[0], quantile))
            if not all(abs(a - b) <= 1e-12 * b for a, b in pairs):
                return False
    return True


def report(ours: Cost, loop: Cost, whole: bool) -> list[str]:
    """The lines printed."""
    how = "measured whole" if whole else f"extrapolated from {PART:,} pairs a row"
    return [
        f"hill-precision, 8 rows of {FULL:,} pairs: {ours.wall:.0f} s, {ours.cpu:.0f} s of CPU ({how})",
        f"a loop over 50-digit decimals: {loop.wall / 60:.0f} minutes, {loop.cpu / 60:.0f} minutes of CPU "
        f"(extrapolated from {LOOP_PART:,} pairs a row)",
        f"the loop takes {loop.wall / ours.wall:.1f} times as long, {loop.cpu / ours.cpu:.1f} times the CPU",
    ]


def main() -> None:
    """Print what both take and their ratio."""
    torch.set_num_threads(1)
    if not agreeing(LOOP_PART):
        raise SystemExit("the loop finds other numbers")
    loop, _ = cost(lambda: [plain_loop(config, LOOP_PART) for config in CONFIGS])
    if whole := "--full" in sys.argv[1:]:
        ours, _ = cost(lambda: hill_precision.function([], Options(full=True)))
    else:
        ours = cost(lambda: analysis_part(PART))[0].times(FULL / PART)
    for line in report(ours, loop.times(FULL / LOOP_PART), whole):
        print(line)
    print(f"peak memory {peak_bytes() / 2**20:,.0f} MiB")


if __name__ == "__main__":
    main()
