"""`workbench analyses` and `workbench analyze NAME`: questions asked of checkpoints."""

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.analysis import Analysis, Result
from workbench.cli import analyze_all
from workbench.cli.flags import build, with_flags
from workbench.cli.models import load_given
from workbench.cli.output import note, print_json, print_table, say
from workbench.errors import BadInput

Paths = Annotated[list[Path] | None, typer.Argument(help="Checkpoints, or folders that hold them.", show_default=False)]
Out = Annotated[
    Path | None, typer.Option(help="Folder for result.json, tables and figures; results/NAME if not given.")
]
Root = Annotated[Path, typer.Option(help="Folder that gets a folder of results for each analysis.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")]


def analyses(as_json: AsJson = False) -> None:
    """List every analysis with the question it answers."""
    from workbench import analysis

    found = [analysis.get(name) for name in analysis.names()]
    if as_json:
        print_json([{"name": a.name, "question": a.question, "inputs": a.inputs} for a in found])
        return
    for one in found:
        say(f"{one.name:16} {one.question}")


def _load(one: Analysis, paths: list[Path]) -> tuple[Any, list[str]]:
    """What the analysis takes first, and the names of it."""
    if one.inputs == "nothing":
        if paths:
            raise BadInput(f"{one.name} takes no checkpoints; leave the path out")
        analyze_all.one_thread()
        return [], []
    if not paths:
        kind = "checkpoints or folders that hold them" if one.inputs == "checkpoints" else "a folder of runs"
        raise BadInput(f"{one.name} needs {kind}: workbench analyze {one.name} PATH")
    if one.inputs == "folder":
        if len(paths) != 1:
            raise BadInput(f"{one.name} takes one folder, {len(paths)} were given")
        return paths[0], [paths[0].name]
    loaded = load_given(paths)
    return loaded, [analyze_all.named(one) for one in loaded]


def _show(result: Result, files: list[Path], as_json: bool) -> None:
    import dataclasses

    if as_json:
        findings = [dataclasses.asdict(finding) for finding in result.findings]
        print_json({"findings": findings, "files": [str(file) for file in files]})
        return
    if (summary := result.tables.get("summary")) is not None:
        cells = [[_cell(value) for value in row] for row in summary.itertuples(index=False)]
        print_table("summary", list(summary.columns), cells)
    rows = []
    for finding in result.findings:
        interval = f"{finding.low:.4g} to {finding.high:.4g}" if finding.low is not None else ""
        against = f"{finding.control}: {finding.control_value:.4g}" if finding.control_value is not None else ""
        rows.append((f"{finding.value:.4g}", interval, finding.n or "", against, finding.text))
    for value, interval, n, against, text in rows:
        say(f"{value:>9}  {interval:<22} n={n!s:<10} {against}")
        say(f"           {text}")
    for file in files:
        note(f"wrote {file}")


def _cell(value: Any) -> str:
    """A value of a table as shown; what there is no number for is left empty."""
    if isinstance(value, float):
        return "" if value != value else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _refuse_other_results(folder: Path, name: str) -> None:
    """Raise BadInput, before the work, when `folder` holds anything but an earlier result of this analysis."""
    from workbench.files import read_json

    if not folder.is_dir() or not any(folder.iterdir()):
        return
    index = folder / "result.json"
    if not index.is_file() or read_json(index).get("analysis") != name:
        raise BadInput(f"{folder}: holds other files than a result of {name}; choose another --out")


def _command(one: Analysis) -> Any:
    """The command of one analysis, with flags made from its options."""

    def analyze_one(paths: Paths = None, out: Out = None, as_json: AsJson = False, **flags: Any) -> None:
        from workbench import analysis

        folder = out or Path("results") / one.name
        _refuse_other_results(folder, one.name)
        options = build(one.options, flags)
        inputs, names = _load(one, paths or [])
        result = one.function(inputs, options)
        _show(result, analysis.save(result, folder, analysis_name=one.name, options=options, inputs=names), as_json)

    analyze_one.__doc__ = one.question
    return with_flags(analyze_one, one.options)


def everything(paths: Paths = None, out: Root = Path("results"), as_json: AsJson = False) -> None:
    """Run every analysis on folders of checkpoints: workbench analyze all checkpoints --out results.

    Each with its default options, into a folder of its own. What is there already is skipped, so the same command
    continues; a failure stops no other.
    """
    if not paths:
        raise BadInput("analyze all needs a folder of checkpoints: workbench analyze all checkpoints")
    analyze_all.run_all(paths, out, as_json)


def add_to(app: typer.Typer, words: list[str]) -> None:
    """Register the commands; an analysis is imported only when the command line names it, or asks for all."""
    app.command("analyses")(analyses)
    group = typer.Typer(help="Run one analysis: workbench analyze NAME [PATH...] --out DIR.", no_args_is_help=True)
    app.add_typer(group, name="analyze")
    if words[:1] != ["analyze"]:
        group.callback()(lambda: None)
        return
    from workbench import analysis

    named = next((word for word in words[1:] if not word.startswith("-")), None)
    if named in (None, "all"):
        group.command("all")(everything)
    if named != "all":
        for name in [named] if named else analysis.names():
            group.command(name)(_command(analysis.get(name)))
    group.callback()(lambda: None)
