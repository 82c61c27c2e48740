import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]  # where the benchmarks are importable

MEASURE = """
from benchmarks.encoding import draw_and_encode, one_at_a_time, peak_bytes
from workbench.splits import draw
from workbench.task import Problems
tokens = draw_and_encode()
print(tokens.shape, tokens.dtype, peak_bytes())
assert tokens[:1000].tolist() == one_at_a_time(Problems.from_index(draw(1234, 1000)))
"""


def test_five_million_problems_are_drawn_and_encoded_within_a_gibibyte():
    done = subprocess.run([sys.executable, "-c", MEASURE], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    shape, peak = done.stdout.rsplit(maxsplit=1)
    assert shape == "(5000000, 16) uint8"
    assert 80e6 < int(peak) < 2**30  # the tokens alone are 80 MB
