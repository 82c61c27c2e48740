"""Counts and numbers of steps from the specification, answers from Python's integers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.ntk.arithmetic import Algorithm, addition, multiplication, permutation
from workbench.ntk.machine import Machine


def surveyed(algorithm: Algorithm, steps: int):
    """Wrong answers after `steps`, the first count from which on none was wrong, flips, the largest m; all inputs."""
    numbers = algorithm.pairs(0, algorithm.inputs)
    wanted, last, most = algorithm.exact(*numbers), 0, 0

    def watch(at, step):
        nonlocal last, most
        most = max(most, int(step.matched.max()))
        if bool((algorithm.answer(step.states) != wanted).any()):
            last = at

    run = Machine(algorithm.templates).run(algorithm.start(*numbers), steps, watch)
    return int((algorithm.answer(run.states) != wanted).sum()), last + 1, run.flips, most


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5])
def test_addition(bits):
    algorithm = addition(bits)
    assert (algorithm.templates.layout.bits, algorithm.templates.count) == (3 * bits, 4 * bits)
    assert (algorithm.steps, algorithm.inputs) == (2 * bits, 4**bits)
    wrong, first, flips, most = surveyed(algorithm, algorithm.steps)
    assert (wrong, flips, most) == (0, 0, bits)
    assert first == 2 * bits - 1
    written = algorithm.templates.written
    assert written[algorithm.templates.layout["q", 0]] == 0
    assert written[list(algorithm.result)].tolist() == [2] * (bits + 1) and written.sum() == 4 * bits


@pytest.mark.parametrize(
    ("bits", "first", "padded"), [(1, 3, True), (2, 18, True), (2, 18, False), (3, 39, False), (4, 68, True)]
)
def test_multiplication(bits, first, padded):
    algorithm = multiplication(bits) if padded else multiplication(bits, 0)
    assert len(algorithm.templates.templates) == 20 * bits + 2
    assert algorithm.templates.count == (21 if padded else 20) * bits + 2
    assert algorithm.templates.layout.bits == 18 * bits + 1
    assert algorithm.steps == 4 * bits**2 + 3 * bits and int(algorithm.templates.written.max()) == 3
    wrong, found, flips, most = surveyed(algorithm, algorithm.steps)
    assert (wrong, found, flips, most) == (0, first, 0, 4 * bits)


def test_groups_of_multiplication_have_their_counts():
    groups = [rule.group for rule in multiplication(5).templates.templates]
    expected = {"keep r": 5, "keep d": 10, "test": 2, "copy": 11, "add": 30, "carry": 9, "count": 20}
    expected |= {"shift r": 6, "shift d": 9}
    assert {name: groups.count(name) for name in groups} == expected


def test_one_round_of_a_multiplication_by_hand():
    """3 x 1, one bit of r: test, copy, and the shift only after 4 l = 8 counts."""
    algorithm = multiplication(2)
    layout, names = algorithm.templates.layout, algorithm.templates.layout.names()
    seen = []
    Machine(algorithm.templates).run(
        algorithm.start(torch.tensor([1]), torch.tensor([3])), 13,
        lambda at, step: seen.append({names[i] for i in step.states[0].nonzero()[:, 0].tolist()}),
    )  # fmt: skip
    d = {"d[0]", "d[1]"}
    assert seen[0] == {"r[0]", *d, *(f"a[{i}]" for i in range(4))}
    assert seen[1] == {"r[0]", *d, "q[0]", "q[1]", "k[0]"}
    assert seen[2] == {"r[0]", *d, "p[0]", "p[1]", "k[1]"}
    assert seen[8] == {"r[0]", *d, "p[0]", "p[1]", "k[7]"}
    assert seen[9] == {"r[0]", *d, "p[0]", "p[1]", "R[0]", "R[1]", *(f"L[{i}]" for i in range(4))}
    assert seen[10] == {"d[1]", "d[2]", "p[0]", "p[1]", "z[0]"}
    assert layout["r", 0] == 0 and layout["z", 0] == layout.bits - 1


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(9)), st.lists(st.integers(0, 511), min_size=1))
def test_permutation(order, numbers):
    algorithm = permutation(order)
    run = Machine(algorithm.templates).run(algorithm.start(torch.tensor(numbers)), algorithm.steps)
    moved = [sum((number >> i & 1) << to for i, to in enumerate(order)) for number in numbers]
    assert algorithm.answer(run.states).tolist() == moved == algorithm.exact(torch.tensor(numbers)).tolist()
    assert algorithm.templates.count == 9 and algorithm.templates.written.tolist() == [1] * 9


@settings(max_examples=5, deadline=None)
@given(st.data())
def test_long_additions(data):
    bits = data.draw(st.integers(20, 31))
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, 2**bits - 1)] * 2), min_size=1, max_size=20))
    algorithm = addition(bits)
    a, b = (torch.tensor(column) for column in zip(*pairs, strict=True))
    run = Machine(algorithm.templates).run(algorithm.start(a, b), algorithm.steps)
    assert algorithm.answer(run.states).tolist() == [x + y for x, y in pairs]


def test_inputs_are_counted_through():
    algorithm = multiplication(3)
    a, b = algorithm.pairs(0, 64)
    assert sorted(zip(a.tolist(), b.tolist(), strict=True)) == [(i, j) for i in range(8) for j in range(8)]
    a, b = algorithm.pairs(60, 100)
    assert (a.tolist(), b.tolist()) == ([7] * 4, [4, 5, 6, 7])
    (one,) = permutation([1, 0]).pairs(1, 2)
    assert one.tolist() == [1, 2] and permutation([1, 0]).inputs == 4


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: addition(0), "1 to 31"),
        (lambda: multiplication(32), "1 to 31"),
        (lambda: permutation([0, 2]), "not a permutation"),
        (lambda: addition(2).start(torch.tensor([4]), torch.tensor([0])), "4 is not a number of 2 bits"),
        (lambda: addition(2).start(torch.tensor([0]), torch.tensor([-1])), "-1 is not a number"),
        (lambda: addition(2).start(torch.tensor([0])), "takes 2 numbers"),
    ],
)
def test_what_cannot_be_is_refused(ask, says):
    with pytest.raises(BadInput, match=says):
        ask()
