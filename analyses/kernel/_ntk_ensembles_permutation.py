"""Trials of the published experiment: networks are added until a random permutation of k bits is right.

A trial draws a permutation and 1,000 test vectors with two ones, then networks one after another: trained ones, or
draws from the Gaussian law of infinitely wide ones. The same networks serve every threshold and error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from analyses._rows import Row
from workbench.ntk import kernel
from workbench.ntk.counting import MOST, Draw, Rounding, needed
from workbench.ntk.ensemble import LIMIT, Recipe, batch, train
from workbench.ntk.gaussian_law import Law, law

TESTS, ONES = 1000, 2  # test vectors of a trial, and ones in each (opallab/permlearn, experiment.py)
ZERO, MIDPOINT = "zero", "midpoint"
LAW, TRAINED = "law", "trained"
FORMS: tuple[kernel.Form, ...] = ("nngp", "ntk")


@dataclass(frozen=True)
class Task:
    """A permutation of k bits: bit i moves to `order[i]`; every pair of ones is an input, normalised."""

    order: Int[Tensor, " k"]

    @property
    def k(self) -> int:
        """Bits."""
        return len(self.order)

    @property
    def labels(self) -> Float64[Tensor, "k k"]:
        """What the network should answer to each unit vector."""
        return torch.eye(self.k, dtype=torch.float64)[self.order]

    @property
    def ones(self) -> Float64[Tensor, "pair k"]:
        """Every vector with two ones, in the order of the pairs."""
        places = torch.triu_indices(self.k, self.k, 1).T
        return torch.zeros(len(places), self.k, dtype=torch.float64).scatter_(1, places, 1.0)

    @property
    def inputs(self) -> Float64[Tensor, "pair k"]:
        """The same, of length 1."""
        return self.ones / ONES**0.5

    @property
    def wanted(self) -> Bool[Tensor, "pair k"]:
        """The permuted vectors."""
        return self.ones @ self.labels > 0

    def roundings(self, form: kernel.Form) -> dict[str, Rounding]:
        """Thresholds zero and midpoint; every bit is written by one template, so all are read."""
        wanted = self.wanted
        middle = kernel.midpoint(torch.tensor(ONES), torch.ones(self.k), self.k, form).expand(wanted.shape)
        everything = torch.ones_like(wanted)
        return {
            ZERO: Rounding(wanted, torch.zeros_like(middle), everything),
            MIDPOINT: Rounding(wanted, middle, everything),
        }


def generator(*key: int) -> torch.Generator:
    """A stream of its own for every key."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence(key).generate_state(1)[0]))


def drawn(k: int, stream: torch.Generator) -> tuple[Task, Int[Tensor, " pair"]]:
    """A random permutation, and how often each pair is among the test vectors."""
    task = Task(torch.randperm(k, generator=stream))
    pairs = k * (k - 1) // 2
    return task, torch.bincount(torch.randint(pairs, (TESTS,), generator=stream), minlength=pairs)


def permutation_law(k: int, form: kernel.Form) -> Law:
    """The Gaussian law of networks trained on the identity, on every pair; other permutations reorder its bits."""
    task = Task(torch.arange(k))
    return law(task.inputs, task.labels, form)


def rows(k: int, form: kernel.Form, kind: str, trial: int, found: dict[tuple[str, float], int | None]) -> list[Row]:
    """One row a threshold and error; where the most networks were not enough, that many and `reached` false."""
    return [
        {"k": k, "form": form, "kind": kind, "threshold": threshold, "error": error, "trial": trial,
         "networks": MOST if networks is None else networks, "reached": networks is not None}
        for (threshold, error), networks in found.items()
    ]  # fmt: skip


def law_trials(k: int, form: kernel.Form, errors: Sequence[float], trials: int, seed: int) -> list[Row]:
    """Trials with networks drawn from the law."""
    task, found = Task(torch.arange(k)), []
    whole = permutation_law(k, form)
    for trial in range(trials):
        stream = generator(seed, 0, FORMS.index(form), k, trial)
        tests = drawn(k, stream)[1]
        counts = needed(whole.draws(stream), task.roundings(form), tests, errors)
        found += rows(k, form, LAW, trial, counts)
    return found


def trained(recipe: Recipe, task: Task, stream: torch.Generator) -> Draw:
    """Outputs of so many trained networks at a time."""
    return lambda nets: train(recipe, task.labels, nets, stream).outputs(task.inputs)


def trained_trials(k: int, recipe: Recipe, errors: Sequence[float], trials: int, seed: int) -> list[Row]:
    """Trials with trained networks."""
    form, found = LIMIT[recipe.form], []
    for trial in range(trials):
        stream = generator(seed, 1, FORMS.index(form), k, trial)
        task, tests = drawn(k, stream)
        draw = trained(recipe, task, stream)
        counts = needed(draw, task.roundings(form), tests, errors, batch=batch(recipe, k))
        found += rows(k, form, TRAINED, trial, counts)
    return found
