"""`workbench analyze all`: every analysis on what the given folders hold, one after another."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workbench.analysis import Analysis
from workbench.cli.models import load_given
from workbench.cli.output import note, print_json, print_table, progress
from workbench.errors import BadInput, RunFailed


@dataclass(frozen=True)
class Ended:
    """How one analysis ended: done, there already, left out or failed, and why."""

    analysis: str
    state: str
    message: str


def run_all(paths: Sequence[Path], out: Path, as_json: bool) -> None:
    """Every analysis with its default options, each into OUT/NAME.

    What is there already, of the same options and inputs, is skipped, so the same command continues. A failure is
    one line and stops no other; raises RunFailed at the end when there was one.
    """
    from workbench import analysis

    names = analysis.names()
    ended = []
    with progress("analyses", len(names)) as update:
        for number, name in enumerate(names):
            update(number, name)
            found = _run(analysis.get(name), paths, out)
            ended.append(found)
            note(f"[{number + 1}/{len(names)}] {name}: " + ": ".join(filter(None, (found.state, found.message))))
        update(len(names), "")
    if as_json:
        print_json({"folder": str(out), "analyses": [asdict(one) for one in ended]})
    else:
        print_table(f"results in {out}", ("analysis", "ended", "why"), [tuple(asdict(one).values()) for one in ended])
    if failed := [one.analysis for one in ended if one.state == "failed"]:
        raise RunFailed(f"{len(failed)} of {len(names)} analyses failed: {', '.join(failed)}")


def _run(one: Analysis, paths: Sequence[Path], out: Path) -> Ended:
    """One analysis; whatever goes wrong in it is said in a line."""
    from workbench import analysis

    options, folder = one.options(), out / one.name
    try:
        inputs, names = inputs_of(one, paths)
        if inputs is None:
            return Ended(one.name, "left out", f"no {one.within} in the folders given")
        if _is_there(folder, options, names):
            return Ended(one.name, "there already", "")
        analysis.save(one.function(inputs, options), folder, analysis_name=one.name, options=options, inputs=names)
    except BadInput as error:
        return Ended(one.name, "failed", str(error))
    except Exception as error:  # a fault of one analysis must not take the others with it
        return Ended(one.name, "failed", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    return Ended(one.name, "done", "")


def inputs_of(one: Analysis, paths: Sequence[Path]) -> tuple[Any, list[str]]:
    """What the analysis takes from these folders, and the names of it; None for a folder of runs that is not there."""
    if one.inputs == "nothing":
        one_thread()
        return [], []
    more = [path / one.within for path in paths if one.within and (path / one.within).is_dir()]
    if one.inputs == "folder":
        return (more[0], [more[0].name]) if more else (None, [])
    loaded = load_given([*paths, *more])
    return loaded, [named(checkpoint) for checkpoint in loaded]


def one_thread() -> None:
    """For analyses of exact units and machines: their tensors are small, so that threads would wait for each other."""
    import torch

    torch.set_num_threads(1)


def named(checkpoint: Any) -> str:
    """A checkpoint's name and weights, as a result records them."""
    return f"{checkpoint.name} sha256:{checkpoint.weights_sha256}"


def _is_there(folder: Path, options: Any, names: list[str]) -> bool:
    """Whether the folder holds a whole result of the same options and inputs."""
    from workbench import analysis
    from workbench.files import read_json

    index = folder / "result.json"
    if not index.is_file():
        return False
    try:
        stored = read_json(index)
        analysis.load(folder)
    except BadInput:
        return False
    return stored.get("options") == asdict(options) and stored.get("inputs") == names
