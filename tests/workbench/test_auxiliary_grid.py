"""The runs with heads are those that were written down, and the rules pick what they say."""

import itertools
import math
from collections import Counter
from pathlib import Path

import pytest

from workbench import auxiliary_grid as runs
from workbench import sweeps
from workbench.recipe import Auxiliary, twelve

SWEEP = Path(__file__).parents[2] / "checkpoints" / "sweeps" / "auxiliary-weight"
HEADS = ("additive", "digitwise", "carry")


def test_the_weights_sweep_is_what_was_written_down():
    points = Counter(
        (c.auxiliary.head, c.auxiliary.head_weight, c.architecture.mlp, c.architecture.n_layers)
        for c in runs.weight_sweep().values()
        if c.auxiliary.head_weight
    )
    assert set(points) == set(itertools.product(HEADS, (0.1, 1.0, 10.0), ("relu", "bilinear"), (1, 2)))
    assert set(points.values()) == {1} and len(runs.weight_sweep()) == 40
    assert {(c.seed, c.recipe.steps, c.auxiliary.head_form) for c in runs.weight_sweep().values()} == {
        (100, 1200, "frozen")
    }


def test_the_rule_takes_the_lowest_mean_logarithm():
    losses = {(w, n): loss for w, pair in {0.1: (0.1, 0.4), 1.0: (0.01, 2.0), 10.0: (0.3, 0.3)}.items()
              for n, loss in zip("ab", pair, strict=True)}  # fmt: skip
    assert runs.picked_weight(losses) == 1.0  # geometric means 0.2, 0.141, 0.3, though its mean is the largest
    assert runs.picked_weight(losses | {(1.0, "b"): math.inf}) == 0.1  # it diverged
    assert runs.picked_weight(dict.fromkeys(losses, 1.0)) == 0.1  # a tie


def test_the_committed_sweep_picks_the_weight_of_the_grid():
    courses = sweeps.read_sweep(SWEEP, runs.weight_sweep, "auxiliary-weights")
    best = {(c.config.auxiliary.head_weight, name): c.best for name, c in courses.items()}
    counted = {key: loss for key, loss in best.items() if key[0]}
    assert len(counted) == 36 and runs.picked_weight(counted) == runs.WEIGHT


def test_the_grid_is_the_twelve_with_seven_heads():
    found = runs.main_runs(0.5)
    assert len(found) == 84
    kinds = Counter((c.auxiliary.head, c.auxiliary.head_form, c.auxiliary.head_weight) for c in found.values())
    expected = {(head, form, 0.5) for head in HEADS for form in ("frozen", "trainable")} | {
        ("digitwise", "frozen", 0.0)
    }
    assert set(kinds) == expected and set(kinds.values()) == {12}
    assert {runs._without(c) for c in found.values()} == set(twelve())
    assert "arithmetic-relu-1layer-none-seed0" in found and "arithmetic-bilinear-2layer-carry-trainable-seed2" in found


@pytest.mark.parametrize("best", HEADS)
def test_the_most_promising_head_is_that_of_the_lowest_mean_log_ratio_of_frozen_forms(best):
    losses = {}
    for name, config in runs.main_runs(0.5).items():
        head = config.auxiliary
        scale = 0.001 if config.architecture.n_layers == 2 else 1.0  # which a ratio does not see
        good = 0.5 if (head.head, head.head_form, head.head_weight) == (best, "frozen", 0.5) else 1.0
        tempting = 0.1 if head.head_form == "trainable" else 1.0
        losses[name] = scale * good * tempting
    assert runs.promising(losses, 0.5) == best


def test_the_controls_and_the_sweep_of_one_decoder():
    found = runs.control_runs("carry", 0.1)
    assert len(found) == 24 + 9 + 1
    assert not found.keys() & runs.main_runs(0.1).keys()
    forms = Counter(c.auxiliary.head_form for c in found.values())
    assert forms == {"linear": 12, "random": 12, "frozen": 10}
    swept = [c for c in found.values() if c.auxiliary.head_form == "frozen"]
    assert {runs._without(c) for c in swept} == {twelve()[0]}
    constant = {c.auxiliary.head_weight for c in swept if c.auxiliary.head_schedule == "constant"}
    decay = {c.auxiliary.head_weight for c in swept if c.auxiliary.head_schedule == "decay"}
    assert decay == {0.01, 0.1, 1.0, 10.0, 100.0} and constant == decay  # 0.1 constant at the other site
    assert [c.auxiliary for c in swept if c.auxiliary.head_site != "resid_mid"] == [
        Auxiliary(head="carry", head_weight=0.1, head_site="resid_post")
    ]
