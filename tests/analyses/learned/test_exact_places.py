import numpy as np
import pytest

from analyses.learned._exact_places import ANSWER_LABELS, answer_digit, place_of, predicted_at, turned_digit
from workbench.sample import sample
from workbench.task import POSITION_LABELS, parse_all


def column_by_column(a: int, b: int, subtract: bool, turned: bool = False) -> list[tuple[int, int, int]]:
    """(local, arriving, digit) of each place, units first, as one does it on paper."""
    if subtract and (a < b) != turned:
        a, b = b, a
    found, moving = [], 0
    for place in range(5):
        x, y = a // 10**place % 10, b // 10**place % 10
        value = x - y - moving if subtract else x + y + moving
        found.append((x - y if subtract else x + y, moving, value % 10))
        moving = int(value < 0 if subtract else value > 9)
    return found


@pytest.mark.parametrize("place", range(5))
def test_a_place_is_what_one_writes_on_paper(place):
    problems = sample(500, 1)
    here = place_of(problems, place)
    rows = zip(problems.a.tolist(), problems.b.tolist(), problems.subtract.tolist(), strict=True)
    for number, (a, b, subtract) in enumerate(rows):
        expected = column_by_column(a, b, subtract)[place]
        assert (here.local[number], here.arriving[number], here.digit[number]) == expected
        if subtract and place < 4 and a != b:
            assert here.turned[number] == column_by_column(a, b, True, turned=True)[place][2]


def test_hand_worked_digits():
    problems = parse_all(["52-25", "25-52", "0999+0001", "7-7"])
    assert turned_digit(problems.answers, 0).tolist() == [3, 3, 0, 0]  # 27 is 73 the other way round, modulo a hundred
    assert turned_digit(problems.answers, 1).tolist() == [7, 7, 0, 0]
    assert answer_digit(problems.answers, 3).tolist() == [0, 0, 1, 0]
    assert place_of(problems, 1).turned_here.tolist() == [6, 6, 0, 0]  # 5 - 2 with its borrow, turned: -3 - 1


def test_a_value_of_another_problem_gives_the_digit_with_the_own_rest():
    here = place_of(parse_all(["18+27", "52-25"]), 1)  # 1 + 2 + carry, 5 - 2 - borrow
    assert here.with_arriving(np.array([0, 0])).tolist() == [3, 3]
    assert here.with_local(np.array([12, -2])).tolist() == [3, 7]


def test_a_digit_is_predicted_one_position_before_it_stands():
    for place, label in enumerate(ANSWER_LABELS):
        assert POSITION_LABELS[predicted_at(place) + 1] == label
