"""`workbench hill fit`: train one exact unit and watch its weights reach their selection."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.flags import build, with_flags
from workbench.cli.output import note, print_json, say

if TYPE_CHECKING:
    from workbench.hill.fitting_options import Trial
    from workbench.hill.fitting_trial import Asked, Outcome, Progress

WIDTH = 41  # places of a weight's scale from -1 to 1
Name = Annotated[
    str, typer.Argument(help="The operation to learn: add, divide, cos, sin-sum, ...", metavar="OPERATION")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def scale(weight: float, goal: float) -> str:
    """A weight on the line from -1 to 1: `|` where it ought to be, `o` where it is, `*` when these are one place."""
    places = [round((min(max(value, -1.0), 1.0) + 1) / 2 * (WIDTH - 1)) for value in (goal, weight)]
    line = ["-"] * WIDTH
    line[places[0]] = "|"
    line[places[1]] = "*" if places[0] == places[1] else "o"
    return "".join(line)


def line(progress: "Progress") -> str:
    """One line of progress."""
    first, second = progress.W
    return f"step {progress.steps:>6,}  loss {progress.loss:<9.3g}  W [{first:+.6f}, {second:+.6f}]"


@contextlib.contextmanager
def watching(goal: tuple[float, float]) -> "Iterator[Callable[[Progress], None]]":
    """What shows progress on stderr: a line whenever the steps have doubled, and in a terminal the last one alive.

    In a terminal each line carries the two weights on their scales.
    """
    shown = 0

    def due(progress: "Progress") -> bool:
        nonlocal shown
        if progress.steps < 2 * shown and progress.snapped != goal:
            return False
        shown = progress.steps
        return True

    if not sys.stderr.isatty():
        yield lambda progress: note(line(progress)) if due(progress) else None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(file=sys.stderr, highlight=False, markup=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def draw(progress: "Progress") -> None:
            first, second = (scale(weight, to) for weight, to in zip(progress.W, goal, strict=True))
            text = Text(f"{line(progress)}\n  w1 {first}\n  w2 {second}")
            live.update(text, refresh=True)
            if due(progress):
                live.console.print(text)  # stays, above the living line

        yield draw


def fit(name: Name, as_json: AsJson = False, **flags: Any) -> None:
    """Train one unit from zero weights until its snapped weights are the operation's selection, and ask it far outside.

    Ends with exit code 1 when the selection is not reached. The three questions are those of the report's section 4.2.
    """
    from workbench.hill.fitting_options import Trial
    from workbench.hill.operations import operation

    trial, row = build(Trial, flags), operation(name)
    import torch

    from workbench.hill.fitting_trial import as_dict, run

    torch.set_num_threads(1)  # two numbers are no work for several threads
    began = time.perf_counter()
    with watching((float(row.selection[0]), float(row.selection[1]))) as watch:
        outcome = run(name, trial, watch)
    if as_json:
        print_json(as_dict(name, trial, outcome))
    else:
        _report(name, trial, outcome, time.perf_counter() - began)
    if not outcome.reached:
        raise typer.Exit(1)


def _report(name: str, trial: "Trial", outcome: "Outcome", seconds: float) -> None:
    from workbench.hill.fitting_trial import rule
    from workbench.hill.operations import operation

    row, last = operation(name), outcome.last
    wanted, snapped = (", ".join(f"{weight:g}" for weight in pair) for pair in (row.selection, last.snapped))
    say(f"{name}: {row.primitive}, {rule(trial)}, inputs from {trial.low:g} to {trial.high:g}, seed {trial.seed}")
    say(f"weights [{last.W[0]!r}, {last.W[1]!r}] after {last.steps:,} steps in {seconds:.1f} s")
    verdict = "the selection" if outcome.reached else f"NOT the selection [{wanted}]"
    say(f"snapped [{snapped}], {verdict}")
    shown = [(_written(row.symbol, asked), asked) for asked in outcome.answers]
    width = max(len(text) for text, _ in shown)
    for text, asked in shown:
        apart = "not comparable" if asked.ulps is None else f"{asked.ulps:,} ulp{'' if asked.ulps == 1 else 's'} apart"
        say(f"{text:>{width}} = {asked.unit!r}    native {asked.native!r}    {apart}")


def _written(symbol: str, asked: "Asked") -> str:
    """The question as one writes it."""
    numbers = [f"{operand:.15g}" for operand in asked.operands]
    if symbol[0].isalpha() and symbol != "x":
        return " ".join([symbol, *numbers])
    if len(numbers) == 2:
        return f" {symbol} ".join(numbers)
    return f"{numbers[0]} {symbol}" if symbol.startswith("^") else f"{symbol} {numbers[0]}"


def add_to(group: typer.Typer) -> None:
    """Register the command in the group `hill`."""
    from workbench.hill.fitting_options import Trial

    group.command("fit")(with_flags(fit, Trial))
