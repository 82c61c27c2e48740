"""`workbench export` and `export-join`: activations at chosen hooks on disk, and exports put together."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from workbench.cli.output import note, print_json, progress, say

if TYPE_CHECKING:
    from workbench.activations.layout import Index
    from workbench.recipe import Variant
    from workbench.task import Problems

Out = Annotated[Path, typer.Option(help="Folder to write; it must be new, or empty.")]
ShardMb = Annotated[int, typer.Option(help="Size of a file in MiB, which is what bounds the memory used.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the export that the folder holds, once whole.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")]


def export(
    path: Annotated[Path, typer.Argument(help="A checkpoint, such as checkpoints/arithmetic-relu-2layer-seed0.")],
    hooks: Annotated[
        list[str],
        typer.Option(
            help="TransformerLens hook names, with commas between or the flag again; * stands for anything, as in "
            "'blocks.*.hook_resid_post'. An unknown name is answered with close ones."
        ),
    ],
    out: Out,
    problems: Annotated[str, typer.Option(help="How many problems to draw, or a text file with one a line.")] = "1000",
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the draw; the run's data seed gives its training problems.")
    ] = 0,
    category: Annotated[
        str | None,
        typer.Option(help="Only problems of this category: addition, subtraction, '2 carries', S3, M1, N2, ..."),
    ] = None,
    positions: Annotated[
        str | None,
        typer.Option(
            help="Only these positions: 10-14, or 0,4,9, or the tokens' labels such as =,s,d4; default all 15."
        ),
    ] = None,
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16", "float64"],
        typer.Option(help="Number format on disk; numpy cannot read bfloat16; float64 is also computed so."),
    ] = "float32",
    shard_mb: ShardMb = 64,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write a checkpoint's activations at chosen hooks to safetensors files with an index.

    docs/activations.md shows how to read them, with numpy alone if you like.
    """
    from workbench import checkpoint
    from workbench.activations.hooks import ALL_POSITIONS, choose_hooks, choose_positions

    one = checkpoint.read(path)
    names = choose_hooks([name.strip() for text in hooks for name in text.split(",")], one.config.architecture)
    places = ALL_POSITIONS if positions is None else choose_positions(positions)
    asked, chosen = _choose(problems, seed, category, one.config.problems)
    from workbench.activations import export as exporting

    with progress("export", len(asked)) as update:
        index = exporting.export(
            one,
            asked,
            out,
            hooks=names,
            positions=places,
            dtype=dtype,
            shard_mb=shard_mb,
            chosen=chosen,
            overwrite=overwrite,
            report=lambda done: update(done, ""),
        )
    _tell(index, out, as_json)


def export_join(
    folders: Annotated[list[Path], typer.Argument(help="Two or more folders that `workbench export` wrote.")],
    out: Out,
    rows: Annotated[
        bool,
        typer.Option(
            "--rows", help="Append problems: same checkpoint and hooks, one export's problems after another's."
        ),
    ] = False,
    shard_mb: ShardMb = 64,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Put exports together in a new one.

    Without --rows: the activations of the same problems side by side, from other hooks or other checkpoints; exports
    whose problems or token ids differ are refused. Several checkpoints' tensors are named checkpoint/hook.
    """
    from workbench.activations.join import align, append
    from workbench.activations.read import read_export

    exports = [read_export(folder) for folder in folders]
    with progress("join", sum(map(len, exports)) if rows else len(exports[0])) as update:
        join = append if rows else align
        index = join(exports, out, shard_mb=shard_mb, overwrite=overwrite, report=lambda done: update(done, ""))
    _tell(index, out, as_json)


def _choose(text: str, seed: int, category: str | None, variant: "Variant") -> "tuple[Problems, str]":
    """The problems that `--problems` and `--category` ask for, and how they were chosen, in words."""
    from workbench.errors import BadInput
    from workbench.sample import sample
    from workbench.structure import in_category
    from workbench.task import read_problems

    kind = f" of category {category}" if category else ""
    number = text.replace(",", "").replace("_", "")
    if number.isascii() and number.isdigit() and len(number) <= 12:
        asked = sample(int(number), seed, variant, category)
        return asked, f"{len(asked):,} problems{kind} drawn with seed {seed} from the variant {variant}"
    if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit():
        raise BadInput(f"--problems {text[:40]}: expected a number from 1, or a file with one problem a line")
    asked = read_problems(Path(text))
    if category:
        asked = asked[in_category(asked, category)]
        if not len(asked):
            raise BadInput(f"{text}: none of its problems is of category {category!r}")
    return asked, f"{len(asked):,} problems{kind} from the file {Path(text).name}"


def _tell(index: "Index", out: Path, as_json: bool) -> None:
    size = sum(shard.bytes for shard in index.shards)
    stored: list[dict[str, Any]] = index.to_dict()["tensors"]
    if as_json:
        print_json(
            {
                "folder": str(out),
                "checkpoints": {name: source.weights_sha256 for name, source in index.checkpoints.items()},
                "n_problems": index.n_problems,
                "chosen": index.chosen,
                "tensors": [
                    {key: one[key] for key in ("name", "axes", "shape", "positions", "dtype")} for one in stored
                ],
                "shards": len(index.shards),
                "bytes": size,
            }
        )
        return
    for one in stored:
        axes = ", ".join(f"{axis} {n:,}" for axis, n in zip(one["axes"], one["shape"], strict=True))
        say(f"{one['name']}  {one['dtype']}  [{axes}]")
    files = f"{len(index.shards)} file{'s' if len(index.shards) > 1 else ''} and index.json"
    say(f"{index.chosen}; {size / 1e6:,.1f} MB in {out} ({files})")
    note("read it with workbench.activations.read.read_export, or numpy alone: docs/activations.md")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("export")(export)
    app.command("export-join")(export_join)
