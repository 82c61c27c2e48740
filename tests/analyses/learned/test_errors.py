import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from analyses.learned import _errors_patterns as patterns
from analyses.learned._errors_agreement import _exactly, agreement, pairs, times_wrong
from analyses.learned._errors_hardest import SHOWN
from analyses.learned._errors_read import Asked, Wrong, ask
from analyses.learned._errors_tables import of_patterns, trained_rows
from analyses.learned.errors import Options, errors
from workbench import written
from workbench.analysis import get, load, save
from workbench.errors import BadInput
from workbench.exhaustive import result as counts_on_disk
from workbench.exhaustive import tally
from workbench.recipe import Recipe, RunConfig
from workbench.sample import sample
from workbench.splits import draw
from workbench.structure import CLASSES, categories
from workbench.task import CHARACTERS, Problems, digits_of, encode, parse_all

ASKED = 1_500
SHORT = Recipe(steps=10, batch_size=100, validation_every=10)  # a thousand training problems


def exact_without(*carries: int, name: str):
    """The exact decoder, but no carry arrives at these places (1 is the tens) of additions."""
    one = written.exact()
    weights = {key: value.copy() for key, value in one.weights.items()}
    for place in carries:
        neuron = 3 + 6 * (place - 1)  # three modes of two neurons a place; the first mode is addition
        weights["blocks.0.mlp.W_out"][neuron : neuron + 2, written.CARRY] = 0
    config = dataclasses.replace(one.config, recipe=SHORT)
    return dataclasses.replace(one, folder=Path(name), weights=weights, config=config)


@pytest.fixture(scope="module")
def spoilt():
    """Three seeds, as it were: without carries into the tens, again, without carries into the hundreds."""
    models = [exact_without(1, name="tens"), exact_without(1, name="again"), exact_without(2, name="hundreds")]
    (asked,) = ask(models, ASKED, 0, None)
    return asked, errors.function([*models, exact_without(name="exact")], Options(problems=ASKED))


def rows(result, table, **values):
    found = result.tables[table]
    for column, value in values.items():
        found = found[found[column] == value]
    return found


def test_the_wrong_problems_are_those_whose_carry_was_taken_away(spoilt):
    asked, _ = spoilt
    problems = Problems.from_index(asked.index)
    a, b = (digits_of(of)[:, ::-1].astype(int) for of in (problems.a, problems.b))
    into_tens = ~problems.subtract & (a[:, 0] + b[:, 0] >= 10)
    into_hundreds = ~problems.subtract & (a[:, 1] + b[:, 1] + (a[:, 0] + b[:, 0] >= 10) >= 10)
    for model, carry, place in zip(asked.models, (into_tens, into_tens, into_hundreds), (3, 3, 2), strict=True):
        np.testing.assert_array_equal(model.index, asked.index[carry])
        assert (model.place == place).all() and model.every


def test_a_wrong_carry_is_what_was_planted(spoilt):
    _, result = spoilt
    kinds = result.tables["kinds"]
    assert set(kinds["checkpoint"]) == {"tens", "again", "hundreds"}  # the exact one has no errors
    assert (kinds["carry"] == 1).all() and kinds["carry_by_chance"].tolist() == pytest.approx([1 / 9] * len(kinds))
    assert set(rows(result, "kinds", checkpoint="tens")["place"]) == {"all", "d1"}
    assert set(rows(result, "kinds", checkpoint="hundreds", digits="every")["place"]) == {"all", "d2"}


def test_the_same_errors_and_errors_that_only_digit_pairs_have_in_common(spoilt):
    _, result = spoilt
    pairs_of = {(row["first"], row["second"]): row for row in result.tables["pairs"].to_dict("records")}
    same, other = pairs_of["tens", "again"], pairs_of["tens", "hundreds"]
    assert len(pairs_of) == 3 and set(result.tables["pairs"]["operator"]) == {"addition"}
    assert same["shared"] == 1 and same["same_digit"] == same["common"] == same["first_wrong"]
    # carries at rates 0.45 and 0.495, both at 0.45 (0.45 + 0.1); within patterns nothing is left to chance
    expected = (0.2475 - 0.45 * 0.495) / (0.45 - 0.45 * 0.495)
    assert other["shared_low"] < expected < other["shared_high"] and other["shared"] == pytest.approx(expected, abs=0.1)
    assert other["shared_within"] == pytest.approx(0, abs=1e-9)
    assert other["same_digit"] == other["same_digit_by_chance"] == 0
    assert np.isnan(same["shared_within"])  # the pattern alone says which problems are wrong


def test_problems_wrong_in_so_many_models(spoilt):
    asked, result = spoilt
    times = rows(result, "times", operator="addition").set_index("times")
    hundreds, tens = (set(asked.models[at].index.tolist()) for at in (2, 0))
    assert times["observed"].tolist()[1:] == [len(hundreds - tens), len(tens - hundreds), len(tens & hundreds), 0]
    assert times["observed"].sum() == times["n"].iloc[0] == pytest.approx(times["by_chance"].sum())
    assert times["by_pattern"].sum() == pytest.approx(times["n"].iloc[0])


def test_figures_and_findings(spoilt, tmp_path):
    _, result = spoilt
    assert list(result.figures) == ["agreement", "times", "kinds"]  # no subtraction is wrong
    (agree,) = [f for f in result.findings if "its seeds err on" in f.text]
    assert "partly the same problems" in agree.text and agree.control_value == 0
    (kinds,) = [f for f in result.findings if "what the first wrong digit is" in f.text]
    assert kinds.value == 1 and "mostly so" in kinds.text and kinds.control_value == pytest.approx(1 / 9)
    matrix = np.array(result.figures["agreement"].data[0].z, dtype=float)
    assert np.isnan(np.diag(matrix)).all() and matrix[0, 1] == matrix[1, 0] == 1
    options = Options(problems=ASKED)
    save(result, tmp_path, analysis_name=errors.name, options=options, inputs=["tens"])
    assert load(tmp_path) == result


def test_patterns_say_the_class_and_fill_the_domain():
    sizes, of_class = patterns.sizes("all"), of_patterns("class")
    assert sizes[patterns.of_operator("addition")].sum() == sizes[patterns.of_operator("subtraction")].sum() == 10**8
    assert sizes[of_class == "S0"].sum() == 55**4 and sizes[of_class == "S4"].sum() == 45 * 10**3
    assert sizes[of_class == "M3"].sum() == 45 * 10 * 10 * 45
    worked = {"0-0": 1, "1111-1111": 9**4, "5000-0001": 45 * 45, "4005+5000": 10 * 45**3}
    assert sizes[patterns.patterns(parse_all(list(worked)))].tolist() == list(worked.values())
    problems = sample(20_000, 4)
    found = patterns.patterns(problems)
    np.testing.assert_array_equal(of_class[found], categories(problems, "class"))
    shares = np.bincount(found, minlength=patterns.PATTERNS) / len(problems)
    assert np.abs(shares - sizes / 2e8).max() < 0.005
    assert patterns.sizes("addition").sum() == 10**8 == patterns.sizes("subtraction").sum()
    with pytest.raises(ValueError, match="no function of an addition's pattern"):
        patterns.sizes("ordered")


def test_agreement_worked_by_hand():
    one = agreement(np.array([[100], [20], [10], [5]]), None)
    assert (one["both_by_chance"], one["shared"], one["kappa"]) == pytest.approx((2, 3 / 8, 6 / 26))
    assert one["shared_within"] == pytest.approx(3 / 8) and np.isnan(one["shared_low"])
    # the same in two strata of 50: 18 * 10 / 50 = 3.6 by chance in the first, none in the other
    two = agreement(np.array([[50, 50], [18, 2], [10, 0], [5, 0]]), None)
    assert (two["both_by_pattern"], two["shared_within"]) == pytest.approx((3.6, 1.4 / 6.4))
    assert two["shared"] == pytest.approx(3 / 8)
    less = agreement(np.array([[100], [50], [50], [10]]), None)  # fewer than the 25 of chance
    assert less["shared"] == pytest.approx(-15 / 25) and less["kappa"] == pytest.approx(-0.6)


def test_intervals_hold_the_value_and_shrink_with_problems():
    counts = np.array([[1_000, 2_000], [200, 100], [100, 200], [60, 40]])
    few, many = agreement(counts, 0), agreement(100 * counts, 0)
    assert few["shared"] == many["shared"] and few["shared_low"] < few["shared"] < few["shared_high"]
    ratio = (few["shared_high"] - few["shared_low"]) / (many["shared_high"] - many["shared_low"])
    assert ratio == pytest.approx(10, rel=0.2)


def test_independent_errors_share_nothing():
    """Two models that err at random, at other rates in each class: beyond chance they share the classes only."""
    problems = sample(40_000, 0)
    index = np.sort(problems.index)
    found = patterns.patterns(Problems.from_index(index))
    rates = np.where(np.char.endswith(of_patterns("class")[found], "1"), 0.6, 0.05)
    rng = np.random.default_rng(1)
    models = []
    for name in ("one", "other"):
        chosen = index[rng.random(len(index)) < rates]
        said = encode(Problems.from_index(chosen))[:, 11:].copy()
        said[:, 4] = (said[:, 4] + 1) % 10
        models.append(Wrong(exact_without(name=name), chosen, said, every=True))
    asked = Asked("all", models, np.bincount(found, minlength=patterns.PATTERNS), index)
    for row in pairs(asked, 0):
        assert row["shared"] > 0.2
        assert row["shared_within_low"] < 0 < row["shared_within_high"] and abs(row["shared_within"]) < 0.05
        assert row["same_digit"] == row["common"] == pytest.approx(row["same_digit_by_chance"])


def test_so_many_at_once_worked_by_hand():
    assert _exactly(np.array([10.0]), np.array([[5.0], [2.0]])) == pytest.approx([4, 5, 1])
    assert _exactly(np.array([10.0, 6.0]), np.array([[5.0, 6.0], [2.0, 3.0]])) == pytest.approx([4, 5 + 3, 1 + 3])


LISTED = {  # problem -> the five characters written
    "first": {"0999+0001": "00990", "5000-0001": "05999", "1000-0000": "01009", "0000+0000": "0+000"},
    "second": {"0999+0001": "01990", "5000-0001": "05999"},
    "third": {"5000-0001": "05998", "0123-0456": "00323"},
}


@pytest.fixture(scope="module")
def domain():
    """Problems of each cell of the domain, from the kinds of digit pairs."""
    kinds = {"+": [("00", 45), ("45", 10), ("55", 45)], "-": [("10", 45), ("00", 1), ("11", 9), ("01", 45)]}
    found = np.zeros(tally.CELLS, np.int64)
    for operator, of_one in kinds.items():
        for four in itertools.product(of_one, repeat=4):
            a, b = ("".join(pair[side] for pair, _ in four) for side in (0, 1))
            found[tally.cells(parse_all([f"{a}{operator}{b}"]))] += np.prod([many for _, many in four])
    return found


@pytest.fixture
def counted(tmp_path, domain):
    """Checkpoints beside finished counts that list LISTED."""
    models = []
    for name, listed in LISTED.items():
        order = sorted(listed, key=lambda text: int(parse_all([text]).index[0]))
        problems = parse_all(order)
        tokens = np.array([[CHARACTERS.index(c) for c in listed[text]] for text in order], np.uint8)
        first = (tokens != encode(problems)[:, 11:]).argmax(axis=1)
        counts = np.repeat(domain[:, None], 7, axis=1)
        there = tally.count(problems, np.arange(5) != first[:, None])
        counts[:, 1:] -= there[:, :1] - there[:, 1:]
        sha256 = f"{len(models)}" * 64
        folder = tmp_path / "exhaustive" / name
        made = counts_on_disk.Exhaustive(folder, name, sha256, "all", "torch", [0] * 5, counts, True)
        counts_on_disk.write(made, folder, (problems.index, tokens))
        config = dataclasses.replace(written.clock().config, recipe=SHORT)
        models.append(
            dataclasses.replace(written.clock(), folder=tmp_path / name, weights_sha256=sha256, config=config)
        )
    return models


def test_lists_of_every_wrong_problem_are_used_where_there_are_some(counted):
    result = errors.function(counted, Options(problems=1_000))
    found = {(row["first"], row["second"], row["operator"]): row for row in result.tables["pairs"].to_dict("records")}
    assert set(result.tables["pairs"]["asked"]) == {"every problem"}
    row = found["first", "second", "subtraction"]
    assert (row["n"], row["first_wrong"], row["second_wrong"], row["both"], row["same_digit"]) == (10**8, 2, 1, 1, 1)
    assert row["shared"] == pytest.approx(1) and np.isnan(row["shared_low"])
    assert found["first", "second", "addition"]["same_digit"] == 0  # 00... and 019..., for 01000
    assert found["first", "third", "subtraction"]["same_digit"] == 1  # only what follows the first wrong digit differs
    assert ("first", "third", "addition") not in found
    kinds = result.tables["kinds"].query("place == 'all' and checkpoint == 'first'").set_index("group")
    assert (kinds.loc["addition", "carry"], kinds.loc["addition", "other"]) == (0.5, 0.5)  # 0 for 1; no digit
    assert set(result.tables["kinds"]["digits"]) == {"first"}
    hardest = result.tables["hardest"].query("operator == 'subtraction'").iloc[0]
    assert (hardest["problem"], hardest["exact"], hardest["wrong_in"]) == ("5000-0001", "+04999", 3)
    assert (
        hardest["answers"].endswith("x3") and hardest["candidates"] == 3 and len(result.tables["hardest"]) <= 2 * SHOWN
    )
    times = result.tables["times"].query("operator == 'subtraction'")["observed"].tolist()
    assert times == [10**8 - 3, 2, 0, 1]


def test_counts_elsewhere_of_other_weights_or_without_a_list(counted, tmp_path):
    moved = [dataclasses.replace(one, folder=Path(one.name)) for one in counted]
    (asked,) = ask(moved, 1_000, 0, tmp_path / "exhaustive")
    assert asked.words == "every problem" and [len(model.index) for model in asked.models] == [4, 2, 2]
    other = dataclasses.replace(counted[0], weights_sha256="f" * 64)
    with pytest.raises(BadInput, match="a count of other weights than those of first"):
        ask([other], 1_000, 0, None)
    found = counts_on_disk.read(tmp_path / "exhaustive" / "first")
    counts_on_disk.write(dataclasses.replace(found, listed=False), tmp_path / "exhaustive" / "first", None)
    listed, drawn = ask(counted, 1_000, 0, None)
    assert [model.name for model in listed.models] == ["second", "third"]
    assert [model.name for model in drawn.models] == ["first"] and drawn.words == "a sample of 1,000 problems"


def test_problems_seen_in_training_are_told_from_others():
    config = RunConfig(recipe=SHORT, engine="plain", data_seed=7)
    trained, others = draw(7, 1_000), draw(8, 3_000)
    others = others[~np.isin(others, trained)]
    chosen = np.sort(np.concatenate([trained[:300], others[:1_000]]))
    said = encode(Problems.from_index(chosen))[:, 11:].copy()
    said[:, 4] = (said[:, 4] + 1) % 10
    one = dataclasses.replace(written.exact(), config=config)
    asked = Asked("all", [Wrong(one, chosen, said, every=True)], patterns.sizes("all"))
    found = {row["operator"]: row for row in trained_rows(asked)}
    assert sum(row["trained_n"] for row in found.values()) == 1_000
    assert sum(row["trained_wrong"] for row in found.values()) == 300
    for row in found.values():
        assert row["expected"] == row["trained_n"] / 10**8
        assert row["low"] < 300 / 1_300 < row["high"] and row["trained_rate"] == row["trained_wrong"] / row["trained_n"]
        assert row["others_rate"] * (10**8 - row["trained_n"]) == pytest.approx(row["wrong"] - row["trained_wrong"])


def test_times_of_one_operator_leave_the_other_out():
    index = parse_all(["1+1", "2+2", "5-1"]).index
    models = []
    for name, many in (("one", 3), ("other", 1)):
        chosen = index[:many]
        said = encode(Problems.from_index(chosen))[:, 11:].copy()
        said[:, 4] = (said[:, 4] + 1) % 10
        models.append(Wrong(exact_without(name=name), chosen, said, every=True))
    asked = Asked("all", models, patterns.sizes("all"))
    assert [row["observed"] for row in times_wrong(asked, models, "addition")] == [10**8 - 2, 1, 1]
    assert [row["observed"] for row in times_wrong(asked, models, "subtraction")] == [10**8 - 1, 1, 0]


def test_bad_input_is_named(tmp_path):
    with pytest.raises(BadInput, match="at least one checkpoint"):
        errors.function([], Options())
    with pytest.raises(BadInput, match="two checkpoints are named written-clock"):
        errors.function([written.clock(), written.clock()], Options())
    with pytest.raises(BadInput, match="no such folder; give one that holds a finished count"):
        errors.function([written.clock()], Options(counts=str(tmp_path / "none")))
    with pytest.raises(BadInput, match="problems is 10, expected 1,000 to 5,000,000"):
        Options(problems=10)
    with pytest.raises(BadInput, match="full asks ten times"):
        Options(problems=600_000, full=True)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_it_is_registered_under_its_name():
    assert get("errors") is errors
    assert set(CLASSES) >= {"S4", "M3", "N4"}
