"""The analysis `ntk-sbn`: its cases against numbers from outside, and verdicts that flip."""

import copy
import dataclasses
import itertools

import pytest
import torch

from analyses.kernel import _ntk_sbn_figures as figures
from analyses.kernel import _ntk_sbn_rule as rule
from analyses.kernel import _ntk_sbn_runs as runs
from analyses.kernel import _ntk_sbn_tables as tables
from analyses.kernel import ntk_sbn as module
from workbench.errors import BadInput
from workbench.ntk import sbn
from workbench.result import load, save


@pytest.mark.parametrize(("numbers", "count"), [((2, 3, 2), 1536), ((2, 4, 2), 6144), ((3, 3, 2), 27648)])
def test_all_single_instructions(numbers, count):
    """2^(D w) D^2 (P + 1) P of them; m reaches its bound of D w + 3 P + 4."""
    case = runs.singles(sbn.Size(*numbers), 7)
    record = case.outcome.record
    assert case.runs == tables.executed(case) == int(record.states.sum()) // (numbers[1] + 5) == count
    assert (record.wrong_states, record.wrong_words, record.flips, record.predicted) == (0, 0, 0, 0)
    assert record.words == count * numbers[0] and case.outcome.agrees.all()
    assert tables.most_matched(case) == case.size.most_matched == numbers[0] * numbers[1] + 10


def test_single_instructions_are_all_there_are(monkeypatch):
    """Each memory, a, b, c and pc once; the other instruction is any."""
    asked, whole = [], runs.compare
    monkeypatch.setattr(runs, "compare", lambda *arguments: asked.append(arguments) or whole(*arguments))
    runs.singles(sbn.Size(2, 3, 2), 0)
    _, _, code, memory, pc, most = asked[0]
    at = code[torch.arange(len(pc)), pc]
    seen = {tuple(row) for row in torch.cat([memory, at, pc[:, None]], dim=1).tolist()}
    places = [range(8), range(8), range(2), range(2), range(3), range(2)]
    assert seen == set(itertools.product(*places)) and most == 1
    assert code.amax(dim=(0, 1)).tolist() == [1, 1, 2] and code.amin(dim=(0, 1)).tolist() == [0, 0, 0]


def test_random_programs():
    case = runs.fuzz(sbn.Size(3, 4, 5), 300, 12, 0)
    assert case.outcome.agrees.all() and case.outcome.record.flips == 0
    assert 300 < tables.executed(case) <= 3600
    other = runs.fuzz(sbn.Size(3, 4, 5), 300, 12, 1)
    assert not torch.equal(case.outcome.executed, other.outcome.executed)


def test_programs_and_what_they_ought_to_answer(monkeypatch):
    whole = runs.grid
    monkeypatch.setattr(runs, "grid", lambda *counts: whole(2, 2, 2) if len(counts) == 3 else whole(*counts))
    found = runs.programs(full=False)
    wanted = [("multiply", 176), ("countdown", 16), ("fibonacci", 12), ("sort", 8)]
    assert [(case.name, case.right) for case in found] == wanted
    assert all(case.outcome.agrees.all() and case.outcome.halted.all() for case in found)
    assert tables.executed(found[1]) == sum(2 * n + 1 for n in range(16))


def test_sorting_is_judged():
    case = runs._sorting("some", [torch.tensor([5, 0, 3]), torch.tensor([1, 0, -4]), torch.tensor([2, 0, 3])])
    assert (case.right, case.runs) == (3, 3) and case.outcome.agrees.all()
    wrong = runs._sorting("too far apart", [torch.tensor([7]), torch.tensor([-8]), torch.tensor([0])])
    assert wrong.right == 0 and wrong.outcome.agrees.all()  # the machine runs it rightly; the program is not for it


@pytest.fixture(scope="module")
def attempts():
    """Four pairs; 31 x 1 has the highest load of all pairs, 495.70, so that 63 of padding are enough."""
    cells = {"x": torch.tensor([31, 3, 4, 0]), "y": torch.tensor([1, 4, 4, 5])}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule, "SLOTS", 20)
        return cells, rule.smallest(cells), [rule.attempt(cells, padding) for padding in (0, 62, 63, 302)]


def test_the_rule_foretells_first_flips_along_the_intended_runs(attempts):
    _, enough, found = attempts
    assert enough == 63
    assert [one.agree for one in found] == [4] * 4
    assert [(one.foretold > 0).tolist() for one in found[:3]] == [
        [True, True, False, False], [True, False, False, False], [False] * 4
    ]  # fmt: skip
    assert [one.case.right for one in found[2:]] == [4, 4] and found[0].case.right < 4
    assert [round(one.limit - one.padding, 3) for one in found] == [433.283] * 4  # 428 + 2 pi - 1


def test_the_fullest_state_needs_the_whole_padding():
    size = sbn.Size(4, 5, 2)
    assert [rule.fullest(size, padding) for padding in (21, 20)] == [0, 10]


def test_the_verdict_on_the_rule_flips(attempts):
    _, enough, found = attempts
    good = tables.rule(found[0])
    assert "fails exactly where" in good.text and good.value == good.control_value > 0
    record = found[0].case.outcome.record
    for name in ("missed", "alarms"):
        spoiled = copy.copy(record)
        setattr(spoiled, name, 1)
        outcome = dataclasses.replace(found[0].case.outcome, record=spoiled)
        case = dataclasses.replace(found[0].case, outcome=outcome)
        assert "does NOT fail where" in tables.rule(dataclasses.replace(found[0], case=case)).text
    moved = dataclasses.replace(found[0], foretold=found[0].foretold + 1)
    assert "does NOT fail where" in tables.rule(moved).text
    assert "does NOT fail where" in tables.rule(found[3]).text  # no flip at all
    assert "is the least that works" in tables.threshold(found, enough).text
    above = [found[2], dataclasses.replace(found[3], padding=64)]
    assert "is NOT the least" in tables.threshold(above, 64).text  # it works with one template less
    assert "is NOT the least" in tables.threshold([found[1], dataclasses.replace(found[0], padding=61)], 62).text
    assert "cannot be less" in tables.tightness((0, 12), 302).text
    assert "is NOT what is needed" in tables.tightness((0, 0), 302).text
    assert "is NOT what is needed" in tables.tightness((3, 12), 302).text


def test_the_other_verdicts_flip(attempts):
    _, _, found = attempts
    good, bad = found[3].case, found[0].case
    assert "is the interpreter's: 0 states differ" in tables.agreement([good], "x").text
    assert "does NOT agree" in tables.agreement([good, bad], "x").text
    assert "machine agrees" in tables.sampled(good).text and tables.sampled(good).high == pytest.approx(
        0.4899, abs=1e-4
    )
    assert "does NOT agree" in tables.sampled(bad).text and tables.sampled(bad).value == 0.5
    assert "never exceeds" in tables.occupancy([good]).text and "loose" in tables.occupancy([good]).text
    narrow = dataclasses.replace(good, size=sbn.Size(2, 3, 2))
    assert "EXCEEDS" in tables.occupancy([narrow]).text


def test_the_whole_analysis_reads_back(monkeypatch, tmp_path, attempts):
    few = attempts[0]
    monkeypatch.setattr(rule, "SLOTS", 20)
    monkeypatch.setattr(runs, "SINGLES", ((2, 3, 2),))
    monkeypatch.setattr(runs, "factors", lambda: few)
    monkeypatch.setattr(runs, "programs", lambda full: [runs.multiplying("few", few)])
    result = module.ntk_sbn.function([], module.Options(programs=20))
    texts = [finding.text for finding in result.findings]
    assert "A short run" in texts[0] and tables.short(True) == []
    assert not any("NOT" in text for text in texts)
    assert result.tables["summary"]["case"].tolist() == ["single instructions", "random programs", "multiply"]
    assert result.tables["summary"]["right"].tolist() == ["", "", "4 of 4"]
    assert result.tables["cases"]["iterations"].iloc[0] == 1536 * 8
    assert result.tables["machines"]["load_limit"].iloc[2] == pytest.approx(730 + 5.283185, abs=1e-5)
    assert result.tables["paddings"]["padding"].tolist() == [0, 62, 63, 302]
    assert (result.tables["loads"]["flips"] > 0).equals(
        result.tables["loads"]["load"] >= result.tables["loads"]["limit"]
    )
    assert set(result.figures) == {"trace-multiply", "trace-sort", "load", "unpadded"}
    save(result, tmp_path / "saved", analysis_name="ntk-sbn", options=module.Options())
    assert load(tmp_path / "saved") == result


def test_a_trace_by_hand():
    one = figures.trace("countdown", {"n": 1})
    assert one.pc == [0, 1, 0, 2] and [words[0] for words in one.words] == [1, 0, 0, -1] and all(one.same)
    table = figures.trace_table([one])
    assert len(table) == 16 and table[table["cell"] == "n"]["value"].tolist() == [1, 0, 0, -1]
    spoiled = dataclasses.replace(one, same=[True, True, False, True])
    assert "differs where marked" in figures.trace_figure(spoiled).layout.title.subtitle.text
    shown = figures.trace_figure(one)
    assert shown.data[-1].text[0] == ["1", "0", "", "-1"]


@pytest.mark.parametrize("options", [{"programs": 0}, {"programs": 200_000}, {"seed": -1}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(BadInput):
        module.Options(**options)
