"""Three seeds of one shape: as one stacked program, or each by itself? Time a run and step, all by turns, one thread.

Stacked: torch.func.vmap over the runs of the eager order, which turns every product into a batched one. By itself: the
eager order and the kernels, a run after another, as the grid's processes do it.

python -m benchmarks.side_by_side [--json]
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.training import SHAPES, medians
from workbench.engine import choice, eager
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, RunConfig
from workbench.splits import Splits
from workbench.task import ANSWER_TOKENS, encode

RUNS = 3
ROUNDS = 7


def stacked(architecture: Architecture, tokens: torch.Tensor) -> Callable[[], dict[str, torch.Tensor]]:
    """Gradients of `RUNS` seeds in one program; the batch is the same for all, as in the grid."""
    each = [initial_weights(architecture, "fan-in", seed) for seed in range(RUNS)]
    weights = {name: torch.stack([one[name] for one in each]) for name in each[0]}
    target = tokens.T[ANSWER_TOKENS].long()

    def loss(one: dict[str, torch.Tensor]) -> torch.Tensor:
        return F.cross_entropy(eager.answer_logits(one, tokens, architecture)[0], target)

    return lambda: torch.func.vmap(torch.func.grad(loss))(weights)


def separate(architecture: Architecture, tokens: torch.Tensor, engine: str) -> Callable[[], list[Any]]:
    """Gradients of `RUNS` seeds, one after another."""
    loss = choice.engine(engine).loss
    each = [
        {name: w.requires_grad_() for name, w in initial_weights(architecture, "fan-in", seed).items()}
        for seed in range(RUNS)
    ]
    return lambda: [torch.autograd.grad(loss(one, tokens, architecture), list(one.values())) for one in each]


def measure(rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """A row for each shape: milliseconds a run and step of each way."""
    torch.set_num_threads(1)
    tokens = torch.from_numpy(encode(Splits().batch(0, 1024)))
    engines = [name for name in ("eager", "native") if not choice.unavailable(RunConfig(engine=name))]
    rows = []
    for config in SHAPES:
        shape = config.architecture
        ways: dict[Any, Callable[[], Any]] = {"stacked": stacked(shape, tokens)}
        ways |= {engine: separate(shape, tokens, engine) for engine in engines}
        found = medians(ways, rounds)
        times = {way: 1000 * found[way] / RUNS for way in ways}
        rows.append(
            {"shape": f"{shape.mlp} {shape.n_layers}-layer", **times, "faster": min(times, key=times.__getitem__)}
        )
    return rows


def main() -> None:
    """Print the table."""
    rows = measure()
    if "--json" in sys.argv[1:]:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        times = "  ".join(f"{way} {row[way]:6.2f} ms" for way in ("stacked", "eager", "native") if way in row)
        print(f"{row['shape']:18} {times} a run and step; faster: {row['faster']}")


if __name__ == "__main__":
    main()
