"""Closed forms against integrals, dense solves and numbers worked elsewhere."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from workbench.ntk.kernel import gain, kernel, leak, mean, midpoint, padding, positive, ridge, variance

FORMS = ("ntk", "nngp")


def dense(u, v, form):
    """The kernel as Cho & Saul (2009) and Jacot et al. (2018) have it: layer by layer, for rows of u and v."""
    n = u.shape[1]
    lengths = np.linalg.norm(u, axis=1)[:, None] * np.linalg.norm(v, axis=1)
    t = np.arccos(np.clip(u @ v.T / np.where(lengths == 0, 1, lengths), -1, 1))
    last = lengths / n * (np.sin(t) + (np.pi - t) * np.cos(t)) / (2 * np.pi)
    first = (u @ v.T) / n * (np.pi - t) / (2 * np.pi)  # input kernel times that of the derivative
    return last + first if form == "ntk" else last


def encoded(matches):
    """Rows of 0 and 1 as unit vectors; all zero stays so."""
    return matches / np.sqrt(np.maximum(matches.sum(axis=1, keepdims=True), 1))


def problem(seed):
    """N, random labels with rows of zeros, and states that match 0, 1, 2, ... all templates."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 61))
    labels = (rng.random((n, 7)) < rng.random(7)) * (rng.random((n, 1)) < 0.8)
    matches = np.array([rng.permutation(n) < m for m in range(n + 1)], dtype=float)
    return n, labels.astype(float), matches


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", [0.0, 0.3, 1.2, math.pi / 2, 2.8])
def test_the_kernels_are_the_expectations_they_stand_for(form, t):
    """`E[relu(w u) relu(w v)] / N` in polar coordinates, and `<u, v> P(w u > 0, w v > 0) / N` for the first layer."""
    u, v = torch.tensor([[2.0, 0.0, 0.0]]), 3 * torch.tensor([[math.cos(t), math.sin(t), 0.0]], dtype=torch.float64)
    around, _ = quad(lambda a: math.cos(a) * math.cos(a - t), t - math.pi / 2, math.pi / 2)
    expected = 6 / 3 * around / math.pi  # the radius gives E[r^2] = 2, the angle 1 / (2 pi)
    if form == "ntk":
        expected += 6 * math.cos(t) / 3 * (math.pi - t) / (2 * math.pi)
    assert kernel(u, v, form).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_the_kernel_of_zero_is_zero_and_of_opposites_too(form):
    u = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    found = kernel(u, torch.cat([u, -u]), form)
    assert found[0].tolist() == [0, 0, 0, 0] and found[1, 0] == 0
    assert found[1, 3].item() == pytest.approx(0, abs=1e-7)  # arccos loses half the digits at -1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(20))
def test_mean_and_variance_are_those_of_a_dense_solve(form, seed):
    n, labels, matches = problem(seed)
    x, eye = encoded(matches), np.eye(n)
    assert np.abs(kernel(torch.tensor(x), torch.tensor(eye), form).numpy() - dense(x, eye, form)).max() < 1e-15
    weights = np.linalg.solve(dense(eye, eye, form), dense(eye, x, form))
    m = torch.tensor(matches.sum(axis=1).astype(int))
    ours = mean(m, torch.tensor(matches @ labels), torch.tensor(labels.sum(axis=0)), n, form)
    assert np.abs(ours.numpy() - weights.T @ labels).max() < 1e-12
    inside, across, own = dense(eye, eye, "nngp"), dense(eye, x, "nngp"), np.diag(dense(x, x, "nngp"))
    # Lee et al. (2019), eq. 16; for "nngp" its weights make it the posterior
    spread = own + np.einsum("is,ij,js->s", weights, inside, weights) - 2 * (weights * across).sum(axis=0)
    assert np.abs(variance(m, n, form).numpy() - spread).max() < 1e-14


def test_numbers_worked_elsewhere():
    """From the public record of an independent check against neural_tangents 0.6.5."""
    m = torch.tensor([2, 3, 5, 10, 100])
    assert gain(m).tolist() == pytest.approx([0.575272, 0.443102, 0.324442, 0.216846, 0.062307], abs=6e-7)
    assert (m - 1 / gain(m)).tolist() == pytest.approx([0.262, 0.743, 1.918, 5.388, 83.95], abs=6e-3)
    many = 10**7
    assert [many * variance(torch.tensor(k), many).item() for k in (2, 10)] == pytest.approx([0.0635, 0.1234], abs=6e-5)
    assert (ridge("ntk"), ridge("nngp")) == (2 * math.pi - 1, math.pi - 1)
    for form, on, off in (("ntk", 0.5654, -0.0099), ("nngp", 0.6179, -0.0233)):  # 10 templates, 2 of them match
        found = mean(torch.tensor(2), torch.tensor([1, 0]), torch.tensor([1, 1]), 10, form)
        assert found.tolist() == pytest.approx([on, off], abs=6e-5)


@pytest.mark.parametrize("form", FORMS)
def test_no_match_and_one_match(form):
    m = torch.tensor([0, 1])
    assert gain(m, form).tolist() == [0, 1] and leak(m, 9, form).tolist() == [0, 0]
    assert variance(m, 9, form).tolist() == [0, 0]
    assert mean(m, torch.tensor([[0, 0], [1, 0]]), torch.tensor([9, 4]), 9, form).tolist() == [[0, 0], [1, 0]]
    assert positive(m, m, torch.tensor([9, 9]), 9, form).tolist() == [False, True]


@pytest.mark.parametrize("form", FORMS)
def test_the_gain_falls_as_one_over_the_root(form):
    """`p_m - 1 -> k pi / 2 / sqrt(m)`, k the layers that are trained."""
    m = torch.tensor([10**10])
    limit = math.pi / 2 * (2 if form == "ntk" else 1) / ridge(form)
    assert (gain(m, form) * 1e5).item() == pytest.approx(limit, rel=1e-4)
    every = torch.arange(1, 5000)
    assert bool((gain(every, form).diff() < 0).all()) and bool((leak(every, 50, form).diff() > 0).all())


COUNTS = st.integers(1, 400)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FORMS), COUNTS, COUNTS, COUNTS, COUNTS)
def test_the_sign_rule_is_the_sign_of_the_mean(form, templates, m, written, matched):
    assume(m <= templates and written <= templates and matched <= min(m, written))
    counts = torch.tensor([matched, 0])
    y = mean(torch.tensor(m), counts, torch.tensor([written, written]), templates, form)
    assume(abs(y[0].item()) > 1e-13)
    rule = positive(torch.full((2,), m), counts, torch.full((2,), written), templates, form)
    assert rule.tolist() == [y[0].item() > 0, False] and y[1].item() <= 0


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(FORMS), st.integers(0, 300), st.integers(1, 300), COUNTS)
def test_padding_is_enough_and_no_more(form, written, most, templates):
    found = padding(written, most, templates, form)
    m = torch.arange(1, most + 1)
    one, t = torch.ones_like(m), torch.full_like(m, written)
    assert bool(positive(m, one, t, templates + found, form).all())
    if found:
        assert not bool(positive(m, one, t, templates + found - 1, form).all())


def test_padding_of_nothing_matched_is_none():
    assert padding(50, 0, 1) == padding(50, 1, 1) == 0


@pytest.mark.parametrize("form", FORMS)
def test_the_midpoint_lies_half_way_between_written_and_not(form):
    m, written = torch.arange(2, 30), torch.tensor([1, 5, 20])
    ends = [mean(m, torch.full((28, 3), s), written, 40, form) for s in (0, 1)]
    assert torch.allclose(midpoint(m, written, 40, form), (ends[0] + ends[1]) / 2, atol=1e-15)
