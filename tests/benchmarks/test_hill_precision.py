import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]  # where the benchmarks are importable

CHECK = """
from benchmarks.hill_precision import Cost, agreeing, cost, report
assert agreeing(300)
import benchmarks.hill_precision as benchmark
measure = benchmark.measure
benchmark.measure = lambda config, samples: measure(config, samples, seed=1)
assert not agreeing(300)
took, result = cost(lambda: sum(range(1000)))
assert result == 499500 and 0 < took.cpu < 10
for line in report(Cost(100, 90), Cost(2, 1.5).times(1800), whole=False):
    print(line)
"""


def test_the_loop_finds_the_same_numbers_and_the_ratio_is_of_like_with_like():
    done = subprocess.run([sys.executable, "-c", CHECK], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    ours, loop, ratio = done.stdout.splitlines()
    assert "100 s, 90 s of CPU (extrapolated" in ours
    assert "60 minutes, 45 minutes of CPU" in loop
    assert ratio == "the loop takes 36.0 times as long, 30.0 times the CPU"
