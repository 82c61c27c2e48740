import dataclasses
import statistics
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from analyses.learned._attribution_parts import components, runner_up, take_apart
from analyses.learned._attribution_problems import Drawn, draw
from analyses.learned._attribution_shares import alone, kinds, makers
from analyses.learned._attribution_summary import makers_table
from analyses.learned._attribution_tables import component_table, effective, means, measure, ratios
from analyses.learned._conditions import models, tokens_of
from analyses.learned.attribution import Options, attribution
from workbench import checkpoint, forward, written
from workbench.analysis import get, load, save
from workbench.checkpoint import Checkpoint
from workbench.decoder import Decoder
from workbench.errors import BadInput
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample
from workbench.statistics import mean_interval
from workbench.structure import CLASSES, categories
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, Problems

TWELVE = Path(__file__).parents[3] / "checkpoints"
OPTIONS = Options(problems=200, each=4)


def changed(model: Checkpoint, name: str, **tensors: np.ndarray) -> Checkpoint:
    """The same model under another name with some tensors replaced (`__` for each dot)."""
    weights = model.weights | {key.replace("__", "."): value for key, value in tensors.items()}
    return dataclasses.replace(model, folder=Path(name), weights=weights)


def silent() -> Checkpoint:
    """The exact decoder whose last MLP writes nothing."""
    exact = written.exact()
    return changed(exact, "silent", blocks__1__mlp__W_out=np.zeros_like(exact.weights["blocks.1.mlp.W_out"]))


def doubled() -> Checkpoint:
    """The exact decoder with a third layer whose MLP looks up the same digit once more."""
    exact = written.exact()
    shape = dataclasses.replace(exact.config.architecture, n_layers=3)
    weights = {name: exact.weights.get(name, np.zeros(size, np.float32)) for name, size in shape.shapes.items()}
    weights |= {f"blocks.2.mlp.W_{part}": exact.weights[f"blocks.1.mlp.W_{part}"] for part in ("in", "out")}
    return Checkpoint(Path("doubled"), dataclasses.replace(exact.config, architecture=shape), {}, "", weights, {})


def copier() -> Checkpoint:
    """One layer; head 1 copies a's digit of the answer's place to the logits, head 0 and the MLP do nothing."""
    shape = Architecture(n_layers=1, d_model=39, n_heads=2, d_head=16, d_mlp=4)
    weights = {name: np.zeros(size, np.float32) for name, size in shape.shapes.items()}
    weights["embed.W_E"][:, :13] = np.eye(13)
    weights["pos_embed.W_pos"][:, 13:29] = np.eye(16)
    for query, key in zip(range(10, 15), (9, 0, 1, 2, 3), strict=True):  # d4 reads `=`
        weights["blocks.0.attn.W_Q"][1, 13 + query, query] = 400
        weights["blocks.0.attn.W_K"][1, 13 + key, query] = 1
    weights["blocks.0.attn.W_V"][1, :10, :10] = np.eye(10)
    weights["blocks.0.attn.W_O"][1, :10, 29:] = np.eye(10)
    weights["unembed.W_U"][29:, :10] = 7 * np.eye(10)
    return Checkpoint(Path("copier"), RunConfig(shape), {}, "", weights, {})


def at(table: pd.DataFrame, model: str | None = "trained", **values) -> pd.DataFrame:
    for column, value in (values | ({"model": model} if model else {})).items():
        table = table[table[column] == value]
    return table


@pytest.fixture(scope="module")
def found():
    return attribution.function([written.exact(), written.clock()], OPTIONS)


@pytest.fixture(scope="module")
def on():
    return draw(100, 4, 1, "all")


def shares(model: Checkpoint, on: Drawn) -> pd.DataFrame:
    """Table `makers` of one model, without the rest of the analysis."""
    architecture = model.config.architecture
    parts = take_apart(models(model)["trained"], tokens_of(model, on.problems), architecture, on.other)
    rows = component_table(parts, on.masks, architecture)
    return makers_table(rows.assign(checkpoint=model.name, model="trained"))


@pytest.mark.parametrize("name", ["arithmetic-relu-2layer-seed0", "arithmetic-bilinear-1layer-seed1"])
def test_parts_add_up_to_the_logit_difference_and_neurons_to_their_mlp(name):
    model = checkpoint.read(TWELVE / name)
    problems, architecture = sample(500, 1), model.config.architecture
    tokens, weights = tokens_of(model, problems), models(model)["trained"]
    parts = take_apart(weights, tokens, architecture, torch.arange(500))
    logits = forward.logits(weights, tokens[:, :15], architecture)[:, ANSWER_POSITIONS]
    correct = tokens[:, ANSWER_TOKENS].long()
    own = logits.gather(2, correct[..., None])[..., 0]
    best = logits.scatter(2, correct[..., None], -torch.inf).amax(dim=2)
    torch.testing.assert_close(parts.margin, own - best)
    torch.testing.assert_close(parts.parts.sum(dim=2), own - best, rtol=1e-12, atol=1e-10)
    names = components(architecture)
    for layer in range(architecture.n_layers):
        here = parts.neurons[..., layer * 64 : (layer + 1) * 64].sum(dim=2)
        torch.testing.assert_close(here, parts.parts[..., names.index(f"L{layer}MLP")], rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(parts.elsewhere, parts.parts)  # the other problem is the problem itself
    right = (logits.argmax(dim=2) == correct).double()
    assert torch.equal(parts.right[..., -1], right) and torch.equal((parts.margin > 0).double(), right)
    torch.testing.assert_close(parts.lens[..., -1], logits.log_softmax(dim=2).gather(2, correct[..., None])[..., 0])


def test_components_are_those_of_transformerlens():
    folder = TWELVE / "arithmetic-bilinear-2layer-seed1"
    own = checkpoint.read(folder)
    shape, tokens = own.config.architecture, tokens_of(own, sample(50, 2))
    parts = take_apart(models(own)["trained"], tokens, shape, torch.arange(50))
    model, _ = Decoder.from_directory(folder)
    model.set_use_attn_result(True)
    logits, cache = model.run_with_cache(tokens[:, :15].long())
    correct = tokens[:, 15].long()
    second = runner_up(logits[:, 14:15], correct[:, None])[:, 0]
    stack, labels = cache.get_full_resid_decomposition(expand_neurons=False, pos_slice=14, return_labels=True)
    difference = cache.logit_attrs(stack, correct, pos_slice=14, incorrect_tokens=second, has_batch_dim=True)
    theirs = dict(zip(labels, difference, strict=True))
    names = {"pos": "pos_embed", "L0MLP": "0_mlp_out", "L1MLP": "1_mlp_out"}
    for place, name in enumerate(components(shape)):
        expected = theirs[names.get(name, name)].double()
        torch.testing.assert_close(parts.parts[:, 4, place], expected, rtol=1e-4, atol=1e-4)


def test_mlp_1_of_the_exact_decoder_makes_every_digit_alone(found):
    rows = at(found.tables["makers"], model=None, checkpoint="written-exact")
    assert set(rows["alone"]) == {"L1MLP"} and len(rows) == (1 + 3 + 13) * 6
    np.testing.assert_allclose(rows["share"], 1, atol=1e-6)
    components = at(found.tables["components"], checkpoint="written-exact", category="all", answer="d0")
    assert set(components["component"]) == {
        "embed",
        "pos",
        *(f"L{n}H{h}" for n in (0, 1) for h in range(6)),
        "L0MLP",
        "L1MLP",
    }
    assert components.set_index("component")["mean"]["L1MLP"] == pytest.approx(written.SHARP, abs=1e-3)
    assert components[components["component"] != "L1MLP"]["mean"].abs().max() < 1e-6
    assert components.set_index("component")["node"]["L0H3"] == "P14L0H3"


def test_it_is_a_lookup_one_neuron_a_problem(found):
    crowds = at(found.tables["crowds"], checkpoint="written-exact", category="all", layer="1")
    np.testing.assert_allclose(crowds["neurons"], 1, atol=1e-6)
    assert crowds["adding"].eq(1).all()
    assert at(found.tables["crowds"], checkpoint="written-exact", layer="0")["neurons"].isna().all()
    neurons = at(found.tables["neurons"], checkpoint="written-exact", category="all", answer="d4")
    busy = neurons[neurons["mean"].abs() > 1e-9].set_index("neuron")["mean"]
    assert set(busy.index) == {"L1M600", "L1M601"}  # the two of d4
    problems = draw(200, 4, 0, "all").problems[slice(0, 200)]
    carries = (problems.answers >= 10_000).mean()
    assert busy["L1M601"] == pytest.approx(written.SHARP * carries, rel=1e-4)


def test_models_without_it_are_told_apart(on):
    assert set(shares(written.exact(), on)["alone"]) == {"L1MLP"}
    none = shares(silent(), on)
    assert set(none["makers"]) == {""} and set(none["alone"]) == {""} and none["share"].isna().all()
    two = shares(doubled(), on)
    assert set(two["makers"]) == {"L1MLP 0.50, L2MLP 0.50"} and set(two["alone"]) == {""}


def test_a_clock_adds_and_cannot_subtract(found):
    rows = at(found.tables["makers"], model=None, checkpoint="written-clock").set_index(["category", "answer"])
    assert rows.loc[("addition", "d0"), "alone"] == "L0MLP"
    assert rows.loc[("subtraction +", "d0"), "makers"] == ""


def test_a_head_that_copies_the_answer_is_found_and_the_mlp_is_not():
    a = np.array([1234, 5678, 9042, 7, 830], np.uint16)
    problems = Problems(a, np.zeros(5, np.uint16), np.zeros(5, bool))  # a + 0: the answer's digits are a's
    model = copier()
    architecture = model.config.architecture
    parts = take_apart(models(model)["trained"], tokens_of(model, problems), architecture, torch.arange(5))
    digits = parts.parts[:, 1:]  # d3 to d0
    mean = digits.mean(dim=(0, 1)) / parts.margin[:, 1:].mean()
    shares = dict(zip(components(architecture), mean.tolist(), strict=True))
    assert alone(shares) == "L0H1" and shares["L0H1"] == pytest.approx(1)
    assert parts.margin[:, 1:].flatten().tolist() == [7.0] * 20


def test_the_logit_lens_says_at_which_depth_the_answer_is(found):
    lens = at(found.tables["lens"], checkpoint="written-exact", category="all", answer="d0").set_index("depth")
    assert list(lens.index) == ["embedding", *(f"after L{n} {part}" for n in (0, 1) for part in ("attention", "MLP"))]
    assert lens["right"].tolist()[-1] == 1.0 and max(lens["right"].tolist()[:-1]) < 0.25
    assert lens["log_prob"].iloc[0] == pytest.approx(-np.log(13), abs=1e-4)  # all tokens alike
    assert lens["low"].iloc[-1] == pytest.approx(200 / (200 + 1.959964**2))  # Wilson's bound when all are right


def test_on_another_problem_s_digits_it_adds_little(found):
    shares = at(found.tables["shares"], checkpoint="written-exact", kind="L1 MLP")
    assert shares["elsewhere"].abs().max() < 0.35
    assert set(shares["category"]) == {"all", "addition", "subtraction +", "subtraction -"}
    for column in ("share", "low", "high"):
        np.testing.assert_allclose(shares[column], 1, atol=1e-6)


def test_the_largest_gap_is_rounding(found):
    assert found.tables["margins"]["largest_gap"].max() < 1e-10
    assert found.findings[0].text.startswith("Largest gap") and found.findings[0].value < 1e-10


def test_makers_and_alone_flip_at_their_thresholds():
    assert makers({"a": 0.9, "b": 0.1}) == ["a"] and alone({"a": 0.9, "b": 0.1}) == "a"
    assert makers({"a": 0.89, "b": 0.11}) == ["a", "b"] and alone({"a": 0.89, "b": 0.11}) is None
    assert makers({"b": 0.3, "a": 0.5, "c": 0.2}) == ["a", "b", "c"]
    assert alone({"a": 1.05, "b": 0.06, "c": -0.11}) is None and makers({"a": 1.05, "c": -0.11}) == ["a"]
    nothing = {"a": float("nan"), "b": float("nan")}
    assert makers(nothing) == [] and alone(nothing) is None
    assert makers({"a": 0.5, "b": -0.5}) == []


def test_effective_number_by_hand():
    values = torch.tensor([[1.0, 1.0, -1.0, 1.0], [0.0, 5.0, 0.0, 0.0], [3.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    assert effective(values)[:3].tolist() == pytest.approx([4, 1, 1.6]) and effective(values)[3].isnan()


def test_means_have_students_interval():
    values = torch.tensor([1.0, 2.0, 4.0, 7.0, 100.0], dtype=torch.float64)
    mask = np.array([True, True, True, True, False])
    mean, low, high = means(values, {("all", "all"): mask})[:, 0]
    assert mean == 3.5 and (low, high) == pytest.approx(mean_interval([1, 2, 4, 7]))
    assert high - mean == pytest.approx(3.182446 * statistics.stdev([1, 2, 4, 7]) / 2, rel=1e-6)


def test_ratios_have_the_interval_of_their_residuals():
    top, bottom = (torch.tensor(values, dtype=torch.float64) for values in ([1.0, 2.0, 3.0, 6.0], [2.0, 2.0, 3.0, 3.0]))
    ratio, low, high = ratios(top, bottom, {("all", "all"): np.ones(4, bool)})[:, 0]
    assert ratio == pytest.approx(1.2)  # residuals -1.4, -0.4, -0.6, 2.4 over a mean of 2.5
    half = 3.182446 * statistics.stdev([-1.4, -0.4, -0.6, 2.4]) / 2 / 2.5
    assert (low, high) == pytest.approx((1.2 - half, 1.2 + half), rel=1e-6)


def test_the_runner_up_is_the_best_of_the_other_tokens():
    logits = torch.tensor([[[0.0, 3.0, 2.0, 1.0], [5.0, 5.0, 9.0, 5.0]]])
    assert runner_up(logits, torch.tensor([[1, 2]])).tolist() == [[2, 0]]


def test_kinds_cover_every_component_once():
    shape = Architecture(n_layers=2)
    places = [place for kind in kinds(shape).values() for place in range(100)[kind]]
    assert places == list(range(len(components(shape))))


def test_drawn_problems_stand_for_what_they_are_said_to():
    on = draw(300, 5, 7, "all")
    uniform = sample(300, 7)
    assert on.problems[slice(0, 300)].index.tolist() == uniform.index.tolist()
    named = categories(on.problems, "class")
    for name in CLASSES:
        assert on.masks["class", name].sum() == 5 and set(named[on.masks["class", name]]) == {name}
    groups = [mask for (grouping, _), mask in on.masks.items() if grouping == "operator and sign"]
    assert np.array_equal(sum(mask.astype(int) for mask in groups), on.masks["all", "all"].astype(int))
    assert sorted(on.other.tolist()) == list(range(365)) and (on.other != torch.arange(365)).all()
    for (grouping, _), mask in on.masks.items():
        if grouping != "all":
            assert mask[on.other.numpy()][mask].all()


def test_variants_have_their_own_problems():
    on = draw(200, 3, 0, "addition")
    assert {name for grouping, name in on.masks if grouping == "class"} == {"S0", "S1", "S2", "S3", "S4"}
    hidden = dataclasses.replace(
        written.clock(), config=dataclasses.replace(written.clock().config, problems="sign-hidden")
    )
    assert set(tokens_of(hidden, on.problems)[:, 10].tolist()) == {12}


def test_it_has_its_figures(found):
    names = ["written-exact", "written-clock"]
    assert list(found.figures) == ["summary", "lens", *(f"components-{name}" for name in names)]
    maps = found.figures["components-written-exact"].data
    assert (
        len(maps) == 4
        and list(maps[0].x) == ["d4", "d3", "d2", "d1", "d0", "d3-d0"]
        and list(maps[3].x) == list(CLASSES)
    )
    sums = np.array(maps[3].z, dtype=float).sum(axis=0)
    np.testing.assert_allclose(sums, written.SHARP, atol=1e-3)
    assert found.tables["summary"]["L1 MLP"].iloc[0] == pytest.approx(1)


def test_findings_name_who_makes_the_answers(found):
    text = {one.text.split(",")[0]: one for one in found.findings if "all problems:" in one.text}
    assert "L1MLP 1.00; L1MLP alone" in text["written-exact"].text and text["written-exact"].value == pytest.approx(1)
    assert "no components" in text["written-clock"].text
    for one in found.findings[1:]:
        assert one.low <= one.value <= one.high and one.n and one.control
    assert found.findings[0].control_value > 1


def test_the_same_seed_gives_the_same_result_which_reads_back_equal(tmp_path):
    first, second = (attribution.function([written.clock()], OPTIONS) for _ in range(2))
    assert first == second
    save(first, tmp_path, analysis_name=attribution.name, options=OPTIONS, inputs=["a"])
    assert load(tmp_path) == first


def test_full_adds_neurons_by_class(on):
    few, full = (
        next(rows for name, rows in measure(written.clock(), on, full=full) if name == "neurons")
        for full in (False, True)
    )
    assert set(full["category"]) - set(few["category"]) == set(CLASSES)


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="at least one checkpoint"):
        attribution.function([], Options())
    with pytest.raises(BadInput, match="two checkpoints are named written-clock"):
        attribution.function([written.clock(), written.clock()], Options())
    with pytest.raises(BadInput, match="problems is 10, expected 200 to 20,000"):
        Options(problems=10)
    with pytest.raises(BadInput, match="each is 1, expected 2"):
        Options(each=1)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_it_is_registered_under_its_name():
    assert get("attribution") is attribution
