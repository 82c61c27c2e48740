"""The interpreter against a loop over Python's integers."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.ntk import interpreter


def plain(code, memory, width, most):
    """Words and pc after each instruction, one run, no tensors."""
    memory, pc, found = list(memory), 0, []
    while pc < len(code) and len(found) < most:
        a, b, target = code[pc]
        word = (memory[b] - memory[a]) % 2**width
        memory[b] = word - 2**width if word >= 2 ** (width - 1) else word
        pc = target if memory[b] < 0 else pc + 1
        found.append((list(memory), pc))
    return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_programs_side_by_side(data):
    width, words, lines = (data.draw(st.integers(1, top)) for top in (8, 5, 6))
    place = st.integers(0, words - 1)
    instruction = st.tuples(place, place, st.integers(0, lines))
    half = 1 << (width - 1)
    word = st.integers(-half, half - 1)
    runs = data.draw(
        st.lists(
            st.tuples(
                st.lists(instruction, min_size=lines, max_size=lines), st.lists(word, min_size=words, max_size=words)
            ),
            min_size=1,
            max_size=4,
        )
    )
    code, memory = torch.tensor([run[0] for run in runs]), torch.tensor([run[1] for run in runs])
    start = torch.zeros(len(runs), dtype=torch.long)
    found = list(interpreter.run(code, memory, start, width, 15))
    wanted = [plain(*run, width, 15) for run in runs]
    assert len(found) == max(map(len, wanted))
    for row, states in enumerate(wanted):
        for after, (words_after, pc) in enumerate(found):
            end = states[min(after, len(states) - 1)]  # a halted run stays as it is
            assert (words_after[row].tolist(), int(pc[row])) == end
    assert torch.equal(memory, torch.tensor([run[1] for run in runs]))  # not written over


def test_a_subtraction_by_hand():
    """3 bits: 2 - 3 = -1 branches, -4 - 3 wraps to 1 and goes on, and pc 1 has halted."""
    code = torch.tensor([[[0, 1, 0]]]).expand(3, -1, -1)
    memory, pc = interpreter.step(code, torch.tensor([[3, 2], [3, -4], [3, 2]]), torch.tensor([0, 0, 1]), 3)
    assert memory.tolist() == [[3, -1], [3, 1], [3, 2]]
    assert pc.tolist() == [0, 1, 1]


def test_a_word_less_itself_is_zero_and_goes_on():
    memory, pc = interpreter.step(torch.tensor([[[0, 0, 0]]]), torch.tensor([[-4]]), torch.tensor([0]), 3)
    assert (memory.tolist(), pc.tolist()) == ([[0]], [1])


def test_wrapping():
    assert interpreter.wrap(torch.tensor([-5, -4, 3, 4, 8, 11]), 3).tolist() == [3, -4, 3, -4, 0, 3]
