"""The sliced machine against the plain one: states, steps, flips, margin, and what occurred."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from workbench.ntk import kernel, sliced
from workbench.ntk.arithmetic import addition, multiplication
from workbench.ntk.machine import Machine
from workbench.ntk.sliced import Sliced
from workbench.ntk.templates import Layout, TemplateSet, template
from workbench.ntk.words import pack, unpack


def compared(templates, states, steps, form="ntk"):
    """The sliced run, after everything in it has been compared with the plain one's."""
    matched, points, seen = Counter(), set(), []

    def watch(at, step):
        matched.update(step.matched.tolist())
        codes = (step.matched[:, None] * 1000 + step.writers) * 1000 + templates.written
        points.update((code // 10**6, code // 1000 % 1000, code % 1000) for code in codes.unique().tolist())
        seen.append(step.states)

    plain = Machine(templates, form).run(states, steps, watch)
    found = Sliced(templates, form).run(pack(states), steps, lambda at, now: _equal(unpack(now), seen[at - 1]))
    assert torch.equal(unpack(found.states), plain.states)
    assert (found.steps, found.fixed, found.flips) == (plain.steps, plain.fixed, plain.flips)
    assert found.margin == plain.margin
    assert {m: int(n) for m, n in enumerate(found.survey.matched) if n} == dict(matched)
    assert found.survey.points == points
    return found


def _equal(a, b):
    assert torch.equal(a, b)


@pytest.fixture(params=[1, 4096])
def chunk(request, monkeypatch):
    monkeypatch.setattr(sliced, "CHUNK", request.param)


@pytest.mark.parametrize(("make", "form"), [(addition, "ntk"), (addition, "nngp"), (multiplication, "ntk")])
def test_arithmetic_is_the_same(chunk, make, form):
    algorithm = make(3)
    numbers = [torch.cat([column, column])[5:106] for column in algorithm.pairs(0, 64)]
    found = compared(algorithm.templates, algorithm.start(*numbers), algorithm.steps, form)
    assert torch.equal(algorithm.answer(unpack(found.states)), algorithm.exact(*numbers)) and found.flips == 0


def random_set(seed):
    """Conditions of one or two bits, labels of many, so that T and m are large for N and signs flip."""
    gen = torch.Generator().manual_seed(seed)
    layout = Layout({"s": 16})
    rules = []
    for _ in range(60):
        order = [("s", i) for i in torch.randperm(16, generator=gen).tolist()]
        literals = int(torch.randint(1, 3, (), generator=gen))
        rules.append(template(layout, "r", order[:literals], order[literals:][: literals - 1], order[-literals:]))
    return TemplateSet(layout, rules, padding=seed % 3 * 20), (torch.rand(150, 16, generator=gen) < 0.5).to(torch.uint8)


@pytest.mark.parametrize("seed", range(6))
def test_sets_whose_signs_flip_are_the_same(chunk, seed):
    templates, states = random_set(seed)
    found = compared(templates, states, 5)
    assert found.flips > 100


@pytest.mark.parametrize(("factor", "spoils"), [(-3.0, True), (0.0, False), (5.0, False), (1e6, True)])
def test_a_spoilt_leak_spoils_both_alike(monkeypatch, chunk, factor, spoils):
    leak = kernel.leak
    monkeypatch.setattr(kernel, "leak", lambda *args: factor * leak(*args))
    algorithm = addition(3)
    a, b = algorithm.pairs(0, 60)
    found = compared(algorithm.templates, algorithm.start(a, b), algorithm.steps)
    wrong = int((algorithm.answer(unpack(found.states)) != a + b).sum())
    assert (wrong > 0) == (found.flips > 0) == spoils
    monkeypatch.undo()
    asked = Sliced(algorithm.templates, leaking=factor).run(pack(algorithm.start(a, b)), algorithm.steps)
    assert torch.equal(unpack(asked.states), unpack(found.states))


def test_a_leak_without_a_match_reaches_no_state_that_is_not_there(monkeypatch):
    """With h_0 < 0 empty states come to life; those that only fill up the last word must not be counted."""
    leak = kernel.leak
    monkeypatch.setattr(kernel, "leak", lambda *args: leak(*args) - 1)
    algorithm = addition(2)
    compared(algorithm.templates, algorithm.start(*algorithm.pairs(0, 16)), 3)
    layout = Layout({"s": 1})
    hold = TemplateSet(layout, [template(layout, "hold", [("s", 0)], [], [("s", 0)])])
    assert compared(hold, torch.ones(10, 1, dtype=torch.uint8), 5).steps == 1


def test_parts_that_stand_still_go_on_flipping(monkeypatch):
    """40 templates hold bits, another bit's writer is outvoted; a chunk of empty states is fixed at once."""
    monkeypatch.setattr(sliced, "CHUNK", 1)
    layout = Layout({"s": 40, "x": 1, "c": 3})
    rules = [template(layout, "hold", [("s", i)], [], [("s", i), ("x", 0)] if i else [("s", 0)]) for i in range(40)]
    rules += [template(layout, "clock", [("c", i)], [], [("c", i + 1)]) for i in range(2)]
    templates = TemplateSet(layout, rules)
    states = torch.zeros(128, 44, dtype=torch.uint8)
    states[:64, :20] = 1
    states[64:, 41] = 1
    found = compared(templates, states, 9)
    assert (found.steps, found.fixed) == (4, True)
    states[:64, 1:] = 0
    compared(templates, states, 9)


def test_nothing_to_do():
    algorithm = addition(2)
    found = Sliced(algorithm.templates).run(pack(algorithm.start(*algorithm.pairs(0, 5))), 0)
    assert (found.steps, found.fixed, found.flips, found.margin) == (0, False, 0, math.inf)
    assert unpack(found.states).shape == (5, 6) and found.survey.matched.sum() == 0


def test_surveys_add_up():
    algorithm = addition(3)
    machine = Sliced(algorithm.templates)
    halves = [machine.run(pack(algorithm.start(*algorithm.pairs(first, 32))), 6).survey for first in (0, 32)]
    whole = machine.run(pack(algorithm.start(*algorithm.pairs(0, 64))), 6).survey
    halves[0].add(halves[1])
    assert halves[0].points == whole.points and np.array_equal(halves[0].matched, whole.matched)
    assert whole.matched.sum() == 64 * 6 and machine.margin(whole.points) == machine.margin(halves[0].points)


def test_the_signs_are_those_of_the_predictor():
    machine = Sliced(multiplication(3).templates)
    for written, signs in machine.signs.items():
        for s in range(written + 1):
            m = torch.arange(63)
            means = kernel.mean(m, torch.full((63, 1), s), torch.tensor([written]), machine.templates.count)[:, 0]
            assert signs[s].tolist() == (means > 1e-10).tolist()
