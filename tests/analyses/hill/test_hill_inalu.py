import copy

import numpy as np
import pytest
import torch

from analyses.hill import _hill_inalu_runs as training
from analyses.hill import _hill_inalu_tables as tables
from analyses.hill import hill_inalu as module
from analyses.hill._report_protocol import SAMPLES, Run, problem_sets
from analyses.published import load
from workbench import analysis
from workbench.errors import BadInput
from workbench.hill.constraint import constrain_snapped
from workbench.hill.fitting import Stream, Target, Unit, fit

SMALL = {"SAMPLES": 1280, "CHECK_SAMPLES": 128, "TOGETHER": 3}
OPTIONS = module.Options(seeds=2, epochs=40, lottery_seeds=4)


def run_small(patch):
    for name, value in SMALL.items():
        patch.setattr(training, name, value)
    return module.hill_inalu.function([], OPTIONS)


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        yield run_small(patch)


def test_a_published_lottery_is_won_at_the_published_epoch_with_the_published_error():
    """Division on U(-5, 5), seed 52505, won in the epoch numbered 6 from 0; nine seeds of ten lose."""
    seed, name = 52505, "divide"
    published = {(r["distribution"], r["operation"], r["seed"]): r for r in load("hill")["raw_4_3_lottery_runs"]}
    expected = published["U(-5,5)", name, seed]
    train, test = training.RANGES["U(-5,5)"]
    run = Run(seed, [name], torch_seed=seed + 1000, checked=training.checked)
    (x, y), check = (
        problem_sets([name], of, s, n)[name] for of, s, n in ((train, seed, SAMPLES), (test, seed + 1000, 5000))
    )
    stop = lambda stack: training.mse(name, stack.W, check, "complex") < 1e-14  # noqa: E731
    found = fit([Stream(Target.of(name), x, y, run.order(name))], [Unit((0,), training.RMSPROP)], epochs=20, stop=stop)
    assert int(found.epochs[0]) - 1 == expected["matched_epochs"] == 6
    W = constrain_snapped(found.W_hat, found.M_hat)
    assert W.tolist() == [[1.0, -1.0]]
    error = training.mse(name, W, problem_sets([name], test, seed, SAMPLES)[name], "complex")
    assert error.item() == pytest.approx(expected["matched_mse"], rel=1e-3, abs=0)  # a floor of complex powers


def test_every_range_operation_and_training_is_there(small):
    runs = small.tables["runs"]
    assert len(runs) == 2 * 4 * 4 * 2
    assert runs.groupby(["distribution", "operation", "training"]).size().eq(2).all()
    universal = runs[runs["training"] == "universal"]
    weights = universal.groupby(["operation", "seed"])["W1"].nunique()
    assert (weights == 1).all()  # one universal unit for all ranges
    assert len(small.tables["cells"]) == 32
    assert len(small.tables["lottery-runs"]) == 4 * 4


def test_additions_are_exact_against_float64_once_snapped(small):
    runs = small.tables["runs"]
    right = runs[runs["right"]]
    assert len(right) > 30
    assert (right["mse_float64"] == 0).all()
    assert (right["mse"] > 0).all()
    assert (right[["snapped1", "snapped2"]].abs() == 1).all(axis=None)


def test_no_measured_column_reads_the_published_numbers(small, monkeypatch):
    noise = np.random.default_rng(0)

    def spoiled(value):
        if isinstance(value, dict):
            return {key: spoiled(one) for key, one in value.items()}
        if isinstance(value, list):
            return [spoiled(one) for one in value]
        return value if isinstance(value, str | int | bool | None) else value * noise.lognormal(0, 9)

    monkeypatch.setattr(tables, "load", lambda name: spoiled(copy.deepcopy(load(name))))
    again = run_small(monkeypatch)
    for name in ("runs", "lotteries", "lottery-runs"):
        assert again.tables[name].equals(small.tables[name])
    measured = [name for name in small.tables["cells"] if name not in ("published", "inalu", "agrees", "spread_agrees")]
    assert {"mean", "low", "high", "measured", "float64", "right"} <= set(measured)
    assert again.tables["cells"][measured].equals(small.tables["cells"][measured])
    theirs = ["published_mse"]
    assert not again.tables["published-lotteries"][theirs].equals(small.tables["published-lotteries"][theirs])


def test_it_reads_back_equal_and_tells_that_it_is_short(small, tmp_path):
    analysis.save(small, tmp_path, analysis_name="hill-inalu", options=OPTIONS)
    assert analysis.load(tmp_path) == small
    assert small.findings[0].text.startswith("A short run: 2 of 10 seeds, at most 40 epochs of 100.")


def test_lotteries_do_not_depend_on_how_many_seeds_share_a_stack(small, monkeypatch):
    monkeypatch.setattr(training, "SAMPLES", SMALL["SAMPLES"])
    alone = training.lottery_units(range(4), module.LOTTERY_EPOCHS)
    assert tables.lottery_runs(alone).equals(small.tables["lottery-runs"])


def trained(name="multiply", on="U(-5,5)", W=(0.8, -0.5), converged=False, epochs=20):
    return training.Trained(on, name, 0, W, (round(W[0]), round(W[1])), epochs, converged)


def test_odds_and_where_losers_end():
    units = [trained(converged=True, W=(1.0, 1.0), epochs=3), trained(), trained(W=(-0.7, 1.0))]
    units += [trained(name, on, converged=True) for on, name in training.LOTTERIES[1:]]
    first, *rest = tables.lotteries(units)
    assert (first["n"], first["won"], first["last_win_epoch"]) == (3, 1, 3)
    assert first["rate"] == pytest.approx(1 / 3)
    assert (first["losing_larger"], first["losing_smaller"]) == pytest.approx((0.9, -0.6))
    assert first["low"] < 1 / 3 < first["high"]
    assert all(row["rate"] == 1.0 and np.isnan(row["losing_larger"]) for row in rest)


def cell(lottery=False, agrees="yes", spread="yes"):
    row = {"distribution": "N(-3,3)", "operation": "add", "training": "matched", "lottery": lottery, "agrees": agrees}
    return row | {"spread_agrees": spread, "measured": "3e-30 ± 1e-32", "published": "4e-30 ± 2e-32"}


def test_the_verdict_on_the_cells_flips():
    good, lotteries = module.agreement([cell()] * 28 + [cell(lottery=True)] * 4)
    words = "28 of 28 cells besides the four lotteries agree to the printed digits of the mean"
    assert good.text == f"{words}, as asked; 28 of the spread."
    assert (lotteries.value, lotteries.n) == (4, 4)
    bad, lotteries = module.agreement([cell()] * 27 + [cell(agrees="no", spread="no"), cell(lottery=True, agrees="no")])
    assert "27 of 28 cells" in bad.text
    assert "TOO FEW; 27 of the spread. Not: N(-3,3) add matched: 3e-30 ± 1e-32, published 4e-30 ± 2e-32." in bad.text
    assert "0 of 1 lotteries" in lotteries.text


def test_single_runs_of_the_lotteries_are_compared_by_verdict_and_number():
    seeds = [
        (r["distribution"], r["operation"], r["seed"], r["matched_mse"]) for r in load("hill")["raw_4_3_lottery_runs"]
    ]
    rows = [
        {"distribution": on, "operation": name, "training": "matched", "seed": seed, "mse": mse}
        | {"right": mse < 1e-6, "epochs": 7}
        for on, name, seed, mse in seeds
    ]
    found = module.ten_lotteries(tables.beside_published(rows), whole=True)
    assert "40 of 40 runs of the four lotteries are won or lost as published; 40 have" in found.text
    rows[0] |= {"right": True, "mse": 1e-30}
    found = module.ten_lotteries(tables.beside_published(rows), whole=True)
    assert "39 of 40" in found.text
    assert "; 39 have the published error to 9 digits." in found.text


def test_cells_read_as_the_report_prints_them():
    values = {"E(0.8,0.5)": ("add", [6.6e-33, 6.8e-33]), "U(-5,5)": ("divide", [0.2, 0.1])}
    rows = [
        {"distribution": on, "operation": name, "training": "matched", "seed": seed, "mse": mse, "mse_float64": 0.0}
        | {"right": on != "U(-5,5)"}
        for on, (name, both) in values.items()
        for seed, mse in enumerate(both)
    ]
    first, second = tables.cells(rows, whole=True)
    assert (first["measured"], first["published"], first["agrees"]) == ("7e-33 ± 1e-34", "7e-33 ± 9e-35", "yes")
    assert (first["spread_agrees"], first["float64"], first["lottery"], first["right"]) == ("no", "0.0", False, 2)
    assert (second["measured"], second["agrees"], second["lottery"]) == ("0.15 ± 0.07", "no", True)
    assert [row["agrees"] for row in tables.cells(rows, whole=False)] == ["", ""]


def test_figures_show_every_cell_and_every_unit(small):
    matched, universal, inalu = small.figures["errors"].data
    assert (len(matched.x), len(universal.x), len(inalu.x)) == (16, 16, 12)
    assert min(inalu.y) == 1e-15
    traces = small.figures["lotteries"].data
    points = [trace for trace in traces if trace.name in ("won", "lost") and trace.showlegend is False]
    assert sum(len(trace.x) for trace in points) == 16
    rings = [trace for trace in small.figures["lotteries"].data if trace.marker.symbol == "circle-open"]
    assert [(ring.x[0], ring.y[0]) for ring in rings] == [(1, 1), (1, -1), (1, 1), (1, -1)]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seeds": 11}, "seeds is 11, expected 1 to 10"),
        ({"epochs": 0}, "epochs is 0, expected 1 to 100"),
        ({"lottery_seeds": 0}, "lottery_seeds is 0, expected 1 to 1000"),
    ],
)
def test_options_out_of_range_are_bad_input(changed, words):
    with pytest.raises(BadInput, match=words):
        module.Options(**changed)


def test_the_universal_units_stop_together_and_matched_ones_each_by_itself():
    class Stack:
        running = torch.tensor([True] * 6)
        W = torch.tensor([[1.0, 1.0]] * 6, dtype=torch.float64)
        history = torch.full((5, 6), 1e-15)

    jobs = [training._Job("U(-5,5)", name, 1) for name in ("add", "multiply")]
    jobs += [training._Job("universal", name, 1) for name in training.OPERATIONS]
    x = torch.tensor([[2.0, 3.0]], dtype=torch.float64)
    check = [(x, torch.tensor([y], dtype=torch.float64)) for y in (5.0, 7.0, 5.0, -1.0, 6.0, 6.0)]
    stack = Stack()
    assert training._ended(stack, jobs, None).tolist() == [True] * 6  # five calm epochs
    stack.history = stack.history[:4]
    assert training._ended(stack, jobs, None).tolist() == [False] * 6
    assert training._ended(stack, jobs, check).tolist() == [True] + [False] * 5  # 2 x 3 is not 7
    check[1] = check[4]
    assert (
        training._ended(stack, jobs, check).tolist() == [True, True] + [False] * 4
    )  # of the four, with [1, 1] everywhere, 2 + 3 is not -1
    check[3] = check[2]
    assert training._ended(stack, jobs, check).tolist() == [True] * 6
    stack.history = torch.full((5, 6), 1e-15)
    stack.history[2, 3] = 1e-13  # one operation spoils the mean of the four
    assert training._ended(stack, jobs, None).tolist() == [True, True] + [False] * 4
    stack.running = torch.tensor([False, True, False, False, False, False])
    assert training._ended(stack, jobs, None).tolist() == [False, True] + [False] * 4
