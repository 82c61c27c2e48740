import json
import re
import sys

import pytest

from workbench.cli import hill_fit, run


def test_division_is_learned_and_right_to_the_last_bit(capsys):
    assert run(["hill", "fit", "divide"]) == 0
    shown = capsys.readouterr()
    first, second, third, *cases = shown.out.splitlines()
    assert first == "divide: exponential, Adam lr=0.3, inputs from 1e-08 to 10, seed 0"
    assert re.fullmatch(r"weights \[0\.99\d+, -0\.99\d+\] after \d+ steps in \d+\.\d s", second)
    assert third == "snapped [1, -1], the selection"
    assert [case.strip() for case in cases] == [
        f"713.534 / -0.13 = {713.534 / -0.13!r}    native {713.534 / -0.13!r}    0 ulps apart",
        f"-0.252 / -5244 = {-0.252 / -5244!r}    native {-0.252 / -5244!r}    0 ulps apart",
        f"325751 / -161800 = {325751 / -161800!r}    native {325751 / -161800!r}    0 ulps apart",
    ]
    steps = [int(line.split()[1]) for line in shown.err.splitlines()]
    assert steps[:3] == [10, 20, 40]
    assert all("loss" in line and "W [+0." in line for line in shown.err.splitlines())


def test_json_holds_all_of_it(capsys):
    assert run(["hill", "fit", "add", "--json", "--seed", "3", "--optimizer", "rmsprop", "--lr", "0.1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["operation"], found["optimizer"], found["lr"], found["seed"]) == ("add", "rmsprop", 0.1, 3)
    assert found["reached"] is True
    assert found["last"]["snapped"] == [1.0, 1.0]
    assert [one["unit"] for one in found["answers"]] == [713.534 - 0.13, -0.252 - 5244, 325751 - 161800]


def test_a_selection_that_is_not_reached_ends_with_code_1(capsys):
    words = ["hill", "fit", "cos", "--lr", "1e-9", "--epochs", "1", "--samples", "6400"]
    assert run(words) == 1
    out = capsys.readouterr().out
    assert "snapped [0, 0], NOT the selection [1, 0]" in out
    assert "cos 713.534 = " in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pow"], "unknown operation 'pow'; choose from add, "),
        (["add", "--optimizer", "lion"], "unknown optimizer 'lion'; choose from adam, "),
        (["add", "--epochs", "0"], "epochs is 0"),
        (["multiply", "--low", "1e200", "--high", "1e250"], "multiply has no finite answers"),
    ],
)
def test_bad_input_is_one_line_and_code_2(capsys, words, said):
    assert run(["hill", "fit", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"Error: {said}")


def test_a_weight_on_its_scale():
    assert hill_fit.scale(1.0, 1.0) == "-" * 40 + "*"
    assert hill_fit.scale(0.0, -1.0) == "|" + "-" * 19 + "o" + "-" * 20
    assert hill_fit.scale(-7.0, 0.0) == "o" + "-" * 19 + "|" + "-" * 20


def test_a_terminal_shows_both_weights_moving(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert run(["hill", "fit", "divide"]) == 0
    shown = capsys.readouterr().err
    assert "  w1 " in shown
    assert re.search(r"w2 \|-*o", shown)  # on its way to -1
    assert re.search(r"w1 -{40}\*", shown)  # arrived at 1


@pytest.mark.parametrize(
    ("symbol", "operands", "text"),
    [
        ("x", (3.0, 4.0), "3 x 4"),
        ("-", (-0.252,), "- -0.252"),
        ("^-1", (2.0,), "2 ^-1"),
        ("sin-sum", (1.0, 2.0), "sin-sum 1 2"),
    ],
)
def test_questions_are_written_as_one_writes_them(symbol, operands, text):
    from workbench.hill.fitting_trial import Asked

    assert hill_fit._written(symbol, Asked(operands, 0.0, 0.0, 0)) == text
