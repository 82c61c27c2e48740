import math

import numpy as np
import pytest
import torch

from analyses.hill import _hill_composition_figures as figures
from analyses.hill import _hill_composition_findings as findings
from analyses.hill import _hill_composition_locks as locks
from analyses.hill import _hill_composition_runs as runs
from analyses.hill import hill_composition as module
from analyses.hill._hill_composition_runs import END_TO_END, RMSPROP, TASKS, Arm, Trained
from workbench.errors import BadInput
from workbench.hill.constraint import snap

SUM, LESS, SINE, RATIO = TASKS


def exactly(task, a, b, c, d=None):
    return {SUM: (a + b) * c, LESS: a * b - c, SINE: math.sin(a + b) * c, RATIO: (a - b) / (c + (d or 0.0))}[task]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_selection_of_each_circuit_computes_what_its_name_says(task):
    x = [1.25, 3.5, 0.75, 2.0][: task.inputs]
    W = torch.tensor(task.selection, dtype=torch.float64)
    answer = task.circuit.answers(torch.tensor([x], dtype=torch.float64), W)
    assert answer.item() == pytest.approx(exactly(task, *x), rel=1e-15)
    assert runs.error(task, W) < 1e-28
    wrong = runs.fixed_weights(task, Arm("", enumerated="wrong first"))
    assert runs.error(task, wrong) > 0.1 and torch.equal(wrong[1:], W[1:])


def test_errors_know_other_solutions_and_what_is_none():
    """A fraction of two negated sums is the same fraction; so is one of two sums scaled alike, which no snap keeps."""
    both = torch.tensor([[-1, 1], [-1, -1], [1, -1]], dtype=torch.float64)
    scaled = torch.tensor([[0.3, -0.3], [0.3, 0.3], [1, -1]], dtype=torch.float64)
    assert runs.error(RATIO, both) < 1e-28 and runs.error(RATIO, scaled) < 1e-28
    assert runs.error(RATIO, torch.full((3, 2), torch.nan, dtype=torch.float64)) == math.inf
    assert runs.error(LESS, torch.tensor([[1, 1], [1, 0]], dtype=torch.float64)) > 1e-3


def test_arms_start_alike_but_for_what_they_change():
    arms = (Arm("a"), Arm("b", scale=1.0), Arm("c", signs=True))
    lanes = runs.start(LESS, arms, (3, 4))
    assert lanes.shape == (2, 2, 2, 3, 2)
    torch.testing.assert_close(lanes[..., 1, :], 10 * lanes[..., 0, :])
    assert torch.equal(lanes[1, ..., 2, :], lanes[1, ..., 0, :])
    assert (lanes[0, :, :, 2].sign() == torch.tensor([[[1.0], [1.0]], [[1.0], [-1.0]]])).all()
    assert torch.equal(runs.start(LESS, arms[:1], (4,))[..., 0], lanes[..., 0, 1][..., None])
    assert [runs.fixed_units(Arm("", enumerated=what), 3) for what in ("", "first", "last", "all but last")] == [
        [False] * 3, [True, False, False], [False, False, True], [True, True, False]
    ]  # fmt: skip


def test_training_is_one_torch_optimizer_a_circuit():
    """One lane against torch's own RMSprop and autograd through the exact primitives, 60 steps."""
    arm = Arm("one")
    found = runs.train(LESS, (arm, Arm("other", scale=1.0)), (7, 8), 60).path[-1, :, :, 0, 0]
    raw = [part.clone().requires_grad_(True) for part in runs.start(LESS, (arm,), (7,))[..., 0, 0]]
    theirs = torch.optim.RMSprop(raw, lr=0.01, alpha=0.9, eps=1e-10)
    draws = np.random.default_rng([7, 2]).uniform(1e-8, 10.0, (100, 64, 3))
    for x in torch.from_numpy(draws[:60]):
        W = torch.tanh(raw[0]) * torch.sigmoid(raw[1])
        loss = (LESS.circuit.answers(x, W) - (x[:, 0] * x[:, 1] - x[:, 2])).square().mean()
        theirs.zero_grad()
        loss.backward()
        theirs.step()
    torch.testing.assert_close(found, (torch.tanh(raw[0]) * torch.sigmoid(raw[1])).detach(), rtol=1e-9, atol=1e-12)


def test_what_is_enumerated_stays_and_lanes_do_not_depend_on_company():
    arms = (Arm("a"), Arm("first", enumerated="first"), Arm("last", enumerated="last"))
    whole = runs.train(SUM, arms, (1, 2), 30)
    assert torch.equal(whole.path[:, 0, :, 1, 0], torch.ones(len(whole.step), 2, dtype=torch.float64))
    assert torch.equal(whole.path[:, 1, :, 2, 1], torch.ones(len(whole.step), 2, dtype=torch.float64))
    assert whole.step.tolist() == [0, 10, 20, 30]
    alone = runs.train(SUM, arms[1:2], (2,), 30)
    torch.testing.assert_close(whole.path[..., 1, 1], alone.path[..., 0, 0], rtol=1e-12, atol=1e-14)


def test_an_enumerated_first_unit_lets_the_second_train():
    """(a + b) x c with its sum written down, 900 steps of three seeds: all solved; with a difference none."""
    arms = (Arm("first", enumerated="first"), Arm("wrong", enumerated="wrong first"))
    rows = runs.rows(runs.train(SUM, arms, (0, 1, 2), 900))
    assert [row["solved"] for row in rows] == [True] * 3 + [False] * 3
    assert all(row["state"] == ("solved" if row["solved"] else "between") for row in rows)


def trained(path, arm=END_TO_END):
    """A path [record, unit, 2] of one lane, a record every ten steps, snapped by nearness."""
    path = torch.as_tensor(path, dtype=torch.float64)[..., None, None]
    return Trained(SUM, (Arm(arm),), (0,), torch.arange(len(path)) * 10, path, snap(path))


def test_locks_are_the_last_entries():
    """First unit: one weight locks at record 2, one enters at 1, leaves and returns at 4. The second is never whole."""
    first = [[0.5, 0.5], [0.5, 0.995], [0.995, 0.5], [0.999, 0.9], [1.0, 0.999], [1.0, 1.0]]
    second = [[0.0, 0.2], [0.005, 0.3], [0.0, 0.4], [0.0, 0.5], [0.0, 0.6], [0.0, 0.7]]
    one = trained([[a, b] for a, b in zip(first, second, strict=True)])
    steps = locks.lock_steps(one)[..., 0, 0]
    assert steps[0].tolist() == [20, 40] and steps[1, 0] == 0 and steps[1, 1].isnan()
    (row,) = locks.rows(one)
    assert row["lock_1"] == 40 and math.isnan(row["lock_2"]) and math.isnan(row["spread"]) and row["last_unit"] == 0


def unit(at, records=11):
    return [[0.5, 0.5]] * at[0] + [[1.0, 0.5]] * (at[1] - at[0]) + [[1.0, 1.0]] * (records - at[1])


def test_gaps_and_the_last_unit():
    (row,) = locks.rows(trained([[a, b] for a, b in zip(unit((2, 4)), unit((5, 8)), strict=True)]))
    assert (row["lock_1"], row["lock_2"], row["last_unit"], row["units_trained"]) == (40, 80, 2, 2)
    assert [row["gap"], row["inner_gap"], row["spread"]] == pytest.approx([0.5, 30 / 80, 60 / 80])
    assert row["all_trained"] and not row["left_a_lock"]


def test_a_unit_that_is_not_trained_has_no_lock():
    lane = trained([[a, b] for a, b in zip(unit((2, 4)), unit((0, 0)), strict=True)])
    one = Trained(SUM, (Arm("last", enumerated="last"),), lane.seeds, lane.step, lane.path, lane.snapped)
    (row,) = locks.rows(one)
    assert row["lock_1"] == 40 and math.isnan(row["lock_2"]) and row["units_trained"] == 1
    assert (row["gap"], row["spread"], row["last_unit"]) == (0.0, 0.5, 0) and not row["all_trained"]


def test_a_lock_is_left_only_after_it_was_held():
    held = locks.HELD // runs.EVERY
    for records, left in ((held, True), (held - 1, False)):
        values = [0.5] * 3 + [0.995] * records + [0.95, 0.85]
        path = torch.tensor(values, dtype=torch.float64)[:, None, None].expand(-1, 2, 2)
        (row,) = locks.rows(trained(path))
        assert row["left_a_lock"] == left


def test_snapping_is_the_reports_and_then_zero():
    """Both factors inside the threshold make exactly 1 though their product is 0.985; a small tanh makes 0."""
    start = torch.tensor([[[2.8, 0.004], [2.8, -2.8]], [[4.7, 1.0], [4.7, 1.0]]], dtype=torch.float64)
    arm, seeds = Arm("a"), (0,)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "start", lambda task, arms, seeds: start[..., None, None].clone())
        found = runs.train(SUM, (arm,), seeds, 1)
    assert found.snapped[0, ..., 0, 0].tolist() == [
        [1.0, 0.0],
        [1.0, pytest.approx(-math.tanh(2.8) / math.tanh(2.8) / (1 + math.exp(-1.0)))],
    ]
    assert found.path[0, 0, 0, 0, 0].item() == pytest.approx(math.tanh(2.8) / (1 + math.exp(-4.7)))


def made(**changes):
    base = {"circuit": SUM.name, "arm": END_TO_END, "solved": True, "error": 1.0, "state": "solved", "zeroed": False,
            "gap": 0.5, "inner_gap": 0.0, "spread": 0.5, "last_unit": 2, "left_a_lock": False, "all_trained": True,
            "units_trained": 2}  # fmt: skip
    return [{**base, "seed": seed, **{key: value(seed) if callable(value) else value for key, value in changes.items()}}
            for seed in range(40)]  # fmt: skip


@pytest.mark.parametrize(
    ("spread", "alone", "words"),
    [
        (0.5, 0.0, "more so than single units"),
        (0.5, 0.5, "but so do single units"),
        (0.05, 0.0, "do NOT lock in piecewise"),
        (lambda seed: seed % 2, 0.0, "NOT decided"),
    ],
)
def test_the_verdict_on_piecewise_locking_flips(spread, alone, words):
    rows = made(spread=spread) + made(arm="last", spread=alone, all_trained=False, units_trained=1)
    finding = findings.piecewise(rows)
    assert words in finding.text and finding.n == 40 and finding.control_value == (alone > 0.1)
    assert "nothing to say" in findings.piecewise(made(solved=False)).text


@pytest.mark.parametrize(
    ("last", "words"), [(2, "inner first (40"), (1, "outer first (0"), (lambda seed: 1 + seed % 2, "no order shown")]
)
def test_the_verdict_on_the_order_flips(last, words):
    assert words in findings.order(made(last_unit=last)).text


def test_the_verdicts_on_stranding_and_holding_flip():
    other = made(circuit=LESS.name, solved=False)
    assert "It depends on the circuit" in findings.stranded(made() + other).text
    assert "NOT decided" in findings.stranded(made() + made(circuit=LESS.name)).text
    assert findings.stranded(made() + other).value == 0.5
    assert "A lock holds" in findings.holds(made() + made() + other).text
    assert "does NOT always hold" in findings.holds(made(left_a_lock=True) + other).text


@pytest.mark.parametrize(("solved", "effect"), [(40, "rescues"), (0, "harms"), (20, "no difference shown")])
def test_an_arm_rescues_or_harms_where_intervals_part(solved, effect):
    rows = made(solved=lambda seed: seed % 2 == 0) + made(arm="snapped straight through", solved=lambda s: s < solved)
    table = findings.arms_table(rows)
    assert [row["effect"] for row in table] == ["", effect]
    finding = findings.helper(rows, table, "snapped straight through", "Snapping in training")
    assert effect in finding.text and (finding.value, finding.control_value) == (solved / 40, 0.5)


@pytest.mark.parametrize(
    ("narrow", "words"), [(True, " is the wide range"), (False, "is NOT shown to be the wide range")]
)
def test_the_verdict_on_crossing_zero_flips(narrow, words):
    rows = [row for arm, solved in (("all but last enumerated", False), ("all but last, inputs over 10", narrow),
                                    (END_TO_END, False)) for row in made(arm=arm, solved=solved)]  # fmt: skip
    assert words in findings.crossing(rows, SUM.name).text


@pytest.fixture(scope="module")
def short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "TASKS", (LESS, RATIO))
        return module.hill_composition.function([], module.Options(seeds=2, steps=100))


def test_a_short_run_says_so_and_has_every_table_and_figure(short):
    assert short.findings[0].text.startswith("A short run")
    arms = {task.name: {arm.name for arm in runs.arms_of(task)} for task in (LESS, RATIO)}
    assert len(arms[RATIO.name] - arms[LESS.name]) == 3
    table = short.tables["arms"]
    for name, expected in arms.items():
        assert set(table[table["circuit"] == name]["arm"]) == expected
    assert len(short.tables["runs"]) == 2 * sum(map(len, arms.values()))
    for figure in short.figures.values():
        assert figure.layout.title.text and figure.layout.title.subtitle.text and figure.layout.xaxis.title.text
    assert np.shape(short.figures["arms"].data[0].z) == (16, 2)
    assert len(short.figures["paths"].data) == 2 * 2 + 2 * 3


def test_the_locks_figure_shows_the_runs_it_says():
    shown = figures.locks_figure([{**row, "lock_1": 50.0, "lock_2": 90.0} for row in made()])
    assert shown.data[1].x == (50.0,) * 40 and shown.data[1].y == (90.0,) * 40
    assert runs.ARMS[0].optimizer == RMSPROP


@pytest.mark.parametrize("wrong", [{"seeds": 1}, {"steps": 50}, {"seed": -1}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput, match="expected"):
        module.Options(**wrong)
