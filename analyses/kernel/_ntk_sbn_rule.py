"""What the sign rule foretells about the multiplication program under less padding, and what happens.

The rule is asked along the intended runs, in which every bit is what it ought to be: there it says in which iteration a
bit first flips, and with how much padding none does. The machine then runs with that padding, with one template less,
and with none. Whether all of the rule's padding is needed is a question to the fullest state: every bit of memory 1.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from analyses.kernel._ntk_sbn_runs import Case, Cells, multiplying, started
from workbench.ntk import kernel, sbn
from workbench.ntk.assembler import load
from workbench.ntk.lockstep import Outcome, SignRule, compare
from workbench.ntk.machine import Machine, Step
from workbench.ntk.templates import TemplateSet

SLOTS = 95  # instructions of the longest run, 1 times 31; runs gone astray are followed no further


class Intended(Machine):
    """A control: every bit is the wanted `S >= 1`, and its flips are those that the sign rule foretells."""

    def __init__(self, templates: TemplateSet) -> None:
        super().__init__(templates)
        self.rule = SignRule(self)

    def step(self, states: UInt8[Tensor, "batch bit"]) -> Step:
        """One iteration as wanted."""
        step = super().step(states)
        return replace(step, states=(step.writers >= 1).to(torch.uint8), flips=self.rule.denied(step))


@dataclass(frozen=True)
class Attempt:
    """The program with one padding: what the rule foretells, and what the machine does."""

    padding: int
    foretold: Int[Tensor, " batch"]  # the iteration in which a run first flips, by the rule; 0 for never
    case: Case

    @property
    def limit(self) -> float:
        """What a load must stay below: N + 2 pi - 1."""
        return self.case.size.templates + self.padding + kernel.ridge()

    @property
    def agree(self) -> int:
        """Runs whose first flip, or that have none, is where the rule says."""
        return int((self.foretold == self.case.outcome.first_flip).sum())


def intended(cells: Cells, padding: int) -> Outcome:
    """The intended runs, with the rule's flips for this padding."""
    asked = load("multiply")
    return started(asked, Intended(sbn.templates(asked.size, padding)), cells)


def smallest(cells: Cells) -> int:
    """The least padding with which the rule foretells no flip in any of these runs: N + 2 pi - 1 above every load."""
    highest = float(intended(cells, 0).record.loads.max())
    return max(0, math.floor(highest - kernel.ridge()) + 1 - load("multiply").size.templates)


def attempt(cells: Cells, padding: int) -> Attempt:
    """Foretell, then run."""
    foretold = intended(cells, padding).first_flip
    return Attempt(padding, foretold, multiplying(f"padding {padding}", cells, padding, SLOTS))


def fullest(size: sbn.Size, padding: int) -> int:
    """Flips in one instruction that takes one word from another while every word is -1, all bits 1.

    Its load step has m at its bound, and writes each bit of `p` once: the highest load of any state, where D >= 2 and
    p is the most written block.
    """
    memory = torch.full((1, size.words), -1)
    code = torch.tensor([[[0, 1, size.instructions]] * size.instructions])
    machine = Machine(sbn.templates(size, padding))
    return compare(machine, size, code, memory, torch.zeros(1, dtype=torch.long), 1).record.flips
