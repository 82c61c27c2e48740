import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]  # where the benchmarks are importable

CHECK = """
import analyses.hill._hill_optimizers_matrix as matrix
matrix.SAMPLES, matrix.TEST_SAMPLES = 640, 50
import benchmarks.hill_optimizers as benchmark
from benchmarks.hill_precision import Cost
streams, units, _ = matrix.build([1])
benchmark.LOOP_STEPS = 2
calls = []
benchmark.seconds = lambda action: (calls.append(action()), 3.0 if len(calls) % 81 == 1 else 0.5)[1]
found = benchmark.timing(streams, units, rounds=2)
assert len(calls) == 162, len(calls)
assert (found.units, found.stack, found.loop) == (len(units), 0.3, 0.25)
assert abs(found.ratio - 0.25 * len(units) / 0.3) < 1e-9
print(benchmark.line("the matrix", benchmark.Timing(80, 0.001, 0.0006, 48.0)))
print(benchmark.anew(benchmark.Timing(80, 0.001, 0.0006, 48.0)))
matrix.SAMPLES = 64_000
print(benchmark.end_to_end(Cost(100, 90), 880, 0.0006))
"""


def test_ratios_are_of_unit_steps_and_the_loop_trains_every_published_pair():
    done = subprocess.run([sys.executable, "-c", CHECK], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    stack, anew, whole = done.stdout.splitlines()
    assert "80 units: 1.000 ms a step of the stack, 600 us" in stack and "48 times as fast" in stack
    assert "3 times, once a snapping" in anew and "144 times as fast" in anew
    assert "100 s, 90 s of CPU for 880 units" in whole and "1.3 hours" in whole and "3 times that" in whole
