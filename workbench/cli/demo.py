"""`workbench demo`: the main job in small, each step the command a user would type."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.output import say
from workbench.errors import BadInput

DEMO_STEPS = 300
PROBED = "arithmetic-relu-2layer-seed0"


def _commands(checkpoints: Path, out: Path) -> dict[str, list[str]]:
    """Every step by its headline."""
    probed = str(checkpoints / PROBED)
    short = f"--mlp relu --n-layers 1 --steps {DEMO_STEPS} --warmup-steps 50 --validation-every 100 --name short-run"
    fresh = ["--fresh", "20000", "--out"]
    hooks = "--hooks blocks.*.hook_resid_post --problems 20000 --positions 10-14"
    return {
        "The twelve checkpoints": ["list", str(checkpoints)],
        "The twelve beside the published twelve": ["analyze", "twelve", str(checkpoints), *fresh, str(out / "twelve")],
        "Every problem counted": ["analyze", "exhaustive", str(checkpoints / "exhaustive"), "--out", str(out / "all")],
        f"Training one small decoder for {DEMO_STEPS} steps": ["train", *short.split(), "--out", str(out)],
        "Asking a trained decoder one problem": ["solve", probed, "1234-5678"],
        "The exact probe on a 2-layer decoder": ["analyze", "exact-probe", probed, "--out", str(out / "exact-probe")],
        "Exporting activations": ["export", probed, *hooks.split(), "--out", str(out / "activations")],
    }


def _findings(result: Path) -> list[str]:
    findings: list[dict[str, Any]] = json.loads(result.read_text())["findings"]
    lines = []
    for finding in findings:
        interval = f" ({finding['low']:.4f} to {finding['high']:.4f})" if finding["low"] is not None else ""
        lines.append(f"  {finding['value']:.4f}{interval}  {finding['text']}")
    return lines


def demo(
    out: Annotated[Path, typer.Option(help="A new folder for everything the demo writes.")] = Path("demo-output"),
    checkpoints: Annotated[Path, typer.Option(help="Folder of the twelve.")] = Path("checkpoints"),
) -> None:
    """Show the twelve beside the published twelve, train a little, probe, export; ends with numbers and files."""
    from workbench.cli import run

    if out.exists():
        raise BadInput(f"{out}: exists already; choose another --out, or remove the folder")
    for headline, words in _commands(checkpoints, out).items():
        say(f"\n== {headline}\n$ workbench {' '.join(words)}")
        if code := run(words):  # it has said why
            raise typer.Exit(code)
    say("\n== Numbers (value, 95% interval)")
    for result in sorted(out.glob("*/result.json")):
        say(f"{result.parent.name}:")
        for line in _findings(result):
            say(line)
    say("\n== Files")
    for file in sorted(path for path in out.rglob("*") if path.is_file()):
        say(f"  {file}  {file.stat().st_size:,} bytes")


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("demo")(demo)
