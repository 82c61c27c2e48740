"""The two commands that train heads, with the executor stood in for."""

import json
import math

import pytest

from workbench import auxiliary_grid, cli, grid
from workbench.grid import Ended
from workbench.recipe import Recipe


@pytest.fixture
def trained(monkeypatch, write_run):
    """Stand in for the executor: each run is written with a loss that depends on its head."""
    asked = []

    def run_all(runs, folder, *, jobs, watcher):
        asked.append(dict(runs))
        for name, config in runs.items():
            if not (folder / name).exists():
                head = config.auxiliary
                good = head.head == "carry" and head.head_weight == 1.0
                write_run(folder / name, config, {config.recipe.steps: 0.5 if good else 1.0})
        return [Ended(name, "complete") for name in runs]

    monkeypatch.setattr(grid, "run_all", run_all)
    return asked


def test_the_weights_are_compared_and_one_is_picked(trained, tmp_path, capsys):
    assert cli.run(["auxiliary-weights", "--out", str(tmp_path), "--steps", "30", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["picked_weight"] == 1.0 and len(told["runs"]) == 40
    assert told["mean_log_losses"]["1"] == pytest.approx(math.log(0.5) / 3)  # one head of three
    assert {row["head"] for row in told["runs"]} == {None, "additive", "digitwise", "carry"}
    assert cli.run(["auxiliary-weights", "--out", str(tmp_path), "--steps", "30"]) == 0
    assert "picked: 1, the lowest mean over three heads and four shapes" in capsys.readouterr().out


def test_the_grid_is_trained_then_the_controls_of_the_best_head(trained, tmp_path, capsys):
    assert cli.run(["auxiliary-grid", "--out", str(tmp_path), "--weight", "1", "--steps", "30", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["most_promising"], told["weight"], len(told["runs"])) == ("carry", 1.0, 84 + 34)
    recipe = Recipe(steps=30, warmup_steps=10)
    assert trained == [auxiliary_grid.main_runs(1.0, recipe), auxiliary_grid.control_runs("carry", 1.0, recipe)]


def test_a_failed_run_is_told_and_ends_the_grid_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(grid, "run_all", lambda runs, *_, **__: [Ended(name, "failed", "no") for name in runs])
    assert cli.run(["auxiliary-grid", "--out", str(tmp_path), "--steps", "30"]) == 1
    assert "84 of 84 runs" in capsys.readouterr().err
