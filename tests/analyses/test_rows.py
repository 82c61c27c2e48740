import pytest
from scipy import stats

from analyses._rows import Share, grouped, mean, median, share, where

ROWS = [{"a": 1, "b": "x", "v": 1.0, "ok": True}, {"a": 1, "b": "y", "v": 2.0, "ok": False},
        {"a": 2, "b": "x", "v": 6.0, "ok": True}]  # fmt: skip


def test_rows_are_chosen_and_grouped_in_their_order():
    assert where(ROWS, a=1, b="y") == [ROWS[1]] and where(ROWS, a=3) == []
    assert grouped(ROWS, "b") == {("x",): [ROWS[0], ROWS[2]], ("y",): [ROWS[1]]}
    assert list(grouped(ROWS, "a", "b")) == [(1, "x"), (1, "y"), (2, "x")]
    assert (mean(ROWS, "v"), median(ROWS, "v")) == (3.0, 2.0)


def test_shares_count_a_column_or_a_condition_with_wilsons_interval():
    of = share(ROWS, "ok")
    assert (of.right, of.n, of.share, str(of)) == (2, 3, 2 / 3, "2 of 3")
    theirs = stats.binomtest(2, 3).proportion_ci(method="wilson")
    assert of.interval == pytest.approx((theirs.low, theirs.high)) == (of.low, of.high)
    assert share(ROWS, lambda row: row["v"] > 5) == Share(1, 3)
    assert of.columns("exact") == {"exact": 2, "exact_share": 2 / 3, "exact_low": of.low, "exact_high": of.high}
