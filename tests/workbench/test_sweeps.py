import itertools
import json
import math
from pathlib import Path

import pytest

from workbench import sweeps
from workbench.errors import BadInput
from workbench.recipe import Architecture, Recipe, RunConfig
from workbench.sweeps import Course

KINDS = ("relu", "bilinear")


def course(losses: dict[int, float], stopped: str | None = None, warmup: int = 100) -> Course:
    config = RunConfig(recipe=Recipe(steps=600, warmup_steps=warmup))
    return Course(config, tuple(losses), tuple(losses.values()), stopped)


def test_the_learning_rate_sweep_is_what_was_written_down() -> None:
    runs = sweeps.learning_rate_sweep()
    points = {(c.recipe.lr, c.architecture.mlp, c.architecture.n_layers, c.seed, c.recipe.steps) for c in runs.values()}
    rates = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08)
    assert points == {(rate, mlp, 2, 100, 600) for rate in rates for mlp in KINDS}
    assert {(c.recipe.warmup_steps, c.recipe.validation_every) for c in runs.values()} == {(200, 50)}


def test_the_initialisation_sweep_is_what_was_written_down() -> None:
    runs = sweeps.init_sweep()
    points = {(c.recipe.init, c.architecture.mlp, c.architecture.n_layers, c.seed) for c in runs.values()}
    inits = ("transformer-lens", "half", "gpt2", "fan-in")
    assert points == set(itertools.product(inits, KINDS, (2,), (100,)))
    assert {(c.recipe.steps, c.recipe.lr) for c in runs.values()} == {(1200, 0.02)}


@pytest.mark.parametrize(
    ("losses", "stable"),
    [
        ({50: 2.0, 100: 1.0, 150: 0.5, 200: 0.25}, True),
        ({50: 2.0, 100: 1.0, 150: 0.5, 200: 0.75}, True),  # exactly 1.5 times is not above
        ({50: 2.0, 100: 1.0, 150: 0.5, 200: 0.7501}, False),
        ({50: 2.0, 100: 1.0, 150: 1.6, 200: 0.1}, False),  # a spike counts although the run recovers
        ({50: 1.0, 100: 9.0, 150: 1.2, 200: 1.1}, True),  # what rises by the end of the warm-up does not count
        ({50: 1.0, 100: 9.0, 150: 1.6, 200: 1.1}, False),  # but its low is what later ones are held against
        ({100: 1.0, 150: 1.4, 200: 1.45}, True),  # against the lowest before, not the one just before ...
        ({100: 1.0, 150: 1.4, 200: 1.51}, False),
    ],
)
def test_stability_flips_with_the_numbers(losses: dict[int, float], stable: bool) -> None:
    assert course(losses).stable is stable


def test_a_diverged_run_is_unstable_whatever_it_had() -> None:
    calm = {50: 2.0, 100: 1.0, 150: 0.5}
    assert course(calm).stable
    diverged = course(calm, stopped="diverged at step 160: loss nan, gradient norm nan")
    assert not diverged.stable
    assert diverged.why == "diverged at step 160: loss nan, gradient norm nan"
    assert (diverged.best, diverged.lowest) == (math.inf, 0.5)


def test_the_largest_rise_is_told_with_its_step() -> None:
    one = course({100: 1.0, 150: 0.5, 200: 0.6, 250: 0.4, 300: 0.7})
    assert dict(one.rises) == pytest.approx({150: 0.5, 200: 1.2, 250: 0.8, 300: 1.75})
    assert one.why == "largest rise x1.750 at step 300, above x1.5"
    assert "within x1.5" in course({100: 1.0, 150: 0.5}).why


def test_the_picked_rate_is_the_highest_stable_for_both_kinds() -> None:
    everything = dict.fromkeys(itertools.product(sweeps.RATES, KINDS), True)
    assert sweeps.picked_rate(everything) == 0.08
    assert sweeps.picked_rate({**everything, (0.08, "relu"): False}) == 0.04
    assert sweeps.picked_rate({**everything, (0.08, "relu"): False, (0.04, "bilinear"): False}) == 0.02
    assert sweeps.picked_rate({**everything, (0.02, "relu"): False}) == 0.08
    assert sweeps.picked_rate({(rate, mlp): mlp == "relu" for rate, mlp in everything}) is None


def test_the_picked_initialisation_has_the_lowest_mean() -> None:
    losses = dict.fromkeys(itertools.product(("transformer-lens", "half", "gpt2", "fan-in"), KINDS), 0.5)
    assert sweeps.picked_init(losses) == "transformer-lens"  # a tie goes to the one named first
    assert sweeps.picked_init({**losses, ("half", "relu"): 0.4}) == "half"
    assert sweeps.mean_losses({**losses, ("half", "relu"): 0.4})["half"] == pytest.approx(0.45)
    assert sweeps.picked_init({**losses, ("half", "relu"): 0.4, ("half", "bilinear"): 0.7}) == "transformer-lens"
    assert sweeps.picked_init({**losses, ("half", "relu"): 0.4, ("half", "bilinear"): math.inf}) == "transformer-lens"


SMALL = Architecture(d_model=4, n_heads=1, d_head=4, d_mlp=4, n_layers=1)


def test_courses_are_read_from_finished_and_diverged_runs_only(tmp_path: Path, write_run) -> None:
    config = RunConfig(SMALL, Recipe(steps=9, warmup_steps=3), engine="plain")
    write_run(tmp_path / "finished", config, {3: 2.0, 6: 1.5, 9: 1.6})
    write_run(tmp_path / "diverged", config, {3: 2.0}, stopped="diverged at step 5: loss nan")
    unfinished = write_run(tmp_path / "unfinished", config, {}, stopped="x")
    (unfinished / "history.json").unlink()

    assert sweeps.read_course(tmp_path / "finished") == Course(config, (3, 6, 9), (2.0, 1.5, 1.6))
    assert sweeps.read_course(tmp_path / "diverged") == Course(config, (3,), (2.0,), "diverged at step 5: loss nan")
    assert sweeps.read_course(tmp_path / "unfinished") is None
    assert sweeps.read_course(tmp_path / "absent") is None


@pytest.mark.parametrize(
    "validations",
    ["none", [{"step": 3}], [{"step": 3, "loss": -1.0}], [{"step": 6, "loss": 1.0}, {"step": 3, "loss": 1.0}], [7], []],
)
def test_a_damaged_history_is_refused_by_name(tmp_path: Path, write_run, validations: object) -> None:
    folder = write_run(tmp_path / "one", RunConfig(SMALL, Recipe(steps=9, warmup_steps=3)), {3: 2.0})
    path = folder / "history.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "validations": validations}))
    with pytest.raises(BadInput, match=r"one/history.json: .*sweep again"):
        sweeps.read_course(tmp_path / "one")


def test_a_sweep_is_read_whole_and_of_one_length(tmp_path: Path, write_run) -> None:
    runs = sweeps.init_sweep(30)
    with pytest.raises(BadInput, match="no such folder; run the sweep first: workbench init-sweep --out"):
        sweeps.read_sweep(tmp_path / "absent", sweeps.init_sweep, "init-sweep")
    *most, last = runs
    for name in most:
        write_run(tmp_path / name, runs[name], {30: 1.0})
    with pytest.raises(BadInput, match=f"1 of 8 runs .* the first is {last}; .*workbench init-sweep --out"):
        sweeps.read_sweep(tmp_path, sweeps.init_sweep, "init-sweep")
    write_run(tmp_path / last, runs[last], {}, stopped="diverged at step 2: loss nan")
    found = sweeps.read_sweep(tmp_path, sweeps.init_sweep, "init-sweep")
    assert list(found) == list(runs)
    assert [c.stopped for c in found.values()].count(None) == 7


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (sweeps.init_sweep(33)["init-half-relu"], "30 and of 33 steps"),
        (sweeps.init_sweep(30)["init-gpt2-relu"], "half-relu: not the run"),
    ],
)
def test_runs_that_do_not_belong_to_the_sweep_are_refused(
    tmp_path: Path, write_run, other: RunConfig, message: str
) -> None:
    for name, config in sweeps.init_sweep(30).items():
        write_run(tmp_path / name, other if name == "init-half-relu" else config, {30: 1.0})
    with pytest.raises(BadInput, match=message):
        sweeps.read_sweep(tmp_path, sweeps.init_sweep, "init-sweep")
