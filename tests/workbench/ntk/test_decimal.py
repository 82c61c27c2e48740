import collections
import dataclasses
import re

import numpy as np
import pytest
import torch

from workbench.errors import BadInput
from workbench.ntk import kernel
from workbench.ntk.decimal import BLANK, Decimal
from workbench.ntk.machine import Machine
from workbench.ntk.templates import TemplateSet
from workbench.sample import sample
from workbench.structure import CLASSES, categories
from workbench.task import CHARACTERS, Problems, encode, parse_all

FOUR = Decimal(4)


def start(machine: Decimal, problems: Problems) -> torch.Tensor:
    a, b = (torch.from_numpy(values.astype(np.int64)) for values in (problems.a, problems.b))
    return machine.start(a, b, torch.from_numpy(problems.subtract))


def as_text(tokens: torch.Tensor) -> list[str]:
    return ["".join("." if token == BLANK else CHARACTERS[token] for token in row) for row in tokens.tolist()]


def places(bits: tuple[int, ...], names: list[str]) -> dict[str, set[int]]:
    """The first index of each named bit, by block: which places of which operand."""
    found = collections.defaultdict(set)
    for bit in bits:
        block, numbers = re.fullmatch(r"(\w+)\[([\d,]+)\]", names[bit]).groups()
        found[block].add(int(numbers.split(",")[0]))
    return found


WORKED = {
    "1234+0567": "+01801",
    "9999+0001": "+10000",
    "9999+9999": "+19998",
    "0000+0000": "+00000",
    "0123-0456": "-00333",
    "5000-0001": "+04999",
    "0001-5000": "-04999",
    "0000-9999": "-09999",
    "7777-7777": "+00000",
    "1000-0999": "+00001",
    "0999-1000": "-00001",
}


def test_hand_worked_problems_in_six_steps() -> None:
    run = Machine(FOUR.templates).run(start(FOUR, parse_all(WORKED)), FOUR.steps)
    assert as_text(FOUR.written(run.states)) == list(WORKED.values())
    assert (run.steps, run.flips) == (6, 0)


def test_the_longest_carry_and_borrow_need_all_six_steps_and_the_next_changes_nothing() -> None:
    states = start(FOUR, parse_all(["9999+0001", "5000-5001", "1111+1111"]))
    machine, seen = Machine(FOUR.templates), []
    run = machine.run(states, 20, lambda _, step: seen.append(as_text(FOUR.written(step.states))))
    assert run.fixed and run.steps == 7
    assert seen[0] == ["+.....", ".0....", "+....."]
    assert seen[1][0] == "+....0"  # the carries are known one place a step
    assert [row[0] for row in seen[2:6]] == ["+...00", "+..000", "+.0000", "+10000"]
    assert [row[1] for row in seen[3:6]] == [".0....", ".0....", "-00001"]  # no digit before the sign is decided
    assert seen[2][2] == "+02222"  # where nothing waits, three do


def test_every_class_and_random_problems_are_those_of_the_task() -> None:
    drawn = sample(200_000, 3)
    found = categories(drawn, "class")
    chosen = np.concatenate([np.flatnonzero(found == name)[:20] for name in CLASSES] + [np.arange(500)])
    problems = drawn[chosen]
    assert set(categories(problems, "class")) == set(CLASSES)
    run = Machine(FOUR.templates).run(start(FOUR, problems), FOUR.steps + 1)
    assert np.array_equal(FOUR.written(run.states).numpy(), encode(problems)[:, 10:])
    assert run.fixed and run.flips == 0


def test_all_one_digit_problems() -> None:
    machine = Decimal(1)
    every = torch.arange(200)
    numbers = every // 20, every // 2 % 10, every % 2 == 1
    run = Machine(machine.templates).run(machine.start(*numbers), machine.steps)
    answers = [x - y if minus else x + y for x, y, minus in zip(*(one.tolist() for one in numbers), strict=True)]
    assert as_text(machine.written(run.states)) == [f"{answer:+03d}" for answer in answers]


@pytest.mark.parametrize("digits", [4, 5])
def test_no_template_reads_two_places_of_an_operand(digits: int) -> None:
    templates = Decimal(digits).templates
    names = templates.layout.names()
    moves = {"carry", "ab", "ba"}
    for one in templates.templates:
        read = places((*one.on, *one.off), names)
        own = {place for block in read.keys() - moves - {"op", "sign"} for place in read[block]}
        assert len(own) <= 1, one
        if own and one.group != "keep":
            (place,) = own
            for block in moves & read.keys():  # the carry or borrow into the place, and the borrow that is the sign
                assert read[block] <= ({place - 1, digits - 1} if one.group == "digit -" else {place - 1}), one
    pairs = [one for one in templates.templates if one.group.startswith("pair")]
    assert len(pairs) == 200 * digits
    assert all(places(one.on, names)["a"] == places(one.on, names)["b"] for one in pairs)


def test_the_sets_of_four_and_five_digits_are_below_two_thousand() -> None:
    # four: 800 pairs, 2 operator, 19 + 3 x 20 carry, 20 + 3 x 22 borrow, 19 + 3 x 38 and 2 digit +,
    # 38 + 3 x 76 digit -, 2 sign, 4 x 38 and 2 keep
    assert FOUR.templates.count == 800 + 2 + 79 + 86 + 135 + 266 + 2 + 154 == 1524
    assert Decimal(5).templates.count == 1524 + 394
    assert FOUR.templates.padding == 0


@pytest.mark.parametrize("digits", [1, 2, 4, 5, 17])
def test_no_padding_is_needed(digits: int) -> None:
    """m is at most 4D + 3: keep D, borrows 2D, digits D; sign, its keeping, and the zero above."""
    templates = Decimal(digits).templates
    assert kernel.padding(int(templates.written.max()), 4 * digits + 3, templates.count) == 0


def test_m_reaches_its_bound_where_all_digits_agree() -> None:
    seen = []
    Machine(FOUR.templates).run(start(FOUR, parse_all(["7777-7777"])), 9, lambda _, s: seen.append(int(s.matched[0])))
    assert max(seen) == 19


def test_a_spoilt_carry_makes_exactly_the_problems_wrong_that_need_it() -> None:
    layout = FOUR.templates.layout
    broken = [
        dataclasses.replace(one, writes=(layout["carry", 1, 0],))
        if one.group == "carry" and one.on == tuple(sorted([layout["sum", 1, 9], layout["carry", 0, 1]]))
        else one
        for one in FOUR.templates.templates
    ]
    assert broken != list(FOUR.templates.templates)
    problems = sample(2000, 5)
    run = Machine(TemplateSet(layout, broken)).run(start(FOUR, problems), FOUR.steps)
    wrong = (FOUR.written(run.states).numpy() != encode(problems)[:, 10:]).any(axis=1)
    units, tens = problems.a % 10 + problems.b % 10, problems.a // 10 % 10 + problems.b // 10 % 10
    assert np.array_equal(wrong, ~problems.subtract & (units >= 10) & (tens == 9))
    assert wrong.any()


def test_bits_are_signs_of_the_mean_so_a_spoilt_leak_makes_answers_wrong() -> None:
    problems = sample(50, 2)
    machine = Machine(FOUR.templates)
    machine.leak = -machine.leak
    run = machine.run(start(FOUR, problems), FOUR.steps)
    assert run.flips > 0
    assert (FOUR.written(run.states).numpy() != encode(problems)[:, 10:]).any()


def test_exact_tokens_are_the_tasks() -> None:
    problems = sample(2000, 4)
    assert np.array_equal(FOUR.exact(problems.a, problems.b, problems.subtract), encode(problems)[:, 10:])


def test_a_digit_with_two_bits_is_not_written() -> None:
    states = torch.zeros(2, FOUR.templates.layout.bits, dtype=torch.uint8)
    for bit in [("sign", 1), ("out", 4, 0), ("out", 0, 3), ("out", 0, 4)]:
        states[0, FOUR.templates.layout[bit]] = 1
    assert as_text(FOUR.written(states)) == ["-0....", "......"]


@pytest.mark.parametrize("digits", [0, 18])
def test_digits_outside_the_range_are_refused(digits: int) -> None:
    with pytest.raises(BadInput, match=f"operands of {digits} digits"):
        Decimal(digits)


@pytest.mark.parametrize("operand", [-1, 10_000])
def test_operands_without_a_place_are_refused(operand: int) -> None:
    with pytest.raises(BadInput, match="not one of 0 to 9999"):
        FOUR.start(torch.tensor([operand]), torch.tensor([1]), torch.tensor([False]))
