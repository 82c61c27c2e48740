"""Time of one training step of each shape by each engine, beside the plain one and the arithmetic it takes.

Every engine does the whole step: problems drawn and encoded, loss, gradients, clipping, AdamW. They take turns in one
process on one thread, so that a machine that slows down slows them all.

python -m benchmarks.training [--json]
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from workbench.engine import choice
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, Recipe, RunConfig, twelve
from workbench.splits import Splits
from workbench.task import encode

ROUNDS = 15
WARM_UP = 3
SHAPES = [config for config in twelve() if config.seed == 0]
ENGINES = ("plain", "eager", "compiled", "native")


def step_flops(shape: Architecture, batch: int) -> int:
    """Floating-point operations of the matrix products that one step cannot do without: forward, and twice that back.

    The first layer's queries, keys and values come from tables; the last layer's queries, output and MLP exist at the
    five answer positions only; of a query and a key only causal pairs count.
    """
    width = shape.n_heads * shape.d_head
    mlp = (3 if shape.mlp == "bilinear" else 2) * shape.d_model * shape.d_mlp
    products = 5 * shape.d_model * shape.d_vocab
    for layer in range(shape.n_layers):
        queries = range(10, 15) if layer == shape.n_layers - 1 else range(15)
        products += sum(2 * (query + 1) * width for query in queries)
        products += len(queries) * (width * shape.d_model + mlp)
        if layer:
            products += (len(queries) + 2 * 15) * shape.d_model * width
    return 3 * 2 * batch * products


def matmul_flops_a_second(size: int = 768) -> float:
    """Speed of one square float32 matrix product."""
    a = torch.randn(size, size)
    began = time.perf_counter()
    a @ a
    return 2 * size**3 / (time.perf_counter() - began)


def stepper(config: RunConfig, engine: str) -> Callable[[], None]:
    """A function that does one whole training step."""
    weights = initial_weights(config.architecture, config.recipe.init, config.seed)
    parameters = [weight.requires_grad_() for weight in weights.values()]
    optimizer = torch.optim.AdamW(parameters, lr=config.recipe.lr, fused=True)
    loss, splits = choice.engine(engine).loss, Splits()

    def step() -> None:
        tokens = torch.from_numpy(encode(splits.batch(0, config.recipe.batch_size)))
        optimizer.zero_grad()
        loss(weights, tokens, config.architecture).backward()
        torch.nn.utils.clip_grad_norm_(parameters, config.recipe.grad_clip)
        optimizer.step()

    return step


def available(engine: str) -> str:
    """Why an engine cannot run here; empty when it can."""
    return choice.unavailable(RunConfig(engine=engine))  # type: ignore[arg-type]


def medians(steps: dict[Any, Callable[[], None]], rounds: int) -> dict[Any, float]:
    """Median seconds of each function and, under "matmul", operations a second of the matrix product, all by turns."""
    seconds: dict[Any, list[float]] = {name: [] for name in steps}
    ceilings = []
    for _ in range(rounds + WARM_UP):
        ceilings.append(matmul_flops_a_second())
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - began)
    found = {name: statistics.median(values[WARM_UP:]) for name, values in seconds.items()}
    return found | {"matmul": statistics.median(ceilings[WARM_UP:])}


def measure(rounds: int = ROUNDS, engines: tuple[str, ...] = ENGINES) -> list[dict[str, Any]]:
    """A row for each shape and engine: milliseconds, ratio to plain, and how many times the arithmetic's own time."""
    torch.set_num_threads(1)
    running = [engine for engine in engines if not available(engine)]
    rows = []
    for config in SHAPES:
        found = medians({engine: stepper(config, engine) for engine in running}, rounds)
        floor = step_flops(config.architecture, config.recipe.batch_size) / found["matmul"]
        shape = f"{config.architecture.mlp} {config.architecture.n_layers}-layer"
        for engine in running:
            rows.append({
                "shape": shape, "engine": engine, "ms": 1000 * found[engine], "ratio": found["plain"] / found[engine],
                "floor_ms": 1000 * floor, "times_floor": found[engine] / floor, "rounds": rounds,
                "matmul_gflops": found["matmul"] / 1e9,
            })  # fmt: skip
    return rows


def grid_minutes(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Minutes of one core that the steps of the twelve take, by engine."""
    steps = 3 * Recipe().steps
    return {
        engine: steps * sum(row["ms"] for row in rows if row["engine"] == engine) / 60_000
        for engine in dict.fromkeys(row["engine"] for row in rows)
    }


def main() -> None:
    """Print the table and what it means for the grid."""
    rows = measure()
    minutes, left_out = grid_minutes(rows), {engine: why for engine in ENGINES if (why := available(engine))}
    if "--json" in sys.argv[1:]:
        print(json.dumps({"steps": rows, "grid_minutes_of_one_core": minutes, "left_out": left_out}, indent=2))
        return
    for row in rows:
        print(
            f"{row['shape']:18} {row['engine']:9} {row['ms']:7.2f} ms a step  {row['ratio']:5.2f}x plain  "
            f"{row['times_floor']:5.1f} times the {row['floor_ms']:.2f} ms of its arithmetic at matmul speed"
        )
    for engine, value in minutes.items():
        print(f"steps of the twelve by {engine}: {value:.0f} minutes of one core")
    for engine, why in left_out.items():
        print(f"left out: {engine}: {why}")


if __name__ == "__main__":
    main()
