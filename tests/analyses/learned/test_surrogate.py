import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from analyses._rows import where
from analyses.learned._conditions import PREDICTED
from analyses.learned._surrogate_features import (
    ANSWER,
    CARRIES,
    DIGITS,
    NESTED,
    NOTHING,
    PHASES,
    SETS,
    SHUFFLED,
    SUMS,
    TOTALS,
    Features,
    blocks,
)
from analyses.learned._surrogate_measure import outcome, split
from analyses.learned._surrogate_swap import Part, columns_of, parts_of, replacements, run, targets_of
from analyses.learned._surrogate_tables import EXPLAINED, IDLE, MATTERS, NONE, rows_of, smallest
from analyses.learned.surrogate import Options, surrogate
from workbench import forward, written
from workbench.analysis import get, load, save
from workbench.errors import BadInput
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.sample import sample
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, encode, parse_all

FITTED, SCORED = 2_000, 200


def spoilt():
    """The exact decoder whose layer 0 makes no carry of additions."""
    one = written.exact()
    weights = {name: value.copy() for name, value in one.weights.items()}
    weights["blocks.0.mlp.W_out"][:, written.CARRY] = 0
    return dataclasses.replace(one, weights=weights, folder=Path("spoilt"))


@pytest.fixture(scope="module")
def additions():
    return split(sample(FITTED + SCORED, 0, "addition"), FITTED, 0)


@pytest.fixture(scope="module")
def exact(additions):
    one = written.exact()
    return list(rows_of(one, [outcome(one, additions[0])], 0))


@pytest.fixture(scope="module")
def clock():
    """The analysis on the clock, all operators."""
    return surrogate.function([written.clock()], Options(problems=3_000, scored=800))


def of(rows, replaced, value="accuracy"):
    return {row["features"]: row[value] for row in where(rows, replaced=replaced)}


# --- features -------------------------------------------------------------------------------------------------------


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


# --- replacing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mlp", ["relu", "bilinear"])
def test_replacing_is_what_taps_do(mlp):
    """Against the whole forward pass with a tap at every replaced part, on random weights."""
    architecture = Architecture(mlp=mlp, n_layers=2)
    weights = {name: 2 * value for name, value in initial_weights(architecture, "fan-in", 0).items()}
    tokens = torch.from_numpy(encode(sample(50, 0)))[:, :15]
    seen = {}
    forward.logits(weights, tokens, architecture, lambda name, value: seen.setdefault(name, value))
    at_answers = {part.hook: seen[part.hook][:, ANSWER_POSITIONS] for part in parts_of(architecture)}
    values = targets_of(at_answers, architecture)
    given = values + torch.randn(values.shape, generator=torch.Generator().manual_seed(1))
    unchanged = run(weights, tokens, architecture, values)
    plain = forward.logits(weights, tokens, architecture)[:, ANSWER_POSITIONS].argmax(dim=2)
    assert torch.equal(unchanged.answers(values, []), plain)
    different = 0
    for parts in replacements(architecture).values():
        assert torch.equal(unchanged.answers(values, parts), plain)

        def tap(name, value, parts=parts):
            value = value.clone()
            for part in parts:
                if part.hook == name:
                    place = value[:, ANSWER_POSITIONS] if part.head is None else value[:, ANSWER_POSITIONS, part.head]
                    place.copy_(given[..., columns_of(architecture)[part]])
            return value

        tapped = forward.logits(weights, tokens, architecture, tap)[:, ANSWER_POSITIONS].argmax(dim=2)
        assert torch.equal(unchanged.answers(given, parts), tapped)
        different += int((tapped != plain).sum())
    assert different > 100


def test_parts_and_their_names():
    architecture = Architecture(n_layers=2, n_heads=2)
    assert [part.name for part in parts_of(architecture)] == ["L0H0", "L0H1", "L0MLP", "L1H0", "L1H1", "L1MLP"]
    wholes = replacements(architecture)
    assert [part.name for part in wholes["all MLPs"]] == ["L0MLP", "L1MLP"]
    assert len(wholes["everything"]) == 6 and Part(1, 0) in wholes["all heads"]


# --- models whose truth is known ------------------------------------------------------------------------------------


def test_the_lookup_is_explained_only_with_carries(exact):
    """MLP 1 looks the digit up by mode, pair and carry: only carries joined with sums give it, and give it whole."""
    accuracy, r2 = of(exact, "L1MLP"), of(exact, "L1MLP", "r2")
    assert accuracy[TOTALS] == 1 and r2[TOTALS] == pytest.approx(1, abs=1e-3)
    assert max(accuracy[name] for name in (NOTHING, DIGITS, PHASES, SUMS, CARRIES, SHUFFLED)) < 0.4
    assert max(r2[name] for name in (DIGITS, PHASES, SUMS, CARRIES)) < 0.8
    assert accuracy[ANSWER] == 1  # the ceiling: it writes nothing but the digit
    (row,) = where(exact, replaced="L1MLP", features=TOTALS)
    assert row["explained"] == row["agreement"] == 1 and row["full"] == 1 and row["n"] == SCORED


def test_the_carry_maker_is_explained_by_carries_and_copies_by_digits(exact):
    accuracy, r2 = of(exact, "L0MLP"), of(exact, "L0MLP", "r2")
    assert accuracy[CARRIES] == 1 and r2[CARRIES] == pytest.approx(1, abs=1e-3)
    assert accuracy[SUMS] < 0.99 and r2[SUMS] < 0.99 and accuracy[NOTHING] < 0.3
    heads = of(exact, "all heads")
    assert heads[DIGITS] == 1 and heads[NOTHING] < 0.01 and heads[SHUFFLED] < 0.01
    found = {row["replaced"]: row["smallest"] for row in smallest(exact)}
    assert (found["L0H0"], found["L1MLP"], found["everything"]) == (DIGITS, TOTALS, TOTALS)
    assert {found[name] for name in ("L0H2", "L0H3", "L1H0", "L1H5")} == {IDLE}  # of one operator nothing varies there


def test_what_was_taken_out_is_not_found(additions):
    """Without carries its answers are sums mod ten: phases explain MLP 1 whole, and layer 0's MLP does nothing."""
    one = spoilt()
    rows = list(rows_of(one, [outcome(one, additions[0])], 0))
    assert of(rows, "L1MLP", "agreement")[PHASES] == 1 and of(rows, "L1MLP", "r2")[PHASES] == pytest.approx(1, abs=1e-3)
    found = {row["replaced"]: row["smallest"] for row in smallest(rows)}
    assert found["L1MLP"] == PHASES and found["L0MLP"] == IDLE
    assert of(rows, "everything")[PHASES] == where(rows, replaced="everything")[0]["full"] < 0.2


def test_the_clock_is_explained_by_its_phases(clock):
    rows = clock.tables["surrogates"].to_dict("records")
    for operator in ("addition", "subtraction"):
        agreement = of(where(rows, operator=operator), "L0MLP", "agreement")
        assert agreement[PHASES] == agreement[TOTALS] == 1 and agreement[DIGITS] < 0.1
        r2, untrained = (of(where(rows, operator=operator), "L0MLP", kind) for kind in ("r2", "untrained_r2"))
        assert r2[PHASES] == pytest.approx(1, abs=1e-3) and r2[DIGITS] < 0.1
        assert r2[SHUFFLED] < 0.05 and abs(r2[NOTHING]) < 0.01
        assert untrained[DIGITS] > 0.5  # it writes of the token it stands on
    (whole,) = where(rows, operator="subtraction", replaced="L0MLP", features=PHASES)
    assert whole["full"] < MATTERS and np.isnan(whole["explained"])
    assert whole["wrong"] == whole["n"] * (1 - whole["full"]) and whole["same_wrong"] == 1


# --- rules and the analysis -----------------------------------------------------------------------------------------


def test_the_smallest_set_turns_at_the_threshold():
    def table(**explained):
        same = {"checkpoint": "c", "shape": "relu, 1 layer", "seed": 0, "operator": "addition", "replaced": "L0H0"}
        return [
            {**same, "features": name, "n": 9, "full": 1.0, "accuracy": 0.5, "explained": explained.get(name, 0.0)}
            for name in SETS
        ]

    (row,) = smallest(table(sums=EXPLAINED, carries=1.0))
    assert row["smallest"] == SUMS
    (row,) = smallest(table(sums=EXPLAINED - 1e-9, totals=0.9, **{ANSWER: 1.0}))
    assert row["smallest"] == NONE
    (row,) = smallest(table(nothing=float("nan")))
    assert row["smallest"] == IDLE


def test_rows_are_consistent(exact, clock):
    for row in [*exact, *clock.tables["surrogates"].to_dict("records")]:
        assert row["low"] <= row["accuracy"] <= row["high"] and row["agreement_low"] <= row["agreement"]
        assert row["accuracy"] <= min(row[place] for place in PREDICTED) + 1e-9
        if not np.isnan(row["explained"]):
            assert row["explained_low"] <= row["explained"] + 1e-9 and row["explained"] - 1e-9 <= row["explained_high"]
    floors = [row["explained"] for row in exact if row["features"] == NOTHING]
    assert all(np.isnan(explained) or explained == 0 for explained in floors)


def test_findings_figures_and_reading_back(clock, tmp_path):
    first = clock.findings[0]
    assert first.low <= first.value <= first.high and first.control == "shuffled" and first.control_value < 0.01
    assert "full model 0." in first.text and "gap" in first.text
    assert list(clock.figures) == ["accuracy", "parts"]
    assert clock.figures["accuracy"].data[0].x == (*SETS, "full model")
    assert clock.figures["parts"].data[0].x == ("L0H0", "L0H1", "L0MLP")
    options = Options(problems=3_000, scored=800)
    assert surrogate.function([written.clock()], options) == clock
    save(clock, tmp_path, analysis_name=surrogate.name, options=options, inputs=["a"])
    assert load(tmp_path) == clock


def test_halves_never_share_a_problem():
    for group in split(sample(3_000, 1), 2_000, 0):
        index = group.features.problems.index
        assert len(np.unique(index)) == len(index) and (group.chosen < 2_000).sum() == group.features.fitted


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="at least one checkpoint"):
        surrogate.function([], Options())
    with pytest.raises(BadInput, match="two checkpoints are named written-clock"):
        surrogate.function([written.clock(), written.clock()], Options())
    with pytest.raises(BadInput, match="problems is 10, expected 2,000"):
        Options(problems=10)
    with pytest.raises(BadInput, match="scored is 10, expected 500"):
        Options(scored=10)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_it_is_registered_under_its_name():
    assert get("surrogate") is surrogate
