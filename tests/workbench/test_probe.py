import numpy as np
import pytest
import torch
from scipy import optimize

from workbench.probe import PENALTIES, fit, resamples, shuffled_within, variance_explained


def draws(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_without_penalty_every_site_and_target_is_least_squares_with_an_intercept():
    x, y = draws(20, 50, 6).float(), draws(50, 3, seed=1) + 7  # more sites than are solved at once
    readouts = fit(x, y, penalties=(0.0,))
    said = readouts.read(x)
    for site in range(20):
        design = np.column_stack([x[site].numpy(), np.ones(50)]).astype(np.float64)
        expected, *_ = np.linalg.lstsq(design, y.numpy(), rcond=None)
        np.testing.assert_allclose(readouts.weight[site], expected[:6], atol=1e-11)
        np.testing.assert_allclose(readouts.intercept[site], expected[6], atol=1e-11)
        np.testing.assert_allclose(said[site], design @ expected, atol=1e-11)


def test_a_penalty_minimises_the_ridge_objective():
    x, y = draws(1, 30, 3), draws(30, 1, seed=1) + 2
    readouts = fit(x, y, penalties=(0.5,))
    centred = x[0] - x[0].mean(dim=0)
    penalty = 0.5 * float(centred.square().sum()) / 3  # in units of the mean eigenvalue of the centred second moment

    def objective(v):
        error = x[0].numpy() @ v[:3] + v[3] - y[:, 0].numpy()
        return error @ error + penalty * v[:3] @ v[:3]

    found = optimize.minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-10}).x
    np.testing.assert_allclose(readouts.weight[0, :, 0], found[:3], atol=1e-6)
    assert readouts.intercept[0, 0].item() == pytest.approx(found[3], abs=1e-6)


def test_the_penalty_has_the_lowest_gcv_score_worked_with_the_hat_matrix():
    sites, problems, width, targets = 4, 18, 12, 20
    x, y = draws(sites, problems, width), draws(problems, targets, seed=1)
    y[:, 0] = x[0, :, 0] * 3  # a clean target at one site: no penalty; noise elsewhere
    readouts = fit(x, y)
    for site in range(sites):
        centred = (x[site] - x[site].mean(dim=0)).numpy()
        scale = np.square(centred).sum() / width
        scores = []
        for penalty in PENALTIES:
            gram = centred.T @ centred + penalty * scale * np.eye(width)
            hat = centred @ np.linalg.solve(gram, centred.T) + 1 / problems
            error = y.numpy() - hat @ y.numpy()
            scores.append(np.square(error).mean(axis=0) / (1 - np.trace(hat) / problems) ** 2)
        lowest = np.array(PENALTIES)[np.argmin(scores, axis=0)]
        first = 1 if site == 0 else 0  # the clean target's scores are all rounding
        assert readouts.penalty[site, first:].tolist() == lowest[first:].tolist()
    assert readouts.penalty[0, 0] < 1e-3 and len(set(readouts.penalty.flatten().tolist())) > 3


def test_a_site_that_is_the_same_for_every_problem_reads_the_mean():
    x, y = torch.full((1, 100, 8), 0.1), draws(100, 2)
    readouts = fit(x, y)
    assert torch.equal(readouts.weight, torch.zeros(1, 8, 2, dtype=torch.float64))
    torch.testing.assert_close(readouts.read(x)[0, 0], y.mean(dim=0))


def test_float32_rounding_of_a_constant_is_not_read_as_a_signal():
    """The rounding of one dimension gives every problem away; a readout that used it would score 1."""
    y = draws(100, 1)
    x = torch.ones(1, 100, 4, dtype=torch.float64) * 3
    x[0, :, 0] += 1e-7 * y[:, 0]
    assert fit(x, y).weight.abs().max() == 0
    assert fit(x + 1e-3 * torch.eye(4)[0] * y, y).weight.abs().max() > 0


def test_collinear_dimensions_do_not_hurt():
    x = draws(1, 200, 1).repeat(1, 1, 5)
    readouts = fit(x, 2 * x[0, :, :1] + 1)
    torch.testing.assert_close(readouts.read(x)[0], 2 * x[0, :, :1] + 1)


def test_one_problem_is_too_few():
    with pytest.raises(ValueError, match="1 problems are too few"):
        fit(torch.zeros(1, 1, 2), torch.zeros(1, 1))


def test_a_readout_that_knows_the_fitting_mean_alone_explains_nothing():
    exact = draws(50) + 3  # their own mean is not 2
    found = variance_explained(torch.full((1, 50), 2.0).double(), exact, 2.0, resamples(50, 0))
    assert (found.r2.item(), found.low.item(), found.high.item()) == (0, 0, 0)


def test_variance_explained_worked_by_hand():
    exact, said = (
        torch.tensor([1.0, 2.0, 3.0]).double(),
        torch.tensor([[1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [3.0, 2.0, 1.0]]),
    )
    found = variance_explained(said.double(), exact, 2.0, resamples(3, 0))
    assert found.r2.tolist() == [1.0, 0.0, -3.0]  # exact; the mean; the reverse: 1 - (4 + 0 + 4)/(1 + 0 + 1)


def test_the_interval_is_that_of_an_explicit_bootstrap_and_covers():
    """Over 200 samples, the 95% interval holds the population's R^2 (0.8) about 190 times."""
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        signal, noise = rng.normal(size=400), rng.normal(size=400) / 2
        exact, said = torch.from_numpy(signal + noise), torch.from_numpy(signal)[None]
        found = variance_explained(said, exact, 0.0, resamples(400, seed, replicates=400))
        assert found.low[0] < found.r2[0] < found.high[0]
        hits += bool(found.low[0] <= 0.8 <= found.high[0])
    assert 180 <= hits <= 198
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(4000):
        i = rng.integers(0, 400, 400)
        ratios.append(1 - np.square(said[0].numpy()[i] - exact.numpy()[i]).sum() / np.square(exact.numpy()[i]).sum())
    wide = variance_explained(said, exact, 0.0, resamples(400, 0, replicates=4000))
    assert [wide.low[0].item(), wide.high[0].item()] == pytest.approx(np.quantile(ratios, [0.025, 0.975]), abs=0.002)


def test_exact_values_that_do_not_vary_are_refused():
    with pytest.raises(ValueError, match="do not vary"):
        variance_explained(torch.zeros(1, 4).double(), torch.ones(4).double(), 1.0, resamples(4, 0))


def test_resamples_are_of_the_right_size_and_repeat_with_the_seed():
    counts = resamples(50, 3, replicates=200)
    assert (counts.sum(dim=1) == 50).all() and counts.shape == (200, 50)
    assert torch.equal(counts, resamples(50, 3, replicates=200)) and not torch.equal(
        counts, resamples(50, 4, replicates=200)
    )


def test_shuffling_permutes_within_each_group():
    groups = np.array([True, False] * 50)
    order = shuffled_within(groups, seed=1)
    assert sorted(order) == list(range(100)) and (groups[order] == groups).all()
    assert (order != np.arange(100)).mean() > 0.8
    assert (order == shuffled_within(groups, seed=1)).all() and (order != shuffled_within(groups, seed=2)).any()
