"""Draw and encode 5,000,000 problems: seconds, peak memory, and the ratio to pure Python in the same run.

python -m benchmarks.encoding
"""

import re
import resource
import sys
import time
from pathlib import Path

import numpy as np

from workbench.splits import draw
from workbench.task import CHARACTERS, Problems, encode

COUNT = 5_000_000
BASELINE_COUNT = 50_000


def peak_bytes() -> int:
    """Largest resident memory of this process so far.

    Linux's VmHWM where there is one: ru_maxrss there also counts the parent before this program was started.
    """
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def draw_and_encode(count: int = COUNT, data_seed: int = 1234) -> np.ndarray:
    """Tokens of `count` problems without repeats, `[problem, 16]` uint8."""
    return encode(Problems.from_index(draw(data_seed, count)))


def one_at_a_time(problems: Problems) -> list[list[int]]:
    """The baseline: the same tokens by Python's own formatting."""
    ids = {character: token for token, character in enumerate(CHARACTERS)}
    rows = zip(problems.a.tolist(), problems.b.tolist(), problems.subtract.tolist(), strict=True)
    return [
        [ids[c] for c in f"{a:04d}{'-' if subtract else '+'}{b:04d}={a - b if subtract else a + b:+06d}"]
        for a, b, subtract in rows
    ]


def main() -> None:
    """Print the measurements."""
    start = time.perf_counter()
    tokens = draw_and_encode()
    seconds, peak = time.perf_counter() - start, peak_bytes()
    drawn = Problems.from_index(draw(1234, BASELINE_COUNT))
    start = time.perf_counter()
    slow = one_at_a_time(drawn)
    baseline = (time.perf_counter() - start) / BASELINE_COUNT * COUNT
    if slow != tokens[:BASELINE_COUNT].tolist():
        raise SystemExit("the baseline encodes other tokens")
    print(f"{COUNT:,} problems drawn and encoded in {seconds:.2f} s, peak memory {peak / 2**20:,.0f} MiB")
    print(f"pure Python encoding alone would take {baseline:.1f} s: {baseline / seconds:.1f} times as long")


if __name__ == "__main__":
    main()
