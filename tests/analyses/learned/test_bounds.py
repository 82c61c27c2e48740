import math

import pytest

from analyses.learned._bounds import mean_bounds


def test_mean_of_ends_worked_by_hand():
    assert mean_bounds([0.1, 0.3], [0.5, 0.9]) == pytest.approx((0.2, 0.7))
    assert mean_bounds([0.1, 0.3], [0.5, 0.9], [3, 1]) == pytest.approx((0.15, 0.6))
    assert mean_bounds([0.4], [0.6]) == (0.4, 0.6)


def test_no_interval_where_a_model_has_none():
    assert mean_bounds([], []) == (None, None)
    assert mean_bounds([0.1, math.nan], [0.2, math.nan]) == (None, None)
