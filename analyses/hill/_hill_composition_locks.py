"""When the weights of a trained circuit lock, in which order, and whether locks hold."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from analyses._rows import Row
from analyses.hill._hill_composition_runs import EVERY, Trained, fixed_units

HELD = 300  # steps at a saturated value that count as a lock
LEFT = 0.1  # and how far a weight must then be from it to count as having left


def lock_steps(trained: Trained) -> Float[Tensor, "unit 2 arm seed"]:
    """The step from which a weight snaps to the -1, 0 or 1 that it ends at, and to nothing else; NaN without one."""
    snapped, end = trained.snapped, trained.snapped[-1]
    there = (snapped == end) & (end == end.round())  # [record, unit, 2, arm, seed]
    settled = there.flip(0).cumprod(dim=0).sum(dim=0)  # records there, counted from the end
    first = (len(snapped) - settled).clamp(max=len(snapped) - 1)
    return torch.where(there[-1], trained.step[first].double(), torch.nan)


def leaves(trained: Trained) -> Bool[Tensor, "unit 2 arm seed"]:
    """Whether a weight snapped to one of -1, 0 or 1 for 300 steps and was later more than 0.1 away from it."""
    window = HELD // EVERY
    found = torch.zeros(trained.path.shape[1:], dtype=torch.bool)
    for value in (-1.0, 0.0, 1.0):
        count = (trained.snapped == value).double().cumsum(dim=0)
        count = torch.cat([torch.zeros_like(count[:1]), count])
        held = (count[window:] - count[:-window]) == window  # [record: of the window's end]
        away = (trained.path[window - 1 :] - value).abs() > LEFT
        found |= (held.cummax(dim=0).values & away).any(dim=0)
    return found


def rows(trained: Trained) -> list[Row]:
    """A row a lane: the step at which each unit has locked whole, which came last, and whether a lock broke.

    All times are over that of the last lock, and NaN where a weight that is trained does not lock: `spread` lies
    between the first and the last weight's lock, `gap` between the first and the last unit's, `inner_gap` is the
    longest time between the two weights of a unit.
    """
    steps, left = lock_steps(trained), leaves(trained)
    found = []
    for place, arm in enumerate(trained.arms):
        free = [unit for unit, fixed in enumerate(fixed_units(arm, len(steps))) if not fixed]
        for number, seed in enumerate(trained.seeds):
            mine = steps[free, :, place, number]
            whole = mine.amax(dim=1)  # NaN when a weight is
            last = max(float(whole.max()), 1.0)
            row: Row = {"circuit": trained.task.name, "arm": arm.name, "seed": seed}
            row |= {f"lock_{unit + 1}": math.nan for unit in range(len(steps))}
            row |= {f"lock_{unit + 1}": float(step) for unit, step in zip(free, whole, strict=True)}
            row |= {"units_trained": len(free), "all_trained": len(free) == len(steps)}
            row["left_a_lock"] = bool(left[free, :, place, number].any())
            row["spread"] = float(mine.max() - mine.min()) / last
            row["gap"] = float(whole.max() - whole.min()) / last
            row["inner_gap"] = float((mine[:, 0] - mine[:, 1]).abs().max()) / last
            row["last_unit"] = free[int(whole.argmax())] + 1 if row["gap"] > 0 else 0
            found.append(row)
    return found
