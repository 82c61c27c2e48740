import dataclasses

import numpy as np
import pytest

from analyses.kernel import _ntk_decimal_figures as figures
from analyses.kernel import _ntk_decimal_runs as runs
from analyses.kernel import _ntk_decimal_tables as tables
from analyses.kernel import ntk_decimal as module
from workbench.errors import BadInput
from workbench.ntk.decimal import Decimal
from workbench.ntk.templates import Layout, template
from workbench.result import load, save
from workbench.sample import sample
from workbench.structure import CLASSES, categories
from workbench.task import Problems, parse_all

FOUR = Decimal(4)
PROBLEMS = sample(60_000, 0)


@pytest.fixture(scope="module")
def asked() -> runs.Asked:
    return runs.ask(FOUR, FOUR.templates, [PROBLEMS[:40_000], PROBLEMS[40_000:]])


@pytest.fixture(autouse=True, scope="module")
def small():
    """Fewer problems in what does not depend on the options."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"SIZE_PROBLEMS": 500, "LEAK_PROBLEMS": 30, "CHANGED": 2000, "SIZES": range(4, 6)}.items():
            patch.setattr(module, name, value)
        yield


@pytest.fixture(scope="module")
def whole():
    return module.ntk_decimal.function([], module.Options(problems=20_000, seed=3))


def test_every_problem_of_every_part_is_counted(asked: runs.Asked) -> None:
    assert (asked.n, asked.wrong, asked.flips, asked.most_matched, asked.steps) == (60_000, 0, 0, 19, 7)
    table = tables.categories(asked, sampled=True).set_index(["grouping", "category"])
    found = categories(PROBLEMS, "class")
    for name in CLASSES:
        assert table.loc[("class", name), "n"] == (found == name).sum()
    assert (table["wrong"] == 0).all() and (table["high"] == 1).all()
    assert np.isnan(tables.categories(asked, sampled=False)["low"]).all()


def test_iterations_are_two_more_than_a_chain_of_two_or_more(asked: runs.Asked) -> None:
    rows = tables.iterations(asked)
    assert rows["problems"].sum() == 60_000
    for name, steps in {"S2": 4, "S3": 5, "S4": 6, "M2": 4, "M3": 5, "N4": 6}.items():
        assert rows[rows["class"] == name]["iterations"].tolist() == [steps]
    table = tables.categories(asked, sampled=True).set_index("category")
    assert table.loc["S4", "mean_iterations"] == 6 and table.loc["S0", "most_iterations"] == 6


def test_a_changed_template_makes_wrong_what_needs_it(asked: runs.Asked) -> None:
    problems = PROBLEMS[:20_000]
    found = {name: runs.ask(FOUR, one, [problems]) for name, one in runs.spoilt(FOUR).items()}
    assert len(found) == 5
    a, b, minus = problems.a.astype(int), problems.b.astype(int), problems.subtract
    tens = a // 10 % 10, b // 10 % 10
    expected = {
        "no carry through tens that sum to 9": ~minus & (a % 10 + b % 10 >= 10) & (tens[0] + tens[1] == 9),
        "no borrow through equal tens": minus & (a % 10 < b % 10) & (tens[0] == tens[1]) & (a // 100 >= b // 100),
        "7 + 8 of the units gives 14": ~minus & (a % 10 == 7) & (b % 10 == 8),
        "negative answers have sign +": minus & (a < b),
    }
    for name, wrong in expected.items():
        assert found[name].wrong == wrong.sum() > 0, name
    rows = tables.spoilt_rows(found).set_index("changed")
    assert rows.loc["negative answers have sign +", "classes"] == "N1 N2 N3 N4"
    assert rows.loc["7 + 8 of the units gives 14", "share"] == expected["7 + 8 of the units gives 14"].mean()


def test_loads_are_one_where_the_mean_is_zero() -> None:
    """T (m - 1/g) = N + 2 pi - 1 at S = 1, by hand for m = 2: 2 - 1/0.575272 = 0.26170."""
    found = runs.loads({(2, 1, 20), (2, 0, 5), (2, 2, 20)}, 100)
    assert set(found) == {(2, 1, 20), (2, 2, 20)}
    assert found[2, 1, 20] == pytest.approx(20 * 0.26170 / (100 + 5.283185), rel=1e-4)
    assert found[2, 2, 20] == pytest.approx(found[2, 1, 20] / 2)


def test_flips_begin_where_the_rule_says() -> None:
    problems = Problems(np.full(3, 7777, np.uint16), np.full(3, 7777, np.uint16), np.ones(3, bool))
    points = runs.ask(FOUR, FOUR.templates, [problems]).points
    factor = 1 / max(runs.loads(points, FOUR.templates.count).values())
    assert runs.flips_with_leak(FOUR, problems, 0.999 * factor) == (0, 0)
    assert runs.flips_with_leak(FOUR, problems, 1.001 * factor)[0] > 0
    assert runs.flips_with_leak(FOUR, problems, 3 * factor)[1] == 3


def test_places_are_counted_by_operand() -> None:
    layout = Layout({"a": (4, 10), "b": (4, 10), "carry": (4, 2)})
    one = template(layout, "x", [("a", 0, 3), ("b", 1, 3), ("carry", 2, 1), ("carry", 3, 1)], [], [])
    two = template(layout, "x", [("a", 0, 3)], [("a", 2, 4)], [])
    assert [tables.places_read(layout.names(), each) for each in (one, two)] == [1, 2]
    assert tables.groups(FOUR)["templates"].sum() == 1524
    assert tables.groups(FOUR)["most_places"].max() == 1


def test_means_are_the_kernels() -> None:
    table = tables.points({(1, 1, 4), (2, 1, 3), (2, 0, 3)}, 1524)
    assert table["mean"].tolist() == pytest.approx(
        [1.0, -3 * (2 * 0.575272 - 1) / 1529.283185, 0.575272 - 3 * (2 * 0.575272 - 1) / 1529.283185], abs=1e-6
    )
    assert table["load"].isna().tolist() == [False, True, False]


def test_verdicts_flip_with_their_numbers(asked: runs.Asked, whole) -> None:
    means = tables.points(asked.points, FOUR.templates.count)
    rows = runs.spoilt(FOUR)["negative answers have sign +"]
    spoilt = tables.spoilt_rows({"one": runs.ask(FOUR, rows, [PROBLEMS[:1000]])})
    sizes = whole.tables["summary"]

    def said(machine: Decimal, found: runs.Asked, leak: tables.Leak) -> list[str]:
        return [one.text for one in tables.findings(machine, found, spoilt, means, sizes, leak)]

    good = said(FOUR, asked, tables.Leak(3, 11.0, (0, 0), (4, 1)))
    assert good[0] == "0 of 60,000 random problems are answered wrong." and "none has a wrong answer" in good[1]
    assert "within the 2,000" in good[2] and "no template reads more than 1 place" in good[2]
    assert "which is as predicted" in good[5]
    broken = runs.ask(FOUR, rows, [PROBLEMS[:2000]])
    bad = said(Decimal(4, padding=600), broken, tables.Leak(3, 11.0, (1, 0), (4, 1)))
    assert "wrong answers in N1 N2" in bad[1] and "MORE than the 2,000" in bad[2] and "is NOT as predicted" in bad[5]


def test_the_trace_marks_what_has_just_come() -> None:
    shown = figures.trace_figure(FOUR, parse_all(["9999+0001", "5000-5001"]))
    first, second = shown.data
    z = np.array(first.z)
    assert z.shape == (7, 30)  # a 4, op, b 4, sum 4, carry 4, sign, answer 5, and a gap after each of seven
    assert (z[0, :4] == figures.NEW).all() and (z[1, :4] == figures.EMPTY).all()
    assert (z[1, 12:16] == figures.NEW).all() and (z[2:, 12:16] == figures.KEPT).all()
    assert list(first.text[6][-6:]) == ["1", "0", "0", "0", "0", ""]
    assert list(second.text[-1][-6:]) == ["0", "0", "0", "0", "1", ""]


def test_the_result_holds_all_and_reads_back_equal(whole, tmp_path) -> None:
    assert set(whole.tables) == {"summary", "groups", "categories", "iterations", "changed", "means"}
    assert set(whole.figures) == {"trace", "means", "iterations"}
    summary = whole.tables["summary"].set_index("digits")
    assert summary.loc[4, "templates"] == 1524 and summary.loc[5, "iterations"] == 7
    assert summary["wrong"].sum() == summary["padding needed"].sum() == summary["flips"].sum() == 0
    assert "A short run of 20,000" in whole.findings[0].text
    (leak,) = (one for one in whole.findings if "lets h_m grow" in one.text)
    assert leak.control_value == 0 and leak.value > 0 and "is as predicted" in leak.text
    save(whole, tmp_path / "out", analysis_name="ntk-decimal", options=module.Options(), inputs=[])
    assert load(tmp_path / "out") == whole


def test_the_full_form_asks_every_block(monkeypatch) -> None:
    monkeypatch.setattr("workbench.task.blocks", lambda: iter([PROBLEMS[:500], PROBLEMS[500:900]]))
    found = module.ntk_decimal.function([], module.Options(problems=1000, full=True))
    assert found.tables["categories"].query("grouping == 'operator'")["n"].sum() == 900
    assert not any("short run" in one.text for one in found.findings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problems": 10}, "expected 1,000 to 10,000,000"),
        ({"seed": -1}, "expected 1,000 to"),
    ],
)
def test_options_are_checked(changes: dict, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        module.Options(**changes)


@pytest.mark.parametrize("changes", [{"addition": "5-3"}, {"subtraction": "5+3"}, {"addition": "5x3"}])
def test_what_is_drawn_must_be_an_addition_and_a_subtraction(changes: dict) -> None:
    with pytest.raises(BadInput):
        module.ntk_decimal.function([], dataclasses.replace(module.Options(), **changes))
