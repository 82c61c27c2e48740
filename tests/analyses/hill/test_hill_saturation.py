import dataclasses
import math
from decimal import Context, Decimal

import numpy as np
import pytest
import torch

from analyses.hill import _hill_saturation_findings as findings
from analyses.hill import _hill_saturation_snapping as snapping
from analyses.hill import hill_saturation as module
from analyses.hill._hill_saturation_snapping import FACTORS, WEIGHT, Band, Parked, Snapped, band, sweep
from analyses.hill._hill_saturation_surfaces import EXAMPLES, gradient_figure, hill_figure, primitives_figure
from analyses.hill._hill_saturation_thresholds import (
    FACTORS as FUNCTIONS,
)
from analyses.hill._hill_saturation_thresholds import (
    FORMATS,
    at_twenty,
    correctly_rounded,
    first_hundredth,
    thresholds,
    tried,
)
from analyses.published import load
from workbench import analysis
from workbench.errors import BadInput
from workbench.hill.operations import OPERATIONS

EXACTLY = Context(prec=60)


@pytest.fixture(scope="module")
def short():
    """The whole analysis, its units trained 200 steps each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapping, "SAMPLES", 6_400)
        return module.hill_saturation.function([], module.Options(epochs=2))


def raw(tanh: float, sigmoid: float) -> tuple[float, float]:
    """(W_hat, M_hat) with these factors."""
    return math.atanh(tanh), math.log(sigmoid / (1 - sigmoid))


def parked(*units: tuple[str, tuple[float, float], tuple[float, float]]) -> Parked:
    """Units of (name, factors of the first weight, factors of the second)."""
    names, first, second = zip(*units, strict=True)
    pairs = torch.tensor([[raw(*a), raw(*b)] for a, b in zip(first, second, strict=True)], dtype=torch.float64)
    return Parked(names, ("Adam",) * len(units), (0,) * len(units), pairs[..., 0], pairs[..., 1])


@pytest.mark.parametrize(("dtype", "digits"), [(torch.float16, 11), (torch.bfloat16, 8)])
def test_every_16_bit_number_has_been_tried_against_another_library(dtype, digits):
    """Python's functions in float64, rounded once: correctly rounded in these formats, as torch's tanh is found to be.

    A format of p digits rounds to 1 what is at least 1 - 2^-(p+1).
    """
    tanh = thresholds(dtype, full=False)[0]
    every = torch.arange(1, 2**15, dtype=torch.int16).view(dtype).double()
    every = every[every.isfinite()].tolist()
    assert tanh.found == tanh.rounded == min(x for x in every if math.tanh(x) >= 1 - 2.0 ** -(digits + 1))
    assert (tanh.tried, tanh.exceptions, tanh.everything) == (len(every), 0, True)


def test_float64_thresholds_are_where_exact_arithmetic_puts_them():
    """1 - tanh(x) = 2 / (e^2x + 1) and 1 - sigmoid(x) = 1 / (e^x + 1), to 60 digits, against half an ulp below 1."""
    half = Decimal(2) ** -54
    for factor, power in (("tanh(x) = 1", 2), ("sigmoid(x) = 1", 1)):
        at = correctly_rounded(torch.float64, factor)
        below = math.nextafter(at, 0)
        short = [EXACTLY.divide(Decimal(power), EXACTLY.exp(power * Decimal(x)) + 1) for x in (at, below)]
        assert short[0] <= half < short[1]
    found = {t.factor: t for t in thresholds(torch.float64, full=False)}
    assert found["sigmoid(x) = 1"].found == pytest.approx(math.log(2**53), abs=1e-7)  # not ln(2^54 - 1), as rounded
    assert found["sigmoid(x) = 1"].rounded == pytest.approx(math.log(2**54), abs=1e-12)
    assert found["sigmoid(-x) = 0"].rounded == pytest.approx(1075 * math.log(2), abs=1e-9)
    assert not any(t.exceptions or t.everything for t in found.values())


def test_a_threshold_off_by_one_number_is_an_exception():
    tanh, _, _ = thresholds(torch.float32, full=False)
    one = torch.tensor(tanh.found)
    for wrong in (torch.nextafter(one, torch.tensor(0.0)), torch.nextafter(one, torch.tensor(math.inf))):
        assert tried(torch.float32, FUNCTIONS["tanh(x) = 1"], float(wrong), full=False)[1] == 1


@pytest.mark.parametrize("row", load("hill")["table_2_2_thresholds"], ids=lambda row: row["precision"])
def test_published_thresholds_are_the_first_hundredths(row):
    dtype = getattr(torch, row["precision"])
    tanh, sigmoid, _ = thresholds(dtype, full=False)
    assert first_hundredth(dtype, tanh.factor, tanh.found) == row["tanh_eq_1_at"]
    assert first_hundredth(dtype, sigmoid.factor, sigmoid.found) == row["sigmoid_eq_1_at"]


def test_twenty_is_short_of_one_by_e_to_the_minus_twenty():
    twenty = at_twenty(torch.float64)
    short = float(EXACTLY.divide(Decimal(1), EXACTLY.exp(Decimal(20)) + 1))
    assert abs(twenty.ulps - short * 2**53) < 1.5 and twenty.ulps * 2.0**-53 == 1 - twenty.W
    assert (twenty.tanh, twenty.snapped) == (1.0, 1.0)
    assert [at_twenty(dtype).W for dtype in FORMATS] == [1.0, 1.0, 1.0, twenty.W]


@pytest.mark.parametrize(
    ("change", "words"),
    [({}, "holds in float64"), ({"sigmoid": 1.0}, "does NOT hold"), ({"tanh": 0.99}, "does NOT hold"),
     ({"snapped": 0.9}, "not exact even when snapped")],
)  # fmt: skip
def test_the_verdict_on_the_remark_flips(change, words):
    assert (
        words
        in findings.inalu([at_twenty(torch.float32), dataclasses.replace(at_twenty(torch.float64), **change)]).text
    )


NEAR = (1 - 1e-3, 1 - 2e-3)  # the weight is about 3e-3 short of 1
HELD = (1e-3, 0.4)  # a zero held by tanh, with the gate open
SHUT = (0.9, 1e-3)  # a zero held by the gate


def test_what_snapping_does_to_hand_made_units():
    """tanh and sigmoid need 2e-3, their product 3e-3; a zero held by tanh is out of the report's rule's reach."""
    units = parked(("add", NEAR, NEAR), ("sin", (-NEAR[0], NEAR[1]), HELD), ("cos-sum", NEAR, SHUT),
                   ("square root", (0.534, 0.937), HELD))  # fmt: skip
    assert units.learned.tolist() == [True, True, True, False] and units.root.tolist() == [False] * 3 + [True]
    assert units.distance[:2].tolist() == pytest.approx([2.998e-3] * 2, abs=1e-9)

    def first(rule: str, unit: int) -> float:
        return min((t for t in snapping.THRESHOLDS if snapping.exact(units, rule, t)[unit]), default=math.nan)

    assert first(FACTORS, 0) == pytest.approx(10**-2.6) and first(WEIGHT, 0) == pytest.approx(10**-2.5)
    assert math.isnan(first(FACTORS, 1)) and first(WEIGHT, 1) == pytest.approx(10**-2.5)
    assert first(FACTORS, 2) == pytest.approx(10**-2.6)
    moved = [snapping.moved(units, FACTORS, t)[3].item() for t in (0.062, 0.064)]
    assert moved == pytest.approx([0.0, 0.534 * (1 - 0.937)])


def test_a_weight_that_no_answer_depends_on_is_left_out():
    units = parked(("reciprocal", (-0.9999, 0.9999), (0.5, 0.5)), ("multiply", NEAR, (0.5, 0.5)))
    assert units.distance.tolist() == pytest.approx([1 - 0.9999**2, 0.75])
    assert units.learned.tolist() == [True, False]
    assert snapping.exact(units, FACTORS, 1e-3).tolist() == [True, False]


def rows_of(exact: list[int], touched: list[int]) -> list[Snapped]:
    steps = (0.0, 1e-3, 1e-2, 1e-1)
    return [Snapped(FACTORS, t, e, 20, k, 5) for t, e, k in zip(steps, exact, touched, strict=True)]


def test_the_band_by_hand():
    assert band(rows_of([2, 18, 20, 20], [0, 0, 0, 1])) == Band(1e-2, 1e-2)  # 18 is less than 95% of 20
    assert band(rows_of([2, 19, 20, 20], [0, 0, 0, 0])) == Band(1e-3, 1e-1)
    assert band(rows_of([2, 5, 5, 20], [0, 0, 0, 1])) == Band(1e-3, 1e-2)  # what happens above the end does not count
    assert band(rows_of([0, 0, 0, 9], [0, 0, 1, 1])).empty
    assert band(rows_of([0, 9, 9, 9], [1, 1, 1, 1])).empty


def test_verdicts_on_the_band_flip():
    units = parked(("add", NEAR, NEAR), ("square root", (0.534, 0.937), HELD))
    low, high = findings.safe_band(Band(4e-3, 5e-2), units, True)
    assert "this agrees" in low.text and "this agrees" in high.text and (low.value, high.value) == (4e-3, 5e-2)
    low, high = findings.safe_band(Band(7e-3, 2e-2), units, True)
    assert "does NOT agree" in low.text and "does NOT agree" in high.text
    assert not any("agree" in found.text for found in findings.safe_band(Band(4e-3, 5e-2), units, False))
    (none,) = findings.safe_band(Band(math.inf, 0.1), units, True)
    assert "No threshold is safe" in none.text


def test_findings_of_hand_made_units():
    units = parked(("add", NEAR, NEAR), ("sin", (-NEAR[0], NEAR[1]), HELD), ("square root", (0.534, 0.937), HELD))
    default = findings.at_default(sweep(units))
    assert (default.value, default.control_value, default.n) == (0.5, 0.0, 2)
    other = findings.other_rule(units, Band(1e-3, 0.1))
    assert (
        (other.value, other.control_value) == (1.0, 0.5)
        and "Of the 1 that" in other.text
        and "1 hold a zero" in other.text
    )
    assert findings.near(units).value == 0.0
    assert findings.near(parked(("add", (0.9999, 0.9999), (0.9999, 0.9999)))).value == 1.0
    assert "No unit has learned" in findings.near(parked(("add", (0.1, 0.5), (0.1, 0.5)))).text


def test_training_data_are_what_the_answers_say():
    for name in (*snapping.OPERATIONS, *snapping.ROOTS):
        x, y = snapping.problems(name, np.random.default_rng(0))
        assert x.shape == (64_000, 2) and x[:, 0].min() >= 1e-8 and x.max() <= 10
        assert bool((x[:, 1] == 1).all()) == (name in ("power-identity", "reciprocal", "sin", *snapping.ROOTS))
    x, y = snapping.problems("divide", np.random.default_rng(0))
    assert torch.equal(y, x[:, 0] / x[:, 1])
    assert torch.allclose(snapping.problems("cube root", np.random.default_rng(0))[1] ** 3, x[:, 0], rtol=1e-14)


def test_training_drives_into_saturation_what_the_report_says_it_does(short):
    """Section 2.2: with beta2 = 0.5 Adam keeps moving and add becomes exact; with its default it stalls short of it."""
    units = short.tables["units"].set_index(["operation", "optimizer"])
    assert units.loc["add", "Adam, beta2 0.5"]["distance"].item() < 1e-6
    assert 1e-6 < units.loc["add", "Adam"]["distance"].item() < 0.1
    assert len(units) == 10 * (8 + 2) and not units.loc["cube root"]["learned"].any()


def test_the_result_is_a_function_of_its_seed(monkeypatch):
    monkeypatch.setattr(snapping, "SAMPLES", 640)
    first, again, other = (snapping.train(["add", "square root"], 1, [seed]) for seed in (1, 1, 2))
    assert torch.equal(first.W_hat, again.W_hat) and not torch.equal(first.W_hat, other.W_hat)
    both = snapping.train(["add", "square root"], 1, [1, 2])
    assert torch.equal(both.W_hat, torch.cat([first.W_hat, other.W_hat])) and both.seeds == (1,) * 20 + (2,) * 20


def test_the_tables_and_the_published_column(short):
    table = short.tables["thresholds"]
    assert len(table) == 12 and (table["agrees"] == "yes").sum() == 6 and table["exceptions"].sum() == 0
    assert short.findings[0].text.startswith("A short run") and short.findings[1].value == 6
    assert len(short.tables["snapping"]) == 2 * (1 + len(snapping.THRESHOLDS))
    assert set(short.tables["summary"]["format"]) == {"float16", "bfloat16", "float32", "float64"}
    units = short.tables["units"]
    learned = units["learned"].sum()
    at = short.tables["snapping"].set_index(["rule", "threshold"])["exact"]
    operations = units[~units["operation"].isin(snapping.ROOTS)]
    for rule in (FACTORS, WEIGHT):
        needed = operations[f"exact_from_{rule}"]
        assert at[rule, snapping.THRESHOLDS[-1]] == needed.notna().sum() <= learned
        assert at[rule, 0.0] == (needed == 0).sum()


def test_replacing_the_published_numbers_by_noise_changes_no_measured_column(short, monkeypatch):
    published = load("hill")["table_2_2_thresholds"]
    noise = [{**row, "tanh_eq_1_at": 3.14, "sigmoid_eq_1_at": 2.72, "eps": "1"} for row in published]
    monkeypatch.setattr(module, "load", lambda name: {"table_2_2_thresholds": noise})
    monkeypatch.setattr(snapping, "SAMPLES", 6_400)
    other = module.hill_saturation.function([], module.Options(epochs=2))
    for name, table in short.tables.items():
        ours = [c for c in table.columns if "published" not in c and c != "agrees"]
        assert table[ours].equals(other.tables[name][ours]), name
    assert set(other.tables["thresholds"]["agrees"]) == {"", "no"} and "NOT these" in other.findings[1].text
    assert short.findings[2:] == other.findings[2:]


def test_the_hill_has_its_three_plateaus():
    surface = hill_figure().data[0]
    z = np.array(surface.z)
    at = {(x, y): z[j][i] for i, x in enumerate(surface.x) for j, y in enumerate(surface.y)}
    assert at[8.0, 8.0] == pytest.approx(math.tanh(8) / (1 + math.exp(-8)))
    assert at[-8.0, 8.0] == -at[8.0, 8.0] and abs(at[8.0, -8.0]) < 1e-3 and at[0.0, 0.0] == 0


def test_the_gradient_is_drawn_where_there_is_one():
    whole = gradient_figure()
    heat = whole.data[0]
    at = {(x, y): heat.z[j][i] for i, x in enumerate(heat.x) for j, y in enumerate(heat.y)}
    assert at[20.0, 37.0] is None and at[20.0, 36.0] is not None and at[19.0, 40.0] is not None
    assert at[0.0, 0.0] == pytest.approx(math.log10(0.5))  # dW/dW_hat = sigmoid(0), dW/dM_hat = 0
    ends = {trace.name: max(trace.x) for trace in whole.data if trace.type == "scatter" and trace.mode == "lines"}
    assert ends["float32"] < 17 < 20 < ends["float64"] < 36.75


def test_primitives_show_the_operation_at_its_selection():
    traces = primitives_figure().data
    for place, (primitive, inputs) in enumerate(EXAMPLES.items()):
        contour = traces[2 * place]
        for row in [row for row in OPERATIONS.values() if row.primitive == primitive]:
            i, j = (round(40 * (w + 1)) for w in row.selection)
            x = [torch.tensor(value, dtype=torch.float64) for value in inputs[: row.arity]]
            assert contour.z[j][i] == pytest.approx(float(row.exact(*x)), rel=1e-12), row.name


def test_the_sweeps_figures_have_titles_units_and_every_unit(short):
    figure, other = short.figures["snapping"], short.figures["parked"]
    assert "threshold" in figure.layout.xaxis.title.text and "share" in figure.layout.yaxis.title.text
    assert "distance" in other.layout.yaxis.title.text
    assert sum(len(trace.x) for trace in other.data) == 80
    assert all(value > 0 for trace in other.data for value in trace.y)


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"seeds": 0}, {"seed": -1}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput, match="expected"):
        module.Options(**wrong)


def test_the_result_survives_the_disk(short, tmp_path):
    analysis.save(short, tmp_path, analysis_name="hill-saturation", options=module.Options())
    assert analysis.load(tmp_path) == short
