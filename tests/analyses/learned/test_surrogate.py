import dataclasses
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
    NOTHING,
    PHASES,
    SETS,
    SHUFFLED,
    SUMS,
    TOTALS,
)
from analyses.learned._surrogate_measure import outcome, split
from analyses.learned._surrogate_swap import Part, columns_of, parts_of, replacements, run, targets_of
from analyses.learned._surrogate_tables import EXPLAINED, IDLE, MATTERS, NONE, findings, rows_of, smallest, summary
from analyses.learned.surrogate import Options, surrogate
from workbench import forward, written
from workbench.analysis import get, load, save
from workbench.errors import BadInput
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.sample import sample
from workbench.task import ANSWER_POSITIONS, encode

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
            {
                **same,
                "features": name,
                "n": 9,
                "ceiling": False,
                "full": 1.0,
                "accuracy": 0.5,
                "explained": explained.get(name, 0.0),
            }
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


def test_the_answer_digit_is_a_ceiling_only_of_what_writes_it(exact):
    """Head 0 of layer 0 brings an operand's digit, MLP 0 the carry; MLP 1 writes the answer's digit alone."""
    marked = {row["replaced"] for row in exact if row["ceiling"]}
    assert marked == {"L1MLP", "all MLPs", "everything"}
    for name in marked:
        assert of(exact, name)[ANSWER] == max(of(exact, name).values()) == 1
    for name in ("L0H0", "L0MLP", "all heads"):
        assert of(exact, name)[ANSWER] < of(exact, name)[CARRIES] == 1
    told = {row["replaced"]: row[ANSWER] for row in summary(exact)}
    assert told == {"all heads": "", "all MLPs": "1.000", "everything": "1.000"}
    assert {row["replaced"] for row in smallest(exact) if not np.isnan(row[ANSWER])} == marked


def test_findings_of_several_seeds_are_pooled_and_all_have_a_control(exact):
    """Of twice 200, 400 of 400: Wilson's low end is 400 / (400 + 1.96^2)."""
    both = [{**row, "checkpoint": name, "seed": seed} for seed, name in enumerate("ab") for row in exact]
    found = findings(both, smallest(both))
    (heads,) = (finding for finding in found if "all heads" in finding.text and "tells the answer" in finding.text)
    assert (heads.value, heads.n, heads.high) == (1.0, 400, 1.0) and heads.low == pytest.approx(0.99049, abs=1e-5)
    assert "lowest to highest of 2 seeds 1.000 to 1.000" in heads.text
    parts = found[-1]
    assert "of those that matter" in parts.text and parts.control == "shuffled totals" and parts.control_value == 0
    assert all(None not in (finding.low, finding.high, finding.n, finding.control_value) for finding in found)
    assert "one seed" in findings(exact, smallest(exact))[0].text


def test_findings_figures_and_reading_back(clock, tmp_path):
    first = clock.findings[0]
    assert first.low <= first.value <= first.high and first.control == "shuffled totals" and first.control_value < 0.01
    assert "full model 0." in first.text and "gap" in first.text
    assert list(clock.figures) == ["accuracy", "parts"]
    assert clock.figures["accuracy"].data[0].x == (*SETS, "full model")
    cells = dict(zip(clock.figures["accuracy"].data[0].y, clock.figures["accuracy"].data[0].text, strict=True))
    at = SETS.index(ANSWER)
    assert [cells[f"written-clock  {name}"][at] == "" for name in ("all heads", "all MLPs", "everything")] == [
        True, False, False,
    ]  # fmt: skip
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
