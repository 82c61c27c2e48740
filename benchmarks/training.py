"""Time of one training step of each shape, and its share of the matrix-multiplication speed measured in the same run.

python -m benchmarks.training [--json]
"""

import json
import statistics
import sys
import time
from typing import Any

import torch

from workbench.engine import plain
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, Recipe, RunConfig, twelve
from workbench.splits import Splits
from workbench.task import encode

ROUNDS = 15
SHAPES = [config for config in twelve() if config.seed == 0]


def step_flops(shape: Architecture, batch: int, positions: int = 15) -> int:
    """Floating-point operations of the matrix products of one step: forward, and twice that backward."""
    projections = 4 * shape.d_model * shape.n_heads * shape.d_head
    attention = 2 * positions * shape.n_heads * shape.d_head
    mlp = (3 if shape.mlp == "bilinear" else 2) * shape.d_model * shape.d_mlp
    a_position = shape.n_layers * (projections + attention + mlp) + shape.d_model * shape.d_vocab
    return 3 * 2 * batch * positions * a_position


def matmul_flops_a_second(size: int = 768) -> float:
    """Speed of one square float32 matrix product."""
    a = torch.randn(size, size)
    began = time.perf_counter()
    a @ a
    return 2 * size**3 / (time.perf_counter() - began)


def stepper(config: RunConfig) -> Any:
    """A function that does one whole training step: loss, gradients, clipping, AdamW."""
    weights = initial_weights(config.architecture, config.recipe.init, config.seed)
    parameters = [weight.requires_grad_() for weight in weights.values()]
    optimizer = torch.optim.AdamW(parameters, lr=config.recipe.lr, fused=True)
    tokens = torch.from_numpy(encode(Splits().batch(0, config.recipe.batch_size)))

    def step() -> None:
        optimizer.zero_grad()
        plain.loss(weights, tokens, config.architecture).backward()
        torch.nn.utils.clip_grad_norm_(parameters, config.recipe.grad_clip)
        optimizer.step()

    return step


def measure(rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Median milliseconds of a step of each shape, one thread, the shapes and the matrix product taking turns."""
    torch.set_num_threads(1)
    steps = {config.name: stepper(config) for config in SHAPES}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    ceilings = []
    for _ in range(rounds + 2):
        ceilings.append(matmul_flops_a_second())
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - began)
    ceiling = statistics.median(ceilings[2:])
    rows = []
    for config in SHAPES:
        median = statistics.median(seconds[config.name][2:])
        share = step_flops(config.architecture, config.recipe.batch_size) / median / ceiling
        name = f"{config.architecture.mlp} {config.architecture.n_layers}-layer"
        rows.append({"shape": name, "engine": config.engine, "ms": 1000 * median, "share_of_matmul": share})
    return rows


def main() -> None:
    """Print the table and what it means for the grid."""
    rows = measure()
    minutes = 3 * Recipe().steps * sum(row["ms"] for row in rows) / 60_000
    if "--json" in sys.argv[1:]:
        print(json.dumps({"steps": rows, "grid_minutes_of_one_core": minutes}, indent=2))
        return
    for row in rows:
        share = f"{row['share_of_matmul']:.0%} of matmul speed"
        print(f"{row['shape']:18} {row['engine']}  {row['ms']:6.1f} ms a step, {share}")
    print(f"the twelve: {minutes:.0f} minutes of one core, {minutes / 2:.0f} on two")


if __name__ == "__main__":
    main()
