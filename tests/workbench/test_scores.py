"""Proportions and intervals from counts."""

import pytest

from workbench.errors import BadInput
from workbench.scores import Score, stored_score


def test_a_hand_worked_score():
    score = Score(n=10, loss=0.5, digits_right=45, sequences_right=8, signs_right=0)
    assert (score.digit_acc, score.seq_acc, score.sign_acc) == (0.9, 0.8, 0.0)
    assert score.seq_interval == pytest.approx((0.4901625, 0.9433178), abs=1e-6)  # Wilson, 8 of 10, as tabulated
    row = score.row()
    assert row["n"] == 10 and row["digit_low"] < 0.9 < row["digit_high"] and row["sign_low"] == 0.0


COUNTS = {"n": 10, "loss": 0.5, "digits_right": 50, "sequences_right": 10, "signs_right": 0}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"n": 0, "digits_right": 0, "sequences_right": 0}, "not one of n problems"),
        ({"digits_right": 51}, "not one of n problems"),
        ({"sequences_right": 11}, "not one of n problems"),
        ({"signs_right": -1}, "not one of n problems"),
        ({"loss": -0.1}, "not one of n problems"),
        ({"loss": float("nan")}, "loss is 'nan', expected float"),
        ({"loss": "small"}, "loss is 'small', expected float"),
        ({"n": True}, "n is 'True', expected int"),
        ({"more": 1}, "unknown field 'more'"),
    ],
)
def test_stored_counts_that_cannot_be_are_refused(change, says):
    assert stored_score(COUNTS) == Score(10, 0.5, 50, 10, 0)
    with pytest.raises(BadInput, match=says):
        stored_score({**COUNTS, **change})
    with pytest.raises(BadInput, match="missing field 'loss'"):
        stored_score({name: count for name, count in COUNTS.items() if name != "loss"})
