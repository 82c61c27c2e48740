import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from analyses._rows import where
from analyses.learned._selection_probe_fit import (
    PREDICTED_AT,
    PROBE,
    SHUFFLED,
    TRAINED,
    UNIT,
    UNTRAINED,
    measure,
    shuffled,
    split,
)
from analyses.learned._selection_probe_targets import (
    CARRY,
    CARRY_UNIT,
    DIFFERENCE,
    FREQUENCIES,
    PLACES,
    SUM,
    Exact,
    computed,
    turns,
)
from analyses.learned._selection_probe_units import HOLDS, NONE, STARTS, selected, selections, train
from analyses.learned.selection_probe import Options, selection_probe
from workbench import written
from workbench.analysis import get, load, save
from workbench.errors import BadInput
from workbench.sample import sample
from workbench.task import parse_all

PROBLEMS = 2_000
OPERATORS = ["addition", "subtraction +", "subtraction -"]


@pytest.fixture(scope="module")
def found():
    """The analysis on the exact decoder: digits of the place stand in the stream after attention, one-hot."""
    return selection_probe.function([written.exact()], Options(problems=PROBLEMS))


def rows(found, table, **values):
    return where(found.tables[table].to_dict("records"), **values)


# --- exact values and units -----------------------------------------------------------------------------------------


def test_exact_values_of_worked_problems():
    exact = Exact(parse_all(["1234+0567", "5000-0001", "0001-5000"]))
    assert exact.digits[0].tolist() == [[4, 3, 2, 1], [7, 6, 5, 0]]
    assert exact.moves.tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]
    assert exact.arrives.tolist() == [[0, 1, 1, 0], [0, 1, 1, 1], [0, 1, 1, 1]]
    assert exact.answer.tolist() == [[1, 0, 8, 1], [9, 9, 9, 4], [9, 9, 9, 4]]
    assert exact.results[SUM, 0][0, :, 0].tolist() == [11, 9, 7, 1]
    assert exact.results[DIFFERENCE, 0][1, :, 0].tolist() == [-1, 0, 0, 5]
    assert exact.results[CARRY, 0][1, :, 0].tolist() == [1, 1, 1, 0]
    angle = 2 * math.pi * 3 * 11 / 10
    assert exact.results[SUM, 3][0, 0].tolist() == pytest.approx([math.cos(angle), math.sin(angle)])


def test_turns_are_cosines_and_sines():
    found = turns(torch.tensor([0.0, 5.0, 3.0], dtype=torch.float64)).unflatten(-1, (5, 2))
    assert found[0, :, 0].tolist() == pytest.approx([1] * 5) and found[0, :, 1].tolist() == [0] * 5
    assert found[1, :, 0].tolist() == pytest.approx([-1, 1, -1, 1, -1])
    assert found[2, 4].tolist() == pytest.approx([-1, 0]) and found[:, 4, 1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("group", OPERATORS)
def test_units_on_exact_inputs_give_exact_results(group):
    """The whole family, with nothing read: sum, difference, carry or borrow, and the clock at every frequency."""
    these = split(sample(1_000, 1))
    chosen = next(one for one in these.groups if one.name == group).scoring
    exact = Exact(these.problems)
    units, results = computed(exact.inputs[chosen], group), exact.results
    assert set(units) == set(results) and len(units) == 1 + 2 * (1 + len(FREQUENCIES))
    for key, value in units.items():
        torch.testing.assert_close(value, results[key][chosen], atol=1e-12, rtol=0)


def test_a_carry_unit_of_the_other_sign_is_wrong():
    these = split(sample(1_000, 1))
    negative = these.groups[2]
    units = computed(these.exact.inputs[negative.scoring], "subtraction +")
    assert (units[CARRY, 0] - these.exact.results[CARRY, 0][negative.scoring]).abs().max() > 0.5
    assert set(CARRY_UNIT) == set(OPERATORS)


def test_a_right_digit_unwraps_to_what_the_pair_makes():
    exact = Exact(parse_all(["1234+0567", "9999+0001"]))
    assert torch.equal(exact.column_answered(exact.answer, subtract=False), exact.results[SUM, 0][..., 0])
    exact = Exact(parse_all(["0001-5000", "0123-0456"]))
    assert torch.equal(exact.column_answered(exact.answer, subtract=True), -exact.results[DIFFERENCE, 0][..., 0])
    wrong = exact.answer + torch.tensor([1.0, 0, 0, 0])
    assert (exact.column_answered(wrong, subtract=True) + exact.results[DIFFERENCE, 0][..., 0])[:, 0].tolist() == [1, 1]


# --- trained units --------------------------------------------------------------------------------------------------


def made(weights, noise=0.0, seed=0):
    """Inputs and targets of one unit: two digits, and their weighted sum under noise."""
    rng = np.random.default_rng(seed)
    digits = torch.from_numpy(rng.integers(0, 10, (1, 800, 2)).astype(float))
    targets = digits @ torch.tensor(weights, dtype=torch.float64) + noise * torch.from_numpy(rng.normal(size=(1, 800)))
    return digits[:, :400], targets[:, :400], digits[:, 400:], targets[:, 400:]


@pytest.mark.parametrize("group", OPERATORS)
def test_trained_units_select_the_operation_that_made_the_targets(group):
    weights = {"addition": (1, 1), "subtraction +": (1, -1), "subtraction -": (-1, 1)}[group]
    parts = zip(made(weights, noise=1.0), made(tuple(-w for w in weights)), strict=True)
    this, other = selections(*(torch.cat(pair) for pair in parts), group, 0)
    assert this["selects"] == this["lands"] == 1 and this[str(list(weights))] == STARTS and this["snapped_r2"] > 0.9
    assert other["selects"] == other["lands"] == 0 and other["high"] < 0.5


def test_no_selection_is_none():
    (row,) = selections(*made((0.5, 0.4)), OPERATORS[0], 0)
    assert row[NONE] == STARTS and row["selects"] == 0
    assert (row["W_a"], row["W_b"]) == (pytest.approx(0.5, abs=0.02), pytest.approx(0.4, abs=0.02))
    (row,) = selections(*made((1, 0)), OPERATORS[0], 0)
    assert row[NONE] == STARTS  # one operand alone is no operation on two


def test_a_readout_that_knows_nothing_may_land_but_selects_nothing():
    inputs, targets, _, wanted = made((1, 1))
    noise = torch.from_numpy(1e-3 * np.random.default_rng(0).normal(size=(2, *inputs.shape)))
    (landed,) = selections(noise[0], targets, noise[1], wanted, OPERATORS[0], 0)
    assert landed["selects"] == 0 and landed["snapped_r2"] < HOLDS
    assert abs(landed["W_a"]) > 0.9 and abs(landed["W_b"]) > 0.9  # noise takes the constraint to its limits


def test_training_finds_the_least_squares_weights_inside_the_constraint():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3, 200, 2))
    true = np.array([[0.3, -0.8], [0.9, 0.1], [-0.5, -0.5]])
    y = np.einsum("upo,uo->up", x, true)
    moments, products = np.einsum("upo,upq->uoq", x, x) / 200, np.einsum("upo,up->uo", x, y) / 200
    W = train(torch.from_numpy(moments), torch.from_numpy(products), 0)
    assert W.shape == (STARTS, 3, 2)
    np.testing.assert_allclose(W.mean(dim=0), true, atol=0.02)


def test_selections_are_named_by_nearness():
    W = torch.tensor([[0.8, 0.9], [0.76, -1.0], [-0.9, 0.99], [0.7, 1.0], [1.0, 0.1], [-1.0, -1.0]])
    assert selected(W) == ["[1, 1]", "[1, -1]", "[-1, 1]", NONE, NONE, NONE]


# --- a model whose truth is known -----------------------------------------------------------------------------------


@pytest.mark.parametrize("group", OPERATORS)
def test_planted_digits_feed_every_unit_after_attention_and_not_before(found, group):
    for place in PLACES:
        here = rows(found, "units", model=TRAINED, group=group, place=place, hook="blocks.0.hook_resid_mid", probe=UNIT)
        r2 = {(row["result"], row["k"]): row["r2"] for row in here}
        assert min(value for key, value in r2.items() if key[0] != CARRY) > 1 - 1e-6
        assert {row["exact_share"] for row in here if row["k"] == 0 and row["result"] != CARRY} == {1.0}
    before = rows(found, "means", model=TRAINED, group=group, hook="blocks.0.hook_resid_pre")
    assert max(row["r2"] for row in before) < 0.3  # the embedding: the answer's digit above, and no more


def test_the_planted_carry_is_read_where_it_is_made(found):
    """Layer 0's MLP writes what arrives; with the answer's digit, which only layer 1 makes, it tells what leaves."""
    for place in PLACES[1:3]:
        here = rows(found, "units", model=TRAINED, group="addition", place=place, result=CARRY, probe=UNIT)
        r2 = {row["hook"]: row["r2"] for row in here}
        assert r2["blocks.1.hook_resid_post"] > 0.99 and r2["blocks.0.hook_resid_mid"] < 0.95


@pytest.mark.parametrize("group", OPERATORS)
def test_units_trained_on_planted_digits_select_the_operation(found, group):
    (row,) = rows(found, "landed", model=TRAINED, group=group, hook="blocks.0.hook_resid_mid")
    assert row["selects"] == 1 and row["starts"] == 3 * STARTS and row["low"] > 0.75
    for model in (UNTRAINED, SHUFFLED):
        (control,) = rows(found, "landed", model=model, group=group, hook="blocks.0.hook_resid_mid")
        assert control["selects"] == 0


def test_controls_know_nothing(found):
    for row in rows(found, "means", model=SHUFFLED, probe=PROBE):
        assert row["r2"] < 0.05
    untrained = rows(found, "means", model=UNTRAINED, probe=UNIT, hook="blocks.0.hook_resid_mid", k=1)
    assert untrained and max(row["r2"] for row in untrained) < 0.3


def test_a_model_that_adds_copies_of_one_digit_has_no_difference():
    """Both operands written into the same ten dimensions: the sum can be read, the difference cannot."""
    one = written.exact()
    weights = {name: value.copy() for name, value in one.weights.items()}
    weights["blocks.0.attn.W_O"][1] = weights["blocks.0.attn.W_O"][0]
    merged = dataclasses.replace(one, weights=weights, folder=Path("merged"))
    name, units = next(measure(merged, split(sample(2_000, 0, "addition")), full=False, seed=0))  # the trained one's
    here = where(units, hook="blocks.0.hook_resid_mid", probe=PROBE, k=0)
    r2 = {row["result"]: row["r2"] for row in here if row["place"] in PLACES[:3]}
    assert name == "units" and len(here) == 3 * len(PLACES)
    assert r2[SUM] > 0.999 and r2[DIFFERENCE] < 0.05


# --- the analysis ---------------------------------------------------------------------------------------------------


def test_findings_give_value_interval_n_and_control(found):
    assert len(found.findings) == 3 * 6
    for finding in found.findings:
        assert finding.low <= finding.value + 1e-9 and finding.value - 1e-9 <= finding.high and finding.n > 0
        assert finding.control == "untrained models" and finding.control_value is not None
    assert "frozen unit add" in found.findings[0].text and found.findings[0].value > 0.99


def test_figures_and_reading_back(found, tmp_path):
    assert list(found.figures) == ["probes", "units", "selections"]
    assert found.figures["probes"].data[0].x[:3] == ("a+b", "a-b", "carry")
    assert len(found.figures["selections"].data) == 3
    save(found, tmp_path, analysis_name=selection_probe.name, options=Options(problems=PROBLEMS), inputs=["a"])
    assert load(tmp_path) == found


def test_shuffled_labels_stay_in_their_group_and_half():
    these = split(sample(1_000, 2))
    order = shuffled(these, 0)
    assert sorted(order.tolist()) == list(range(500)) and (order != torch.arange(500)).sum() > 400
    for group in these.groups:
        assert set(order[group.fitting].tolist()) == set(group.fitting.tolist())
        assert group.fitting.max() < 500 <= group.scoring.min()


def test_places_are_predicted_where_the_task_says():
    assert PREDICTED_AT == {"units": 14, "tens": 13, "hundreds": 12, "thousands": 11}


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="at least one checkpoint"):
        selection_probe.function([], Options())
    with pytest.raises(BadInput, match="two checkpoints are named written-exact"):
        selection_probe.function([written.exact(), written.exact()], Options())
    with pytest.raises(BadInput, match="problems is 10, expected 2,000"):
        Options(problems=10)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_it_is_registered_under_its_name():
    assert get("selection-probe") is selection_probe
