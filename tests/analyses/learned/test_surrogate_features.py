import itertools

import numpy as np
import pytest
import torch

from analyses.learned._surrogate_features import (
    ANSWER,
    CARRIES,
    DIGITS,
    NESTED,
    NOTHING,
    PHASES,
    SETS,
    SUMS,
    TOTALS,
    Features,
    blocks,
)
from analyses.learned._surrogate_measure import split
from workbench.sample import sample
from workbench.task import ANSWER_TOKENS, encode, parse_all

FITTED, SCORED = 2_000, 200


@pytest.fixture(scope="module")
def additions():
    return split(sample(FITTED + SCORED, 0, "addition"), FITTED, 0)


def test_features_of_worked_problems():
    """1234+0567: units 4+7 = 11 carry; tens 3+6+1 = 10 carry; hundreds 2+5+1 = 8; thousands 1+0 = 1."""
    found = blocks(parse_all(["1234+0567"]))
    digits = found[DIGITS].reshape(2, 4, 10).argmax(axis=2)
    assert digits.tolist() == [[4, 3, 2, 1], [7, 6, 5, 0]]
    sums, differences = np.split(found[SUMS].reshape(8, 19).argmax(axis=1), 2)
    assert sums.tolist() == [11, 9, 7, 1] and (differences - 9).tolist() == [-3, -3, -3, 1]
    assert found[CARRIES].tolist() == [[1, 1, 0, 0]]
    assert (found[TOTALS].reshape(4, 30).argmax(axis=1) - 10).tolist() == [11, 10, 8, 1]
    turns = np.exp(2j * np.pi * np.arange(1, 6) * 11 / 10)
    phases = found[PHASES][0, :10].reshape(5, 2)
    np.testing.assert_allclose(phases[:, 0] + 1j * phases[:, 1], turns, atol=1e-6)


@pytest.mark.parametrize(
    ("problem", "totals", "carries"),
    [
        ("5000-0001", [-1, -1, -1, 4], [1, 1, 1, 0]),
        ("0001-5000", [-1, -1, -1, 4], [1, 1, 1, 0]),
        ("0123-0456", [3, 3, 3, 0], [0, 0, 0, 0]),
    ],
)
def test_totals_of_subtractions_are_larger_minus_smaller_minus_borrow(problem, totals, carries):
    found = blocks(parse_all([problem]))
    assert (found[TOTALS].reshape(4, 30).argmax(axis=1) - 10).tolist() == totals
    assert found[CARRIES].tolist() == [carries]


def test_totals_and_only_they_tell_the_answer(additions):
    """Modulo ten a total is the digit, so a linear readout of totals says it exactly; without the join it cannot."""
    features = additions[0].features
    digits = torch.from_numpy(encode(features.problems)[:, ANSWER_TOKENS]).long()
    wanted = torch.nn.functional.one_hot(digits, 10).float()
    said = features.predict(wanted[:FITTED])
    hits = {name: (guess.argmax(dim=2) == digits[FITTED:]) for name, guess in said.items()}
    right = {name: hit.all(dim=1).double().mean().item() for name, hit in hits.items()}
    assert right[TOTALS] == right[ANSWER] == 1
    assert max(right[name] for name in SETS if name not in (TOTALS, ANSWER)) < 0.5
    assert hits[PHASES][:, 4].all()  # no carry arrives at the units


def test_sets_are_nested_and_know_of_the_answer_only_what_was_read(additions):
    features = additions[0].features
    for position in range(5):
        sets = [set(features.columns(name, position).tolist()) for name in NESTED]
        assert all(less < more for less, more in itertools.pairwise(sets))
        x = features.of(DIGITS, position)
        assert x.shape[1] == 1 + 10 * position + 80 and features.of(NOTHING, position).shape[1] == 1
        read = encode(features.problems)[:, 11 : 11 + position]
        found = x[:, 1 : 1 + 10 * position].reshape(len(x), position, 10) @ torch.arange(10.0)
        np.testing.assert_array_equal(found, read)


def test_predictions_are_least_squares(additions):
    """By numpy on the same features, from noise that no set explains."""
    problems = additions[0].features.problems[:1_500]
    features = Features(problems, 1_200, 0)
    targets = torch.from_numpy(np.random.default_rng(0).normal(size=(1_200, 5, 2)).astype(np.float32))
    said = features.predict(targets, [NOTHING, DIGITS, ANSWER])
    for name in said:
        for position in (0, 3):
            x = features.of(name, position).double().numpy()
            weights, *_ = np.linalg.lstsq(x[:1_200], targets[:, position].double().numpy(), rcond=1e-6)
            np.testing.assert_allclose(said[name][:, position].numpy(), x[1_200:] @ weights, atol=1e-4)
