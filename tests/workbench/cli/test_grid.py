import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from workbench import cli, grid, recipe, sweeps
from workbench.grid import Ended
from workbench.recipe import Architecture, Recipe, RunConfig

SMALL = Architecture(d_model=8, n_heads=1, d_head=4, d_mlp=8, n_layers=1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, object]]:
    """Stand in for the executor: every run ends as given, and what was asked of it is kept."""

    def use(ends: Mapping[str, tuple[str, str]] | type[BaseException]) -> dict[str, object]:
        kept: dict[str, object] = {}

        def run_all(runs: Mapping[str, RunConfig], folder: Path, *, jobs: int, watcher: grid.Watcher) -> list[Ended]:
            kept.update(runs=dict(runs), folder=folder, jobs=jobs)
            if isinstance(ends, type):
                raise ends
            ended = [Ended(name, *ends.get(name, ("complete", ""))) for name in runs]  # type: ignore[arg-type]
            for one in ended:
                watcher.ended(one)
            return ended

        monkeypatch.setattr(grid, "run_all", run_all)
        return kept

    return use


def test_the_grid_trains_in_worker_processes_and_says_what_failed(tmp_path: Path, monkeypatch, capsys) -> None:
    tiny = RunConfig(SMALL, Recipe(steps=3, warmup_steps=1, batch_size=32, validation_every=3), engine="plain")
    diverging = replace(tiny, seed=1, recipe=replace(tiny.recipe, lr=1e30))
    monkeypatch.setattr(recipe, "twelve", lambda _: [diverging, tiny])

    assert cli.run(["grid", "--out", str(tmp_path), "--jobs", "2", "--json"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [(run["name"], run["ended"]) for run in found["runs"]] == [
        (diverging.name, "stopped"),
        (tiny.name, "trained"),
    ]
    assert [one["name"] for one in found["checkpoints"]] == [tiny.name]
    assert found["checkpoints"][0]["results"]["validation"]["all"]["n"] == 10_000
    lines = err.splitlines()
    assert sum(line.endswith(f"{tiny.name}: trained") for line in lines) == 1
    assert sum(f"{diverging.name}: STOPPED: " in line for line in lines) == 1
    assert lines[-1] == f"Error: 1 of 2 runs in {tmp_path} did not finish: {diverging.name}"

    monkeypatch.setattr(recipe, "twelve", lambda _: [tiny])
    assert cli.run(["grid", "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert tiny.name in out
    assert "complete already" in err
    assert f"workbench analyze twelve {tmp_path}" in err


def test_the_grid_is_the_twelve_under_the_published_recipe(tmp_path: Path, asked) -> None:
    kept = asked(dict.fromkeys((config.name for config in recipe.twelve()), ("failed", "x")))
    assert cli.run(["grid", "--out", str(tmp_path), "--jobs", "3"]) == 1
    assert (kept["folder"], kept["jobs"]) == (tmp_path, 3)
    shapes = [(c.architecture.mlp, c.architecture.n_layers, c.seed, c.recipe) for c in kept["runs"].values()]
    kinds = ("relu", "bilinear")
    assert shapes == [(mlp, n, seed, Recipe()) for mlp in kinds for n in (1, 2) for seed in (0, 1, 2)]


def test_a_variant_is_twelve_models_of_its_own(tmp_path: Path, asked) -> None:
    names = [replace(config, problems="ordered").name for config in recipe.twelve()]
    kept = asked(dict.fromkeys(names, ("failed", "x")))
    assert cli.run(["grid", "--out", str(tmp_path), "--problems", "ordered"]) == 1
    runs = list(kept["runs"].values())
    assert runs == [replace(config, problems="ordered") for config in recipe.twelve()]
    assert "arithmetic-bilinear-1layer-ordered-seed2" in kept["runs"]


def test_a_shorter_recipe_says_so(tmp_path: Path, asked, capsys) -> None:
    kept = asked(dict.fromkeys((config.name for config in recipe.twelve()), ("failed", "x")))
    assert cli.run(["grid", "--out", str(tmp_path), "--steps", "30"]) == 1
    assert {(c.recipe.steps, c.recipe.warmup_steps) for c in kept["runs"].values()} == {(30, 10)}
    assert "30 steps instead of 4,883; not the published models" in capsys.readouterr().err


def test_an_interrupt_says_how_to_go_on(tmp_path: Path, asked, capsys) -> None:
    asked(KeyboardInterrupt)
    assert cli.run(["grid", "--out", str(tmp_path)]) == 130
    assert "the same command continues it" in capsys.readouterr().err


def test_the_learning_rate_sweep_reports_the_picked_rate(tmp_path: Path, asked, write_run, capsys) -> None:
    runs = sweeps.learning_rate_sweep(30)
    for name, config in runs.items():
        broken = config.recipe.lr > 0.03
        write_run(
            tmp_path / name,
            config,
            {10: 2.0, 20: 1.0} if broken else {20: 1.0},
            "diverged at step 25" if broken else None,
        )
    asked({name: ("stopped", "diverged") for name, config in runs.items() if config.recipe.lr > 0.03})

    assert cli.run(["lr-sweep", "--out", str(tmp_path), "--steps", "30", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["picked_rate"], found["spike"], len(found["runs"])) == (0.02, 1.5, 12)
    assert [run["stable"] for run in found["runs"]] == [True] * 8 + [False] * 4
    assert "30 steps a run instead of the 600" in err

    assert cli.run(["lr-sweep", "--out", str(tmp_path), "--steps", "30"]) == 0
    out, err = capsys.readouterr()
    assert "picked: 0.02, the highest rate at which both MLP kinds are stable" in out
    assert "diverged at step 25" in out
    assert f"workbench analyze learning-rate {tmp_path}" in err


def test_the_initialisation_sweep_reports_the_picked_one(tmp_path: Path, asked, write_run, capsys) -> None:
    for name, config in sweeps.init_sweep(30).items():
        write_run(tmp_path / name, config, {30: 0.1 if config.recipe.init == "half" else 0.2})
    asked({})
    assert cli.run(["init-sweep", "--out", str(tmp_path), "--steps", "30"]) == 0
    assert "picked: half, the lowest mean" in capsys.readouterr().out
    assert cli.run(["init-sweep", "--out", str(tmp_path), "--steps", "30", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["picked_init"] == "half"


def test_a_sweep_with_a_failed_run_has_no_verdict(tmp_path: Path, asked, capsys) -> None:
    asked({"lr-0.02-relu": ("failed", "disk full")})
    assert cli.run(["lr-sweep", "--out", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == f"Error: 1 of 12 runs in {tmp_path} did not finish: lr-0.02-relu"


@pytest.mark.parametrize("command", ["grid", "lr-sweep", "init-sweep"])
def test_bad_input_is_one_line_and_code_2(tmp_path: Path, capsys, command: str) -> None:
    (tmp_path / "file").touch()
    assert cli.run([command, "--out", str(tmp_path / "file" / "sub")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("Error: cannot create the folder")
    assert cli.run([command, "--jobs", "0"]) == 2
    assert cli.run([command, "--steps", "0"]) == 2


def test_help_imports_no_torch() -> None:
    code = "import sys, workbench.cli.grid; sys.exit('torch' in sys.modules or 'safetensors' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
