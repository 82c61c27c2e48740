import importlib.util
from pathlib import Path

import pytest

from workbench.recipe import Architecture

spec = importlib.util.spec_from_file_location("training", Path(__file__).parents[2] / "benchmarks" / "training.py")
training = importlib.util.module_from_spec(spec)
spec.loader.exec_module(training)


def test_operations_of_a_step_by_hand():
    # one relu layer, a position: Q, K, V, O 4 x 32 x 32, scores and z 2 x 15 x 32, MLP 2 x 32 x 64, unembedding 32 x 13
    a_position = 4096 + 960 + 4096 + 416
    assert training.step_flops(Architecture(n_layers=1), batch=10) == 3 * 2 * 10 * 15 * a_position
    more = training.step_flops(Architecture(mlp="bilinear", n_layers=1), batch=10)
    assert more - training.step_flops(Architecture(n_layers=1), batch=10) == 3 * 2 * 10 * 15 * 32 * 64


def test_a_step_changes_the_weights_it_is_given(monkeypatch):
    seen = {}
    make = training.initial_weights
    monkeypatch.setattr(training, "initial_weights", lambda *words: seen.setdefault("w", make(*words)))
    step = training.stepper(training.SHAPES[0])
    before = seen["w"]["unembed.W_U"].detach().clone()
    step()
    assert seen["w"]["unembed.W_U"].detach() != pytest.approx(before)
