import dataclasses

import numpy as np
import pytest
import torch

from analyses.learned._exact_places import place_of
from analyses.learned._interchange_measure import RANDOM, Runs, partners, predict, span, swap, swaps_of, variables_of
from analyses.learned._interchange_summary import by_shape, findings, sites_of_swaps
from analyses.learned._interchange_variables import VARIABLES, meaning
from analyses.learned._replace import Where, replaced
from analyses.learned.interchange import Options, interchange
from workbench import forward, written
from workbench.analysis import get, load, save
from workbench.checkpoint import Checkpoint
from workbench.errors import BadInput
from workbench.probe import fit
from workbench.sample import sample

VARIABLE = {variable.name: variable for variable in VARIABLES}
N = 30
MID, POST = "blocks.0.hook_resid_mid", "blocks.0.hook_resid_post"


def runs_of(checkpoint: Checkpoint, problems: int = 1_200, variant="all") -> Runs:
    weights = forward.tensors(checkpoint.weights)
    return Runs(weights, checkpoint.config.architecture, sample(problems, 2, variant), False)


@pytest.fixture(scope="module")
def exact():
    return runs_of(written.exact())


def shares(runs: Runs, name: str, place: int) -> dict[tuple[str, str], float]:
    """Share of swaps as predicted, by hook and subspace, draws together."""
    rows = list(swap(runs, VARIABLE[name], place, N, 0))
    assert {row["n"] for row in rows} == {N}
    keys = dict.fromkeys((row["hook"], row["subspace"]) for row in rows)
    return {
        key: float(np.mean([row["predicted"] for row in rows if (row["hook"], row["subspace"]) == key])) / N
        for key in keys
    }


@pytest.mark.parametrize(("name", "place"), [("carry", 2), ("carry", 4), ("borrow", 1), ("borrow (-)", 3)])
def test_the_written_decoders_answer_follows_its_carry_after_mlp_0(exact, name, place):
    found = shares(exact, name, place)
    for hook in (POST, "blocks.1.hook_resid_mid"):  # attention of layer 1 writes nothing
        assert found[hook, "readout"] == found[hook, "pattern"] == 1.0
        assert found[hook, "random"] < 0.6 and found[hook, "pushed"] < 0.6
    if place < 4:  # by then the digit is made; d4 is the carry itself
        assert found["blocks.1.hook_resid_post", "readout"] < 0.6


def test_and_no_borrow_is_there_before_mlp_0(exact):
    found = shares(exact, "borrow", 2)
    assert found[MID, "readout"] < 0.5 and found[MID, "pattern"] < 0.5


def test_direction_turns_borrows_too_before_mlp_0_and_only_the_place_after_it(exact):
    before, here = shares(exact, "direction", 2), shares(exact, "direction here", 2)
    assert before[MID, "readout"] == 1.0 and here[MID, "readout"] < 0.2
    assert here[POST, "readout"] == here[POST, "pattern"] == 1.0 and before[POST, "readout"] < 0.6
    assert max(before[MID, "random"], here[POST, "random"]) < 0.3


def test_a_sum_that_can_be_read_but_is_not_used_is_not_followed(exact):
    """The decoder holds its digits one-hot: their sum is a linear reading of them, but nothing it computes with."""
    rows = [row for row in swap(exact, VARIABLE["sum"], 1, N, 0) if row["hook"] == MID]
    assert rows[0]["r2"] > 0.999
    assert all(row["predicted"] <= 0.2 * N for row in rows)


def test_the_clock_follows_its_sum_modulo_ten_and_not_the_sum():
    runs = runs_of(written.clock(), 2_000, "addition")
    found = shares(runs, "sum mod 10", 2)
    assert found[POST, "readout"] == found[POST, "pattern"] == 1.0 and found[POST, "random"] < 0.6
    assert found[MID, "readout"] < 0.6  # the angles of both digits are there, those of their sum not yet
    assert shares(runs, "sum", 2)[POST, "readout"] < 0.2
    assert not list(swap(runs, VARIABLE["carry"], 2, N, 0))  # where one arrives it is wrong


def test_a_spoiled_carry_is_not_found():
    checkpoint = written.exact()
    weights = {name: value.copy() for name, value in checkpoint.weights.items()}
    weights["blocks.0.mlp.W_out"][3:5, written.CARRY] = 0  # no carry into the tens of additions
    runs = runs_of(dataclasses.replace(checkpoint, weights=weights))
    assert not list(swap(runs, VARIABLE["carry"], 1, N, 0))
    assert shares(runs, "carry", 2)[POST, "readout"] == 1.0


def test_partners_are_answered_right_and_differ_as_the_variable_says():
    problems = sample(2_000, 4)
    known = np.random.default_rng(0).random(2_000) < 0.7
    for variable in VARIABLES:
        place = place_of(problems, 2)
        base, source = partners(variable, place, problems.negative, known, 200, 0)
        assert len(base) == 200 and min(base.min(), source.min()) >= 1_000
        assert known[base].all() and known[source].all() and (problems.subtract[base] == variable.subtract).all()
        assert ((problems.negative[base] != problems.negative[source]) == variable.turns).all()
        assert (predict(variable, place, base, source) != place.digit[base]).all()
        if variable.negative is not None:
            assert (problems.negative[base] == variable.negative).all()
        if "borrow" in variable.name or variable.name == "carry":
            assert (place.arriving[base] != place.arriving[source]).all()


def test_readings_of_the_nine_numbers_are_all_functions_modulo_ten():
    problems = sample(2_000, 5)
    place = place_of(problems, 1)
    numbers = VARIABLE["sum mod 10"].numbers(place, problems.negative)
    function = np.random.default_rng(0).normal(size=10)[place.local % 10]
    design = np.column_stack([numbers, np.ones(len(numbers))])
    solution, *_ = np.linalg.lstsq(design, function, rcond=None)
    np.testing.assert_allclose(design @ solution, function, atol=1e-10)


def test_what_each_swap_does_to_the_stream():
    generator = torch.Generator().manual_seed(0)
    mixed = torch.randn(12, 12, generator=generator)
    x, source = (torch.randn(300, 12, generator=generator) @ mixed for _ in range(2))
    targets = torch.stack([x[:, 0] + x[:, 3], x[:, 5]], dim=1) + torch.randn(300, 2, generator=generator)
    weight = fit(x[None], targets).weight[0]
    by_kind: dict[str, list] = {}
    for kind, change in swaps_of(x, targets, weight, 0):
        by_kind.setdefault(kind, []).append(change((source - x).double()))
    assert {kind: len(changes) for kind, changes in by_kind.items()} == {
        "readout": 1, "pattern": 1, "random": RANDOM, "pushed": RANDOM,
    }  # fmt: skip
    read = source.double() @ weight
    for kind in ("readout", "pattern"):  # both make the readouts say what they say of the source
        torch.testing.assert_close((x.double() + by_kind[kind][0]) @ weight, read, atol=1e-5, rtol=0)
    covariance = (x - x.mean(dim=0)).double().T @ (targets - targets.mean(dim=0)).double()
    for kind, directions in (("readout", weight), ("pattern", covariance)):
        left = by_kind[kind][0] @ (torch.eye(12, dtype=torch.float64) - span(directions))
        assert left.abs().max() < 1e-6  # and move nowhere else
    for change in by_kind["random"]:
        assert torch.linalg.matrix_rank(change) == 2
    for change in by_kind["pushed"]:
        torch.testing.assert_close(change.norm(dim=1), by_kind["pattern"][0].norm(dim=1))
        assert torch.linalg.matrix_rank(change) == 1
    assert not span(torch.zeros(5, 2)).any()


def test_replacing_nothing_but_the_own_value_changes_nothing():
    runs = runs_of(written.clock(), 1_000)
    tokens, architecture = runs.tokens[:5, :13], runs.architecture
    own = replaced(runs.weights, tokens, architecture, [Where(POST, 12)], [runs.at(POST, 2)[:5]])
    expected = forward.logits(runs.weights, tokens, architecture)[:, -1, :10]
    torch.testing.assert_close(own[0], expected)
    assert (expected.argmax(dim=1).numpy() == runs.said(2)[:5]).all()


def test_variables_are_those_of_the_problems():
    names = {variant: [v.name for v in variables_of(sample(50, 0, variant))] for variant in ("addition", "subtraction")}
    assert names["addition"] == ["carry", "sum", "sum mod 10"]
    assert "direction" in names["subtraction"] and "carry" not in names["subtraction"]
    ordered = [variable.name for variable in variables_of(sample(50, 0, "ordered"))]
    assert "borrow" in ordered and "borrow (+)" not in ordered and "direction" not in ordered
    assert meaning("borrow (-)") == "the borrow into the place, answers -"


def test_the_higher_control_counts():
    def row(subspace, predicted):
        return {"checkpoint": "c", "variable": "carry", "hook": POST, "subspace": subspace, "predicted": predicted,
                "kept": 0, "n": 50, "r2": 0.9, "directions": 1}  # fmt: skip

    swaps = [row("readout", 50), row("pattern", 50), row("random", 10), row("random", 14), row("pushed", 40)]
    readout, pattern = sites_of_swaps(swaps)
    assert (readout["control"], readout["control_share"], readout["verdict"]) == ("random", 0.24, "yes")
    assert (pattern["control"], pattern["control_share"], pattern["verdict"]) == ("pushed", 0.8, "in part")
    (shape,) = by_shape([readout, pattern], {"c": "kind"})
    assert shape["L0 post"] == shape["best readout"] == 1.0 and shape["highest control"] == 0.8


def test_of_several_seeds_the_interval_is_wilsons_over_all_swaps():
    """81 of 263: 0.2553 to 0.3662 (Newcombe 1998, table I)."""
    row = {"variable": "carry", "site": "L0 post", "subspace": "pattern", "r2": 0.9, "kept": 0.0, "control": "random",
           "control_share": 0.1, "control_n": 300, "verdict": "in part", "low": 0.0, "high": 1.0}  # fmt: skip
    sites = [
        row | {"checkpoint": name, "subspace": subspace, "predicted": hits, "n": n, "share": hits / n}
        for name, hits, n in (("a", 30, 100), ("b", 51, 163))
        for subspace in ("pattern", "readout")
    ]
    of_shape = findings(sites, {"a": "two", "b": "two"}, "")[0]
    assert (of_shape.value, of_shape.n, of_shape.control_value) == (81 / 263, 263, pytest.approx(0.1))
    assert (of_shape.low, of_shape.high) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert "lowest to highest of 2 seeds 0.30 to 0.31" in of_shape.text
    assert "of one seed" in findings(sites[:2], {"a": "one"}, "")[0].text


@pytest.fixture(scope="module")
def result():
    return interchange.function([written.clock()], Options(problems=1_500, swaps=20))


def test_findings_give_value_interval_n_and_control(result):
    found = [finding for finding in result.findings if "sum mod 10" in finding.text]
    assert len(found) == 2 and "short run: 20 swaps" in found[0].text
    for finding in found:
        assert (finding.value, finding.n) == (1.0, 80) and "L0 post" in finding.text
        assert finding.control_value < 0.6 and "random" in finding.control
    assert found[0].low == found[1].low == pytest.approx(0.9542, abs=1e-4) and found[0].high == 1  # 80 / (80 + 1.96^2)
    assert found[1].low > 0.9 and "(yes)" in found[1].text


def test_the_figure_has_a_map_a_variable_on_one_scale(result):
    figure = result.figures["summary"]
    assert len(figure.data) == len(set(result.tables["sites"]["variable"]))
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)
    assert figure.data[0].x[:5] == ("L0<br>mid<br>R", "L0<br>mid<br>r", "L0<br>mid<br>P", "L0<br>mid<br>p",
                                    "L0<br>post<br>R")  # fmt: skip


def test_the_same_seed_gives_the_same_result_which_reads_back_equal(result, tmp_path):
    options = Options(problems=1_500, swaps=20)
    assert interchange.function([written.clock()], options) == result
    save(result, tmp_path, analysis_name=interchange.name, options=options, inputs=["clock"])
    assert load(tmp_path) == result


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="at least one checkpoint"):
        interchange.function([], Options())
    with pytest.raises(BadInput, match="two checkpoints are named written-clock"):
        interchange.function([written.clock(), written.clock()], Options())
    with pytest.raises(BadInput, match="problems is 10, expected 1,000 to 100,000"):
        Options(problems=10)
    with pytest.raises(BadInput, match="swaps is 5, expected 20 to 10,000"):
        Options(swaps=5)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_it_is_registered_under_its_name():
    assert get("interchange") is interchange
