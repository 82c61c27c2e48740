"""`workbench hill calc`: what is typed, what is printed, and what is refused in one line."""

import dataclasses
import json

import pytest

from workbench.cli import run
from workbench.hill.operations import OPERATIONS


def printed(capsys, *words):
    assert run(["hill", "calc", *words]) == 0
    return capsys.readouterr()


def test_the_unit_the_native_answer_and_the_distance(capsys):
    out = printed(capsys, "1339.7364", "-", "2.7364").out
    assert out == (
        "1339.7364 - 2.7364 = 1337.0    unit: additive, weights [1, -1], float64\n"
        "                   = 1337.0    native float64\n"
        "                     0 ulps apart\n"
    )


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["-5", "-", "-3"], "-5 - -3 = -2.0 "),
        (["--", "-5", "-", "-3"], "-5 - -3 = -2.0 "),
        (["-5", "-", "-3", "--dtype", "float32"], "-5 - -3 = -2.0 "),
        (["-1e-5", "x", "-.5"], "-1e-5 x -.5 = 5e-06 "),
        (["5", "+", "0"], "5 + 0 = 5.0 "),
        (["3", "*", "4"], "3 x 4 = 12.0 "),
        (["-", "5"], "- 5 = -5.0 "),
        (["2", "^", "-1"], "2 ^ -1 = 0.5 "),
        (["cos", "0.5"], "cos 0.5 = 0.87758256189037"),
        (["1 / -8"], "1 / -8 = -0.125 "),
    ],
)
def test_ways_of_writing(capsys, words, shown):
    assert printed(capsys, *words).out.startswith(shown)


def test_json(capsys):
    found = json.loads(printed(capsys, "713.534", "/", "-0.13", "--json").out)
    assert found == {
        "expression": "713.534 / -0.13",
        "operation": "divide",
        "primitive": "exponential",
        "weights": [1.0, -1.0],
        "unit": 713.534 / -0.13,
        "native": 713.534 / -0.13,
        "ulps": 0,
        "dtype": "float64",
        "method": "sign-exact",
    }
    assert json.loads(printed(capsys, "-1e308", "x", "10", "--json").out)["unit"] == "-inf"


def test_a_distance_of_one_and_of_none(capsys):
    assert "1 ulp apart\n" in printed(capsys, "49", "/", "49", "--method", "real").out  # 49 (1 / 49) < 1
    assert "one of the two is not a number\n" in printed(capsys, "-8", "^", "0.5", "--method", "real").out


def test_a_weight_that_is_no_saturation_point_is_said(capsys):
    assert "the weight 0.5 is no saturation point" in printed(capsys, "2", "^", "0.5").err
    for words in (["2", "^", "-1"], ["2", "^", "0"], ["2", "x", "0.5"]):
        assert printed(capsys, *words).err == ""


def test_swapping_the_selection_changes_the_answer(capsys, monkeypatch):
    before = printed(capsys, "5", "+", "3").out
    monkeypatch.setitem(OPERATIONS, "add", dataclasses.replace(OPERATIONS["add"], selection=(1, -1)))
    after = printed(capsys, "5", "+", "3").out
    assert before.startswith("5 + 3 = 8.0 ") and after.startswith("5 + 3 = 2.0 ")
    assert "= 8.0    native" in after and "0 ulps" in before and "\n          0 ulps" not in after


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["5", "/", "0"], "5 / 0: a division by zero, which has no answer"),
        (["0", "^", "-1"], "0 ^ -1: a division by zero"),
        (["2", "^", "2"], "lies between -1 and 1"),
        (["5"], "is not one operation"),
        (["1", "+", "2", "--jsno"], "no such option: --jsno"),
        (["1", "+", "2", "--dtype", "int8"], "int8"),
        (["1", "+", "2", "--method", "log"], "log"),
        (["foo", "2"], "unknown operation 'foo'"),
        ([], "Missing argument"),
    ],
)
def test_bad_words_are_one_line(capsys, words, says):
    assert run(["hill", "calc", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    errors = [line for line in lines if line.startswith("Error: ")]
    assert len(errors) == 1 and lines[-1] == errors[0] and says in errors[0]


def test_the_group_stands_in_the_help(capsys):
    assert run(["--help"]) == 0
    assert "\n  hill " in capsys.readouterr().out
    assert run(["hill", "--help"]) == 0
    assert "\n  calc " in capsys.readouterr().out
