"""What `ntk-sbn` runs: single instructions, random programs, and programs on all their inputs."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from workbench.ntk import sbn
from workbench.ntk.assembler import Program, load
from workbench.ntk.lockstep import Outcome, compare
from workbench.ntk.machine import Machine

SINGLES = ((2, 3, 2), (2, 4, 2), (3, 3, 2))  # D, w, P whose single instructions are run one and all
FUZZ = (3, 4, 5)  # D, w, P of random programs
FUZZ_INSTRUCTIONS = 12  # that each is followed for
FIBONACCI = (0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89)  # those below 128
MOST = 1000  # instructions; every program here halts long before

Cells = dict[str, Int[Tensor, " batch"]]


@dataclass(frozen=True)
class Case:
    """Some runs of one machine beside the interpreter."""

    name: str
    inputs: str  # which, in words
    size: sbn.Size
    padding: int
    outcome: Outcome
    right: int | None = None  # runs that halted with the answer of plain arithmetic, where there is one

    @property
    def runs(self) -> int:
        """How many."""
        return len(self.outcome.pc)


def grid(*counts: int) -> list[Int[Tensor, " batch"]]:
    """All combinations of 0 .. count - 1, the last counting fastest."""
    return [axis.reshape(-1) for axis in torch.meshgrid(*map(torch.arange, counts), indexing="ij")]


def singles(size: sbn.Size, seed: int) -> Case:
    """One instruction from every memory, a, b, c and pc there is; the other instructions are drawn from the seed."""
    d, w, p = size.words, size.width, size.instructions
    *words, a, b, c, pc = grid(*[2**w] * d, d, d, p + 1, p)
    code = _drawn(size, len(pc), seed)
    code[torch.arange(len(pc)), pc] = torch.stack([a, b, c], dim=1)
    outcome = compare(Machine(sbn.templates(size)), size, code, torch.stack(words, dim=1), pc, 1)
    return Case("single instructions", "every memory, a, b, c and pc", size, size.padding, outcome)


def fuzz(size: sbn.Size, programs: int, instructions: int, seed: int) -> Case:
    """Random programs from random words and pc."""
    code = _drawn(size, programs, seed)
    drawn = torch.Generator().manual_seed(seed + 1)
    memory = torch.randint(0, 2**size.width, (programs, size.words), generator=drawn)
    pc = torch.randint(0, size.instructions, (programs,), generator=drawn)
    outcome = compare(Machine(sbn.templates(size)), size, code, memory, pc, instructions)
    return Case("random programs", f"{programs:,} programs", size, size.padding, outcome)


def _drawn(size: sbn.Size, programs: int, seed: int) -> Int[Tensor, "batch instruction 3"]:
    drawn = torch.Generator().manual_seed(seed)
    bounds = (size.words, size.words, size.instructions + 1)
    columns = [torch.randint(0, bound, (programs, size.instructions), generator=drawn) for bound in bounds]
    return torch.stack(columns, dim=2)


def program(
    name: str,
    inputs: str,
    cells: Cells,
    right: Callable[[Cells], Bool[Tensor, " batch"]],
    padding: int | None = None,
    most: int = MOST,
) -> Case:
    """A built-in program from these first values; `right` judges the words of its cells after it halted."""
    asked = load(name)
    templates = sbn.templates(asked.size, padding)
    outcome = started(asked, Machine(templates), cells, most)
    halted = outcome.halted & (outcome.pc == asked.size.instructions)
    ended = dict(zip(asked.cells, outcome.memory.T, strict=True))
    return Case(name, inputs, asked.size, templates.padding, outcome, int((halted & right(ended)).sum()))


def started(asked: Program, machine: Machine, cells: Cells, most: int = MOST) -> Outcome:
    """A program's runs from these first values."""
    runs = len(next(iter(cells.values())))
    start = torch.zeros(runs, dtype=torch.long)
    return compare(machine, asked.size, asked.codes(runs), asked.memory(runs, cells), start, most)


def factors() -> Cells:
    """The 176 pairs of x, y >= 0 whose product is a word of 6 bits that is not negative."""
    x, y = grid(32, 32)
    fits = x * y < 32
    return {"x": x[fits], "y": y[fits]}


def programs(full: bool) -> list[Case]:
    """Every built-in program on the inputs that its comment promises; with `full` also on the widest set of them."""
    n, m = grid(16)[0], grid(len(FIBONACCI))[0]
    found = [
        multiplying("x, y >= 0 with x y < 32", factors()),
        program("countdown", "n = 0 to 15", {"n": n}, lambda end: end["n"] == -1),
        program("fibonacci", "n = 0 to 11", {"n": m}, lambda end: end["f"] == torch.tensor(FIBONACCI)),
        _sorting("x, y, z = 0 to 7", grid(8, 8, 8)),
    ]
    if full:
        x, y = grid(64, 32)
        found.append(multiplying("x = -32 to 31, y = 0 to 31, modulo 64", {"x": x - 32, "y": y}))
        triples = torch.tensor([t for t in itertools.product(range(-8, 8), repeat=3) if max(t) - min(t) < 8])
        found.append(_sorting("x, y, z = -8 to 7, at most 7 apart", list(triples.T)))
    return found


def multiplying(inputs: str, cells: Cells, padding: int | None = None, most: int = MOST) -> Case:
    """The multiplication program; its answer is the product, modulo 64 and signed."""
    wanted = (cells["x"] * cells["y"] + 32) % 64 - 32
    return program("multiply", inputs, cells, lambda end: end["acc"] == wanted, padding, most)


def _sorting(inputs: str, numbers: Sequence[Int[Tensor, " batch"]]) -> Case:
    wanted = torch.stack(list(numbers)).sort(dim=0).values
    cells = dict(zip("xyz", numbers, strict=True))
    return program("sort", inputs, cells, lambda end: (torch.stack([end[c] for c in "xyz"]) == wanted).all(dim=0))
