import math

import numpy as np
import pytest
import torch

from analyses.hill import _hill_fractional_tables as tables
from analyses.hill import _hill_fractional_training as training
from analyses.hill import hill_fractional as module
from analyses.hill._hill_fractional_figures import slopes
from workbench.errors import BadInput
from workbench.result import load, save


@pytest.fixture
def small(monkeypatch):
    """Fifty steps an epoch, two of which are recorded."""
    monkeypatch.setattr(training, "SAMPLES", 3200)


@pytest.mark.parametrize(
    ("name", "function"),
    [("square root", np.sqrt), ("cube root", np.cbrt), ("fourth root", lambda a: np.sqrt(np.sqrt(a))),
     ("inverse square root", lambda a: 1 / np.sqrt(a)), ("square", np.square), ("power-identity", np.positive)],
)  # fmt: skip
def test_answers_are_the_roots_and_powers_they_are_called(small, name, function):
    x, y = training.problems(name, 0.0, 3)
    assert np.allclose(y, function(x[:, 0].numpy()), rtol=1e-13, atol=0) and (x[:, 1] == 1).all()
    assert (x[:, 0] > 0).all() and (x[:, 0] < 10).all()


def test_two_operands_where_there_are_two_and_noise_of_the_size_said(small):
    x, y = training.problems("geometric mean", 0.0, 0)
    assert np.allclose(y, np.sqrt((x[:, 0] * x[:, 1]).numpy()), rtol=1e-13)
    again, noisy = training.problems("geometric mean", 1e-2, 0)
    assert torch.equal(x, again)
    assert (noisy / y - 1).std().item() == pytest.approx(1e-2, rel=0.05)


def test_a_unit_is_trained_as_torch_would_and_measured_at_the_right_records(small):
    """The square root by Adagrad, epoch by epoch, in a loop; records stand before steps 50 and 75 of the second."""
    found = training.train(2, [5])
    at = found.keys.index(("square root", "Adagrad", training.NOISY, 5))
    x, y = training.problems("square root", training.NOISY, 5)
    start = np.random.default_rng([5, len(training.TARGETS)]).standard_normal((2, 2)) * 0.1
    W_hat, M_hat = (torch.tensor(row, requires_grad=True) for row in start)
    rule, weights, number = torch.optim.Adagrad([W_hat, M_hat], lr=0.3), [], list(training.TARGETS).index("square root")
    for epoch in range(2):
        for samples in training.shuffled(3200, 64, 500 + number)(epoch):
            rule.zero_grad()
            W = torch.tanh(W_hat) * torch.sigmoid(M_hat)
            weights.append(W[0].item())
            ((x[samples] ** W).prod(dim=1) - y[samples]).square().mean().backward()
            rule.step()
    W = (torch.tanh(W_hat) * torch.sigmoid(M_hat)).detach()
    assert found.W[at, 0].item() == pytest.approx(W[0].item(), rel=1e-9)
    assert found.away[at].item() == pytest.approx(abs(W[0].item() - 0.5), rel=1e-6)
    assert found.jitter[at].item() == pytest.approx(np.std([weights[50], weights[75]]), rel=1e-6)
    assert found.mean_away[at].item() == pytest.approx(np.mean([abs(weights[n] - 0.5) for n in (50, 75)]), rel=1e-6)
    tanh, gate = torch.tanh(W_hat).detach(), torch.sigmoid(M_hat).detach()
    length = math.hypot((1 - tanh[0] ** 2) * gate[0], tanh[0] * gate[0] * (1 - gate[0]))
    assert found.slope[at].item() == pytest.approx(length, rel=1e-9)
    assert found.worst[at].item() == pytest.approx(1e4 ** abs(W[0].item() - 0.5) - 1, rel=1e-6)
    assert (found.stays == 0).any() and not found.diverged.any()


def test_slopes_are_the_largest_and_smallest_on_a_level_set():
    """At w = 1/2 the steepest place is an open gate (1 - w^2 = 3/4); nowhere is the slope below 0.24."""
    low, high = slopes(np.array([0.5, 1e-9]))
    assert high == pytest.approx([0.75, 1.0], abs=1e-6)
    rng = np.random.default_rng(0)
    t = rng.uniform(0.5, 1, 20_000)
    s = 0.5 / t
    drawn = np.hypot((1 - t * t) * s, t * s * (1 - s))
    assert low[0] == pytest.approx(drawn.min(), abs=1e-6) and drawn.max() <= high[0]


def row(**values):
    """A unit that landed on a root."""
    base = {"target": "square root", "optimizer": "Adam", "noise": 0.0, "seed": 0, "away": 0.0, "slope": 0.3,
            "snapped_away": 0.0, "jitter": 0.0, "stays": 1.0, "worst": 0.0}  # fmt: skip
    return base | values


def population(landed, n=200):
    """`landed` of n units of roots on their target, and two selections that are not there unsnapped."""
    rows = [row(away=0.0 if place < landed else 1e-3) for place in range(n)]
    return [*rows, *(row(target="multiply", away=1e-8, slope=0.001) for _ in range(2))]


@pytest.mark.parametrize(("landed", "verdict"), [(2, "is supported"), (10, "is undecided"), (60, "is refuted")])
def test_the_verdict_on_landing_flips_about_a_twentieth(landed, verdict):
    """Of 200: Wilson's interval of 2 ends at 0.036, of 60 begins at 0.24, of 10 holds 0.05."""
    found = tables.landing(population(landed))
    assert verdict in found.text and (found.value, found.control_value) == (landed / 200, 0.0)
    assert f"Adam {landed} of 200" in found.text


@pytest.mark.parametrize(("landed", "words"), [(2, "are hit rarely"), (60, "are hit NOT rarely")])
def test_the_words_on_noise_flip(landed, words):
    rows = [one | {"noise": 1e-2} for one in population(landed)]
    found = tables.noisy(rows)
    assert words in found.text and found.control_value == 1.0 and "2 of 2 are exact once snapped" in found.text


def test_optimizers_are_sorted_by_what_they_land_on():
    rows = [
        row(target=target, optimizer=setting, away=0.0 if lands else 1e-3)
        for setting, on_root, on_selection in (("Adam", True, False), ("Rprop", False, True), ("Adagrad", True, True))
        for target, lands in (("cube root", on_root), ("multiply", on_selection))
    ]
    for setting in training.RATES:
        if setting not in ("Adam", "Rprop", "Adagrad"):
            rows += [row(optimizer=setting, target=target, away=1.0) for target in ("cube root", "multiply")]
    (found,) = tables.opposed(rows)
    assert "both: Adagrad; roots only: Adam; selections only: Rprop; neither: Adam, beta2 0.5" in found.text
    assert (found.value, found.control_value) == (1, 2)


def test_powers_out_of_reach_end_at_the_nearest_weight():
    rows = [row(target="square", snapped_away=1.0), row(target="cube", snapped_away=2.0),
            row(target="cube", snapped_away=2.5), row(target="multiply")]  # fmt: skip
    found = tables.beyond(rows)
    assert "2 of 3 units end" in found.text and found.control_value == 1.0


def test_a_short_run_says_so_and_reads_back(small, tmp_path):
    result = module.hill_fractional.function([], module.Options(seeds=1, epochs=1))
    assert "short run of 1 epochs" in result.findings[0].text and module.short(50) == []
    save(result, tmp_path / "saved", analysis_name="hill-fractional", options=module.Options())
    assert load(tmp_path / "saved") == result
    cells, units = result.tables["cells"], result.tables["units"]
    assert len(cells) == len(units) == 10 * 10 * 2 and (cells["n"] == 1).all()
    assert cells["away"].tolist() == pytest.approx(
        [units[(units.target == c.target) & (units.optimizer == c.optimizer) & (units.noise == c.noise)].away.item()
         for c in cells.itertuples()]
    )  # fmt: skip


@pytest.mark.parametrize("options", [{"seeds": 0}, {"epochs": 0}, {"seed": -1}, {"seeds": 101}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(BadInput):
        module.Options(**options)
