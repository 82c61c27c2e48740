"""Proportions and intervals from counts."""

import pytest

from workbench.scores import Score


def test_a_hand_worked_score():
    score = Score(n=10, loss=0.5, digits_right=45, sequences_right=8, signs_right=0)
    assert (score.digit_acc, score.seq_acc, score.sign_acc) == (0.9, 0.8, 0.0)
    assert score.seq_interval == pytest.approx((0.4901625, 0.9433178), abs=1e-6)  # Wilson, 8 of 10, as tabulated
    row = score.row()
    assert row["n"] == 10 and row["digit_low"] < 0.9 < row["digit_high"] and row["sign_low"] == 0.0
