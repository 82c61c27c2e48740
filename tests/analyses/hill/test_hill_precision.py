import copy
import dataclasses
from fractions import Fraction

import numpy as np
import pytest
import torch

from analyses.hill import _hill_precision_tables as tables
from analyses.hill import hill_precision as module
from analyses.hill._hill_precision_check import TOLERANCE, agreement, check, decimal_squares
from analyses.hill._hill_precision_measure import (
    BATCH,
    COMPLEX,
    CONFIGS,
    LOG_SPACE,
    NATIVE,
    PIECE,
    REAL,
    SEED,
    SIGN_EXACT,
    complex_powers,
    exact,
    log_space,
    measure,
    methods,
    pieces,
    squared_errors,
)
from analyses.hill._hill_precision_stream import Largest, Tally, held_for
from analyses.published import load
from workbench import analysis
from workbench.errors import BadInput

DIVIDE32, MULTIPLY64 = CONFIGS[3], CONFIGS[6]


@pytest.fixture(scope="module")
def short():
    return module.hill_precision.function([], module.Options(samples=50_000, checked=200))


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_values_are_those_of_sorting_whatever_the_pieces(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice(rng.random(500), 20_000)  # many ties
    largest = Largest(321)
    for piece in np.split(values, np.sort(rng.choice(20_000, 60, replace=False))):
        largest.add(piece)
    assert largest.descending().tolist() == np.sort(values)[::-1][:321].tolist()


@pytest.mark.parametrize("n", [7, 20_000, 300_001])
def test_a_tally_is_numpys_mean_maximum_and_quantile(n):
    values = np.random.default_rng(n).standard_normal(n) ** 2
    tally = Tally(n)
    for piece in np.array_split(values, max(n // 1000, 1)):
        tally.add(piece, int((piece > 1).sum()))
    assert tally.mean == pytest.approx(values.mean(), rel=1e-14)
    assert tally.maximum == values.max()
    value, low, high = tally.quantile()
    assert value == pytest.approx(np.quantile(values, 0.9999), rel=1e-12)
    assert low <= value <= high
    assert (tally.n, tally.equal) == (n, int((values > 1).sum()))
    ten = np.sort(values)[::-1][:10].sum() / values.sum()
    assert tally.share_of_largest(10) == pytest.approx(ten, rel=1e-12)


def test_the_interval_of_the_quantile_holds_the_true_one_nineteen_times_in_twenty():
    """Uniform numbers, whose 99.99% quantile is 0.9999: 200 tallies, 190 expected, 178 or fewer one time in 2,000."""
    inside = 0
    for seed in range(200):
        tally, values = Tally(30_000), np.random.default_rng(seed).random(30_000)
        tally.add(values, 0)
        _, low, high = tally.quantile()
        inside += low <= 0.9999 <= high
    assert inside >= 179


def test_what_is_not_finite_is_counted_and_left_out():
    tally = Tally(4)
    tally.add(np.array([1.0, np.nan, 3.0, np.inf]), 1)
    assert (tally.n, tally.not_finite, tally.mean, tally.maximum) == (2, 2, 2.0, 3.0)
    assert held_for(100_000_000) > 10_000


def test_the_samples_are_the_published_ones():
    """Drawn here as the published protocol says, batch by batch; a divisor of at most 1e-10 leaves its pair out."""
    for config in (DIVIDE32, MULTIPLY64):
        ours = torch.cat(list(pieces(config, BATCH + PIECE, SEED)))
        seeds = [np.random.SeedSequence([20260724, config.index, batch]) for batch in range(2)]
        first, second = (np.random.default_rng(seed).uniform(-1e4, 1e4, (250_000, 2)) for seed in seeds)
        theirs = torch.from_numpy(np.concatenate([first, second[:PIECE]])).to(config.dtype)
        assert torch.equal(ours, theirs)


def test_pairs_with_a_divisor_near_zero_are_left_out(monkeypatch):
    from analyses.hill import _hill_precision_measure as measuring

    monkeypatch.setattr(measuring, "SMALLEST_DIVISOR", 5e3)
    x = torch.cat(list(pieces(DIVIDE32, PIECE, SEED)))
    assert 0.45 < len(x) / PIECE < 0.55 and (x[:, 1].abs() > 5e3).all()
    assert len(torch.cat(list(pieces(MULTIPLY64, PIECE, SEED)))) == PIECE


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.operation}-{c.precision}")
def test_squared_errors_are_those_of_rational_arithmetic(config):
    x = next(pieces(config, PIECE, SEED))[:150]
    answers = {name: function(x) for name, function in methods(config).items()}
    compute = {"add": Fraction.__add__, "subtract": Fraction.__sub__, "multiply": Fraction.__mul__,
               "divide": Fraction.__truediv__}[config.operation]  # fmt: skip
    results = [compute(Fraction(a), Fraction(b)) for a, b in x.tolist()]
    for name, answer in answers.items():
        squares = squared_errors(answer, *exact(x, config.operation))
        for square, value, result in zip(squares.tolist(), answer.tolist(), results, strict=True):
            true = (Fraction(value) - result) ** 2
            assert abs(Fraction(square) - true) <= true * Fraction(TOLERANCE), name


def test_decimal_squares_worked_by_hand():
    """1/4 is exact; 1/3 off by 2^-54/3 in float64; 0.5 instead of 2/4 plus a quarter is off by a quarter."""
    x = np.array([[1.0, 4.0], [1.0, 3.0], [2.0, 4.0]])
    found = decimal_squares("divide", x, {"ours": np.array([0.25, 1 / 3, 0.75])})["ours"]
    assert [float(value) for value in found] == [0.0, float((Fraction(1, 3) / 2**54) ** 2), 0.0625]


def test_an_agreement_fails_when_a_square_is_off_by_more_than_rounding():
    from decimal import Decimal

    exact = [Decimal(4), Decimal(0), Decimal(9)]
    assert agreement(np.array([4.0, 0.0, 9.0]), exact).passed
    near = agreement(np.array([4.0, 0.0, 9.000000000000002]), exact)
    assert near.passed and (near.n, near.equal) == (3, 2)
    assert not agreement(np.array([4.0, 0.0, 9.00000000000002]), exact).passed
    assert not agreement(np.array([4.0, 1e-300, 9.0]), exact).passed


def test_the_check_passes_and_sees_a_wrong_transformation(monkeypatch):
    assert all(found.passed for found in check(MULTIPLY64, 50, SEED).values())
    from analyses.hill import _hill_precision_measure as measuring

    monkeypatch.setattr(measuring, "two_terms", lambda name, a, b: (a * b, torch.zeros_like(a)))
    assert not any(found.passed for found in check(MULTIPLY64, 50, SEED).values())


def test_log_space_has_inalus_guards():
    """exp(ln 3 + ln 4) is 12; magnitudes below 1e-7 count as that, exponents above 20 as 20; a zero gives 0."""
    W = torch.tensor([1.0, -1.0], dtype=torch.float64)
    x = torch.tensor([[-12.0, 4.0], [2.0, 1e-9], [1e9, -1e-3], [0.0, 5.0]], dtype=torch.float64)
    assert log_space(x, W).tolist() == pytest.approx([-3.0, 2e7, -float(np.exp(20.0)), 0.0])


def test_what_is_known_of_the_methods_without_measuring():
    """Section 4.4: add and subtract are native; real division rounds twice; sign-exact rounds once."""
    tallies = {(c.operation, c.precision): measure(c, 2 * PIECE) for c in CONFIGS}
    for (name, _), methods_of in tallies.items():
        same = [REAL] if name in ("add", "subtract") else [SIGN_EXACT] if name == "divide" else [REAL, SIGN_EXACT]
        for method in same:
            assert methods_of[method].equal == methods_of[method].n
            assert methods_of[method].mean == methods_of[NATIVE].mean
    double = tallies["multiply", "float64"]
    low, high = double[COMPLEX].mean_interval(double[NATIVE])
    assert low < 5.8e-16 < high  # published in table 4.4.2
    assert double[LOG_SPACE].mean == pytest.approx(2.3e-15, rel=0.1)
    assert tallies["divide", "float64"][REAL].equal / (2 * PIECE) == pytest.approx(0.7427, abs=0.01)


def test_a_complex_power_of_one_keeps_one_number_in_eight():
    found = complex_powers(PIECE)
    assert found.numbers == 2 * PIECE and 0.10 < found.kept / found.numbers < 0.15
    assert found.explained == PIECE


@pytest.mark.parametrize(
    ("value", "printed"),
    [(5.2511e-08, "5.25e-08"), (7.489e-26, "7.5e-26"), (0.7378, "7.38e-01"), (0.0, "0.0"), (16.0, "1.60e+01")],
)
def test_numbers_are_printed_as_the_report_prints_them(value, printed):
    assert tables.as_printed(value) == printed


def test_the_published_raw_numbers_agree_with_the_printed_ones_by_our_rule():
    """The rule that counts agreement, on the authors' own unrounded numbers: all 72 must agree."""
    raw = {(r["operation"], r["precision"]): r for r in load("hill")["raw_4_4_error_floor"]["rows"]}
    keys = {NATIVE: "native", REAL: "analytical", COMPLEX: "complex128", LOG_SPACE: "logspace"}
    texts = tables.published_numbers()
    assert len(texts) == 72
    for (operation, precision, method, quantity), text in texts.items():
        row = raw[operation, precision]
        value = row[keys[method]][{"mean": "mse", "max": "max_se", "99.99%": "q9999_se"}[quantity]]
        if quantity == "mean" and method != NATIVE:
            value -= row["native"]["mse"]
        assert tables.as_printed(value) == text


def test_a_reason_is_found_only_among_implementations_of_log_space():
    assert tables.reason(LOG_SPACE, 2.06e-6, [2.05e-6, 2.04e-6, 2.09e-6]) == tables.REASONED
    assert tables.reason(LOG_SPACE, 2.10e-6, [2.05e-6, 2.04e-6, 2.09e-6]) == tables.UNREASONED
    assert tables.reason(LOG_SPACE, 2.05e-6, [2.05e-6]) == tables.UNREASONED
    assert tables.reason(COMPLEX, 2.06e-6, [2.05e-6, 2.04e-6, 2.09e-6]) == tables.UNREASONED


def test_differing_numbers_are_named_with_range_and_reason():
    key = {"operation": "multiply", "format": "float32", "quantity": "max", "low": 1.0, "high": 2.0, "n": 9}
    rows = [{**key, "method": LOG_SPACE, "measured": 35460.0}, {**key, "method": NATIVE, "measured": 16.0},
            {**key, "method": "Log-space, log and exp of numpy", "measured": 37330.0}]  # fmt: skip
    beside = tables.beside_published(rows, comparable=True)
    assert [row["agrees"] for row in beside] == ["no", "yes"]
    (found,) = tables.differing(rows, beside)
    assert (found["lowest"], found["highest"], found["reason"]) == (35460.0, 37330.0, tables.REASONED)
    sentence = module.compared(beside, [found], 9)[1].text
    assert "multiply float32 Log-space, max: 3.546e+04, published 3.59e+04" in sentence and "AVX2" in sentence
    assert all(row["agrees"] == "" for row in tables.beside_published(rows, comparable=False))


@pytest.mark.parametrize(("agree", "verdict"), [(72, "enough"), (66, "enough"), (65, "TOO FEW")])
def test_the_verdict_flips_below_66_of_72(agree, verdict):
    first, *rest = module.compared([{"agrees": "yes"}] * agree + [{"agrees": "no"}] * (72 - agree), [], 1)
    assert verdict in first.text and (first.value, first.n, first.control_value) == (agree, 72, 66) and not rest


def test_the_verdict_on_sign_exact_flips_with_one_answer():
    measured = {config: measure(config, PIECE) for config in CONFIGS if config.operation == "multiply"}
    whole = module.sign_exact(measured)
    assert whole.value == 1 and "on every sample" in whole.text
    spoilt = copy.deepcopy(measured)
    spoilt[MULTIPLY64][SIGN_EXACT].equal -= 1
    assert "does NOT" in module.sign_exact(spoilt).text


def test_a_short_run_says_so_and_compares_nothing(short):
    assert short.findings[0].text.startswith("A short run") and set(short.tables["summary"]["agree"]) == {""}
    assert len(short.tables["numbers"]) == 3 * (24 + 4) and len(short.tables["differing"]) == 0
    assert (short.tables["numbers"]["published"] != "").sum() == 72
    assert short.tables["check"]["passed"].all()
    numbers = short.tables["numbers"].set_index(["operation", "format", "method", "quantity"])
    assert numbers.loc["divide", "float64", NATIVE, "mean"][["low", "high"]].isna().all()
    mean = numbers.loc["multiply", "float32", NATIVE, "mean"]
    assert mean["low"] < 0.738 < mean["high"]  # published in table 4.4.1


def test_replacing_the_published_numbers_by_noise_changes_no_measured_column(short, monkeypatch):
    rng = np.random.default_rng(0)

    def noise(value):
        if isinstance(value, dict):
            return {k: v if k in ("operation", "precision", "method") else noise(v) for k, v in value.items()}
        if isinstance(value, list):
            return [noise(v) for v in value]
        return f"{rng.random():.2e}" if isinstance(value, str) else float(rng.random())

    monkeypatch.setattr(tables, "load", lambda name: noise(load(name)))
    other = module.hill_precision.function([], module.Options(samples=50_000, checked=200))
    for name, table in short.tables.items():
        ours = [column for column in table.columns if "published" not in column]
        assert table[ours].equals(other.tables[name][ours]), name
    assert not short.tables["numbers"]["published"].equals(other.tables["numbers"]["published"])
    assert [f.value for f in short.findings] == [f.value for f in other.findings]


def test_the_figures_show_every_row_with_titles_and_units(short):
    errors, bits = short.figures["errors"], short.figures["bits"]
    for figure, axis in ((errors, "squared error"), (bits, "share of answers")):
        assert figure.layout.title.text and axis in figure.layout.xaxis.title.text
    shown = [trace for trace in errors.data if trace.name == "mean"]
    assert [len(trace.x) for trace in shown] == [14, 14]
    assert all(value > 0 for trace in shown for value in trace.x)  # a logarithmic axis
    assert len(errors.layout.yaxis.ticktext) == 14 and len(bits.layout.yaxis.ticktext) == 10


@pytest.mark.parametrize("wrong", [{"samples": 100}, {"samples": 10**9}, {"checked": 0}, {"seed": -1}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput, match="expected"):
        module.Options(**wrong)


def test_the_published_protocol_is_the_one_flag():
    assert load("hill")["raw_4_4_error_floor"]["protocol"]["samples"] == module.MOST
    index = {f"{c.precision}/{c.operation}": c.index for c in CONFIGS}
    assert index == load("hill")["raw_4_4_error_floor"]["protocol"]["config_index"]
    assert dataclasses.asdict(module.Options())["full"] is False


def test_a_full_run_compares_names_what_differs_and_survives_the_disk(monkeypatch, tmp_path):
    """The published number of samples taken to be 50,000, so that most numbers differ."""
    from analyses.hill import _hill_precision_measure as measuring

    monkeypatch.setattr(measuring, "FULL", 50_000)
    result = module.hill_precision.function([], module.Options(full=True, checked=50))
    agree = (result.tables["numbers"]["agrees"] == "yes").sum()
    assert result.findings[0].text.startswith(f"{agree} of 72 published numbers agree") and 10 < agree < 66
    assert "TOO FEW" in result.findings[0].text
    different = result.tables["differing"]
    assert len(different) == 72 - agree == sum("Reason:" in finding.text for finding in result.findings)
    other = module.hill_precision.function([], module.Options(full=True, checked=50, seed=1))
    assert len(other.tables["differing"]) == 0  # another seed is not compared
    analysis.save(result, tmp_path, analysis_name="hill-precision", options=module.Options())
    assert analysis.load(tmp_path) == result
