import numpy as np
import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.token_circuit import TokenCircuit, write
from workbench.hill.unit import HillUnit
from workbench.task import CHARACTERS, DOMAIN_SIZE, Problems, encode


def tokens(text: str) -> torch.Tensor:
    return torch.tensor([[CHARACTERS.index(letter) for letter in text]], dtype=torch.uint8)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("1234+0567=", "+01801"),
        ("9999+0001=", "+10000"),
        ("9999+9999=", "+19998"),
        ("0123-0456=", "-00333"),
        ("5000-0001=", "+04999"),
        ("0000-9999=", "-09999"),
        ("7777-7777=", "+00000"),
    ],
)
def test_hand_worked_problems(asked: str, answer: str) -> None:
    assert TokenCircuit().written(tokens(asked)).tolist() == tokens(answer).tolist()


def test_a_hundred_thousand_problems_read_from_the_tokens_a_decoder_reads() -> None:
    index = np.random.default_rng(1).integers(0, DOMAIN_SIZE, 100_000).astype(np.uint32)
    exact = encode(Problems.from_index(index))
    asked = exact.copy()
    asked[:, 10:] = 0  # nothing of the answer is read
    assert np.array_equal(TokenCircuit().written(torch.from_numpy(asked)).numpy(), exact[:, 10:])


def test_the_readout_is_the_place_values_and_the_units_are_enumerated() -> None:
    circuit = TokenCircuit()
    assert circuit.place_values.tolist() == [1000, 100, 10, 1]
    assert circuit.operands(tokens("1234-5678=")).tolist() == [[1234, 5678]]
    assert [unit.W.tolist() for unit in circuit.units.values()] == [[1, 1], [1, -1]]


def test_another_unit_in_its_place_is_seen() -> None:
    circuit = TokenCircuit()
    circuit.units[11] = HillUnit.enumerated("add")
    assert circuit.written(tokens("0005-0003=")).tolist() == tokens("+00008").tolist()


@pytest.mark.parametrize("digits", [1, 5, 15])
def test_more_digits_need_only_more_place_values(digits: int) -> None:
    rng = np.random.default_rng(digits)
    a, b = rng.integers(0, 10**digits, (2, 2000))
    a[0] = b[0] = 10**digits - 1
    problems = list(zip(a.tolist(), b.tolist(), range(2000), strict=True))
    rows = [[*map(int, f"{x:0{digits}d}"), 10 + k % 2, *map(int, f"{y:0{digits}d}")] for x, y, k in problems]
    found = TokenCircuit(digits).written(torch.tensor(rows, dtype=torch.uint8)).tolist()
    answers = [x - y if k % 2 else x + y for x, y, k in problems]
    assert found == [[10 + (n < 0), *map(int, f"{abs(n):0{digits + 1}d}")] for n in answers]


def test_write_puts_plus_before_zero() -> None:
    assert write(torch.tensor([0, -7, 10045]), 5).tolist() == [
        [10, 0, 0, 0, 0, 0], [11, 0, 0, 0, 0, 7], [10, 1, 0, 0, 4, 5]
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["123+45678=", "12345+678=", "1234=5678=", "123412341", "1234+567"])
def test_rows_that_are_no_problems_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="does not begin with 4 digits"):
        TokenCircuit().written(tokens(text))


@pytest.mark.parametrize("digits", [0, 16])
def test_digits_that_float64_cannot_hold_are_refused(digits: int) -> None:
    with pytest.raises(BadInput, match=f"operands of {digits} digits"):
        TokenCircuit(digits)
