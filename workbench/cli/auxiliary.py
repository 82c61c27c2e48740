"""`workbench auxiliary-weights` and `auxiliary-grid`: decoders with auxiliary heads."""

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.grid import AsJson, Jobs, Steps, cells, complain, run_watched, swept
from workbench.cli.output import note, print_json, print_table, say

Sweep = Annotated[Path, typer.Option(help="Folder that gets one checkpoint a run.")]
Weight = Annotated[
    float | None,
    typer.Option(help="Weight of the heads' loss instead of the one the rule picked.", min=0.0, show_default=False),
]

COLUMNS = ("run", "head", "weight", "mlp", "layers", "steps", "best loss", "stopped")


def auxiliary_weights(
    out: Sweep = Path("checkpoints/sweeps/auxiliary-weight"),
    jobs: Jobs = None,
    steps: Steps = None,
    as_json: AsJson = False,
) -> None:
    """Train three frozen heads x three weights x four shapes for 1,200 steps and report the best weight.

    Picked: the lowest mean, over heads and shapes, of the logarithm of the best validation loss. Runs without a head
    stand beside it and do not count.
    """
    from workbench import auxiliary_grid as runs

    usual = runs.WEIGHT_STEPS
    courses = swept(runs.weight_sweep, "auxiliary-weights", out, jobs, steps or usual, usual)
    rows, best = [], {}
    for name, course in courses.items():
        config, head = course.config, course.config.auxiliary
        assert head is not None
        watching = head.head_weight == 0
        if not watching:
            best[head.head_weight, name] = course.best
        rows.append({
            "run": name, "head": None if watching else head.head, "weight": head.head_weight,
            "mlp": config.architecture.mlp, "layers": config.architecture.n_layers, "steps": config.recipe.steps,
            "best_loss": None if course.stopped else course.best, "stopped": course.stopped,
        })  # fmt: skip
    picked, means = runs.picked_weight(best), runs.mean_log_losses(best)
    if as_json:
        print_json({"folder": str(out), "runs": rows, "mean_log_losses": {f"{w:g}": m for w, m in means.items()},
                    "picked_weight": picked})  # fmt: skip
        return
    print_table(f"weights of auxiliary heads in {out}", COLUMNS, [cells(row) for row in rows])
    say("mean ln(loss): " + ", ".join(f"weight {weight:g} {mean:.4f}" for weight, mean in means.items()))
    say(f"picked: {picked:g}, the lowest mean over three heads and four shapes (n=12, one seed)")


def auxiliary_grid(
    out: Sweep = Path("checkpoints/auxiliary"),
    weight: Weight = None,
    jobs: Jobs = None,
    steps: Steps = None,
    as_json: AsJson = False,
) -> None:
    """Train the twelve with each auxiliary head, then controls of the most promising one: 118 runs.

    First without a head and with an additive, digitwise or carry head, frozen and trainable; then, for the best of
    them, a linear head and random units on the same target, and a sweep of weights on one decoder. The same command
    again continues what is unfinished.
    """
    from workbench import auxiliary_grid as runs
    from workbench import checkpoint
    from workbench.recipe import Recipe

    recipe = Recipe()
    if steps is not None:
        note(f"a shorter recipe to try out: {steps:,} steps instead of {recipe.steps:,}")
        recipe = Recipe(steps=steps, warmup_steps=min(recipe.warmup_steps, steps // 3))
    weight = runs.WEIGHT if weight is None else weight
    main = runs.main_runs(weight, recipe)
    ended = run_watched(main, out, jobs)
    complain([one for one in ended if not one.finished], len(ended), out)
    losses = {name: checkpoint.read(out / name).results["validation"]["all"].loss for name in main}
    head = runs.promising(losses, weight)
    note(f"most promising: {head}, the lowest mean ln(validation loss / without a head) of its frozen form (n=12)")
    controls = runs.control_runs(head, weight, recipe)
    ended += run_watched(controls, out, jobs)
    complain([one for one in ended if not one.finished], len(ended), out)
    if as_json:
        print_json(_summary(ended, out, head, weight))
        return
    say(f"{len(ended)} runs in {out}; most promising head: {head}")
    note(f"what they say: workbench analyze auxiliary {out}")


def _summary(ended: list[Any], out: Path, head: str, weight: float) -> dict[str, Any]:
    rows = [{"name": one.name, "ended": one.state, "message": one.message} for one in ended]
    return {"folder": str(out), "weight": weight, "most_promising": head, "runs": rows}


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("auxiliary-weights")(auxiliary_weights)
    app.command("auxiliary-grid")(auxiliary_grid)
