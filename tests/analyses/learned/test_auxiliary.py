"""Planted grids whose verdicts are known, and readouts of the decoder whose weights are written down."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from analyses.learned import _auxiliary_measure as measure
from analyses.learned import _auxiliary_rows as rows
from analyses.learned._auxiliary_findings import linearly
from analyses.learned._auxiliary_measure import R2, Looked, Part, calibration_error, explained, linearly_there
from analyses.learned._auxiliary_rules import effect, selected, source
from analyses.learned._auxiliary_runs import NONE, Condition, sort
from analyses.learned._auxiliary_tables import none_rows, selection_rows, verdict
from analyses.learned.auxiliary import Options, auxiliary
from workbench import auxiliary_grid, forward, written
from workbench.analysis import get, load, save
from workbench.checkpoint import Checkpoint
from workbench.engine import plain
from workbench.errors import BadInput
from workbench.hill import head_storage, heads
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, Auxiliary, Recipe, RunConfig
from workbench.sample import sample
from workbench.structure import categories
from workbench.task import encode, parse_all

ASKED = 300
SHORT = Recipe(steps=400, warmup_steps=10, batch_size=10)
SHAPES = (("relu", 1), ("bilinear", 2))
BASE = {"relu": 0.4, "bilinear": 0.001}  # cross-entropy without a head


def run(mlp, layers, seed, head=None, loss=1.0, right=0.5, reached=None, told=0.25):
    """A run as planted: test cross-entropy, share right, the step from which 0.99 of validation is right."""
    config = RunConfig(Architecture(mlp=mlp, n_layers=layers), SHORT, seed=seed, engine="plain", auxiliary=head)
    score = {"n": 1_000, "loss": loss, "digits_right": 4_000, "sequences_right": int(1_000 * right), "signs_right": 0}
    results = dict.fromkeys(("validation", "test"), dict.fromkeys(("all", "addition", "subtraction"), score))
    validations = [
        {"step": step, "loss": loss * (5 - step / 100), "n": 10_000,
         "sequences_right": 9_900 if reached and step >= reached else 9_899,
         "grad_norm_head": 0.1 * (head.head_weight if head else 0), "grad_norm_cross_entropy": 0.5}
        for step in (100, 200, 300, 400)
    ]  # fmt: skip
    history = {"results": results, "validations": validations, "selection": {"kept_step": 400}}
    if head:
        part = {"n": 1_000, "loss": 0.5 * (1 - told), "variance": 0.5}
        history["head"] = {"test": dict.fromkeys(("all", "addition", "subtraction"), part)}
    weights = {name: w.numpy() for name, w in initial_weights(config.architecture, "fan-in", seed).items()}
    words = "-".join(map(str, dataclasses.astuple(head))) if head else "plain"
    return Checkpoint(Path(f"{mlp}-{layers}-{words}-{seed}"), config, {}, f"{seed}" * 64, weights, history)


def six(head, ratios, **given):
    """One run for each of three seeds of both shapes, so many times the cross-entropy without a head in logarithm."""
    places = [(mlp, layers, seed) for mlp, layers in SHAPES for seed in (0, 1, 2)]
    assert len(ratios) == len(places)
    return [
        run(*place, head, loss=BASE[place[0]] * math.exp(ratio), **given)
        for place, ratio in zip(places, ratios, strict=True)
    ]


WIGGLE = np.array([-0.05, 0.03, 0.01, 0.04, -0.02, -0.01])  # mean 0, t-interval -0.036 to 0.036
WATCHING = auxiliary_grid.NO_HEAD
FROZEN, LINEAR, RANDOM, TRAINABLE = (
    Auxiliary(head="digitwise", head_form=form, head_weight=2.0) for form in ("frozen", "linear", "random", "trainable")
)


@pytest.fixture(scope="module")
def few():
    """300 problems to fit on and 300 to score, not 10,000; nothing is drawn for training."""
    problems = sample(2 * ASKED, 5)
    with pytest.MonkeyPatch.context() as patched:
        for module in (measure, rows):
            patched.setattr(module, "splits", lambda *of: (problems[:ASKED], problems[ASKED:]))
        yield problems[ASKED:]


@pytest.fixture(scope="module")
def planted(few):
    """A head that helps by its unit, controls that help less, another that harms, a sweep of three; one run missing."""
    runs = [
        *six(WATCHING, [0] * 6, right=0.5, reached=300),
        *six(FROZEN, -0.5 + WIGGLE, right=0.75, reached=200),
        *six(LINEAR, -0.1 + WIGGLE[::-1]),
        *six(RANDOM, 0.0 + WIGGLE),
        *six(dataclasses.replace(FROZEN, head="additive"), 0.3 + WIGGLE),
        *six(dataclasses.replace(FROZEN, head="carry"), 10 * WIGGLE)[:-1],
        *[
            run("relu", 1, 0, dataclasses.replace(FROZEN, **of), loss=0.4 * math.exp(ratio))
            for of, ratio in (
                ({"head_weight": 0.5}, -0.7), ({"head_schedule": "decay"}, -0.2), ({"head_site": "resid_post"}, 0.4),
            )
        ],
    ]  # fmt: skip
    return auxiliary.function(runs, Options())


def only(table, **values):
    for column, value in values.items():
        table = table[table[column] == value]
    return table


def test_planted_helps_are_found_and_named(planted, tmp_path):
    result = planted
    summary = result.tables["summary"].set_index(["head", "form"])
    effects = {"digitwise frozen": "helps", "additive frozen": "harms", "carry frozen": "open"}
    assert {name: summary.loc[tuple(name.split()), "verdict"] for name in effects} == effects
    # 2.571 is the t quantile of 5 degrees of freedom; the planted ratios' standard deviation is 0.03347
    row = summary.loc["digitwise", "frozen"]
    assert row["log_ratio"] == pytest.approx(-0.5)
    assert row["low"] == pytest.approx(-0.5 - 2.5706 * 0.033466 / math.sqrt(6), abs=1e-5)
    assert (row["relu, 1 layer"], row["reached_99"]) == ("-0.55 -0.47 -0.49", "6 of 6")
    answer = result.findings[0]
    assert "Helps: digitwise frozen; harms: additive frozen." in answer.text and answer.n == 6
    assert (answer.value, answer.control) == (pytest.approx(-0.5), "none")
    (from_what,) = [f for f in result.findings if "what helps" in f.text]
    assert "what helps: the exact unit" in from_what.text and from_what.value == pytest.approx(-0.4)
    assert from_what.control_value == pytest.approx(-0.1)
    (own,) = [f for f in result.findings if f.text.startswith("digitwise frozen, against none")]
    assert "6 of 6 reach 0.99 on validation (without 6 of 6); where both do, -100 (-100 to -100) steps" in own.text
    assert "addition 0.750 (without 0.500)" in own.text
    assert list(result.figures) == ["effect", "training", "readouts"]
    save(result, tmp_path, analysis_name=auxiliary.name, options=Options(), inputs=["planted"])
    assert load(tmp_path) == result


def test_the_tables_say_what_was_planted(planted):
    result = planted
    shapes = only(result.tables["shapes"], head="digitwise", form="frozen").set_index("shape")
    assert shapes.loc["bilinear, 2 layers", "seeds"] == 3
    assert shapes.loc["relu, 1 layer", "loss"] == pytest.approx(0.4 * math.exp(-0.5 - 0.01 / 3))
    assert shapes.loc["relu, 1 layer", "steps_99"] == "200; 200; 200"
    without = only(result.tables["shapes"], head="additive").set_index("shape")
    assert without.loc["relu, 1 layer", "steps_99"] == "not reached; not reached; not reached"
    runs = result.tables["runs"]
    assert runs["told_addition"].to_numpy() == pytest.approx(0.25) and runs["sweep"].sum() == 3
    sweep = result.tables["sweep"].set_index(["weight", "schedule", "site"])["log_ratio"]
    assert len(sweep) == 5 and sweep.loc[2.0, "constant", "blocks.0.hook_resid_mid"] == pytest.approx(-0.55)
    assert sweep.loc[0.5, "constant", "blocks.0.hook_resid_mid"] == pytest.approx(-0.7)
    (swept,) = [f for f in result.findings if f.text.startswith("Weights and schedules")]
    assert swept.value == pytest.approx(-0.7) and "blocks.0.hook_resid_post" in swept.text
    assert len(result.tables["without"]) == 6 and set(result.tables["without"]["beside"]) == {"a head of weight 0"}
    gains = only(result.tables["readouts"], head="additive")["gain"]
    assert gains.to_numpy() == pytest.approx(0)  # all have the initial weights of their seed
    lines = [trace for trace in result.figures["effect"].data if trace.name == "sweep: constant weight"]
    assert [list(line.x) for line in lines] == [[0.5, 2.0]]


@pytest.mark.parametrize(
    ("against", "expected"),
    [
        ((-0.5, -0.4, -0.4), "the exact unit"),
        ((-0.5, 0.0, -0.4), "the target"),
        ((-0.5, -0.4, 0.0), "the target"),
        ((-0.5, 0.4, 0.4), "the target"),
        ((0.0, -0.4, -0.4), "nothing shown"),
        ((0.5, -0.4, -0.4), "nothing shown"),
    ],
)
def test_what_helps_flips_with_each_comparison(against, expected):
    assert source(*((mean + WIGGLE).tolist() for mean in against)) == expected


def test_verdicts_flip_where_their_interval_meets_zero():
    half = 2.570582 * np.std(WIGGLE, ddof=1) / math.sqrt(6)
    for mean, expected in ((-1.01, "helps"), (-0.99, "open"), (0.99, "open"), (1.01, "harms")):
        values = (mean * half + WIGGLE).tolist()
        assert effect(values) == verdict(values) == expected
    for mean, expected in ((-1.01, "less"), (0.99, "no difference shown"), (1.01, "more")):
        assert linearly((mean * half + WIGGLE).tolist()) == expected
    assert verdict([-0.5]) == "one decoder" and linearly([0.5]) == "no difference shown"
    assert selected([0.951, -1.049]) == (1, -1) and selected([0.949, -1.0]) is None
    assert selected([0.04, 1.0]) == (0, 1) and selected([0.5, 1.0]) is None


def test_a_part_of_the_grid_names_what_is_missing(few):
    grid = sort([*six(WATCHING, [0] * 6), *six(FROZEN, WIGGLE)[:4]])
    assert (len(grid.missing), grid.weight) == (84 - 10, 2.0)
    assert "arithmetic-bilinear-2layer-digitwise-frozen-seed1" in grid.missing
    assert "arithmetic-bilinear-2layer-digitwise-frozen-seed0" not in grid.missing
    result = auxiliary.function(grid.runs, Options())
    assert result.findings[1].value == 74 and "and 70 more" in result.findings[1].text


def test_of_a_whole_grid_the_controls_of_the_most_promising_head_are_missing():
    runs = []
    for config in auxiliary_grid.main_runs(1.0, SHORT).values():
        shape, head = config.architecture, config.auxiliary
        assert head
        better = head.head == "carry" and head.head_form == "frozen"
        runs.append(run(shape.mlp, shape.n_layers, config.seed, head, loss=0.5 if better else 1.0))
    missing = sort(runs).missing
    assert len(missing) == 24 + 10 and all("-carry-" in name for name in missing)
    controls = auxiliary_grid.control_runs("carry", 1.0, SHORT)
    again = [
        run(config.architecture.mlp, config.architecture.n_layers, config.seed, config.auxiliary)
        for name, config in controls.items()
        if not name.endswith("resid_post")
    ]
    (last,) = sort(runs + again).missing
    assert last == "arithmetic-relu-1layer-carry-frozen-seed0-resid_post"


def test_a_plain_run_stands_in_for_none_and_others_are_left_out(few):
    plain_ones = [run(mlp, n, seed, loss=BASE[mlp]) for mlp, n in (*SHAPES, ("relu", 2)) for seed in (0, 1, 2)
                  if mlp != "relu" or n == 1]  # fmt: skip
    other = dataclasses.replace(plain_ones[0], config=dataclasses.replace(plain_ones[0].config, problems="addition"))
    grid = sort([*plain_ones, other, *six(FROZEN, -0.5 + WIGGLE)])
    assert list(grid.conditions[NONE].values()) == plain_ones
    assert {row["beside"] for row in none_rows(grid)} == {"no head"}
    both = sort([*plain_ones, *six(WATCHING, [0] * 6), *six(FROZEN, -0.5 + WIGGLE)])
    assert all(one.config.auxiliary == WATCHING for one in both.conditions[NONE].values())
    alone = auxiliary.function(six(FROZEN, WIGGLE), Options())
    assert alone.findings[0].text.startswith("No head can be compared")


def test_calibration_worked_by_hand():
    # bins of width 1/15: 0.90 and 0.92 share one, 0.60 lies on the upper edge of that of 0.55, 1.0 in the last
    confidence = torch.tensor([0.90, 0.92, 0.60, 0.55, 1.0, 1.0], dtype=torch.float64)
    hits = torch.tensor([True, False, True, False, True, False])
    expected = (abs(1 - 1.82) + abs(1 - 1.15) + abs(1 - 2.0)) / 6
    assert calibration_error(confidence, hits) == pytest.approx(expected)
    rng = np.random.default_rng(0)
    drawn = rng.uniform(0.1, 1, 200_000)
    right = rng.random(200_000) < drawn
    assert calibration_error(torch.from_numpy(drawn), torch.from_numpy(right)) < 0.01  # says what it knows
    tempered = torch.from_numpy(np.minimum(drawn + 0.2, 1))
    assert calibration_error(tempered, torch.from_numpy(right)) == pytest.approx(
        (tempered.numpy() - drawn).mean(), abs=0.01
    )


def test_variance_explained_worked_by_hand():
    truth = torch.tensor([[[0.0], [3.0]], [[2.0], [3.0]]], dtype=torch.float64)  # the second place never varies
    mean = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    said = torch.tensor([[[0.5], [3.0]], [[2.0], [3.5]]], dtype=torch.float64)
    assert explained(said, truth, mean).value == pytest.approx(1 - 0.5 / 2)
    assert explained(truth, truth, mean).value == 1 and explained(mean.expand(2, 2, 1), truth, mean).value == 0
    assert math.isnan(explained(said[:, 1:], truth[:, 1:], mean[1:]).value)


@pytest.fixture(scope="module")
def exact():
    """The written decoder's stream at the answer positions, before and after its last MLP, of two draws of problems."""
    one = written.exact()
    draws = [sample(1_500, 1), sample(500, 2)]
    sites = ["blocks.1.hook_resid_mid", "blocks.1.hook_resid_post"]
    weights = forward.tensors(one.weights)
    found = [
        plain.loss_and_sites(weights, torch.from_numpy(encode(p)), one.config.architecture, sites)[1] for p in draws
    ]
    return draws, {site: [of[site] for of in found] for site in sites}


def test_what_is_written_into_the_stream_is_found_there(exact):
    (fitted_on, scored_on), stream = exact
    mid, post = (
        linearly_there(one, fitted_on, other, scored_on)
        for one, other in (stream["blocks.1.hook_resid_mid"], stream["blocks.1.hook_resid_post"])
    )
    for operator in ("addition", "subtraction"):
        # digits of both operands stand at each place: their sum is linear in them, the digit modulo ten is not
        assert mid[Part("additive", operator)].value == pytest.approx(1, abs=1e-4)
        assert post[Part("digitwise", operator)].value == pytest.approx(1, abs=1e-4)  # the answer's digit stands there
        assert mid[Part("digitwise", operator)].value < 0.1
    assert post[Part("carry", "addition")].value == pytest.approx(1, abs=1e-4)  # (a + b + carry in - digit) / 10
    assert mid[Part("carry", "addition")].value < 0.9
    n = {operator: mid[Part("carry", operator)].n for operator in ("addition", "subtraction")}
    assert n == {"addition": int((~scored_on.subtract).sum()), "subtraction": int(scored_on.subtract.sum())}
    for found in (mid, post):
        assert all(one.low <= one.value <= one.high for one in found.values())


def test_a_run_is_read_at_its_site_and_answered_as_the_decoder_answers(few):
    one = written.exact()
    looked = measure.look(one)
    assert looked.right.all() and looked.digits == 5 * ASKED and looked.calibration < 1e-5
    wrong = dataclasses.replace(one, weights=one.weights | {"unembed.W_U": -one.weights["unembed.W_U"]})
    assert not measure.look(wrong).right.any()
    at_the_end = dataclasses.replace(
        one, config=dataclasses.replace(one.config, auxiliary=Auxiliary(head_site="resid_post"))
    )
    after = measure.look(at_the_end).linear[Part("carry", "addition")]
    assert after.value > 0.99 > looked.linear[Part("carry", "addition")].value


def test_a_planted_head_tells_its_target_and_its_selection_is_read(exact, tmp_path):
    """An additive head whose two readouts are a and b in ten thousands, on the stream of the written decoder."""
    (_, problems), stream = exact
    head, architecture = Auxiliary(head="additive", head_form="trainable", head_weight=2.0), written.EXACT
    readout = torch.zeros(1, 2, 5, architecture.d_model)
    for position in range(1, 5):  # d4's has no digits; then thousands to units
        digits = torch.arange(10) * 10.0**-position
        readout[0, 0, position, written.DIGIT_A : written.DIGIT_A + 10] = digits
        readout[0, 1, position, written.DIGIT_B : written.DIGIT_B + 10] = digits
    W_hat, M_hat = heads.enumerated("additive")
    given = {"readout": readout.flatten(2), "W_hat": W_hat, "M_hat": M_hat}
    trained = head_storage.finished(head, architecture, given, 0)
    said = trained(stream["blocks.1.hook_resid_mid"][1], torch.from_numpy(problems.subtract))
    np.testing.assert_allclose(said[:, 0, 0].numpy(), problems.answers / 10_000, atol=1e-5)

    runs = {}
    for name, factor in (("same", 1.0), ("other", -1.0), ("between", 0.01)):
        W = W_hat.clone()
        W[1, 0, 1] *= factor  # of subtraction's second weight, -1
        (tmp_path / name).mkdir()
        config = dataclasses.replace(written.exact().config, auxiliary=head, seed=len(runs))
        runs[name] = dataclasses.replace(written.exact(), folder=tmp_path / name, config=config)
        head_storage.save(
            head_storage.finished(head, architecture, given | {"W_hat": W}, 0),
            tmp_path / name,
            runs[name].weights_sha256,
        )
    units = list(rows.unit_rows(sort(list(runs.values()))))
    found = {(row["run"], row["operator"]): (row["selection"], row["landed"], row["same"]) for row in units}
    assert found["same", "subtraction"] == ("[1, -1]", True, True) == found["same", "subtraction"]
    assert found["other", "subtraction"] == ("[1, 1]", True, False)
    assert found["between", "subtraction"] == ("", False, False)
    assert {found[name, "addition"] for name in runs} == {("[1, 1]", True, True)}
    subtraction = list(selection_rows(units))[1]
    assert (subtraction["units"], subtraction["landed"], subtraction["same"]) == (3, 2, 1)
    assert subtraction["selections"] == "[1, -1] x1; [1, 1] x1; none x1"
    assert not any(row["same_before"] for row in units)
    (tmp_path / "other" / head_storage.WEIGHTS).unlink()
    again = list(rows.unit_rows(sort(list(runs.values()))))
    assert [row["weights"] for row in again if row["run"] == "other"] == [rows.NOT_THERE]
    assert next(iter(selection_rows(again)))["units"] == 2


def test_classes_say_where_a_head_helps(few):
    grid = sort([*six(WATCHING, [0] * 6), *six(FROZEN, -0.5 + WIGGLE)])
    hard = categories(few, "class") == "N1"

    def looked(one):
        right = np.ones(len(few), bool) if one.config.auxiliary == FROZEN else ~hard
        return Looked(right, 0.0, 5 * len(few), {Part("carry", "addition"): R2(0.5, 0.4, 0.6, 10)})

    found = list(rows.class_rows(grid, {one.name: looked(one) for one in grid.runs}))
    for row in found:
        expected = (1.0, 0.0, 1.0) if row["class"] == "N1" else (1.0, 1.0, 0.0)
        assert (row["accuracy_lowest"], row["without_highest"], row["difference"]) == expected
    counted = {row["class"]: row["n"] for row in found if row["shape"] == "relu, 1 layer"}
    assert counted["N1"] == hard.sum() and sum(counted.values()) == len(few)


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="needs checkpoints"):
        auxiliary.function([], Options())
    with pytest.raises(BadInput, match="none of 1 checkpoints was trained with a head"):
        sort([run("relu", 1, 0)])
    one = run("relu", 1, 0, FROZEN)
    with pytest.raises(BadInput, match="are the same run; give each once"):
        sort([one, dataclasses.replace(one, folder=Path("again"))])
    with pytest.raises(BadInput, match="two checkpoints are named"):
        auxiliary.function([one, one], Options())
    recipe = dataclasses.replace(one.config, recipe=Recipe(), seed=1)
    with pytest.raises(BadInput, match="trained by another recipe"):
        sort([one, dataclasses.replace(one, config=recipe)])


def test_it_is_registered_under_its_name():
    assert get("auxiliary") is auxiliary
    assert auxiliary.within == "auxiliary"
    assert Condition("carry", "frozen") in {Condition(head, "frozen") for head in auxiliary_grid.HEADS}
    assert heads.targets("carry", parse_all(["0999+0001"])).ravel().tolist() == [0, 1, 1, 1]
