"""`workbench grid`, `lr-sweep` and `init-sweep`: many runs, each in a worker process of its own."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.grid_progress import watching
from workbench.cli.output import note, print_json, print_table, say
from workbench.errors import RunFailed
from workbench.recipe import Variant

if TYPE_CHECKING:
    from workbench.grid import Ended
    from workbench.recipe import RunConfig
    from workbench.sweeps import Course

Out = Annotated[Path, typer.Option(help="Folder that gets one checkpoint a run.")]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Worker processes, one run and one thread each; one a core if not given."),
]
Steps = Annotated[
    int | None,
    typer.Option(min=1, help="A shorter recipe of this many steps, to try the command out.", show_default=False),
]
Problems = Annotated[
    Variant,
    typer.Option(help="Task variant: all, ordered (a >= b), subtraction, addition, sign-hidden."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

RATE_COLUMNS = ("run", "rate", "mlp", "steps", "lowest loss", "last loss", "stable", "why")
INIT_COLUMNS = ("run", "init", "mlp", "steps", "best loss", "stopped")


def grid(
    out: Out = Path("checkpoints"),
    jobs: Jobs = None,
    steps: Steps = None,
    problems: Problems = "all",
    as_json: AsJson = False,
) -> None:
    """Train the twelve models: relu and bilinear, 1 and 2 layers, seeds 0, 1 and 2; or twelve of a task variant.

    What is complete is skipped and what is unfinished continues to the very bytes it would have had, so the same
    command again picks up after Ctrl-C, a crash or a failed model.
    """
    from workbench.recipe import Recipe, twelve

    recipe = Recipe()
    if steps is not None:
        note(f"a shorter recipe to try out: {steps:,} steps instead of {recipe.steps:,}; not the published models")
        recipe = Recipe(steps=steps, warmup_steps=min(recipe.warmup_steps, steps // 3))
    configs = [replace(config, problems=problems) for config in twelve(recipe)]
    ended = run_watched({config.name: config for config in configs}, out, jobs)
    _show_grid(ended, out, as_json)
    complain([one for one in ended if not one.finished], len(ended), out)


def _show_grid(ended: "list[Ended]", out: Path, as_json: bool) -> None:
    from workbench import checkpoint
    from workbench.cli.models import LIST_COLUMNS, describe, list_row

    found = {one.name: describe(checkpoint.read(out / one.name)) for one in ended if one.finished}
    if as_json:
        rows = [{"name": one.name, "ended": one.state, "message": one.message} for one in ended]
        print_json({"folder": str(out), "runs": rows, "checkpoints": list(found.values())})
        return
    if found:
        print_table(
            f"validation, {len(found)} of {len(ended)} models in {out}", LIST_COLUMNS, map(list_row, found.values())
        )
        note(f"beside the published twelve: workbench analyze twelve {out}")


def learning_rate_sweep(
    out: Out = Path("checkpoints/sweeps/learning-rate"), jobs: Jobs = None, steps: Steps = None, as_json: AsJson = False
) -> None:
    """Train six learning rates x both MLP kinds for 600 steps and report the highest at which both are stable.

    A run that diverges is a result here, not a failure. Stable: no divergence, and after the warm-up no validation
    loss above 1.5 times the lowest before it.
    """
    from workbench import sweeps

    courses = swept(sweeps.learning_rate_sweep, "lr-sweep", out, jobs, steps or sweeps.RATE_STEPS, sweeps.RATE_STEPS)
    rows = [rate_row(name, course) for name, course in courses.items()]
    picked = sweeps.picked_rate({(c.config.recipe.lr, c.config.architecture.mlp): c.stable for c in courses.values()})
    if as_json:
        print_json({"folder": str(out), "runs": rows, "spike": sweeps.SPIKE, "picked_rate": picked})
        return
    print_table(f"learning-rate sweep in {out}", RATE_COLUMNS, [cells(row) for row in rows])
    answer = "none of them" if picked is None else f"{picked:g}"
    say(f"picked: {answer}, the highest rate at which both MLP kinds are stable (one seed a point)")
    note(f"curves and the published rate: workbench analyze learning-rate {out}")


def rate_row(name: str, course: "Course") -> dict[str, Any]:
    """One line of the learning-rate sweep's table, as plain values; None where a run has no validation."""
    recipe, losses = course.config.recipe, course.losses
    return {
        "run": name, "rate": recipe.lr, "mlp": course.config.architecture.mlp, "steps": recipe.steps,
        "lowest_loss": course.lowest if losses else None, "last_loss": losses[-1] if losses else None,
        "stable": course.stable, "why": course.why,
    }  # fmt: skip


def initialisation_sweep(
    out: Out = Path("checkpoints/sweeps/initialisation"),
    jobs: Jobs = None,
    steps: Steps = None,
    as_json: AsJson = False,
) -> None:
    """Train four initialisations x both MLP kinds for 1,200 steps and report the one with the lowest validation loss.

    The published recipe leaves the initial weights open. Picked: the lowest mean, over both kinds, of the best
    validation loss; a run that diverges counts as infinite.
    """
    from workbench import sweeps

    courses = swept(sweeps.init_sweep, "init-sweep", out, jobs, steps or sweeps.INIT_STEPS, sweeps.INIT_STEPS)
    rows = [
        {
            "run": name, "init": c.config.recipe.init, "mlp": c.config.architecture.mlp, "steps": c.config.recipe.steps,
            "best_loss": None if c.stopped else c.best, "stopped": c.stopped,
        }
        for name, c in courses.items()
    ]  # fmt: skip
    best = {(c.config.recipe.init, c.config.architecture.mlp): c.best for c in courses.values()}
    picked = sweeps.picked_init(best)
    if as_json:
        print_json({"folder": str(out), "runs": rows, "picked_init": picked})
        return
    print_table(f"initialisation sweep in {out}", INIT_COLUMNS, [cells(row) for row in rows])
    say("mean of both: " + ", ".join(f"{init} {mean:.3g}" for init, mean in sweeps.mean_losses(best).items()))
    say(f"picked: {picked}, the lowest mean over both MLP kinds of the best validation loss (one seed a point)")


def cells(row: dict[str, Any]) -> list[str]:
    """A row of a sweep's table as text."""

    def cell(value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "NO"
        return "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)

    return [cell(value) for value in row.values()]


def swept(sweep: Any, command: str, out: Path, jobs: int | None, steps: int, usual: int) -> "dict[str, Course]":
    """Run or continue a sweep and read it back; RunFailed when a run failed other than by diverging."""
    from workbench import sweeps

    if steps != usual:
        note(
            f"{steps:,} steps a run instead of the {usual:,} that the sweep's rule was written for: to try it out only"
        )
    ended = run_watched(sweep(steps), out, jobs)
    complain([one for one in ended if one.state == "failed"], len(ended), out)
    return sweeps.read_sweep(out, sweep, command)


def run_watched(runs: "dict[str, RunConfig]", out: Path, jobs: int | None) -> "list[Ended]":
    """Train what is not there yet, with progress bars; Ctrl-C leaves with exit code 130."""
    from workbench import grid
    from workbench.engine import choice

    if remark := choice.settled(next(iter(runs.values())))[1]:
        note(remark)
    try:
        with watching(runs) as watcher:
            return grid.run_all(runs, out, jobs=jobs or os.cpu_count() or 1, watcher=watcher)
    except KeyboardInterrupt:
        note(f"interrupted; what was saved is kept in {out}, and the same command continues it")
        raise typer.Exit(130) from None


def complain(failed: "list[Ended]", total: int, out: Path) -> None:
    """RunFailed when some failed; the line of each was shown when it ended."""
    if failed:
        names = ", ".join(one.name for one in failed)
        raise RunFailed(f"{len(failed)} of {total} runs in {out} did not finish: {names}")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("grid")(grid)
    app.command("lr-sweep")(learning_rate_sweep)
    app.command("init-sweep")(initialisation_sweep)
