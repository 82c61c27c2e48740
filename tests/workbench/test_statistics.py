import itertools

import pytest
import scipy.stats

from workbench.statistics import mean_interval, student_quantile, wilson


@pytest.mark.parametrize("n", [1, 2, 7, 100, 4_991, 10_000])
def test_wilson_is_scipys(n: int) -> None:
    for successes in sorted({0, 1, n // 3, n // 2, n - 1, n}):
        reference = scipy.stats.binomtest(successes, n).proportion_ci(confidence_level=0.95, method="wilson")
        assert wilson(successes, n) == pytest.approx((reference.low, reference.high), abs=1e-12)


def test_wilson_stays_within_0_and_1_and_holds_the_proportion() -> None:
    for n, successes in itertools.product((1, 3, 50), (0, 1, 3, 50)):
        if successes <= n:
            low, high = wilson(successes, n)
            assert 0 <= low <= successes / n <= high <= 1


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_wilson_refuses_counts_that_are_none(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes of"):
        wilson(successes, n)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 11, 30, 101])
def test_student_quantile_is_scipys(freedom: int) -> None:
    assert student_quantile(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=1e-11)


def test_mean_interval_is_scipys() -> None:
    values = [0.9694, 0.9764, 0.9842]
    mean, error = sum(values) / 3, scipy.stats.sem(values)
    assert mean_interval(values) == pytest.approx(scipy.stats.t.interval(0.95, 2, loc=mean, scale=error), abs=1e-12)


def test_one_value_has_no_interval() -> None:
    with pytest.raises(ValueError, match="1 values"):
        mean_interval([0.5])
