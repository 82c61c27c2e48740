"""A state as text, block by block, with what the last step changed."""

from dataclasses import dataclass

import torch
from jaxtyping import UInt8
from torch import Tensor

from workbench.ntk.machine import Machine, decisive
from workbench.ntk.templates import Layout

KEPT, CHANGED = ".1", "-+"  # by the bit after the step
LEGEND = "1 and . are bits that stay 1 and 0, + and - bits that have just become 1 and 0; highest bit first"


@dataclass(frozen=True)
class Line:
    """One state of a run: after how many steps, how many templates matched in the last, how near its signs were."""

    step: int
    matched: int | None  # None for the start
    margin: float  # the smallest |mean| that is not 0 by construction; inf where there is none
    flips: int  # bits whose sign was not that of an OR
    blocks: dict[str, str]


def drawn(layout: Layout, state: UInt8[Tensor, " bit"], before: UInt8[Tensor, " bit"]) -> dict[str, str]:
    """Each block's bits, the highest of the last index first; words of a block with more indices side by side."""
    marks = [(CHANGED if a != b else KEPT)[a] for a, b in zip(state.tolist(), before.tolist(), strict=True)]
    found = {}
    for name, shape in layout.shapes.items():
        bits = marks[layout.block(name)]
        words = [bits[first : first + shape[-1]] for first in range(0, len(bits), shape[-1])]
        found[name] = " ".join("".join(reversed(word)) for word in words)
    return found


def traced(machine: Machine, start: UInt8[Tensor, " bit"], steps: int) -> list[Line]:
    """The start state and each one after it, up to the first that a step leaves as it was, or `steps`."""
    layout, written = machine.templates.layout, machine.templates.written
    lines, state = [Line(0, None, torch.inf, 0, drawn(layout, start, start))], start
    for at in range(1, steps + 1):
        step = machine.step(state[None])
        after = step.states[0]
        lines.append(
            Line(at, int(step.matched), decisive(step, written), int(step.flips.sum()), drawn(layout, after, state))
        )
        if torch.equal(after, state):
            break
        state = after
    return lines
