"""The contract every analysis follows, and how analyses are found.

An analysis is one question, one file, one function from (inputs, options) to a Result. The file's name is the
analysis's name: `analyses/learned/exact_probe.py` is `exact-probe`. Packages of analyses are found through the
entry-point group `workbench.analyses`; files whose name starts with `_` are not analyses. Results, in memory and on
disk, are of `workbench.result`.
"""

import dataclasses
import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from workbench.errors import BadInput
from workbench.result import Finding, Result, load, save

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

__all__ = ["Analysis", "Finding", "Result", "analysis", "get", "load", "names", "save"]

ENTRY_POINTS = "workbench.analyses"

Inputs = Literal["checkpoints", "folder", "nothing"]


@dataclass(frozen=True)
class Analysis:
    """A registered analysis: its name, its question in a sentence, its options and its function."""

    name: str
    question: str
    options: type
    function: "Callable[[list[Checkpoint], Any], Result]"
    inputs: Inputs
    within: str = ""


def analysis(
    *, question: str, options: type, inputs: Inputs = "checkpoints", within: str = ""
) -> Callable[[Callable[..., Result]], Analysis]:
    """Register the decorated function as the analysis of its file.

    `options` is a frozen dataclass whose fields carry `metadata["help"]` (see `workbench.recipe.knob`) and become
    flags. `inputs` says what the function takes first: loaded checkpoints, the folder they lie in (for runs that are
    not all finished, such as sweeps), or an empty list. `within` is the subfolder of a folder of checkpoints where that
    folder lies, or further checkpoints that `analyze all` gives it with the others. Raises TypeError for options or
    inputs of another kind.
    """
    frozen = isinstance(options, type) and getattr(options, "__dataclass_params__", None)
    if not (frozen and frozen.frozen):
        raise TypeError(f"options of an analysis must be a frozen dataclass, not {options!r}")
    for field in dataclasses.fields(options):
        if "help" not in field.metadata or field.default is dataclasses.MISSING:
            raise TypeError(f"option {field.name} needs a default and a help text; make it with workbench.recipe.knob")
    if inputs not in get_args(Inputs):
        raise TypeError(f"inputs of an analysis is {inputs!r}, expected one of {', '.join(get_args(Inputs))}")

    def wrap(function: Callable[..., Result]) -> Analysis:
        return Analysis(_name(function.__module__), question, options, function, inputs, within)

    return wrap


def _name(module: str) -> str:
    return module.rpartition(".")[2].replace("_", "-")


def _modules() -> dict[str, str]:
    """Module path of every analysis by name, without importing any; BadInput when two files claim one name."""
    found: dict[str, str] = {}
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        package = entry.load()
        if not hasattr(package, "__path__"):
            raise BadInput(
                f"entry point {entry.name} of {ENTRY_POINTS} is {entry.value}, expected a package of analyses"
            )
        for module in pkgutil.iter_modules(package.__path__):
            if module.ispkg or module.name.startswith("_"):
                continue
            path = f"{package.__name__}.{module.name}"
            name = _name(path)
            if found.setdefault(name, path) != path:
                raise BadInput(f"two analyses are named {name}: {found[name]} and {path}; rename one")
    return found


def names() -> list[str]:
    """Names of all analyses, without importing them."""
    return sorted(_modules())


def get(name: str) -> Analysis:
    """The analysis called `name`; BadInput lists the names there are."""
    modules = _modules()
    if name not in modules:
        raise BadInput(f"unknown analysis {name!r}; choose from {', '.join(sorted(modules))}")
    module = importlib.import_module(modules[name])
    there = [value for value in vars(module).values() if isinstance(value, Analysis)]
    found = [value for value in there if value.function.__module__ == module.__name__]  # not those it imports
    if len(found) != 1:
        raise BadInput(f"{modules[name]} defines {len(found)} analyses, expected exactly one")
    return found[0]
