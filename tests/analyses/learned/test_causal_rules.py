import pytest

from analyses.learned._causal_rules import lowest_to_highest, verdict


@pytest.mark.parametrize(
    ("hits", "n", "control_hits", "control_n", "said"),
    [
        (40, 40, 0, 40, "yes"),  # Wilson's interval of 40 of 40 begins at 0.912
        (30, 30, 0, 40, "in part"),  # of 30 of 30 at 0.886
        (40, 40, 15, 40, "in part"),  # of 15 of 40 it ends at 0.530
        (40, 40, 12, 40, "yes"),  # of 12 of 40 at 0.454
        (20, 40, 0, 40, "in part"),
        (20, 40, 25, 40, "no"),
        (20, 40, 20, 40, "no"),  # no more than the control
        (0, 40, 0, 40, "no"),  # of 0 of 40 it ends at 0.088
        (0, 30, 0, 0, "in part"),  # of 0 of 30 at 0.114; there is no control
        (0, 30, 0, 30, "no"),
        (19, 19, 0, 19, "too few"),
    ],
)
def test_each_verdict_and_the_numbers_that_flip_it(hits, n, control_hits, control_n, said):
    assert verdict(hits, n, control_hits, control_n) == said


def test_several_models_are_a_range_and_one_is_a_number():
    assert lowest_to_highest([0.5, 0.25, 1.0]) == "0.25..1.00"
    assert lowest_to_highest([0.5]) == "0.50"
