import numpy as np
import pytest
import torch

from analyses.hill import _hill_ranges_tables as tables
from analyses.hill import _hill_ranges_training as training
from analyses.hill import hill_ranges as module
from workbench.errors import BadInput
from workbench.result import load, save

OPERATIONS, OPTIMIZERS, RANGES = training.OPERATIONS, training.OPTIMIZERS, training.RANGES


@pytest.fixture
def small(monkeypatch):
    """Ten steps an epoch and few batches for gradients."""
    monkeypatch.setattr(training, "SAMPLES", 640)
    monkeypatch.setattr(training, "BATCHES", 5)


@pytest.mark.parametrize(
    ("signs", "low", "high", "text"),
    [("positive", 1e-8, 5.0, "0 to 5"), ("negative", -5.0, -1e-8, "-5 to 0"), ("crossing", -5.0, 5.0, "-5 to 5")],
)
def test_ranges(signs, low, high, text):
    where = training.Range(signs, 5.0)
    assert (where.within.low, where.within.high, str(where)) == (low, high, text)
    x, y = training.problems("multiply", where, 0, 2000)
    assert low <= x.min() and x.max() <= high and torch.equal(y, x[:, 0] * x[:, 1])
    if signs == "crossing":
        assert 0.2 < (x > 0).all(dim=1).double().mean() < 0.3


def test_gradients_are_those_of_long_samples_in_closed_form(monkeypatch):
    """At W = 0 the loss of a + b has the gradient -2 E[x x'] [1, 1]: each part -2 (E x^2 + (E x)^2), on (0, c) 7/6 c^2.

    A quotient has no scale, and neither has an angle uniform over many turns.
    """
    monkeypatch.setattr(training, "BATCHES", 2000)
    monkeypatch.setattr(training, "OPERATIONS", ("add", "cos-sum"))
    monkeypatch.setattr(training, "RANGES", tuple(training.Range("positive", size) for size in (10.0, 1e4)))
    monkeypatch.setattr(training, "PLACES", (0.0, 0.5))
    found = {(one.operation, one.where.size, one.place): one for one in training.gradients(0)}
    for size in (10.0, 1e4):
        for place in (0.0, 0.5):
            assert found["add", size, place].size == pytest.approx(2**0.5 * 7 / 6 * size**2 * (1 - place), rel=0.02)
    rows = tables.slopes(list(found.values()))
    growth = {(row["operation"], row["size"], row["place"]): row["growth"] for row in rows}
    assert growth["add", 1e4, 0.0] == pytest.approx(1e6, rel=0.02) and growth["add", 10.0, 0.0] == 1
    assert growth["cos-sum", 1e4, 0.0] == pytest.approx(1, abs=0.05)


def test_the_largest_gradient_and_the_root_mean_square_worked_by_hand(monkeypatch):
    """One batch a problem: identity at W = 0 says 1, so the slope is 2 (1 - x) ln x; ln 1 = 0 for the second weight."""
    for name, value in (("BATCHES", 2), ("BATCH", 1), ("OPERATIONS", ("power-identity",)), ("PLACES", (0.0,))):
        monkeypatch.setattr(training, name, value)
    monkeypatch.setattr(training, "RANGES", (training.Range("positive", 10.0),))
    x = torch.tensor([[2.0, 1.0], [np.e, 1.0]], dtype=torch.float64)
    monkeypatch.setattr(training, "problems", lambda *_: (x, x[:, 0]))
    (one,) = training.gradients(0)
    each = [2 * np.log(2), 2 * (np.e - 1)]
    assert one.largest == pytest.approx(each[1]) and one.size == pytest.approx(np.hypot(*each) / 2**0.5)


def test_each_unit_stands_under_its_own_key(small):
    """One of them trained again by torch: subtraction on (0, 100) by Adam."""
    found = training.train(3, [2])
    where = training.Range("positive", 100.0)
    at = found.keys.index(("subtract", where, "Adam", 2))
    number = OPERATIONS.index("subtract") * len(RANGES) + RANGES.index(where)
    x, y = training.problems("subtract", where, 2, 640)
    W_hat, M_hat = (torch.zeros(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    rule = torch.optim.Adam([W_hat, M_hat], lr=0.1)
    for epoch in range(3):
        for samples in training.shuffled(640, 64, 2000 + number)(epoch):
            rule.zero_grad()
            W = torch.tanh(W_hat) * torch.sigmoid(M_hat)
            (x[samples] @ W - y[samples]).square().mean().backward()
            rule.step()
    W = (torch.tanh(W_hat) * torch.sigmoid(M_hat)).detach()
    assert found.snapped[at].tolist() == pytest.approx(W.tolist(), rel=1e-9)  # too far yet to be snapped
    assert len(found.keys) == len(OPERATIONS) * len(RANGES) * len(OPTIMIZERS) and not found.exact[at]


def test_lost_and_exact_are_of_the_weights_that_matter(monkeypatch):
    """A power of one operand has a free second weight; 0.6 is on its way to 1, 0.4 is lost."""
    monkeypatch.setattr(training, "OPERATIONS", ("power-identity",))
    monkeypatch.setattr(training, "RANGES", (training.Range("positive", 10.0),))
    monkeypatch.setattr(training, "SAMPLES", 64)
    W = torch.tensor([[40.0, 0.3], [np.arctanh(0.6), 40.0], [np.arctanh(0.4), 0.0], [np.nan, 0.0]], dtype=torch.float64)

    class Fake:
        def __init__(self, streams, units):
            self.running = torch.tensor([False])
            self.W_hat, self.M_hat = W, torch.full_like(W, 40.0)
            self.W, self.diverged = torch.tanh(W), W.isnan().any(dim=1)

        def epoch(self):
            pass

    monkeypatch.setattr(training, "Stack", Fake)
    found = training.train(1, [0])
    assert found.exact.tolist() == [True, False, False, False]
    assert found.lost.tolist() == [False, False, True, True] and found.diverged.tolist() == [False] * 3 + [True]


def rows(lost):
    """Ten units of every operation, range and optimizer; `lost(operation, range)` of them lost."""
    return [
        {"operation": name, "signs": where.signs, "size": where.size, "optimizer": setting, "seed": seed,
         "lost": seed < lost(name, where), "exact": seed >= lost(name, where), "diverged": False}
        for name in OPERATIONS for where in RANGES for setting in OPTIMIZERS for seed in range(10)
    ]  # fmt: skip


def test_verdicts_flip_with_what_is_lost():
    none = rows(lambda name, where: 0)
    assert "is supported on (0, 10): 0 of 120" in tables.positive(none).text
    assert "is supported: 0 of" in tables.trigonometric(none).text and "none." in tables.trigonometric(none).text
    assert "not clearly more than on (0, 10)" in tables.large(none).text
    some = rows(lambda name, where: 3)
    assert "is refuted on (0, 10): 36 of 120" in tables.positive(some).text
    two = tables.positive(rows(lambda name, where: 1 if (name, where.size) == ("divide", 10.0) else 0))
    assert "is undecided" in two.text and two.value == 4 / 120
    wide = tables.large(rows(lambda name, where: 5 if (name, where.size) == ("divide", 1e4) else 0))
    assert ", more than on (0, 10)" in wide.text and "divide 20" in wide.text and wide.value == 20 / 200
    narrow = tables.small(rows(lambda name, where: 5 if where.size == 1.0 else 0))
    assert "100 of 200 arithmetic units" in narrow.text and ", more than on (0, 10)" in narrow.text
    negative = rows(lambda name, where: 10 if where.signs == "negative" else 2 * (where.signs == "crossing"))
    assert "refuted" in tables.trigonometric(negative).text and "-1 to 0" in tables.trigonometric(negative).text
    found = tables.signs(negative)
    assert "(multiply 200 of 200, divide 200 of 200, power-identity 200 of 200), more than" in found.text
    assert (found.value, found.control_value) == (1.0, 0.2)


@pytest.mark.parametrize(
    ("factor", "verdict"), [(150.0, "is supported"), (50.0, "is refuted"), (None, "is true of multiply")]
)
def test_the_verdict_on_growth_flips_at_a_hundredfold(factor, verdict):
    steep = [
        {"operation": name, "signs": "positive", "size": 1e4, "place": place,
         "growth": (factor or (200.0 if name == "multiply" else 1.0)) if name in training.ARITHMETIC else 1.5}
        for name in OPERATIONS for place in training.PLACES
    ]  # fmt: skip
    found = tables.growth(steep)
    assert verdict in found.text and found.control_value == 1.5


def test_exponents_are_those_of_a_power_law():
    steep = [
        {"operation": name, "signs": "positive", "size": size, "place": place, "gradient": 3 * size**2.5}
        for name in OPERATIONS for size in training.SIZES for place in training.PLACES
    ]  # fmt: skip
    assert np.allclose(tables.exponents(steep).drop(columns="operation"), 2.5)


def test_exact_units_answer_any_magnitude_and_others_are_not_asked():
    home = training.Range("positive", 10.0)
    snapped = torch.tensor([[1.0, -1.0], [1.0, -0.9], [1.0, -1.0]]).double()
    exact = torch.tensor([True, False, True])
    keys = [("divide", home, "Adam", 0), ("divide", home, "Adam", 1), ("divide", RANGES[0], "Adam", 0)]
    found = training.Trained(keys, snapped, exact, ~exact, ~exact)
    assert training.bits(found, "divide", 0, count=500) == (500, 500)
    supported = tables.general({"divide": (500, 500)})
    assert "is supported" in supported.text and "is refuted" in tables.general({"divide": (499, 500)}).text
    assert tables.general({"divide": (0, 0)}).n == 0
    wrong = training.Trained(keys[:1], snapped[1:2], exact[:1], exact[:1], exact[:1])
    assert training.bits(wrong, "divide", 0, count=500)[0] < 5


def test_a_short_run_says_so_and_reads_back(small, tmp_path):
    result = module.hill_ranges.function([], module.Options(seeds=1, epochs=1))
    assert "short run of 1 epochs" in result.findings[0].text and module.short(50) == []
    save(result, tmp_path / "saved", analysis_name="hill-ranges", options=module.Options())
    assert load(tmp_path / "saved") == result
    assert len(result.tables["cells"]) == len(OPERATIONS) * len(RANGES) * len(OPTIMIZERS)
    assert len(result.tables["summary"]) == len(RANGES)


@pytest.mark.parametrize("options", [{"seeds": 0}, {"epochs": 0}, {"seed": -1}, {"seeds": 101}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(BadInput):
        module.Options(**options)
