"""How many networks addition and multiplication need to be exact: every decision of every state that any input meets.

Networks of one ensemble decide a state the same way whichever input leads to it, so decisions are counted over
distinct states. A bit that no template writes has mean 0, so threshold zero leaves it to chance in every state with
m >= 2; it is not read there (`read`). A state with m = 1 is a training vector: outputs there are labels, 0 or 1, and a
label 0 is exactly at threshold zero, where a trained network's remaining error would decide; those are not read either.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Float64, Int, UInt8
from torch import Tensor

from analyses._rows import Row
from analyses.kernel._ntk_ensembles_permutation import MIDPOINT, ZERO, generator
from workbench.ntk import decisions, kernel
from workbench.ntk.arithmetic import Algorithm, addition, multiplication
from workbench.ntk.counting import Draw, Rounding, needed
from workbench.ntk.ensemble import Recipe, batch, plain, train
from workbench.ntk.gaussian_law import law
from workbench.ntk.machine import Machine

Operation = Literal["add", "multiply"]

BUILD: dict[Operation, Callable[[int], Algorithm]] = {"add": addition, "multiply": multiplication}
THRESHOLDS: tuple[decisions.Threshold, ...] = ("zero", "midpoint")
FAILURE = 0.1  # probability that any decision is wrong
MOST = 20_000  # networks of a trial


@dataclass(frozen=True)
class Reached:
    """An algorithm and every state that any of its inputs meets, with the matches m and matched writers S."""

    algorithm: Algorithm
    states: UInt8[Tensor, "state bit"]
    matched: Int[Tensor, " state"]
    writers: Int[Tensor, "state bit"]

    @property
    def size(self) -> int:
        """N: templates and padding."""
        return self.algorithm.templates.count


def reached(operation: Operation, bits: int) -> Reached:
    """Follow all inputs at once, every state once."""
    algorithm = BUILD[operation](bits)
    machine, seen = Machine(algorithm.templates), set[bytes]()
    frontier = algorithm.start(*algorithm.pairs(0, algorithm.inputs))
    kept: list[tuple[Tensor, Tensor, Tensor]] = []
    while len(frontier):
        first = {state.tobytes(): place for place, state in enumerate(frontier.numpy())}
        new = frontier[[place for state, place in first.items() if state not in seen]]
        seen |= first.keys()
        if not len(new):
            break
        step = machine.step(new)
        kept.append((new, step.matched, step.writers))
        frontier = step.states
    states, matched, writers = (torch.cat(parts) for parts in zip(*kept, strict=True))
    return Reached(algorithm, states, matched, writers)


def tally(found: Reached) -> list[Row]:
    """How many decisions there are of every (m, S, T), over distinct states."""
    base, written = found.size + 1, found.algorithm.templates.written  # of none is there more than N
    codes = (found.matched[:, None] * base + found.writers) * base + written
    counts = torch.bincount(codes.reshape(-1))
    return [
        {"matched": code // base**2, "writers": code // base % base, "written": code % base, "decisions": n}
        for code, n in ((int(code), int(counts[code])) for code in counts.nonzero())
    ]


def ratios(rows: Sequence[Row], templates: int, threshold: decisions.Threshold) -> Float64[Tensor, " kind"]:
    """rho^2 of every kind of decision, of bits that some template writes."""
    m, s, t = (torch.tensor([row[name] for row in rows]) for name in ("matched", "writers", "written"))
    return torch.where(t > 0, decisions.ratio(m, s, t, templates, threshold), 0.0)


def predictions(operation: Operation, found: Reached) -> list[Row]:
    """One row a threshold: the worst decision and what follows from it, by the tail bound and by the exact sum."""
    rows = tally(found)
    counts = torch.tensor([row["decisions"] for row in rows], dtype=torch.float64)
    unwritten = sum(row["decisions"] for row in rows if row["written"] == 0 and row["matched"] >= 2)
    lines = []
    for threshold in THRESHOLDS:
        ratio = ratios(rows, found.size, threshold)
        worst = rows[int(ratio.argmax())]
        random = ratio > 0
        lines.append(
            {"operation": operation, "bits": found.algorithm.bits, "templates": found.size,
             "states": len(found.states), "threshold": threshold, "ratio": float(ratio.max()),
             "worst_m": worst["matched"], "worst_S": worst["writers"], "worst_T": worst["written"],
             "decisions": int(counts[random].sum()), "unwritten": unwritten,
             "bound": decisions.bound(ratio, float(counts[random].sum()), FAILURE),
             "networks": decisions.networks(ratio[random], counts[random].log(), FAILURE)}
        )  # fmt: skip
    return lines


def roundings(found: Reached) -> dict[str, Rounding]:
    """Both thresholds on every state, reading what is said above."""
    wanted, written = found.writers >= 1, found.algorithm.templates.written
    middle = kernel.midpoint(found.matched, written, found.size)
    decided = (written > 0) & (wanted | (found.matched[:, None] >= 2))
    alive = (found.matched >= 1)[:, None].expand_as(wanted)
    return {ZERO: Rounding(wanted, torch.zeros_like(middle), decided), MIDPOINT: Rounding(wanted, middle, alive)}


def encoded(found: Reached) -> Float64[Tensor, "state template"]:
    """The network's input for every state: its matched templates, normalised; padding is never matched."""
    match = Machine(found.algorithm.templates).matches(found.states).double()
    x = match / match.sum(dim=1, keepdim=True).clamp(min=1).sqrt()
    return torch.nn.functional.pad(x, (0, found.size - x.shape[1]))


def answers(found: Reached) -> Float[Tensor, "template bit"]:
    """The label of every template; none for padding."""
    labels = found.algorithm.templates.labels
    return torch.nn.functional.pad(labels, (0, 0, 0, found.size - len(labels)))


def trials(operation: Operation, found: Reached, kind: str, width: int, count: int, seed: int) -> list[Row]:
    """Networks until every state is right, in NTK form: drawn from the law, or trained."""
    tests, x, labels = torch.ones(len(found.states)).long(), encoded(found), answers(found)
    recipe = Recipe("ntk", width, plain("ntk", found.size))
    whole = law(x, labels) if kind == "law" else None
    lines: list[Row] = []
    for trial in range(count):
        key = (seed, 3, list(BUILD).index(operation), found.algorithm.bits, kind == "law", trial)
        stream = generator(*key)
        draw: Draw = (
            whole.draws(stream)
            if whole is not None
            else lambda nets, stream=stream: train(recipe, labels, nets, stream).outputs(x)
        )
        counts = needed(draw, roundings(found), tests, (0.0,), MOST, batch(recipe, found.size))
        for (threshold, _), networks in counts.items():
            lines.append(
                {"operation": operation, "bits": found.algorithm.bits, "threshold": threshold, "kind": kind,
                 "trial": trial, "networks": networks or MOST, "reached": networks is not None}
            )  # fmt: skip
    return lines


def reach(operation: Operation | Literal["permute"], bits: int) -> tuple[int, int, int, int]:
    """N, bits of a state, the most matches and the most writers of a bit, as functions of l.

    The matches were counted over all inputs (add, l <= 8; multiply, l <= 6); beyond that they are assumed.
    """
    shapes = {
        "permute": (bits, bits, bits, 1),
        "add": (4 * bits, 3 * bits, bits, 2),
        "multiply": (21 * bits + 2, 18 * bits + 1, 4 * bits, 3),
    }
    return shapes[operation]


def ceiling(operation: Operation | Literal["permute"], bits: int) -> Row:
    """Networks that are enough for all inputs of l bits at threshold zero, without running anything.

    In a state with m matches no decision is worse than an unwanted bit that one template writes, or a wanted one with
    the most writers; and no more than C(N, m) sets of templates match. `networks` sums over m; `bound` takes the worst
    rho^2 for every decision of all inputs and steps, which is what an order of l^2 comes from.
    """
    templates, width, most, writers = reach(operation, bits)
    m = torch.arange(2, most + 1)
    n = torch.tensor(float(templates), dtype=torch.float64)
    sets = torch.lgamma(n + 1) - torch.lgamma(m.double() + 1) - torch.lgamma(n - m + 1)
    unwanted = decisions.ratio(m, torch.zeros_like(m), torch.ones_like(m), templates)
    wanted = decisions.ratio(m, torch.ones_like(m), torch.full_like(m, writers), templates)
    both, logs = torch.cat([unwanted, wanted]), torch.cat([sets, sets]) + math.log(width)
    operands, steps = {"permute": (1, 1), "add": (2, 2 * bits), "multiply": (2, 4 * bits**2 + 3 * bits)}[operation]
    every = operands * bits * math.log(2) + math.log(width * steps / FAILURE)
    return {"operation": operation, "bits": bits, "templates": templates,
            "networks": decisions.networks(both, logs, FAILURE), "bound": 2 * float(both.max()) * every}  # fmt: skip
