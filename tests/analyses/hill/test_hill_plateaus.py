import functools
import math

import numpy as np
import pytest
import torch

from analyses.hill import _hill_plateaus_figures as figures
from analyses.hill import _hill_plateaus_findings as findings
from analyses.hill import _hill_plateaus_runs as runs
from analyses.hill import hill_plateaus as module
from analyses.published import load
from workbench.errors import BadInput


def test_changes_move_signs_and_nothing_else():
    """cos-sum has the selection [1, 0]: only its first W_hat has a right sign; divide's are + and -."""
    base = {name: runs.draw(runs.Plan(name, 3.0, 5), 1) for name in ("divide", "cos-sum")}
    for name, start in base.items():
        for change in runs.CHANGES:
            found = runs.draw(runs.Plan(name, 3.0, 5, change=change), 1)
            assert np.array_equal(np.abs(found), np.abs(start))
            kept = slice(0, 1) if change.startswith("M_hat") else slice(1, 2)
            assert np.array_equal(found[kept], start[kept])
    right = runs.draw(runs.Plan("divide", 3.0, 5, change="W_hat signs made right"), 1)
    wrong = runs.draw(runs.Plan("divide", 3.0, 5, change="W_hat signs made wrong"), 1)
    assert np.sign(right[0]).tolist() == [1, -1] and np.sign(wrong[0]).tolist() == [-1, 1]
    one = runs.draw(runs.Plan("cos-sum", 3.0, 5, change="W_hat signs made wrong"), 1)
    assert one[0, 0] < 0 and one[0, 1] == base["cos-sum"][0, 1]
    assert (runs.draw(runs.Plan("divide", 3.0, 5, change="M_hat made negative"), 1)[1] < 0).all()


def test_the_race_is_the_least_open_gate_among_wrong_signs():
    start = np.array([[-2.0, 3.0], [1.5, -4.0]])
    assert runs.race(start, [True, False]) == -0.5
    assert runs.race(start, [True, True]) == -7.0
    assert runs.race(start, [False, False]) == math.inf
    assert runs.signed("power-identity") == [1, 0] and runs.signed("sin-sum") == [0, 0]


STARTS = {  # of an addition
    0: [[1.0, 2.0], [-3.0, -3.0]],  # signs right, gates shut
    1: [[-3.0, 2.0], [-1.0, 1.0]],  # wrong sign, race -4
    2: [[-0.5, 2.0], [3.0, 1.0]],  # wrong sign, race 2.5
}


def test_runs_end_as_the_findings_say(monkeypatch):
    """With the report's Adam only a wrong sign behind a gate that shuts is fatal, and no start without its throw."""
    monkeypatch.setattr(runs, "draw", lambda plan, seed: np.array(STARTS[plan.number]))
    plans = [runs.Plan("add", 3.0, number, setting) for setting in (runs.REPORTED, "betas 0, 0.5") for number in STARTS]
    rows = runs.train(plans, 0, epochs=3)
    assert [row["failed"] for row in rows] == [False, True, False, False, False, False]
    assert [row["wrong"] for row in rows[:3]] == [0, 1, 1]
    assert [row["race"] for row in rows[:3]] == [math.inf, -4.0, 2.5]
    assert rows[1]["lost_and_shut"] and rows[1]["signs_right_at_end"] and abs(rows[1]["end_W_1"]) < 1e-6
    assert rows == runs.train(plans, 0, epochs=3)


def rows_where(failed, starts=1000):
    """Runs of addition at scale 3 with random starts, failing by the rule."""
    found = []
    for number in range(starts):
        start = np.random.default_rng(number).standard_normal((2, 2)) * 3
        wrong = [bool(value < 0) for value in start[0]]
        row = {"operation": "add", "scale": 3.0, "number": number, "setting": runs.REPORTED, "change": runs.AS_DRAWN,
               "wrong": sum(wrong), "race": runs.race(start, wrong), "lost_and_shut": True, "signs_right_at_end": True,
               "start_W_hat_1": start[0, 0], "start_W_hat_2": start[0, 1], "start_M_hat_1": start[1, 0],
               "start_M_hat_2": start[1, 1], "end_W_1": 1.0, "end_W_2": 1.0}  # fmt: skip
        found.append({**row, "failed": failed(row)})
    return found


@pytest.mark.parametrize(
    ("failed", "race", "sign"),
    [
        (lambda row: row["race"] < -1.5, "A race decides", "A failure needs"),
        (lambda row: row["wrong"] > 0, "NOT decided", "A failure needs"),
        (lambda row: row["start_M_hat_1"] < 0, "NOT decided", "does NOT need"),
        (lambda row: row["wrong"] > 0 and row["number"] % 100 == 0, "NOT decided", "NOT decided that a failure needs"),
    ],
)
def test_the_verdicts_flip_with_what_made_the_failures(failed, race, sign):
    rows = rows_where(failed)
    scores = findings.rule_scores(rows)
    assert findings.rule_finding(scores).text.startswith(race)
    assert sign in findings.sign_finding(rows).text
    if race == "A race decides":
        by = {row["rule"]: row for row in scores}
        assert by[findings.RACE]["threshold"] == pytest.approx(-1.5, abs=0.5)
        assert by[findings.RACE]["right_share"] > 0.97


def test_the_plane_shows_each_signed_weight_towards_its_selection():
    (row,) = rows_where(lambda row: True, 1)
    points = figures.weights([{**row, "operation": "subtract", "end_W_2": -1.0}, {**row, "operation": "sin-sum"}])
    assert [point["W_hat"] for point in points] == [row["start_W_hat_1"], -row["start_W_hat_2"]]
    assert [point["lost"] for point in points] == [False, False]
    assert figures.weights([{**row, "operation": "subtract"}])[1]["lost"]


def test_the_published_starts_are_drawn_as_the_protocol_says():
    """Seed 9002: torch seed 10002, standard normal (2, 1) W_hat then M_hat, multiply first, then add."""
    generator = torch.Generator().manual_seed(10002)
    drawn = [torch.randn(2, 1, dtype=torch.float64, generator=generator)[:, 0].tolist() for _ in range(4)]
    rows = {(row["operation"], row["scale"], row["seed"]): row for row in module.published_starts()}
    assert len(rows) == 240
    add = rows["add", 3.0, 9002]
    assert [add["start_W_hat_1"], add["start_W_hat_2"]] == pytest.approx([3 * value for value in drawn[2]])
    assert [add["start_M_hat_1"], add["start_M_hat_2"]] == pytest.approx([3 * value for value in drawn[3]])
    assert rows["cos", 1.0, 9002]["start_W_hat_1"] == rows["power-identity", 1.0, 9002]["start_W_hat_1"]


def test_every_published_failure_started_with_a_wrong_sign():
    """65 are published; without cos and sin 58, each of which the rule explains."""
    table = module.with_published(module.published_starts())
    assert sum(row["published_failed"] for row in table) == 65
    finding = findings.published_finding(table)
    assert (finding.value, finding.n) == (1.0, 58) and "rule holds" in finding.text
    spoilt = [{**row, "wrong": 0} if row["operation"] == "add" else row for row in table]
    assert "does NOT hold" in findings.published_finding(spoilt).text


def test_replacing_the_published_numbers_by_noise_changes_no_measured_column(monkeypatch):
    starts = module.published_starts()[:24]
    noise = {"raw_4_5_failing_runs": [{**row, "seed": 9002} for row in load("hill")["raw_4_5_failing_runs"]]}
    before = module.with_published(starts)
    monkeypatch.setattr(module, "load", lambda name: noise)
    after = module.with_published(starts)
    assert [{**row, "published_failed": None} for row in before] == [{**row, "published_failed": None} for row in after]
    assert before != after


@pytest.fixture(scope="module")
def short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "train", functools.partial(runs.train, epochs=2))
        return module.hill_plateaus.function([], module.Options(starts=4, others=2))


def test_a_short_run_says_so_and_has_every_table_and_figure(short):
    assert short.findings[0].text.startswith("A short run") and len(short.findings) == 9
    assert set(short.tables) == {"summary", "operations", "changes", "settings", "published", "runs"}
    assert len(short.tables["runs"]) == 4 * 24 + 3 * 24 * 2 + 5 * 9 * 4
    assert set(short.tables["changes"]["n"]) == {36}
    for finding in short.findings[1:]:
        assert finding.low is not None and finding.n and finding.control_value is not None
    for figure in short.figures.values():
        assert figure.layout.title.text and figure.layout.title.subtitle.text and figure.layout.xaxis.title.text


@pytest.mark.parametrize("wrong", [{"starts": 3}, {"others": 200}, {"seed": -1}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput, match="expected"):
        module.Options(**wrong)
