import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]  # where the benchmarks are importable

CHECK = """
import torch
import benchmarks.ntk as benchmark
from benchmarks.ntk import Rates, agreeing, addition, multiplication, rates, report, sample
assert agreeing(addition(4), 100) and agreeing(multiplication(2), 16)
assert [column.tolist() for column in sample(addition(2), 4)] == [[0, 1, 2, 3], [0, 0, 0, 0]]
benchmark.PLAIN, benchmark.LOOP = 8, 2
found = rates(addition(3), 64, rounds=1)
assert found.over_loop == found.sliced / found.loop > 0 and found.over_plain == found.sliced / found.plain
other = benchmark.plain
benchmark.plain = lambda algorithm, numbers: 1 - other(algorithm, numbers)
assert not agreeing(addition(2), 4)
for line in report(addition(10), 65536, Rates(2**20, 1024, 32, 1024, 32768)):
    print(line)
"""


def test_all_three_end_in_the_same_states_and_the_ratio_is_of_like_with_like():
    done = subprocess.run([sys.executable, "-c", CHECK], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    ours, plain, loop = done.stdout.splitlines()
    assert ours == (
        "add, 10 bits, 65,536 pairs: 1,048,576 pairs a second sliced, 0.06 s for these, 1.0 s for all 1,048,576"
    )
    assert plain == "  the plain machine: 1,024 pairs a second; sliced is 1,024 times as fast"
    assert loop == (
        "  the loop: 32.00 pairs a second, 9.1 hours for all (extrapolated); sliced is 32,768 times as fast"
    )
