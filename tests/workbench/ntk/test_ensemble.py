import math

import pytest
import torch

from workbench.errors import BadInput
from workbench.ntk import ensemble, kernel
from workbench.ntk.ensemble import Recipe, chebyshev, largest, plain, published, train


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def outputs(form: str, k: int, width: int, nets: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of trained networks where the answer to two ones is 1, and where it is 0: [net, output]."""
    pairs = torch.triu_indices(k, k, 1).T
    ones = torch.zeros(len(pairs), k).scatter_(1, pairs, 1.0)
    recipe = Recipe(form, width, plain(form, k) if form == "ntk" else chebyshev(k))
    y = torch.cat([train(recipe, torch.eye(k), 8, stream(i)).outputs(ones / 2**0.5) for i in range(nets // 8)])
    return y[:, ones > 0], y[:, ones == 0]


@pytest.mark.parametrize(
    ("form", "on", "off", "spread"), [("ntk", 0.5654, -0.0099, 0.0807), ("standard", 0.6179, -0.0233, 0.0793)]
)
def test_trained_networks_have_the_mean_and_spread_of_theory(form, on, off, spread):
    """At k = 10, m = 2; the numbers are g_2 - h_2, -h_2 and the square root of var(2, 10), worked out by hand."""
    m = torch.tensor(2)
    limit = ensemble.LIMIT[form]
    g, h = float(kernel.gain(m, limit)), float(kernel.leak(m, 10, limit))
    assert (g - h, -h) == pytest.approx((on, off), abs=6e-5)
    assert float(kernel.variance(m, 10, limit)) ** 0.5 == pytest.approx(spread, abs=6e-5)
    ones, zeros = outputs(form, 10, 4096, 48)
    for values, theory in ((ones, g - h), (zeros, -h)):
        by_network = values.double().mean(dim=1)
        assert abs(float(by_network.mean()) - theory) < 3 * float(by_network.std()) / len(by_network) ** 0.5
        assert float(values.std(dim=0).mean()) == pytest.approx(spread, rel=0.04)


def test_the_published_form_is_linear_layers_trained_by_sgd_on_the_mean_square():
    """Against torch.nn and autograd: 6 inputs, width 64, so the rate 1e-3 of width 50,000 is 1e-3 * 50,000 / 64."""
    k, width, steps = 6, 64, 40
    labels = torch.eye(k)[torch.tensor([3, 1, 0, 5, 4, 2])]
    mine = train(published(k, width, steps), labels, 2, stream())
    first = torch.randn(2, k, width, generator=(again := stream())) / k**0.5
    last = torch.randn(2, k, width, generator=again) / width**0.5
    x = torch.rand(5, k, generator=again)
    for net in range(2):
        layers = torch.nn.Linear(k, width), torch.nn.Linear(width, k)
        with torch.no_grad():
            for layer, weight in zip(layers, (first[net].T, last[net]), strict=True):
                layer.weight.copy_(weight)
                layer.bias.zero_()
        model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])
        for _ in range(steps):
            model.zero_grad()
            torch.nn.functional.mse_loss(model(torch.eye(k)), labels).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 1e-3 * 50_000 / width * parameter.grad
        assert torch.allclose(mine.outputs(x)[net], model(x), atol=2e-5)
        assert float(layers[0].bias.detach().abs().max()) > 1e-3  # biases do move
    assert mine.error > 1e-3  # 40 steps are few: what is compared is the way, not the end


def test_ntk_form_is_standard_normal_weights_trained_on_half_the_sum_of_squares():
    k, width = 5, 48
    labels = torch.eye(k)[:, :3]
    mine = train(Recipe("ntk", width, (1.0,) * 10), labels, 1, stream())
    w1 = torch.randn(1, k, width, generator=(again := stream()))[0].T.clone().requires_grad_()
    w2 = torch.randn(1, 3, width, generator=again)[0].clone().requires_grad_()
    x = torch.rand(4, k, generator=again)

    def f(u):
        return torch.relu(u @ w1.T / k**0.5) @ w2.T / width**0.5

    rate = 2 * math.pi * k / (k + 2 * math.pi - 1)
    for _ in range(10):
        loss = (f(torch.eye(k)) - labels).square().sum() / 2
        grads = torch.autograd.grad(loss, (w1, w2))
        with torch.no_grad():
            w1 -= rate * grads[0]
            w2 -= rate * grads[1]
    assert torch.allclose(mine.outputs(x)[0], f(x), atol=2e-5)
    assert not mine.first_bias.any() and not mine.last_bias.any()


@pytest.mark.parametrize("form", ["ntk", "standard"])
def test_the_largest_eigenvalue_is_that_of_the_kernel(form):
    x = torch.eye(7, dtype=torch.float64)
    dense = kernel.kernel(x, x, ensemble.LIMIT[form])
    scale = 300 if form == "standard" else 1
    assert largest(form, 7, 300) == pytest.approx(scale * float(torch.linalg.eigvalsh(dense)[-1]), rel=1e-12)


def test_the_published_step_in_units_of_the_eigenvalue():
    """Above 2 training is not linear any more: 8.2, 3.0, 1.5 for k = 2, 3, 4, and 0.19 for k = 10."""
    steps = [published(k).steps[0] for k in (2, 3, 4, 10)]
    assert steps == pytest.approx([8.24, 3.03, 1.53, 0.193], rel=0.01)
    assert published(10).width == 50_000 and len(published(10).steps) == 10_000
    assert published(10, 64, 3).steps == published(10).steps[:3]


def test_plain_steps_reach_their_error():
    assert [len(plain("ntk", k)) for k in (10, 30)] == [28, 71]
    for form, ridge in (("ntk", 2 * math.pi - 1), ("standard", math.pi - 1)):
        rate = 1 - ridge / (20 + ridge)
        count = len(plain(form, 20, 1e-4))
        assert rate**count <= 1e-4 < rate ** (count - 1)


def test_chebyshev_steps_fit_the_spectrum_in_any_order_of_their_products():
    steps = torch.tensor(chebyshev(30), dtype=torch.float64)
    spectrum = torch.linspace((math.pi - 1) / (30 + math.pi - 1), 1, 500, dtype=torch.float64)
    left = (1 - steps[:, None] * spectrum).cumprod(dim=0)
    assert float(left[-1].abs().max()) < 1e-4
    assert float(left.abs().max()) < 8  # sorted steps reach 1e7 on the way
    ascending = (1 - steps.sort().values[:, None] * spectrum).cumprod(dim=0)
    descending = (1 - steps.sort(descending=True).values[:, None] * spectrum).cumprod(dim=0)
    assert max(float(ascending.abs().max()), float(descending.abs().max())) > 1e3
    with pytest.raises(BadInput, match="power of two"):
        chebyshev(10, 12)


def test_chebyshev_and_plain_steps_end_in_the_same_networks():
    x = torch.eye(10).roll(1, 0) + torch.eye(10)
    ends = [
        train(Recipe("standard", 2048, steps), torch.eye(10), 2, stream()).outputs(x / 2**0.5)
        for steps in (plain("standard", 10), chebyshev(10))
    ]
    assert float((ends[0] - ends[1]).abs().max()) < 0.05 * 0.0793  # of a network's standard deviation


def test_mirrored_networks_start_from_opposite_functions():
    recipe = Recipe("standard", 32, (1e-9,))
    x = torch.rand(3, 4, generator=stream(5))
    y = train(recipe, torch.eye(4), 6, stream(), mirrored=True).outputs(x)
    assert torch.allclose(y[:3], -y[3:], atol=1e-6) and float(y.abs().max()) > 0.1
    with pytest.raises(BadInput, match="even"):
        train(recipe, torch.eye(4), 5, stream(), mirrored=True)


def test_the_same_seed_gives_the_same_networks():
    recipe = Recipe("ntk", 64, plain("ntk", 4))
    one, same, other = (train(recipe, torch.eye(4), 3, stream(seed)).outputs(torch.eye(4) * 2) for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.allclose(one, other, atol=1e-3)


def test_what_cannot_be_trained_is_refused():
    for wrong in ({"width": 0}, {"steps": ()}, {"steps": (1.0, 0.0)}):
        with pytest.raises(BadInput, match="positive"):
            Recipe(**({"form": "ntk", "width": 8, "steps": (1.0,)} | wrong))
    with pytest.raises(BadInput, match="diverged"):
        train(Recipe("ntk", 64, (1e30,) * 4), torch.eye(4), 1, stream())


def test_batches_fit_the_cache_and_are_never_empty():
    assert ensemble.batch(Recipe("ntk", 1024, (1.0,)), 16) == 32  # 2 MiB by 4 bytes by 16 by 1024
    assert ensemble.batch(Recipe("ntk", 50_000, (1.0,)), 30) == 1
