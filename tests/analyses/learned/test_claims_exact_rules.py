import pytest

from analyses._rows import Share
from analyses.learned import _claims_exact_rules as rules
from analyses.learned import _claims_rules as learned


def test_every_is_refuted_by_one_exception():
    assert [rules.every(6, 6), rules.every(5, 6)] == ["supported", "refuted"]


def test_identical_needs_a_large_sample_and_no_exception():
    # 38,411 is the least n whose Wilson interval without an exception, n / (n + 1.96^2), is above 0.9999.
    found = [rules.identical(Share(n, of)) for n, of in ((38_411, 38_411), (38_410, 38_410), (99_999, 100_000))]
    assert found == ["supported", "open", "refuted"]


@pytest.mark.parametrize(
    ("right", "n", "short", "whole"),
    [  # Wilson's lower ends of 73 of 73 and 72 of 72 are 0.9500 and 0.9493
        (73, 73, "supported", "supported"),
        (72, 72, "open", "open"),
        (60, 100, "open", "refuted"),
    ],
)
def test_mostly_is_refuted_by_a_whole_run_only(right, n, short, whole):
    assert rules.mostly(Share(right, n), rules.RELIABLE, whole=False) == short
    assert rules.mostly(Share(right, n), rules.RELIABLE, whole=True) == whole


def test_rarely_is_below_a_twentieth():
    # of 0 of 73 the upper end is 0.04999, of 0 of 72 it is 0.0507, of 12 of 100 the lower end is 0.07
    found = [rules.rarely(Share(right, n)) for right, n in ((0, 74), (0, 72), (12, 100))]
    assert found == ["supported", "open", "refuted"]


ALL, NONE, SOME = Share(8, 8), Share(0, 8), Share(4, 8)


def test_apart_and_enough_alone_compare_intervals():
    assert [rules.apart(*p) for p in ((ALL, NONE), (NONE, ALL), (SOME, ALL))] == ["supported", "refuted", "open"]
    found = [rules.enough_alone(*pair) for pair in ((NONE, ALL), (ALL, ALL), (SOME, ALL))]
    assert found == ["refuted", "supported", "open"]


@pytest.mark.parametrize(
    ("there", "elsewhere", "verdict"),
    [(ALL, NONE, "supported"), (NONE, ALL, "refuted"), (ALL, Share(1, 8), "open"), (NONE, NONE, "open")],
)
def test_failures_are_only_there_if_none_is_elsewhere(there, elsewhere, verdict):
    assert rules.only_there(there, elsewhere) == verdict


def test_failures_begin_further_out():
    near = Share(0, 72)
    found = [rules.begins(*pair) for pair in ((near, Share(6, 24)), (near, Share(1, 24)), (Share(1, 72), ALL))]
    assert found == ["supported", "open", "refuted"]


def test_circuits_lock_piecewise_only_beyond_what_single_units_do():
    most = Share(95, 100)
    pairs = ((most, Share(35, 100)), (most, most), (Share(30, 100), Share(0, 100)))
    assert [rules.piecewise(*pair) for pair in pairs] == ["supported", "open", "refuted"]


def test_exact_needs_a_control_that_fails():
    assert [rules.exact(*pair) for pair in ((0, 5), (0, 0), (1, 5))] == ["supported", "open", "refuted"]


def test_logarithmic_keeps_the_templates_a_doubling():
    linear, squared = [1.0, 1.0, 10.5 / 11.5], [1.0, 31.0]  # l^2 templates for 2^l inputs: 31 times as many a doubling
    found = [rules.logarithmic(growth) for growth in (linear, [1.0, 1.5], squared)]
    assert found == ["supported", "open", "refuted"]


def test_a_condition_is_refuted_by_a_flip_it_does_not_tell_and_by_one_that_it_tells_in_vain():
    found = [rules.foretold(*numbers) for numbers in ((2189, 0, 0), (0, 0, 0), (2189, 1, 0), (0, 0, 1))]
    assert found == ["supported", "open", "refuted", "refuted"]


def test_an_upper_bound_is_refuted_only_from_above():
    found = [rules.at_most_order(e, 2.0) for e in ([(1.0, 1.2)], [(1.0, 1.2), (1.8, 2.3)], [(2.1, 2.4)])]
    assert found == ["supported", "open", "refuted"]


@pytest.mark.parametrize(
    ("picked", "stable", "verdict"),
    [(0.02, True, "supported"), (0.04, True, "open"), (0.01, False, "refuted"), (None, False, "refuted")],
)
def test_the_published_rate_must_be_stable_and_the_highest(picked, stable, verdict):
    assert learned.highest_stable(picked, published_stable=stable) == verdict
