"""Programs on the machine and the interpreter; what is counted when the machine is spoiled."""

import dataclasses
import itertools

import pytest
import torch

from workbench.ntk import kernel, sbn
from workbench.ntk.assembler import load
from workbench.ntk.lockstep import compare
from workbench.ntk.machine import Machine

PAIRS = torch.tensor([(x, y) for x, y in itertools.product(range(32), repeat=2) if x * y < 32])


def run(name, cells, machine=None, most=200, watch=None):
    program = load(name)
    runs = len(next(iter(cells.values())))
    machine = machine or Machine(sbn.templates(program.size))
    start = torch.zeros(runs, dtype=torch.long)
    memory = program.memory(runs, cells)
    found = compare(machine, program.size, program.codes(runs), memory, start, most, watch)
    return found, dict(zip(program.cells, found.memory.T.tolist(), strict=True))


def multiply(padding, most=200):
    machine = Machine(sbn.templates(sbn.Size(7, 6, 4), padding))
    return run("multiply", {"x": PAIRS[:, 0], "y": PAIRS[:, 1]}, machine, most)


def test_multiplication_of_all_pairs_that_fit():
    """176 pairs; 3 y + 2 instructions each, one slot more to see that HALT holds, 7 words a slot."""
    found, cells = multiply(302)
    assert len(PAIRS) == 176
    assert found.agrees.all() and found.halted.all() and (found.pc == 4).all()
    assert cells["acc"] == PAIRS.prod(dim=1).tolist()
    assert found.executed.tolist() == (3 * PAIRS[:, 1] + 2).tolist()
    record = found.record
    assert record.words == 7 * int((3 * PAIRS[:, 1] + 3).sum())
    assert (record.wrong_words, record.wrong_states, record.flips, record.predicted) == (0, 0, 0, 0)
    assert int(record.states.sum()) == 11 * record.words // 7
    assert 0 < record.margin < 1


def test_without_padding_it_fails_where_the_sign_rule_says():
    """The 2,189 flips over 95 instructions that an independent program found; N + 2 pi - 1 = 433.28."""
    found, cells = multiply(0, 95)
    record = found.record
    assert (record.flips, record.predicted, record.missed, record.alarms) == (2189, 2189, 0, 0)
    assert float(record.loads.max()) == pytest.approx(481.8, abs=0.05)
    flipped = record.flips_at.nonzero().flatten().tolist()
    limit = 428 + kernel.ridge()
    assert flipped == (record.loads >= limit).nonzero().flatten().tolist() == [37, 38, 39, 40]
    right = torch.tensor(cells["acc"]) == PAIRS.prod(dim=1)
    assert int((~found.agrees).sum()) == 96 and int(right.sum()) == 111
    assert torch.equal(found.agrees, found.first_flip == 0)
    assert record.wrong_words > 0 and record.wrong_states > 0


def test_one_template_of_padding_decides():
    """The highest load of 1 x 31 and 31 x 1 is 495.70, with m = 41: N + 2 pi - 1 is 495.28 or 496.28."""
    factors = torch.tensor([1, 31, 30]), torch.tensor([31, 1, 1])
    flips = []
    for padding in (62, 63):
        machine = Machine(sbn.templates(sbn.Size(7, 6, 4), padding))
        found, _ = run("multiply", dict(zip("xy", factors, strict=True)), machine, 95)
        flips.append((found.first_flip > 0).tolist())
        assert found.record.missed == found.record.alarms == 0
        assert float(found.record.loads.max()) == pytest.approx(495.70, abs=0.01)
    assert flips == [[True, True, False], [False] * 3]


def test_a_spoiled_leak_is_seen():
    machine = Machine(sbn.templates(sbn.Size(4, 5, 2)))
    machine.leak = 3 * machine.leak
    found, _ = run("countdown", {"n": torch.arange(16)}, machine, most=31)
    assert not found.agrees.all()
    assert found.record.flips > found.record.predicted == 0 and found.record.missed == found.record.flips


def test_every_kind_of_template_is_needed():
    """Without the templates of one group the programs go wrong."""
    size = sbn.Size(4, 5, 2)
    whole = sbn.templates(size)
    groups = {one.group for one in whole.templates}
    assert groups == {"issue", "halt", "program", "memory", "subtract", "control", "next"}
    for group in groups:
        fewer = dataclasses.replace(whole, templates=[one for one in whole.templates if one.group != group])
        found, _ = run("countdown", {"n": torch.arange(4)}, Machine(fewer), most=8)
        assert not found.agrees.any(), group


def test_a_residue_is_a_wrong_state_though_every_word_is_right():
    size = sbn.Size(4, 5, 2)
    whole = sbn.templates(size)
    ctl = whole.layout["ctl", 3]
    rules = [
        dataclasses.replace(one, writes=(*one.writes, ctl)) if one.group == "halt" else one for one in whole.templates
    ]
    found, cells = run(
        "countdown", {"n": torch.tensor([2])}, Machine(dataclasses.replace(whole, templates=rules)), most=7
    )
    assert cells["n"] == [-1] and found.record.wrong_words == 0 and found.record.wrong_states > 0


def test_what_is_watched():
    seen = []

    def watch(instruction, states, expected):
        assert torch.equal(states, expected)
        seen.append((instruction, len(states)))

    found, _ = run("countdown", {"n": torch.tensor([0, 2])}, watch=watch)
    assert found.executed.tolist() == [1, 5]
    assert seen == [(0, 2), (1, 2), (2, 2), (3, 1), (4, 1), (5, 1), (6, 1)]  # one more each, to see that it holds


def test_words_beyond_the_signed_range_are_taken_modulo():
    found, cells = run("countdown", {"n": torch.tensor([32 + 3])})
    assert cells["n"] == [-1] and found.agrees.all() and found.record.wrong_words == 0


def test_a_program_that_does_not_halt_is_stopped():
    found, _ = run("multiply", {"J": torch.tensor([0])}, most=10)
    assert found.executed.tolist() == [4] and found.halted.all()  # without the jump it falls through
    found, _ = run("countdown", {"one": torch.tensor([0])}, most=10)
    assert found.executed.tolist() == [10] and not found.halted.any() and found.agrees.all()
