"""How the report prints its numbers, and the same sums of squares as torch's AVX2 cosine gives on every x86 CPU."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence

ENVIRONMENT = {"MKL_ENABLE_INSTRUCTIONS": "AVX2"}  # read by Intel MKL when a process starts; without effect elsewhere


def printed(value: float) -> str:
    """One number as in tables 4.3 and 4.5: `2e-25`, `4e-03`, `0.30`, `447.0`, `7e+06`; zero is `0.0`."""
    if value == 0:
        return "0.0"
    if value < 1e-2 or not value < 1000:
        return f"{value:.0e}"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


def printed_pair(values: Sequence[float], *, sample: bool) -> str:
    """Mean and standard deviation of the runs: `2e-25 ± 4e-27`; just the mean where they do not vary.

    With `sample` the deviation divides by n - 1 (table 4.3), else by n (table 4.5).
    """
    mean = statistics.fmean(values)
    if sample and len(values) < 2:
        return printed(mean)
    spread = statistics.stdev(values) if sample else statistics.pstdev(values)
    return f"{printed(mean)} ± {printed(spread)}" if spread > 0 else printed(mean)


Asked = tuple[str, int, tuple[float, float]]  # operation, seed, weights


def mse_by_avx2(asked: Sequence[Asked]) -> list[float]:
    """Extrapolation error of units of section 4.5 in a process whose torch keeps to MKL's AVX2 code.

    On CPUs with AVX-512, MKL's cosine and sine round other results than its AVX2 code does, in about 0.2% of samples;
    the report's numbers are those of AVX2.
    """
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=json.dumps(list(asked)),
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    """Answer `mse_by_avx2` on standard output."""
    import torch

    from analyses.hill._hill_initialisation_runs import EXTREME, mse
    from analyses.hill._report_protocol import SAMPLES, problem_sets

    asked = json.load(sys.stdin)
    together: dict[tuple[str, int], list[int]] = {}
    for place, (name, seed, _) in enumerate(asked):
        together.setdefault((name, seed), []).append(place)
    found = [0.0] * len(asked)
    for (name, seed), places in together.items():
        W = torch.tensor([asked[place][2] for place in places], dtype=torch.float64)
        errors = mse(name, W, problem_sets([name], EXTREME, seed, SAMPLES)[name], "complex")
        for place, error in zip(places, errors.tolist(), strict=True):
            found[place] = error
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
