import dataclasses
from pathlib import Path

import pytest
import torch
from transformer_lens import patching as lens

from analyses.learned._exact_places import predicted_at
from analyses.learned._patching_between import between_layers, standing
from analyses.learned._patching_between import findings as of_positions
from analyses.learned._patching_measure import by_construction, component, measure, places_to_patch, stands, usable
from analyses.learned._patching_pairs import KINDS, draw
from analyses.learned._patching_summary import answer_position, findings
from analyses.learned._replace import replaced
from analyses.learned.patching import Options, patching
from workbench import forward, written
from workbench.activations.collect import collect
from workbench.analysis import get, load, save
from workbench.checkpoint import Checkpoint
from workbench.decoder import Decoder
from workbench.errors import BadInput
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, RunConfig

KIND = {kind.name: kind for kind in KINDS}
N = 6
COUNTS = ("restored", "n", "control_restored", "control_n")
PLANTED = (("sum digit", 1), ("operator", 1), ("sign", 1), ("carry", 2), ("borrow", 2))


def untrained(architecture: Architecture) -> Checkpoint:
    weights = {name: value.numpy() for name, value in initial_weights(architecture, "fan-in", 0).items()}
    return Checkpoint(Path("untrained"), RunConfig(architecture), {}, "", weights, {})


@pytest.fixture(scope="module")
def planted():
    """(sites, pairs) of the decoder whose mechanism is written down."""
    sets = [draw(KIND[name], place, N, 0) for name, place in PLANTED]
    return measure(written.exact(), sets, N)


def restored(sites, kind: str, name: str) -> int:
    """Of N pairs, at the predicting position."""
    (row,) = (row for row in sites if row["kind"] == kind and row["component"] == name and row["at_answer"])
    assert row["n"] == N
    return row["restored"]


@pytest.mark.parametrize("kind", ["carry", "borrow", "operator", "sign"])
def test_the_written_decoder_makes_carry_and_mode_in_mlp_0_and_nothing_moves_in_layer_1(planted, kind):
    sites, _ = planted
    for name in ("L0 MLP", "L0 post", "L1 mid", "L1 MLP", "L1 post"):
        assert restored(sites, kind, name) == N
    for name in ("L1 attention", *(f"L1 H{head}" for head in range(6))):
        assert restored(sites, kind, name) == 0
    elsewhere = [row for row in sites if row["kind"] == kind and not row["at_answer"]]
    assert len(elsewhere) >= 30 and not any(row["restored"] for row in elsewhere)


@pytest.mark.parametrize(("kind", "head"), [("carry", 4), ("borrow", 4), ("operator", 2), ("sign", 3)])
def test_and_the_head_that_fetches_what_it_is_made_of(planted, kind, head):
    """Of a carry, head 4 brings the weighted lower digits of a, where the digit is changed."""
    for other in range(6):
        assert restored(planted[0], kind, f"L0 H{other}") == (N if other == head else 0)


def test_a_digit_passes_mlp_0_by(planted):
    sites, _ = planted
    assert restored(sites, "sum digit", "L0 MLP") == 0
    assert restored(sites, "sum digit", "L0 H0") + restored(sites, "sum digit", "L0 H1") == N
    assert restored(sites, "sum digit", "L0 post") == restored(sites, "sum digit", "L1 MLP") == N


def test_a_control_that_lacks_the_carry_restores_nothing(planted):
    rows = [row for row in planted[0] if row["kind"] in ("carry", "borrow") and row["at_answer"]]
    assert all(row["control_n"] == N and row["control_restored"] == 0 for row in rows)


def test_the_verdict_says_so(planted):
    sites = [{**row, **{name: 10 * row[name] for name in COUNTS}} for row in planted[0]]  # as from 60 pairs
    told = {(row["kind"], row["component"]): row["verdict"] for row in answer_position(sites)}
    assert told["carry", "L0 MLP"] == "yes"
    assert told["carry", "L1 attention"] == told["sum digit", "L0 MLP"] == "no"
    assert told["carry", "L1 post"] == "by construction"


def test_between_the_layers_it_stands_at_the_predicting_position_alone(planted):
    rows = standing(between_layers(planted[0]))
    carry = {row["stands"]: row for row in rows if row["kind"] == "carry"}
    assert list(carry) == ["changed token", "elsewhere", "b's digit beside it", "predicting position"]
    assert [row["restored"] for row in carry.values()] == [0, 0, 0, N]
    assert carry["b's digit beside it"]["positions"] == "b1" and carry["changed token"]["positions"] == "a1"
    assert all(row["control_share"] == 0 for row in carry.values())
    many = [{**row, **{name: 10 * row[name] for name in ("restored", "n")}} for row in rows]  # as from 60 pairs
    found = {finding.text.split(" (")[0]: finding for finding in of_positions(many, {"written-exact": "written"})}
    finding = found["written, borrow"]
    assert (finding.value, finding.n) == (1.0, 60) and "predicting position 1.00" in finding.text
    assert finding.low == pytest.approx(0.9398, abs=1e-4) and "of one seed" in finding.text  # 60 / (60 + 1.96^2)


def test_of_several_seeds_the_interval_is_wilsons_over_all_pairs():
    """81 of 263: 0.2553 to 0.3662 (Newcombe 1998, table I); the seeds' 0.30 and 0.31 are in the text alone."""
    seeds = {"a": (30, 100), "b": (51, 163)}
    rows = [
        {"checkpoint": name, "kind": "carry", "component": "L0 MLP", "restored": hits, "n": n, "share": hits / n,
         "control_share": 0.1 * (name == "b"), "verdict": "in part", "low": 0.0, "high": 1.0}
        for name, (hits, n) in seeds.items()
    ]  # fmt: skip
    pairs = [{"checkpoint": name, "kind": "carry"} for name in seeds]
    stream = [row | {"component": "L0 post", "stands": "changed token"} for row in rows]
    of_sites, shapes = findings(rows, pairs, dict.fromkeys(seeds, "two"), ""), dict.fromkeys(seeds, "two")
    for finding in (of_sites[0], of_positions(stream, shapes)[0]):
        assert (finding.value, finding.n) == (81 / 263, 263)
        assert (finding.low, finding.high) == pytest.approx((0.2553, 0.3662), abs=1e-4)
        assert "lowest to highest of 2 seeds 0.30 to 0.31" in finding.text
        assert finding.control_value == pytest.approx(16.3 / 263)


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [("carry", 2, (2, 7)), ("far carry", 2, (3, 8)), ("borrow", 3, (1, 6)), ("carry", 4, (0, 5))],
)
def test_a_and_bs_digit_of_the_changed_place(name, place, expected):
    """a3 a2 a1 a0 stand at 0 to 3, b3 b2 b1 b0 at 5 to 8."""
    pairs = draw(KIND[name], place, 10, 0)
    changed = [expected[0]]
    found = [stands(position, changed, pairs) for position in range(15 - place)]
    assert found.index("changed token") == expected[0] and found.index("b's digit beside it") == expected[1]
    assert found[-1] == "predicting position" and len(set(found)) == 4
    assert stands(expected[1], [2], draw(KIND["sum digit"], 1, 10, 0)) == "elsewhere"


def test_a_model_without_the_carry_answers_no_pair_and_says_so():
    checkpoint = written.exact()
    weights = {name: value.copy() for name, value in checkpoint.weights.items()}
    weights["blocks.0.mlp.W_out"][3:5, written.CARRY] = 0  # no carry into the tens of additions
    spoilt = dataclasses.replace(checkpoint, weights=weights)
    sites, pairs = measure(spoilt, [draw(KIND["carry"], place, N, 0) for place in (1, 2)], N)
    assert {row["digit"]: row["n"] for row in pairs} == {"d1": 0, "d2": N}
    assert {row["digit"] for row in sites} == {"d2"}
    found = findings([], pairs[:1], {spoilt.name: "spoilt"}, "")
    assert len(found) == 1 and found[0].low is None and "too few pairs" in found[0].text
    assert (found[0].value, found[0].n, found[0].control_value) == (0, 1, 0)  # of one kind none, untrained none
    (often,) = findings([], [pairs[0] | {"untrained_usable": 20}], {spoilt.name: "spoilt"}, "")
    assert often.control_value == 1


def test_only_pairs_that_the_model_answers_are_used():
    """The clock knows no carry: of pairs that differ in one it answers none; the numbers without one are right."""
    clock, pairs = written.clock(), draw(KIND["carry"], 2, 50, 0)
    kept, counts = usable(pairs, forward.tensors(clock.weights), clock.config.architecture, 50)
    assert len(kept) == counts["n"] == counts["usable"] == 0
    assert counts["clean_right"] + counts["corrupted_right"] == 50
    digits = draw(KIND["sum digit"], 0, 50, 0)
    assert len(usable(digits, forward.tensors(clock.weights), clock.config.architecture, 20)[0]) == 20


@pytest.mark.parametrize("kind", ["carry", "operator"])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_patching_equals_transformerlens(n_layers, kind):
    """Every site, ours and theirs, by logit difference; where we do not patch, theirs changes nothing."""
    architecture = Architecture(n_layers=n_layers)
    checkpoint = untrained(architecture)
    weights, model = forward.tensors(checkpoint.weights), Decoder.from_checkpoint(checkpoint)
    pairs = draw(KIND[kind], 2, 6, 0)
    last = predicted_at(2)
    clean, corrupted = (torch.from_numpy(tokens)[:, : last + 1] for tokens in (pairs.clean, pairs.corrupted))
    first = 2 if kind == "carry" else 4  # a's tens, the operator
    places = places_to_patch(architecture, first, last)
    cache = collect(weights, clean, architecture, {where.hook for where in places})
    logits = replaced(weights, corrupted, architecture, places, [where.of(cache[where.hook]) for where in places])
    ours = dict(zip(places, (logits[..., 7] - logits[..., 2]).mean(dim=1).tolist(), strict=True))

    def metric(logits):
        return (logits[:, -1, 7] - logits[:, -1, 2]).mean()

    with torch.no_grad():
        _, clean_cache = model.run_with_cache(clean)
        unpatched = metric(model(corrupted)).item()
        sweeps = {
            "hook_attn_out": lens.get_act_patch_attn_out(model, corrupted, clean_cache, metric),
            "hook_resid_mid": lens.get_act_patch_resid_mid(model, corrupted, clean_cache, metric),
            "hook_mlp_out": lens.get_act_patch_mlp_out(model, corrupted, clean_cache, metric),
            "attn.hook_z": lens.get_act_patch_attn_head_out_by_pos(model, corrupted, clean_cache, metric),
        }
        if n_layers == 2:  # the stream after layer 0 is the one before layer 1
            sweeps["hook_resid_post"] = lens.get_act_patch_resid_pre(model, corrupted, clean_cache, metric)[1:]
    checked = 0
    for part, values in sweeps.items():
        hit = {(w.layer, w.position, w.head): value for w, value in ours.items() if w.hook.endswith(f".{part}")}
        for cell in torch.cartesian_prod(*(torch.arange(size) for size in values.shape)).tolist():
            key = (*cell, None) if values.ndim == 2 else tuple(cell)
            assert values[tuple(cell)].item() == pytest.approx(hit.get(key, unpatched), abs=2e-5)
            checked += key in hit
    assert checked == len(places) - 1  # the last layer's stream has no sweep


@pytest.mark.parametrize("n_layers", [1, 2])
def test_what_is_marked_by_construction_restores_any_model(n_layers):
    architecture = Architecture(n_layers=n_layers, mlp="bilinear")
    weights = initial_weights(architecture, "fan-in", 1)
    pairs = draw(KIND["borrow"], 1, 8, 0)
    last = predicted_at(1)
    clean, corrupted = (torch.from_numpy(tokens)[:, : last + 1] for tokens in (pairs.clean, pairs.corrupted))
    places = [w for w in places_to_patch(architecture, 3, last) if by_construction(w, architecture, last)]
    names = ["L0 attention", "L0 mid", "L0 post"] if n_layers == 1 else ["L1 mid", "L1 post"]
    assert [component(where) for where in places] == names
    cache = collect(weights, clean, architecture, {where.hook for where in places})
    logits = replaced(weights, corrupted, architecture, places, [where.of(cache[where.hook]) for where in places])
    wanted = forward.logits(weights, clean, architecture)[:, -1, :10]
    torch.testing.assert_close(logits, wanted.expand_as(logits), atol=1e-5, rtol=1e-4)
    assert (wanted - forward.logits(weights, corrupted, architecture)[:, -1, :10]).abs().max() > 1e-3


@pytest.fixture(scope="module")
def result():
    return patching.function([written.clock()], Options(pairs=20))


def test_the_clock_holds_digits_in_its_mlp_and_no_carry_anywhere(result):
    rows = result.tables["answer_position"]
    digit = rows[(rows["kind"] == "sum digit") & (rows["component"] == "L0 MLP")]
    assert digit["share"].item() == 1.0 and digit["verdict"].item() == "yes" and digit["n"].item() == 80
    assert "carry" not in set(rows["kind"]) and "borrow" not in set(rows["kind"])
    pairs = result.tables["pairs"]
    assert (pairs[pairs["kind"].isin(["carry", "far carry", "borrow"])]["usable"] == 0).all()


def test_findings_give_value_interval_n_and_control(result):
    text = {finding.text.split(":")[0].split(" (")[0]: finding for finding in result.findings}
    digit = next(finding for key, finding in text.items() if "sum digit" in key)
    assert (digit.value, digit.n) == (1.0, 80) and digit.control_value < 0.3 and "another pair" in digit.control
    assert "short run: 20 pairs" in digit.text
    assert not any(", carry" in key for key in text)  # no number of a kind that cannot be patched
    (counted,) = (finding for finding in result.findings if "too few pairs" in finding.text)
    assert counted.low is counted.high is None and "carry (at most 0 of 320 pairs)" in counted.text
    assert (counted.n, counted.control_value) == (8, 0)
    assert all(finding.control_value is not None for finding in result.findings)


def test_figures_share_one_scale_and_name_every_position(result):
    assert list(result.figures) == ["summary", "components-written-clock"]  # one layer: nothing in between
    for figure in result.figures.values():
        assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)
    assert result.figures["components-written-clock"].data[0].x == ("d4", "d3", "d2", "d1", "d0")


def test_the_same_seed_gives_the_same_result_which_reads_back_equal(result, tmp_path):
    assert patching.function([written.clock()], Options(pairs=20)) == result
    save(result, tmp_path, analysis_name=patching.name, options=Options(pairs=20), inputs=["clock"])
    assert load(tmp_path) == result


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="at least one checkpoint"):
        patching.function([], Options())
    with pytest.raises(BadInput, match="two checkpoints are named written-clock"):
        patching.function([written.clock(), written.clock()], Options())
    with pytest.raises(BadInput, match="pairs is 3, expected 20 to 4,096"):
        Options(pairs=3)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_it_is_registered_under_its_name():
    assert get("patching") is patching
