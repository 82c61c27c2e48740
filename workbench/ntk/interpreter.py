"""An ordinary interpreter of SBN on integers, many runs at once. It knows nothing of templates or bits.

Programs, words and instruction numbers are those of `workbench.ntk.sbn`; it is what the machine is compared with.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

Memory = Int[Tensor, "batch word"]
Place = Int[Tensor, " batch"]


def wrap(numbers: Int[Tensor, "*any"], width: int) -> Int[Tensor, "*any"]:
    """The same numbers modulo 2^width, from -2^(width-1) on."""
    half = 1 << (width - 1)
    return (numbers + half) % (2 * half) - half


def step(code: Int[Tensor, "batch instruction 3"], memory: Memory, pc: Place, width: int) -> tuple[Memory, Place]:
    """Words and next instruction after one instruction; a run that has halted (pc = P) stays as it is."""
    running = pc < code.shape[1]
    rows = torch.arange(len(pc))
    a, b, target = code[rows, pc.clamp(max=code.shape[1] - 1)].unbind(dim=1)
    result = wrap(memory[rows, b] - memory[rows, a], width)
    following = torch.where(result < 0, target, pc + 1)
    after = memory.clone()
    after[rows, b] = torch.where(running, result, memory[rows, b])
    return after, torch.where(running, following, pc)


def run(
    code: Int[Tensor, "batch instruction 3"], memory: Memory, pc: Place, width: int, most: int
) -> Iterator[tuple[Memory, Place]]:
    """Words and next instruction after each instruction, until every run has halted or `most` were executed."""
    for _ in range(most):
        if bool((pc == code.shape[1]).all()):
            return
        memory, pc = step(code, memory, pc, width)
        yield memory, pc
