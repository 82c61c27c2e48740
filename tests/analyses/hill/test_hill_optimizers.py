import math

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from analyses.hill import _hill_optimizers_findings as saying
from analyses.hill import _hill_optimizers_matrix as matrix
from analyses.hill import _hill_optimizers_tables as tables
from analyses.hill import hill_optimizers as module
from analyses.published import load
from workbench.errors import BadInput
from workbench.result import load as load_result
from workbench.result import save

SAMPLES, TEST = 640, 100


@pytest.fixture
def small(monkeypatch):
    """Ten steps an epoch."""
    monkeypatch.setattr(matrix, "SAMPLES", SAMPLES)
    monkeypatch.setattr(matrix, "TEST_SAMPLES", TEST)


def run(**options):
    return module.hill_optimizers.function([], module.Options(**options))


@pytest.mark.parametrize(
    ("mse", "found"),
    [(0.0, "reached"), (9.9e-7, "reached"), (1e-6, "short"), (9.9e-3, "short"), (1e-2, "failed"),
     (math.nan, "failed"), (math.inf, "failed")],
)  # fmt: skip
def test_classes_part_where_the_report_parts_them(mse, found):
    assert tables.kind(mse) == found


def test_the_published_cells_are_found_under_our_names():
    """Four of them read off the source, and the number of each class counted there."""
    cells = tables.published_cells()
    assert set(cells) == {key for key, _ in tables.places()} and len(cells) == 240
    assert cells["multiply", "Adam", 0.0] == pytest.approx(21.8, abs=0.05)
    assert cells["power-identity", "AdamW", 1e-6] == pytest.approx(1.17e-2, abs=5e-5)
    assert cells["cos-sum", "SGD with momentum", 1e-2] == pytest.approx(3.30e-7, abs=5e-10)
    assert cells["subtract", "Adam, beta2 0.5", 0.0] == pytest.approx(2.94e-25, abs=5e-28)
    raw = [row["mse"] for row in load("hill")["optimizer_matrix"]["rows"]]
    counts = {name: sum(tables.kind(value) == name for value in cells.values()) for name in ("reached", "short")}
    assert counts == {"reached": sum(v < 1e-6 for v in raw), "short": sum(1e-6 <= v < 1e-2 for v in raw)}


def test_the_rates_are_those_of_the_published_protocol_and_the_defaults_those_of_torch():
    protocol = load("hill")["optimizer_matrix"]["protocol"]["lr"]
    for setting, rule in matrix.RATES.items():
        settings = dict(rule.settings)
        said = str(protocol[tables.PUBLISHED_SETTINGS.get(setting, setting)]).split()
        assert settings["lr"] == float(said[0])
        if "momentum" in said or "alpha" in said:
            assert settings[said[1]] == float(said[2])
    for setting, rule in matrix.DEFAULTS.items():
        ours = rule.torch([torch.zeros(1, requires_grad=True)]).defaults
        plain = type(rule.torch([torch.zeros(1, requires_grad=True)]))([torch.zeros(1, requires_grad=True)]).defaults
        changed = {name for name in plain if ours[name] != plain[name]}
        assert changed == {"Adam, beta2 0.5": {"betas"}, "SGD with momentum": {"momentum"}}.get(setting, set())


def test_the_published_problems_come_in_the_order_of_torchs_loader(small):
    """The loader and the initial weights drawn before it take from the same global generator, seeded with 42."""
    streams = matrix.report_streams()
    divide = streams[matrix.OPERATIONS.index("divide")]
    legacy = np.random.RandomState(42)
    drawn = [legacy.uniform(1e-8, 10.0, SAMPLES) for _ in range(2)]
    order = legacy.permutation(SAMPLES)
    far = np.abs(drawn[0] / drawn[1])[order]
    ordinary = (far > 1e-3) & (far < 1e3)
    assert np.array_equal(divide.x.numpy()[ordinary], np.stack(drawn, axis=1)[order][ordinary])
    with torch.random.fork_rng():
        torch.manual_seed(42)
        for _ in range(22):
            torch.randn(2, 1, dtype=torch.float64)
        loader = DataLoader(TensorDataset(torch.arange(SAMPLES)), batch_size=64, shuffle=True, drop_last=True)
        for epoch in range(2):
            theirs = torch.stack([samples for (samples,) in loader])
            assert torch.equal(divide.order(epoch), theirs)


def test_each_cell_holds_the_error_of_its_own_optimizer_and_operation(small):
    """Two settings and operations trained again by autograd and torch.optim, in loops."""
    trained = matrix.measure(2, [3])
    for column, settings, setting, name in (
        (matrix.PLAIN, matrix.RATES, "RMSProp", "subtract"),
        (matrix.DEFAULT, matrix.DEFAULTS, "Rprop", "power-identity"),
    ):
        (x, y), (far, answers) = matrix.plain_problems(name, 3)
        number = matrix.OPERATIONS.index(name)
        order = matrix.shuffled(SAMPLES, 64, 300 + number)
        W_hat, M_hat = (torch.zeros(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
        rule = settings[setting].torch([W_hat, M_hat])

        def unit(x, W, name=name):
            return (
                x @ W if name == "subtract" else (x.abs() ** W).prod(dim=1) * torch.cos(torch.pi * W[0] * (x[:, 0] < 0))
            )

        for epoch in range(2):
            for samples in order(epoch):
                rule.zero_grad()
                W = torch.tanh(W_hat) * torch.sigmoid(M_hat)
                (unit(x[samples], W) - y[samples]).square().mean().backward()
                rule.step()
        error = (unit(far, (torch.tanh(W_hat) * torch.sigmoid(M_hat)).detach()) - answers).square().mean()
        found = trained[column].mse[0, 0, matrix.SETTINGS.index(setting), number]
        assert found.item() == pytest.approx(error.item(), rel=1e-6)


def test_snapping_is_the_reports_and_exactness_is_of_the_weights_that_matter():
    """tanh 3 = 0.9951, sigmoid 5 = 0.9933, sigmoid -5 = 0.0067: within 1e-2 of their limits, not within 1e-6."""
    shape = (len(matrix.SETTINGS), len(matrix.OPERATIONS), 2)
    W_hat, M_hat = torch.full(shape, 3.0).double(), torch.full(shape, 5.0).double()
    M_hat[:, matrix.OPERATIONS.index("cos-sum"), 1] = -5
    x = torch.tensor([[2.0, 3.0], [-4.0, 1.0]], dtype=torch.float64)
    test = {name: (x, matrix.operation(name).exact(*x.T[: matrix.operation(name).arity])) for name in matrix.OPERATIONS}
    found = matrix.evaluate(W_hat, M_hat, test, "sign-exact")
    at = {name: place for place, name in enumerate(matrix.OPERATIONS)}
    w = math.tanh(3) / (1 + math.exp(-5))
    assert found.mse[0, 0, at["add"]].item() == pytest.approx((25 + 9) / 2 * (1 - w) ** 2)
    assert torch.equal(found.mse[0], found.mse[1])
    assert found.mse[2, :, at["add"]].tolist() == [0.0] * 10
    exact = {name: found.exact[2, 0, place].item() for name, place in at.items()}
    assert exact == {"add": True, "multiply": True, "power-identity": True, "cos-sum": True,
                     "subtract": False, "divide": False, "reciprocal": False, "sin": False}  # fmt: skip
    assert not found.exact[:2].any()


def cell(**values):
    """A row of table `cells` as far as rules read it."""
    row = {"operation": "add", "optimizer": "Adam", "snapping": 1e-2, "measured": 1e-9, "published": 1e-9,
           "class": "reached", "published_class": "reached", "agrees": "yes", "digits": "yes",
           "nudged_low": 1e-9, "nudged_high": 1e-9}  # fmt: skip
    for column in ("plain", "defaults"):
        row |= {f"{column}_share_reached": 1.0, f"{column}_seeds": 5}
    return row | values


@pytest.mark.parametrize(("agree", "words"), [(230, "which is enough"), (229, "TOO FEW")])
def test_the_verdict_flips_below_230_cells(agree, words):
    rows = [cell(agrees="yes" if place < agree else "no") for place in range(240)]
    assert words in saying.compared(rows, [], 100)[0].text


def test_a_short_run_is_not_compared():
    (found,) = saying.compared([cell(agrees="", digits="")], [], 5)
    assert "short run of 5 epochs" in found.text and found.control_value == 100


@pytest.mark.parametrize(
    ("values", "exact", "why"),
    [
        ({"operation": "sin", "published": 2e-9}, True, tables.SINE),
        ({"operation": "add", "published": 2e-9}, True, tables.UNREASONED),
        ({"operation": "sin", "published": 2e-9}, False, tables.UNREASONED),
        ({"published": 2e-9, "nudged_high": 3e-9}, False, tables.ROUNDING),
        ({"published": 2e-9, "nudged_high": math.nan}, False, tables.ROUNDING),
        ({"published": 4e-10, "nudged_high": 3e-9}, False, tables.ROUNDING),
        ({"published": 3e-10, "nudged_high": 3e-9}, False, tables.UNREASONED),
        ({"published": 1e-8, "nudged_high": 3e-9}, False, tables.UNREASONED),
    ],
)
def test_reasons_are_given_only_where_something_was_found(values, exact, why):
    assert tables.reason(cell(**values), exact) == why


def test_cells_that_differ_are_named_with_their_reason():
    rows = [cell(), cell(operation="sin", snapping=0.0, measured=2e-5, published=3e-7, **{"class": "short"},
                         agrees="no", digits="no", nudged_low=1e-7, nudged_high=4e-5)]  # fmt: skip
    different = tables.differing(rows, {("sin", "Adam", 0.0): False, ("add", "Adam", 1e-2): True})
    sentence = saying.compared(rows, different, 100)[1]
    assert "sin by Adam, not snapped: 2.00e-05, published 3.00e-07" in sentence.text
    assert tables.ROUNDING in sentence.text and (sentence.value, sentence.control_value) == (1, 1)


@pytest.mark.parametrize(
    ("share", "words"), [(1.0, ": almost all reach"), (0.8, "NOT almost all"), (0.925, "undecided")]
)
def test_almost_all_is_nine_in_ten_beyond_the_interval(share, words):
    rows = [cell(snapping=snap, plain_share_reached=share, plain_seeds=80) for snap in matrix.SNAPS]
    assert words in saying.snapped(rows).text


def test_the_settings_that_keep_moving_reach_everywhere():
    rows = [
        cell(operation=name, optimizer=setting, snapping=0.0,
             published_class="reached" if setting == "Rprop" else "short",
             plain_share_reached=0.8 if (setting, name) == ("Adam", "add") else 1.0)
        for setting in matrix.SETTINGS for name in matrix.OPERATIONS
    ]  # fmt: skip
    found = saying.movers(rows)
    assert "9 of 10 settings" in found.text and "In the published matrix: Rprop." in found.text
    assert found.value == 1.0 and found.control_value == 39 / 40


@pytest.mark.parametrize(
    ("shares", "words"), [((0.1, 0.9), "fewer than"), ((0.9, 0.1), "more than"), ((0.5, 0.5), "about as many as")]
)
def test_defaults_are_compared_beyond_their_intervals(shares, words):
    rows = [cell(snapping=snap, defaults_share_reached=shares[0], plain_share_reached=shares[1], defaults_seeds=50,
                 plain_seeds=50) for snap in matrix.SNAPS]  # fmt: skip
    assert all(words in found.text for found in saying.defaults(rows))


def test_the_published_numbers_change_no_measured_column(small, monkeypatch, tmp_path):
    result = run(epochs=1, seeds=2)
    path = tmp_path / "saved"
    save(result, path, analysis_name="hill-optimizers", options=module.Options())
    assert load_result(path) == result
    noise = np.random.default_rng(0)
    published = load("hill")
    for row in published["optimizer_matrix"]["rows"]:
        row["mse"] = float(noise.exponential())
    monkeypatch.setattr(tables, "load", lambda name: published)
    other = run(epochs=1, seeds=2)
    cells, noisy = result.tables["cells"], other.tables["cells"]
    theirs = ["published", "published_class"]
    assert noisy.drop(columns=theirs).equals(cells.drop(columns=theirs))
    assert not noisy["published"].equals(cells["published"])
    assert len(result.figures["matrix"].data) == 3 + 3 and len(result.figures["plain"].data) == 6 + 3


@pytest.mark.parametrize("options", [{"epochs": 0}, {"seeds": 0}, {"seed": -1}, {"epochs": 1001}, {"seeds": 2.0}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(BadInput):
        module.Options(**options)
