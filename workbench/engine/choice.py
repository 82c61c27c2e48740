"""Which engine computes a run's steps: the names, what each needs, and what `auto` means here."""

import importlib
from dataclasses import replace
from types import ModuleType

from workbench.errors import BadInput
from workbench.native import library
from workbench.recipe import RunConfig


def engine(name: str) -> ModuleType:
    """The engine of that name in a configuration (not `auto`).

    Each is a module with `loss(weights, tokens, architecture)` and `loss_and_residuals(weights, tokens, architecture)`.
    """
    return importlib.import_module(f"workbench.engine.{name}")


def unavailable(config: RunConfig) -> str:
    """Why the engine that a configuration names cannot run here; empty when it can."""
    if config.engine != "plain" and config.auxiliary is not None and not config.auxiliary.every_engine:
        return f"only the plain engine returns what the head reads, {config.auxiliary.head_site}"
    match config.engine:
        case "native" if config.device != "cpu":
            return f"the kernels run on cpu, not on {config.device}"
        case "native":
            return library.missing(config.architecture)
        case "compiled":
            from workbench.engine import compiled

            return compiled.unavailable(config.device)
        case _:
            return ""


def settled(config: RunConfig) -> tuple[RunConfig, str]:
    """The configuration with `auto` replaced by the fastest engine that runs here, and why it is not a faster one.

    The second is empty for the fastest of all and for an engine asked for by name. In order: the kernels,
    torch's compiler, the eager order, the plain one (which runs everywhere). Raises BadInput for a named engine that
    cannot run here.
    """
    if config.engine != "auto":
        if reason := unavailable(config):
            raise BadInput(f"engine {config.engine} cannot run here: {reason}; choose --engine auto, or another")
        return config, ""
    reasons = []
    for name in ("native", "compiled", "eager", "plain"):
        found = replace(config, engine=name)
        if not (reason := unavailable(found)):
            return found, f"engine {name}, not a faster one: {'; '.join(reasons)}" if reasons else ""
        reasons.append(reason)
    raise AssertionError("the plain engine runs everywhere")
