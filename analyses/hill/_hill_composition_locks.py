"""When the weights of a trained circuit lock, in which order, and whether locks hold."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses.hill._hill_composition_runs import EVERY, Trained, fixed_units
from analyses.hill._rows import Row
from workbench.hill.constraint import SNAP

HELD = 300  # steps at a saturated value that count as a lock
LEFT = 0.1  # and how far a weight must go from it to count as having left


def lock_steps(trained: Trained) -> Float[Tensor, "unit 2 arm seed"]:
    """The step from which a weight stays within the snapping threshold of the -1, 0 or 1 that it ends at, else NaN."""
    path = trained.path
    end = path[-1].round()
    inside = (path - end).abs() < SNAP  # [record, unit, 2, arm, seed]
    settled = inside.flip(0).cumprod(dim=0).sum(dim=0)  # records inside, counted from the end
    first = (len(path) - settled).clamp(max=len(path) - 1)
    return torch.where(inside[-1], trained.step[first].double(), torch.nan)


def leaves(trained: Trained) -> Bool[Tensor, "unit 2 arm seed"]:
    """Whether a weight stayed within the threshold of one of -1, 0 or 1 for 300 steps and later went 0.1 away."""
    path, window = trained.path, HELD // EVERY
    found = torch.zeros(path.shape[1:], dtype=torch.bool)
    for value in (-1.0, 0.0, 1.0):
        off = (path - value).abs()
        inside = (off < SNAP).double()
        count = torch.cat([torch.zeros_like(inside[:1]), inside.cumsum(dim=0)])
        held = (count[window:] - count[:-window]) == window  # [record: of the window's end]
        ever = held.cummax(dim=0).values
        found |= (ever & (off[window - 1 :] > LEFT)).any(dim=0)
    return found


def rows(trained: Trained) -> list[Row]:
    """A row a lane: the step at which each trained unit has locked whole, which came last, and whether a lock broke.

    `gap` is the time between the first and the last unit's lock, over the last; `inner_gap` the longest such gap
    between the two weights of a unit, over the same. NaN where a unit does not lock, or only one is trained.
    """
    steps, left = lock_steps(trained), leaves(trained)
    found = []
    for place, arm in enumerate(trained.arms):
        free = [unit for unit, fixed in enumerate(fixed_units(arm, len(steps))) if not fixed]
        for number, seed in enumerate(trained.seeds):
            mine = steps[:, :, place, number]
            whole = mine.amax(dim=1)[free]  # NaN when a weight is
            row: Row = {"circuit": trained.task.name, "arm": arm.name, "seed": seed}
            row |= {f"lock_{unit + 1}": float(mine[unit].amax()) for unit in range(len(mine))}
            row["all_trained"] = len(free) == len(mine)
            row["left_a_lock"] = bool(left[:, :, place, number][free].any())
            apart = bool(whole.isfinite().all()) and len(free) > 1
            last = max(float(whole.max()), 1.0) if apart else float("nan")
            row["gap"] = float(whole.max() - whole.min()) / last if apart else float("nan")
            inner = (mine[free, 0] - mine[free, 1]).abs().max()
            row["inner_gap"] = float(inner) / last if apart else float("nan")
            row["last_unit"] = free[int(whole.argmax())] + 1 if apart and row["gap"] > 0 else 0
            found.append(row)
    return found
