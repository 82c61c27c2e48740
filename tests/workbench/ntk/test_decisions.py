import math

import pytest
import torch
from scipy.stats import norm

from workbench.ntk.decisions import bound, networks, ratio, wrong


def of(m, s, t, n, threshold="zero", form="ntk"):
    return float(ratio(torch.tensor(m), torch.tensor(s), torch.tensor(t), n, threshold, form))


@pytest.mark.parametrize(("templates", "found"), [(16, 80.8), (24, 101.4), (44, 155.9), (86, 272.7), (10, 67.2)])
def test_the_hardest_decision_of_known_machines(templates, found):
    """Unwanted bit of one writer at m = 2: addition of 4 and 6 bits, multiplication of 2 and 4, permutation of 10."""
    assert of(2, 0, 1, templates) == pytest.approx(found, abs=0.06)


def test_it_is_the_variance_over_the_squared_distance():
    """m = 2, N = 10, by hand: g = .575272, h = (2 g - 1) / (10 + 2 pi - 1) = .009850, var = .0807387^2."""
    g, h, var = 0.575272, 0.0098503, 0.0807387**2
    assert of(2, 1, 1, 10) == pytest.approx(var / (g - h) ** 2, rel=1e-4)
    assert of(2, 0, 3, 10) == pytest.approx(var / (3 * h) ** 2, rel=1e-4)
    assert of(2, 2, 3, 10, "midpoint") == pytest.approx(var / (2 * g - g / 2) ** 2, rel=1e-4)
    assert of(2, 0, 3, 10, "midpoint") == pytest.approx(4 * var / g**2, rel=1e-4)


def test_what_has_no_variance_is_certain_and_what_has_no_distance_is_never_decided():
    assert of(1, 0, 1, 10) == of(1, 1, 1, 10) == of(0, 0, 0, 10) == 0
    assert of(2, 0, 0, 10) == math.inf  # a bit that no template writes
    assert 0 < of(2, 0, 0, 10, "midpoint") < math.inf
    assert of(9, 1, 9, 9) == math.inf  # the sign rule fails: the mean of a wanted bit is below 0
    assert of(9, 1, 9, 9, "midpoint") < math.inf


def test_wrong_is_the_normal_tail():
    ratios = torch.tensor([1.0, 4.0, math.inf, 0.0]).double()
    assert wrong(ratios, 4).tolist() == pytest.approx([norm.cdf(-2), norm.cdf(-1), 0.5, 0.0], abs=1e-12)


def test_networks_solve_the_sum_of_tails():
    one = torch.tensor([1.0]).double()
    assert networks(one, torch.zeros(1).double(), float(norm.cdf(-2)) * 1.0001) == 4
    assert networks(one, torch.zeros(1).double(), float(norm.cdf(-2)) * 0.9999) == 5
    two = torch.tensor([2.0, 30.0]).double()
    many = torch.tensor([1000.0, 20.0]).double()
    found = networks(two, many.log(), 0.1)

    def failure(count: int) -> float:
        return float((many * torch.from_numpy(norm.cdf(-((count / two.numpy()) ** 0.5)))).sum())

    assert failure(found) <= 0.1 < failure(found - 1)
    assert networks(torch.tensor([math.inf]).double(), torch.zeros(1).double(), 0.4) is None
    assert networks(torch.tensor([5.0]).double(), torch.tensor([2000.0]).double(), 0.1) > 2 * 5 * 1900  # e^2000


def test_the_bound_is_larger_than_the_sum_it_bounds():
    ratios = torch.tensor([80.0]).double()
    assert bound(ratios, 1000.0, 0.1) == pytest.approx(2 * 80 * math.log(10_000))
    assert networks(ratios, torch.tensor([1000.0]).double().log(), 0.1) < bound(ratios, 1000.0, 0.1)
