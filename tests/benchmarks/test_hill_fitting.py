import importlib.util
from pathlib import Path

import pytest
import torch

from workbench.hill.fitting import fit

spec = importlib.util.spec_from_file_location(
    "hill_fitting", Path(__file__).parents[2] / "benchmarks" / "hill_fitting.py"
)
hill_fitting = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hill_fitting)


def test_the_stacks_are_those_of_the_two_tables():
    streams, units = hill_fitting.initialisation()
    assert (len(streams), len(units)) == (120, 600)
    assert {stream.target.primitive for stream in streams} == {
        "additive", "exponential", "unit-circle", "trigonometric-products"
    }  # fmt: skip
    assert [str(one) for one in hill_fitting.optimizers_of(units)] == ["Adam lr=0.1 betas=(0.9, 0.5)"]
    streams, units = hill_fitting.comparison()
    assert (len(streams), len(units)) == (200, 200)
    assert sum(bool((stream.x < 0).any()) for stream in streams) == 80
    assert [str(one) for one in hill_fitting.optimizers_of(units)] == ["RMSprop alpha=0.9 eps=1e-10"]


def test_the_loop_trains_the_unit_that_the_stack_trains(monkeypatch):
    monkeypatch.setattr(hill_fitting, "STEPS", 5)
    streams, units = hill_fitting.comparison()
    for place in (0, 6, 7):  # additive; multiply and divide with negative inputs
        loop, raw = hill_fitting.one_unit(streams[place], units[place], 5)
        loop()
        found = fit(streams, [units[place]], epochs=1)
        assert raw[0].detach() == pytest.approx(found.W_hat[0], rel=1e-9)
        assert raw[1].detach() == pytest.approx(found.M_hat[0], rel=1e-9)


def test_the_ratio_is_loop_time_times_units_over_stack_time(monkeypatch):
    monkeypatch.setattr(hill_fitting, "STEPS", 5)
    ticks = iter(range(1000))
    monkeypatch.setattr(hill_fitting.time, "process_time", lambda: float(next(ticks)))
    streams, units = hill_fitting.comparison()
    whole, single, ratio = hill_fitting.measure(streams[:4], units[:4], rounds=1)
    assert (whole, single) == (1 / 5, 1 / 5)  # every timed action takes one tick
    assert ratio == 4.0
    assert torch.get_num_threads() >= 1
