import math

import numpy as np
import pytest
import torch

from analyses._rows import Share, where
from analyses.hill import _hill_snapped_training_findings as findings
from analyses.hill import _hill_snapped_training_runs as runs
from analyses.hill import hill_snapped_training as module
from analyses.hill._hill_snapped_training_findings import EVALUATION, HARD, THROUGH
from workbench.errors import BadInput
from workbench.hill.constraint import constrain, constrain_snapped, partials

RAW = [  # W_hat and M_hat of one weight: both free, tanh snapped, gate snapped open, gate snapped shut, both snapped
    (0.5, 0.3),
    (3.0, 0.3),
    (-3.0, 0.3),
    (0.5, 5.0),
    (0.5, -5.0),
    (3.0, 5.0),
]


def report_snapping(W_hat, M_hat):
    """Section 2.2's two functions by masked assignment, differentiated by autograd."""
    tanh, sigmoid = torch.tanh(W_hat), torch.sigmoid(M_hat)
    snapped_tanh, snapped_sigmoid = tanh.clone(), sigmoid.clone()
    snapped_tanh[tanh > 0.99], snapped_tanh[tanh < -0.99] = 1.0, -1.0
    snapped_sigmoid[sigmoid > 0.99], snapped_sigmoid[sigmoid < 0.01] = 1.0, 0.0
    return snapped_tanh * snapped_sigmoid


def raw(mode):
    values = torch.tensor(RAW, dtype=torch.float64).T[:, None]  # [W_hat or M_hat, weight, lane]
    return values.expand(2, 2, -1).contiguous(), torch.full((len(RAW),), runs.MODES.index(mode))


def test_the_hard_mask_is_masked_assignment_to_the_last_bit():
    values, mode = raw(HARD)
    W, by = runs.forward(values, mode)
    leaf = values.clone().requires_grad_(True)
    theirs = report_snapping(leaf[0], leaf[1])
    (slope,) = torch.autograd.grad(theirs.sum(), leaf)
    assert torch.equal(W, theirs.detach())
    torch.testing.assert_close(by, slope, rtol=1e-14, atol=0)
    assert by[0, 0, 1] == 0 and by[1, 0, 3] == 0 and by[:, 0, 4].tolist() == [0, 0]


def test_straight_through_has_the_values_of_the_mask_and_slopes_of_the_factors():
    values, mode = raw(THROUGH)
    W, by = runs.forward(values, mode)
    assert torch.equal(W, constrain_snapped(values[0], values[1]))
    tanh, sigmoid = torch.tanh(values[0, 0]), torch.sigmoid(values[1, 0])
    assert by[0, 0, 1] == pytest.approx(float((1 - tanh[1] ** 2) * sigmoid[1]), rel=1e-14)
    assert by[0, 0, 3] == pytest.approx(float(1 - tanh[3] ** 2), rel=1e-14)  # under a gate that counts as 1
    assert by[1, 0, 4] == pytest.approx(float(tanh[4] * sigmoid[4] * (1 - sigmoid[4])), rel=1e-14)


def test_without_snapping_it_is_the_constraint():
    values, mode = raw(EVALUATION)
    W, by = runs.forward(values, mode)
    assert torch.equal(W, constrain(values[0], values[1]))
    torch.testing.assert_close(by, torch.stack(partials(values[0], values[1])), rtol=1e-14, atol=0)


def test_what_a_mask_freezes_at_the_start():
    """atanh(0.99) = 2.6467; logit(0.99) = 4.5951: beyond these on the wrong side."""
    right, wrong, shallow = [[3.0, 3.0], [0.0, 0.0]], [[-2.65, 3.0], [0.0, 0.0]], [[-2.64, 3.0], [0.0, 0.0]]
    shut, open_zero = [[3.0, 3.0], [-4.6, 0.0]], [[3.0, 3.0], [0.0, 4.6]]
    found = [runs.frozen_at_start("add", np.array(start)) for start in (right, wrong, shallow, shut, open_zero)]
    assert found == [False, True, False, True, False]
    assert runs.frozen_at_start("identity", np.array(open_zero))  # the second weight is to be 0
    assert not runs.frozen_at_start("power-identity", np.array(open_zero))  # there it does not matter
    assert runs.frozen_at_start("subtract", np.array(right))


def test_runs_end_as_the_findings_say(monkeypatch):
    """Addition from a wrong sign beyond the mask: frozen by hard masks only. From a small start all are right."""
    starts = {0: np.array([[0.01, 0.02], [0.0, 0.0]]), 1: np.array([[-2.8, 0.5], [2.0, 0.0]])}
    monkeypatch.setattr(runs, "draw", lambda lane, seed: starts[lane.number])
    lanes = [runs.Lane("add", mode, "RMSprop 0.01", 0.01, number) for mode in runs.MODES for number in (0, 1)]
    rows = runs.train(lanes, 0, 1200)
    right = {(row["mode"], row["number"]): row["right"] for row in rows}
    assert [right[mode, 0] for mode in runs.MODES] == [True] * 3
    assert [right[mode, 1] for mode in runs.MODES] == [True, False, True]
    assert where(rows, mode=HARD, number=1)[0]["masked"] and not rows[0]["masked"]
    evaluated, hard = where(rows, mode=EVALUATION, number=0)[0], where(rows, mode=HARD, number=0)[0]
    assert evaluated["distance"] < 1e-3 < 5e-3 < hard["distance"] < 0.03
    assert math.isnan(evaluated["converged_at"]) and hard["converged_at"] <= hard["right_since"] + runs.EVERY
    assert hard["right_since"] % runs.EVERY == 0
    again = runs.train(lanes, 0, 1200)
    assert [row["distance"] for row in again] == [row["distance"] for row in rows]


def made(right, since=lambda mode, number: 100.0, scale=0.01):
    """Rows of one operation, right by a rule of (mode, number)."""
    return [
        {"operation": "add", "mode": mode, "optimizer": name, "scale": scale, "number": number,
         "right": right(mode, number), "right_since": since(mode, number) if right(mode, number) else math.nan,
         "converged_at": math.nan, "distance": 0.01, "masked": number < 10}
        for name in runs.OPTIMIZERS for mode in runs.MODES for number in range(20)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("right", "effect"),
    [
        (lambda mode, number: mode != HARD or number >= 10, "loses runs"),
        (lambda mode, number: mode == HARD or number >= 10, "wins runs"),
        (lambda mode, number: (mode == HARD) == (number % 2 == 0), "no difference shown"),
        (lambda mode, number: True, "no difference shown"),
    ],
)
def test_the_effect_flips_with_the_pairs_that_differ(right, effect):
    rows = made(right)
    assert findings.effect(rows, HARD) == effect
    assert effect in findings.failures_finding(rows, HARD).text
    table = findings.by_operation(rows)
    assert where(table, mode=HARD)[0]["effect"] == effect
    assert ("hard mask" in findings.operations_finding(rows, table).text) == (effect != "no difference shown")


def test_the_sign_test_is_the_exact_binomial():
    """Five of five: 2 / 32; six of six: 2 / 64, the fewest that count; eight of ten: 2 (45 + 10 + 1) / 1024."""
    assert findings.sign_test(Share(5, 5)) == 0.0625 > findings.CHANCE
    assert findings.sign_test(Share(0, 6)) == 0.03125 < findings.CHANCE
    assert findings.sign_test(Share(8, 10)) == pytest.approx(112 / 1024)
    assert findings.sign_test(Share(5, 10)) == 1.0


@pytest.mark.parametrize(("lost", "words"), [(10, "mask strands"), (0, "does NOT strand")])
def test_the_verdict_on_frozen_starts_flips(lost, words):
    rows = made(lambda mode, number: mode != HARD or number >= lost)
    assert words in findings.frozen_finding(rows).text


@pytest.mark.parametrize(("factor", "words"), [(0.8, "faster, 0.8"), (1.25, "slower, 1.2"), (1.0, "neither faster")])
def test_the_verdict_on_speed_flips(factor, words):
    rows = made(lambda mode, number: True, lambda mode, n: (100 + n) * (factor if mode == HARD else 1.0))
    finding = findings.speed_finding(rows, HARD)
    assert words in finding.text and finding.value == pytest.approx(factor) and finding.n == 60
    assert "too few" in findings.speed_finding(made(lambda mode, number: mode == EVALUATION), HARD).text


def test_the_verdict_on_stopping_and_parking_flips():
    def rows(stops, far):
        found = made(lambda mode, number: True)
        for row in found:
            row["converged_at"] = 50.0 if row["mode"] in stops else math.nan
            row["distance"] = 0.01 if row["mode"] in far else 1e-5
        return found

    trained = (HARD, THROUGH)
    assert findings.stop_finding(rows(trained, trained)).text.startswith("What converges faster is the stopping rule")
    assert findings.stop_finding(rows((), trained)).text.startswith("NOT the stopping rule")
    assert " parks " in findings.parked_finding(rows(trained, trained)).text
    assert "does NOT park" in findings.parked_finding(rows(trained, ())).text


@pytest.fixture(scope="module")
def short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "OPERATIONS", ("add", "identity", "divide"))
        return module.hill_snapped_training.function([], module.Options(starts=2, steps=300))


def test_a_short_run_says_so_and_has_every_table_and_figure(short):
    assert short.findings[0].text.startswith("A short run") and len(short.findings) == 9
    assert len(short.tables["runs"]) == 3 * 3 * 3 * 3 * 2 and len(short.tables["operations"]) == 6
    assert len(short.tables["summary"]) == 27
    for figure in short.figures.values():
        assert figure.layout.title.text and figure.layout.title.subtitle.text and figure.layout.xaxis.title.text


@pytest.mark.parametrize("wrong", [{"starts": 1}, {"steps": 100}, {"seed": -1}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput, match="expected"):
        module.Options(**wrong)
