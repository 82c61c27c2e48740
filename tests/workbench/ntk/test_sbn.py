"""The SBN templates: their numbers, one instruction worked by hand, and every single one of a small size."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.ntk import kernel, sbn
from workbench.ntk.machine import Machine
from workbench.ntk.templates import TemplateSet

sizes = st.builds(sbn.Size, st.integers(1, 6), st.integers(1, 7), st.integers(1, 6))


@settings(max_examples=25, deadline=None)
@given(sizes)
def test_counts_are_those_of_the_formulas(size):
    found = sbn.templates(size)
    assert len(found.templates) == size.templates
    assert found.layout.bits == size.bits
    assert int(found.written.max()) == size.most_written
    assert found.count == size.templates + size.padding
    limit = found.count + kernel.ridge()
    load = size.most_written * (size.most_matched - 1 / float(kernel.gain(torch.tensor(size.most_matched))))
    assert load < limit and (size.padding == 0 or load >= limit - 1)


def test_counts_by_hand():
    """D = 7, w = 6, P = 4: 5*42 + 4*28 + 2*20 + 5*5 + 24 + 3 + 14 = 428; 42 + 12 + 4 = 58; 2*7 + 2 = 16; 6 + 5 = 11."""
    size = sbn.Size(7, 6, 4)
    numbers = (size.templates, size.bits, size.most_matched, size.most_written, size.iterations, size.padding)
    assert numbers == (428, 438, 58, 16, 11, 302)
    assert (sbn.Size(4, 5, 2).padding, sbn.Size(2, 3, 2).templates) == (21, 92)


@settings(max_examples=15, deadline=None)
@given(sizes)
def test_of_the_templates_that_share_a_tested_bit_at_most_one_matches(size):
    """So a state's m is at most the number of such blocks: every pair of one block wants some bit to be 1 and 0."""
    found = sbn.templates(size)
    testers: dict[int, list[int]] = {}
    for place, one in enumerate(found.templates):
        for bit in (*one.on, *one.off):
            testers.setdefault(bit, []).append(place)
    assert len(testers) == size.bits  # no bit is left out
    for places in testers.values():
        for i, j in itertools.combinations(places, 2):
            a, b = found.templates[i], found.templates[j]
            assert set(a.on) & set(b.off) or set(a.off) & set(b.on), (a, b)


def test_one_instruction_iteration_by_iteration():
    """D = 2, w = 2, P = 1: `sbn 0, 1, 0` takes 2 from 1, which is -1: 11, and pc 0 again. Seven iterations."""
    size = sbn.Size(2, 2, 1)
    machine = Machine(sbn.templates(size))
    names = machine.templates.layout.names()
    code, program = torch.tensor([[[0, 1, 0]]]), {"ia[0,0]", "ib[0,1]", "ic[0,0]"}
    states = sbn.encode(size, code, torch.tensor([[-2, 1]]), torch.tensor([0]))
    seen = []
    for _ in range(7):
        states = machine.step(states).states
        seen.append({name for name, bit in zip(names, states[0].tolist(), strict=True) if bit} - program)
    both = {f"{flag}[0,{d}]" for flag in ("fa", "fb", "fc") for d in (0, 1)}
    waiting = {"mem[0,1]", "nx[1]", "tg[0]", "dst[1]"}
    assert seen == [
        {"mem[0,1]", "mem[1,0]", "nx[1]", "ctl[0]"} | both,
        {"mem[0,1]", "mem[1,0]", "nx[1]", "tg[0]", "dst[1]", "ctl[1]", "ra[0,0]", "ra[0,1]", "rb[1,0]", "rb[1,1]"},
        waiting | {"q[1]", "p[0]", "ctl[2]"},  # word 1 is empty now
        waiting | {"p[1]", "p[0]", "ctl[3]"},  # the top borrow is lost
        waiting | {"p[1]", "p[0]", "ctl[4]", "fin[0]", "fin[1]", "wgo[0]", "wgo[1]"},
        {"mem[0,1]", "nx[1]", "tg[0]", "we[1,0]", "we[1,1]"}
        | {f"res[{d},{i}]" for d in (0, 1) for i in (0, 1)}
        | {f"{gate}[{t}]" for gate in ("nn", "tn", "ng", "tgo") for t in (0, 1)},
        {"mem[0,1]", "mem[1,0]", "mem[1,1]", "pc[0]"},
    ]


def test_every_single_instruction_of_the_smallest_size():
    """1,536 cases against arithmetic written out here: words, pc, program, and no other bit."""
    size = sbn.Size(2, 3, 2)
    cases = list(itertools.product(range(8), range(8), (0, 1), (0, 1), (0, 1, 2), (0, 1)))
    assert len(cases) == 1536
    code = torch.tensor([[[1, 0, 2], [0, 0, 1]]] * len(cases))
    memory = torch.tensor([case[:2] for case in cases])
    pcs = torch.tensor([case[5] for case in cases])
    code[torch.arange(len(cases)), pcs] = torch.tensor([case[2:5] for case in cases])
    machine = Machine(sbn.templates(size))
    states, most = sbn.encode(size, code, memory, pcs), 0
    before, flips = states, 0
    for _ in range(8):
        step = machine.step(states)
        states, flips, most = step.states, flips + int(step.flips.sum()), max(most, int(step.matched.max()))
    layout = machine.templates.layout
    for case, after, old in zip(cases, states, before, strict=True):
        *words, a, b, c, pc = case
        words[b] = (words[b] - words[a]) % 8
        wanted = torch.zeros(size.bits, dtype=torch.uint8)
        for d, word in enumerate(words):
            for i in range(3):
                wanted[layout["mem", d, i]] = word >> i & 1
        wanted[layout["pc", c if words[b] >= 4 else pc + 1]] = 1
        for block in ("ia", "ib", "ic"):
            wanted[layout.block(block)] = old[layout.block(block)]
        assert torch.equal(after, wanted), case
    assert (flips, most) == (0, 16)  # 16 = 2*3 + 3*2 + 4: the bound is reached


def test_halt_holds_still():
    size = sbn.Size(2, 3, 2)
    states = sbn.encode(size, torch.tensor([[[0, 1, 0], [1, 1, 2]]]), torch.tensor([[3, -4]]), torch.tensor([2]))
    run = Machine(sbn.templates(size)).run(states, 20)
    assert run.fixed and run.steps == 1 and torch.equal(run.states, states)


def test_the_mean_of_a_run_is_that_of_a_dense_solve():
    """`k(x, X) k(X, X)^-1 Y` with the padding rows in X, along two instructions of the countdown's size."""
    size = sbn.Size(4, 5, 2)
    machine = Machine(sbn.templates(size))
    count, real = machine.templates.count, size.templates
    X = torch.eye(count, dtype=torch.float64)
    Y = torch.zeros(count, size.bits, dtype=torch.float64)
    Y[:real] = machine.templates.labels.double()
    solved = torch.linalg.solve(kernel.kernel(X, X), Y)
    code = torch.tensor([[[1, 0, 2], [2, 3, 0]]])
    states = sbn.encode(size, code, torch.tensor([[9, 1, 0, -1]]), torch.tensor([0]))
    for _ in range(2 * size.iterations):
        x = torch.zeros(1, count, dtype=torch.float64)
        x[:, :real] = machine.matches(states).double()
        step = machine.step(states)
        assert torch.allclose(step.mean, kernel.kernel(x / x.norm(), X) @ solved, rtol=0, atol=1e-12)
        states = step.states
    assert sbn.memory(size, states).tolist() == [[8, 1, 0, -1]] and sbn.pc(size, states).tolist() == [0]


def test_all_of_the_padding_is_needed():
    """With every word -1 the load step writes each bit of p once, with m at its bound: one template less flips it."""
    for size, flips in ((sbn.Size(7, 6, 4), 12), (sbn.Size(4, 5, 2), 10)):
        states = sbn.encode(
            size, torch.tensor([[[0, 1, 0]] * size.instructions]), torch.full((1, size.words), -1), torch.tensor([0])
        )
        observed = [
            Machine(sbn.templates(size, size.padding - less)).run(states, size.iterations).flips for less in (0, 1)
        ]
        assert observed == [0, flips]


@settings(max_examples=30, deadline=None)
@given(sizes, st.data())
def test_what_is_encoded_is_read_back(size, data):
    half = 1 << (size.width - 1)
    words = data.draw(st.lists(st.integers(-half, half - 1), min_size=size.words, max_size=size.words))
    place = data.draw(st.integers(0, size.instructions))
    code = torch.zeros(1, size.instructions, 3, dtype=torch.long)
    states = sbn.encode(size, code, torch.tensor([words]), torch.tensor([place]))
    assert sbn.memory(size, states).tolist() == [words]
    assert sbn.pc(size, states).tolist() == [place]
    assert int(states.sum()) == sum(bin(word % (2 * half)).count("1") for word in words) + 3 * size.instructions + 1


def test_no_pc_or_two_are_none():
    size = sbn.Size(1, 2, 2)
    states = TemplateSet(sbn.layout(size), []).state(pc=torch.tensor([[0, 0, 0], [1, 0, 1], [0, 0, 1]]))
    assert sbn.pc(size, states).tolist() == [-1, -1, 2]


@pytest.mark.parametrize(
    ("numbers", "says"),
    [((0, 3, 2), "0 words"), ((2, 0, 2), "words of 0 bits"), ((2, 32, 2), "1 to 31"), ((2, 3, 0), "0 instructions"),
     ((30, 31, 60), "at most 6,000")],
)  # fmt: skip
def test_sizes_that_no_machine_has(numbers, says):
    with pytest.raises(BadInput, match=says):
        sbn.Size(*numbers)
