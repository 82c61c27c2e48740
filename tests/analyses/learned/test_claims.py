from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analyses.learned import _claims_evidence as evidence
from analyses.learned import _claims_ledger as ledger
from analyses.learned._claims_sweep import of_the_sweep, rate_entries, rate_entry
from analyses.learned.claims import Options, claims
from workbench import analysis, checkpoint, sweeps, written
from workbench.errors import BadInput
from workbench.evaluation import Outcome
from workbench.recipe import Architecture, twelve
from workbench.task import parse_all

ROOT = Path(__file__).parents[3]


def rows(shares, mlp="relu", layers=1, trained_on="all", n=1000):
    """One row a group and seed: `shares` maps a group to the three seeds' shares."""
    return [
        {"model": f"{mlp}-{seed}", "mlp": mlp, "layers": layers, "trained_on": trained_on, "seed": seed, "group": group,
         "n": n, "right": round(share * n), "share": share, "low": share - 0.01, "high": share + 0.01}
        for group, values in shares.items()
        for seed, share in enumerate(values)
    ]  # fmt: skip


def relu(no_borrow, units, ordered, subtraction):
    return [
        *rows({"no borrow": no_borrow, "units": units}),
        *rows({"borrow": ordered}, trained_on="ordered"),
        *rows({"borrow": subtraction}, trained_on="subtraction"),
    ]


HIGH, LOW, SOME = (0.99, 0.995, 1.0), (0.1, 0.2, 0.3), (0.4, 0.7, 0.95)


@pytest.mark.parametrize(
    ("found", "results", "verdict"),
    [
        (relu(HIGH, HIGH, LOW, LOW), ["holds"] * 4, "supported"),
        (relu(LOW, HIGH, HIGH, LOW), ["against", "holds", "against", "holds"], "refuted"),
        (relu(LOW, SOME, SOME, LOW), ["against", "open", "open", "holds"], "open"),
    ],
)
def test_the_borrow_sentence_follows_its_four_tests(found, results, verdict):
    tests = [test for test in ledger.borrow_tests(found) if test.mlp == "relu"]
    assert [test.result for test in tests] == results
    (entry,) = [e for e in ledger.entries(found, tests, []) if "borrow propagation" in e.sentence]
    assert entry.verdict == verdict and entry.finding().text.startswith(verdict.upper())


def test_a_missing_seed_leaves_a_test_open():
    found = [row for row in relu(HIGH, HIGH, LOW, LOW) if (row["trained_on"], row["seed"]) != ("ordered", 1)]
    assert [test.result for test in ledger.borrow_tests(found) if test.mlp == "relu"] == [
        "holds",
        "holds",
        "open",
        "holds",
    ]


@pytest.mark.parametrize(
    ("units", "result"), [((0.99, 0.995, 1.0), "holds"), ((0.94, 0.6, 0.9), "against"), ((0.96, 0.995, 1.0), "open")]
)
def test_the_units_digit_has_bounds_of_its_own_in_either_direction(units, result):
    (test,) = [t for t in ledger.borrow_tests(rows({"units": units})) if (t.mlp, t.test) == ("relu", "units")]
    assert test.result == result


def test_two_layers_stand_beside_one_for_models_of_subtraction_alone():
    two = rows({"borrow": (0.97, 0.98, 0.99)}, layers=2, trained_on="subtraction")
    given = [*relu(LOW, LOW, HIGH, LOW), *two]
    found = ledger.borrow_tests(given)
    test, other = [next(t for t in found if (t.mlp, t.test) == ("relu", name)) for name in ("subtraction", "ordered")]
    row = test.row()
    assert (row["two_layers_seeds"], row["two_layers_lowest"], row["two_layers_highest"]) == (3, 0.97, 0.99)
    assert other.row()["two_layers_seeds"] == 0
    (entry,) = [e for e in ledger.entries(given, found[:4], []) if "borrow propagation" in e.sentence]
    assert "subtraction 0.100 to 0.300 (2 layers 0.970 to 0.990): holds" in entry.found.text


SWEEP = [{"rate": rate, "mlp": mlp, "stable": rate < 0.04, "steps": 600} for rate in sweeps.RATES
         for mlp in ("relu", "bilinear")]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "verdict", "picked"),
    [({}, "supported", 0.02), ({0.04: True}, "open", 0.04), ({0.02: False}, "refuted", 0.01)],
)
def test_the_learning_rates_sentence_follows_the_sweep(changed, verdict, picked):
    entry = rate_entry([{**row, "stable": changed.get(row["rate"], row["stable"])} for row in SWEEP])
    assert (entry.verdict, entry.found.value, entry.found.control_value) == (verdict, picked, 0.02)


def test_runs_of_the_sweep_are_no_models_of_the_other_sentences():
    folder = ROOT / "checkpoints" / "sweeps" / "learning-rate"
    swept = [checkpoint.read(folder / f"lr-{rate}-relu") for rate in ("0.02", "0.04")]
    assert all(map(of_the_sweep, swept)) and evidence.kind_of(swept[0].config) == ("relu", 2, "all")
    assert not of_the_sweep(checkpoint.read(ROOT / "checkpoints" / "arithmetic-relu-1layer-seed0"))
    (entry,) = rate_entries(swept)  # one folder, one row
    assert (entry.verdict, entry.found.value, entry.found.n) == ("open", 0.04, 12)
    with pytest.raises(BadInput, match="none of these"):
        claims.function(swept, Options(exact=False))


def test_groups_are_what_they_say():
    problems = parse_all(["12+9", "9-3", "3-9", "12-3", "3-12"])  # addition, two without a borrow, two with one
    digits = np.ones((5, 5), bool)
    digits[2, 0] = digits[4, 4] = False
    outcome = Outcome(np.zeros(5), digits, np.array([True, False, False, False, False]))
    assert evidence.groups(problems, outcome) == {
        "addition": (1, 1), "subtraction": (2, 4), "no borrow": (1, 2), "no borrow, +": (1, 1), "no borrow, -": (0, 1),
        "borrow": (1, 2), "units": (3, 4), "sign": (1, 5),
    }  # fmt: skip


def test_only_the_twelve_their_variants_and_the_wide_relu_have_a_place():
    config = twelve()[0]
    assert evidence.kind_of(config) == ("relu", 1, "all")
    assert evidence.kind_of(replace(config, problems="ordered")) == ("relu", 1, "ordered")
    assert evidence.kind_of(replace(config, architecture=Architecture(n_layers=1, d_mlp=96))) == ("relu", 1, "wide")
    assert evidence.kind_of(written.exact().config) is None


def test_the_wide_relu_has_as_many_parameters_as_bilinear():
    assert Architecture(mlp="relu", n_layers=1, d_mlp=96).n_params == 11_584
    assert Architecture(mlp="bilinear", n_layers=1, d_mlp=64).n_params == 11_584


def test_a_recipe_that_differs_is_not_identical():
    configs = twelve()
    found = {entry.sentence: entry for entry in ledger.entries([], [], configs)}
    assert found["trained under an identical recipe"].verdict == "supported"
    assert ledger.entries([], [], configs[:11])[0].verdict == "open"  # one of the twelve is not there
    structure = found["MLP type is the only structural difference"]
    assert (structure.verdict, structure.found.value) == ("refuted", 2048.0)
    configs[0] = replace(configs[0], recipe=replace(configs[0].recipe, lr=0.01))
    assert ledger.entries([], [], configs)[0].verdict == "refuted"


def test_too_few_models_can_refute_a_sentence_but_never_support_it():
    def verdicts(relu, bilinear):
        found = rows({"addition": relu, "sign": (0.0,) * len(relu)}) + rows({"addition": bilinear}, mlp="bilinear")
        return [entry.verdict for entry in ledger.entries(found, [], [])]

    assert verdicts(HIGH, HIGH) == ["supported", "open"]  # the sign was looked at in 3 of twelve
    assert verdicts(HIGH, ()) == verdicts(HIGH, HIGH[:2]) == ["open", "open"]
    assert verdicts(LOW[:1], ()) == ["refuted", "open"]


def test_the_ledger_on_committed_models_reads_back_and_shows_every_number(tmp_path):
    names = [f"arithmetic-{mlp}-1layer-seed0" for mlp in ("relu", "bilinear")]
    models = [checkpoint.read(ROOT / "checkpoints" / name) for name in names]
    result = claims.function(models, Options(problems=1000, exact=False))
    analysis.save(result, tmp_path / "claims", analysis_name="claims", options=Options(problems=1000, exact=False))
    assert analysis.load(tmp_path / "claims") == result
    evidence_rows = result.tables["evidence"]
    assert len(evidence_rows) == 2 * len(evidence.GROUPS)
    addition = evidence_rows[evidence_rows["group"] == "addition"]
    assert min(addition["share"]) > 0.9 and max(addition["low"] - addition["share"]) < 0
    assert set(result.tables["borrow-tests"]["result"]) == {"open"}  # one seed is not three
    assert len(list(result.figures["borrow-sentence"].data)) == 4
    assert set(result.tables["ledger"]["source"]) == {"model cards"}  # exact units were left out


def test_models_without_a_place_and_twins_are_refused():
    with pytest.raises(BadInput, match="none of these"):
        claims.function([written.exact()], Options())
    one = checkpoint.read(ROOT / "checkpoints" / "arithmetic-relu-1layer-seed0")
    with pytest.raises(BadInput, match="give each model once"):
        claims.function([one, one], Options())
    with pytest.raises(BadInput, match="expected 1,000"):
        Options(problems=10)
