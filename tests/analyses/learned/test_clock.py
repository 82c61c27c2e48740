import dataclasses
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from analyses._rows import where
from analyses.learned._clock_families import (
    CARRY,
    DIFFERENCE,
    DIFFERENCE_MOD,
    FREQUENCIES,
    LOOKUP,
    ONE_DIGIT,
    PAIR,
    RELABELLED,
    SUM,
    SUM_MOD,
    TURNS,
    Cells,
    bases,
    frequency_of,
    shares,
)
from analyses.learned._clock_measure import cells_of, columns_of, components, hooks_of, measure, split
from analyses.learned._clock_tables import (
    LITTLE,
    LOOKUP_KIND,
    MIXED,
    MIXED_KIND,
    NOT_THE_PAIR,
    OF_KIND,
    PRESENT,
    SILENT_KIND,
    frequencies_of,
    kind_of,
    kinds,
    spectrum,
)
from analyses.learned.clock import Options, clock
from workbench import forward, written
from workbench.analysis import get, load, save
from workbench.errors import BadInput
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.sample import sample
from workbench.task import encode, parse_all

PROBLEMS = 4_000
OF_SUM = {k: frequency_of(SUM, k) for k in FREQUENCIES}
OF_DIFFERENCE = {k: frequency_of(DIFFERENCE, k) for k in FREQUENCIES}


def digits_renamed(checkpoint):
    """The clock whose heads take 3 for 7 and so on, differently in each operand: sums of names, not of digits."""
    rng = np.random.default_rng(3)
    weights = dict(checkpoint.weights)
    weights["blocks.0.attn.W_V"] = weights["blocks.0.attn.W_V"].copy()
    for head in (0, 1):
        value = weights["blocks.0.attn.W_V"][head]
        value[:10] = value[rng.permutation(10)]
    config = dataclasses.replace(checkpoint.config, problems="addition")
    return dataclasses.replace(checkpoint, weights=weights, config=config, folder=Path("renamed"))


@pytest.fixture(scope="module")
def clocks():
    """The analysis on a clock, and on one that adds other names of the digits."""
    return clock.function([written.clock(), digits_renamed(written.clock())], Options(problems=PROBLEMS))


@pytest.fixture(scope="module")
def exact():
    """Rows of the hand-written lookup at additions, thousands to tens."""
    problems = sample(PROBLEMS, 0, "addition")
    to_the_tens = itertools.islice(measure(written.exact(), problems, split(problems)), 3)
    return [row for rows in to_the_tens for row in rows]


def rows_of(result, table, **values):
    return where(result.tables[table].to_dict("records"), **values)


# --- families -------------------------------------------------------------------------------------------------------


def test_each_family_has_as_many_free_values_as_arithmetic_says():
    ranks = {name: np.linalg.matrix_rank(basis) for name, basis in bases().items()}
    of_one_carry = {CARRY: 1, LOOKUP: 100, ONE_DIGIT: 19, SUM: 19, DIFFERENCE: 19, SUM_MOD: 10, DIFFERENCE_MOD: 10}
    of_one_carry |= {TURNS: 18} | {
        frequency_of(name, k): 3 if k < 5 else 2 for name in (SUM, DIFFERENCE) for k in range(1, 6)
    }
    assert ranks.pop(PAIR) == 100
    renamed = {name: rank for name, rank in ranks.items() if name.endswith(RELABELLED)}
    assert {name: rank for name, rank in ranks.items() if name not in renamed} == {
        n: 2 * r for n, r in of_one_carry.items()
    }
    assert renamed == {name + RELABELLED: ranks[name] for name in (SUM, DIFFERENCE, SUM_MOD, DIFFERENCE_MOD, TURNS)}


def every_pair(times=40):
    """Cells in which every pair without a carry occurs equally often in each half, and then no other."""
    return Cells(torch.arange(100).repeat(2 * times))


def measured(tables, cells=None):
    """Shares of functions of the pair, given as [10, 10] tables, by family."""
    cells = cells or every_pair()
    columns = torch.tensor(np.stack([np.asarray(table, float).ravel() for table in tables], axis=1))
    found = shares(columns[cells.cell % 100], [slice(n, n + 1) for n in range(len(tables))], cells)
    return {name: found.share[n].numpy() for n, name in enumerate(bases())}


A, B = np.meshgrid(np.arange(10), np.arange(10), indexing="ij")


def test_shares_are_those_of_least_squares():
    """An independent computation: numpy's lstsq on the hundred cells."""
    tables = np.random.default_rng(0).normal(size=(3, 10, 10)).cumsum(axis=1)
    found = measured(tables)
    for name, basis in bases().items():
        for number, table in enumerate(tables):
            y = table.ravel() - table.mean()
            coefficients, *_ = np.linalg.lstsq(basis[:100], y, rcond=None)
            left = np.square(y - basis[:100] @ coefficients).sum()
            assert found[name][number] == pytest.approx(1 - left / np.square(y).sum(), abs=1e-9), name


def test_functions_are_found_in_the_families_they_belong_to():
    tables = {
        "digit": (A + B) % 10 == 3,  # flat: 2 of 9 dimensions at each frequency, 1 at 5
        "carry out": A + B >= 10,
        "product": np.cos(2 * math.pi * A / 10) * np.cos(2 * math.pi * B / 10),
        "copy": np.square(A),
        "line": 2 * A - B,
        "turn": np.sin(2 * math.pi * 3 * (A - B) / 10 + 0.4),
    }
    found = {name: dict(zip(tables, values, strict=True)) for name, values in measured(tables.values()).items()}
    assert found[SUM_MOD]["digit"] == pytest.approx(1)
    assert [found[OF_SUM[k]]["digit"] for k in FREQUENCIES] == pytest.approx([2 / 9] * 4 + [1 / 9])
    assert found[SUM_MOD + RELABELLED]["digit"] < 0.5
    assert found[SUM]["carry out"] == pytest.approx(1) and found[SUM_MOD]["carry out"] < 0.5
    assert found[SUM_MOD]["product"] == pytest.approx(0.5) and found[TURNS]["product"] == pytest.approx(1)
    assert found[OF_SUM[1]]["product"] == pytest.approx(0.5) == found[OF_DIFFERENCE[1]]["product"]
    assert found[ONE_DIGIT]["copy"] == pytest.approx(1) and found[TURNS]["copy"] == pytest.approx(0, abs=1e-9)
    assert found[ONE_DIGIT]["line"] == pytest.approx(1)
    # of 2a - b, a + b and a - b hold (2 -+ 1)^2 / 2 of 2^2 + 1
    assert (found[SUM]["line"], found[DIFFERENCE]["line"]) == (pytest.approx(0.1), pytest.approx(0.9))
    assert found[OF_DIFFERENCE[3]]["turn"] == pytest.approx(1)


def test_a_random_table_has_its_share_of_dimensions_in_every_family():
    found = measured(np.random.default_rng(1).normal(size=(400, 10, 10)))
    for name, dimensions in {ONE_DIGIT: 18, SUM: 18, DIFFERENCE: 18, SUM_MOD: 9, TURNS: 17, OF_SUM[5]: 1}.items():
        assert found[name].mean() == pytest.approx(dimensions / 99, abs=0.01), name


def test_noise_costs_a_lookup_nothing_and_the_interval_covers_the_truth():
    """A sum under noise of its own variance, 25 problems a pair: every family that holds the sum has half."""
    rng = np.random.default_rng(2)
    cells = Cells(torch.from_numpy(rng.integers(0, 100, 5_000)))
    signal = torch.from_numpy(((A + B) % 10).ravel())[cells.cell].double()
    values = signal[:, None] + signal.std() * torch.from_numpy(rng.normal(size=(5_000, 200)))
    found = shares(values, [slice(n, n + 1) for n in range(200)], cells)
    of = {name: number for number, name in enumerate(bases())}
    for name in (LOOKUP, SUM, SUM_MOD):
        assert found.share[of[name]].mean() == pytest.approx(0.5, abs=0.01)
        covered = (found.low[of[name]] < 0.5) & (found.high[of[name]] > 0.5)
        assert 0.9 <= covered.double().mean() <= 0.99
    assert found.share[of[ONE_DIGIT]].abs().max() < 0.1


def test_a_component_is_its_columns_together_and_a_constant_has_no_share():
    cells = every_pair()
    columns = torch.tensor(np.stack([(2 * A).ravel(), (B % 2).ravel(), np.full(100, 7)], axis=1)).double()[cells.cell]
    found = shares(columns, [slice(0, 2), slice(2, 3)], cells)
    assert found.variance.tolist() == pytest.approx([4 * 8.25 + 0.25, 0])
    assert found.share[:, 1].tolist() == [0] * len(bases())


def test_cells_are_the_digits_and_what_arrives():
    problems = parse_all(["1234+0567", "5000-0001", "0123-0456", "9999+0001"])
    assert cells_of(problems, 0).tolist() == [47, 1, 36, 91]
    assert cells_of(problems, 1).tolist() == [136, 100, 25, 190]
    assert cells_of(problems, 3).tolist() == [10, 150, 0, 190]


def test_columns_have_the_variance_of_what_is_written():
    """Against TransformerLens's names: what each head writes, neurons times the norm of their rows, streams, logits."""
    architecture = Architecture(mlp="bilinear", n_layers=2)
    weights = initial_weights(architecture, "fan-in", 0)
    tokens = torch.from_numpy(encode(sample(300, 0)))[:, :15]
    seen, extras = {}, forward.Extras(attn_result=True)
    whole = forward.logits(weights, tokens, architecture, lambda name, value: seen.setdefault(name, value), extras)
    here = [*hooks_of(architecture), "blocks.0.attn.hook_result", "blocks.1.attn.hook_result"]
    logits, seen = whole[:, 12, :10], {name: seen[name][:, 12] for name in here}
    columns = columns_of({name: seen[name] for name in hooks_of(architecture)}, weights, architecture, 150).var(dim=0)
    variance = {part.name: columns[part.columns].sum().item() for part in components(architecture)}
    for layer in (0, 1):
        block = f"blocks.{layer}"
        for head in range(4):
            written = seen[f"{block}.attn.hook_result"][:, head].var(dim=0).sum().item()
            assert variance[f"L{layer}H{head}"] == pytest.approx(written, rel=1e-4)
        neuron = seen[f"{block}.mlp.hook_post"][:, 7:8] * weights[f"{block}.mlp.W_out"][7]
        assert variance[f"L{layer}M7"] == pytest.approx(neuron.var(dim=0).sum().item(), rel=1e-4)
        for name, hook in (("MLP", "hook_mlp_out"), ("resid_mid", "hook_resid_mid"), ("resid_post", "hook_resid_post")):
            stream = seen[f"{block}.{hook}"].var(dim=0).sum().item()
            assert variance[f"L{layer} {name}"] == pytest.approx(stream, rel=1e-4)
    centred = logits - logits.mean(dim=1, keepdim=True)
    assert variance["logits"] == pytest.approx(centred.var(dim=0).sum().item(), rel=1e-4)
    first = [variance[f"L1 resid_post direction {n}"] for n in range(8)]
    assert first[0] == max(first) and first[0] > 3 * first[7]


# --- rules ----------------------------------------------------------------------------------------------------------


def row(**held):
    none = {CARRY: 0.2, LOOKUP: 0.9} | dict.fromkeys((ONE_DIGIT, SUM, DIFFERENCE, SUM_MOD, DIFFERENCE_MOD, TURNS), 0.2)
    return none | {name: 0.2 + 0.7 * share for name, share in held.items()}  # shares of the pair beyond the carry


def test_the_rules_turn_at_their_thresholds():
    above, below = OF_KIND + 1e-6, OF_KIND - 1e-6
    assert kind_of(row(**{ONE_DIGIT: above, SUM: above})) == ONE_DIGIT
    assert kind_of(row(**{SUM_MOD: above, TURNS: above, SUM: above})) == SUM_MOD
    assert kind_of(row(**{SUM_MOD: below, TURNS: above, SUM: below})) == TURNS
    assert kind_of(row(**{DIFFERENCE: above})) == DIFFERENCE
    assert kind_of(row(**{SUM: below})) == MIXED_KIND
    assert kind_of(row(**{SUM: MIXED - 1e-6})) == LOOKUP_KIND
    assert kind_of(row() | {LOOKUP: 0.2 + LITTLE - 1e-6}) == NOT_THE_PAIR
    assert frequencies_of(
        row(**{OF_SUM[1]: 0.9, OF_SUM[2]: PRESENT + 1e-6, OF_SUM[3]: 0, OF_SUM[4]: 0, OF_SUM[5]: 0}), SUM
    ) == [1, 2]


def test_a_silent_neuron_is_not_counted_with_the_others():
    same = {"checkpoint": "c", "model": "trained", "group": "addition", "place": "tens", "layer": 0, "kind": "neuron"}
    (counted,) = kinds([row(**{SUM: 1}) | same | {"variance": variance} for variance in (1.0, 1.0, 1e-4)])
    assert (counted["neurons"], counted[SUM], counted[SILENT_KIND]) == (3, 2, 1)


# --- the digits in the Fourier basis --------------------------------------------------------------------------------


def test_spectra_of_known_rows():
    line = np.arange(10.0)[:, None]
    power = [
        1 / math.sin(math.pi * k / 10) ** 2 * (2 if k < 5 else 1) for k in FREQUENCIES
    ]  # of 0, 1, .., 9 to a scale
    found = spectrum(line)
    assert [found[f"k={k}"] for k in FREQUENCIES] == pytest.approx([p / sum(power) for p in power])
    assert found["k=1"] == pytest.approx(0.634, abs=1e-3) and found["line"] == pytest.approx(1)
    flat = spectrum(np.eye(10))
    assert [flat[f"k={k}"] for k in FREQUENCIES] == pytest.approx([2 / 9] * 4 + [1 / 9])
    assert flat["line"] == pytest.approx(1 / 9)
    turn = spectrum(np.cos(2 * math.pi * 3 * np.arange(10) / 10 + 1)[:, None] * np.ones((1, 4)))
    assert turn["k=3"] == pytest.approx(1)


# --- models whose truth is known ------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", ["addition", "subtraction +", "subtraction -"])
def test_the_clock_is_found_to_be_one_of_all_frequencies(clocks, group):
    """It adds mod ten whatever the operator. Cosine and sine of k vary by 1/2 each, the cosine of k = 5 by 1."""
    mlp, logits = (
        rows_of(clocks, "means", checkpoint="written-clock", model="trained", group=group, kind=kind)[0]
        for kind in ("MLP", "logits")
    )
    assert mlp["verdict"] == logits["verdict"] == SUM_MOD
    assert mlp[SUM_MOD] == pytest.approx(1, abs=1e-4) and mlp[f"{SUM_MOD} low"] > 0.999
    assert [mlp[OF_SUM[k]] for k in FREQUENCIES] == pytest.approx([1 / 5] * 5, abs=0.03)
    assert [logits[OF_SUM[k]] for k in FREQUENCIES] == pytest.approx([1 / 6] * 4 + [1 / 3], abs=0.04)
    assert frequencies_of(mlp, SUM) == list(FREQUENCIES)
    assert mlp[SUM_MOD + RELABELLED] < 0.3


def test_its_neurons_are_products_of_two_angles_and_its_heads_copy_one_digit(clocks):
    counted = rows_of(clocks, "kinds", checkpoint="written-clock", model="trained", place="tens")
    assert [(row["neurons"], row[TURNS] + row[SUM_MOD]) for row in counted] == [(17, 17)] * 3
    heads = rows_of(clocks, "means", checkpoint="written-clock", model="trained", kind="head")
    assert [(row["verdict"], round(row[ONE_DIGIT], 3)) for row in heads] == [(ONE_DIGIT, 1.0)] * 6


def test_a_clock_of_other_names_is_none(clocks):
    rows = rows_of(clocks, "means", checkpoint="renamed", model="trained", group="addition")
    mlp, logits = where(rows, kind="MLP")[0], where(rows, kind="logits")[0]
    for one in (mlp, logits):
        assert one[LOOKUP] == pytest.approx(1, abs=0.01) and one[SUM_MOD] < 0.4
        assert one["verdict"] in (LOOKUP_KIND, MIXED_KIND)
    counted = rows_of(clocks, "kinds", checkpoint="renamed", model="trained", place="tens", group="addition")
    assert counted[0][TURNS] + counted[0][SUM_MOD] <= 1  # cos(pi a) cos(pi b) may keep its form under a renaming


def test_the_untrained_model_is_no_clock(clocks):
    rows = rows_of(clocks, "means", model="untrained", kind="MLP")
    assert rows and max(row[TURNS] for row in rows) < 0.3
    counted = rows_of(clocks, "kinds", model="untrained")
    assert sum(row[SUM_MOD] + row[TURNS] for row in counted) == 0


def test_the_lookup_is_found_to_be_one(exact):
    """Neurons of layer 1 are single cells of pair and carry: flat over 99 dimensions, though they add to a clock."""
    rows = where(exact, model="trained", place="tens")
    (neurons,) = where(rows, component="L1 neurons")
    assert neurons[LOOKUP] == pytest.approx(1, abs=1e-3) and kind_of(neurons) == LOOKUP_KIND
    carry = neurons[CARRY]
    for family, dimensions in {ONE_DIGIT: 18, SUM: 18, DIFFERENCE: 18, SUM_MOD: 9, TURNS: 17}.items():
        assert (neurons[family] - carry) / (1 - carry) == pytest.approx(dimensions / 99, abs=0.02)
    (counted,) = [row for row in kinds(rows) if row["layer"] == 1]
    alive = counted["neurons"] - counted[SILENT_KIND]
    assert alive == 200 and counted[TURNS] == counted[SUM_MOD] == 0
    assert counted[LOOKUP_KIND] + counted[MIXED_KIND] > 180  # 0 + 0 and 9 + 9 are the only pairs of their sums
    (mlp,) = where(rows, component="L1 MLP")
    assert mlp[SUM_MOD] == pytest.approx(1, abs=1e-3) and mlp[PAIR] < 0.6  # the digit needs the carry too
    assert [mlp[OF_SUM[k]] for k in FREQUENCIES] == pytest.approx([2 / 9] * 4 + [1 / 9], abs=0.02)


def test_what_carries_the_carry_is_not_about_the_pair(exact):
    rows = where(exact, model="trained", place="tens")
    (mlp,) = where(rows, component="L0 MLP")
    assert mlp[CARRY] == pytest.approx(1, abs=1e-3) and kind_of(mlp) == NOT_THE_PAIR
    for head, kind in {"L0H0": ONE_DIGIT, "L0H1": ONE_DIGIT, "L0H2": NOT_THE_PAIR, "L0H4": NOT_THE_PAIR}.items():
        assert kind_of(where(rows, component=head)[0]) == kind


# --- the analysis ---------------------------------------------------------------------------------------------------


def test_findings_have_interval_n_and_control(clocks):
    first = clocks.findings[0]
    assert "addition: share of the logits" in first.text and first.value > 0.99
    assert first.low <= first.value <= first.high and first.control_value < 0.4 and 1_900 < first.n < 2_100
    controls = {"the same after renaming the digits", "untrained models", "untrained model"}
    assert {finding.control for finding in clocks.findings} == controls
    assert all(finding.control_value is not None for finding in clocks.findings)


def test_figures_show_all_of_it(clocks):
    assert list(clocks.figures) == ["neurons", "frequencies", "embeddings"]
    bars = clocks.figures["neurons"].data
    assert np.stack([bar.x for bar in bars[:6]]).astype(float).sum(axis=0) == pytest.approx([1, 1], abs=0.02)
    maps = clocks.figures["frequencies"].data
    assert maps[0].y == ("written-clock  L0 MLP", "written-clock  logits", "renamed  L0 MLP", "renamed  logits")
    assert np.asarray(maps[0].z[0], float)[:5] == pytest.approx([0.2] * 5, abs=0.03)
    spectra = clocks.figures["embeddings"].data[0]
    assert np.asarray(spectra.z[0], float) == pytest.approx([2 / 9] * 4 + [1 / 9] * 2, abs=1e-6)  # one-hot


def test_the_same_seed_gives_the_same_rows_and_the_result_reads_back_equal(tmp_path, clocks):
    problems = sample(PROBLEMS, 0, "addition")
    again = next(measure(digits_renamed(written.clock()), problems, split(problems)))
    first = rows_of(clocks, "components", checkpoint="renamed", model="trained", group="addition", place="thousands")
    assert [row for row in again if row["kind"] in ("head", "neurons", "MLP", "residual", "logits")] == first
    save(clocks, tmp_path, analysis_name=clock.name, options=Options(problems=PROBLEMS), inputs=["a", "b"])
    assert load(tmp_path) == clocks


def test_a_variant_has_its_own_groups():
    assert [group.name for group in split(sample(2_000, 0, "ordered"))] == ["addition", "subtraction +"]
    assert [len(group.chosen) for group in split(sample(700, 0, "addition"))] == [700]
    assert not split(sample(300, 0))  # fewer than 200 a half


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="at least one checkpoint"):
        clock.function([], Options())
    with pytest.raises(BadInput, match="two checkpoints are named written-clock"):
        clock.function([written.clock(), written.clock()], Options())
    with pytest.raises(BadInput, match="problems is 10, expected 4,000"):
        Options(problems=10)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_it_is_registered_under_its_name():
    assert get("clock") is clock
