import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from analyses.learned._exact_probe_fit import PLACES, PROBES, Split, activations, sites_of
from analyses.learned._exact_probe_summary import best_of_each_layer
from analyses.learned.exact_probe import Options, exact_probe
from workbench import forward
from workbench.analysis import get, load, save
from workbench.checkpoint import Checkpoint
from workbench.errors import BadInput
from workbench.hill.unit import HillUnit
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample
from workbench.task import PLUS, POSITION_LABELS, encode, parse

PROBLEMS = 4_000
OPERAND_VARIANCE = (10**8 - 1) / 12  # of a number uniform on 0..9999
DIGIT_VARIANCE = 99 / 12  # of a digit uniform on 0..9
A_DIGITS, B_DIGITS = (0, 1, 2, 3), (5, 6, 7, 8)  # positions, thousands first


def blank(architecture: Architecture) -> dict[str, np.ndarray]:
    return {name: np.zeros(shape, np.float32) for name, shape in architecture.shapes.items()}


def planted(heads_read: list[dict[int, float]], **variant) -> Checkpoint:
    """A one-layer model whose head h adds to dimension 16+h of the stream the weighted mean of the digits it reads.

    `heads_read[h]` gives the weight of each position; every other position has none. Dimension 0 holds a token's digit,
    dimension 1 is 1 everywhere, 2+h holds the attention score of a position for head h, and 15 tells `+` from the rest.
    """
    architecture = Architecture(n_layers=1, n_heads=len(heads_read), d_head=4)
    weights = blank(architecture)
    weights["embed.W_E"][:10, 0] = np.arange(10)
    weights["embed.W_E"][PLUS, 15] = 1
    weights["pos_embed.W_pos"][:, 1] = 1
    for head, read in enumerate(heads_read):
        for position in range(16):
            score = math.log(read[position]) if position in read else -60.0
            weights["pos_embed.W_pos"][position, 2 + head] = score
        weights["blocks.0.attn.W_Q"][head, 1, 0] = math.sqrt(4)  # undoes the scaling by 1/sqrt(d_head)
        weights["blocks.0.attn.W_K"][head, 2 + head, 0] = 1
        weights["blocks.0.attn.W_V"][head, 0, 1] = 1
        weights["blocks.0.attn.W_O"][head, 1, 16 + head] = 1
    config = RunConfig(architecture, **variant)
    return Checkpoint(Path("planted"), config, {}, "", weights, {})


def operands_in_the_stream(**variant) -> Checkpoint:
    """Two heads, each the mean of an operand's digits weighted 1000, 100, 10, 1: the stream holds a/1111 and b/1111."""
    values = (1000.0, 100.0, 10.0, 1.0)
    reads = [dict(zip(positions, values, strict=True)) for positions in (A_DIGITS, B_DIGITS)]
    return planted(reads, **variant)


def digits_in_the_stream() -> Checkpoint:
    """Eight heads that copy one digit each."""
    return planted([{position: 1.0} for position in (*A_DIGITS, *B_DIGITS)])


def without_output(checkpoint: Checkpoint) -> Checkpoint:
    """The same model, its attention writing nothing."""
    weights = checkpoint.weights | {"blocks.0.attn.W_O": np.zeros_like(checkpoint.weights["blocks.0.attn.W_O"])}
    return dataclasses.replace(checkpoint, weights=weights)


@pytest.fixture(scope="module")
def found():
    """Results of the probe on three models, one analysis each."""
    copies = digits_in_the_stream(), operands_in_the_stream(), without_output(operands_in_the_stream())
    return {
        name: exact_probe.function([checkpoint], Options(problems=PROBLEMS))
        for name, checkpoint in zip(("digits", "operands", "nothing"), copies, strict=True)
    }


@pytest.fixture
def operands(found):
    return found["operands"].tables


@pytest.fixture
def digits(found):
    return found["digits"].tables


def at(table, model="trained", labels="true", **values):
    for column, value in {"model": model, "labels": labels, **values}.items():
        table = table[table[column] == value]
    return table


def test_what_was_planted_is_what_the_planted_model_holds():
    checkpoint = operands_in_the_stream()
    problems = parse("1234-5678")
    seen = {}
    weights = {name: torch.from_numpy(value) for name, value in checkpoint.weights.items()}
    tokens = torch.from_numpy(encode(problems))[:, :15]
    forward.logits(weights, tokens, checkpoint.config.architecture, lambda name, value: seen.setdefault(name, value))
    held = seen["blocks.0.hook_resid_mid"][0, 9, 16:18] * 1111
    assert held.tolist() == pytest.approx([1234, 5678], rel=1e-6)


@pytest.mark.parametrize("operator", ["addition", "subtraction"])
@pytest.mark.parametrize("probe", PROBES)
def test_planted_operands_are_found_at_every_position_after_attention_and_not_before(operands, operator, probe):
    rows = at(operands["sites"], operator=operator, probe=probe)
    after, before = (rows[rows["hook"] == f"blocks.0.hook_resid_{where}"] for where in ("mid", "pre"))
    assert list(after["position"]) == list(POSITION_LABELS[8:15])
    assert after["r2"].min() > 1 - 1e-9 and after["exact_share"].min() == 1.0
    assert before["r2"].max() < 0.75 and before.set_index("position").loc["=", "r2"] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("operator", ["addition", "subtraction"])
def test_it_is_not_found_in_the_model_without_it(found, operator):
    sites = at(found["nothing"].tables["sites"], operator=operator)
    mid, pre = (
        sites[sites["hook"] == f"blocks.0.hook_resid_{where}"].set_index("position") for where in ("mid", "pre")
    )
    assert mid["r2"].max() < 0.75 and mid.loc["=", "r2"].abs().max() < 0.01 and mid["exact_share"].max() < 0.01
    assert mid["r2"].tolist() == pytest.approx(pre["r2"].tolist())  # nothing but the embedding


def test_shuffled_labels_explain_nothing(operands, digits):
    for tables in (operands, digits):
        rows = at(tables["sites"], labels="shuffled")
        assert len(rows) == len(at(tables["sites"])) and rows["r2"].max() < 0.03 and rows["r2"].min() > -0.05


def test_the_untrained_model_is_the_start_of_training(operands):
    checkpoint = operands_in_the_stream()
    config = checkpoint.config
    start = initial_weights(config.architecture, config.recipe.init, config.seed)
    other = dataclasses.replace(checkpoint, weights={name: value.numpy() for name, value in start.items()})
    again = exact_probe.function([other], Options(problems=PROBLEMS)).tables["sites"]
    columns = ["hook", "position", "operator", "probe", "r2", "low", "high"]
    trained, untrained = at(again)[columns], at(operands["sites"], model="untrained")[columns]
    assert trained.reset_index(drop=True).equals(untrained.reset_index(drop=True))
    assert untrained["r2"].max() < 0.99


def test_the_result_probe_is_least_squares_of_the_result_by_numpy(operands):
    """On the untrained model, where nothing is clean."""
    config = operands_in_the_stream().config
    problems = sample(PROBLEMS, 0)
    sites = sites_of(config.architecture, full=False)
    site = next(site for site in sites if (site.hook, site.position) == ("blocks.0.hook_resid_mid", 12))
    weights = initial_weights(config.architecture, config.recipe.init, config.seed)
    x = activations([site], weights, config, problems)[0].double().numpy()
    half = np.arange(PROBLEMS) < PROBLEMS // 2
    fitting, scoring = problems.subtract & half, problems.subtract & ~half
    design, result = x - x[fitting].mean(axis=0), problems.answers.astype(float)
    mean = result[fitting].mean()
    readout, *_ = np.linalg.lstsq(design[fitting], result[fitting] - mean, rcond=1e-6)  # without float32 rounding
    error = design[scoring] @ readout + mean - result[scoring]
    r2 = 1 - np.square(error).sum() / np.square(result[scoring] - mean).sum()
    rows = at(operands["sites"], model="untrained", operator="subtraction", probe=PROBES[1], position="d3")
    row = rows[rows["hook"] == site.hook]
    assert row["r2"].item() == pytest.approx(r2, abs=1e-3)  # the ridge penalty chosen is small
    assert (row["n_fit"].item(), row["n_score"].item()) == (fitting.sum(), scoring.sum())


@pytest.mark.parametrize("operation", ["add", "subtract"])
def test_readouts_fitted_through_the_unit_are_a_linear_probe_of_the_result(operation):
    """The unit's own derivatives make the design matrix; its least squares predicts what a direct probe predicts."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 5, generator=generator, dtype=torch.float64)
    x1 = torch.cat([x, torch.ones(200, 1, dtype=torch.float64)], dim=1)
    result = torch.randn(200, generator=generator, dtype=torch.float64) + x[:, 0].square()
    unit = HillUnit.enumerated(operation)

    def through(readouts):  # both readouts with their intercepts, flat
        return unit(x1 @ readouts.reshape(2, 6).T)

    design = torch.func.jacrev(through)(torch.zeros(12, dtype=torch.float64)).numpy()
    readouts, *_ = np.linalg.lstsq(design, result.numpy(), rcond=None)
    direct, *_ = np.linalg.lstsq(x1.numpy(), result.numpy(), rcond=None)
    np.testing.assert_allclose(through(torch.from_numpy(readouts)), x1.numpy() @ direct, atol=1e-12)


def test_a_number_tells_of_its_digits_what_arithmetic_says(operands):
    """cov(a, a_i) = 10^i var(a_i), so a linear reading of a explains 100^i * 8.25 / 8333333.25 of a_i's variance."""
    rows = at(operands["places"], hook="blocks.0.hook_resid_mid", position="=", operator="addition").set_index("place")
    for power, place in enumerate(reversed(PLACES)):
        assert rows.loc[place, "r2"] == pytest.approx(100**power * DIGIT_VARIANCE / OPERAND_VARIANCE, abs=0.006)
    assert rows.loc["all four", "exact_share"] < 0.01 and np.isnan(rows.loc["all four", "r2"])


@pytest.mark.parametrize("operator", ["addition", "subtraction"])
def test_planted_digits_make_every_place_exact(digits, operator):
    rows = at(digits["places"], hook="blocks.0.hook_resid_mid", operator=operator)
    assert set(rows["place"]) == {*PLACES, "all four"}
    assert rows["exact_share"].min() == 1.0 and rows["exact_high"].max() == 1.0
    assert rows[rows["place"] != "all four"]["r2"].min() > 1 - 1e-9
    assert at(digits["sites"], hook="blocks.0.hook_resid_mid", operator=operator)["exact_share"].min() == 1.0


def test_the_places_table_names_the_position_that_predicts_each_digit(digits):
    found = digits["digits"][digits["digits"]["operator"] == "addition"].set_index("place")["position"].to_dict()
    assert found == {"thousands": "d4", "hundreds": "d3", "tens": "d2", "units": "d1"}


def test_the_sign_alone_explains_two_thirds_of_a_difference(operands):
    """Of a - b over a square, E|a-b|^2 / E(a-b)^2 = (1/9) / (1/6) = 2/3: what the embedding tells at s."""
    values = {"operator": "subtraction", "probe": PROBES[1], "hook": "blocks.0.hook_resid_pre", "position": "s"}
    row = at(operands["sites"], **values)
    assert row["low"].item() < 2 / 3 < row["high"].item()


def test_the_best_site_of_a_layer_stands_beside_its_controls(operands):
    best = operands["layers"]
    assert len(best) == 4 and set(best["hook"]) <= {"blocks.0.hook_resid_mid", "blocks.0.hook_resid_post"}
    assert set(best["position"]) <= {"b0", "=", "s"} and best["r2"].min() > 1 - 1e-9
    for row in best.to_dict("records"):
        site = {name: row[name] for name in ("operator", "probe", "hook", "position")}
        assert row["untrained_r2"] == at(operands["sites"], model="untrained", **site)["r2"].item()
        assert row["shuffled_r2"] == at(operands["sites"], labels="shuffled", **site)["r2"].item()
        embedding = at(operands["sites"], **{**site, "hook": "blocks.0.hook_resid_pre"})
        assert row["embedding_r2"] == embedding["r2"].item()


def test_findings_give_value_interval_n_and_control(found):
    shares, rest = found["operands"].findings[:2], found["operands"].findings[2:]
    for finding in shares:  # var(1000 a3) / var(a)
        assert finding.value == pytest.approx(10**6 * DIGIT_VARIANCE / OPERAND_VARIANCE, abs=0.002)
    assert len(rest) == 6
    for finding in rest:
        assert finding.low <= finding.value <= finding.high and 900 < finding.n < 1_100
        assert finding.control_value < 0.95 and "untrained" in finding.control and "planted" in finding.text
    assert [finding.value > 1 - 1e-9 for finding in rest] == [True, True, False] * 2
    assert all("hardest place" in finding.text and finding.value < 0.01 for finding in rest[2::3])
    assert all(finding.value > 1 - 1e-9 for finding in found["digits"].findings[4::3])


def test_the_same_seed_gives_the_same_result_which_reads_back_equal(tmp_path):
    options = Options(problems=1_000, seed=5)
    first, second = (exact_probe.function([operands_in_the_stream()], options) for _ in range(2))
    assert first == second
    save(first, tmp_path, analysis_name=exact_probe.name, options=options, inputs=["planted"])
    assert load(tmp_path) == first


def test_full_adds_positions_and_writers():
    tables = exact_probe.function([operands_in_the_stream()], Options(problems=1_000, full=True)).tables
    rows = at(tables["sites"], operator="addition", probe=PROBES[0])
    assert set(rows["position"]) == set(POSITION_LABELS[:15])
    hooks = {"hook_resid_pre", "hook_attn_out", "hook_resid_mid", "hook_mlp_out", "hook_resid_post"}
    assert {hook.removeprefix("blocks.0.") for hook in rows["hook"]} == hooks
    writes = at(rows, hook="blocks.0.hook_attn_out").set_index("position")["r2"]
    assert writes["b0"] > 1 - 1e-9  # the last digit that is read
    assert writes["op"] == pytest.approx(0.5, abs=0.05)  # one of two operands, equal in variance
    assert all("resid" in hook for hook in tables["layers"]["hook"])


def test_a_variant_is_probed_on_its_own_problems_and_its_hidden_sign_is_hidden():
    addition = operands_in_the_stream(problems="addition")
    hidden = without_output(operands_in_the_stream(problems="sign-hidden"))
    hidden = dataclasses.replace(hidden, folder=Path("hidden"))
    result = exact_probe.function([addition, hidden], Options(problems=1_000))
    sites = result.tables["sites"]
    assert set(at(sites, checkpoint="planted")["operator"]) == {"addition"}
    assert at(sites, checkpoint="hidden", position="s")["r2"].abs().max() < 0.02

    assert list(result.figures) == [
        "summary",
        *(f"{kind}-{n}" for n in ("planted", "hidden") for kind in ("sites", "places")),
    ]
    assert len(result.figures["sites-planted"].data) == 2 * 3  # probes and conditions
    sites = result.figures["sites-hidden"]
    assert [tuple(trace.x) for trace in sites.data] == [POSITION_LABELS[8:15]] * 12
    assert sites.data[0].y == ("L0 resid_pre", "L0 resid_mid", "L0 resid_post")
    assert (sites.layout.coloraxis.cmin, sites.layout.coloraxis.cmax) == (0, 1)
    series = {"trained", "untrained, its best site", "embedding, same position", "shuffled labels, same site"}
    assert {trace.name for trace in result.figures["summary"].data} == series
    assert set(result.figures["summary"].data[0].y) == {"planted  L0", "hidden  L0"}


def test_the_best_site_is_chosen_on_the_fitting_half():
    def row(position, fit_r2, r2, model="trained", labels="true", hook="blocks.0.hook_resid_mid"):
        where = {"checkpoint": "c", "model": model, "labels": labels, "layer": 0, "hook": hook, "position": position}
        return {**where, "operator": "addition", "probe": PROBES[0], "fit_r2": fit_r2, "r2": r2, "exact_share": 0.0}

    sites = [row("b0", 0.5, 0.9), row("=", 0.8, 0.7), row("s", 0.6, 0.8), row("d4", 1.0, 1.0)]
    sites += [row("=", 0.1, 0.1, model="untrained"), row("=", 0.0, -0.1, labels="shuffled")]
    sites += [row("s", 0.2, 0.2, model="untrained"), row("=", 0.3, 0.3, hook="blocks.0.hook_resid_pre")]
    (best,) = best_of_each_layer(pd.DataFrame(sites)).to_dict("records")
    assert (best["position"], best["r2"]) == ("=", 0.7)  # d4 is past the answer's first digit, 0.9 was not looked at
    assert (best["untrained_r2"], best["shuffled_r2"], best["embedding_r2"]) == (0.1, -0.1, 0.3)
    assert best["untrained_best_r2"] == 0.2  # at s, which the untrained model's own fitting half prefers


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="at least one checkpoint"):
        exact_probe.function([], Options())
    with pytest.raises(BadInput, match="two checkpoints are named planted"):
        exact_probe.function([digits_in_the_stream(), operands_in_the_stream()], Options())
    with pytest.raises(BadInput, match="problems is 10, expected 1,000 to 100,000"):
        Options(problems=10)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_halves_never_share_a_problem():
    split = Split(sample(1_001, 3))
    for operator in split.operators:
        fitting, scoring = split.of(operator)
        assert fitting.max() < split.half <= scoring.min()
    assert len(np.unique(split.problems.index)) == 1_001


def test_it_is_registered_under_its_name():
    assert get("exact-probe") is exact_probe
