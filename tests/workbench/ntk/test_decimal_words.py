import dataclasses

import numpy as np
import pytest
import torch

from workbench.errors import BadInput
from workbench.ntk import decimal_words, kernel, words
from workbench.ntk.decimal import Decimal
from workbench.ntk.machine import Machine
from workbench.ntk.sliced import Sliced
from workbench.ntk.templates import TemplateSet
from workbench.sample import sample
from workbench.structure import CLASSES, categories
from workbench.task import Problems, encode, parse_all

FOUR = Decimal(4)
SLICED = Sliced(FOUR.templates)


def ask(problems: Problems, sliced: Sliced = SLICED) -> decimal_words.Checked:
    return decimal_words.check(FOUR, sliced, problems.a, problems.b, problems.subtract)


@pytest.fixture(scope="module")
def many() -> Problems:
    return sample(300_000, 11)


def test_hundreds_of_thousands_of_every_class_without_an_error(many: Problems) -> None:
    found = ask(many)
    assert set(categories(many, "class")) == set(CLASSES)
    assert found.right.all() and found.fixed and found.steps == 7
    assert found.survey.flips == 0
    assert found.survey.matched.nonzero()[0].max() == 19


def test_iterations_are_counted_until_the_answer_stands() -> None:
    problems = parse_all(["1111+1111", "9999+0001", "0001+0999", "0012-0030", "5000-5001", "1234-5678"])
    found = ask(problems)
    assert found.iterations.tolist() == [3, 6, 5, 5, 6, 3]  # all but the first and last as a carry or borrow travels
    spoilt = dataclasses.replace(SLICED.templates, templates=SLICED.templates.templates[:-154])  # nothing is kept
    never = ask(problems, Sliced(spoilt))
    assert never.iterations.tolist() == [never.steps + 1] * 6 and not never.right.any()


def test_starts_and_answers_are_those_of_the_plain_machine() -> None:
    problems = sample(130, 8)  # two whole words and a part
    packed = decimal_words.start(FOUR, problems.a, problems.b, problems.subtract)
    a, b = (torch.from_numpy(values.astype(np.int64)) for values in (problems.a, problems.b))
    plain = FOUR.start(a, b, torch.from_numpy(problems.subtract))
    assert torch.equal(words.unpack(packed), plain)
    ends = SLICED.run(packed, FOUR.steps).states
    assert torch.equal(words.unpack(ends), Machine(FOUR.templates).run(plain, FOUR.steps).states)
    assert decimal_words.right(FOUR, ends, encode(problems)[:, 10:]).all()


def test_one_bit_too_many_or_too_few_makes_an_answer_wrong() -> None:
    problems = sample(70, 9)
    tokens, layout = encode(problems)[:, 10:], FOUR.templates.layout
    packed = decimal_words.start(FOUR, problems.a, problems.b, problems.subtract)
    ends = words.unpack(SLICED.run(packed, FOUR.steps).states)
    ends[3, layout["out", 2, 0]] ^= 1
    ends[66, layout["sign", 1]] ^= 1
    found = decimal_words.right(FOUR, words.pack(ends), tokens)
    assert (~found).nonzero()[0].tolist() == [3, 66]


def test_tokens_of_another_answer_are_seen() -> None:
    problems = sample(70, 9)
    tokens = encode(problems)[:, 10:]
    tokens[5, 0] = 21 - tokens[5, 0]  # the other sign
    tokens[6, 5] = (tokens[6, 5] + 1) % 10
    ends = SLICED.run(decimal_words.start(FOUR, problems.a, problems.b, problems.subtract), FOUR.steps).states
    assert (~decimal_words.right(FOUR, ends, tokens)).nonzero()[0].tolist() == [5, 6]


def test_a_wrong_borrow_makes_the_check_fail(many: Problems) -> None:
    """No borrow of a - b passes from the units through equal tens: wrong where one should and a - b is written."""
    layout = FOUR.templates.layout
    reads = tuple(sorted([layout["dif", 1, 9], layout["ab", 0, 1]]))
    broken = [
        dataclasses.replace(one, writes=(layout["ab", 1, 0],)) if one.group == "borrow" and one.on == reads else one
        for one in FOUR.templates.templates
    ]
    found = ask(many, Sliced(TemplateSet(layout, broken)))
    units, tens = (many.a % 10 < many.b % 10), (many.a // 10 % 10 == many.b // 10 % 10)
    above = many.a.astype(int) // 100 - many.b.astype(int) // 100
    needs = many.subtract & units & tens & (above >= 0)  # below, higher digits decide the sign, and b - a is written
    assert np.array_equal(~found.right, needs)
    assert needs.sum() > 1000


def test_every_point_that_occurs_obeys_the_sign_rule(many: Problems) -> None:
    """Every (m, S, T) that occurs: the sign of the mean is that of the exact rule, and S >= 1 decides."""
    points = torch.tensor(sorted(ask(many[:20_000]).survey.points))
    m, s, t = points.T
    n = FOUR.templates.count
    assert torch.equal(kernel.positive(m, s, t, n), s >= 1)
    assert (t * (m - 1 / kernel.gain(m))).max() < (n + kernel.ridge()) / 10  # far from where it would fail


@pytest.mark.parametrize("digits", [2, 5])
def test_other_numbers_of_digits(digits: int) -> None:
    machine = Decimal(digits)
    rng = np.random.default_rng(0)
    every = np.arange(2 * 10**4)
    if digits == 2:  # all 20,000 problems
        a, b, subtract = every // 200, every // 2 % 100, every % 2 == 1
    else:
        a, b = rng.integers(0, 10**digits, (2, 50_000))
        subtract = rng.integers(0, 2, 50_000).astype(bool)
        a[:4], b[:4] = [99_999, 10_000, 1, 99_999], [1, 9_999, 99_999, 99_999]
    found = decimal_words.check(machine, Sliced(machine.templates), a, b, subtract)
    assert found.right.all() and found.steps == digits + 3 and found.fixed


def test_an_operand_with_too_many_digits_is_refused() -> None:
    with pytest.raises(BadInput, match="not one of 0 to 99, the places"):
        decimal_words.start(Decimal(2), np.array([100]), np.array([1]), np.array([True]))


def test_rows_hold_one_state_a_bit_lowest_first() -> None:
    flags = np.zeros(70, bool)
    flags[[0, 3, 64]] = True
    row = decimal_words.row_of(flags)
    assert row is not None and row.tolist() == [9, 1]
    assert decimal_words.row_of(np.zeros(70, bool)) is None
