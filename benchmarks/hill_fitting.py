"""One optimizer step of a stack of units, and its ratio to a plain loop that trains one unit, in the same run.

The units are those of the report's sections 4.5 (twelve operations, five scales, ten seeds, Adam) and 4.3 (four
operations, four ranges and the universal one, ten seeds, RMSprop). The loop does what the report's code does for a
unit: forward by torch's functions, complex powers, autograd, torch.optim.

python -m benchmarks.hill_fitting
"""

import statistics
import time
from collections.abc import Callable, Sequence

import torch

from workbench.hill.constraint import constrain
from workbench.hill.fitting import Optimizer, Stack, Stream, Target, Unit, optimizer, shuffled
from workbench.hill.operations import operation
from workbench.hill.primitives import compute

BATCH, STEPS, LOOP_STEPS, ROUNDS = 64, 100, 20, 9
TABLE_4_5 = (
    "add", "subtract", "multiply", "divide", "power-identity", "reciprocal", "cos", "sin",
    "cos-sum", "sin-sum", "cos-difference", "sin-difference",
)  # fmt: skip
TABLE_4_3 = ("add", "subtract", "multiply", "divide")
RANGES = ((0.1, 3.0), (-5.0, 5.0), (-3.0, 3.0), (1.1, 1.2), (0.01, 10.0))  # as table 4.3's, for the time they take
ADAM = optimizer("adam", lr=0.1, betas=(0.9, 0.5))
RMSPROP = optimizer("rmsprop", lr=0.01, alpha=0.9, eps=1e-10)


def stream(name: str, low: float, high: float, seed: int) -> Stream:
    """Problems of one operation, uniform on [low, high], `STEPS` batches an epoch."""
    generator = torch.Generator().manual_seed(seed)
    x = low + (high - low) * torch.rand(BATCH * STEPS, 2, dtype=torch.float64, generator=generator)
    row = operation(name)
    if row.arity == 1:
        x[:, 1] = 1
    order = shuffled(len(x), BATCH, seed)(0)  # the same each epoch: shuffling is not measured, on neither side
    return Stream(Target.of(name), x, row.exact(*x.unbind(1)[: row.arity]), lambda epoch: order)


def initialisation() -> tuple[list[Stream], list[Unit]]:
    """Streams and units of section 4.5: 120 streams, each read by the units of five initial scales."""
    streams = [stream(name, 0.01, 10.0, seed) for seed in range(10) for name in TABLE_4_5]
    starts = torch.randn(len(streams), 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    units = []
    for scale in (0.0, 0.01, 0.1, 1.0, 3.0):
        for place, (W_hat, M_hat) in enumerate((starts * scale).tolist()):
            units.append(Unit((place,), ADAM, tuple(W_hat), tuple(M_hat)))
    return streams, units


def comparison() -> tuple[list[Stream], list[Unit]]:
    """Streams and units of section 4.3: 200 of each."""
    streams = [stream(name, *ends, seed) for seed in range(10) for ends in RANGES for name in TABLE_4_3]
    return streams, [Unit((place,), RMSPROP) for place in range(len(streams))]


def one_unit(stream: Stream, unit: Unit, steps: int) -> tuple[Callable[[], None], list[torch.Tensor]]:
    """The loop for one unit, and its raw parameters; a call trains `steps` steps and gathers their batches."""
    W_hat, M_hat = (torch.tensor(raw, dtype=torch.float64, requires_grad=True) for raw in (unit.W_hat, unit.M_hat))
    rule = unit.optimizer.torch([W_hat, M_hat])
    order = stream.order(0)[:steps]

    def train() -> None:
        for samples in order:
            rule.zero_grad()
            found = compute(stream.target.primitive, stream.x[samples], constrain(W_hat, M_hat), "complex")
            torch.nn.functional.mse_loss(found, stream.y[samples]).backward()
            rule.step()

    return train, [W_hat, M_hat]


def seconds(action: Callable[[], object]) -> float:
    """CPU seconds of one call, on one thread: on a busy machine the clock would count other processes too."""
    began = time.process_time()
    action()
    return time.process_time() - began


def measure(streams: Sequence[Stream], units: Sequence[Unit], rounds: int = ROUNDS) -> tuple[float, float, float]:
    """Seconds of one step of the whole stack, of one step of the loop for one unit, and the ratio a unit-step.

    Each round times an epoch of the stack and then the loop on one unit of each kind of data, both with the gathering
    of their batches; the medians over rounds are returned.
    """
    kinds = {(stream.target, bool((stream.x < 0).any())): place for place, stream in enumerate(streams)}
    steps = min(STEPS, LOOP_STEPS)
    loops = [
        one_unit(streams[place], next(u for u in units if place in u.streams), steps)[0] for place in kinds.values()
    ]
    shares = [sum((s.target, bool((s.x < 0).any())) == kind for s in streams) for kind in kinds]
    stack = Stack(streams, units)
    stack.epoch()
    whole, single = [], []
    for _ in range(rounds):
        whole.append(seconds(stack.epoch) / STEPS)
        times = [seconds(loop) / steps for loop in loops]
        single.append(statistics.fmean(time for time, share in zip(times, shares, strict=True) for _ in range(share)))
    ratio = statistics.median(one * len(units) / all_of_them for one, all_of_them in zip(single, whole, strict=True))
    return statistics.median(whole), statistics.median(single), ratio


def optimizers_of(units: Sequence[Unit]) -> set[Optimizer]:
    """The optimizers in use."""
    return {unit.optimizer for unit in units}


def main() -> None:
    """Print the measurements."""
    torch.set_num_threads(1)
    for section, (streams, units) in (("4.5", initialisation()), ("4.3", comparison())):
        whole, single, ratio = measure(streams, units)
        named = ", ".join(map(str, optimizers_of(units)))
        print(
            f"section {section}, {len(units)} units, {named}: {whole * 1e3:.3f} ms a step of the stack, "
            f"{single * 1e6:.0f} us a step of the plain loop for one unit: {ratio:,.0f} times as fast a unit-step"
        )


if __name__ == "__main__":
    main()
