"""Exact counts from integer arithmetic, the specification's numbers, and verdicts that flip."""

import dataclasses

import numpy as np
import pytest
import torch

from analyses.kernel import _ntk_exhaustive_findings as findings
from analyses.kernel import ntk_exhaustive as module
from analyses.kernel._ntk_exhaustive_check import Checked, check
from analyses.kernel._ntk_exhaustive_figures import margin_figure, tolerance_figure
from workbench import analysis
from workbench.errors import BadInput
from workbench.ntk import kernel
from workbench.ntk.arithmetic import addition, multiplication, permutation
from workbench.ntk.sliced import Survey


@pytest.fixture(scope="module")
def short():
    return module.ntk_exhaustive.function([], module.Options(bits=3))


def test_the_sizes_and_loads_of_the_specification():
    """Loads and limits as an independent program found them: 5.1 of 29.3, and 49.5 of 127.3 without padding."""
    add, multiply = check(addition(6)), check(multiplication(6, 0))
    for found, load, allowed, steps, most in ((add, 5.1, 29.3, 11, 6), (multiply, 49.5, 127.3, 150, 24)):
        assert (found.wrong, found.survey.flips, found.settled) == (0, 0, steps)
        assert found.numbers["most"] == most and found.numbers["load"] == pytest.approx(load, abs=0.05)
        assert found.numbers["load"] * found.numbers["tolerance"] == pytest.approx(allowed, abs=0.05)
    g = kernel.gain(torch.tensor(6)).item()
    h = (6 * g - 1) / (24 + 2 * np.pi - 1)
    assert add.numbers["one"] == pytest.approx(g - 2 * h, abs=1e-14)
    h2 = (2 * kernel.gain(torch.tensor(2)).item() - 1) / (24 + 2 * np.pi - 1)
    assert add.numbers["zero"] == pytest.approx(h2, abs=1e-14)
    assert add.survey.matched.sum() == 12 * 4096


def test_inputs_in_several_batches_are_all_there(monkeypatch):
    monkeypatch.setattr("analyses.kernel._ntk_exhaustive_check.BATCH", 100)
    found, whole = check(addition(4)), check(multiplication(2))
    assert (found.wrong, found.settled) == (0, 7) and found.survey.matched.sum() >= 256 * 8 - 3 * 256
    assert whole.settled == 18
    assert check(addition(4), leaking=24.462).wrong == 189  # as in one batch


@pytest.mark.parametrize("factor", [-3.0, 1e6])
def test_spoiling_the_leak_makes_the_check_fail(monkeypatch, factor):
    leak = kernel.leak
    monkeypatch.setattr(kernel, "leak", lambda *args: factor * leak(*args))
    for algorithm in (addition(3), multiplication(2), permutation([2, 0, 1])):
        found = check(algorithm)
        assert found.wrong > 0 and found.survey.flips > 0 and found.settled == 0
    result = module.ntk_exhaustive.function([], module.Options(op="add", bits=2))
    assert result.tables["summary"]["wrong"].item() > 0 and "is NOT exact" in result.findings[1].text


def test_too_few_steps_are_wrong():
    less = dataclasses.replace(multiplication(2), steps=17)
    assert check(less).wrong > 0 and check(less).settled == 0
    assert check(dataclasses.replace(multiplication(2), steps=18)).wrong == 0
    other = dataclasses.replace(addition(3), exact=lambda a, b: a + b + (a == 5).long())
    assert check(other).wrong == 8


def test_the_whole_result(short):
    table = short.tables["summary"].set_index("operation")
    assert table["inputs"].tolist() == [2 + 4 * 2 + 8 * 3, 4 + 16 + 64, 4 + 16 + 64]
    assert table["wrong"].tolist() == table["flips"].tolist() == [0, 0, 0]
    assert table["templates"].tolist() == [3, 12, 65] and table["needed"].tolist() == [1, 5, 39]
    rows = short.tables["exhaustive"]
    assert rows.loc[rows["operation"] == "permute", "which"].tolist()[:3] == ["reversal", "reversal", "random"]
    assert rows["inputs"].sum() == table["inputs"].sum()
    controls = short.tables["controls"]
    assert controls["flips"].tolist()[::3] == [0, 0, 0] and (controls["flips"][1::3] > 0).all()
    assert (controls["wrong"][2::3] > 0).all()
    matched = short.tables["matched"].groupby("operation")["states"].sum()
    assert matched["multiply"] == 64 * 45 and matched["permute"] == 8
    points = short.tables["points"]
    assert ((points["mean"] > 1e-10) == (points["S"] >= 1)).all()
    assert set(short.figures) == {"margin", "tolerance", "sizes"}
    assert not any("NOT" in finding.text or "FASTER" in finding.text for finding in short.findings)


def test_sizes_against_inputs(short):
    table = short.tables["sizes"].set_index(["operation", "bits"])
    assert len(table) == 3 * 31
    for bits in (1, 7, 31):
        assert table.loc[("permute", bits)].tolist() == [bits, 2.0**bits, 1.0]
        assert table.loc[("add", bits)].tolist() == [4 * bits, 4.0**bits, 2.0]
        assert table.loc[("multiply", bits)].tolist() == [21 * bits + 2, 4.0**bits, (21 * bits + 2) / (2 * bits)]


def test_permutations_are_those_they_are_called():
    found = {
        label: one.exact(torch.tensor([1, 2])).tolist() for label, one in module.algorithms("permute", 5, 0).items()
    }
    assert found["reversal"] == [16, 8] and found["rotation"] == [2, 4] and len(found) == 3
    assert list(module.algorithms("permute", 1, 0)) == ["reversal"]
    drawn = [
        module.algorithms("permute", 12, seed)["random"].exact(2 ** torch.arange(12)).tolist() for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2] and sorted(drawn[0]) == [2**i for i in range(12)]


def altered(found: Checked, **changes) -> Checked:
    return dataclasses.replace(found, **changes)


def test_verdicts_flip():
    good = check(addition(3))
    assert "is exact" in findings.exact([good], []).text
    wrong = findings.exact([altered(good, wrong=1)], [altered(good, wrong=7, leaking=5.0)])
    assert "is NOT exact" in wrong.text and (wrong.value, wrong.n, wrong.control_value) == (1, 64, 7)
    assert "2l - 1 at every size" in findings.steps([good]).text
    assert "is NOT 2l - 1 at 3 bits" in findings.steps([altered(good, settled=6)]).text
    assert "needs no padding" in findings.padding([good]).text
    crowded = altered(good, survey=Survey(good.survey.matched, {(7, 1, 2)}))
    assert (
        findings.padding([crowded]).value == pytest.approx(14 / 12) and "may need" in findings.padding([crowded]).text
    )
    flipping, still = Survey(good.survey.matched, set(), 3), Survey(good.survey.matched, set(), 0)
    for below, above, says in ((still, flipping, "tells"), (flipping, flipping, "NOT"), (still, still, "NOT")):
        rows = [altered(good, survey=below, leaking=2.0), altered(good, survey=above, leaking=2.0), good]
        assert says in findings.threshold(rows)[0].text
    sizes = module.sizes_table(["add"])
    assert "grow logarithmically" in findings.logarithmic(sizes).text
    sizes["templates_per_doubling"] = sizes["bits"].astype(float)
    assert "FASTER" in findings.logarithmic(sizes).text
    assert findings.short({"add": 10}) == [] and "add up to 9 bits (10" in findings.short({"add": 9})[0].text


def test_the_margin_of_one_bit_has_no_zero():
    text = findings.margin([check(addition(1))]).text
    assert "to be 1 is 1." in text and "to be 0" not in text and "load" not in text
    assert module.controlled([check(addition(1))]) == []


def test_the_margin_figure_has_every_point_and_its_curve(short):
    rows = {"add": [check(addition(3))]}
    figure = margin_figure(rows)
    marks = [trace for trace in figure.data if trace.mode == "markers"]
    drawn = {(m, trace.name) for trace in marks for m in trace.x}
    assert drawn == {(m, f"S = {s}, T = {t}") for m, s, t in rows["add"][0].survey.points if t and m >= (1 if s else 2)}
    one = next(trace for trace in marks if trace.name == "S = 1, T = 2")
    assert one.y[-1] == pytest.approx(rows["add"][0].numbers["one"])
    assert len(figure.data) == 2 * len(marks) and figure.layout.xaxis2.title.text == "matched templates m"
    lines = tolerance_figure({"permute": [check(permutation([1, 0])), check(permutation([0, 1]))]}).data
    assert [list(line.x) for line in lines] == [[2]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"op": "divide"}, "one of"),
        ({"bits": -1}, "1 or more"),
        ({"bits": 14}, "2\\*\\*28 inputs"),
        ({"op": "permute", "bits": 27}, "2\\*\\*27 inputs"),
        ({"bits": 3, "full": True}, "one of them"),
        ({"seed": -1}, "seed"),
    ],
)
def test_options_out_of_range_are_refused(options, says):
    with pytest.raises(BadInput, match=says):
        module.Options(**options)


def test_sizes_asked_for():
    assert module.Options().sizes == {"permute": 12, "add": 8, "multiply": 6}
    assert module.Options(full=True).sizes == {"permute": 20, "add": 10, "multiply": 10}
    assert module.Options(op="multiply", bits=13).sizes == {"multiply": 13}


def test_the_result_survives_the_disk(short, tmp_path):
    analysis.save(short, tmp_path, analysis_name="ntk-exhaustive", options=module.Options())
    assert analysis.load(tmp_path) == short
