"""Fixtures that several test files share."""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from workbench import checkpoint
from workbench.engine import compiled
from workbench.initialise import initial_weights
from workbench.native import library
from workbench.recipe import RunConfig
from workbench.scores import Score

WriteRun = Callable[..., Path]


@pytest.fixture(autouse=bool(library.missing()))
def nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the kernels, `auto` is the eager engine in tests: torch cannot compile code with its type checks in."""
    monkeypatch.setattr(compiled, "unavailable", lambda device: "no compiling in tests")


@pytest.fixture
def write_run() -> WriteRun:
    """Write a run's folder without training it: `write_run(folder, config, {step: validation loss}, stopped=None)`.

    Its weights are the initial ones. With `stopped` it is a diverged run, left in `folder.partial`.
    """

    def write(folder: Path, config: RunConfig, losses: Mapping[int, float], stopped: str | None = None) -> Path:
        if config.engine == "auto":  # which no run on disk says
            config = dataclasses.replace(config, engine="plain")
        best = min(losses, key=lambda step: losses[step], default=None)
        rows = [{"step": step, "kept": step == best, "loss": loss} for step, loss in losses.items()]
        selection = {"rule": "lowest validation loss", "kept_step": best} | ({"stopped": stopped} if stopped else {})
        score = dataclasses.asdict(Score(10, losses[best] if best is not None else 0.0, 20, 3, 0))
        history = {"results": {"validation": {"all": score}}, "selection": selection, "validations": rows}
        arrays = initial_weights(config.architecture, config.recipe.init, config.seed)
        raw = checkpoint.weight_bytes({name: w.numpy() for name, w in arrays.items()})
        sha256 = None if stopped else hashlib.sha256(raw).hexdigest()
        target = checkpoint.partial_folder(folder) if stopped else folder
        target.mkdir(parents=True)
        (target / checkpoint.CONFIG).write_bytes(checkpoint.config_bytes(config, {"torch": "0"}, sha256))
        (target / checkpoint.HISTORY).write_bytes(checkpoint.history_bytes(history))
        if not stopped:
            (target / checkpoint.WEIGHTS).write_bytes(raw)
        return target

    return write
