"""`workbench train`: one run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.flags import build, with_flags
from workbench.cli.output import note, print_json, progress, say
from workbench.errors import BadInput
from workbench.recipe import Architecture, Auxiliary, Head, Recipe, RunConfig

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

Out = Annotated[
    Path,
    typer.Option(help="Folder to put the checkpoint in; it is named after the run, as arithmetic-relu-2layer-seed0."),
]
Name = Annotated[str | None, typer.Option(help="Name of the checkpoint's folder, instead of the usual one.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an unfinished run to the very bytes it would have had.")
]
WithHead = Annotated[
    Head | None,
    typer.Option(
        "--head",
        help="Train an auxiliary head beside the decoder: additive (the signed result), digitwise (the angle of each "
        "answer digit), carry (the carry or borrow out of each place). The other --head flags say how.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def train(
    out: Out = Path("checkpoints"),
    name: Name = None,
    resume: Resume = False,
    head: WithHead = None,
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Train one decoder under the published recipe, or a recipe of your own.

    The run is saved at every validation. Interrupted or killed, it continues with --resume.
    """
    auxiliary = _auxiliary(head, flags)
    rest = {"architecture": build(Architecture, flags), "recipe": build(Recipe, flags), "auxiliary": auxiliary}
    config = build(RunConfig, flags, **rest)
    if name is not None and (not name or name != Path(name).name or name.startswith(".") or name.endswith(".partial")):
        raise BadInput(f"--name {name[:60]!r} is not the name of a folder for a finished run; leave out / and .partial")
    folder = out / (config.name if name is None else name)
    total = config.recipe.steps
    from workbench import checkpoint, training
    from workbench.engine import choice

    if not (folder.exists() or checkpoint.partial_folder(folder).exists()):
        config, remark = choice.settled(config)
        if remark:
            note(remark)
    try:
        with progress(folder.name, total) as update:
            training.train(config, folder, resume=resume, on_step=lambda step, loss: update(step, f"loss {loss:.4f}"))
    except KeyboardInterrupt:
        note(f"interrupted; what was saved is kept in {checkpoint.partial_folder(folder)}, and --resume continues it")
        raise typer.Exit(130) from None
    from workbench.cli.models import describe, score_rows

    done = checkpoint.read(folder)
    if as_json:
        print_json(describe(done))
        return
    for row in score_rows(done):
        say(row)
    if auxiliary:
        say(_head_line(done))
    note(f"wrote {folder} (step {done.kept_step:,} kept, the lowest validation loss; engine {done.config.engine})")


def _auxiliary(head: Head | None, flags: dict[str, Any]) -> Auxiliary | None:
    """The head that the flags describe; BadInput when they describe one and --head names none."""
    found = build(Auxiliary, flags, head=head or Auxiliary.head)
    if head is None and found != Auxiliary():
        raise BadInput("a --head flag without a head; add --head additive, digitwise or carry")
    return found if head else None


def _head_line(done: "Checkpoint") -> str:
    """What the head learned, on the test problems."""
    told = done.history["head"]["test"]["all"]
    explained = 1 - told["loss"] / told["variance"]
    return f"head, test  n={told['n']:,} squared error {told['loss']:.5f}, {explained:.4f} of the variance explained"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("train")(
        with_flags(train, Architecture, Recipe, RunConfig, Auxiliary, without=("d_vocab", "n_ctx", "head"))
    )
