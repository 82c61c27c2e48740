"""What the decimal machine's state says while it solves a problem, and how clear the signs of each step are."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import UInt8
from torch import Tensor

from workbench.ntk.decimal import HIGHEST, Decimal
from workbench.ntk.machine import Machine, Step

SHOWN = {
    False: ("a", "op", "b", "sum", "carry", "sign", "out"),
    True: ("a", "op", "b", "dif", "ab", "ba", "sign", "out"),
}  # blocks that a sum, a difference uses


@dataclass(frozen=True)
class Snapshot:
    """The state after a step, block by block: one text a place, highest first, "" where no bit is 1."""

    step: int
    blocks: dict[str, list[str]]
    matched: int = 0  # m in this step; 0 before the first
    lowest_one: float = torch.inf  # the smallest mean of a bit that some matched template writes
    highest_zero: float = -torch.inf  # the largest of a bit that none does but that some template could


@dataclass(frozen=True)
class Trace:
    """Every state from the start to the first that a step does not change, and what is then written."""

    snapshots: Sequence[Snapshot]
    written: UInt8[Tensor, " token"]
    flips: int

    @property
    def steps(self) -> int:
        """Steps that changed something."""
        return len(self.snapshots) - 1


def trace(machine: Decimal, a: int, b: int, subtract: bool) -> Trace:
    """Run one problem; BadInput when an operand has more digits than the machine has places."""
    asked = torch.tensor([subtract])
    states = machine.start(torch.tensor([a]), torch.tensor([b]), asked)
    found = [Snapshot(0, _blocks(machine, states[0], subtract))]
    written = machine.templates.written

    def watch(at: int, step: Step) -> None:
        ones, could = step.writers[0] > 0, written > 0
        low = float(step.mean[0].masked_fill(~ones, torch.inf).min())
        high = float(step.mean[0].masked_fill(ones | ~could, -torch.inf).max())
        found.append(Snapshot(at, _blocks(machine, step.states[0], subtract), int(step.matched[0]), low, high))

    run = Machine(machine.templates).run(states, 4 * machine.steps, watch)
    return Trace(found[:-1] if run.fixed else found, machine.written(run.states)[0], run.flips)


def _blocks(machine: Decimal, state: UInt8[Tensor, " bit"], subtract: bool) -> dict[str, list[str]]:
    layout = machine.templates.layout
    names = {"op": "+-", "sign": "+-"}
    found = {}
    for block in SHOWN[subtract]:
        bits = state[layout.block(block)].reshape(-1, layout.shapes[block][-1]).flip(0)
        first = -HIGHEST if block == "dif" else 0
        values = [(row.nonzero().flatten() + first).tolist() for row in bits]
        found[block] = ["/".join(names[block][v] if block in names else str(v) for v in row) for row in values]
    return found
