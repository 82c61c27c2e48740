"""Predictions by the kernels and by torch, against their definition."""

from pathlib import Path

import numpy as np
import pytest

from workbench import checkpoint, generation
from workbench.exhaustive import digits
from workbench.exhaustive.digits import BLOCK, Predictor
from workbench.native import library
from workbench.recipe import Architecture
from workbench.task import Problems, encode

ROOT = Path(__file__).parents[3]
WAYS = [pytest.param(True, marks=pytest.mark.skipif(bool(library.missing()), reason=library.missing())), False]


def predictor(name, kernels=False, hide_sign=False):
    one = checkpoint.read(ROOT / "checkpoints" / name)
    made = Predictor.of(one.weights, one.config.architecture, hide_sign)
    return Predictor(made.arrays, made.architecture, hide_sign, kernels, made._wide)


@pytest.mark.parametrize("kernels", WAYS)
@pytest.mark.parametrize(
    ("name", "block"), [("arithmetic-relu-1layer-seed0", 937), ("arithmetic-bilinear-2layer-seed1", 3)]
)
def test_every_digit_is_the_plain_forwards(name, block, kernels):
    made = predictor(name, kernels)
    chosen = np.sort(np.random.default_rng(0).choice(BLOCK, 1_500, replace=False))
    problems = Problems.from_index((block * BLOCK + chosen).astype(np.uint32))
    exact = made.plain(encode(problems))
    if kernels:
        found, near = made.block(block)
        found, near = found[chosen], near[chosen]
        assert near.any() or name != "arithmetic-relu-1layer-seed0"
        assert (found == exact).all()
    else:
        found, near = made._by_torch(encode(problems))
        assert (found == exact)[~near].all()
    assert (made.exact(encode(problems)) == exact).all()


def test_the_kernels_are_left_for_other_widths():
    shape = Architecture(n_layers=1, d_mlp=8)
    arrays = {name: np.zeros(dims, np.float32) for name, dims in shape.shapes.items()}
    assert Predictor.of(arrays, shape, False).by == "torch"


@pytest.mark.parametrize("hide_sign", [False, True])
@pytest.mark.parametrize("kernels", WAYS)
def test_generated_answers_are_those_of_greedy_generation(kernels, hide_sign):
    made = predictor("arithmetic-bilinear-1layer-seed0", kernels, hide_sign)  # often wrong, so that it matters
    problems = Problems.from_index(np.random.default_rng(3).integers(0, 200_000_000, 300).astype(np.uint32))
    reference = generation.generate(made._wide, made.architecture, problems, hide_sign=hide_sign).tokens[:, 1:]
    found = made.generated(problems)
    assert (found == reference).all()
    assert (found != made.exact(encode(problems, hide_sign=hide_sign))).any()  # what follows a wrong digit differs


@pytest.mark.skipif(bool(library.missing()), reason=library.missing())
def test_ties_even_in_float64_go_to_the_plain_forward(monkeypatch):
    made = predictor("arithmetic-relu-1layer-seed0", True)
    asked = []
    plain = Predictor.plain
    monkeypatch.setattr(digits, "TIED", 0.5)
    monkeypatch.setattr(Predictor, "plain", lambda self, tokens: asked.append(len(tokens)) or plain(self, tokens))
    tokens = encode(Problems.from_index(np.arange(150_000_000, 150_000_040, dtype=np.uint32)))
    assert (made.exact(tokens) == plain(made, tokens)).all() and sum(asked) > 0
