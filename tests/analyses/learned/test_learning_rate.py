from collections.abc import Callable
from pathlib import Path

import pytest

from analyses.learned import learning_rate
from analyses.published import load as published
from workbench import analysis, sweeps
from workbench.errors import BadInput

PUBLISHED = 0.02
CALM = {30: 2.0, 100: 1.5, 150: 1.0, 200: 0.5}


@pytest.fixture
def sweep(tmp_path: Path, write_run) -> Callable[..., Path]:
    """A sweep's folder in which every run is calm but for those given, by (rate, mlp)."""

    def write(losses: dict[tuple[float, str], dict[int, float]], stopped: tuple[tuple[float, str], ...] = ()) -> Path:
        for name, config in sweeps.learning_rate_sweep(240).items():
            point = config.recipe.lr, config.architecture.mlp
            why = "diverged at step 7: loss nan, gradient norm nan" if point in stopped else None
            write_run(tmp_path / name, config, losses.get(point, CALM), why)
        return tmp_path

    return write


def run(folder: Path) -> analysis.Result:
    return learning_rate.learning_rate.function(folder, learning_rate.Options())


SPIKE = {80: 1.0, 150: 0.5, 200: 0.76}
NO_SPIKE = {80: 1.0, 150: 0.5, 200: 0.75}


@pytest.mark.parametrize(
    ("losses", "stopped", "picked"),
    [
        ({}, (), 0.08),
        ({(0.08, "relu"): SPIKE}, (), 0.04),
        ({(0.08, "relu"): NO_SPIKE}, (), 0.08),
        ({(0.08, "relu"): SPIKE}, ((0.04, "bilinear"),), 0.02),
        ({(rate, "relu"): SPIKE for rate in sweeps.RATES}, (), 0.0),
    ],
)
def test_the_picked_rate_flips_with_the_runs(sweep, losses, stopped, picked: float) -> None:
    first = run(sweep(losses, stopped)).findings[0]
    assert (first.value, first.control_value, first.n) == (picked, PUBLISHED, 12)
    words = {0.0: "picks none", PUBLISHED: "0.02, the same"}.get(picked, "not the same")
    assert words in first.text


def test_a_row_a_run_and_a_row_a_validation(sweep) -> None:
    result = run(sweep({(0.08, "relu"): SPIKE, (0.04, "relu"): {}}, stopped=((0.04, "relu"),)))
    runs = result.tables["runs"].set_index("run")
    assert len(runs) == 12
    spiked, diverged = runs.loc["lr-0.08-relu"], runs.loc["lr-0.04-relu"]
    assert (spiked["lowest_loss"], spiked["last_loss"], spiked["stable"]) == (0.5, 0.76, False)
    assert spiked["largest_rise"] == pytest.approx(1.52)
    assert spiked["why"] == "largest rise x1.520 at step 200, above x1.5"
    assert not diverged["stable"]
    assert diverged["why"].startswith("diverged at step 7")
    assert diverged[["lowest_loss", "last_loss", "largest_rise"]].isna().all()
    assert runs["stable"].sum() == 10
    assert len(result.tables["curves"]) == 10 * 4 + 3


def test_what_decides_is_told_for_the_published_the_picked_and_the_next_rate(sweep) -> None:
    findings = run(sweep({(0.08, "bilinear"): SPIKE})).findings
    decisive = [f for f in findings if f.control == "largest rise the rule allows"]
    told = [(f.text.split(" is ")[0], "unstable" in f.text, f.control_value) for f in decisive]
    assert told == [
        (f"{mlp} at {rate:g}", (rate, mlp) == (0.08, "bilinear"), 1.5)
        for rate in (0.02, 0.04, 0.08)
        for mlp in ("relu", "bilinear")
    ]
    assert decisive[-1].value == pytest.approx(1.52)


def test_the_lowest_loss_and_the_limits_of_one_seed_are_told(sweep) -> None:
    findings = run(sweep({(0.005, "relu"): {150: 0.4}, (0.01, "relu"): {150: 0.1}}, stopped=((0.01, "relu"),))).findings
    lowest = [f for f in findings if "lowest validation loss" in f.text]
    assert [(f.value, f.n) for f in lowest] == [(0.005, 1), (0.0025, 1)]  # a diverged run has none
    assert findings[-1].n == 1
    assert "cannot show the spread between seeds" in findings[-1].text


def test_curves_tell_stable_from_unstable(sweep) -> None:
    figures = run(sweep({(0.08, "relu"): SPIKE})).figures
    dashed = [trace.name for trace in figures["curves"].data if trace.line.dash == "dash"]
    assert dashed == ["0.08"]
    assert len(figures["curves"].data) == 12
    relu, bilinear = figures["rates"].data
    assert list(relu.marker.symbol) == ["circle"] * 5 + ["x-thin-open"]
    assert list(bilinear.marker.symbol) == ["circle"] * 6


def test_it_reads_back_equal(sweep, tmp_path_factory) -> None:
    result = run(sweep({(0.04, "relu"): {}}, stopped=((0.04, "relu"),)))
    folder = tmp_path_factory.mktemp("result")
    analysis.save(result, folder, analysis_name="learning-rate", options=learning_rate.Options())
    assert analysis.load(folder) == result


def test_a_missing_run_is_bad_input(sweep) -> None:
    folder = sweep({})
    (folder / "lr-0.02-relu").rename(folder / "elsewhere")
    with pytest.raises(BadInput, match=r"1 of 12 runs .* lr-0.02-relu; .* workbench lr-sweep"):
        run(folder)


def test_the_published_rate_comes_from_the_published_recipe() -> None:
    assert published("twelve")["recipe"]["lr"] == PUBLISHED
