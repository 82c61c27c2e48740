import statistics

import numpy as np
import pytest
import torch

from workbench.ntk import kernel
from workbench.ntk.counting import Rounding, needed
from workbench.ntk.ensemble import Recipe, plain, train
from workbench.ntk.gaussian_law import Law, accuracy, expected, law

ONE = torch.ones((), dtype=torch.float64)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pairs(k: int) -> torch.Tensor:
    places = torch.triu_indices(k, k, 1).T
    return torch.zeros(len(places), k, dtype=torch.float64).scatter_(1, places, 1.0)


def permutation(k: int, form: kernel.Form) -> tuple[Law, dict[str, Rounding]]:
    ones = pairs(k)
    wanted = ones > 0
    middle = float(kernel.gain(torch.tensor(2), form)) / 2 - float(kernel.leak(torch.tensor(2), k, form))
    read = torch.ones_like(wanted)
    roundings = {"zero": Rounding(wanted, 0 * ones, read), "midpoint": Rounding(wanted, 0 * ones + middle, read)}
    return law(ones / 2**0.5, torch.eye(k), form), roundings


@pytest.mark.parametrize("form", ["ntk", "nngp"])
@pytest.mark.parametrize("count", [5, 12])
def test_mean_and_variance_are_the_closed_ones(form, count):
    generator = stream(count)
    ones = (torch.rand(20, count, generator=generator) < 0.4).double()
    m = ones.sum(dim=1).long()
    x = ones / m.clamp(min=1).double().sqrt()[:, None]
    labels = (torch.rand(count, 7, generator=generator) < 0.3).double()
    found = law(x, labels, form)
    closed = kernel.mean(m, ones @ labels, labels.sum(dim=0), count, form)
    assert torch.allclose(found.mean, closed, atol=1e-8)  # arccos loses half the digits next to an angle of 0
    assert torch.allclose(found.covariance.diagonal(), kernel.variance(m, count, form), atol=1e-8)


def test_the_nngp_covariance_is_the_posterior():
    """Independently, in numpy: the arc-cosine kernel of degree one, conditioned on the unit vectors."""

    def k(u, v):
        lengths = np.linalg.norm(u, axis=1)[:, None] * np.linalg.norm(v, axis=1)
        cosine = np.clip(u @ v.T / lengths, -1, 1)
        t = np.arccos(cosine)
        return lengths * (np.sin(t) + (np.pi - t) * cosine) / (2 * np.pi * u.shape[1])

    x, unit = pairs(5).numpy() / np.sqrt(2), np.eye(5)
    dense = k(x, x) - k(x, unit) @ np.linalg.inv(k(unit, unit)) @ k(unit, x)
    assert np.allclose(law(torch.from_numpy(x), torch.eye(5), "nngp").covariance.numpy(), dense, atol=1e-9)


@pytest.mark.parametrize("form", ["ntk", "nngp"])
def test_training_inputs_are_certain(form):
    found = law(torch.eye(6), torch.eye(6), form)
    assert torch.allclose(found.mean, torch.eye(6, dtype=torch.float64), atol=1e-9)
    assert float(found.covariance.abs().max()) < 1e-9


def test_trained_networks_covary_between_inputs_as_the_ntk_law_says():
    """Pairs of inputs with two, one or no bit in common: within three standard errors over 128 networks."""
    k, ones = 6, pairs(6)
    x = ones / 2**0.5
    found = law(x, torch.eye(k), "ntk")
    recipe = Recipe("ntk", 2048, plain("ntk", k))
    y = torch.cat([train(recipe, torch.eye(k), 32, stream(i)).outputs(x) for i in range(4)]).double()
    y = y - y.mean(dim=0)
    products = torch.einsum("npk,nqk->npq", y, y) / k
    for common in (0, 1, 2):
        chosen = (ones @ ones.T) == common
        theory, by_network = float(found.covariance[chosen].mean()), products[:, chosen].mean(dim=1)
        assert abs(float(by_network.mean()) - theory) < 3 * float(by_network.std()) / 128**0.5, common
        assert theory > 3 * float(by_network.std()) / 128**0.5  # so that 0 would not pass


def test_draws_have_the_mean_and_covariance():
    found, _ = permutation(4, "ntk")
    y = found.draws(stream())(20_000).double()
    assert y.shape == (20_000, 6, 4)
    assert torch.allclose(y.mean(dim=0), found.mean, atol=5 * 0.13 / 20_000**0.5)
    centred = y - found.mean
    assert torch.allclose(torch.einsum("npk,nqk->pq", centred, centred) / 80_000, found.covariance, atol=3e-4)
    across = torch.einsum("np,nq->pq", centred[:, :, 0], centred[:, :, 1]) / 20_000
    assert float(across.abs().max()) < 5e-4  # bits of one network are independent


def test_draws_are_the_same_for_the_same_seed():
    found, _ = permutation(4, "ntk")
    one, same, other = (found.draws(stream(seed))(3) for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


@pytest.mark.parametrize(
    ("k", "form", "published_error", "count"),
    [(10, "nngp", 0.1, 59), (10, "ntk", 0.1, 295), (20, "nngp", 0.1, 120), (20, "nngp", 0.001, 237)],
)
def test_counts_under_the_law_are_those_of_an_earlier_simulation(k, form, published_error, count):
    """Medians of five trials by another program; two such medians differ by less than a quarter here."""
    found, roundings = permutation(k, form)
    counts = []
    for trial in range(7):
        generator = stream(trial)
        tests = torch.bincount(
            torch.randint(k * (k - 1) // 2, (1000,), generator=generator), minlength=k * (k - 1) // 2
        )
        done = needed(found.draws(generator), roundings, tests, (published_error,))
        counts.append(done["zero", published_error])
        assert done["midpoint", published_error] == 1
    assert statistics.median(counts) == pytest.approx(count, rel=0.25)


def test_expected_accuracy_is_the_product_of_normal_tails():
    """One input with bits at +1 (wanted), -2 (not wanted) and one that is not read; variance 4; 4 networks: sd 1."""
    found = Law(torch.tensor([[1.0, -2.0, 9.0]]).double(), 4 * ONE.reshape(1, 1))
    how = Rounding(
        torch.tensor([[True, False, False]]), torch.zeros(1, 3).double(), torch.tensor([[True, True, False]])
    )
    tests = torch.tensor([5])
    assert accuracy(found, how, tests, 4) == pytest.approx(0.841344746 * 0.977249868, abs=1e-8)
    count = expected(found, how, tests, 0.1)
    assert accuracy(found, how, tests, count) >= 0.9 > accuracy(found, how, tests, count - 1)


def test_expected_accuracy_is_that_of_many_draws():
    found, roundings = permutation(6, "ntk")
    tests = torch.ones(15).long()
    draw = found.draws(stream())
    average = draw(100_000).unflatten(0, (1000, 100)).mean(dim=1)
    share = ((average > 0) == roundings["zero"].wanted).all(dim=2).double().mean()
    assert float(share) == pytest.approx(accuracy(found, roundings["zero"], tests, 100), abs=0.025)


def test_outputs_without_variance_are_right_or_wrong_for_sure():
    found = Law(torch.tensor([[1.0, 0.0]]).double(), 0 * ONE.reshape(1, 1))
    read, tests = torch.ones(1, 2).bool(), torch.tensor([1])
    for wanted, share in (([[True, False]], 1.0), ([[True, True]], 0.0)):
        how = Rounding(torch.tensor(wanted), torch.zeros(1, 2).double(), read)
        assert accuracy(found, how, tests, 1) == share
        assert expected(found, how, tests, 0.5) == (1 if share else None)


def test_a_mean_on_the_wrong_side_is_never_enough():
    found = Law(torch.tensor([[-1.0]]).double(), ONE.reshape(1, 1))
    how = Rounding(torch.tensor([[True]]), torch.zeros(1, 1).double(), torch.tensor([[True]]))
    assert expected(found, how, torch.tensor([1]), 0.1) is None
