import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from analyses.learned._attention_heads import read_positions, role
from analyses.learned._attention_order import best_without_order, swapped
from analyses.learned._attention_patterns import turns
from analyses.learned.attention import Options, attention
from workbench import written
from workbench.analysis import get, load, save
from workbench.checkpoint import Checkpoint
from workbench.errors import BadInput
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample
from workbench.task import MINUS, PLUS, POSITION_LABELS

AT = {label: position for position, label in enumerate(POSITION_LABELS)}
TOKEN, POSITION, ONE, OUT = 0, 13, 29, 30  # where things stand in the stream of a planted model
PROBLEMS = 400
FAR = -60.0  # a score that is next to nothing


def planted(*heads: dict, name: str = "planted", **variant) -> Checkpoint:
    """A one-layer model of heads that look alike from every answer position and copy the digit in ten dimensions each.

    A head gives `at` (score of each position, all others FAR) and `slope`, what a digit's value adds to its score. One
    with `by_sign` reads a3 where a `+` asks and b3 where a `-` asks. With `shared` the heads write to the same place.
    """
    shape = Architecture(n_layers=1, d_model=OUT + 10 * len(heads), n_heads=len(heads), d_head=16, d_mlp=1)
    weights = {name: np.zeros(size, np.float32) for name, size in shape.shapes.items()}
    weights["embed.W_E"][:, :13] = np.eye(13)
    weights["pos_embed.W_pos"][:, POSITION : POSITION + 16] = np.eye(16)
    weights["pos_embed.W_pos"][:, ONE] = 1
    for number, head in enumerate(heads):
        Q, K, V, O = (weights[f"blocks.0.attn.W_{letter}"][number] for letter in "QKVO")  # noqa: E741
        if head.get("by_sign"):
            Q[PLUS, 0] = Q[MINUS, 1] = 4 * 60
            K[POSITION + AT["a3"], 0] = K[POSITION + AT["b3"], 1] = 1
        else:
            Q[ONE, 0] = 4  # undoes the scaling by 1/sqrt(16)
            K[POSITION : POSITION + 16, 0] = [head["at"].get(label, FAR) for label in POSITION_LABELS]
            K[:10, 0] = head.get("slope", 0.0) * np.arange(10)
        V[:10, :10] = np.eye(10)
        start = OUT + 10 * (0 if head.get("shared") else number)
        O[:10, start : start + 10] = np.eye(10)
    return Checkpoint(Path(name), RunConfig(shape, **variant), {}, "", weights, {})


def spoilt(checkpoint: Checkpoint, name: str, tensor: str, head: int) -> Checkpoint:
    """The same model, one head's tensor all zero."""
    weights = {key: value.copy() for key, value in checkpoint.weights.items()}
    weights[tensor][head] = 0
    return dataclasses.replace(checkpoint, folder=Path(name), weights=weights)


def at(table: pd.DataFrame, model="trained", **values) -> pd.DataFrame:
    for column, value in {"model": model, **values}.items():
        table = table[table[column] == value]
    return table


@pytest.fixture(scope="module")
def found():
    """On the written models, and on one of them whose head 0 writes nothing and whose head 1 looks everywhere."""
    exact = written.exact()
    mute = spoilt(exact, "spoilt", "blocks.0.attn.W_V", head=0)
    both = spoilt(mute, "spoilt", "blocks.0.attn.W_K", head=1)
    return attention.function([exact, both, written.clock()], Options(problems=PROBLEMS))


@pytest.fixture(scope="module")
def pairs():
    """Heads that look at a1 and b1: the larger digit, the smaller one, both alike; and each of the two on its own."""
    both = {"a1": 0.0, "b1": 0.0}
    larger, smaller, alike = ({"at": both, "slope": slope} for slope in (3.0, -3.0, 0.0))
    alone = [{"at": {label: 0.0}} for label in both]
    models = [
        planted(larger, smaller, alike, {"by_sign": True}, name="choosing"),
        planted(*alone, name="apart"),
        planted(*({**head, "shared": True} for head in alone), name="added"),
        planted({"at": {"a3": 0.0}}, name="thousands"),
    ]
    return attention.function(models, Options(problems=1_600))


def roles(result, name: str, group="all") -> dict[str, dict[str, str]]:
    """By head, the tokens it copies at each answer digit."""
    rows = at(result.tables["heads"], checkpoint=name, group=group, role="copies")
    named: dict[str, dict[str, str]] = {}
    for row in rows.to_dict("records"):
        named.setdefault(f"L{row['layer']}H{row['head']}", {})[row["answer"]] = row["reads"]
    return named


def test_every_head_of_the_exact_decoder_is_named_by_the_digits_it_copies(found):
    own = [{f"d{place}": f"{operand}{place}" for place in (3, 2, 1, 0)} for operand in "ab"]
    below = [{f"d{place + 1}": f"{operand}{place}" for place in (3, 2, 1, 0)} for operand in "ab"]
    everywhere = [dict.fromkeys(("d4", "d3", "d2", "d1", "d0"), label) for label in ("op", "s")]
    expected = [*own, *everywhere, *below]  # layer 1 attends to nothing
    assert roles(found, "written-exact") == {f"L0H{head}": named for head, named in enumerate(expected)}
    assert roles(found, "written-clock") == {f"L0H{head}": named for head, named in enumerate(own)}


def test_what_was_taken_away_is_not_found(found):
    assert set(roles(found, "spoilt")) == {f"L0H{head}" for head in (2, 3, 4, 5)}
    mute = at(found.tables["heads"], checkpoint="spoilt", layer=0, head=0, group="all", answer="d1").iloc[0]
    assert (mute["reads"], mute["role"], mute["varies"]) == ("a1", "reads", 0) and math.isnan(mute["r2"])
    blind = at(found.tables["heads"], checkpoint="spoilt", layer=0, head=1, group="all")
    assert set(blind["role"]) == {""}
    np.testing.assert_allclose(blind["weight"], [2 / keys for keys in range(11, 16)])


def test_weights_and_explained_variance_are_the_planted_ones(found):
    """Head 4 weighs a's lower digits by powers of ten; independent digits share variance as the squares of weights."""
    rows = at(found.tables["heads"], checkpoint="written-exact", layer=0, head=4, group="all").set_index("answer")
    assert rows.loc["d4", "weight"] == pytest.approx(1000 / 1111) and rows.loc["d2", "weight"] == pytest.approx(10 / 11)
    assert rows.loc["d2", "r2"] == pytest.approx(100 / 101, abs=0.005)
    assert rows["r2_low"].loc["d2"] < rows["r2"].loc["d2"] < rows["r2_high"].loc["d2"]
    assert rows.loc["d1", "r2"] == pytest.approx(1)
    patterns = at(found.tables["patterns"], checkpoint="written-exact", layer=0, head=4, answer="d4")
    for _, part in patterns.groupby("group"):
        weights = part.set_index("key")["weight"]
        assert [weights[f"a{place}"] * 1111 for place in (3, 2, 1, 0)] == pytest.approx([1000, 100, 10, 1])


def test_mean_patterns_add_up_to_one(found):
    keys = ["checkpoint", "model", "layer", "head", "answer", "group"]
    rows = found.tables["patterns"].groupby(keys)["weight"]
    np.testing.assert_allclose(rows.sum(), 1, atol=1e-12)
    assert set(rows.size().groupby("answer").unique().explode()) == {11, 12, 13, 14, 15}


def test_untrained_heads_are_given_no_roles(found):
    assert set(at(found.tables["heads"], model="untrained")["role"]) == {""}
    assert found.tables["summary"]["untrained"].eq(0).all()


def test_own_digits_are_counted(found):
    summary = found.tables["summary"].set_index(["checkpoint", "L"])["own add"]
    counts = {("written-exact", 0): 8, ("written-exact", 1): 0, ("spoilt", 0): 4, ("written-clock", 0): 8}
    assert {key: summary[key] for key in counts} == counts


def test_the_qk_circuit_gives_every_score_of_layer_0(found):
    """Scores of the untrained model depend on everything; a planted position leaves nothing else to say."""
    layer_0 = found.tables["qk"][found.tables["qk"]["layer"] == 0]
    for name in ("by_tokens", "by_tokens_low", "by_tokens_high"):
        np.testing.assert_allclose(layer_0[name].dropna(), 1, atol=1e-9)
    random = at(layer_0, model="untrained")
    assert (random["by_position"] < random["by_key"]).all() and (random["by_key"] < 0.95).all()
    assert at(layer_0, checkpoint="written-exact")["by_position"].min() > 1 - 1e-12
    assert at(layer_0, checkpoint="spoilt", head=1)["by_position"].isna().all()  # all scores equal: nothing to explain
    upper = at(found.tables["qk"], model="untrained", layer=1)["by_tokens"]
    assert 0 < upper.min() < 0.99


def test_the_key_s_token_is_what_sets_the_scores_of_a_head_that_looks_at_values(pairs):
    rows = at(pairs.tables["qk"], checkpoint="choosing", answer="d0").set_index("head")
    # two of 15 keys stand out by 60, a sum of squares of 6,240; eleven digits add 3 d, of variance 9 * 8.25, to theirs
    assert rows.loc[0, "by_key"] == pytest.approx(1) and 0.85 < rows.loc[0, "by_position"] < 0.92
    assert rows.loc[2, "by_position"] == pytest.approx(1)
    query = at(pairs.tables["qk"], checkpoint="choosing", head=3, answer="d4").iloc[0]
    assert query["by_tokens"] == pytest.approx(1) and query["by_key"] < 0.9


def test_ov_circuits_have_the_planted_dimensions(found):
    """Ten one-hot digits less their mean span nine equal dimensions; a value, one; a clock's angles, (4 + 1)^2 / 3."""
    ov = at(found.tables["ov"])
    identity = at(ov, checkpoint="written-exact", layer=0, head=0)
    np.testing.assert_allclose(identity["dimensions"], 9)
    np.testing.assert_allclose(identity["linear"], 1 / 9, rtol=1e-6)
    np.testing.assert_allclose(identity["size"], math.sqrt(0.9))
    value = at(ov, checkpoint="written-exact", layer=0, head=4)
    np.testing.assert_allclose(value[["dimensions", "linear"]], 1)
    angles = at(ov, checkpoint="written-clock")
    np.testing.assert_allclose(angles["dimensions"], 25 / 3)  # eight variances of 5 and one of 10
    assert at(ov, checkpoint="spoilt", layer=0, head=0)["dimensions"].isna().all()


def test_a_digit_that_raises_its_own_logit_is_counted():
    copier = planted({"at": {"a1": 0.0}})
    weights = copier.weights | {"unembed.W_U": copier.weights["unembed.W_U"].copy()}
    weights["unembed.W_U"][OUT : OUT + 10, :10] = np.eye(10)
    tables = attention.function([dataclasses.replace(copier, weights=weights)], Options(problems=400, full=True)).tables
    assert set(at(tables["ov"])["own_logit"]) == {10}
    logits = at(tables["ov-logits"], key="b2", digit=7).iloc[0]
    assert logits["logit_7"] == pytest.approx(0.9) and logits["logit_3"] == pytest.approx(-0.1)
    scores = at(tables["qk-scores"], answer="d2", key="a1", token="5").iloc[0]
    assert scores["score"] == pytest.approx(0, abs=1e-6)
    assert at(tables["qk-scores"], answer="d2", key="a2", token="5").iloc[0]["score"] == pytest.approx(FAR)


def test_a_head_that_takes_the_larger_digit_chooses(pairs):
    heads = at(pairs.tables["heads"], checkpoint="choosing", group="all", answer="d1").set_index("head")
    assert heads["role"].tolist()[:3] == ["chooses", "chooses", "copies"]
    assert heads["reads"].tolist()[:3] == ["a1 b1"] * 3
    # a softmax gives digits k apart 1 / (1 + exp(-3 k)) of the weight; 2 (10 - k) of 90 unequal pairs are
    winner = sum(2 * (10 - k) / 90 / (1 + math.exp(-3 * k)) for k in range(1, 10))
    assert heads.loc[0, "winner"] == pytest.approx(winner, abs=0.003) and heads.loc[2, "winner"] == pytest.approx(0.5)
    assert heads.loc[0, "joint"] > 0.999 > 0.95 > heads.loc[0, "r2"] > 0.5
    rows = at(pairs.tables["choices"], checkpoint="choosing", answer="d1").set_index("head")
    assert rows.loc[0, "preferred"] == "9876543210" and rows.loc[1, "preferred"] == "0123456789"
    assert rows.loc[0, "value"] == pytest.approx(1) and rows.loc[0, "middle"] == pytest.approx(0, abs=1e-6)
    assert rows.loc[0, "score_9"] == pytest.approx(3 * 4.5) and rows.loc[0, "same_order"] == pytest.approx(1)


def test_what_swaps_is_known_for_pairs_and_for_digits_side_by_side(pairs):
    rows = at(pairs.tables["order"], answer="d1", group="addition").set_index(["checkpoint", "head"])["swapped"]
    assert rows["choosing", "0"] == pytest.approx(0, abs=0.005)  # the larger digit, whosever it is
    assert rows["choosing", "all"] == pytest.approx(0, abs=0.005)
    assert rows["apart", "0"] == pytest.approx(0.5, abs=0.02)  # a's digit alone
    assert rows["apart", "all"] == pytest.approx(0.5, abs=0.02)
    assert rows["added", "all"] == pytest.approx(0, abs=0.005)  # the same two heads, into one place
    top = at(pairs.tables["order"], answer="d3", checkpoint="thousands").set_index(["group", "head"])["swapped"]
    assert top["addition", "0"] == pytest.approx(0.5, abs=0.03)
    assert math.isnan(top["subtraction +", "0"]) and math.isnan(top["subtraction -", "0"])  # given the sign, one order


def test_the_share_that_swaps_has_its_jackknife_interval(pairs):
    rows = at(pairs.tables["order"], answer="d1", head="all").set_index(["checkpoint", "group"])
    apart = rows.loc[("apart", "addition")]
    assert apart["swapped_low"] < apart["swapped"] < apart["swapped_high"]
    assert apart["swapped_low"] < 0.5 < apart["swapped_high"] and apart["swapped_high"] - apart["swapped_low"] < 0.2
    assert at(pairs.tables["order"], head="0")["swapped_low"].isna().all()


def test_tables_of_pairs_split_into_what_changes_and_what_stays():
    digits = torch.eye(10, dtype=torch.float64)
    a, b = digits[:, None].expand(10, 10, 10), digits[None].expand(10, 10, 10)
    met = torch.ones(10, 10, dtype=torch.float64)
    cases = [(a + b, 0.0), (a - b, 1.0), (torch.cat([a, b], dim=2), 0.5), (torch.maximum(a, b), 0.0)]
    for table, share in cases:
        changes, stays = swapped(table, table, met)
        assert changes / (changes + stays) == pytest.approx(share, abs=1e-12)
    noise = torch.randn(2, 10, 10, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    changes, stays = swapped(a - b + noise[0], a - b + noise[1], met)
    assert changes == pytest.approx(1.8, abs=0.6) and stays == pytest.approx(0, abs=0.6)  # noise squared would add 5


def test_most_units_digits_right_without_the_order_by_hand():
    """Ten equal pairs and five that differ by five have one answer; of forty others one order can be right.

    Of 1,000 x 1,000 upper digits 499,500 lie above the diagonal; on it, 1,000, the units decide which pairs there are.
    """
    assert best_without_order("subtraction +") == (10 * 500_500 + 5 * 1_000_000 + 40 * 500_500) / 50_005_000
    assert best_without_order("subtraction -") == (10 * 499_500 + 5 * 1_000_000 + 40 * 500_500) / 49_995_000
    assert best_without_order("addition") == 1


def test_units_digits_right_are_counted(found):
    units = at(found.tables["units"], checkpoint="written-exact")
    assert units["right"].tolist() == [1.0] * 3 and units["n"].sum() == PROBLEMS and (units["low"] < 1).all()
    clock = at(found.tables["units"], checkpoint="written-clock").set_index("group")["right"]
    assert clock["addition"] == 1.0 and clock["subtraction +"] < 0.5  # it adds


def test_patterns_that_turn_with_the_sign_are_seen_to(pairs):
    rows = at(pairs.tables["turns"], checkpoint="choosing", answer="d4").set_index(["head", "from", "to"])
    assert rows.loc[(3, "subtraction +", "subtraction -"), "moved"] == pytest.approx(1, abs=1e-6)
    assert rows.loc[(3, "addition", "subtraction +"), "moved"] == pytest.approx(0, abs=1e-6)
    assert rows.loc[(0, "subtraction +", "subtraction -"), "moved"] < 0.06  # which digits are larger differs a little
    heads = at(pairs.tables["heads"], checkpoint="choosing", head=3, answer="d4").set_index("group")["reads"]
    assert (heads["subtraction +"], heads["subtraction -"]) == ("a3", "b3")


def test_how_far_a_pattern_moves_has_the_interval_of_a_difference_of_means():
    on = np.array([0.2, 0.4, 0.6, 0.8, 0.1, 0.3, 0.2, 0.2])  # weight of the first of two keys, four problems a group
    pattern = torch.zeros(8, 1, 5, 15, dtype=torch.float64)
    pattern[:, 0, :, 0], pattern[:, 0, :, 1] = torch.from_numpy(on)[:, None], 1 - torch.from_numpy(on)[:, None]
    groups = {"x": np.arange(8) < 4, "y": np.arange(8) >= 4}
    row = next(turns(pattern, 0, groups))
    half = 1.959964 * (np.var(on[:4], ddof=1) / 4 + np.var(on[4:], ddof=1) / 4) ** 0.5
    found = [row[name] for name in ("moved", "moved_low", "moved_high")]
    assert found == pytest.approx([0.3, 0.3 - half, 0.3 + half], abs=1e-6)


def test_findings_have_an_interval_unless_they_are_counted(pairs):
    for one in pairs.findings:
        assert ("counted, so without" in one.text) == (one.low is None) and one.n
        assert one.low is None or one.low <= one.value <= one.high
    assert sum(one.low is not None for one in pairs.findings) >= 4


def test_the_rules_flip_at_their_thresholds():
    assert read_positions(torch.tensor([0.75, 0.25])) == (0,)
    assert read_positions(torch.tensor([0.1, 0.4, 0.1, 0.4])) == (1, 3)
    assert read_positions(torch.tensor([0.3, 0.3, 0.3, 0.1])) == ()
    assert role((), 1.0, 1.0, 1.0) == ""
    assert role((3,), 0.9, 0.9, math.nan) == "copies" and role((3,), 0.89, 0.89, math.nan) == "reads"
    assert role((3, 8), 0.5, 0.9, 0.9) == "chooses" and role((3, 8), 0.5, 0.9, 0.89) == "joins"
    assert role((3, 8), 0.5, 0.89, 0.99) == "reads" and role((3, 8), math.nan, math.nan, 0.99) == "reads"


def test_findings_name_heads_and_carry_their_control(found):
    (words,) = [one for one in found.findings if one.text.startswith("written-exact, all problems")]
    assert "L0H0 d3<a3 d2<a2 d1<a1 d0<a0; L0H1 d3<b3" in words.text and "L0H2 d4<op" in words.text
    assert (words.value, words.control_value, words.n) == (26 / 60, 0.0, PROBLEMS)
    own = [
        one for one in found.findings if "8 operand digits" in one.text and "relu" in one.text and "layer 0" in one.text
    ]
    assert own[0].value == pytest.approx((8 + 4) / 2) and own[0].control_value == 0
    units = [one for one in found.findings if "units digits right" in one.text and "bilinear" in one.text]
    assert [one.control_value for one in units] == [best_without_order(f"subtraction {sign}") for sign in "+-"]


def test_it_reads_back_equal_and_has_its_figures(found, tmp_path):
    options = Options(problems=PROBLEMS)
    save(found, tmp_path, analysis_name=attention.name, options=options, inputs=["a"])
    assert load(tmp_path) == found
    names = ["written-exact", "spoilt", "written-clock"]
    assert list(found.figures) == ["summary", "circuits", "order", *(f"patterns-{name}" for name in names)]
    maps = found.figures["patterns-written-exact"].data
    assert len(maps) == 12 * 3 and maps[0].x == POSITION_LABELS[:15] and maps[0].y[0] == "predicts d4"
    np.testing.assert_allclose(np.nansum(np.array(maps[0].z, dtype=float), axis=1), 1)
    assert np.isnan(np.array(maps[0].z, dtype=float)[0, 11:]).all()
    summary = np.array(found.figures["summary"].data[0].z, dtype=float)
    assert summary.shape == (12 * 2 + 2, 12)
    np.testing.assert_allclose(summary.sum(axis=1), 1)


def test_the_same_seed_gives_the_same_result():
    options = Options(problems=400, seed=3)
    first, second = (attention.function([written.clock()], options) for _ in range(2))
    assert first == second


def test_a_variant_of_one_group_works(found):
    model = planted({"at": {"a1": 0.0}}, problems="addition")
    tables = attention.function([model], Options(problems=400)).tables
    assert set(tables["heads"]["group"]) == {"all", "addition"} and "turns" not in tables
    assert tables["summary"]["own sub+"].isna().all()
    hidden = planted({"at": {"s": 0.0}}, name="hidden", problems="sign-hidden")
    rows = at(attention.function([hidden], Options(problems=400)).tables["heads"], group="all")
    assert set(rows["reads"]) == {"s"} and set(rows["varies"]) == {0.0}  # `=` stands there


def test_problems_of_each_half_are_different():
    problems = sample(401, 0)
    from analyses.learned._attention_layers import drawn

    for halves in drawn(problems, 0).halves:
        assert halves.fitting.max() < halves.scoring.min()
        assert halves.counts.shape[1] == len(halves.scoring)


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="at least one checkpoint"):
        attention.function([], Options())
    with pytest.raises(BadInput, match="two checkpoints are named written-clock"):
        attention.function([written.clock(), written.clock()], Options())
    with pytest.raises(BadInput, match="problems is 10, expected 400 to 50,000"):
        Options(problems=10)
    with pytest.raises(BadInput, match="seed is -1"):
        Options(seed=-1)


def test_it_is_registered_under_its_name():
    assert get("attention") is attention
