import dataclasses
import json

import pytest
import typer
from typer.testing import CliRunner

from workbench.cli import ntk_solve
from workbench.errors import BadInput
from workbench.ntk import decimal


def ask(*words: str):
    app = typer.Typer()
    app.callback()(lambda: None)
    ntk_solve.add_to(app)
    return CliRunner().invoke(app, ["solve", *words])


def test_the_answer_with_templates_iterations_and_means():
    done = ask("1234-5678")
    assert done.exit_code == 0, done.output
    first, second, third = done.stdout.splitlines()
    assert first == "1234-5678=-04444"
    assert second.startswith("1,524 templates over 310 bits: 2 operator, 400 pair +, 400 pair -, ")
    assert third.startswith("3 iterations; ") and third.endswith("; 0 flips")


def test_the_trace_shows_a_carry_travel():
    lines = [" ".join(line.split()) for line in ask("9999+1", "--trace").stdout.splitlines()]
    assert "iteration m a op b sum carry sign answer" in lines
    rows = lines[-8:-1] if not lines[-1] else lines[-7:]
    assert rows == [
        "0 9 9 9 9 + 0 0 0 1 . . . . . . . . . . . . . .",
        "1 5 . . . . . . . . . 9 9 9 10 . . . . + . . . . .",
        "2 7 . . . . . . . . . 9 9 9 10 . . . 1 + . . . . 0",
        "3 9 . . . . . . . . . 9 9 9 10 . . 1 1 + . . . 0 0",
        "4 11 . . . . . . . . . 9 9 9 10 . 1 1 1 + . . 0 0 0",
        "5 13 . . . . . . . . . 9 9 9 10 1 1 1 1 + . 0 0 0 0",
        "6 14 . . . . . . . . . 9 9 9 10 1 1 1 1 + 1 0 0 0 0",
    ]


def test_json_holds_the_trace_only_when_asked():
    found = json.loads(ask("3-5", "--json").stdout)
    assert (found["answer"], found["exact"], found["templates"], found["flips"]) == ("-00002", "-00002", 1524, 0)
    assert sum(found["groups"].values()) == 1524 and "trace" not in found
    trace = json.loads(ask("3-5", "--json", "--trace").stdout)["trace"]
    assert trace[0]["a"] == ["0", "0", "0", "3"] and trace[-1]["out"] == ["0", "0", "0", "0", "2"]
    assert len(trace) == found["iterations"] + 1 == 7


def test_a_wrong_answer_ends_with_exit_code_one(monkeypatch):
    pair = decimal._pairs

    def spoilt(layout, digits):
        reads = {layout["op", 0], layout["a", 0, 7], layout["b", 0, 8]}
        for one in pair(layout, digits):
            yield dataclasses.replace(one, writes=(layout["sum", 0, 14],)) if set(one.on) == reads else one

    monkeypatch.setattr(decimal, "_pairs", spoilt)
    done = ask("7+8")
    assert done.exit_code == 1
    assert done.stdout.startswith("0007+0008=+00014") and "integer arithmetic says +00015" in done.stderr
    assert ask("7-8").exit_code == 0


@pytest.mark.parametrize("text", ["12345+1", "3x5", ""])
def test_what_is_no_problem_is_refused(text):
    assert isinstance(ask(text).exception, BadInput)
