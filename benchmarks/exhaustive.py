"""Whole-domain evaluation: its speed beside the plain forward's, and whether its predictions are the plain forward's.

Speed: blocks spread over the domain, counted as `workbench evaluate --exhaustive` counts them, a thread a core; the
plain float32 and float64 forwards beside them, one core times the cores. Agreement (with --agree N): every
block is predicted, and N random problems of the domain are predicted by the plain float64 forward too.

python -m benchmarks.exhaustive CHECKPOINT... [--agree N] [--json]
"""

import argparse
import json
import os
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench import checkpoint, forward
from workbench.exhaustive import run
from workbench.exhaustive.digits import BLOCK, Predictor
from workbench.exhaustive.state import BLOCKS
from workbench.task import DOMAIN_SIZE, Problems, encode

JOBS = os.cpu_count() or 1
TIMED_BLOCKS = 16  # spread evenly: half additions, half subtractions
PLAIN_PROBLEMS = 10_000


def predictor_of(path: Path) -> Predictor:
    """The predictions of the checkpoint at `path`."""
    one = checkpoint.read(path)
    return Predictor.of(one.weights, one.config.architecture, one.config.problems == "sign-hidden")


def plain_rate(predictor: Predictor, dtype: torch.dtype) -> float:
    """Problems a second of the plain forward on all cores, from one core's."""
    tokens = torch.from_numpy(encode(Problems.from_index(np.arange(PLAIN_PROBLEMS, dtype=np.uint32))))
    weights = forward.tensors(predictor.arrays, dtype)
    began = time.perf_counter()
    with torch.no_grad():
        for part in tokens.split(2_000):
            forward.logits(weights, part[:, :15], predictor.architecture)
    return JOBS * PLAIN_PROBLEMS / (time.perf_counter() - began)


def speed(predictor: Predictor) -> dict[str, float]:
    """Problems a second on all cores: counting, and the plain forwards."""
    blocks = np.linspace(0, BLOCKS - 1, TIMED_BLOCKS).round().astype(int).tolist()
    began = time.perf_counter()
    with ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(lambda block: run.count_block(predictor, block, "all"), blocks))
    counted = TIMED_BLOCKS * BLOCK / (time.perf_counter() - began)
    return {
        "problems_a_second": counted,
        "plain_float32": plain_rate(predictor, torch.float32),
        "plain_float64": plain_rate(predictor, torch.float64),
    }


def disagreements(predictor: Predictor, count: int, seed: int = 0, blocks: int = BLOCKS) -> int:
    """Digits, of `count` random problems, that the plain float64 forward predicts otherwise."""
    index = np.sort(np.random.default_rng(seed).choice(DOMAIN_SIZE // BLOCKS * blocks, count, replace=False))
    edges = np.searchsorted(index, np.arange(blocks + 1) * BLOCK)

    def different(block: int) -> int:
        asked = index[edges[block] : edges[block + 1]].astype(np.uint32)
        if not len(asked):
            return 0
        digits, _ = predictor.block(block)
        plain = predictor.plain(encode(Problems.from_index(asked), hide_sign=predictor.hide_sign))
        return int((digits[asked - np.uint32(block * BLOCK)] != plain).sum())

    with ThreadPoolExecutor(JOBS) as pool:
        return sum(pool.map(different, range(blocks)))


def main() -> None:
    """Print a line a checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="+", type=Path)
    parser.add_argument("--agree", type=int, default=0, metavar="N")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for path in asked.checkpoints:
        predictor = predictor_of(path)
        row: dict[str, Any] = {"model": path.name, "by": predictor.by, "cores": JOBS, **speed(predictor)}
        if asked.agree:
            row |= {"problems_compared": asked.agree, "digits_different": disagreements(predictor, asked.agree)}
        row["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rows.append(row)
        if not asked.json:
            print(_line(row), flush=True)
    if asked.json:
        print(json.dumps(rows, indent=2))


def _line(row: dict[str, Any]) -> str:
    ratio = row["problems_a_second"] / row["plain_float32"]
    text = (
        f"{row['model']:34} by {row['by']}: {row['problems_a_second']:,.0f} problems a second on {row['cores']} cores, "
        f"{ratio:.1f}x the plain float32 forward; peak {row['peak_gib']:.2f} GiB"
    )
    if "digits_different" in row:
        text += f"; of {5 * row['problems_compared']:,} digits {row['digits_different']} differ from plain float64"
    return text


if __name__ == "__main__":
    main()
