import dataclasses
import math
import random

import numpy as np
import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.calculator import answer, shortest
from workbench.hill.expression import parse
from workbench.hill.formats import BITS
from workbench.hill.operations import OPERATIONS


def ask(text, *given):
    return answer(parse(text), *given)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1339.7364 - 2.7364", 1337.0),
        ("713.534 / -0.13", 713.534 / -0.13),
        ("-0.252 / -5244", -0.252 / -5244),
        ("325751 / -161800", 325751 / -161800),
        ("-5 - -3", -2.0),
        ("0.1 + 0.2", 0.30000000000000004),
        ("-3 x 0.1", -0.30000000000000004),
        ("- 5", -5.0),
        ("+ 5", 5.0),
        ("5 + 0", 5.0),
        ("0 / 5", 0.0),
        ("8 ^ 1", 8.0),
        ("8 ^ -1", 0.125),
        ("cos 0", 1.0),
        ("sin 0", 0.0),
        ("mix 0", 0.5),
        ("2 ^ 0.5", math.sqrt(2)),
        ("2 ^ 0", 1.0),
        ("1e308 x 10", math.inf),
    ],
)
def test_answers_are_those_of_python_arithmetic(text, value):
    found = ask(text)
    assert found.unit == found.native == value and found.ulps == 0
    assert found.expression == str(parse(text))


def test_weights_and_primitive_are_the_units():
    found = ask("1 / 3")
    assert (found.operation, found.primitive, found.weights) == ("divide", "exponential", (1.0, -1.0))


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_another_selection_gives_another_answer(name, monkeypatch):
    """The answer comes from the weights; the native one from the operation's reference."""
    row = OPERATIONS[name]
    before = answer(parse(f"5 {row.symbol} 3"))
    monkeypatch.setitem(OPERATIONS, name, dataclasses.replace(row, selection=(1, -1)))
    after = answer(parse(f"5 {row.symbol} 3"))
    assert before.unit == before.native == after.native == {"add": 8.0, "multiply": 15.0}[name]
    assert after.unit == {"add": 2.0, "multiply": 5 / 3}[name]
    assert after.ulps > 10**15


@pytest.mark.parametrize(
    "text",
    [
        "5 / 0",
        "5 / -0.0",
        "0 / 0",
        "0 ^ -1",
        "0 ^ -0.5",
        "5 / 1e-400",
        "5 / 1e-99999999999999999999999",
        "reciprocal 1e-9999999999999999999",
    ],
)
def test_a_division_by_zero_has_no_answer(text):
    with pytest.raises(BadInput, match="a division by zero, which has no answer"):
        ask(text)


def test_a_divisor_that_the_format_loses_is_named():
    with pytest.raises(BadInput, match=r"no answer; 1e-9 rounds to 0 in float16"):
        ask("5 / 1e-9", torch.float16)
    with pytest.raises(BadInput, match=r"no answer$"):
        ask("5 / 0.00")


def test_operands_beyond_the_format_are_refused():
    with pytest.raises(BadInput, match=r"99999 is beyond the range of float16, at most 6\.55e\+04"):
        ask("99999 + 1", torch.float16)
    with pytest.raises(BadInput, match="1e400 is beyond the range of float64"):
        ask("1e400 + 1")


@pytest.mark.parametrize(("dtype", "kind"), [(torch.float32, np.float32), (torch.float16, np.float16)])
def test_other_formats_answer_as_numpy_does_in_them(dtype, kind):
    draw = random.Random(0)
    for _ in range(50):
        a, b = draw.uniform(-9, 9), draw.uniform(0.1, 9)
        for symbol, native in (("+", np.add), ("-", np.subtract), ("x", np.multiply), ("/", np.divide)):
            found = ask(f"{a!r} {symbol} {b!r}", dtype)
            assert found.unit == found.native == float(native(kind(a), kind(b))) and found.ulps == 0


def test_the_methods_differ_in_their_last_bits():
    asked = [f"{n} / 49" for n in range(1, 49)]
    off = {method: sum(ask(text, torch.float64, method).ulps for text in asked) for method in ("sign-exact", "real")}
    assert off["sign-exact"] == 0 < off["real"]
    assert ask("-8 ^ 0.5", torch.float64, "real").ulps is None  # NaN beside a number


def test_a_power_of_a_negative_number_is_the_real_part_of_the_principal_one():
    found = ask("-8 ^ 0.3333333333333333")
    assert found.native == pytest.approx(1.0, abs=1e-15) and found.ulps < 4  # 2 cos 60 degrees
    assert ask("-1 ^ 0.25").unit == pytest.approx(math.sqrt(0.5), abs=1e-15)


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_power_beyond_the_format_is_infinite(sign):
    found = ask(f"{sign}5e-324 ^ -.999")
    assert found.unit == found.native == float(f"{sign}inf") and found.ulps == 0


@pytest.mark.parametrize("dtype", BITS)
def test_weights_between_the_selections_come_within_an_ulp(dtype):
    """Two in a hundred lie where neither factor of the constraint takes every number of the format."""
    draw, exact = random.Random(1), 0
    for _ in range(200):
        w = draw.uniform(-1, 1)
        weight, zero = ask(f"2 ^ {w!r}", dtype).weights
        wanted = torch.tensor(w, dtype=dtype).item()
        assert zero == 0 and weight == pytest.approx(wanted, rel=torch.finfo(dtype).eps)
        exact += weight == wanted
    assert exact > 180


def test_shortest_decimals():
    assert shortest(0.1, torch.float64) == "0.1"
    for dtype in (torch.float16, torch.float32, torch.bfloat16):
        assert shortest(torch.tensor(0.1, dtype=dtype).item(), dtype) == "0.1"
    assert shortest(1337.0, torch.float32) == "1337.0"
    assert shortest(math.inf, torch.float16) == "inf"
    every = torch.arange(0, 2**15, 7, dtype=torch.int16).view(torch.float16)
    for value in every[torch.isfinite(every)].tolist():
        assert torch.tensor(float(shortest(value, torch.float16)), dtype=torch.float16).item() == value
