import dataclasses
import math

import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.fitting_options import Trial
from workbench.hill.fitting_trial import CASES, ask, run, stream
from workbench.hill.operations import OPERATIONS, operation

SHORT = Trial(samples=6400)


@pytest.mark.parametrize("name", ["add", "subtract", "negation", "multiply", "divide", "reciprocal", "cos", "sin-sum"])
def test_training_reaches_the_selection(name):
    seen = []
    outcome = run(name, dataclasses.replace(SHORT, low=0.01), seen.append)
    assert outcome.reached
    assert outcome.last.snapped == OPERATIONS[name].selection
    assert OPERATIONS[name].selection != outcome.last.W  # training came near, snapping did the rest
    assert seen[-1] == outcome.last
    assert all(one.snapped != outcome.last.snapped for one in seen[:-1])
    assert [one.steps for one in seen] == list(range(1, len(seen) + 1))


def test_division_is_right_to_the_last_bit_on_the_reports_three_cases():
    outcome = run("divide", Trial())
    assert outcome.last.snapped == (1.0, -1.0)
    assert [one.operands for one in outcome.answers] == [(713.534, -0.13), (-0.252, -5244.0), (325751.0, -161800.0)]
    assert [one.unit for one in outcome.answers] == [713.534 / -0.13, -0.252 / -5244.0, 325751.0 / -161800.0]
    assert [one.ulps for one in outcome.answers] == [0, 0, 0]


def test_a_unary_operation_learns_to_ignore_a_second_input_that_varies():
    one = stream("identity", SHORT)
    assert len(one.x[:, 1].unique()) > 6000
    assert torch.equal(one.y, one.x[:, 0])


def test_what_is_not_reached_is_said():
    outcome = run("multiply", dataclasses.replace(SHORT, optimizer="sgd", lr=1e-12, epochs=1))
    assert not outcome.reached
    assert outcome.last.epochs == 1.0
    assert outcome.last.snapped == (0.0, 0.0)
    assert [one.unit for one in outcome.answers] == [1.0, 1.0, 1.0]  # a^0 b^0


def test_answers_count_ulps():
    said = ask(operation("add"), torch.tensor([1.0, 1.0 - 2.0**-52], dtype=torch.float64))
    assert [one.native for one in said] == [a + b for a, b in CASES]
    assert said[1].ulps == 1  # -0.252 - 5244 (1 - 2^-52), where an ulp is 2^-40 and the change 5244 x 2^-52
    unary = ask(operation("cos"), torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert [one.operands for one in unary] == [(713.534,), (-0.252,), (325751.0,)]
    assert unary[0].unit == pytest.approx(math.cos(713.534), rel=1e-15)


def test_a_range_without_answers_is_bad_input():
    with pytest.raises(BadInput, match="multiply has no finite answers from 1e.200 to 1e.250; choose another"):
        stream("multiply", dataclasses.replace(SHORT, low=1e200, high=1e250))


def test_a_trial_is_a_function_of_its_seed():
    ends = [run("subtract", dataclasses.replace(SHORT, seed=seed)) for seed in (0, 0, 1)]
    assert ends[0] == ends[1]
    assert ends[0].W_hat != ends[2].W_hat
