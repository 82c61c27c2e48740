import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from analyses.hill import _hill_sharing_gradients as gradients
from analyses.hill import _hill_sharing_tables as tables
from analyses.hill import _hill_sharing_training as training
from analyses.hill import hill_sharing as module
from workbench.errors import BadInput
from workbench.hill.operations import operation
from workbench.result import load, save

SHARED, SEPARATE = training.SHARED, training.SEPARATE


def test_operations_of_a_group_want_its_selection():
    for group, names in training.GROUPS.items():
        assert {str(list(operation(name).selection)) for name in names} == {group}
        assert len({operation(name).primitive for name in names}) == len(names)


def test_starts_are_scaled_normal_numbers_one_for_all_of_a_group():
    drawn = [training.start(group, 3.0, seed) for group in training.GROUPS for seed in range(200)]
    assert np.std(drawn) == pytest.approx(3, rel=0.05) and abs(np.mean(drawn)) < 0.2
    assert training.start("[1, 1]", 0.0, 5) == ((0.0, 0.0), (0.0, 0.0))
    assert len(set(drawn)) == len(drawn)


def test_both_ways_are_those_of_torch_in_a_loop(monkeypatch):
    """add and multiply on one pair, batch by batch in turn, and add by itself, for twenty batches an operation.

    No weight is near a selection yet, so it is their losses' way that is compared, through `lost` and the raw numbers.
    """
    monkeypatch.setattr(training, "SAMPLES", 640)
    monkeypatch.setattr(training, "GROUPS", {"[1, 1]": ("add", "multiply")})
    monkeypatch.setattr(training, "OPERATIONS", ("add", "multiply"))
    monkeypatch.setattr(training, "SCALES", (0.1,))
    stacks = []
    whole = training.Stack

    def kept(*arguments):
        stacks.append(whole(*arguments))
        return stacks[-1]

    monkeypatch.setattr(training, "Stack", kept)
    outcomes = training.train(1, [4])
    assert [(one.operation, one.way) for one in outcomes] == [
        ("add", SHARED), ("multiply", SHARED), ("add", SEPARATE), ("multiply", SEPARATE)
    ]  # fmt: skip
    data = {name: training.problems(name, 4) for name in ("add", "multiply")}
    orders = {name: training.shuffled(640, 64, 400 + place)(0) for place, name in enumerate(data)}
    for unit, names in ((0, ("add", "multiply")), (1, ("add",))):
        W_hat, M_hat = (
            torch.tensor(row, dtype=torch.float64, requires_grad=True) for row in training.start("[1, 1]", 0.1, 4)
        )
        rule = torch.optim.Adam([W_hat, M_hat], lr=0.1, betas=(0.9, 0.5))
        for batch in range(10):
            for name in names:
                (x, y), samples = data[name], orders[name][batch]
                W = torch.tanh(W_hat) * torch.sigmoid(M_hat)
                said = x[samples] @ W if name == "add" else (x[samples] ** W).prod(dim=1)
                rule.zero_grad()
                (said - y[samples]).square().mean().backward()
                rule.step()
        assert stacks[0].W_hat[unit].tolist() == pytest.approx(W_hat.tolist(), rel=1e-7)
        assert stacks[0].M_hat[unit].tolist() == pytest.approx(M_hat.tolist(), rel=1e-7)


def test_batches_are_counted_from_where_a_unit_stays_exact(monkeypatch):
    monkeypatch.setattr(training, "SAMPLES", 640)
    monkeypatch.setattr(training, "PARTS", 2)
    monkeypatch.setattr(training, "GROUPS", {"[1, 0]": ("power-identity",)})
    monkeypatch.setattr(training, "OPERATIONS", ("power-identity",))
    monkeypatch.setattr(training, "SCALES", (0.0,))
    right, wrong = torch.tensor([[40.0, 0.2]]), torch.tensor([[0.1, 0.2]])
    for course, batches, exact in (("rwrr", 15, True), ("rrrw", 0, False), ("wwww", 0, False)):
        states = [right if letter == "r" else wrong for letter in course]

        class Fake:
            def __init__(self, streams, units, states=states):
                self.states, self.at, self.units = states, -1, units

            def epoch(self):
                self.at += 1

            @property
            def W_hat(self):
                return self.states[self.at].double().expand(len(self.units), 2)

            @property
            def M_hat(self):
                return torch.full((len(self.units), 2), 40.0).double()

            @property
            def W(self):
                return torch.tanh(self.W_hat)

        monkeypatch.setattr(training, "Stack", Fake)
        monkeypatch.setattr(training, "alternating", lambda *steps: None)
        found = training.train(2, [0])
        assert [(one.batches, one.exact, one.lost) for one in found] == [(batches, exact, not exact)] * 2


def outcome(way, exact, seed=0, name="add", scale=0.1, batches=10):
    return training.Outcome("[1, 1]", name, scale, seed, way, exact, not exact, batches if exact else 0)


def population(both, shared, separate, neither):
    """Starts of the group [1, 1] with these ends; `multiply` is always exact, so that `add` decides."""
    ends = [(True, True)] * both + [(True, False)] * shared + [(False, True)] * separate + [(False, False)] * neither
    rows = []
    for seed, pair in enumerate(ends):
        for way, exact in zip((SHARED, SEPARATE), pair, strict=True):
            rows += [outcome(way, exact, seed), outcome(way, True, seed, name="multiply")]
    return rows


def test_a_group_is_exact_when_all_its_operations_are():
    pair = tables.paired(population(5, 3, 2, 1), group="[1, 1]")
    assert [pair[key] for key in ("both", "only_shared", "only_separate", "neither", "n")] == [5, 3, 2, 1, 11]
    assert pair["share"] == 0.6


@pytest.mark.parametrize(
    ("shared", "separate", "better"),
    [(8, 0, "sharing is better"), (0, 8, "separate pairs are better"), (5, 4, "neither"), (0, 0, "neither"),
     (3, 0, "neither"), (12, 2, "sharing is better")],
)  # fmt: skip
def test_the_verdict_flips_with_the_pairs_in_which_one_way_succeeds(shared, separate, better):
    """Wilson's interval of 3 of 3 begins at 0.438, that of 12 of 14 at 0.601."""
    assert tables.verdict(tables.paired(population(40, shared, separate, 3), group="[1, 1]")) == better


def test_what_sharing_saves_is_a_mean_of_pairs():
    rows = [outcome(way, True, seed, batches=batches) for seed in range(4) for way, batches in
            ((SHARED, 10 + seed), (SEPARATE, 40 + 2 * seed))]  # fmt: skip
    found = tables.sooner(rows)
    assert found.value == 31.5 and found.n == 4 and "fewer batches" in found.text
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 3, 31.5, stats.sem([30, 31, 32, 33])))
    reverse = [outcome(row.way, True, row.seed, batches=70 - row.batches) for row in rows]
    assert "more batches" in tables.sooner(reverse).text
    assert tables.sooner(rows[:2]).n == 1


def test_the_closed_form_is_that_of_numerical_integration():
    """Additive, two inputs: each mean gradient as a fourfold integral factored into single ones by quadrature."""
    data = gradients.few("subtract", 0)
    x = data[0].numpy()
    C = x.T @ x / len(x)

    def mean(function, scale=1.3):
        return integrate.quad(lambda r: function(r) * stats.norm.pdf(r, scale=scale), -12 * scale, 12 * scale)[0]

    def gate(r):
        return 1 / (1 + math.exp(-r))

    a, b = mean(lambda r: 1 - math.tanh(r) ** 2), mean(gate)
    c, d = mean(lambda r: math.tanh(r) ** 2), mean(lambda r: gate(r) ** 2 * (1 - gate(r)))
    goal = np.array([1.0, -1.0])
    expected = [*(-2 * C @ goal * a * b), *(2 * np.diag(C) * c * d)]
    assert gradients.additive_mean("subtract", 1.3, data) == pytest.approx(expected, rel=1e-8)


def test_mean_gradients_of_additive_units_hold_the_closed_form(monkeypatch):
    """Thirty-two 95% intervals: 30.4 are expected to, fewer than 26 once in a thousand were they independent."""
    monkeypatch.setattr(gradients, "OPERATIONS", ("add", "subtract"))
    found = gradients.expected(1, 500)
    assert len(found) == 32 and sum(one.low <= one.predicted <= one.high for one in found) >= 26
    small = [one for one in found if one.scale == 0.01]
    assert all(one.size == pytest.approx(abs(one.mean), rel=0.01) for one in small if one.parameter.startswith("W"))


def test_gradients_are_differences_of_the_loss():
    x, y = gradients.few("divide", 2)
    W_hat, M_hat = torch.tensor([[0.3, -0.2]]).double(), torch.tensor([[0.1, 0.4]]).double()

    def loss(W_hat, M_hat):
        W = (torch.tanh(W_hat) * torch.sigmoid(M_hat))[0]
        return float(((x**W).prod(dim=1) - y).square().mean())

    by_W_hat, by_M_hat = gradients.gradient("divide", W_hat, M_hat, (x, y))
    for place in range(2):
        step = torch.zeros(1, 2).double()
        step[0, place] = 1e-6
        difference = (loss(W_hat + step, M_hat) - loss(W_hat - step, M_hat)) / 2e-6
        assert by_W_hat[0, place].item() == pytest.approx(difference, rel=1e-5)
        difference = (loss(W_hat, M_hat + step) - loss(W_hat, M_hat - step)) / 2e-6
        assert by_M_hat[0, place].item() == pytest.approx(difference, rel=1e-5)


def test_the_first_step_gives_the_gates_a_gradient(monkeypatch):
    """Adam's first step moves each W_hat by its rate, 0.1: the gates' gradient is tanh(0.1) / 4 to W_hat's half."""
    monkeypatch.setattr(gradients, "OPERATIONS", ("add", "divide"))
    ways = gradients.escape([0, 1])
    for way in ways:
        assert way.by_W_hat.shape == way.by_M_hat.shape == (gradients.STEPS, 2)
        assert (way.by_M_hat[0] == 0).all() and (way.by_W_hat[0] > 0).all()
        ratio = (math.tanh(0.1) / 4) / ((1 - math.tanh(0.1) ** 2) / 2)
        assert (way.by_M_hat[1] / way.by_W_hat[1]).tolist() == pytest.approx([ratio] * 2, rel=1e-6)
    found = tables.escaped(ways)
    assert "exactly zero before" in found.text and found.value == pytest.approx(ratio, rel=1e-6)
    moved = gradients.Escape("add", ways[0].by_W_hat, ways[0].by_M_hat + 1)
    assert "NOT zero before" in tables.escaped([moved]).text


def test_the_words_on_zero_means_count_what_holds_zero():
    def one(scale, parameter, low, high, predicted=math.nan):
        return gradients.Expected("add", scale, parameter, (low + high) / 2, low, high, 1.0, 9, predicted)

    found = tables.zero([one(0.1, "M_hat 1", -1, 1, 0.5), one(1.0, "M_hat 1", 1, 2, 5.0), one(0.1, "W_hat 1", 1, 2)])
    assert "1 of 1 at 0.1, 0 of 1 at 1" in found[0].text
    assert (found[0].value, found[0].control_value, found[1].value) == (0.5, 0.0, 0.5)


@pytest.mark.parametrize(("exact", "words"), [(80, "train reliably"), (60, "do NOT train reliably"), (78, "undecided")])
def test_reliable_is_a_matter_of_the_interval(exact, words):
    """Of 80: Wilson's lower end is 0.954 for all, the upper end for 60 is 0.83, and 78 lies between."""
    rows = [outcome(SEPARATE, seed < exact, seed) for seed in range(80)] + [outcome(SEPARATE, False, scale=3.0)]
    found = tables.trains(rows)
    assert words in found.text and found.control_value == 0.0


def test_a_short_run_says_so_and_reads_back(monkeypatch, tmp_path):
    monkeypatch.setattr(training, "SAMPLES", 640)
    monkeypatch.setattr(gradients, "SAMPLES", 640)
    monkeypatch.setattr(gradients, "LOSS_SAMPLES", 32)
    result = module.hill_sharing.function([], module.Options(seeds=2, epochs=1, starts=3))
    assert "short run of 2 seeds" in result.findings[0].text and module.short(50) == []
    save(result, tmp_path / "saved", analysis_name="hill-sharing", options=module.Options())
    assert load(tmp_path / "saved") == result
    assert len(result.tables["cells"]) == 10 * 4 * 2 and len(result.tables["pairs"]) == 4 * 5


@pytest.mark.parametrize("options", [{"seeds": 1}, {"epochs": 0}, {"starts": 1}, {"seed": -1}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(BadInput):
        module.Options(**options)
