"""Problems asked of the decimal machine, some at a time; machines with one template spoilt; machines that leak more."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Int64

from workbench.exhaustive.tally import CELLS, Counts, cells, count
from workbench.ntk import kernel
from workbench.ntk.decimal import HIGHEST, Decimal
from workbench.ntk.decimal_words import check
from workbench.ntk.machine import Machine
from workbench.ntk.sliced import Point, Sliced
from workbench.ntk.templates import Bit, TemplateSet
from workbench.task import Problems

BLOCK = 1_000_000  # problems at a time: about 0.3 GB
MOST_ITERATIONS = 16  # a table's width; the machine of four digits takes six


@dataclass
class Asked:
    """Counts over all problems asked, by cell of `workbench.exhaustive.tally`."""

    counts: Counts = field(default_factory=lambda: np.zeros((CELLS, 7), np.int64))
    iterations: Int64[np.ndarray, "cell iteration"] = field(
        default_factory=lambda: np.zeros((CELLS, MOST_ITERATIONS), np.int64)
    )
    points: set[Point] = field(default_factory=set)
    most_matched: int = 0
    flips: int = 0
    steps: int = 0  # until nothing changed anywhere
    margin: float = np.inf

    @property
    def n(self) -> int:
        """Problems asked."""
        return int(self.counts[:, 0].sum())

    @property
    def wrong(self) -> int:
        """Problems without the exact answer."""
        return self.n - int(self.counts[:, -1].sum())


def ask(machine: Decimal, templates: TemplateSet, parts: Iterable[Problems]) -> Asked:
    """Every problem of every part, on the machine or on other templates over its bits."""
    sliced, found = Sliced(templates), Asked()
    for problems in parts:
        one = check(machine, sliced, problems.a, problems.b, problems.subtract)
        found.counts += count(problems, np.repeat(one.right[:, None], 5, axis=1))
        np.add.at(found.iterations, (cells(problems), one.iterations), 1)
        found.points |= one.survey.points
        found.most_matched = max(found.most_matched, int(one.survey.matched.nonzero()[0].max()))
        found.flips += one.survey.flips
        found.steps = max(found.steps, one.steps)
        found.margin = min(found.margin, one.margin)
    return found


def parts_of(problems: Problems) -> Iterator[Problems]:
    """The problems BLOCK at a time."""
    for first in range(0, len(problems), BLOCK):
        yield problems[first : first + BLOCK]


def spoilt(machine: Decimal) -> dict[str, TemplateSet]:
    """The machine's templates with one changed in each: what would have to be seen if the check sees anything."""
    layout = machine.templates.layout
    ten, zero = layout["sum", 1, HIGHEST], layout["dif", 1, HIGHEST]
    changes: dict[str, tuple[str, tuple[int, ...], Bit | None]] = {
        "no carry through tens that sum to 9": ("carry", (ten, layout["carry", 0, 1]), ("carry", 1, 0)),
        "no borrow through equal tens": ("borrow", (zero, layout["ab", 0, 1]), ("ab", 1, 0)),
        "7 + 8 of the units gives 14": ("pair +", (layout["op", 0], layout["a", 0, 7], layout["b", 0, 8]),
                                         ("sum", 0, 14)),
        "negative answers have sign +": ("sign", (layout["ab", machine.digits - 1, 1],), ("sign", 0)),
        "no template keeps a difference of 0": ("keep", (layout["dif", 0, HIGHEST],), None),
    }  # fmt: skip
    made = {}
    for name, (group, reads, writes) in changes.items():
        rules = list(machine.templates.templates)
        (at,) = (at for at, one in enumerate(rules) if one.group == group and one.on == tuple(sorted(reads)))
        rules[at] = dataclasses.replace(rules[at], writes=() if writes is None else (layout[writes],))
        made[name] = TemplateSet(layout, rules, machine.templates.padding)
    return made


def loads(points: Iterable[Point], templates: int) -> dict[Point, float]:
    """`T (m - 1/g_m) / (S (N + 2 pi - 1))` of points with S >= 1: the sign is right below 1."""
    chosen = [point for point in points if point[1] >= 1]
    m, s, t = torch.tensor(chosen, dtype=torch.float64).T
    found = t * (m - 1 / kernel.gain(m)) / (s * (templates + kernel.ridge()))
    return dict(zip(chosen, found.tolist(), strict=True))


def flips_with_leak(machine: Decimal, problems: Problems, factor: float) -> tuple[int, int]:
    """(bits that flip in the steps that `ask` takes, wrong answers) when every h_m is `factor` times what it is.

    By the plain machine. N enters h_m only in `1 / (N + 2 pi - 1)`, so a factor stands for a smaller N.
    """
    plain = Machine(machine.templates)
    plain.leak = plain.leak * factor
    a, b = (torch.from_numpy(values.astype(np.int64)) for values in (problems.a, problems.b))
    run = plain.run(machine.start(a, b, torch.from_numpy(problems.subtract)), machine.steps + 1)
    exact = machine.exact(problems.a, problems.b, problems.subtract)
    return run.flips, int((machine.written(run.states).numpy() != exact).any(axis=1).sum())
