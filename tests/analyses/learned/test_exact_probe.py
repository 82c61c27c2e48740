import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from analyses.learned._exact_probe_fit import PLACES, PROBES, Split, activations, sites_of
from analyses.learned.exact_probe import Options, exact_probe
from workbench import forward
from workbench.analysis import get, load, save
from workbench.checkpoint import Checkpoint
from workbench.errors import BadInput
from workbench.hill.unit import HillUnit
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample
from workbench.task import POSITION_LABELS, encode, parse

PROBLEMS = 4_000
OPERAND_VARIANCE = (10**8 - 1) / 12  # of a number uniform on 0..9999
DIGIT_VARIANCE = 99 / 12  # of a digit uniform on 0..9
A_DIGITS, B_DIGITS = (0, 1, 2, 3), (5, 6, 7, 8)  # positions, thousands first


def blank(architecture: Architecture) -> dict[str, np.ndarray]:
    return {name: np.zeros(shape, np.float32) for name, shape in architecture.shapes.items()}


def planted(heads_read: list[dict[int, float]], **variant) -> Checkpoint:
    """A one-layer model whose head h adds to dimension 16+h of the stream the weighted mean of the digits it reads.

    `heads_read[h]` gives the weight of each position; every other position has none. Dimension 0 holds a token's digit,
    dimension 1 is 1 everywhere, and 2+h holds the attention score of a position for head h.
    """
    architecture = Architecture(n_layers=1, n_heads=len(heads_read), d_head=4)
    weights = blank(architecture)
    weights["embed.W_E"][:10, 0] = np.arange(10)
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
    """Two heads that read each operand with its digits weighted 1000, 100, 10, 1: the stream holds a/1111 and b/1111."""
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
def operands():
    return exact_probe.function([operands_in_the_stream()], Options(problems=PROBLEMS)).tables


@pytest.fixture(scope="module")
def digits():
    return exact_probe.function([digits_in_the_stream()], Options(problems=PROBLEMS)).tables


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
def test_planted_operands_are_found_at_every_position_after_attention_and_nowhere_before(operands, operator, probe):
    rows = at(operands["sites"], operator=operator, probe=probe)
    after, before = (rows[rows["hook"] == f"blocks.0.hook_resid_{where}"] for where in ("mid", "pre"))
    assert list(after["position"]) == list(POSITION_LABELS[8:15])
    assert after["r2"].min() > 1 - 1e-9 and after["exact_share"].min() == 1.0
    # `=` and `s` have no digit; b0 and d3..d0 hold one, which tells next to nothing of the operands
    assert before["r2"].abs().max() < 0.01 or set(before[before["r2"].abs() > 0.01]["position"]) == {"d4"}


@pytest.mark.parametrize("operator", ["addition", "subtraction"])
def test_it_is_not_found_in_the_model_without_it(operator):
    tables = exact_probe.function([without_output(operands_in_the_stream())], Options(problems=PROBLEMS)).tables
    rows = at(tables["sites"], operator=operator, hook="blocks.0.hook_resid_mid")
    assert rows[rows["position"].isin(["=", "s"])]["r2"].abs().max() < 0.01
    assert rows["exact_share"].max() < 0.01


def test_shuffled_labels_explain_nothing(operands, digits):
    for tables in (operands, digits):
        rows = at(tables["sites"], labels="shuffled")
        assert len(rows) == len(at(tables["sites"])) and rows["r2"].max() < 0.01 and rows["r2"].min() > -0.05


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
    checkpoint = operands_in_the_stream()
    config = checkpoint.config
    problems = sample(PROBLEMS, 0)
    site = next(
        s for s in sites_of(config.architecture, False) if (s.hook, s.position) == ("blocks.0.hook_resid_mid", 12)
    )
    x = (
        activations([site], initial_weights(config.architecture, config.recipe.init, 0), config, problems)[0]
        .double()
        .numpy()
    )
    chosen = problems.subtract
    half = np.arange(PROBLEMS) < PROBLEMS // 2
    design, result = np.column_stack([x, np.ones(PROBLEMS)]), problems.answers.astype(float)
    fitting, scoring = chosen & half, chosen & ~half
    weights, *_ = np.linalg.lstsq(design[fitting], result[fitting], rcond=None)
    error = design[scoring] @ weights - result[scoring]
    r2 = 1 - np.square(error).sum() / np.square(result[scoring] - result[fitting].mean()).sum()
    row = at(
        operands["sites"], model="untrained", operator="subtraction", probe=PROBES[1], hook=site.hook, position="d3"
    )
    assert row["r2"].item() == pytest.approx(r2, abs=1e-5)  # the ridge penalty chosen is tiny
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
    """cov(a, a_i) = 10^i var(a_i), so a linear reading of a explains 100^i * 8.25 / 8333333.25 of digit i's variance."""
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
    """Of a - b over a square, E|a-b|^2 / E(a-b)^2 = (1/9) / (1/6) = 2/3: what the embedding of s tells a subtraction."""
    checkpoint = operands_in_the_stream()
    checkpoint.weights["embed.W_E"][10, 5] = 1.0  # tell + from -
    tables = exact_probe.function([checkpoint], Options(problems=PROBLEMS)).tables
    values = {"operator": "subtraction", "probe": PROBES[1], "hook": "blocks.0.hook_resid_pre", "position": "s"}
    row = at(tables["sites"], **values)
    assert row["low"].item() < 2 / 3 < row["high"].item()
    best = tables["layers"]
    best = best[(best["operator"] == "subtraction") & (best["probe"] == PROBES[1])]
    assert best["hook"].item() == "blocks.0.hook_resid_mid" and best["r2"].item() > 1 - 1e-9


def test_findings_give_value_interval_n_and_control():
    result = exact_probe.function([operands_in_the_stream()], Options(problems=PROBLEMS))
    shares, found = result.findings[:2], result.findings[2:]
    for finding in shares:  # var(1000 a3) / var(a)
        assert finding.value == pytest.approx(10**6 * DIGIT_VARIANCE / OPERAND_VARIANCE, abs=0.002)
    assert len(found) == 6
    for finding in found:
        assert (
            finding.low <= finding.value <= finding.high and finding.n in (1968, 2032) and finding.control_value < 0.95
        )
        assert "planted" in finding.text and "untrained" in finding.control
    operand_probes = [finding for finding in found if "then the exact unit, at" in finding.text]
    assert [finding.value > 1 - 1e-9 for finding in operand_probes] == [True, True]
    hardest = [finding for finding in found if "hardest place, units" in finding.text]
    assert len(hardest) == 2 and max(finding.value for finding in hardest) < 0.01


def test_the_same_seed_gives_the_same_result_which_reads_back_equal(tmp_path):
    options = Options(problems=1_000, seed=5)
    first, second, other = (
        exact_probe.function([digits_in_the_stream()], o) for o in (options, options, Options(problems=1_000, seed=6))
    )
    assert first == second and first != other
    save(first, tmp_path, analysis_name=exact_probe.name, options=options, inputs=["planted"])
    assert load(tmp_path) == first


def test_full_adds_positions_and_writers():
    tables = exact_probe.function([operands_in_the_stream()], Options(problems=1_000, full=True)).tables
    rows = at(tables["sites"], operator="addition", probe=PROBES[0])
    assert set(rows["position"]) == set(POSITION_LABELS[:15])
    assert {hook.split(".")[-1] for hook in rows["hook"]} == {
        *("hook_resid_pre", "hook_attn_out", "hook_resid_mid", "hook_mlp_out", "hook_resid_post")
    }
    writes = rows[rows["hook"] == "blocks.0.hook_attn_out"].set_index("position")["r2"]
    assert writes["b0"] > 1 - 1e-9  # the last digit that is read
    assert writes["op"] == pytest.approx(0.5, abs=0.05)  # one of two operands, equal in variance
    assert (
        "resid" in tables["layers"]["hook"].item()
        if len(tables["layers"]) == 1
        else all("resid" in hook for hook in tables["layers"]["hook"])
    )


def test_a_variant_is_probed_on_its_own_problems():
    checkpoint = operands_in_the_stream(problems="addition")
    result = exact_probe.function([checkpoint], Options(problems=1_000))
    assert set(result.tables["sites"]["operator"]) == {"addition"}
    assert len(result.figures["sites-planted"].data) == 2 * 3  # two probes, three conditions


def test_a_hidden_sign_is_hidden_from_the_probe():
    checkpoint = without_output(operands_in_the_stream(problems="sign-hidden"))
    checkpoint.weights["embed.W_E"][10, 5] = 1.0
    rows = at(exact_probe.function([checkpoint], Options(problems=1_000)).tables["sites"], position="s")
    assert rows["r2"].abs().max() < 0.02


def test_figures_show_every_checkpoint_on_readable_axes():
    one = digits_in_the_stream()
    two = dataclasses.replace(operands_in_the_stream(), folder=Path("another"))
    result = exact_probe.function([one, two], Options(problems=1_000))
    assert list(result.figures) == [
        "summary",
        *(f"{kind}-{n}" for n in ("planted", "another") for kind in ("sites", "places")),
    ]
    sites = result.figures["sites-planted"]
    assert [tuple(trace.x) for trace in sites.data] == [POSITION_LABELS[8:15]] * 12
    assert sites.data[0].y == ("L0 resid_pre", "L0 resid_mid", "L0 resid_post")
    assert (sites.layout.coloraxis.cmin, sites.layout.coloraxis.cmax) == (0, 1)
    summary = result.figures["summary"]
    assert {trace.name for trace in summary.data} == {
        *("trained", "untrained, same site", "embedding, same position", "shuffled labels, same site")
    }
    assert set(summary.data[0].y) == {"planted  L0", "another  L0"}


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
