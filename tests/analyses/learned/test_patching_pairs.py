import numpy as np
import pytest

from analyses.learned._patching_pairs import KINDS, draw, kinds_of
from workbench.task import EQUALS, MINUS, OPERATOR_AT, PLUS, POSITION_LABELS, SIGN_AT, decode

CASES = [(kind, place) for kind in KINDS for place in kind.places]
KIND = {kind.name: kind for kind in KINDS}


def numbers(text: str) -> tuple[int, str, int]:
    return int(text[:4]), text[4], int(text[5:9])


def arrives(text: str, place: int) -> bool:
    """Whether a carry or borrow arrives at a place, from the numbers below it."""
    (a, operator, b), below = numbers(text), 10**place
    if operator == "-":
        return max(a, b) % below < min(a, b) % below
    return a % below + b % below >= below


def result(text: str) -> int:
    a, operator, b = numbers(text)
    return a + b if operator == "+" else a - b


@pytest.mark.parametrize(("kind", "place"), CASES)
def test_a_pair_differs_in_one_token_and_in_the_digit(kind, place):
    pairs = draw(kind, place, 60, 3)
    assert len(pairs) == 60
    read = 15 - place  # tokens before the digit of the place
    differing = pairs.clean[:, :read] != pairs.corrupted[:, :read]
    assert (differing.sum(axis=1) == 1).all()
    at = {POSITION_LABELS[position] for position in differing.argmax(axis=1)}
    expected = {
        "operator": {"op"},
        "sign": {"s"},
        "sum digit": {f"a{place}", f"b{place}"},
        "difference digit": {f"a{place}", f"b{place}"},
    }
    assert at == expected.get(kind.name, {f"a{place - kind.below}"})
    assert (pairs.clean_digit != pairs.corrupted_digit).all()
    operators = set(np.unique(pairs.clean[:, OPERATOR_AT]))
    assert operators == ({PLUS, MINUS} if kind.name == "operator" else {MINUS if kind.subtract else PLUS})


@pytest.mark.parametrize(("kind", "place"), CASES)
def test_the_digits_are_those_of_python_integers(kind, place):
    pairs = draw(kind, place, 60, 4)
    for text, other, clean, corrupted in zip(
        decode(pairs.clean), decode(pairs.corrupted), pairs.clean_digit, pairs.corrupted_digit, strict=True
    ):
        assert abs(result(text)) // 10**place % 10 == clean
        assert int(text[15 - place]) == clean
        if kind.name != "sign":
            assert abs(result(other)) // 10**place % 10 == corrupted
        else:  # the same operands, the sign that is wrong
            assert numbers(text) == numbers(other) and {text[SIGN_AT], other[SIGN_AT]} == {"+", "-"}
            assert (10**9 - abs(result(text))) // 10**place % 10 == corrupted


@pytest.mark.parametrize("name", ["carry", "far carry", "borrow", "far borrow"])
def test_something_arrives_in_one_prompt_and_in_the_other_and_the_control_it_is_the_same(name):
    kind = KIND[name]
    for place in kind.places:
        pairs = draw(kind, place, 60, 5)
        texts = [decode(tokens) for tokens in (pairs.clean, pairs.corrupted, pairs.control)]
        there = np.array([[arrives(text, place) for text in column] for column in texts])
        assert (there[0] != there[1]).all() and (there[1] == there[2]).all()
        assert 10 < there[0].sum() < 50  # both ways
        for column in zip(*texts, strict=True):
            assert len({text[3 - place] + text[8 - place] for text in column if place < 4}) <= 1  # the local digits
            assert len({text[3 - place + kind.below] for text in column}) == 3  # all three differ where it is changed
            between = {(text[3 - p], text[8 - p]) for text in column for p in range(place - kind.below + 1, place)}
            for one, other in between:
                assert int(one) + int(other) == 9 if not kind.subtract else one == other


def test_other_controls_are_another_pairs_prompt_of_the_same_operator_and_sign():
    pairs = draw(KIND["operator"], 1, 60, 6)
    assert (pairs.control[:, OPERATOR_AT] == pairs.corrupted[:, OPERATOR_AT]).all()
    assert (pairs.control != pairs.corrupted).any(axis=1).mean() > 0.9
    assert sorted(decode(pairs.control)) == sorted(decode(pairs.corrupted))


def test_pairs_are_a_function_of_the_seed():
    first, second, other = (draw(KIND["carry"], 2, 30, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.clean, second.clean) and np.array_equal(first.control, second.control)
    assert not np.array_equal(first.clean, other.clean)


def test_variants_have_their_own_kinds_and_problems():
    names = {variant: [kind.name for kind in kinds_of(variant)] for variant in ("ordered", "addition", "subtraction")}
    assert names["addition"] == ["sum digit", "carry", "far carry"]
    assert names["subtraction"] == ["difference digit", "sign", "borrow", "far borrow"]
    assert "sign" not in names["ordered"] and "borrow" in names["ordered"]
    pairs = draw(KIND["borrow"], 2, 40, 0, "ordered")
    assert all(numbers(text)[0] >= numbers(text)[2] for text in decode(pairs.clean) + decode(pairs.control))
    assert (draw(KIND["borrow"], 2, 40, 0, "sign-hidden").clean[:, SIGN_AT] == EQUALS).all()
