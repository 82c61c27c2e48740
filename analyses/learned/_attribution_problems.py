"""The problems of `attribution`: a uniform sample, and so many of every class, since the long chains are rare."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from analyses.learned._conditions import groups_of
from workbench.probe import resamples
from workbench.recipe import Variant
from workbench.sample import sample
from workbench.structure import categories, category_names
from workbench.task import Problems

POOL = 1_000_000  # drawn to find the rare classes in: the rarest, 1 in 4,500, is met about 220 times

Masks = dict[tuple[str, str], Bool[np.ndarray, " problem"]]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Problems, the groupings and categories they stand for, and for each problem another one of its category.

    `counts` are bootstrap resamples of the uniform sample's categories.
    """

    problems: Problems
    masks: Masks
    other: Int64[Tensor, " problem"]
    counts: dict[tuple[str, str], Float[Tensor, "replicate _"]]


def another(groups: list[Bool[np.ndarray, " problem"]], n: int) -> Int64[Tensor, " problem"]:
    """For each of n problems the next one of its group, the first for the last; a group of one keeps its own."""
    order = torch.arange(n)
    for chosen in groups:
        members = torch.from_numpy(chosen).nonzero()[:, 0]
        order[members] = members.roll(1)
    return order


def draw(count: int, each: int, seed: int, variant: Variant) -> Drawn:
    """`count` problems uniform over the variant, then up to `each` of every class, all by seed.

    `all` and the categories by operator and sign are of the uniform sample alone, so their means are the variant's.
    """
    uniform, pool = sample(count, seed, variant), sample(POOL, seed + 1, variant)
    found = categories(pool, "class")
    members = {name: np.flatnonzero(found == name)[:each] for name in category_names("class")}
    members = {name: places for name, places in members.items() if len(places)}
    rest = pool[np.concatenate(list(members.values()))]
    a, b, subtract = (np.concatenate([getattr(uniform, name), getattr(rest, name)]) for name in ("a", "b", "subtract"))
    n = len(a)
    inside = np.arange(n) < count
    masks: Masks = {("all", "all"): inside}
    for name, chosen in groups_of(uniform).items():
        masks["operator and sign", name] = np.concatenate([chosen, np.zeros(n - count, bool)])
    start = count
    for name, places in members.items():
        masks["class", name] = (np.arange(n) >= start) & (np.arange(n) < start + len(places))
        start += len(places)
    apart = [mask for (grouping, _), mask in masks.items() if grouping != "all"]
    counts = {key: resamples(int(mask.sum()), seed) for key, mask in masks.items() if key[0] != "class"}
    return Drawn(Problems(a, b, subtract), masks, another(apart, n), counts)
