import copy
import math
import statistics

import pytest
import torch

from analyses.kernel import _ntk_ensembles_arithmetic as arithmetic
from analyses.kernel import _ntk_ensembles_findings as findings
from analyses.kernel import _ntk_ensembles_permutation as permutation
from analyses.kernel import _ntk_ensembles_protocol as protocol
from analyses.kernel import _ntk_ensembles_recipes as recipes
from analyses.kernel import _ntk_ensembles_tables as tables
from analyses.kernel import ntk_ensembles as module
from analyses.published import load as published
from workbench.analysis import load, save
from workbench.errors import BadInput
from workbench.ntk import decisions
from workbench.ntk.ensemble import Recipe


def cell(k, median, form="nngp", kind="trained", error=0.1, threshold="zero", spread=0.0, trials=5):
    ends = {
        "least": median - spread,
        "most": median + spread,
        "band_low": median - spread,
        "band_high": median + spread,
    }
    return {"k": k, "form": form, "kind": kind, "threshold": threshold, "error": error, "trials": trials,
            "median": median, "unreached": 0} | ends  # fmt: skip


def trial(k, networks, form="nngp", kind="trained", number=0):
    return {"k": k, "form": form, "kind": kind, "threshold": "zero", "error": 0.1, "trial": number,
            "networks": networks, "reached": True}  # fmt: skip


# --- the published numbers


def test_the_published_counts_are_those_of_two_experiments():
    first, second = published("ntk")["experiment_1"], published("ntk")["experiment_2"]
    assert first["k"] == list(range(2, 31)) and len(first["networks"]) == 29
    assert second["k"] == list(range(5, 31, 5)) and len(second["networks"]) == 6
    counts = tables.published(0.1)
    assert [counts[k] for k in (10, 15, 20, 25, 30)] == [69, 103, 117, 157, 175]
    assert tables.published(0.001)[30] == 318 and tables.published(0.5) == {}
    assert "permlearn" in published("ntk")["source"]


# --- permutations


def test_a_task_is_every_pair_of_ones_and_its_permutation():
    task = permutation.Task(torch.tensor([2, 0, 1]))  # bit 0 moves to 2, 1 to 0, 2 to 1
    assert task.ones.tolist() == [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
    assert task.wanted.tolist() == [[True, False, True], [False, True, True], [True, True, False]]
    assert torch.allclose(task.inputs.norm(dim=1), torch.ones(3, dtype=torch.float64))
    middle = task.roundings("ntk")["midpoint"].threshold
    g = 0.575272
    h = (2 * g - 1) / (3 + 2 * math.pi - 1)
    assert middle.flatten().tolist() == pytest.approx([g / 2 - h] * 9, abs=1e-6)
    assert not task.roundings("ntk")["zero"].threshold.any()


def test_trials_are_drawn_anew_and_the_same_again():
    rows = permutation.law_trials(6, "nngp", (0.1, 0.001), 3, seed=1)
    assert rows == permutation.law_trials(6, "nngp", (0.1, 0.001), 3, seed=1)
    assert len(rows) == 3 * 2 * 2 and {row["kind"] for row in rows} == {"law"} and all(row["reached"] for row in rows)
    zero = [row["networks"] for row in rows if row["threshold"] == "zero" and row["error"] == 0.1]
    assert len(set(zero)) > 1  # trials differ
    strict = [row["networks"] for row in rows if row["threshold"] == "zero" and row["error"] == 0.001]
    assert all(a >= b for a, b in zip(strict, zero, strict=True))
    assert zero != [
        row["networks"]
        for row in permutation.law_trials(6, "nngp", (0.1,), 3, seed=2)
        if row["threshold"] == "zero"
    ]  # fmt: skip


@pytest.mark.parametrize(("form", "predictor", "count"), [("standard", "nngp", 59), ("ntk", "ntk", 295)])
def test_trained_networks_need_as_many_as_the_law_of_their_form(form, predictor, count):
    """At k = 10 the medians of an earlier simulation of both laws are 59 and 295; a trial lies within a third."""
    recipe = Recipe(form, 1024, recipes.steps(form, 10))
    rows = permutation.trained_trials(10, recipe, (0.1,), 1, seed=0)
    networks = {row["threshold"]: row["networks"] for row in rows}
    assert networks["midpoint"] == 1 and count / 1.5 < networks["zero"] < count * 1.5
    assert {row["form"] for row in rows} == {predictor}


def test_a_count_that_is_not_reached_is_the_most_and_says_so():
    rows = permutation.rows(5, "ntk", "law", 0, {("zero", 0.1): None, ("midpoint", 0.1): 3})
    assert [(row["networks"], row["reached"]) for row in rows] == [(5000, False), (3, True)]


# --- widths and steps


def test_the_law_of_a_width_implies_the_expected_count():
    """58 and 333 networks at k = 10 by the normal tails of .6179 / -.02326 / .07926 and .5654 / -.00985 / .08074."""
    for form, count in (("standard", 58), ("ntk", 333)):
        row = recipes.limit(form, 10)
        assert row["implied"] == count
        right = [0.5 * math.erfc(row["off"] * n**0.5 / row["spread"] / 2**0.5) for n in (count, count - 1)]
        assert right[0] ** 8 >= 0.9 > right[1] ** 8  # eight bits that should be 0; the other two are sure
    assert recipes.implied(0.5, 0.01, 0.1, 10) == 0  # a mean on the wrong side is never enough


def test_means_and_spread_are_unbiased_in_mirrored_pairs():
    """Made up: a pair's mean is on or off plus a normal of sd 0.3, half their difference a normal of sd 0.4."""
    generator = torch.Generator().manual_seed(0)
    wanted = permutation.Task(torch.arange(4)).wanted
    base = torch.where(wanted, 0.6, -0.1).double()
    shared = 0.3 * torch.randn(400, 6, 4, generator=generator).double()
    half = 0.4 * torch.randn(400, 6, 4, generator=generator).double()
    row = recipes.summary(torch.stack([base + shared + half, base + shared - half]), 4)
    for name, value in (("on", 0.6), ("off", -0.1), ("spread", 0.5)):
        assert abs(row[name] - value) < row[f"{name}_high"] - row[f"{name}_low"], name  # twice the interval
    assert row["spread"] == pytest.approx(0.5, rel=0.02) and row["pairs"] == 400


def test_the_error_of_a_mean_is_that_of_trained_networks():
    """Standard deviation over 64 networks of their mean outputs, against the law's, within 3.5 standard errors."""
    k, wanted = 6, permutation.Task(torch.arange(6)).wanted
    y = recipes.pairs_outputs(Recipe("standard", 1024, recipes.steps("standard", k)), k, 64, seed=0)[0]
    for name, chosen in (("on", wanted), ("off", ~wanted)):
        measured = float(y[:, chosen].mean(dim=1).std())
        assert measured == pytest.approx(recipes.mean_error("standard", k)[name], rel=3.5 / 128**0.5), name


def test_larger_steps_are_compared_on_the_same_networks(monkeypatch):
    monkeypatch.setattr(recipes, "PUBLISHED_STEPS", 400)
    rows = recipes.compared("standard", 8, 512, 2, seed=0)
    assert [row["steps"] for row in rows] == ["plain", "chebyshev"]
    assert all(row["rms"] < findings.STEP_MOVED for row in rows)
    monkeypatch.setattr(recipes, "PUBLISHED_STEPS", 4)  # far from the end: this moves
    assert all(row["rms"] > findings.STEP_MOVED for row in recipes.compared("standard", 8, 512, 2, seed=0))


# --- addition and multiplication


def additions(bits: int) -> set[tuple[int, int, int]]:
    """Every (p, q, c) that adding two numbers meets, by integers: an independent half-adder machine."""
    seen, todo, top = set(), [(p, q, 0) for p in range(2**bits) for q in range(2**bits)], 1 << (bits - 1)
    while todo:
        state = todo.pop()
        if state not in seen:
            seen.add(state)
            p, q, c = state
            todo.append((p ^ q, (c << 1) & (2**bits - 1), (p & q) | (c & top)))
    return seen


@pytest.mark.parametrize("bits", [2, 4])
def test_every_state_of_addition_is_met_once(bits):
    found = arithmetic.reached("add", bits)
    places = [[found.algorithm.templates.layout[name, i] for i in range(bits)] for name in "pqc"]
    numbers = [(found.states[:, where].long() << torch.arange(bits)).sum(dim=1).tolist() for where in places]
    assert len(found.states) == len(additions(bits)) and set(zip(*numbers, strict=True)) == additions(bits)


def test_decisions_are_counted_by_kind():
    """Addition of 2 bits: the tally against a loop over states and bits."""
    found = arithmetic.reached("add", 2)
    rows = arithmetic.tally(found)
    assert sum(row["decisions"] for row in rows) == len(found.states) * 6
    for row in rows:
        count = sum(
            int(found.matched[i]) == row["matched"]
            and int(found.writers[i, j]) == row["writers"]
            and int(found.algorithm.templates.written[j]) == row["written"]
            for i in range(len(found.states))
            for j in range(6)
        )
        assert row["decisions"] == count


@pytest.mark.parametrize(
    ("operation", "bits", "zero", "middle"),
    [("add", 4, 80.8, 0.192), ("add", 6, 101.4, 0.24), ("multiply", 2, 155.9, 0.195)],
)
def test_the_hardest_decision_over_all_inputs(operation, bits, zero, middle):
    """Known values of rho^2; at zero it is an unwanted bit of one writer at m = 2 everywhere."""
    lines = arithmetic.predictions(operation, arithmetic.reached(operation, bits))
    by = {line["threshold"]: line for line in lines}
    assert by["zero"]["ratio"] == pytest.approx(zero, abs=0.06) and by["midpoint"]["ratio"] == pytest.approx(
        middle, abs=0.004
    )
    assert (by["zero"]["worst_m"], by["zero"]["worst_S"], by["zero"]["worst_T"]) == (2, 0, 1)
    assert by["zero"]["networks"] < by["zero"]["bound"] and by["midpoint"]["networks"] < 10


def test_only_addition_has_bits_that_no_template_writes():
    assert arithmetic.predictions("add", arithmetic.reached("add", 3))[0]["unwritten"] == 78  # q_0, where m >= 2
    assert arithmetic.predictions("multiply", arithmetic.reached("multiply", 2))[0]["unwritten"] == 0


@pytest.mark.parametrize(("operation", "bits"), [("add", 2), ("add", 5), ("multiply", 2), ("multiply", 3)])
def test_the_ceiling_is_above_what_all_states_need(operation, bits):
    found = arithmetic.reached(operation, bits)
    templates, width, most, writers = arithmetic.reach(operation, bits)
    assert (templates, width) == (found.size, found.states.shape[1])
    assert most >= int(found.matched.max()) and writers == int(found.algorithm.templates.written.max())
    top = arithmetic.ceiling(operation, bits)
    line = arithmetic.predictions(operation, found)[0]
    assert line["networks"] < top["networks"] < top["bound"] and line["bound"] < top["bound"]


def test_the_ceiling_of_a_permutation_is_near_the_exact_sum_over_its_inputs():
    """All 2^6 inputs of 6 bits: C(6, m) (6 - m) unwanted and C(6, m) m wanted decisions."""
    m = [n for n in range(2, 7) for _ in (0, 1)]
    s = [0, 1] * 5
    counts = [math.comb(6, a) * (a if b else 6 - a) for a, b in zip(m, s, strict=True)]
    ratios = decisions.ratio(torch.tensor(m), torch.tensor(s), torch.ones(10), 6)
    exact = decisions.networks(ratios, torch.tensor(counts).double().log(), 0.1)
    assert exact <= arithmetic.ceiling("permute", 6)["networks"] <= 1.1 * exact


def test_trained_networks_add_two_bits_in_every_state():
    found = arithmetic.reached("add", 2)
    rows = arithmetic.trials("add", found, "trained", 512, 1, seed=0) + arithmetic.trials(
        "add", found, "law", 512, 5, 0
    )
    by = {
        kind: [row["networks"] for row in rows if row["kind"] == kind and row["threshold"] == "zero"]
        for kind in ("trained", "law")
    }
    assert 20 < by["trained"][0] < 2000 and 20 < statistics.median(by["law"]) < 1000
    assert all(row["networks"] <= 4 for row in rows if row["threshold"] == "midpoint")


def test_a_state_is_encoded_as_the_machine_matches_it():
    found = arithmetic.reached("multiply", 2)
    x = arithmetic.encoded(found)
    assert x.shape == (len(found.states), found.size) and arithmetic.answers(found).shape[0] == found.size
    assert torch.equal((x > 0).sum(dim=1), found.matched)
    assert torch.allclose(x.norm(dim=1), torch.where(found.matched > 0, 1.0, 0.0).double())


# --- tables


def test_counts_are_medians_ranges_and_bands():
    rows = [trial(10, networks, number=i) for i, networks in enumerate((50, 70, 60, 80, 40))]
    (found,) = tables.counts(rows)
    assert (found["median"], found["least"], found["most"], found["trials"]) == (60, 40, 80, 5)
    assert (found["band_low"], found["band_high"]) == (42, 78)  # 5% and 95% between 40, 50, .. 80
    shown = tables.beside([found, cell(10, 1, threshold="midpoint")]).iloc[0]
    assert shown["published"] == "69" and shown["standard"] == "60 (40 to 80)" and shown["midpoint"] == "1"
    assert shown["law_ntk"] == ""


def test_quotients_are_geometric_means_of_pairs():
    rows = [trial(10, n, number=i) for i, n in enumerate((10, 20, 40))]
    rows += [trial(10, n, form="ntk", number=i) for i, n in enumerate((40, 100, 160))]
    (found,) = tables.quotients(rows, 0.1)
    assert found["times"] == pytest.approx((4 * 5 * 4) ** (1 / 3)) and found["low"] < found["times"] < found["high"]


def test_the_order_of_a_power_is_its_exponent():
    assert tables.order([2, 3, 5, 8], [3 * x**1.7 for x in (2, 3, 5, 8)]) == pytest.approx((1.7, 1.7, 1.7))
    slope, low, high = tables.order([1, 2, 4], [1, 2, 8])
    assert slope == pytest.approx(1.5) and high - slope == pytest.approx(12.706 * math.sqrt(1 / 12), rel=1e-3)
    assert high - slope == pytest.approx(slope - low)
    with pytest.raises(ValueError, match="2 points"):
        tables.order([1, 2], [1, 2])


# --- findings: numbers that flip every verdict


@pytest.mark.parametrize(
    ("median", "words"), [(69 * 1.49, "; all are"), (69 * 1.51, "NOT all"), (69 / 1.51, "NOT all")]
)
def test_within_a_factor_of_the_published_counts(median, words):
    (found,) = findings.beside_published([cell(10, median), cell(20, 117.0)], 0.1)
    assert words in found.text and found.n == 5


def test_small_k_and_other_forms_do_not_count_against_the_published():
    assert findings.beside_published([cell(5, 1.0), cell(10, 9.0, form="ntk")], 0.1) == []


def test_published_counts_inside_and_outside_a_band():
    law = [cell(10, 60.0, kind="law", spread=10), cell(15, 90.0, kind="law", spread=10), cell(3, 2.0, kind="law")]
    law += [cell(10, 300.0, form="ntk", kind="law", spread=50)]
    (found,) = findings.inside_bands(law, 0.1)
    assert "1 of 2 lie" in found.text and "0 of 1" in found.text and found.value == 0.5 and found.control_value == 0


@pytest.mark.parametrize(
    ("ntk", "words"), [((200, 210, 190), "(more)"), ((30, 31, 29), "(fewer)"), ((30, 90, 52), "not clearly")]
)
def test_more_or_fewer_networks_in_ntk_form(ntk, words):
    rows = [trial(10, n, number=i) for i, n in enumerate((50, 52, 54))]
    rows += [trial(10, n, form="ntk", number=i) for i, n in enumerate(ntk)]
    (found,) = findings.forms(rows)
    assert words in found.text


def test_trained_medians_in_the_band_of_their_law():
    cells = [
        cell(10, 60.0),
        cell(20, 90.0),
        cell(10, 58.0, kind="law", spread=5),
        cell(20, 120.0, kind="law", spread=9),
    ]
    (found,) = findings.against_law(cells)
    assert "1 of 2 medians" in found.text and "0.75 to 1.03" in found.text


def width_row(form, width, implied, low, high, on=0.6, off=-0.02):
    return {"form": form, "k": 10, "width": width, "pairs": 8, "implied": implied, "implied_low": low,
            "implied_high": high, "on": on, "on_low": on, "on_high": on, "off": off, "off_low": off,
            "off_high": off, "spread": 0.08}  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "moves"), [(50, 70, False), (100, 119, False), (121, 130, True), (60, 83, True), (90, 0, False)]
)
def test_a_width_moves_the_count_or_not(low, high, moves):
    rows = [width_row("ntk", 0, 100, 100, 100), width_row("ntk", 512, 90, low, high)]
    expected = moves or high == 70
    (found,) = findings.widths(protocol.Checks(rows, []))
    assert ("512 MOVES" in found.text) is expected


@pytest.mark.parametrize(("rms", "words"), [(0.049, "do not move"), (0.051, "MOVE ")])
def test_steps_move_the_outputs_or_not(rms, words):
    row = {"form": "ntk", "k": 10, "width": 64, "pairs": 2, "count": 9, "steps": "plain", "rms": rms, "off": 0.0,
           "off_low": 0.0, "off_high": 0.0}  # fmt: skip
    (found,) = findings.steps(protocol.Checks([], [row]))
    assert words in found.text


@pytest.mark.parametrize(("high", "words"), [(1.74, ", less than l^2"), (1.76, "NOT less than")])
def test_growth_is_less_than_quadratic_or_not(high, words):
    row = {
        "operation": "add",
        "threshold": "zero",
        "source": "all inputs",
        "from": 2,
        "to": 8,
        "exponent": 1.5,
        "low": 1.3,
    }
    rows = [row | {"of": "networks", "high": high}, row | {"of": "bound", "high": 9.0}]
    (found,) = findings.grows(rows)
    assert words in found.text


# --- the whole


SMALL = protocol.Plan(
    trained={"standard": {10: (0.1,)}, "ntk": {10: (0.1,)}}, errors=(0.1,), widths={"standard": 128, "ntk": 128},
    trials=2, laws={"standard": (4, 10), "ntk": (10,)}, law_trials=2,
    checked={("standard", 10): (64, 128), ("ntk", 10): (64, 128)}, pairs=2, paired=(("ntk", 10, 64, 2),),
    multiply=(2,), added=(2,), seed=0,
)  # fmt: skip


def run_small(patch):
    patch.setattr(protocol, "protocol", lambda options: SMALL)
    patch.setattr(protocol, "ADD", (2, 3, 4))
    patch.setattr(protocol, "LAW_ADD", (2,))
    patch.setattr(recipes, "FLOW_STEPS", 50)
    return module.ntk_ensembles.function([], module.Options(trials=2))


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        return run_small(patch)


def test_a_small_run_reads_back_and_says_that_it_is_short(small, tmp_path):
    assert "short run" in small.findings[0].text and module.short(module.Options(full=True)) == []
    save(small, tmp_path / "saved", analysis_name="ntk-ensembles", options=module.Options())
    assert load(tmp_path / "saved") == small
    assert set(small.figures) == {"permutations", "widths", "ratios", "growth"}
    for figure in small.figures.values():
        assert figure.layout.title.text and figure.layout.title.subtitle.text and figure.layout.xaxis.title.text
    assert list(small.tables["summary"]["k"]) == [10]
    assert len(small.tables["trials"]) == 2 * 3 * 2 + 2 * 2 * 2


def test_replacing_the_published_numbers_by_noise_changes_no_measured_number(small, monkeypatch):
    noise = copy.deepcopy(published("ntk"))
    for name in ("experiment_1", "experiment_2"):
        noise[name]["networks"] = [7 * n + 1 for n in range(len(noise[name]["k"]))]
    noise["means_at_10"] |= {"on": 0.1, "off": 0.3}
    monkeypatch.setattr(tables, "load", lambda name: noise)
    monkeypatch.setattr(findings, "load", lambda name: noise)
    again = run_small(monkeypatch)
    changed = {name for name, table in small.tables.items() if not table.equals(again.tables[name])}
    assert changed == {"summary", "published"}
    for name in changed:
        kept = [column for column in small.tables[name].columns if column != "published"]
        assert small.tables[name][kept].equals(again.tables[name][kept])
    pairs = list(zip(small.findings, again.findings, strict=True))
    ours = [a for a, b in pairs if a.value == b.value and a.text == b.text and a.control_value == b.control_value]
    beside = ("Trained networks in the published form", "Published counts", "k = 10, mean output")
    assert all(a.text.startswith(beside) for a, _ in pairs if a not in ours) and len(pairs) - len(ours) >= 3
    assert [b.text for _, b in pairs if "agrees with NEITHER" in b.text] and "agrees with NNGP" in str(small.findings)


def test_what_a_full_run_does_covers_the_published():
    plan = protocol.protocol(module.Options(full=True))
    assert all(set(protocol.KS) <= set(every) for every in plan.trained.values()) and plan.trials >= 5
    assert set(plan.laws["standard"]) == set(published("ntk")["experiment_1"]["k"])
    assert ("standard", 10, 50_000) in [pair[:3] for pair in plan.paired]  # the published training itself
    short = protocol.protocol(module.Options(width=256, trials=7))
    assert short.widths == {"standard": 256, "ntk": 256} and short.trials == 7


@pytest.mark.parametrize("wrong", [{"trials": 1}, {"width": 8}, {"law_trials": 1}, {"pairs": 1}, {"seed": -1}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput, match="expected"):
        module.Options(**wrong)
