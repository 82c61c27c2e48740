"""`workbench ntk run`: what is typed, what is printed, and what is refused in one line."""

import json

import pytest
import typer
from typer.testing import CliRunner

from workbench import cli
from workbench.cli import ntk
from workbench.ntk import kernel


@pytest.fixture(autouse=True)
def group(monkeypatch):
    """The group is there whether or not the list of groups names it yet."""
    if "ntk" not in cli.GROUPS:
        monkeypatch.setattr(cli, "GROUPS", (*cli.GROUPS, "ntk"))


def printed(capsys, *words, code=0):
    assert cli.run(["ntk", "run", *words]) == code
    return capsys.readouterr().out


def test_an_addition(capsys):
    out = printed(capsys, "add", "5", "9", "--bits", "4")
    assert out.startswith("5 + 9 = 14\n16 templates, 12 bits of state, 4 steps, the last changed nothing\n")
    assert "each bit the sign of g_m S - h_m T: the smallest |mean| 0.01547, 0 bits unlike an OR" in out


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["add", "0", "0"], "0 + 0 = 0\n4 templates"),
        (["add", "0xff", "1"], "255 + 1 = 256\n32 templates"),
        (["multiply", "2", "3"], "2 x 3 = 6\n44 templates, 37 bits of state, 22 steps\n"),
        (["permute", "0b110", "--order", "1,2,0"], "bits of 110 permuted = 101\n3 templates"),
        (["permute", "1", "--bits", "4"], "bits of 0001 permuted = 1000\n"),
    ],
)
def test_other_problems(capsys, words, shown):
    assert printed(capsys, *words).startswith(shown)


def test_the_trace_draws_the_state_block_by_block(capsys):
    lines = printed(capsys, "add", "1", "3", "--trace").splitlines()
    assert lines[0].startswith("1 and . are bits that stay")
    rows = [line.split() for line in lines[1:] if line.split()[:1] and line.split()[0].isdigit()][:5]
    assert [row[:4] for row in rows] == [
        ["0", ".1", "11", ".."],
        ["1", "+-", "--", ".+"],
        ["2", "1.", "+.", ".-"],
        ["3", "-.", "-.", "+."],
        ["4", "..", "..", "1."],
    ]
    assert rows[1][4:] == ["2", "0.0113"] and rows[3][4:] == ["1", "1.0000"]
    assert "1 + 3 = 4" in lines


def test_changed_bits_are_coloured():
    assert [(span.start, str(span.style)) for span in ntk._marked(".1+-").spans] == [(2, "bold green"), (3, "bold red")]


def test_json(capsys):
    found = json.loads(printed(capsys, "multiply", "1", "1", "--json", "--trace"))
    trace = found.pop("trace")
    smallest = found.pop("smallest_mean")
    assert found == {
        "operation": "multiply", "bits": 1, "operands": [1, 1], "answer": 1, "exact": 1, "templates": 23,
        "steps": 7, "fixed": False, "flips": 0,
    }  # fmt: skip
    assert len(trace) == 8 and trace[0]["matched"] is None and trace[0]["blocks"]["z"] == "1"
    assert smallest == min(line["smallest_mean"] for line in trace[1:])
    assert trace[2]["blocks"] == {
        "r": "1", "R": "0", "d": "01", "L": "00", "a": "00", "p": "00", "q": "01", "c": "00", "k": "0001", "z": "0",
    }  # fmt: skip
    assert json.loads(printed(capsys, "add", "0", "0", "--json"))["smallest_mean"] is None


def test_a_wrong_answer_is_said_and_ends_with_1(capsys, monkeypatch):
    leak = kernel.leak
    monkeypatch.setattr(kernel, "leak", lambda *args: 1000 * leak(*args))
    assert "5 + 9 = 0, which is WRONG: 14" in printed(capsys, "add", "5", "9", code=1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["add", "5"], "add takes 2 numbers, 1 were given"),
        (["permute", "1", "2"], "permute takes 1 number, 2 were given"),
        (["add", "5", "x"], "'x' is not a number"),
        (["add", "5", "0b2"], "'0b2' is not a number"),
        (["add", "5", "2147483648"], "out of range"),
        (["add", "5", "99", "--bits", "3"], "99 is not a number of 3 bits"),
        (["add", "1", "1", "--bits", "0"], "1 to 31"),
        (["multiply", "1", "1", "--bits", "32"], "1 to 31"),
        (["add", "1", "1", "--order", "1,0"], "--order is for permute"),
        (["permute", "1", "--order", "a"], "expected places such as 2,0,1"),
        (["permute", "1", "--order", "0,2"], "not a permutation"),
        (["permute", "1", "--order", "1,0", "--bits", "3"], "leave --bits out"),
        (["divide", "4", "2"], "divide"),
    ],
)
def test_what_cannot_be_run_is_one_line(capsys, words, says):
    assert cli.run(["ntk", "run", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    errors = [line for line in lines if line.startswith("Error: ")]
    assert len(errors) == 1 and lines[-1] == errors[0] and says in errors[0]


def test_the_group_has_its_commands():
    app = typer.Typer()
    app.callback()(lambda: None)
    ntk.add_to(app)
    found = CliRunner().invoke(app, ["ntk", "--help"]).output
    assert all(f" {name} " in found for name in ("run", "sbn", "solve"))
