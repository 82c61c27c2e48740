"""What a grid shows while it runs: bars in a terminal, else one line as each run ends. All of it on stderr."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from workbench.cli.output import note

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from workbench.grid import Ended, Watcher
    from workbench.recipe import RunConfig

WORDS = {"complete": "complete already", "trained": "trained", "stopped": "STOPPED", "failed": "FAILED"}


def ended_line(ended: "Ended") -> str:
    """`arithmetic-relu-2layer-seed0: trained`, or what went wrong."""
    return f"{ended.name}: {WORDS[ended.state]}" + (f": {ended.message}" if ended.message else "")


class Lines:
    """One line as each run ends, numbered."""

    def __init__(self, runs: "Mapping[str, RunConfig]") -> None:
        self.count, self.total = 0, len(runs)

    def progress(self, name: str, step: int, loss: float) -> None:
        """Nothing: only ends are worth a line in a log."""

    def ended(self, ended: "Ended") -> None:
        """The line."""
        self.count += 1
        note(f"[{self.count}/{self.total}] {ended_line(ended)}")


class Bars:
    """One bar for the whole grid and one for each running model.

    The grid's bar counts steps times layers, since a two-layer step takes about twice a one-layer step; so its ETA
    holds whichever models come first. Steps that an earlier call had done do not count.
    """

    def __init__(self, runs: "Mapping[str, RunConfig]", progress: "Progress") -> None:
        self.progress_bars = progress
        self.layers = {name: config.architecture.n_layers for name, config in runs.items()}
        self.last = {name: config.recipe.steps for name, config in runs.items()}
        self.first: dict[str, int] = {}
        self.at: dict[str, int] = {}
        self.tasks: dict[str, TaskID] = {}
        self.over = 0
        self.whole = progress.add_task("", total=None, rate="", remark="")
        self._show()

    def progress(self, name: str, step: int, loss: float) -> None:
        """Move the run's bar and the grid's."""
        bars = self.progress_bars
        if name not in self.tasks:
            self.first[name] = step - 1
            self.tasks[name] = bars.add_task(name, total=self.last[name], completed=step - 1, rate="", remark="")
        self.at[name] = step
        bars.update(self.tasks[name], completed=step, rate=_rate(self._speed(name)), remark=f"loss {loss:.4f}")
        self._show()

    def ended(self, ended: "Ended") -> None:
        """Replace the run's bar by a line above the bars."""
        name = ended.name
        if name in self.tasks:
            self.progress_bars.remove_task(self.tasks.pop(name))
        self.over += 1
        self.last[name] = self.at.get(name, 0)
        self.progress_bars.console.print(ended_line(ended), soft_wrap=True)
        self._show()

    def _speed(self, name: str) -> float:
        return next((t.speed or 0.0 for t in self.progress_bars.tasks if t.id == self.tasks[name]), 0.0)

    def _show(self) -> None:
        total = sum(self.layers[name] * (self.last[name] - self.first.get(name, 0)) for name in self.layers)
        done = sum(self.layers[name] * (self.at[name] - self.first[name]) for name in self.at)
        self.progress_bars.update(
            self.whole,
            total=total,
            completed=done,
            description=f"{self.over} of {len(self.layers)} models",
            rate=_rate(sum(map(self._speed, self.tasks))),
        )


def _rate(speed: float) -> str:
    return f"{speed:,.1f} steps/s" if speed else ""


@contextlib.contextmanager
def watching(runs: "Mapping[str, RunConfig]") -> "Iterator[Watcher]":
    """The watcher that suits stderr: bars in a terminal, lines elsewhere."""
    if not sys.stderr.isatty():
        yield Lines(runs)
        return
    from rich import progress as shown
    from rich.console import Console

    columns: tuple[Any, ...] = (
        "{task.description}",
        shown.BarColumn(),
        shown.TaskProgressColumn(),
        "{task.fields[rate]}",
        shown.TimeElapsedColumn(),
        "ETA",
        shown.TimeRemainingColumn(),
        "{task.fields[remark]}",
    )
    console = Console(file=sys.stderr, highlight=False, markup=False)
    with shown.Progress(*columns, console=console) as progress:
        yield Bars(runs, progress)
