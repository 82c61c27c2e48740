import math

import torch

from workbench.ntk.arithmetic import addition
from workbench.ntk.machine import Machine
from workbench.ntk.templates import Layout
from workbench.ntk.trace import Line, drawn, traced


def bits(text: str) -> torch.Tensor:
    return torch.tensor([int(bit) for bit in text], dtype=torch.uint8)


def test_blocks_are_drawn_highest_bit_first_with_what_changed():
    layout = Layout({"p": 4, "mem": (2, 3), "z": 1})
    before, after = bits("1100" + "100" + "011" + "0"), bits("1010" + "100" + "000" + "1")
    assert drawn(layout, after, before) == {"p": ".+-1", "mem": "..1 --.", "z": "+"}
    assert drawn(layout, after, after) == {"p": ".1.1", "mem": "..1 ...", "z": "1"}


def test_an_addition_by_hand():
    """1 + 3: q carries twice; p ^ q, p & q and the carry's move in every step."""
    algorithm = addition(2)
    lines = traced(Machine(algorithm.templates), algorithm.start(torch.tensor([1]), torch.tensor([3]))[0], 9)
    assert [line.blocks for line in lines] == [
        {"p": ".1", "q": "11", "c": ".."},
        {"p": "+-", "q": "--", "c": ".+"},
        {"p": "1.", "q": "+.", "c": ".-"},
        {"p": "-.", "q": "-.", "c": "+."},
        {"p": "..", "q": "..", "c": "1."},
    ]
    assert [(line.step, line.matched) for line in lines] == [(0, None), (1, 2), (2, 2), (3, 1), (4, 1)]
    assert lines[0] == Line(0, None, math.inf, 0, lines[0].blocks) and lines[3].margin == 1
    run = Machine(algorithm.templates).run(algorithm.start(torch.tensor([1]), torch.tensor([3])), 9)
    assert min(line.margin for line in lines) == run.margin and len(lines) == run.steps + 1
    assert len(traced(Machine(algorithm.templates), algorithm.start(torch.tensor([1]), torch.tensor([3]))[0], 2)) == 3
