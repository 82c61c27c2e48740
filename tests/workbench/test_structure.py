import numpy as np
import pytest

from workbench.errors import BadInput
from workbench.structure import CLASSES, GROUPINGS, categories, category_names, in_category, structure
from workbench.task import Problems, parse, parse_all


def slow(a, b, subtract):
    """Structure of one problem by hand arithmetic on digit lists: (moves, count, chain, class)."""
    x, y = (max(a, b), min(a, b)) if subtract else (a, b)
    digits = [(x // 10**i % 10, y // 10**i % 10) for i in range(4)]
    moves, moving = [], 0
    for one, two in digits:  # column by column, as on paper
        moving = int(one - two - moving < 0) if subtract else int(one + two + moving >= 10)
        moves.append(bool(moving))

    def longest(pairs, starts, continues):
        best = 0
        for i in range(4):
            if starts(*pairs[i]):
                j = i + 1
                while j < 4 and continues(j, *pairs[j]):
                    j += 1
                best = max(best, j - i)
        return best

    if subtract:
        chain = longest(digits, lambda p, q: p < q, lambda j, p, q: p == q)
    else:
        chain = longest(digits, lambda p, q: p + q > 9, lambda j, p, q: p + q == 9)
    if not subtract:
        return moves, sum(moves), chain, f"S{chain}"
    if a >= b:
        return moves, sum(moves), chain, f"M{chain}"
    literal = [(a // 10**i % 10, b // 10**i % 10) for i in range(4)]
    width = max(len(str(a)), len(str(b)))  # a 0-0 pair above both numbers continues nothing
    letter = longest(literal, lambda p, q: p < q, lambda j, p, q: p == q and j < width)
    return moves, sum(moves), chain, f"N{letter}"


# The worked examples of the task's definition.
@pytest.mark.parametrize(
    ("text", "count", "chain", "name"),
    [
        ("0999+0001", 3, 3, "S3"),
        ("1234+0567", 2, 2, "S2"),
        ("1235+0507", 1, 1, "S1"),
        ("0055+0055", 2, 1, "S1"),
        ("5000-0001", 3, 3, "M3"),
        ("0123-0456", 0, 0, "N1"),
        # by hand: nothing carries; four nines travelled; borrow that stops; equal numbers; a literal chain of four
        ("1111+2222", 0, 0, "S0"),
        ("9999+0001", 4, 4, "S4"),
        ("9999+9999", 4, 1, "S1"),
        ("5210-1320", 2, 1, "M1"),
        ("7777-7777", 0, 0, "M0"),
        ("1110-1111", 0, 0, "N4"),
        ("0000-0001", 0, 0, "N1"),
        ("0100-0101", 0, 0, "N3"),
        ("0-9999", 0, 0, "N1"),
    ],
)
def test_worked_examples(text, count, chain, name):
    problem = parse(text)
    found = structure(problem)
    assert (found.count.tolist(), found.chain.tolist()) == ([count], [chain])
    assert categories(problem, "class").tolist() == [name]


def edge_problems():
    values = [0, 1, 9, 10, 99, 100, 999, 1000, 4999, 5000, 5555, 8999, 9000, 9990, 9998, 9999, 1010, 9090, 909, 990]
    return [(a, b, subtract) for a in values for b in values for subtract in (False, True)]


def many_problems():
    """Tens of thousands: uniform ones, and ones whose digit pairs often sum to nine or are equal, for long chains."""
    generator = np.random.default_rng(0)
    uniform = Problems.from_index(generator.integers(0, 200_000_000, 20_000))
    a = generator.integers(0, 10, (20_000, 4))
    travelling = np.where(generator.random((20_000, 1)) < 0.5, 9 - a, a)
    b = np.where(generator.random((20_000, 4)) < 0.6, travelling, generator.integers(0, 10, (20_000, 4)))
    place = np.array([1000, 100, 10, 1])
    long = zip((a @ place).tolist(), (b @ place).tolist(), (generator.random(20_000) < 0.5).tolist(), strict=True)
    rows = list(zip(uniform.a.tolist(), uniform.b.tolist(), uniform.subtract.tolist(), strict=True))
    return rows + list(long) + edge_problems()


def test_agrees_with_column_arithmetic_on_many_problems():
    rows = many_problems()
    a, b, subtract = zip(*rows, strict=True)
    problems = Problems(np.array(a, np.uint16), np.array(b, np.uint16), np.array(subtract))
    found, names = structure(problems), categories(problems, "class")
    moves, count, chain, name = zip(*(slow(*row) for row in rows), strict=True)
    np.testing.assert_array_equal(found.moves, np.array(moves))
    np.testing.assert_array_equal(found.count, count)
    np.testing.assert_array_equal(found.chain, chain)
    np.testing.assert_array_equal(names, name)
    assert set(name) == set(CLASSES)  # the comparison saw every class


def test_moves_are_the_carries_that_make_the_answer():
    problems = Problems.from_index(np.random.default_rng(1).integers(0, 200_000_000, 10_000))
    moves = structure(problems).moves.astype(np.int64)
    larger, smaller = np.maximum(problems.a, problems.b).astype(int), np.minimum(problems.a, problems.b).astype(int)
    sign = np.where(problems.subtract, -1, 1)
    answer = np.zeros(len(problems), int)
    before = np.zeros(len(problems), int)
    for i in range(4):
        x, y = larger // 10**i % 10, smaller // 10**i % 10
        answer += 10**i * (x + sign * (y + before) - sign * 10 * moves[:, i])
        before = moves[:, i]
    answer += np.where(problems.subtract, 0, 10_000 * before)
    np.testing.assert_array_equal(answer, np.abs(problems.answers))


def test_every_grouping_puts_each_problem_in_one_named_category():
    problems = Problems.from_index(np.random.default_rng(2).integers(0, 200_000_000, 30_000))
    for grouping in GROUPINGS:
        names = category_names(grouping)
        assert len(set(names)) == len(names)
        assert set(categories(problems, grouping)) <= set(names)
        assert sum(int(in_category(problems, name).sum()) for name in names) == len(problems)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("addition", [0, 1]),
        ("subtraction", [2, 3, 4]),
        ("-", [4]),
        ("+", [0, 1, 2, 3]),
        ("3 carries", [0]),
        ("1 carry", [1]),
        ("0 carries", []),
        ("3 borrows", [2]),
        ("1 borrow", [3]),
        ("0 borrows", [4]),
        ("addition chain 3", [0]),
        ("subtraction chain 1", [3]),
        ("S1", [1]),
        ("M3", [2]),
        ("N1", [4]),
    ],
)
def test_categories_by_name(name, expected):
    problems = parse_all(["0999+0001", "0005+0005", "5000-0001", "0010-0001", "0123-0456"])
    assert np.flatnonzero(in_category(problems, name)).tolist() == expected


def test_unknown_names_are_refused_with_the_known_ones():
    problems = parse("1+2")
    with pytest.raises(BadInput, match=r"unknown category 'S5'; choose from .*S4.*N4"):
        in_category(problems, "S5")
    with pytest.raises(BadInput, match="unknown grouping 'digit'; choose from operator, sign, count, chain, class"):
        categories(problems, "digit")


def test_no_problems_have_no_structure():
    none = parse("1+2")[:0]
    assert structure(none).moves.shape == (0, 4)
    for grouping in GROUPINGS:
        assert len(categories(none, grouping)) == 0
