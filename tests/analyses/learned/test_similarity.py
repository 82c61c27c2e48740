import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analyses.learned import _errors_patterns as patterns
from analyses.learned._errors_read import Asked, Wrong
from analyses.learned._similarity_errors import _twin_rows, error_rows, excess, twins
from analyses.learned._similarity_figures import _errors
from analyses.learned._similarity_findings import alike, beyond_twins, findings, same_jobs
from analyses.learned._similarity_heads import Compared
from analyses.learned._similarity_tables import relation, same_start
from analyses.learned.similarity import Options, similarity
from workbench import written
from workbench.analysis import get, load, save
from workbench.checkpoint import Checkpoint
from workbench.errors import BadInput
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample
from workbench.statistics import wilson
from workbench.task import Problems, encode

FEW = Options(problems=1_000, asked=1_000)
ORDER = [3, 0, 5, 1, 2, 4]  # head i of the turned model is head ORDER[i] of the exact one


def changed(one: Checkpoint, name: str, seed: int, **weights: np.ndarray) -> Checkpoint:
    config = dataclasses.replace(one.config, seed=seed)
    return dataclasses.replace(one, folder=Path(name), config=config, weights={**one.weights, **weights})


def turned(one: Checkpoint, name: str) -> Checkpoint:
    """The same function of its input: the residual stream rotated at random, the heads in another order."""
    size = one.config.architecture.d_model
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0]
    weights = {}
    for key, value in one.weights.items():
        if "attn" in key:
            value = value[ORDER]
        writes = key.endswith(("W_E", "W_pos", "W_O", "W_out"))
        weights[key] = (value @ turn if writes else turn.T @ value).astype(np.float32)
    return changed(one, name, 1, **weights)


def random(shape: Architecture, seed: int, sharp: float = 1.0, **config) -> Checkpoint:
    """Weights at random, the scores of attention `sharp` times as large."""
    weights = {name: value.numpy() for name, value in initial_weights(shape, "fan-in", 100 + seed).items()}
    weights |= {name: sharp * value for name, value in weights.items() if name.endswith("W_Q")}
    return Checkpoint(Path(f"random-{seed}"), RunConfig(shape, seed=seed, **config), {}, "", weights, {})


def rows(result, table, **values):
    found = result.tables[table]
    for column, value in values.items():
        found = found[found[column] == value]
    return found


@pytest.fixture(scope="module")
def found():
    exact = written.exact()
    models = [exact, turned(exact, "turned"), random(written.EXACT, 2, sharp=30.0)]
    return similarity.function(models, FEW)


def test_a_turned_model_holds_the_same_everywhere(found):
    same = rows(found, "cka", first="written-exact", second="turned")
    same = same[same["place"] == same["other_place"]].dropna(subset=["cka"])
    assert {"pre", "L0 mid", "L0 post", "L1 mid", "L1 post"} == set(same["place"])
    assert same["cka"].to_numpy() == pytest.approx(1, abs=1e-5)
    assert same["shuffled"].abs().max() < 0.1
    # the stream before the first layer is a function of position and token
    assert not len(same[(same["place"] == "pre") & (same["level"] != "position")])


def test_a_random_model_holds_something_else(found):
    other = rows(found, "cka", first="written-exact", second="random-2", level="token and digit")
    assert other["cka"].max() < 0.7
    (row,) = rows(
        found, "groups", place="L1 post", other_place="L1 post", operator="addition", level="own token"
    ).to_dict("records")
    assert row["pairs"] == 3 and row["highest"] == pytest.approx(1, abs=1e-5) and row["lowest"] < 0.9
    assert row["low"] < row["mean"] < row["high"] and row["untrained_highest"] < 0.9


def test_the_right_digit_is_all_the_exact_model_ends_with(found):
    last = rows(found, "answer", checkpoint="written-exact", place="L1 post", level="own token")
    first = rows(found, "answer", checkpoint="written-exact", place="L0 mid", level="own token")
    assert (last["cka"].to_numpy() > first["cka"].to_numpy()).all()
    assert (last["cka"] > last["untrained"]).all()


def test_heads_in_another_order_are_found(found):
    matched = rows(found, "heads", first="written-exact", second="turned", model="trained", layer=0)
    assert [ORDER[match] for match in matched["match"]] == matched["head"].tolist()
    assert matched["look"].to_numpy() == pytest.approx(1, abs=1e-5)
    # the operator and the sign are the same for all problems of a group: those heads write nothing that varies
    assert matched["idle"].tolist() == [False, False, True, True, False, False]
    busy = matched[~matched["idle"]]
    assert busy["write"].to_numpy() == pytest.approx(1, abs=1e-5) and busy["counterpart"].all()
    (row,) = rows(found, "layers", first="written-exact", second="turned", model="trained", layer=0).to_dict("records")
    assert (row["heads"], row["counterparts"]) == (4, 4) and row["counterparts_at_random"] < 2
    (above,) = rows(found, "layers", first="written-exact", second="turned", model="trained", layer=1).to_dict(
        "records"
    )
    assert above["heads"] == 0 and above["jobs"] == 0  # attention of layer 1 is zero


def test_heads_at_random_are_no_counterparts(found):
    layer = rows(found, "layers", second="random-2", model="trained", layer=0)
    assert len(layer) == 2 and (layer["counterparts"] == 0).all() and (layer["jobs"] < 0.1).all()
    assert (rows(found, "layers", model="untrained")["jobs"] == 0).all()
    jobs = rows(found, "jobs", layer=0, group="addition", answer="d2", reads="a2").to_dict("records")
    assert jobs[0]["trained"] >= 2 and jobs[0]["models"] == 3 and jobs[0]["untrained"] == 0


def test_figures_findings_and_disk(found, tmp_path):
    assert {"cka", "sites", "jobs", "matches"} <= set(found.figures) and "errors" not in found.figures
    (text,) = [f for f in found.findings if "addition: CKA" in f.text]
    assert "not all pairs are more alike" in text.text and text.control == "untrained pairs" and text.low < text.value
    (heads,) = [f for f in found.findings if "layer 0: some of the same jobs" in f.text]
    assert heads.control_value == 0 and "counted, so without" in heads.text
    assert all(one.n and one.control for one in found.findings)
    assert all((one.low is None) == ("counted, so without" in one.text) for one in found.findings)
    save(found, tmp_path, analysis_name=similarity.name, options=FEW, inputs=["a", "b", "c"])
    assert load(tmp_path) == found


def without_carry(place: int, name: str, seed: int) -> Checkpoint:
    """The exact model, but no carry arrives at this place (1 is the tens) of additions."""
    exact = written.exact()
    out = exact.weights["blocks.0.mlp.W_out"].copy()
    neuron = 3 + 6 * (place - 1)
    out[neuron : neuron + 2, written.CARRY] = 0
    return changed(exact, name, seed, **{"blocks.0.mlp.W_out": out})


def test_errors_that_only_digit_pairs_have_in_common():
    models = [without_carry(1, "tens", 0), without_carry(1, "again", 1), without_carry(2, "hundreds", 2)]
    found = [row for table, row in error_rows(models, 4_000, 0, None) if table == "errors"]
    by_pair = {(row["first"], row["second"]): row for row in found}
    assert by_pair["tens", "again"]["kappa"] == pytest.approx(1) and by_pair["tens", "again"]["shared"] == 1
    other = by_pair["tens", "hundreds"]
    assert other["kappa_within"] == pytest.approx(0, abs=1e-9) and other["enough"]
    # carries at rates 0.45 and 0.495, both at 0.45 (0.45 + 0.1) = 0.2475, by chance 0.22275
    assert other["kappa"] == pytest.approx(2 * (0.2475 - 0.22275) / (0.945 - 2 * 0.22275), abs=0.06)
    (finding,) = findings({"groups": [], "errors": found}, [])
    assert "addition: they err on partly the same problems" in finding.text and finding.control_value == 0
    assert finding.low == pytest.approx(np.mean([row["shared_low"] for row in found])) and finding.low < finding.value
    (finding,) = findings({"groups": [], "errors": [row | {"enough": False} for row in found]}, [])
    most = max(min(row["first_wrong"], row["second_wrong"]) for row in found)
    assert "too few errors" in finding.text and finding.value == most / finding.n and finding.control_value > 0
    assert (finding.low, finding.high) == wilson(most, finding.n)
    listed = [row | {"enough": False, "asked": "every problem"} for row in found]
    (finding,) = findings({"groups": [], "errors": listed}, [])
    assert finding.low is None and "counted, so without an interval" in finding.text
    same = [row | {"shared": np.nan} for row in found]
    (finding,) = findings({"groups": [], "errors": same}, [])
    assert "chance alone" in finding.text and finding.low < finding.value < finding.high and finding.control
    assert list(_errors(pd.DataFrame(found), ["tens", "again", "hundreds"]).data[0].x) == ["tens", "again", "hundreds"]


def test_twins_have_the_pattern_and_nothing_else():
    problems = sample(4_000, 0)
    found = twins(problems, 1)
    np.testing.assert_array_equal(patterns.patterns(found), patterns.patterns(problems))
    assert (found.index == problems.index).mean() < 0.02
    one = Problems(np.full(9_000, 4, np.uint16), np.full(9_000, 5, np.uint16), np.zeros(9_000, bool))
    units = np.bincount(twins(one, 0).a % 10, minlength=10)  # 0 + 9 to 9 + 0, ten pairs that sum to nine
    assert (np.abs(units / 9_000 - 0.1) < 0.015).all()


def test_more_errors_than_on_twins_worked_by_hand():
    here, twin = np.array([True] * 60 + [False] * 40), np.array([True] * 30 + [False] * 70)
    found = excess(here, twin, 0)
    assert (found["wrong"], found["twins"], found["excess"]) == pytest.approx((0.6, 0.3, 0.3))
    # the difference has variance (0.3 - 0.3^2) / 100
    half = 1.96 * (0.21 / 100) ** 0.5
    assert (found["excess_low"], found["excess_high"]) == pytest.approx((0.3 - half, 0.3 + half), abs=0.015)
    assert found["wrong_low"] < 0.6 < found["wrong_high"]


def test_a_model_that_errs_by_pattern_errs_on_twins_alike():
    problems = Problems.from_index(np.sort(sample(1_000, 0, "addition").index))
    said = encode(problems)[:, 11:].copy()
    said[:, 4] = (said[:, 4] + 1) % 10
    listed = Asked("all", [Wrong(written.exact(), problems.index, said, every=True)], patterns.sizes("all"))
    tens = without_carry(1, "tens", 1)
    wrong = problems.index[(problems.a % 10 + problems.b % 10) >= 10]
    of = Wrong(tens, wrong, said[: len(wrong)], every=True)
    sizes = np.bincount(patterns.patterns(problems), minlength=patterns.PATTERNS)
    (row,) = _twin_rows(listed, Asked("all", [of], sizes, problems.index), 0)
    assert row["wrong"] == row["twins"] == row["any"] == len(wrong) / 1_000
    assert row["excess"] == row["excess_low"] == row["excess_high"] == 0 and row["enough"]


def test_models_of_other_widths_variants_and_depths():
    shape = Architecture(n_layers=1)
    models = [random(shape, 0), random(shape, 1), random(dataclasses.replace(shape, n_layers=2), 2)]
    models += [random(dataclasses.replace(shape, d_mlp=96), 3), random(shape, 4, problems="ordered")]
    assert relation(*models[:2]) == "other seed" and relation(models[0], models[2]) == "other depth"
    assert relation(models[0], models[3]) == "other width"
    bilinear = random(Architecture(mlp="bilinear", n_layers=1), 0)
    assert relation(models[0], bilinear) == "other MLP kind" and same_start(models[0], bilinear)
    assert relation(models[2], bilinear) == "other MLP kind and depth" and not same_start(models[2], bilinear)
    result = similarity.function(models, FEW)
    assert {*zip(result.tables["layers"]["first"], result.tables["layers"]["second"], strict=True)} == {
        ("random-0", "random-1")
    }
    assert any("compared with nothing" in f.text and "random-4" in f.text for f in result.findings)
    alone = similarity.function([written.exact(), written.clock()], FEW)  # one errs nowhere, and no heads compare
    assert set(alone.tables) == {"summary", "groups", "cka", "answer", "jobs"}


def compared(look: float, write: float, first: bool = True, second: bool = True) -> Compared:
    """One head a model at four places, of which it has a job in the first two (or in none)."""
    values = [np.full((1, 4, 1, 1), value) for value in (look, write)]
    has = [np.array([[[here and place < 2] for place in range(4)]]) for here in (first, second)]
    return Compared(*values, *has, np.array([False]))


def test_the_same_job_flips_with_its_numbers():
    assert compared(0.75, 0.5).counterparts[0, 0] and compared(0.75, 0.5).same.sum() == 2
    assert not compared(0.74, 0.9).counterparts[0, 0] and not compared(0.9, 0.49).counterparts[0, 0]
    assert not compared(1.0, 1.0, second=False).counterparts[0, 0]
    assert not compared(1.0, 1.0, first=False, second=False).counterparts[0, 0]
    assert not compared(1.0, np.nan).counterparts[0, 0] and compared(0.6, np.nan).scores[0, 0] == 0.6


def test_verdicts_flip_with_their_numbers():
    assert alike(0.8, 0.7) == "much the same" and alike(0.79, 0.69) == "partly the same"
    assert alike(0.8, 0.71) == "not all pairs are more alike than untrained models"
    assert alike(0.9, np.nan) == "much the same" and alike(np.nan, 0.1) == "nothing there varies"
    assert same_jobs([0.75, 1.0], [0.5]) == "mostly the same jobs"
    assert same_jobs([0.75, 1.0], [0.51]) == same_jobs([0.74, 1.0], [0.0]) == "some of the same jobs"
    assert same_jobs([0.0, 0.25], [0.0]) == "mostly different jobs"
    assert same_jobs([0.0, 0.26], [0.0]) == "some of the same jobs"
    assert beyond_twins([0.01, 0.02], [0.1, 0.1]) == "more often" and beyond_twins([-0.2], [-0.1]) == "less often"
    assert beyond_twins([0.01, -0.1], [0.1, 0.1]) == "more often in 1, less often in 0 of 2 pairs"


def test_bad_input_is_named(tmp_path):
    with pytest.raises(BadInput, match="needs two checkpoints of one task variant"):
        similarity.function([written.clock()], Options())
    with pytest.raises(BadInput, match="two checkpoints are named written-clock"):
        similarity.function([written.clock(), written.clock()], Options())
    with pytest.raises(BadInput, match="no such folder; give one that holds a finished count"):
        similarity.function([written.clock()], Options(counts=str(tmp_path / "none")))
    with pytest.raises(BadInput, match="problems is 10, expected 1,000 to 50,000"):
        Options(problems=10)
    with pytest.raises(BadInput, match="asked is 60,000"):
        Options(asked=60_000)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_it_is_registered_under_its_name():
    assert get("similarity") is similarity
