import math
from typing import Any

import numpy as np
import pytest

from analyses.learned import twelve
from analyses.published import load
from workbench import analysis, checkpoint, evaluation, forward
from workbench.errors import BadInput
from workbench.recipe import Architecture, RunConfig
from workbench.scores import Score
from workbench.splits import Splits
from workbench.statistics import wilson

PUBLISHED = load("twelve")
RELU_1 = [("arithmetic-relu-1layer-seed0", 0.9694), ("-seed1", 0.9764), ("-seed2", 0.9842)]  # addition, as published


def row(right: int, n: int = 10_000, **changes: Any) -> dict[str, Any]:
    """A score row of relu, 1 layer, validation, addition, with `right` whole answers of `n`."""
    score = Score(n, loss=0.011, digits_right=5 * right, sequences_right=right, signs_right=0).row()
    where = {"model": RELU_1[0][0], "shape": "relu 1", "seed": 0, "split": "validation", "operator": "addition"}
    return {**where, **score, "loss_low": 0.0105, "loss_high": 0.0115, **changes}


def compared(metric: str, **row_values: Any) -> tuple[str, bool]:
    (found,) = [r for r in twelve.comparisons([row(**row_values)], PUBLISHED) if r["metric"] == metric]
    return found["side"], found["interval_outside_too"]


@pytest.mark.parametrize(
    ("value", "side"),
    [
        (0.9693, "below"),
        (0.96934, "below"),
        (0.96936, "inside"),
        (0.9694, "inside"),
        (0.98424, "inside"),
        (0.98426, "above"),
    ],
)
def test_outside_is_below_the_lowest_or_above_the_highest_as_rounded(value: float, side: str) -> None:
    assert twelve.side_of(value, [value for _, value in RELU_1], 4) == side


@pytest.mark.parametrize(
    ("right", "n", "expected"),
    [
        (9_760, 10_000, ("inside", False)),
        (9_680, 10_000, ("below", False)),  # 0.9680 (0.9644 to 0.9713) reaches into 0.9694 .. 0.9842
        (9_600, 10_000, ("below", True)),  # 0.9600 (0.9560 to 0.9637)
        (96, 100, ("below", False)),  # the same share of few problems
        (9_900, 10_000, ("above", True)),
        (99, 100, ("above", False)),
    ],
)
def test_a_number_outside_is_named_and_whether_its_interval_is_too(
    right: int, n: int, expected: tuple[str, bool]
) -> None:
    assert compared("seq_acc", right=right, n=n) == expected


def test_every_metric_split_and_operator_that_was_published_is_compared() -> None:
    def metrics(**where: str) -> dict[str, tuple[float, float]]:
        found = twelve.comparisons([row(9_700, **where)], PUBLISHED)
        return {r["metric"]: (r["published_lowest"], r["published_highest"]) for r in found}

    assert metrics() == {"loss": (0.0077, 0.0145), "digit_acc": (0.9936, 0.9968), "seq_acc": (0.9694, 0.9842)}
    assert metrics(operator="all")["sign_acc"] == (0.0, 0.0)
    assert metrics(operator="all", split="test")["loss"] == (0.3199, 0.3776)
    assert metrics(split="test") == metrics(split="fresh") == metrics(operator="all", split="fresh") == {}
    assert metrics(shape="") == {}
    assert metrics(shape="bilinear 2")["seq_acc"] == (0.9966, 0.998)


def test_the_published_number_of_the_same_name_stands_beside(monkeypatch) -> None:
    same = twelve._published_columns(row(9_700), PUBLISHED)
    assert (same["published_seq_acc"], same["published_loss"]) == (0.9694, 0.0145)
    assert math.isnan(same["published_sign_acc"])
    assert all(map(math.isnan, twelve._published_columns(row(9_700, model="mine"), PUBLISHED).values()))
    assert all(map(math.isnan, twelve._published_columns(row(9_700, shape=""), PUBLISHED).values()))


def test_the_share_outside_stands_beside_chance() -> None:
    rows = twelve.comparisons([row(9_760), row(9_600)], PUBLISHED)
    (finding,) = twelve._outside(rows)
    # loss 0.011 is inside twice; accuracies 0.976 and 0.96 are: digits below twice, sequences inside and below
    assert (finding.value, finding.n, finding.control_value) == (0.5, 6, 0.5)
    assert "3 of 6 numbers" in finding.text


def test_a_sentence_has_mean_lowest_highest_and_the_published() -> None:
    rows = [
        row(right, seed=seed, operator=operator)
        for operator, counts in (("addition", (9_700, 9_800, 9_750)), ("subtraction", (700, 800, 900)))
        for seed, right in enumerate(counts)
    ]
    addition, subtraction = twelve._sentences(rows, PUBLISHED)
    assert addition.value == pytest.approx(0.975)
    assert (
        "relu, 1 layer, addition: sequence accuracy 0.9750 on validation, 0.9700 to 0.9800 over 3 seeds"
        in addition.text
    )
    assert addition.control_value == pytest.approx((0.9694 + 0.9764 + 0.9842) / 3)
    half = 4.302653 * 0.005 / math.sqrt(3)  # Student's t, two degrees of freedom, spread 0.005
    assert (addition.low, addition.high) == pytest.approx((0.975 - half, 0.975 + half), abs=1e-8)
    assert (subtraction.value, subtraction.n) == (pytest.approx(0.08), 3)
    alone, _ = twelve._sentences([row for row in rows if row["seed"] == 0], PUBLISHED)
    assert "over 1 seed;" in alone.text and alone.low is None


@pytest.mark.parametrize(
    ("shape", "operator", "right", "verdict"),
    [
        ("relu 2", "subtraction", 9_700, "reaches 0.97"),
        ("relu 2", "subtraction", 9_699, "does NOT reach 0.97"),
        ("bilinear 1", "addition", 9_000, "reaches 0.9"),
        ("bilinear 1", "addition", 8_999, "does NOT reach 0.9"),
    ],
)
def test_what_is_asked_of_every_model_flips_with_the_lowest(
    shape: str, operator: str, right: int, verdict: str
) -> None:
    others = {"shape": shape, "operator": "addition"}
    rows = [
        row(9_990, **others),
        row(right, shape=shape, operator=operator, split="test"),
        row(1, split="fresh", **others),
    ]
    (finding,) = twelve._asked(rows)
    assert verdict in finding.text
    assert finding.value == right / 10_000
    assert (finding.low, finding.high) == wilson(right, 10_000)


def test_one_layer_subtraction_is_not_asked_for() -> None:
    assert twelve._asked([row(10, operator="subtraction")]) == []


def test_only_the_twelves_shapes_and_problems_are_compared() -> None:
    assert twelve.shape_of(RunConfig(Architecture(mlp="bilinear", n_layers=1), seed=77)) == ("bilinear", 1)
    assert twelve.shape_of(RunConfig(Architecture(n_layers=3))) is None
    assert twelve.shape_of(RunConfig(Architecture(d_mlp=128))) is None
    assert twelve.shape_of(RunConfig(problems="addition")) is None


@pytest.fixture
def checkpoints(tmp_path, write_run) -> list[checkpoint.Checkpoint]:
    """Untrained models: one of the twelve's shapes, one smaller."""
    configs = [RunConfig(Architecture(n_layers=1)), RunConfig(Architecture(d_model=8, d_mlp=8, n_layers=1), seed=7)]
    return [checkpoint.read(write_run(tmp_path / config.name, config, {200: 2.3})) for config in configs]


def test_the_whole_analysis_evaluates_from_the_weights_and_reads_back(checkpoints, tmp_path) -> None:
    result = twelve.twelve.function(checkpoints, twelve.Options(fresh=500))
    scores = result.tables["scores"]
    assert len(scores) == 2 * 3 * 3
    assert scores.groupby("split")["n"].max().to_dict() == {"validation": 10_000, "test": 10_000, "fresh": 500}
    first = scores.iloc[0]
    assert (first["model"], first["published_seq_acc"]) == (RELU_1[0][0], 0.521)
    assert first["loss_low"] < first["loss"] < first["loss_high"]
    summary = result.tables["summary"]
    assert len(summary) == 2 and summary["n"].tolist() == [10_000, 10_000]
    published = summary.iloc[0][["loss, published", "addition, published", "subtraction, published"]]
    assert published.tolist() == [0.3238, 0.9694, 0.0726]  # as the card of relu-1layer-seed0 has them
    assert summary.iloc[0]["loss"] == first["loss"]
    assert first["seq_acc"] < 0.01  # its weights are untrained, whatever its history says
    classes = result.tables["categories"].query("grouping == 'class'").groupby("model")["n"].sum()
    assert set(classes) == {20_500}
    assert set(result.tables["compared"]["model"]) == {RELU_1[0][0]}
    assert len(result.tables["compared"]) == 2 * 4 + 2 * 3
    assert (result.tables["outside"]["side"] != "inside").all()
    assert any("does NOT reach" in finding.text for finding in result.findings)
    heat = result.figures["peer-classes"].data[0]
    assert np.shape(heat.z) == (2, 13)
    analysis.save(result, tmp_path / "saved", analysis_name="twelve", options=twelve.Options())
    assert analysis.load(tmp_path / "saved") == result


def test_a_variant_is_evaluated_as_it_was_trained(checkpoints, tmp_path, write_run) -> None:
    config = RunConfig(Architecture(n_layers=1), problems="sign-hidden", seed=3)
    hidden = checkpoint.read(write_run(tmp_path / config.name, config, {200: 2.3}))
    result = twelve.twelve.function([checkpoints[0], hidden], twelve.Options(fresh=0))
    found = result.tables["scores"].query("model == @hidden.name and split == 'test' and operator == 'all'").iloc[0]
    problems = Splits(variant="sign-hidden").test
    outcome = evaluation.run(forward.tensors(hidden.weights), config.architecture, problems, "sign-hidden")
    assert found["loss"] == evaluation.score(outcome).loss
    assert (
        found["loss"]
        != evaluation.score(evaluation.run(forward.tensors(hidden.weights), config.architecture, problems)).loss
    )
    assert set(result.tables["compared"]["model"]) == {checkpoints[0].name}


def test_fresh_problems_are_none_that_any_model_saw() -> None:
    held_out = twelve._held_out(RunConfig(), 2_000)
    fresh = np.unique(held_out["fresh"].index)
    assert len(fresh) == 2_000
    for seen in (Splits().train.index, held_out["validation"].index, held_out["test"].index):
        nearest = fresh[np.searchsorted(fresh, seen).clip(max=1_999)]
        assert not (nearest == seen).any()


def test_bad_input_is_refused(checkpoints) -> None:
    with pytest.raises(BadInput, match="none of these has a shape of the twelve"):
        twelve.twelve.function(checkpoints[1:], twelve.Options())
    with pytest.raises(BadInput, match="two checkpoints are named"):
        twelve.twelve.function([*checkpoints, checkpoints[0]], twelve.Options())
    with pytest.raises(BadInput, match="--fresh is -1"):
        twelve.Options(fresh=-1)
