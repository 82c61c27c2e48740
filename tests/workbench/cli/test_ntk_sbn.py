"""`workbench ntk sbn`: a program beside the interpreter, and what is refused in one line."""

import json
import re

import pytest

from workbench.cli import run


def printed(capsys, *words, code=0):
    assert run(["ntk", "sbn", *words]) == code
    return capsys.readouterr()


def rows(out):
    """The table's lines as lists of words, without its head."""
    return [line.split() for line in out.splitlines() if re.match(r"\s+\d+ ", line)]


def test_the_start_and_the_end(capsys):
    out = printed(capsys, "multiply", "x=5", "y=6").out
    assert out.startswith("multiply: 7 words of 6 bits, 4 instructions; 428 templates and 302 of padding\n")
    assert [row[:8] for row in rows(out)] == [
        ["0", "5", "6", "0", "0", "1", "0", "-1"],
        ["20", "5", "-1", "-5", "30", "1", "0", "-1"],
    ]
    assert "halted after 20 instructions, 220 iterations of the machine\n" in out
    assert out.endswith("0 sign flips (0 predicted); the machine agrees with the interpreter in every bit after every "
                        "instruction\n")  # fmt: skip


def test_every_instruction(capsys):
    """The countdown of 1: n - 1 is 0, the jump, n - 1 is -1."""
    assert [" ".join(row) for row in rows(printed(capsys, "countdown", "n=1", "--trace").out)] == [
        "0 1 1 0 -1 0: sbn one, n, HALT agrees",
        "1 0 1 0 -1 1: sbn zero, J, 0 agrees",
        "2 0 1 0 -1 0: sbn one, n, HALT agrees",
        "3 -1 1 0 -1 HALT agrees",
    ]


def test_without_padding_the_difference_is_shown(capsys):
    """1 x 31 loses bits: the first in its third instruction, after which acc should be 1."""
    out = printed(capsys, "multiply", "x=1", "y=31", "--padding", "0", "--limit", "4", "--trace", code=1)
    assert "428 templates and 0 of padding" in out.out
    assert [row[-1] for row in rows(out.out)[:3]] == ["agrees"] * 3
    assert " ".join(rows(out.out)[3]).endswith("3: sbn zero, J, 1 has acc = 1")
    found = re.search(r"(\d+) sign flips \((\d+) predicted\); the machine DIFFERS from the interpreter\n", out.out)
    assert found and found[1] == found[2] != "0"
    assert out.err == "multiply had not halted after 4 instructions; --limit sets how many it may take\n"


def test_json(capsys):
    found = json.loads(printed(capsys, "sort", "x=-1", "y=6", "z=2", "--json").out)
    assert {cell: found["end"][cell] for cell in "xyz"} == {"x": -1, "y": 2, "z": 6}
    assert found["start"] == {"x": -1, "y": 6, "z": 2, "s": 0, "t": 0}
    numbers = [found[key] for key in ("width", "templates", "padding", "instructions", "iterations")]
    assert numbers == [4, 1171, 0, 28, 28 * 9]
    assert (found["halted"], found["agrees"], found["flips"], found["trace"]) == (True, True, 0, [])
    steps = json.loads(printed(capsys, "countdown", "n=0", "--json", "--trace").out)["trace"]
    words = {"n": -1, "one": 1, "zero": 0, "J": -1}
    assert steps[-1] == {"after": 1, "machine": {"pc": 2, "memory": words}, "same": True,
                         "interpreter": {"pc": 2, "memory": words}}  # fmt: skip
    assert len(steps) == 2


def test_a_program_of_ones_own(capsys, tmp_path):
    path = tmp_path / "negate.sbn"
    path.write_text("width 3\nx = 3\nminus = 0\nsbn x, minus, HALT\n")
    out = printed(capsys, str(path), "x=2").out
    assert out.startswith("negate.sbn: 2 words of 3 bits, 1 instruction; ")
    assert rows(out)[-1] == ["1", "2", "-2", "HALT", "agrees"]
    assert "halted after 1 instruction, 8 iterations" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["divide"], "no program is named 'divide'; choose from countdown, fibonacci, multiply, sort"),
        (["nowhere.sbn"], "nowhere.sbn: no such file"),
        (["multiply", "q=1"], "multiply has no cell 'q'; its cells are x, y, t"),
        (["multiply", "x=32"], "x = 32: a word of 6 bits holds -32 to 31"),
        (["multiply", "x"], "'x' sets no cell; expected name=value"),
        (["multiply", "--limit", "0"], "--limit is 0, expected 1 to 1,000,000"),
        (["multiply", "--padding", "-1"], "--padding is -1, expected 0 to"),
        ([], "Missing argument"),
    ],
)
def test_bad_words_are_one_line(capsys, words, says):
    assert run(["ntk", "sbn", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    errors = [line for line in lines if line.startswith("Error: ")]
    assert len(errors) == 1 and lines[-1] == errors[0] and says in errors[0]
