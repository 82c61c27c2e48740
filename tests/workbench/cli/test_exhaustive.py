"""`workbench evaluate --exhaustive` prints exact counts, stored or counted now."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from workbench.cli import run
from workbench.exhaustive import run as counting
from workbench.exhaustive.digits import BLOCK, Predictor
from workbench.recipe import Architecture, RunConfig
from workbench.task import ANSWER_TOKENS, Problems, encode

ROOT = Path(__file__).parents[3]
NAME = "arithmetic-relu-2layer-seed0"


@pytest.fixture
def perfect(tmp_path, write_run, monkeypatch):
    """A checkpoint whose predictions are all right, asked for two blocks."""

    def block(self, number):
        problems = Problems.from_index(np.arange(number * BLOCK, (number + 1) * BLOCK, dtype=np.uint32))
        return encode(problems)[:, ANSWER_TOKENS], np.zeros((BLOCK, 5), bool)

    monkeypatch.setattr(Predictor, "block", block)
    monkeypatch.setattr(counting, "blocks_of", lambda variant: [0, 1249])
    return write_run(tmp_path / "models" / "one", RunConfig(Architecture(n_layers=1)), {1: 2.0})


def test_it_counts_beside_the_checkpoints_and_reads_that_again(perfect, capsys, monkeypatch):
    assert run(["evaluate", str(perfect), "--exhaustive", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["group"] for row in rows] == ["all", "addition", "subtraction"]
    assert [row["n"] for row in rows] == [2 * BLOCK, BLOCK, BLOCK]
    assert all(row["wrong"] == 0 and row["seq_acc"] == 1 for row in rows)
    assert (perfect.parent / "exhaustive" / "one" / "wrong.parquet").exists()
    monkeypatch.setattr(Predictor, "block", None)  # not asked again
    assert run(["evaluate", str(perfect.parent), "--exhaustive", "--by", "class"]) == 0
    out, err = capsys.readouterr()
    assert "exact" in out and "1.00000000" in out and "0 of 320,000 wrong" in err


def test_another_place_for_the_counts(perfect, tmp_path, capsys):
    assert run(["evaluate", str(perfect), "--exhaustive", "--jobs", "1", "--out", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine" / "one" / "summary.json").exists()
    assert not (perfect.parent / "exhaustive").exists()


def test_an_interrupt_says_how_to_go_on(perfect, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Predictor, "block", interrupt)
    assert run(["evaluate", str(perfect), "--exhaustive"]) == 130
    assert "what was counted is kept in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--exhaustive", "--problems", "x.txt"], "leave out --problems"),
        (["--jobs", "2"], "belong to --exhaustive"),
        (["--out", "x"], "belong to --exhaustive"),
        (["--exhaustive", "--jobs", "0"], "--jobs"),
    ],
)
def test_flags_that_do_not_go_together(perfect, capsys, words, says):
    assert run(["evaluate", str(perfect), *words]) == 2
    assert says in capsys.readouterr().err


def test_counts_of_other_weights_are_named(perfect, capsys, tmp_path):
    shutil.copytree(ROOT / "checkpoints" / "exhaustive" / NAME, tmp_path / "mine" / "one")
    assert run(["evaluate", str(perfect), "--exhaustive", "--out", str(tmp_path / "mine")]) == 2
    assert "a count of other weights" in capsys.readouterr().err
