"""Steps worked by hand, and the predictor of a dense solve."""

import math

import pytest
import torch

from workbench.ntk import kernel
from workbench.ntk.machine import EPSILON, Machine, decisive
from workbench.ntk.templates import Layout, TemplateSet, template

G2 = (math.sqrt(1 / 2) + 2 * (math.pi - math.pi / 4) / math.sqrt(2) - 1) / (2 * math.pi - 1)  # 0.575272


def shift_register(bits, padding=0):
    """[s_i = 1] -> s_{i+1}; the last bit keeps itself."""
    layout = Layout({"s": bits})
    rules = [template(layout, "shift", [("s", i)], [], [("s", min(i + 1, bits - 1))]) for i in range(bits)]
    return TemplateSet(layout, rules, padding)


def crowd(count, writers, padding=0):
    """[s_i = 1] -> x for the first `writers` of `count` templates, nothing for the others."""
    layout = Layout({"s": count, "x": 1})
    rules = [template(layout, "one", [("s", i)], [], [("x", 0)] if i < writers else []) for i in range(count)]
    return TemplateSet(layout, rules, padding)


@pytest.mark.parametrize("padding", [0, 7])
def test_a_step_by_hand(padding):
    """Three templates, the last two write bit 2: S = (0, 1, 1), T = (0, 1, 2), m = 2."""
    machine = Machine(shift_register(3, padding))
    step = machine.step(torch.tensor([[1, 0, 1], [0, 0, 0], [0, 1, 0]], dtype=torch.uint8))
    h = (2 * G2 - 1) / (3 + padding + 2 * math.pi - 1)
    assert step.states.tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 1]]
    assert step.matched.tolist() == [2, 0, 1]
    assert step.writers.tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 1]]
    assert step.mean[0].tolist() == pytest.approx([0, G2 - h, G2 - 2 * h], abs=1e-15)
    assert step.mean[1:].tolist() == [[0, 0, 0], [0, 0, 1]]
    assert not step.flips.any()


def test_off_literals_and_a_match_of_all():
    layout = Layout({"s": 3})
    rules = [template(layout, "r", [("s", 0), ("s", 1)], [("s", 2)], [("s", 0)])]
    states = torch.tensor([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], dtype=torch.uint8)
    assert Machine(TemplateSet(layout, rules)).matches(states)[:, 0].nonzero().tolist() == [[6]]  # 1, 1, 0


def test_the_mean_is_that_of_a_dense_solve():
    gen = torch.Generator().manual_seed(0)
    layout = Layout({"s": 12})
    places = [("s", i) for i in range(12)]
    rules = []
    for _ in range(25):
        order = torch.randperm(12, generator=gen).tolist()
        on, off, writes = order[:2], order[2:3], torch.randperm(12, generator=gen)[:4].tolist()
        rules.append(
            template(layout, "r", [places[i] for i in on], [places[i] for i in off], [places[i] for i in writes])
        )
    templates = TemplateSet(layout, rules, padding=3)
    states = (torch.rand(200, 12, generator=gen) < 0.6).to(torch.uint8)
    step = Machine(templates).step(states)
    eye, x = torch.eye(28, dtype=torch.float64), torch.zeros(200, 28, dtype=torch.float64)
    for row, state in enumerate(states.tolist()):
        for place, rule in enumerate(rules):
            x[row, place] = all(state[i] for i in rule.on) and not any(state[i] for i in rule.off)
    assert step.matched.tolist() == x.sum(dim=1).tolist() and step.matched.max() > 5
    x /= x.sum(dim=1, keepdim=True).sqrt().clamp(min=1)
    labels = torch.cat([templates.labels, torch.zeros(3, 12)]).double()
    expected = kernel.kernel(x, eye) @ torch.linalg.solve(kernel.kernel(eye, eye), labels)
    assert torch.allclose(step.mean, expected, atol=1e-12, rtol=0)
    assert torch.equal(step.states, (expected > EPSILON).to(torch.uint8))


def test_a_crowd_of_other_templates_flips_a_bit_until_padding_helps():
    """60 templates, x written by 30; one of these and 30 others match, so a 1 needs 30 (31 - 1/g_31) < N + 2 pi - 1."""
    m = 31
    t = math.acos(1 / math.sqrt(m))
    g = (math.sqrt(1 - 1 / m) + 2 * (math.pi - t) / math.sqrt(m) - 1) / (2 * math.pi - 1)
    enough = math.ceil(30 * (m - 1 / g) - (60 + 2 * math.pi - 1))
    assert 500 < enough < 800
    state = torch.zeros(1, 61, dtype=torch.uint8)
    state[0, 0] = state[0, 30:60] = 1
    for padding, bit, flips in ((0, 0, 1), (enough - 1, 0, 1), (enough, 1, 0), (2 * enough, 1, 0)):
        step = Machine(crowd(60, 30, padding)).step(state)
        assert step.matched.item() == 31 and step.writers[0, 60] == 1
        assert (step.states[0, 60].item(), step.flips.sum().item()) == (bit, flips)


def test_a_run_ends_at_its_fixed_point_or_after_its_steps():
    machine, seen = Machine(shift_register(4)), []
    states = torch.tensor([[1, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.uint8)
    run = machine.run(states, 10, lambda at, step: seen.append((at, step.states[0].tolist())))
    assert (run.steps, run.fixed, run.flips) == (4, True, 0)
    assert seen == [(1, [0, 1, 0, 0]), (2, [0, 0, 1, 0]), (3, [0, 0, 0, 1]), (4, [0, 0, 0, 1])]
    short = machine.run(states, 2)
    assert (short.steps, short.fixed, short.states[0].tolist()) == (2, False, [0, 0, 1, 0])
    assert machine.run(states, 0).states.tolist() == states.tolist()


def test_the_margin_leaves_out_what_is_zero_by_construction():
    """Bit 0 is never written; with one match every other mean is 1 or 0; with two, S = 0 gives -h_2 T."""
    machine = Machine(shift_register(3))
    one = machine.step(torch.tensor([[0, 1, 0], [0, 0, 0]], dtype=torch.uint8))
    assert decisive(one, machine.templates.written) == 1
    two = machine.step(torch.tensor([[0, 1, 1]], dtype=torch.uint8))  # S = (0, 0, 2)
    h = (2 * G2 - 1) / (3 + 2 * math.pi - 1)
    assert decisive(two, machine.templates.written) == pytest.approx(h, abs=1e-15)
    assert machine.run(torch.tensor([[0, 1, 1]], dtype=torch.uint8), 1).margin == pytest.approx(h, abs=1e-15)
    assert decisive(machine.step(torch.zeros(1, 3, dtype=torch.uint8)), machine.templates.written) == math.inf


@pytest.mark.parametrize(("factor", "expected"), [(1, [0, 0, 1]), (30, [0, 0, 1]), (80, [0, 0, 0]), (-1, [0, 1, 1])])
def test_spoiling_the_leak_changes_bits(monkeypatch, factor, expected):
    """The sign is the predictor's, not an OR: S = (0, 0, 2), T = (0, 1, 2), g_2 = 0.575, h_2 = 0.0182."""
    leak = kernel.leak
    monkeypatch.setattr(kernel, "leak", lambda *args: factor * leak(*args))
    step = Machine(shift_register(3)).step(torch.tensor([[0, 1, 1]], dtype=torch.uint8))
    assert step.states[0].tolist() == expected
    assert step.flips.tolist() == [[False, expected[1] == 1, expected[2] == 0]]
