"""The kernel machine with 64 states a word, against the plain machine, and against a loop over one pair at a time.

python -m benchmarks.ntk [--full]

All three start from the same pairs and must end in the same states. The loop computes the kernel between a state and
the templates in each step and multiplies it by labels that were solved for once; the authors' code solves anew. Rates
are pairs a second of CPU, of one thread. With --full the sliced machine gets every pair of 10 bits, else every 16th.
"""

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.encoding import peak_bytes
from benchmarks.hill_precision import cost
from workbench.ntk import kernel
from workbench.ntk.arithmetic import Algorithm, addition, multiplication
from workbench.ntk.machine import EPSILON, Machine
from workbench.ntk.sliced import CHUNK, Sliced
from workbench.ntk.words import pack, unpack

ROUNDS = 3
PLAIN, LOOP = 4096, 8  # pairs that the slower two are given in a round
SLICED = 64 * CHUNK  # pairs at a time

Work = Callable[[Algorithm, tuple[Tensor, ...]], Tensor]


def sliced(algorithm: Algorithm, numbers: tuple[Tensor, ...]) -> Tensor:
    """The states after all steps by the sliced machine, from start states to answers' states."""
    return unpack(Sliced(algorithm.templates).run(pack(algorithm.start(*numbers)), algorithm.steps).states)


def plain(algorithm: Algorithm, numbers: tuple[Tensor, ...]) -> Tensor:
    """The same by two matrix products a step."""
    return Machine(algorithm.templates).run(algorithm.start(*numbers), algorithm.steps).states


def loop(algorithm: Algorithm, numbers: tuple[Tensor, ...]) -> Tensor:
    """The same, pair by pair, by the kernel's predictor itself; stops at a pair's fixed point."""
    templates = algorithm.templates
    machine, eye = Machine(templates), torch.eye(templates.count, dtype=torch.float64)
    labels = torch.zeros(templates.count, templates.layout.bits, dtype=torch.float64)
    labels[: len(templates.templates)] = templates.labels.double()
    solved = torch.linalg.solve(kernel.kernel(eye, eye), labels)
    found = []
    for state in algorithm.start(*numbers).split(1):
        for _ in range(algorithm.steps):
            x = torch.zeros(1, templates.count, dtype=torch.float64)
            match = machine.matches(state)
            x[:, : match.shape[1]] = match / match.sum().clamp(min=1).sqrt()
            after = (kernel.kernel(x, eye) @ solved > EPSILON).to(torch.uint8)
            if torch.equal(after, state):
                break
            state = after
        found.append(state)
    return torch.cat(found)


def sample(algorithm: Algorithm, pairs: int) -> tuple[Tensor, ...]:
    """Inputs spread evenly over all there are."""
    apart = max(1, algorithm.inputs // pairs)
    return tuple(column[::apart][:pairs] for column in algorithm.pairs(0, algorithm.inputs))


def agreeing(algorithm: Algorithm, pairs: int) -> bool:
    """Whether all three end in the same states, and these hold the right answers."""
    numbers = sample(algorithm, pairs)
    states = [work(algorithm, numbers) for work in (sliced, plain, loop)]
    right = torch.equal(algorithm.answer(states[0]), algorithm.exact(*numbers))
    return right and all(torch.equal(states[0], other) for other in states[1:])


@dataclass(frozen=True)
class Rates:
    """Pairs a second of CPU, medians over rounds; each ratio is the median of the rounds' ratios."""

    sliced: float
    plain: float
    loop: float
    over_plain: float
    over_loop: float


def rates(algorithm: Algorithm, pairs: int, rounds: int = ROUNDS) -> Rates:
    """Time all three, one after the other, in each round."""
    many, some, few = (sample(algorithm, count) for count in (pairs, PLAIN, LOOP))

    def rate(work: Work, numbers: tuple[Tensor, ...]) -> float:
        parts = list(zip(*(column.split(SLICED) for column in numbers), strict=True))
        return len(numbers[0]) / cost(lambda: [work(algorithm, part) for part in parts])[0].cpu

    found = [(rate(sliced, many), rate(plain, some), rate(loop, few)) for _ in range(rounds)]
    medians = [statistics.median(column) for column in zip(*found, strict=True)]
    return Rates(*medians, *(statistics.median(row[0] / row[other] for row in found) for other in (1, 2)))


def report(algorithm: Algorithm, pairs: int, found: Rates) -> list[str]:
    """The lines printed of one algorithm."""
    hours = algorithm.inputs / found.loop / 3600
    return [
        f"{algorithm.name}, {algorithm.bits} bits, {pairs:,} pairs: {found.sliced:,.0f} pairs a second sliced, "
        f"{pairs / found.sliced:.2f} s for these, {algorithm.inputs / found.sliced:.1f} s for all {algorithm.inputs:,}",
        f"  the plain machine: {found.plain:,.0f} pairs a second; sliced is {found.over_plain:,.0f} times as fast",
        f"  the loop: {found.loop:,.2f} pairs a second, {hours:,.1f} hours for all (extrapolated); sliced is "
        f"{found.over_loop:,.0f} times as fast",
    ]


def main() -> None:
    """Print the rates of addition and multiplication of 10 bits."""
    torch.set_num_threads(1)
    for algorithm in (addition(10), multiplication(10)):
        if not agreeing(algorithm, LOOP):
            raise SystemExit(f"{algorithm.name}: the three do not end in the same states")
        pairs = algorithm.inputs if "--full" in sys.argv[1:] else algorithm.inputs // 16
        for line in report(algorithm, pairs, rates(algorithm, pairs)):
            print(line)
    print(f"peak memory {peak_bytes() / 2**20:,.0f} MiB")


if __name__ == "__main__":
    main()
