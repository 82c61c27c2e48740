"""The estimates behind `similarity`: CKA, its strata and intervals, and the assignment."""

import numpy as np
import pytest
import scipy.optimize
import torch

from analyses.learned._similarity_cka import cka, grams, hsic, jackknife, known_mean, left_out, strata, varies, without
from analyses.learned._similarity_heads import assignment
from workbench.statistics import mean_interval


def song(x: np.ndarray, y: np.ndarray) -> float:
    """Equation 5 of Song et al. 2012 as it is written, from n x n matrices of activations that are not centred."""
    n = len(x)
    K, L = ((of @ of.T) * (1 - np.eye(n)) for of in (x, y))
    one = np.ones(n)
    terms = np.trace(K @ L), one @ K @ one * (one @ L @ one) / ((n - 1) * (n - 2)), -2 * one @ K @ L @ one / (n - 2)
    return sum(terms) / (n * (n - 3))


def of(x: np.ndarray, y: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """HSIC of both with both."""
    groups = strata(codes)
    width = max(x.shape[1], y.shape[1])
    padded = [np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one in (x, y)]
    found = grams(torch.from_numpy(np.stack(padded)), groups)
    return hsic(found, found, groups).numpy()


def similarity(x: np.ndarray, y: np.ndarray, codes: np.ndarray) -> float:
    values = of(x, y, codes)
    own, square = values.diagonal(), np.stack([np.square(one).sum(axis=1).mean() for one in (x, y)])
    return float(cka(values, own, own, square, square)[0, 1])


@pytest.fixture
def drawn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4)) + 3
    return x, np.tanh(x[:, :3]) + rng.normal(size=(30, 3)) - 1, rng


def test_one_stratum_is_songs_estimate(drawn):
    x, y, _ = drawn
    found = of(x, y, np.zeros(30, np.int64))
    expected = [[song(x, x), song(x, y)], [song(y, x), song(y, y)]]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_strata_are_weighed_covariances(drawn):
    """Songs's estimate for a stratum with itself, plain covariances (numpy's) for two of them."""
    x, y, _ = drawn
    codes = np.repeat([5, 9, 7, 8], [12, 15, 2, 1])  # the last two are too few
    parts = {5: slice(0, 12), 9: slice(12, 27)}
    weights = {5: 12 / 27, 9: 15 / 27}
    cross = {code: np.cov(x[part].T, y[part].T)[:4, 4:] for code, part in parts.items()}
    expected = sum(weights[code] ** 2 * song(x[part], y[part]) for code, part in parts.items())
    expected += 2 * weights[5] * weights[9] * (cross[5] * cross[9]).sum()
    assert of(x, y, codes)[0, 1] == pytest.approx(expected)


def test_the_estimate_is_unbiased_where_the_plain_one_is_not():
    rng = np.random.default_rng(1)
    codes = np.arange(12) % 2
    found, plain = [], []
    for _ in range(400):
        x, noise = rng.normal(size=(2, 12, 2)) + 5 * codes[:, None]  # strata differ in their means only
        y = 0.5 * x[:, :1] + noise[:, :1]
        found.append(of(x, y, codes)[0, 1])
        plain.append(np.square(np.cov(x.T, y.T)[:2, 2:]).sum())
    low, high = mean_interval(found)
    assert low < 0.25 < high  # the squared covariance within a stratum: 0.5 of the first direction
    assert np.mean(plain) > 1


def test_cka_knows_no_rotation_scale_or_shift(drawn):
    x, y, rng = drawn
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    codes = np.zeros(30, np.int64)
    assert similarity(x, 7 * x @ turn + 100, codes) == pytest.approx(1)
    assert similarity(x @ turn - 2, y, codes) == pytest.approx(similarity(x, y, codes))
    stretched = x * [10, 1, 1, 1]
    assert similarity(x, stretched, codes) < 0.9  # as any linear map would let it


def test_unlike_sites_have_nothing_in_common_on_average():
    rng = np.random.default_rng(2)
    found = [similarity(*rng.normal(size=(2, 40, 10)), np.zeros(40, np.int64)) for _ in range(200)]
    low, high = mean_interval(found)
    assert low < 0 < high and high - low < 0.1


def test_what_does_not_vary_has_no_cka(drawn):
    x, _, _ = drawn
    assert np.isnan(similarity(x, np.full((30, 2), 0.1), np.zeros(30, np.int64)))
    assert np.isnan(similarity(x, np.arange(30.0)[:, None] // 10, np.arange(30) // 10))  # nothing is left in strata
    assert varies(np.array([1e-10, 0.0, -1.0]), np.ones(3)).tolist() == [True, False, False]


def test_effects_are_taken_out_together():
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 4, 50), rng.integers(0, 5, 50)
    effects = rng.normal(size=(4, 3))[first] + rng.normal(size=(5, 3))[second]
    noise = rng.normal(size=(50, 3))
    left = without(torch.from_numpy(np.stack([effects, effects + noise])), first, second).numpy()
    np.testing.assert_allclose(left[0], 0, atol=1e-12)
    design = np.concatenate([np.eye(4)[first], np.eye(5)[second]], axis=1)
    np.testing.assert_allclose(left[1], noise - design @ np.linalg.lstsq(design, noise)[0], atol=1e-12)


def test_the_jackknife_of_a_mean_is_students():
    values = np.array([1.0, 2.0, 4.0, 9.0])
    assert jackknife(left_out(values)) == pytest.approx((4.0, *mean_interval(values.tolist())))
    assert known_mean(np.array([[1.0, np.nan], [3.0, np.nan]]), 0)[0] == 2
    assert np.isnan(known_mean(np.array([[1.0, np.nan], [3.0, np.nan]]), 0)[1])


@pytest.mark.parametrize("n", [1, 2, 4, 9])
def test_the_assignment_is_scipys(n):
    rng = np.random.default_rng(n)
    for _ in range(30):
        scores = rng.normal(size=(n, n))
        np.testing.assert_array_equal(assignment(scores), scipy.optimize.linear_sum_assignment(-scores)[1])
