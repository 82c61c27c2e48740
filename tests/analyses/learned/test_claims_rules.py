import pytest

from analyses.learned import _claims_rules as rules


@pytest.mark.parametrize(
    ("accuracies", "solved", "not_solved"),
    [
        ([0.90, 0.99, 1.0], "supported", "refuted"),
        ([0.89, 0.99, 1.0], "open", "refuted"),
        ([0.50, 0.89, 0.99], "refuted", "refuted"),
        ([0.50, 0.1, 0.0], "refuted", "supported"),
        ([0.51, 0.6, 0.89], "open", "open"),
    ],
)
def test_solved_and_not_solved_are_about_every_model(accuracies, solved, not_solved):
    assert (rules.solved(accuracies), rules.not_solved(accuracies)) == (solved, not_solved)


@pytest.mark.parametrize(
    ("accuracies", "high", "low"),
    [
        ([0.90, 0.95], "holds", "against"),
        ([0.49, 0.2], "against", "holds"),
        ([0.50, 0.50], "open", "holds"),
        ([0.95, 0.49], "open", "open"),
    ],
)
def test_a_prediction_holds_or_fails_in_every_seed_or_is_open(accuracies, high, low):
    assert (rules.predicted_high(accuracies), rules.predicted_low(accuracies)) == (high, low)


def test_one_digit_has_its_own_bounds():
    assert rules.predicted_high([0.992, 0.999], rules.RIGHT, rules.WRONG) == "holds"
    assert rules.predicted_high([0.96, 0.999], rules.RIGHT, rules.WRONG) == "open"
    assert rules.predicted_high([0.94, 0.60], rules.RIGHT, rules.WRONG) == "against"


@pytest.mark.parametrize(
    ("tests", "verdict"),
    [
        (["holds"] * 4, "supported"),
        (["holds", "holds", "holds", "open"], "open"),
        (["against", "holds", "holds", "holds"], "open"),
        (["against", "holds", "against", "holds"], "refuted"),
    ],
)
def test_two_tests_refute_the_borrow_sentence_and_all_must_support_it(tests, verdict):
    assert rules.borrow_sentence(tests) == verdict


def test_a_sentence_about_all_models_needs_both_kinds():
    assert rules.both(["supported", "supported"]) == "supported"
    assert rules.both(["supported", "open"]) == "open"
    assert rules.both(["supported", "refuted"]) == "refuted"


def test_size_explains_what_the_wider_relu_makes_up():
    assert rules.size_explains([0.1, 0.2], [0.3, 0.4], [0.4, 0.7]) == pytest.approx(0.5)


def test_the_sign_is_needed_where_models_without_it_do_not_solve():
    assert [rules.sign_needed(a) for a in ([0.99, 0.95], [0.2, 0.95], [0.7, 0.95])] == ["refuted", "supported", "open"]
