"""`workbench evaluate --exhaustive`: exact accuracy over every problem there is."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from workbench.cli.output import note, print_json, print_table, progress
from workbench.errors import BadInput

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint
    from workbench.exhaustive.result import Exhaustive

FOLDER = "exhaustive"  # beside the checkpoints
COLUMNS = ("model", "group", "problems", "wrong", "sequence accuracy", "d4", "d3", "d2", "d1", "d0")


def place_for(path: Path) -> Path:
    """Where counts of a checkpoint, or of a folder of checkpoints, are kept unless --out says otherwise."""
    return (path.parent if (path / "config.json").exists() else path) / FOLDER


def exhaustive(
    path: Path, loaded: "list[Checkpoint]", *, out: Path | None, jobs: int | None, by: str, as_json: bool
) -> None:
    """Count every problem for each checkpoint, or read what was counted before, and print it by group."""
    folder = out or place_for(path)
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: a file is in the way; choose another --out")
    rows: list[dict[str, Any]] = []
    for one in loaded:
        found = _count(one, folder / one.name, jobs or os.cpu_count() or 1)
        rows += [{"model": one.name, **row} for row in group_rows(found, by)]
        if not as_json:
            kept = f"; its wrong problems are in {found.folder / 'wrong.parquet'}" if found.listed else ""
            note(f"{one.name}: {found.wrong:,} of {found.n:,} wrong; float64 decided {sum(found.near):,} digits{kept}")
    if as_json:
        print_json(rows)
        return
    print_table("every problem counted: exact, so without intervals", COLUMNS, [_cells(row) for row in rows])


def _count(one: "Checkpoint", folder: Path, jobs: int) -> "Exhaustive":
    import torch

    from workbench.checkpoint import partial_folder
    from workbench.exhaustive import run

    total = len(run.blocks_of(one.config.problems)) * run.BLOCK
    torch.set_num_threads(1)  # the blocks run side by side
    try:
        with progress(one.name, total) as update:
            return run.count(one, folder, jobs=jobs, on_block=lambda done: update(done, "problems"))
    except KeyboardInterrupt:
        note(f"interrupted; what was counted is kept in {partial_folder(folder)}, and the same command continues it")
        raise typer.Exit(130) from None


def group_rows(found: "Exhaustive", by: str) -> list[dict[str, Any]]:
    """Counts of all problems and of each category under a grouping, as plain values."""
    from workbench.exhaustive.tally import COUNTED, lines

    rows = []
    for line in [*lines(found.counts, "all"), *lines(found.counts, by)]:
        counts = dict(zip(COUNTED, line.counts, strict=True))
        accuracy = {"seq_acc": line["right"] / line["n"], "wrong": line.wrong}
        rows.append({"group": line.category, **counts, **accuracy, "near": sum(found.near), "by": found.by})
    return rows


def _cells(row: dict[str, Any]) -> list[str]:
    digits = [f"{row[place] / row['n']:.6f}" for place in ("d4", "d3", "d2", "d1", "d0")]
    return [row["model"], row["group"], f"{row['n']:,}", f"{row['wrong']:,}", f"{row['seq_acc']:.8f}", *digits]
