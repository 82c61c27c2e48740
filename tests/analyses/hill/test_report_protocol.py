"""The report's random numbers, against the libraries they came from and against its published results."""

import random
from decimal import Decimal

import numpy as np
import pytest
import scipy.stats
import torch
from torch.utils.data import DataLoader, TensorDataset

from analyses.hill import _report_protocol as protocol
from analyses.hill._hill_initialisation_runs import EXTREME, mse
from analyses.hill._report_protocol import GOLDILOCKS, Distribution, Run, inputs, problem_sets, targets
from analyses.published import load

SEED = 9002
NAMES = ["add", "power-identity", "cos"]


def test_batches_come_in_the_order_of_torchs_loader_and_pythons_shuffle():
    samples, checked = 640, lambda epoch: epoch != 1
    run = Run(SEED, NAMES, torch_seed=SEED + 1000, samples=samples, checked=checked)
    orders, turns = {name: run.order(name) for name in NAMES}, run.turns(["power-identity", "cos"])
    shuffler = random.Random(SEED)  # as the global one after random.seed; beartype draws from that
    with torch.random.fork_rng():
        torch.manual_seed(SEED + 1000)
        drawn = [torch.randn(2, 1, dtype=torch.float64) for _ in range(22)]
        assert run.start("multiply", 3.0) == tuple(tuple((3 * values[:, 0]).tolist()) for values in drawn[:2])
        assert run.start("cos", 1.0) == tuple(tuple(values[:, 0].tolist()) for values in drawn[8:10])
        loader = DataLoader(TensorDataset(torch.arange(samples)), batch_size=64, shuffle=True, drop_last=True)
        for epoch in range(4):
            mixed = [(name, batch) for name in NAMES for (batch,) in loader]
            shuffler.shuffle(mixed)
            for name in NAMES:
                own = torch.stack([batch for whose, batch in mixed if whose == name])
                assert torch.equal(orders[name](epoch), own)
            shared = [whose == "cos" for whose, _ in mixed if whose != "add"]
            assert turns(epoch).bool().tolist() == shared
            if checked(epoch):
                [list(loader) for _ in NAMES]


def test_unmixed_batches_are_those_of_the_loader_alone():
    run = Run(42, ["add"], torch_seed=42, samples=640, mixed=False)
    with torch.random.fork_rng():
        torch.manual_seed(42)
        [torch.randn(2, 1, dtype=torch.float64) for _ in range(22)]
        loader = DataLoader(TensorDataset(torch.arange(640)), batch_size=64, shuffle=True)
        for epoch in range(2):
            assert torch.equal(run.order("add")(epoch), torch.stack([batch for (batch,) in loader]))


def test_inputs_are_those_of_numpys_legacy_generator():
    legacy = np.random.RandomState(SEED)
    x1, x2 = legacy.uniform(1e-8, 10.0, 500), legacy.uniform(1e-8, 10.0, 500)
    order = legacy.permutation(500)
    found = inputs("add", GOLDILOCKS, np.random.RandomState(SEED), 500)
    assert (found == np.stack([x1[order], x2[order]], axis=1)).all()
    assert (inputs("cos", GOLDILOCKS, np.random.RandomState(SEED), 500)[:, 1] == 1).all()


def test_the_truncated_normal_is_scipys():
    found = Distribution("normal", 8.0, 10.0).draw(np.random.RandomState(SEED), 1000)
    expected = scipy.stats.truncnorm(-3, 3, loc=9, scale=1 / 3).rvs(1000, random_state=np.random.RandomState(SEED))
    assert found == pytest.approx(expected, rel=1e-14)
    scale = Distribution("exponential", 0.8, 0.8).draw(np.random.RandomState(SEED), 1000)
    assert (scale == np.random.RandomState(SEED).exponential(0.8, 1000)).all()


def test_ratios_of_a_division_are_kept_within_bounds_by_redrawing():
    wide = Distribution("uniform", -1e-5, 1.0)
    plain = inputs("multiply", wide, np.random.default_rng(0), 50_000)
    kept = inputs("divide", wide, np.random.default_rng(0), 50_000)
    ratio, before = np.abs(kept[:, 0] / kept[:, 1]), np.abs(plain[:, 0] / plain[:, 1])
    wrong = (before > 1e3) | (before < 1e-3) | (np.abs(plain[:, 1]) < 1e-6)
    assert wrong.sum() > 20
    assert ratio.max() <= 1e3 * (1 + 1e-12)
    assert ratio.min() >= 1e-3 * (1 - 1e-12)
    assert (kept[~wrong] == plain[~wrong]).all()
    assert (kept[wrong] != plain[wrong]).any(axis=1).all()


def test_targets_go_through_decimals_only_when_asked():
    x = inputs("add", GOLDILOCKS, np.random.default_rng(0), 400)
    for name, exact in (("add", Decimal.__add__), ("subtract", Decimal.__sub__), ("multiply", Decimal.__mul__)):
        found = targets(name, x, {})
        assert found.tolist() == [float(exact(Decimal(str(a)), Decimal(str(b)))) for a, b in x.tolist()]
        native = {"add": x[:, 0] + x[:, 1], "subtract": x[:, 0] - x[:, 1], "multiply": x[:, 0] * x[:, 1]}
        assert (targets(name, x) == native[name]).all()
    assert (targets("add", x, {}) != x.sum(axis=1)).sum() > 20  # the whole of the published floor of a + b
    assert (targets("reciprocal", x, {}) == 1 / x[:, 0]).all()
    assert (targets("cos-sum", x, {}) == np.cos(x[:, 0] + x[:, 1])).all()


@pytest.mark.parametrize(
    ("name", "selection", "rel"),
    [
        ("add", [1.0, 1.0], 1e-12),
        ("subtract", [1.0, -1.0], 1e-12),
        ("multiply", [1.0, 1.0], 1e-3),
        ("divide", [1.0, -1.0], 1e-3),
    ],
)
def test_the_published_floor_of_a_seed_is_found_to_the_digit(name, selection, rel):
    """Powers to the digits that complex powers of different libraries share."""
    published = next(row for row in load("hill")["raw_4_5_floor_per_seed"] if row["seed"] == SEED)
    data = problem_sets([name], EXTREME, SEED, protocol.SAMPLES)[name]
    found = mse(name, torch.tensor([selection], dtype=torch.float64), data, "complex")
    assert found.item() == pytest.approx(published[name], rel=rel, abs=0)


def test_decimals_are_shared_between_operations_without_changing_them():
    sets = problem_sets(["add", "divide"], GOLDILOCKS, 3, 200)
    for name, (x, y) in sets.items():
        assert torch.equal(problem_sets([name], GOLDILOCKS, 3, 200)[name][1], y)
        assert y.tolist() == targets(name, x.numpy(), {}).tolist()
