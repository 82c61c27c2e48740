"""What SBN texts mean, what is refused, and what the four programs compute, by the interpreter alone."""

import itertools
import re

import pytest
import torch

from workbench.errors import BadInput
from workbench.ntk import interpreter
from workbench.ntk.assembler import assemble, assignments, built_in, load

TEXT = """
# doubles x
width 4
x = 3    # a cell
neg=0
start: again:
  SBN x, neg, end    # -x
  sbn neg, x         # the next line either way
  sbn neg, neg, halt
end: sbn neg, x, start
last:
"""


def test_a_text_by_hand():
    program = assemble(TEXT, "double")
    assert (program.name, program.width) == ("double", 4)
    assert dict(zip(program.cells, program.initial, strict=True)) == {"x": 3, "neg": 0}
    assert program.code == ((0, 1, 3), (1, 0, 2), (1, 1, 4), (1, 0, 0))
    assert (program.size.words, program.size.width, program.size.instructions) == (2, 4, 4)
    assert [program.line(place) for place in (0, 2, 4)] == ["sbn x, neg, 3", "sbn neg, neg, HALT", "HALT"]


def test_other_first_values():
    program = assemble(TEXT).starting({"neg": -8})
    assert program.initial == (3, -8)
    assert program.memory(2, {"x": torch.tensor([5, 6])}).tolist() == [[5, -8], [6, -8]]
    assert program.codes(3).shape == (3, 4, 3)
    with pytest.raises(BadInput, match=r"program has no cell 'y'; its cells are x, neg"):
        program.starting({"y": 1})
    with pytest.raises(BadInput, match=r"x = 8: a word of 4 bits holds -8 to 7"):
        program.starting({"x": 8})


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("SBN x, neg, end", "add x, neg", "program, line 7: cannot read 'add x, neg'; expected `width BITS`"),
        ("SBN x, neg, end", "sbn x neg", "line 7: cannot read 'sbn x neg'"),
        ("sbn neg, x  ", "sbn neg, z  ", "line 8: no cell is named z; the cells are x, neg"),
        ("neg, x, start", "neg, x, begin", "line 10: no line has the label begin; expected one of start, again, end"),
        ("x = 3", "x = three", "line 4: 'three' is not a whole number"),
        ("x = 3", "x = 8", "line 4: x = 8, but a word of 4 bits holds -8 to 7"),
        ("neg=0", "x = 0", "line 5: the cell x stands on line 4 too"),
        ("end: sbn", "start: sbn", "line 10: the label start stands on another line too"),
        ("end: sbn", "halt: sbn", "line 10: the label halt is kept for the end"),
        ("width 4", "width four", "line 3: 'four' is not a whole number"),
        ("width 4", "width 40", "line 3: a word of 40 bits, expected 1 to 31"),
        ("width 4", "", "says 0 times how wide a word is; expected one line `width BITS`"),
        ("width 4", "width 4\nwidth 5", "says 2 times"),
    ],
)
def test_errors_name_the_line(old, new, says):
    assert old in TEXT
    with pytest.raises(BadInput, match=re.escape(says)) as found:
        assemble(TEXT.replace(old, new))
    assert "\n" not in str(found.value)


def test_nothing_to_run_or_too_much():
    with pytest.raises(BadInput, match="1 cells and 0 instructions"):
        assemble("width 3\nx = 1")
    with pytest.raises(BadInput, match="0 cells and 0 instructions"):
        assemble("width 3")
    with pytest.raises(BadInput, match="at most 6,000; shorten the program"):
        assemble("width 3\nx = 1\n" + "sbn x, x\n" * 60)


def test_names_and_files(tmp_path):
    assert built_in() == ["countdown", "fibonacci", "multiply", "sort"]
    path = tmp_path / "double.sbn"
    path.write_text(TEXT)
    assert load(str(path)).code == assemble(TEXT).code
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="not text in UTF-8"):
        load(str(path))
    with pytest.raises(BadInput, match=r"nowhere.sbn: no such file"):
        load(str(tmp_path / "nowhere.sbn"))
    with pytest.raises(BadInput, match="no program is named 'divide'; choose from countdown, fibonacci"):
        load("divide")


def test_assignments():
    assert assignments(["x=5", "y=-6"]) == {"x": 5, "y": -6}
    for word in ("x", "=5", "x5", "1=2"):
        with pytest.raises(BadInput, match="sets no cell; expected name=value"):
            assignments([word])
    with pytest.raises(BadInput, match="not a whole number"):
        assignments(["x=1.5"])


def ends(name, cells):
    """Words by cell, and how many instructions each run took."""
    program = load(name)
    memory = program.memory(len(next(iter(cells.values()))), cells)
    pc, taken = torch.zeros(len(memory), dtype=torch.long), torch.zeros(len(memory), dtype=torch.long)
    code = program.codes(len(memory))
    while bool((running := pc < len(program.code)).any()):
        taken += running
        assert int(taken.max()) < 500
        memory, pc = interpreter.step(code, memory, pc, program.width)
    return dict(zip(program.cells, memory.T.tolist(), strict=True)), taken.tolist()


def test_multiplication_of_all_words():
    """Products modulo 64, for every word x and every y that is not negative; 3 y + 2 instructions."""
    x, y = zip(*itertools.product(range(-32, 32), range(32)), strict=True)
    found, taken = ends("multiply", {"x": torch.tensor(x), "y": torch.tensor(y)})
    assert found["acc"] == [(a * b + 32) % 64 - 32 for a, b in zip(x, y, strict=True)]
    assert taken == [3 * b + 2 for b in y]


def test_countdown_takes_2n_plus_1_instructions():
    found, taken = ends("countdown", {"n": torch.arange(16)})
    assert found["n"] == [-1] * 16
    assert taken == [2 * n + 1 for n in range(16)]


def test_fibonacci_numbers_that_fit():
    found, _ = ends("fibonacci", {"n": torch.arange(12)})
    assert found["f"] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


def test_sorting_of_all_triples_that_fit():
    triples = [t for t in itertools.product(range(-8, 8), repeat=3) if max(t) - min(t) < 8]
    assert len(triples) == 9 * (8**3 - 7**3) + 7**3
    found, _ = ends("sort", dict(zip("xyz", torch.tensor(triples).T, strict=True)))
    assert list(zip(found["x"], found["y"], found["z"], strict=True)) == [tuple(sorted(t)) for t in triples]
