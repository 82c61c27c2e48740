import importlib.util
from pathlib import Path

import pytest
import torch

from workbench.recipe import Architecture

spec = importlib.util.spec_from_file_location("training", Path(__file__).parents[2] / "benchmarks" / "training.py")
training = importlib.util.module_from_spec(spec)
spec.loader.exec_module(training)


def test_operations_of_a_step_by_hand():
    # One layer at five positions: 11 to 15 keys each, for scores and again for z, 32 wide; W_O; the MLP; unembedding.
    one = 2 * 65 * 32 + 5 * 32 * 32 + 5 * 2 * 32 * 64 + 5 * 32 * 13
    assert training.step_flops(Architecture(n_layers=1), batch=10) == 3 * 2 * 10 * one
    more = training.step_flops(Architecture(mlp="bilinear", n_layers=1), batch=10)
    assert more == 3 * 2 * 10 * (one + 5 * 32 * 64)
    # Before it a whole layer: 120 causal pairs, 15 positions; the last one now also makes its own Q, K and V.
    first = 2 * 120 * 32 + 15 * 32 * 32 + 15 * 2 * 32 * 64
    assert training.step_flops(Architecture(n_layers=2), batch=10) == 3 * 2 * 10 * (one + first + (5 + 30) * 32 * 32)


@pytest.mark.parametrize("engine", [e for e in training.ENGINES if e != "compiled" and not training.available(e)])
def test_a_step_changes_the_weights_it_is_given(engine, monkeypatch):
    seen = {}
    make = training.initial_weights
    monkeypatch.setattr(training, "initial_weights", lambda *words: seen.setdefault("w", make(*words)))
    step = training.stepper(training.SHAPES[0], engine)
    before = seen["w"]["unembed.W_U"].detach().clone()
    step()
    assert not torch.equal(seen["w"]["unembed.W_U"].detach(), before)


def test_every_engine_of_every_shape_has_a_row(monkeypatch):
    monkeypatch.setattr(training, "stepper", lambda config, engine: lambda: None)
    monkeypatch.setattr(training, "available", lambda engine: "")
    rows = training.measure(rounds=1)
    assert [(row["shape"], row["engine"]) for row in rows[:5]] == [
        ("relu 1-layer", "plain"), ("relu 1-layer", "eager"), ("relu 1-layer", "compiled"), ("relu 1-layer", "native"),
        ("relu 2-layer", "plain"),
    ]  # fmt: skip
    assert len(rows) == 16 and all(row["ratio"] == 1 for row in rows if row["engine"] == "plain")
    fixed = [{**row, "ms": 10.0} for row in rows]
    assert training.grid_minutes(fixed)["native"] == pytest.approx(3 * 4883 * 4 * 10 / 60_000)
