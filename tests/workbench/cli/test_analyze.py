"""`analyses` and `analyze`: flags from the options, findings printed, the result on disk."""

import json

import pytest

from workbench import analysis
from workbench.cli import run


def test_the_list_has_every_analysis_with_its_question(capsys):
    assert run(["analyses", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"exact-probe", "learning-rate", "twelve"} <= {row["name"] for row in rows}
    assert all(row["question"].endswith("?") for row in rows)
    assert run(["analyses"]) == 0
    text = capsys.readouterr().out
    assert all(f"{row['name']}" in text and row["question"] in text for row in rows)


def test_an_analysis_prints_its_findings_and_writes_its_result(short_run, tmp_path, capsys):
    out = tmp_path / "probe"
    words = ["analyze", "exact-probe", str(short_run), "--problems", "1000", "--seed", "3", "--out", str(out)]
    assert run([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert sorted(printed["files"]) == sorted(str(path) for path in out.rglob("*") if path.is_file())
    index = json.loads((out / "result.json").read_text())
    assert index["inputs"][0].startswith(f"{short_run.name} sha256:") and index["options"]["seed"] == 3
    assert printed["findings"] == index["findings"]
    assert len(analysis.load(out).tables) == len(index["tables"])
    assert run(words) == 0
    assert index["findings"][0]["text"] in " ".join(capsys.readouterr().out.split())


def test_its_options_are_flags_with_help(capsys):
    assert run(["analyze", "exact-probe", "--help"]) == 0
    text = capsys.readouterr().out
    assert "--problems" in text and "--seed" in text and "default" in text
    assert run(["analyze", "--help"]) == 0
    assert "exact-probe" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["analyze", "exact-probe"], "needs checkpoints"),
        (["analyze", "learning-rate"], "needs a folder of runs"),
        (["analyze", "learning-rate", "a", "b"], "takes one folder, 2 were given"),
        (["analyze", "exact-probe", "nowhere"], "no such folder"),
        (["analyze", "exact-probe", "x", "--nope"], "No such option"),
    ],
)
def test_what_it_cannot_do_is_one_line(words, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    assert says in capsys.readouterr().err
