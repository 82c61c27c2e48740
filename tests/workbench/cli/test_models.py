"""`list`, `evaluate` and `solve` say what is there."""

import json
import shutil

import pytest

from workbench import checkpoint, evaluation, forward
from workbench.cli import run
from workbench.recipe import Architecture, RunConfig
from workbench.task import parse_all


@pytest.fixture
def folder(short_run, tmp_path):
    shutil.copytree(short_run, tmp_path / short_run.name)
    (tmp_path / "arithmetic-relu-2layer-seed5.partial").mkdir()
    shutil.copy(short_run / "config.json", tmp_path / "arithmetic-relu-2layer-seed5.partial")
    return tmp_path


def test_list_shows_finished_and_unfinished(folder, short_run, capsys):
    assert run(["list", str(folder), "--json"]) == 0
    finished, unfinished = json.loads(capsys.readouterr().out)
    assert finished["n_params"] == 9536 and finished["state"] == "finished"
    assert finished["results"]["validation"]["all"]["n"] == 10_000
    assert unfinished == {"name": "arithmetic-relu-2layer-seed5.partial", "state": "unfinished"}
    assert run(["list", str(folder)]) == 0
    assert "9,536" in capsys.readouterr().out


def test_list_shows_the_rest_when_one_is_refused(folder, short_run, capsys):
    shutil.copytree(short_run, folder / "damaged")
    (folder / "damaged" / "model.safetensors").write_bytes(b"")
    assert run(["list", str(folder), "--json"]) == 2
    found = capsys.readouterr()
    assert [row["state"] for row in json.loads(found.out)] == ["finished", "unfinished", "refused"]
    assert "damaged" in found.err


def test_evaluate_recomputes_the_stored_counts(short_run, capsys):
    assert run(["evaluate", str(short_run), "--json"]) == 0
    rows = {(row["on"], row["group"]): row for row in json.loads(capsys.readouterr().out)}
    stored = checkpoint.read(short_run).history["results"]
    assert len(rows) == 6
    for (split, group), row in rows.items():
        assert row["n"] == stored[split][group]["n"]
        assert row["digit_acc"] == stored[split][group]["digits_right"] / (5 * row["n"])
        assert row["digit_low"] < row["digit_acc"] < row["digit_high"]


def test_evaluate_takes_problems_from_a_file(short_run, tmp_path, capsys):
    file = tmp_path / "mine.txt"
    file.write_text("1234+0567\n\n5000-1\n 7 - 9 \n")
    assert run(["evaluate", str(short_run), "--problems", str(file), "--by", "class", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["group"], row["n"]) for row in rows] == [("all", 3), ("S2", 1), ("M3", 1), ("N1", 1)]
    file.write_text("1+1\n1+x\n")
    assert run(["evaluate", str(short_run), "--problems", str(file)]) == 2
    assert "line 2" in capsys.readouterr().err


def test_solve_shows_digits_probabilities_and_the_exact_answer(short_run, capsys):
    assert run(["solve", str(short_run), "1234-5678", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["problem"], found["exact"]) == ("1234-5678", "-04444")
    assert found["sign_given"]["tokens"][0] == "-" and found["sign_given"]["probabilities"][0] == 1.0
    for answer in ("sign_given", "own_sign"):
        assert len(found[answer]["tokens"]) == 6
        assert all(1 / 13 <= p <= 1 for p in found[answer]["probabilities"])
    assert run(["solve", str(short_run), "1234-5678"]) == 0
    text = capsys.readouterr().out
    assert "-04444    exact" in text and "d4" in text and "its own sign" in text


def test_solve_says_that_the_sign_is_hidden(tmp_path, write_run, capsys):
    config = RunConfig(Architecture(n_layers=1), problems="sign-hidden")
    write_run(tmp_path / "hidden", config, {200: 2.0})
    assert run(["solve", str(tmp_path / "hidden"), "1-2"]) == 0
    text = capsys.readouterr().out
    assert "sign hidden" in text and "s  =  hidden" in text and "given" not in text


def test_evaluate_hides_the_sign_from_a_run_of_that_variant(tmp_path, write_run, capsys):
    (tmp_path / "mine.txt").write_text("1-2\n5000-1\n")
    losses = []
    for problems in ("all", "sign-hidden"):
        config = RunConfig(Architecture(n_layers=1), problems=problems)
        folder = write_run(tmp_path / problems, config, {200: 2.0})
        assert run(["evaluate", str(folder), "--problems", str(tmp_path / "mine.txt"), "--json"]) == 0
        losses.append(json.loads(capsys.readouterr().out)[0]["loss"])
        weights = forward.tensors(checkpoint.read(folder).weights)
        outcome = evaluation.run(weights, config.architecture, parse_all(["1-2", "5000-1"]), problems)
        assert losses[-1] == evaluation.score(outcome).loss
    assert losses[0] != losses[1]  # the same weights, another token at the sign
