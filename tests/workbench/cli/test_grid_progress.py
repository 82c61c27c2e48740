import io
import sys
from dataclasses import replace

import pytest
from rich.console import Console
from rich.progress import Progress

from workbench.cli.grid_progress import Bars, Lines, ended_line, watching
from workbench.grid import Ended
from workbench.recipe import Architecture, Recipe, RunConfig

RUN = RunConfig(Architecture(n_layers=1), Recipe(steps=100))
RUNS = {"small": RUN, "large": replace(RUN, architecture=Architecture(n_layers=2)), "there": RUN}


@pytest.fixture
def bars() -> Bars:
    return Bars(RUNS, Progress(console=Console(file=io.StringIO())))


def whole(bars: Bars) -> tuple[float | None, float, str]:
    task = bars.progress_bars.tasks[0]
    return task.total, task.completed, task.description


def test_a_line_says_how_a_run_ended() -> None:
    assert ended_line(Ended("a", "trained")) == "a: trained"
    assert ended_line(Ended("a", "failed", "disk full")) == "a: FAILED: disk full"


def test_outside_a_terminal_each_end_is_one_line_on_stderr(capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with watching(RUNS) as watcher:
        assert isinstance(watcher, Lines)
        watcher.progress("small", 1, 2.0)
        watcher.ended(Ended("small", "trained"))
        watcher.ended(Ended("large", "stopped", "diverged at step 3"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["[1/3] small: trained", "[2/3] large: STOPPED: diverged at step 3"]


def test_the_whole_counts_steps_times_layers_still_to_do(bars: Bars) -> None:
    assert whole(bars) == (100 + 200 + 100, 0, "0 of 3 models")
    bars.ended(Ended("there", "complete"))
    assert whole(bars) == (300, 0, "1 of 3 models")
    bars.progress("small", 10, 2.0)
    assert whole(bars)[:2] == (300 - 9, 1)  # it begins to count with the first step told
    bars.progress("small", 50, 2.0)
    bars.progress("large", 61, 2.0)  # continued: 60 steps were done before
    assert whole(bars)[:2] == (91 + 2 * 40, 41 + 2)
    bars.ended(Ended("small", "failed", "killed"))
    assert whole(bars) == (41 + 80, 43, "2 of 3 models")
    bars.progress("large", 100, 1.0)
    bars.ended(Ended("large", "trained"))
    total, completed, _ = whole(bars)
    assert total == completed == 41 + 80


def test_a_bar_a_running_model_and_a_line_when_it_ends(bars: Bars) -> None:
    bars.progress("small", 1, 2.0)
    bars.progress("large", 1, 1.25)
    shown = {task.description: (task.completed, task.total, task.fields["remark"]) for task in bars.progress_bars.tasks}
    assert shown["large"] == (1, 100, "loss 1.2500")
    bars.ended(Ended("small", "trained"))
    assert [task.description for task in bars.progress_bars.tasks] == ["1 of 3 models", "large"]
    output = bars.progress_bars.console.file
    assert isinstance(output, io.StringIO)
    assert "small: trained" in output.getvalue()
