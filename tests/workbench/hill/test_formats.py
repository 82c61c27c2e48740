import math

import numpy as np
import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.formats import BITS, UNCOUNTED, ulps


def distance(a, b, dtype=torch.float64):
    return int(ulps(torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype)))


@pytest.mark.parametrize("dtype", BITS)
def test_neighbours_are_one_apart_everywhere(dtype):
    info = torch.finfo(dtype)
    for start in (1.0, -1.0, 2.0, 0.0, info.tiny, info.smallest_normal, -info.max, info.max):
        at = torch.tensor(start, dtype=dtype)
        for towards in (torch.inf, -torch.inf):
            assert int(ulps(at, torch.nextafter(at, torch.full_like(at, towards)))) == 1


def test_distances_worked_by_hand():
    assert distance(1.0, 1.0 + 4 * 2.0**-52) == 4
    assert distance(1.0, 1.0 - 4 * 2.0**-53) == 4
    assert distance(1.0, 2.0) == 2**52
    assert distance(1.0, 2.0, torch.float16) == 2**10
    assert distance(5e-324, -5e-324) == 2  # over one zero
    assert distance(0.0, -0.0) == 0
    assert distance(math.inf, torch.finfo(torch.float64).max) == 1
    assert distance(-1.0, 1.0, torch.float32) == 2 * 127 * 2**23  # each 127 binades of 2**23 numbers from 0


def test_a_million_random_distances_agree_with_numpy_nextafter_steps():
    rng = np.random.default_rng(0)
    a = rng.standard_normal(1_000_000) * 10.0 ** rng.integers(-300, 300, 1_000_000)
    b = a
    for _ in range(3):
        b = np.nextafter(b, np.inf)
    assert (ulps(torch.from_numpy(a), torch.from_numpy(b)) == 3).all()
    assert (ulps(torch.from_numpy(b), torch.from_numpy(a)) == 3).all()


def test_what_cannot_be_counted_says_so():
    assert distance(math.nan, math.nan) == 0
    assert distance(math.nan, 1.0) == distance(1.0, math.nan) == UNCOUNTED
    assert distance(-math.inf, math.inf) == UNCOUNTED  # more than int64 holds
    assert distance(-2.0, 2.0) == UNCOUNTED  # 2**62 numbers on each side of 0
    assert distance(-math.inf, math.inf, torch.float32) == 2 * (0xFF << 23)


def test_formats_that_differ_or_are_no_floats_are_refused():
    with pytest.raises(BadInput, match=r"torch\.float32 and torch\.float64"):
        ulps(torch.zeros(1), torch.zeros(1, dtype=torch.float64))
    with pytest.raises(BadInput, match=r"torch\.int64"):
        ulps(torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
