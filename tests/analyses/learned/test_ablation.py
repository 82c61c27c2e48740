import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch

from analyses.learned._ablation_figures import figures
from analyses.learned._ablation_findings import BORROWING, MOVING, findings, for_carries_only, only, summary, verdict
from analyses.learned._ablation_forward import Clean, Node, components, groups, nodes
from analyses.learned._ablation_measure import CONTROL, MEAN, METHODS, measure, replaced, shape_of
from analyses.learned._ablation_problems import NEEDS, balanced, needs
from analyses.learned._wrong_digits import KINDS, RightDigits
from analyses.learned.ablation import Options, ablation
from workbench import forward, written
from workbench.analysis import get, load, save
from workbench.errors import BadInput
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample
from workbench.statistics import wilson
from workbench.structure import CLASSES, structure
from workbench.task import POSITION_LABELS, digits_of, encode, parse_all

PER_CLASS = 20
FORGETTING = ("zero", "mean", "resample")
ADDS_3_AND_4 = (3 * 10 + 4) * 2  # the neuron of layer 1 that knows 3 + 4 = 7: modes, then a, b, carry
FETCHING, SUMMING = ("L0H0", "L0H1", "L0H2", "L0H3"), ("L0H4", "L0H5")


def planted_nodes(architecture):
    """All but neurons, of which two are asked; single positions of a copying head, a summing one and the last MLP."""
    yield from (node for node in components(architecture) if node.part != "neuron")
    yield from groups(architecture)
    yield from (node for node in nodes(architecture, neurons=False) if node.component in ("L0H0", "L1MLP"))
    yield from (Node(0, "head", 4, (14,)), Node(0, "neuron", 0), Node(1, "neuron", ADDS_3_AND_4))


def rows_of(checkpoint, problems, wanted):
    rows = {"asked": [], "components": [], "nodes": [], "needs": []}
    for name, row in measure(checkpoint, problems, wanted, seed=0):
        rows[name].append(row)
    return rows


@pytest.fixture(scope="module")
def problems():
    return balanced(PER_CLASS, 0, "all")


@pytest.fixture(scope="module")
def planted(problems):
    exact = written.exact()
    return rows_of(exact, problems, planted_nodes(exact.config.architecture))


def test_exactly_the_planted_parts_are_useful_and_layer_1_attention_is_not(planted):
    whole = only(planted["components"], part=("attention", "head", "MLP"))
    fails = {(row["component"], row["method"]): row["fails"] for row in whole}
    for head in range(6):
        assert all(fails[f"L1H{head}", method] == fails["L1attn", method] == 0 for method in METHODS)
    for part, method in itertools.product((*FETCHING, *SUMMING, "L0MLP", "L1MLP"), FORGETTING):
        assert fails[part, method] > 13 * PER_CLASS / 4, (part, method)
    found = {row["component"] for row in only(whole, method=MEAN) if row["first"]}
    assert found == {"L0attn", *FETCHING, *SUMMING, "L0MLP", "L1MLP"}


def test_lower_sum_heads_fail_carries_only(planted):
    whole = {(row["component"], row["method"]): row for row in only(planted["components"], part=("head", "MLP"))}
    for head, method in itertools.product(SUMMING, FORGETTING):
        row = whole[head, method]
        assert row["carry"] == 1 and row["d0"] == 0 < row["d3"] and row["wrong_digits"] > 50
        assert for_carries_only(row) and row["carry_by_chance"] < 0.15
    for part in (*FETCHING, "L0MLP", "L1MLP"):
        assert not for_carries_only(whole[part, MEAN])
    operator = whole["L0H2", "resample"]  # units have no carry: they become the other operation's or direction's
    assert operator["operation"] > 0.5 and operator["other"] == 0
    assert whole["L0H3", "resample"]["direction"] > 0.2 and whole["L0H3", "resample"]["operation"] == 0


def test_nothing_is_read_before_the_answer_and_a_position_serves_the_next_digit(planted):
    for row in only(planted["needs"], position=("a3..op", "b3..b0", "=")):
        assert row["fails"] == 0
    serves = dict(zip(("s", "d4", "d3", "d2", "d1"), ("d4", "d3", "d2", "d1", "d0"), strict=True))
    for row in only(planted["nodes"], method=MEAN):
        lost = {place for place in serves.values() if row[place] > 0}
        assert lost <= {serves.get(row["position"], "none")}, row["node"]
    at_d1 = {row["node"]: row for row in only(planted["nodes"], position="d1", method=MEAN)}
    assert at_d1["P14L0H0"]["d0"] > 0.5 and at_d1["P14L0H4"]["fails"] == 0  # no lower digits at the units
    assert at_d1["P14L1MLP"]["first"] == "S0 M0 N1"


def test_a_neuron_costs_exactly_the_problems_it_serves(planted, problems):
    mode, lookup = only(planted["components"], part="neuron", method="zero")
    assert mode["component"] == "L0M0" and mode["first"] == "S0"
    assert all(mode[name] > 0.8 if name[0] == "S" else mode[name] == 0 for name in CLASSES)
    a, b = (digits_of(of)[:, ::-1] for of in (problems.a, problems.b))
    arrives = np.pad(structure(problems).moves, ((0, 0), (1, 0)))[:, :4]
    served = (a == 3) & (b == 4) & ~arrives & ~problems.subtract[:, None]
    assert lookup["fails"] == served.any(axis=1).sum() > 0
    assert lookup["wrong_digits"] == served.sum()


def test_what_writes_nothing_is_not_needed(problems):
    exact = written.exact()
    weights = {name: value.copy() for name, value in exact.weights.items()}
    weights["blocks.0.attn.W_O"][4] = 0
    spoilt = dataclasses.replace(exact, weights=weights)
    rows = rows_of(spoilt, problems, [Node(0, "head", 4), Node(0, "head", 0)])
    asked = {row["class"]: row["right"] for row in rows["asked"]}
    assert 0 < sum(asked.values()) < 13 * PER_CLASS
    by_head = {(row["component"], row["method"]): row["fails"] for row in rows["components"]}
    assert all(by_head["L0H4", method] == 0 for method in METHODS) and by_head["L0H0", MEAN] > 0


@pytest.mark.parametrize("mlp", ["relu", "bilinear"])
def test_replacing_is_what_a_tap_does(mlp):
    """Against the whole forward with the activation behind a write replaced where it arises."""
    architecture = Architecture(mlp=mlp, n_layers=3)
    weights = initial_weights(architecture, "fan-in", 3)
    tokens = torch.from_numpy(encode(sample(6, 1)))
    clean = Clean.of(weights, architecture, tokens)
    places = [4, 9, 12]
    hooks = {"head": "attn.hook_result", "attention": "hook_attn_out", "MLP": "hook_mlp_out", "neuron": "mlp.hook_post"}
    for layer, (part, hook) in itertools.product(range(3), hooks.items()):
        at = places if layer < 2 else [10, 12]
        node = Node(layer, part, 2 if part in ("head", "neuron") else 0, tuple(at))

        def tap(name, value, hook=f"blocks.{layer}.{hook}", part=part, at=at):
            if name != hook:
                return value
            value = value.clone()
            if part in ("head", "neuron"):
                value[:, at, 2] = value[:, at, 2].mean(dim=0)
            else:
                value[:, at] = value[:, at].mean(dim=0)
            return value

        extras = forward.Extras(attn_result=True)
        expected = forward.logits(weights, tokens[:, :15], architecture, tap, extras)[:, 10:]
        found = clean.answers_with(node, clean.write(node).mean(dim=0, keepdim=True))
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        assert (found - clean.answers()).abs().max() > 1e-3
    layer = Node(1, "layer", positions=(8,))
    changed = clean.answers_with(layer, torch.zeros(1, 1, 32))
    skipped = forward.logits(
        weights, tokens[:, :15], architecture,
        lambda name, x: torch.cat([x[:, :8], clean.at(0, "hook_resid_post")[:, 8:9], x[:, 9:]], 1)
        if name == "blocks.1.hook_resid_post" else x,
    )  # fmt: skip
    torch.testing.assert_close(changed, skipped[:, 10:], atol=1e-4, rtol=1e-4)


def test_ways_of_replacing():
    write, others = torch.tensor([[[3.0, 4.0]], [[0.0, 0.0]]]), torch.tensor([[[1.0, 0.0]], [[-1.0, 2.0]]])
    generator = torch.Generator().manual_seed(0)
    assert replaced("zero", write, others, generator).tolist() == [[[0.0, 0.0]]]
    assert replaced("mean", write, others, generator).tolist() == [[[0.0, 1.0]]]
    assert replaced("resample", write, others, generator).tolist() == others.tolist()
    moved = (replaced("random", write, others, generator) - write).norm(dim=-1).flatten().tolist()
    assert moved == pytest.approx([math.sqrt(9 + 9), 1.0])  # as far as the mean (0, 1) is from each


def test_what_a_wrong_digit_is_worked_by_hand():
    right = RightDigits(parse_all(["0999+0001", "5000-0001", "0123-0456"]))
    assert right.digits.tolist() == [[0, 1, 0, 0, 0], [0, 4, 9, 9, 9], [0, 0, 3, 3, 3]]

    def kinds(problem, place):
        names = ["right" if kind < 0 else KINDS[kind] for kind in right.kinds[problem, place].tolist()]
        return {digit: name for digit, name in enumerate(names) if name != "other"}

    # 9 + 1 at the units, nothing arrives: 1 with a carry; 9 - 1 is 8 or 7, 1 - 9 is 2 or 1
    assert kinds(0, 4) == {0: "right", 1: "carry", 8: "operation", 7: "operation", 2: "operation"}
    assert kinds(0, 3) == {0: "right", 9: "carry", 8: "operation", 1: "operation"}  # 9 + 0 and a carry; 9 - 0, 0 - 9
    assert kinds(0, 0) == {0: "right", 1: "carry", 9: "operation"}
    # 0 - 1 at the units: 9, with a borrow 8; reversed 1 or 0; the sum 1 or 2
    assert kinds(1, 4) == {9: "right", 8: "carry", 1: "direction", 0: "direction", 2: "operation"}
    assert kinds(1, 0) == {0: "right", 1: "carry", 9: "carry"}
    # 6 - 3, the answer being negative: 3, 2; 3 - 6 is 7 or 6; 3 + 6 is 9 or 0
    assert kinds(2, 4) == {3: "right", 2: "carry", 7: "direction", 6: "direction", 9: "operation", 0: "operation"}
    said = np.array([[0, 1, 0, 9, 8], [0, 4, 9, 9, 2], [0, 0, 3, 3, 12]], np.uint8)
    counts, by_chance = right.count(said, said != right.digits)
    assert counts.tolist() == [1, 0, 2, 1]
    assert by_chance == pytest.approx(np.array([1 + 1 + 1 + 1, 0 + 0 + 2 + 2, 2 + 3 + 1 + 2, 6 + 5 + 5 + 4]) / 9)


def test_kinds_by_chance_are_shares_of_the_nine_wrong_digits():
    right = RightDigits(sample(300, 2))
    every = np.ones((300, 5), bool)
    assert right.count((right.digits + 1) % 10, every)[1].sum() == pytest.approx(300 * 5)
    assert ((right.kinds == -1).sum(axis=2) == 1).all()


def test_as_many_of_every_class_the_same_as_sampled_alone(problems):
    assert len(problems) == 13 * PER_CLASS
    for name in ("S4", "M0"):
        at = CLASSES.index(name) * PER_CLASS
        np.testing.assert_array_equal(problems[at : at + PER_CLASS].index, sample(PER_CLASS, 0, category=name).index)
    ordered = balanced(PER_CLASS, 0, "ordered")
    assert len(ordered) == 9 * PER_CLASS and not ordered.negative.any() and (ordered.a >= ordered.b).all()


def test_needs_worked_by_hand():
    asked = parse_all(["1+1", "9+1", "5-5", "10-1", "123-456", "1-10"])
    assert [NEEDS[at] for at in needs(asked)] == list(NEEDS)


def test_the_verdict_flips_with_its_shares():
    shares = dict.fromkeys(NEEDS, 0.0)
    assert verdict(shares) == "nothing here"
    borrows = shares | dict.fromkeys(BORROWING, 0.9)
    assert verdict(borrows) == "borrows only"
    assert verdict(shares | dict.fromkeys(MOVING, 0.9)) == "carries and borrows only"
    assert verdict(borrows | {"addition, carries": 0.3}) == "some of each"
    assert verdict(borrows | {"negative, borrows": 0.4}) == "some of each"
    assert verdict(borrows | {"addition, no carry": 0.5}) == "more than carries and borrows"
    assert verdict(dict.fromkeys(BORROWING, 0.9)) == "unknown"


def test_a_part_for_carries_only_needs_enough_wrong_digits():
    assert for_carries_only({"wrong_digits": 20, "carry": 0.9})
    assert not for_carries_only({"wrong_digits": 19, "carry": 1.0})
    assert not for_carries_only({"wrong_digits": 500, "carry": 0.89})


def test_findings_on_the_planted_model(planted):
    found = findings(planted, full=False)
    texts = [finding.text for finding in found]
    (parts,) = [f for f in found if "heads and MLPs, each" in f.text]
    assert (parts.value, parts.n) == (8 / 14, 14)  # six heads and two MLPs
    (carries,) = [f for f in found if "L0H4, L0H5" in f.text]
    assert carries.value == 2 / 14 and carries.control_value < 0.15
    assert sum("; it is for: nothing here" in text for text in texts) == 1  # attention of layer 1
    assert sum("; it is for: more than carries and borrows" in text for text in texts) == 1  # its MLP
    (early,) = [f for f in found if "writes at b3..b0" in f.text]
    assert early.value == 0 and "nothing here" in early.text
    assert (early.low, early.high) == wilson(0, early.n) and early.n == 260
    for one in found:
        assert ("counted, so without" in one.text) == (one.low is None) and one.n and one.control
    (row,) = summary(planted)
    assert row["right"] == "260 of 260" and row["useful heads, MLPs"] == "8 of 14"


def test_two_models_have_the_mean_of_their_intervals(planted):
    second = {name: [row | {"checkpoint": "again"} for row in rows] for name, rows in planted.items()}
    for row in second["needs"]:
        row["fails"] = row["n"]
    both = {name: [*rows, *second[name]] for name, rows in planted.items()}
    (early,) = [f for f in findings(both, full=False) if "writes at b3..b0" in f.text]
    assert (early.value, early.n) == (0.5, 520)
    assert (early.low, early.high) == pytest.approx((wilson(260, 260)[0] / 2, (wilson(0, 260)[1] + 1) / 2))


def test_maps_have_a_row_a_part_and_a_column_a_position(planted):
    shown = figures({name: pd.DataFrame(of) for name, of in planted.items()})
    assert list(shown) == ["summary", "needs", "neurons", "nodes-relu-2layer-d_mlp-602"]
    (nodes_of_one,) = shown["nodes-relu-2layer-d_mlp-602"].data
    assert list(nodes_of_one.x) == list(POSITION_LABELS[:15])
    assert list(nodes_of_one.y) == ["L0H0", "L0H4", "L1MLP"]
    cells = dict(zip(nodes_of_one.x, nodes_of_one.text[2], strict=True))
    assert cells["a3"] == "" and cells["d1"].endswith("<br>S0 M0 N1")
    assert [len(trace.x) for trace in shown["summary"].data] == [14] * 4
    assert all((f.layout.coloraxis.cmin, f.layout.coloraxis.cmax) == (0, 1) for f in (shown["summary"], shown["needs"]))


@pytest.fixture(scope="module")
def clock():
    return ablation.function([written.clock()], Options(per_class=PER_CLASS))


def test_the_clock_needs_both_heads_and_its_mlp_where_digits_are_predicted(clock):
    nodes_by_mean = clock.tables["nodes"].query("method == 'mean'")
    useful = nodes_by_mean[nodes_by_mean["first"] != ""]
    places = ("P11", "P12", "P13", "P14")
    assert set(useful["node"]) == {f"{place}L0{part}" for place in places for part in ("H0", "H1", "MLP")}
    assert set(nodes_by_mean["position"]) == {"s", "d4", "d3", "d2", "d1"}
    asked = clock.tables["asked"].set_index("class")["right"]
    assert asked["S0"] == PER_CLASS and asked["S3"] == asked["N1"] == 0  # it knows no carry


def test_the_same_seed_gives_the_same_result_which_reads_back_equal(clock, tmp_path):
    options = Options(per_class=PER_CLASS)
    assert ablation.function([written.clock()], options) == clock
    save(clock, tmp_path, analysis_name=ablation.name, options=options, inputs=["written-clock"])
    assert load(tmp_path) == clock


def test_full_asks_neurons_position_by_position_and_a_model_that_is_never_right_is_said_so():
    config = RunConfig(Architecture(n_layers=1, d_mlp=2), problems="subtraction")
    weights = {name: np.zeros(shape, np.float32) for name, shape in config.architecture.shapes.items()}
    weights["pos_embed.W_pos"][:, 0] = weights["unembed.W_U"][0, 12] = 1  # says = everywhere
    silent = dataclasses.replace(written.clock(), config=config, weights=weights)
    result = ablation.function([silent], Options(per_class=PER_CLASS, full=True))
    assert set(result.tables["nodes"]["node"]) >= {f"P{at}L0M{neuron}" for at in range(10, 15) for neuron in (0, 1)}
    (none,) = [finding for finding in result.findings if "answers none of the problems right" in finding.text]
    assert (none.low, none.high) == wilson(0, none.n)
    assert result.tables["components"]["share"].isna().all() and result.tables["components"]["S0"].isna().all()
    assert set(result.tables["asked"]["class"]) == set(CLASSES) - {"S0", "S1", "S2", "S3", "S4"}


def test_names_are_the_peers():
    exact = written.exact().config.architecture
    assert Node(0, "head", 2, (12,)).name == "P12L0H2" and Node(1, "neuron", 17).name == "L1M17"
    assert Node(0, "layer", positions=(5, 6, 7, 8)).label == "b3..b0"
    assert len(list(nodes(exact, neurons=False))) == 7 * (15 + 5)
    assert shape_of(RunConfig(seed=2)) == "relu-2layer"
    assert shape_of(RunConfig(Architecture(d_mlp=96), problems="ordered")) == "relu-2layer-ordered d_mlp 96"
    assert CONTROL in METHODS


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="at least one checkpoint"):
        ablation.function([], Options())
    with pytest.raises(BadInput, match="two checkpoints are named written-clock"):
        ablation.function([written.clock(), written.clock()], Options())
    with pytest.raises(BadInput, match="per_class is 5, expected 20 to 1,000"):
        Options(per_class=5)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_it_is_registered_under_its_name():
    assert get("ablation") is ablation
