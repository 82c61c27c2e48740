import dataclasses
import math

import pytest
import torch

from analyses.hill import _hill_division_tables as tables
from analyses.hill import _hill_division_training as training
from analyses.hill import hill_division as module
from workbench.errors import BadInput
from workbench.result import load, save

PRINTED, FLOAT32, FLOAT64, *_, CONTROL = training.VARIANTS


@pytest.fixture
def small(monkeypatch):
    """Ten steps an epoch."""
    monkeypatch.setattr(training, "SAMPLES", 640)


def loop(seed, epochs, dtype):
    """One unit of the report's script: real powers, autograd, torch's Adam, batches in order."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(640, 2, dtype=dtype, generator=generator) * (10.0 - 1e-8) + 1e-8
    y = x[:, 0] / x[:, 1]
    W_hat, M_hat = (torch.zeros(2, 1, dtype=dtype, requires_grad=True) for _ in range(2))
    rule = torch.optim.Adam([W_hat, M_hat], lr=0.3)
    for _ in range(epochs):
        for first in range(0, 640, 64):
            W = torch.tanh(W_hat) * torch.sigmoid(M_hat)
            found = torch.prod(torch.pow(x[first : first + 64, :, None], W[None]), dim=1)[:, 0]
            rule.zero_grad()
            torch.nn.functional.mse_loss(found, y[first : first + 64]).backward()
            rule.step()
    W = (torch.tanh(W_hat) * torch.sigmoid(M_hat)).detach()[:, 0]
    return W_hat.detach()[:, 0], M_hat.detach()[:, 0], (x[:, 0] ** W[0] * x[:, 1] ** W[1] - y).square().mean()


@pytest.mark.parametrize("variant", [PRINTED, FLOAT32, FLOAT64], ids=lambda v: v.name)
def test_units_are_those_of_the_script_run_one_by_one(small, variant):
    found = training.train(variant, [3, 4], 2)
    rel = 1e-9 if variant.dtype == torch.float64 else 2e-3
    for place, seed in enumerate((3, 4)):
        W_hat, M_hat, _ = loop(seed, 2, variant.dtype)
        assert found.W_hat[place].tolist() == pytest.approx(W_hat.tolist(), rel=rel)
        assert found.M_hat[place].tolist() == pytest.approx(M_hat.tolist(), rel=rel)
        assert found.shown[0, place].item() == pytest.approx(loop(seed, 1, variant.dtype)[2].item(), rel=rel)
    assert found.W_hat.dtype == variant.dtype and found.shown.shape == (1, 2)


def test_the_printed_variant_is_that_of_the_report():
    """Section 4.2: float32, Adam at 0.3 with torch's other settings, 64,000 problems, batches of 64, 50 epochs."""
    assert (PRINTED.dtype, PRINTED.low, PRINTED.high) == (torch.float32, 1e-8, 10.0)
    adam = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=0.3).defaults
    assert dict(PRINTED.rule.settings).items() <= adam.items()
    assert (training.SAMPLES, training.BATCH, module.FULL_EPOCHS) == (64_000, 64, 50)
    assert CONTROL.low == -10.0 and CONTROL.rule == FLOAT64.rule


def exact_raw(dtype=torch.float64):
    return torch.tensor([[40.0, -40.0]], dtype=dtype), torch.tensor([[40.0, 40.0]], dtype=dtype)


def test_a_unit_counts_as_exact_from_the_epoch_after_which_it_stays_so(monkeypatch, small):
    right, wrong = exact_raw(), (torch.zeros(1, 2).double(), torch.zeros(1, 2).double())
    for courses, after in (("rwrr", 3), ("rrrr", 1), ("wwww", 0), ("rrrw", 0)):
        states = iter(right if letter == "r" else wrong for letter in courses)
        monkeypatch.setattr(training, "_engine_epochs", lambda variant, drawn, states=states: lambda: next(states))
        assert training.train(FLOAT64, [0], 4).exact_after.tolist() == [after]


def divisions(W_hat, M_hat, variant=FLOAT64):
    n = len(W_hat)
    return training.Divisions(variant, W_hat, M_hat, torch.ones(n, dtype=torch.int64), torch.zeros(1, n))


def test_what_the_tests_say_of_exact_and_of_nearly_exact_weights():
    """tanh 9 and sigmoid 9 are 0.9999: -0.13 to that power is no real number, and snapping makes both weights whole."""
    W_hat, M_hat = (
        torch.tensor([[40.0, -40.0], [9.0, -9.0]]).double(),
        torch.tensor([[40.0, 40.0], [9.0, 9.0]]).double(),
    )
    one = divisions(W_hat, M_hat)
    said = training.answers(one)
    native = [713.534 / -0.13, -0.252 / -5244, 325751 / -161800]
    assert said.native.tolist() == said.snapped[0].tolist() == said.snapped[1].tolist() == native
    assert said.printed[1].isnan().all() and tables.passes(said).tolist() == [[True] * 3, [False] * 3]
    assert said.snapped_real[0].tolist() == [a * b**-1.0 for a, b in training.TESTS]
    assert one.exact.tolist() == [True, True]
    rows = tables.cases([one], [said])
    assert rows["ticked"].tolist() == [0.5] * 3 and rows["largest_ulps"].tolist() == [0] * 3
    assert rows["bits_snapped"].tolist() == [1.0] * 3


def test_other_weights_are_not_exact():
    W_hat = torch.tensor([[40.0, 40.0], [40.0, -2.0], [0.0, 0.0]]).double()
    assert training.selected(W_hat, torch.full_like(W_hat, 40.0)).tolist() == [False] * 3


def some(exact, n):
    """`exact` of n units at the selection, the others at [0, 0]."""
    right = torch.arange(n)[:, None] < exact
    return divisions(torch.where(right, torch.tensor([[40.0, -40.0]]), 0.0).double(), torch.full((n, 2), 40.0).double())


@pytest.mark.parametrize(
    ("exact", "words"), [(100, "division reliably"), (99, "division undecided"), (80, "division NOT reliably")]
)
def test_reliable_is_a_matter_of_the_interval(exact, words):
    """Wilson's lower end is 0.963 for 100 of 100, 0.946 for 99; the upper end for 80 is 0.867."""
    found = module.reliable([some(exact, 100), some(1, 4)])
    assert words in found.text and (found.value, found.control_value) == (exact / 100, 0.25)


def test_findings_on_ticks_and_bits():
    found = [some(3, 4), some(4, 4)]
    said = [training.answers(one) for one in found]
    ticks = module.ticked(found, said)
    assert ticks.text.startswith("3 of 4 of the script's units pass") and "The weights of 4 are whole" in ticks.text
    (bits,) = module.bits(found, said)
    assert "9 of the 9 answers" in bits.text and "are native division's bits" in bits.text
    wrong = dataclasses.replace(said[0], snapped=said[0].snapped * 1.0000001)
    assert "NOT all" in module.bits(found, [wrong, said[1]])[0].text
    assert module.bits([some(0, 4), some(4, 4)], said) == []


def test_a_short_run_says_so_and_reads_back(small, tmp_path):
    result = module.hill_division.function([], module.Options(seeds=2, epochs=1))
    assert "short run of 1 epochs" in result.findings[0].text and module.short(50) == []
    save(result, tmp_path / "saved", analysis_name="hill-division", options=module.Options())
    assert load(tmp_path / "saved") == result
    summary = result.tables["summary"]
    assert len(summary) == 5 and (summary["n"] == 2).all()
    assert math.isfinite(summary["distance"].iloc[0])
    shares = {trace.name: trace.y[-1] for trace in result.figures["training"].data}
    assert shares == dict(zip(summary["variant"], summary["exact"], strict=True))


@pytest.mark.parametrize("options", [{"seeds": 1}, {"epochs": 0}, {"seed": -1}, {"seeds": 1001}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(BadInput):
        module.Options(**options)
