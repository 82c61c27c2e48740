"""The two short sweeps the recipe rests on, as lists of runs, each with its rule written before it was run.

Learning rate (the recipe the model cards describe: "a six-point probe run on both MLP variants ... the highest rate at
which both remain stable"): six rates x both MLP kinds, two layers, seed 100, 600 steps with the warm-up and cosine of
that length. Stable: the run does not diverge (no non-finite loss), and no validation loss after the warm-up is above
1.5 times the lowest before it. Picked: the highest rate at which both kinds are stable.

Initialisation (left open by the cards): four named choices x both MLP kinds, two layers, seed 100, 1,200 steps.
Picked: the choice with the lowest mean over the two kinds of the best validation loss; a diverged run counts as
infinite; a tie goes to the choice named first.
"""

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from workbench import checkpoint
from workbench.errors import BadInput
from workbench.files import read_json
from workbench.recipe import Architecture, Init, Mlp, Recipe, RunConfig

SWEEP_SEED = 100
RATES = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08)
RATE_STEPS = 600
INIT_STEPS = 1200
SPIKE = 1.5


def learning_rate_sweep(steps: int = RATE_STEPS) -> dict[str, RunConfig]:
    """Twelve short runs by folder name."""
    warmup, every = min(200, steps // 3), min(50, max(1, steps // 12))
    return {
        f"lr-{rate:g}-{mlp}": RunConfig(
            Architecture(mlp=mlp),
            Recipe(lr=rate, steps=steps, warmup_steps=warmup, validation_every=every),
            seed=SWEEP_SEED,
        )
        for rate in RATES
        for mlp in get_args(Mlp)
    }


def init_sweep(steps: int = INIT_STEPS) -> dict[str, RunConfig]:
    """Eight short runs by folder name."""
    warmup = min(200, steps // 3)
    return {
        f"init-{init}-{mlp}": RunConfig(
            Architecture(mlp=mlp), Recipe(init=init, steps=steps, warmup_steps=warmup), seed=SWEEP_SEED
        )
        for init in get_args(Init)
        for mlp in get_args(Mlp)
    }


def mean_losses(best_losses: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Of each initialisation, the mean over the MLP kinds of the best validation loss."""
    return {init: statistics.fmean(best_losses[init, mlp] for mlp in get_args(Mlp)) for init in get_args(Init)}


def picked_init(best_losses: Mapping[tuple[str, str], float]) -> str:
    """The initialisation the rule picks from the best validation loss of each (initialisation, MLP kind)."""
    means = mean_losses(best_losses)
    return min(means, key=means.__getitem__)


@dataclass(frozen=True)
class Course:
    """How one run of a sweep went, from its history: the validation losses, and why it stopped early if it did."""

    config: RunConfig
    steps: tuple[int, ...]
    losses: tuple[float, ...]
    stopped: str | None = None

    @property
    def lowest(self) -> float:
        """Lowest validation loss (nats a digit) there was, before it stopped if it did; infinite without any."""
        return min(self.losses, default=math.inf)

    @property
    def best(self) -> float:
        """Lowest validation loss as the rules count it: infinite for a run that diverged."""
        return math.inf if self.stopped else self.lowest

    @property
    def rises(self) -> list[tuple[int, float]]:
        """(step, loss over the lowest validation loss before it) of each validation after the warm-up's last step."""
        found, lowest = [], math.inf
        for step, loss in zip(self.steps, self.losses, strict=True):
            if step > self.config.recipe.warmup_steps and math.isfinite(lowest):
                found.append((step, loss / lowest))
            lowest = min(lowest, loss)
        return found

    @property
    def largest_rise(self) -> tuple[int, float] | None:
        """The validation that stands highest over what came before it, the earliest on a tie."""
        return max(self.rises, key=lambda rise: rise[1], default=None)

    @property
    def stable(self) -> bool:
        """The learning-rate sweep's criterion: it did not diverge, and no rise is above SPIKE."""
        return self.stopped is None and all(rise <= SPIKE for _, rise in self.rises)

    @property
    def why(self) -> str:
        """What decides `stable`, in words."""
        if self.stopped is not None:
            return self.stopped
        if self.largest_rise is None:
            return "too short: no two validations to compare"
        step, rise = self.largest_rise
        compared = "above" if rise > SPIKE else "within"
        return f"largest rise x{rise:.3f} at step {step}, {compared} x{SPIKE:g}"


def picked_rate(stable: Mapping[tuple[float, str], bool]) -> float | None:
    """The learning rate the rule picks: the highest at which every MLP kind is stable, None when there is none."""
    return max((rate for rate in RATES if all(stable[rate, mlp] for mlp in get_args(Mlp))), default=None)


def read_course(folder: Path) -> Course | None:
    """The course of the run in `folder`, finished or diverged; None when it is neither. BadInput when damaged."""
    partial = checkpoint.partial_folder(folder)
    if (folder / checkpoint.CONFIG).is_file():
        one = checkpoint.read(folder)
        return _course(one.config, one.history, folder / checkpoint.HISTORY)
    if (partial / checkpoint.CONFIG).is_file() and (partial / checkpoint.HISTORY).is_file():
        config, _, _ = checkpoint.read_config(partial)
        return _course(config, read_json(partial / checkpoint.HISTORY), partial / checkpoint.HISTORY)
    return None


def _course(config: RunConfig, history: dict[str, Any], path: Path) -> Course:
    try:
        rows = [(int(row["step"]), float(row["loss"])) for row in history["validations"]]
        stopped = history["selection"].get("stopped")
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadInput(f"{path}: no validations or selection in it; remove the run and sweep again") from None
    steps, losses = tuple(step for step, _ in rows), tuple(loss for _, loss in rows)
    if not all(0 < loss < math.inf for loss in losses) or list(steps) != sorted(set(steps)):
        raise BadInput(f"{path}: validations out of order or with a loss that is not positive; sweep again")
    if not (rows or stopped) or not isinstance(stopped, str | None):
        raise BadInput(f"{path}: no validation in it, and nothing that says why; remove the run and sweep again")
    return Course(config, steps, losses, stopped)


def read_sweep(folder: Path, sweep: Callable[[int], dict[str, RunConfig]], command: str) -> dict[str, Course]:
    """The course of every run of `learning_rate_sweep` or `init_sweep` in a folder, by name, whatever its length.

    Raises BadInput, naming the `command` to run, when a run is missing, unfinished or not the one its name says.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; run the sweep first: workbench {command} --out {folder}")
    names = list(sweep(INIT_STEPS))
    found = {name: read_course(folder / name) for name in names}
    courses = {name: course for name, course in found.items() if course is not None}
    if missing := [name for name in names if name not in courses]:
        raise BadInput(
            f"{folder}: {len(missing)} of {len(names)} runs of the sweep are not there or not finished, the first is "
            f"{missing[0]}; run or continue it: workbench {command} --out {folder}"
        )
    lengths = sorted({course.config.recipe.steps for course in courses.values()})
    if len(lengths) > 1:
        raise BadInput(f"{folder}: runs of {lengths[0]} and of {lengths[-1]} steps; sweep again into another folder")
    for name, config in sweep(lengths[0]).items():
        if not config.accepts(courses[name].config):
            raise BadInput(f"{folder / name}: not the run of {command} that its name says; sweep again elsewhere")
    return courses
