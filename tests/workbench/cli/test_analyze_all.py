"""`analyze all`: what is there is skipped, a failure stops no other, folders within folders are found."""

import dataclasses
import json

import pandas as pd
import pytest

from workbench import analysis
from workbench.analysis import Analysis, Finding, Result
from workbench.cli import analyze_all, run
from workbench.errors import BadInput
from workbench.recipe import RunConfig, knob


@dataclasses.dataclass(frozen=True)
class Options:
    seed: int = knob(0, "a seed")


def result(value):
    return Result({"numbers": pd.DataFrame({"x": [value]})}, {}, [Finding("It is so.", value)])


@pytest.fixture
def three(monkeypatch):
    """Analyses that count their models, fail, and read a folder; what each was given."""
    given = {}

    def counts(checkpoints, options):
        given.setdefault("counts", []).append([one.name for one in checkpoints])
        return result(len(checkpoints))

    def fails(checkpoints, options):
        raise ZeroDivisionError("division\nby zero")

    def refuses(checkpoints, options):
        raise BadInput("not these")

    def reads(folder, options):
        given.setdefault("reads", []).append(folder)
        return result(1.0)

    found = {
        "counts": Analysis("counts", "How many?", Options, counts, "checkpoints", "controls"),
        "fails": Analysis("fails", "Why?", Options, fails, "nothing"),
        "reads": Analysis("reads", "What?", Options, reads, "folder", "deep/down"),
        "refuses": Analysis("refuses", "Which?", Options, refuses, "checkpoints"),
    }
    monkeypatch.setattr(analysis, "names", lambda: list(found))
    monkeypatch.setattr(analysis, "get", found.__getitem__)
    return given


@pytest.fixture
def folder(tmp_path, write_run):
    for name, seed in (("one", 0), ("two", 1), ("controls/three", 2)):
        write_run(tmp_path / "models" / name, RunConfig(seed=seed), {10: 1.0})
    return tmp_path / "models"


def states(capsys):
    return {row["analysis"]: row["state"] for row in json.loads(capsys.readouterr().out)["analyses"]}


def test_each_runs_into_its_folder_and_a_failure_stops_no_other(three, folder, tmp_path, capsys):
    out = tmp_path / "results"
    assert run(["analyze", "all", str(folder), "--out", str(out)]) == 1
    captured = capsys.readouterr()
    assert "[2/4] fails: failed: ZeroDivisionError: division by zero" in captured.err
    assert "[3/4] reads: left out: no deep/down in the folders given" in captured.err
    assert "[4/4] refuses: failed: not these" in captured.err
    assert captured.err.splitlines()[-1] == "Error: 2 of 4 analyses failed: fails, refuses"
    assert three == {"counts": [["one", "two", "three"]]}
    assert analysis.load(out / "counts") == result(3)


def test_what_is_there_is_skipped_until_its_inputs_or_its_files_change(three, folder, tmp_path, write_run, capsys):
    words = ["analyze", "all", str(folder), "--out", str(tmp_path / "results"), "--json"]
    (folder / "deep" / "down").mkdir(parents=True)
    seen = []
    run(words)
    seen.append(states(capsys))
    run(words)
    seen.append(states(capsys))
    (tmp_path / "results" / "reads" / "tables" / "numbers.csv").write_text("x\n2\n")
    write_run(folder / "controls" / "four", RunConfig(seed=3), {10: 1.0})
    run(words)
    seen.append(states(capsys))
    assert [(row["counts"], row["reads"]) for row in seen] == [
        ("done", "done"), ("there already", "there already"), ("done", "done"),
    ]  # fmt: skip
    assert three["counts"][-1] == ["one", "two", "three", "four"]
    assert three["reads"] == [folder / "deep" / "down"] * 2


def test_other_weights_under_the_same_name_are_other_inputs(folder):
    one = Analysis("counts", "How many?", Options, lambda checkpoints, options: result(0), "checkpoints")
    _, names = analyze_all.inputs_of(one, [folder / "one"])
    _, others = analyze_all.inputs_of(one, [folder / "two"])
    assert names[0].split("sha256:")[1] != others[0].split("sha256:")[1]


def test_it_needs_a_folder(capsys):
    assert run(["analyze", "all"]) == 2
    assert "needs a folder of checkpoints" in capsys.readouterr().err
