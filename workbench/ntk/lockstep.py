"""The SBN machine beside the interpreter: the same programs, compared in every bit after every instruction.

What the sign rule says is counted too. A flip is predicted where a matched template writes a bit and `kernel.positive`
denies that its mean is positive; it is observed where the sign of the mean is not the wanted `S >= 1`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from workbench.ntk import interpreter, kernel, sbn
from workbench.ntk.machine import Machine, Step, decisive

Runs = Int[Tensor, " batch"]
Watch = Callable[[int, UInt8[Tensor, "batch bit"], UInt8[Tensor, "batch bit"]], None]


class SignRule:
    """`kernel.positive` of every m, S and T that a machine's templates can give, as a table to look up."""

    def __init__(self, machine: Machine) -> None:
        counts, self.kinds = machine.templates.written.unique(return_inverse=True)  # the T there are; which a bit has
        m, writers = torch.arange(len(machine.gain)), torch.arange(int(counts.max()) + 1)
        points = torch.meshgrid(counts, writers, m, indexing="ij")
        self.table = kernel.positive(points[2], points[1], points[0], machine.templates.count)

    def denied(self, step: Step) -> Bool[Tensor, "batch bit"]:
        """Bits that a matched template writes and whose mean is not positive, by the rule: the flips it foretells."""
        return (step.writers >= 1) & ~self.table[self.kinds, step.writers, step.matched[:, None]]


class Record:
    """Counts over all states and iterations."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.rule = machine, SignRule(machine)
        self.words = 0  # compared with the interpreter's
        self.wrong_words = 0
        self.wrong_states = 0  # that differ from the interpreter's in any bit: words, program, pc or a residue
        self.predicted = 0  # flips, by the sign rule
        self.missed = 0  # observed and not predicted
        self.alarms = 0  # predicted and not observed
        self.margin = torch.inf  # the smallest |mean| of a bit whose mean is not 0 by construction
        at = torch.zeros(len(machine.gain), dtype=torch.long)
        self.states, self.flips_at = at, at.clone()  # by m: states seen before an iteration, flips in it
        self.ratio: Float[Tensor, " m"] = torch.zeros(len(at), dtype=torch.float64)  # by m: the largest T / S of a bit

    @property
    def flips(self) -> int:
        """Flips observed."""
        return int(self.flips_at.sum())

    @property
    def loads(self) -> Float[Tensor, " m"]:
        """The largest `T (m - 1 / g_m) / S` that occurred at each m; a flip where it is not below N + 2 pi - 1."""
        m = torch.arange(len(self.states))
        return self.ratio * (m - 1 / self.machine.gain.clamp(min=1e-300)).clamp(min=0)

    def iteration(self, step: Step) -> None:
        """Count what one iteration did."""
        written, m = self.machine.templates.written, step.matched
        wanted, denied = step.writers >= 1, self.rule.denied(step)
        self.predicted += int(denied.sum())
        self.missed += int((step.flips & ~denied).sum())
        self.alarms += int((denied & ~step.flips).sum())
        self.margin = min(self.margin, decisive(step, written))
        ratio = torch.where(wanted, written / step.writers.clamp(min=1).double(), 0.0).amax(dim=1)
        self.states.index_add_(0, m, torch.ones_like(m))
        self.flips_at.index_add_(0, m, step.flips.sum(dim=1))
        self.ratio.scatter_reduce_(0, m, ratio, "amax")


@dataclass(frozen=True)
class Outcome:
    """How each run ended, and the counts over all of them."""

    record: Record
    memory: Int[Tensor, "batch word"]  # the machine's words
    pc: Runs  # the machine's; -1 where it is none
    executed: Runs  # instructions, by the interpreter
    halted: Bool[Tensor, " batch"]  # the interpreter's run has
    agrees: Bool[Tensor, " batch"]  # in every bit after every instruction
    first_flip: Runs  # the iteration, from 1, in which a bit first flipped; 0 where none did


def compare(
    machine: Machine,
    size: sbn.Size,
    code: Int[Tensor, "batch instruction 3"],
    memory: Int[Tensor, "batch word"],
    pc: Runs,
    most: int,
    watch: Watch | None = None,
) -> Outcome:
    """Run both from the same words until every run has halted, or for `most` instructions.

    A run that the interpreter has halted goes on for one instruction more, which must change nothing, and is then left
    out if the machine agrees: its state is a fixed point. One in which the machine is elsewhere goes on to the end.
    `watch(i, machine's states, interpreter's)` sees the runs still going after instruction i, and all at i = 0.
    """
    record, runs = Record(machine), len(memory)
    memory, pc, ends = interpreter.wrap(memory, size.width), pc.clone(), sbn.encode(size, code, memory, pc)
    executed, first = torch.zeros_like(pc), torch.zeros_like(pc)
    agrees, going, done = torch.ones(runs, dtype=torch.bool), torch.arange(runs), 0
    if watch:
        watch(0, ends, ends)
    while len(going) and done < most:
        running = pc[going] < size.instructions
        states, flipped = _instruction(machine, ends[going], size.iterations, record)
        first[going] = torch.where((first[going] == 0) & (flipped > 0), done * size.iterations + flipped, first[going])
        memory[going], pc[going] = interpreter.step(code[going], memory[going], pc[going], size.width)
        expected = sbn.encode(size, code[going], memory[going], pc[going])
        done += 1
        if watch:
            watch(done, states, expected)
        right = (states == expected).all(dim=1)
        record.words += memory[going].numel()
        record.wrong_words += int((sbn.memory(size, states) != memory[going]).sum())
        record.wrong_states += int((~right).sum())
        ends[going], agrees[going] = states, agrees[going] & right
        executed[going] += running
        going = going[running | ~right]
    halted = pc == size.instructions
    return Outcome(record, sbn.memory(size, ends), sbn.pc(size, ends), executed, halted, agrees, first)


def _instruction(
    machine: Machine, states: UInt8[Tensor, "batch bit"], iterations: int, record: Record
) -> tuple[UInt8[Tensor, "batch bit"], Runs]:
    """The states one instruction later, and the iteration of it in which a bit first flipped, 0 where none did."""
    first = torch.zeros(len(states), dtype=torch.long)
    for i in range(1, iterations + 1):
        step = machine.step(states)
        record.iteration(step)
        first = torch.where((first == 0) & step.flips.any(dim=1), i, first)
        states = step.states
    return states, first
