import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analyses.learned import _errors_patterns as patterns
from analyses.learned._errors_agreement import FEW, pairs, times_rows
from analyses.learned._errors_figures import figures
from analyses.learned._errors_findings import findings, pooled, summary, verdict
from analyses.learned._errors_hardest import hardest_rows
from analyses.learned._errors_read import Asked, Wrong
from analyses.learned._errors_tables import kind_rows, trained_rows
from analyses.learned.errors import Options, errors
from workbench import written
from workbench.recipe import Recipe
from workbench.sample import sample
from workbench.task import Problems, encode

SHORT = Recipe(steps=10, batch_size=100, validation_every=10)  # a thousand training problems
HALF = (0.40383, 0.59617)  # Wilson's interval of 50 of 100, from tables
ALL = 300 / (300 + 1.959964**2)  # and its lower end for 300 of 300, n / (n + z^2)


def model(name, variant="all", carry=1):
    """The exact decoder, but no carry arrives at this place (1 is the tens) of additions."""
    one = written.exact()
    weights = {key: value.copy() for key, value in one.weights.items()}
    neuron = 3 + 6 * (carry - 1)  # three modes of two neurons a place; the first mode is addition
    weights["blocks.0.mlp.W_out"][neuron : neuron + 2, written.CARRY] = 0
    config = dataclasses.replace(one.config, recipe=SHORT, problems=variant)
    return dataclasses.replace(one, folder=Path(name), weights=weights, config=config)


def tables(asked):
    """What the findings of one group rest on."""
    rows = {"pairs": pairs(asked, 0), "times": times_rows(asked), "hardest": hardest_rows(asked)}
    rows |= {"kinds": kind_rows(asked), "trained": trained_rows(asked)}
    return {name: list(of) for name, of in rows.items()}


@pytest.fixture(scope="module")
def listed():
    """Two models whose wrong problems are counted: 600 problems and 300 of them, units digits off by one."""
    index = np.sort(sample(600, 0).index)
    models = []
    for name, chosen in (("one", index), ("other", index[::2])):
        said = encode(Problems.from_index(chosen))[:, 11:].copy()
        said[:, 4] = (said[:, 4] + 1) % 10
        models.append(Wrong(model(name), chosen, said, every=False))
    return Asked("all", models, patterns.sizes("all"))


@pytest.fixture(scope="module")
def variants():
    """Two models of every problem err alike; two of ordered ones, without other carries, do not."""
    models = [model("one"), model("other"), model("tens", "ordered"), model("hundreds", "ordered", carry=2)]
    return errors.function(models, Options(problems=1_000))


def test_variants_are_asked_apart(variants):
    rows = variants.tables["pairs"]
    told = {"a sample of 1,000 problems": {"one", "other"}, "a sample of 1,000 ordered problems": {"tens", "hundreds"}}
    assert {words: {*of["first"], *of["second"]} for words, of in rows.groupby("asked")} == told
    assert len({f.text for f in variants.findings}) == len(variants.findings)
    shapes = variants.tables["summary"].set_index("shape")["shared"]
    agree = {f.text.partition(",")[0]: f for f in variants.findings if "its seeds err on" in f.text}
    assert len(agree) == len(shapes) == 2
    (same, other) = shapes.index
    assert "-ordered" in other and (agree[same].value, agree[other].value) == tuple(shapes)
    assert agree[same].value == 1 and 0 < agree[other].value < 0.3 and "(1 pair)" in agree[other].text
    assert not any("different shapes" in f.text for f in variants.findings)
    hardest = [f.text for f in variants.findings if "most confusable" in f.text]
    assert len(hardest) == 2 and sum("of 1,000 ordered problems: " in text for text in hardest) == 1


def test_numbers_of_a_sample_stand_beside_n_an_interval_and_a_control(variants):
    first, *rest = variants.findings
    assert first.value == 4 and first.n == 4 * 1_000
    for finding in rest:
        assert finding.n and finding.control and "every problem counted" not in finding.text
        assert "confusable" in finding.text or finding.low <= finding.value <= finding.high


def test_numbers_of_every_problem_say_so_and_have_no_interval(listed):
    first, *rest = findings([listed], tables(listed), full=False)
    assert first.n == 2 * 2 * 10**8 and "--full" not in first.text
    assert len(rest) > 8 and all(finding.n and finding.control for finding in rest)
    for finding in rest:
        drawn = "trained on" in finding.text  # the training problems are drawn, whatever is asked
        assert (finding.low is not None) == drawn
        assert "every problem counted" in finding.text or "of every problem: " in finding.text
    assert [row["counted"] for row in summary([listed], tables(listed))] == [True, True]


def test_the_hardest_stands_beside_the_mean_of_all_compared(listed):
    (found,) = [f for f in findings([listed], tables(listed), full=False) if "confusable additions" in f.text]
    assert found.n == len(listed.models[0].index[listed.models[0].of("addition")])
    assert found.value > found.control_value > 0


def test_an_interval_of_several_models_is_the_mean_of_their_own():
    expected = (0.875, 0.25 * HALF[0] + 0.75 * ALL, 0.25 * HALF[1] + 0.75)
    assert pooled([0.5, 1.0], [100, 300]) == pytest.approx(expected, abs=1e-5)
    assert pooled([0.5], [400], [100]) == pytest.approx((0.5, *HALF), abs=1e-5)


def test_pairs_with_few_errors_are_left_empty():
    row = {"asked": "every problem", "operator": "addition", "first_wrong": FEW, "second_wrong": FEW}
    row |= {"shared": 0.3, "shared_within": 0.2}
    few = row | {"first": "one", "second": "arithmetic-bilinear-2layer-sign-hidden-seed1", "second_wrong": FEW - 1}
    few |= {"shared": -4.64, "shared_within": 1.0}
    figure = figures({"pairs": pd.DataFrame([row | {"first": "one", "second": "other"}, few])})["agreement"]
    beyond, within = (np.array(trace.z, dtype=float) for trace in figure.data)
    assert beyond[0, 1] == beyond[1, 0] == 0.3 and within[0, 1] == within[1, 0] == 0.2
    assert len(beyond) == 3 and np.isnan(beyond).sum() == np.isnan(within).sum() == 7
    assert f"fewer than {FEW} wrong" in figure.layout.title.subtitle.text
    label = 6 * len("bilinear-2layer-sign-hidden-seed1")  # pixels: it ends at its column, in the margins
    assert figure.layout.xaxis.tickangle == -45
    assert figure.layout.margin.l > label and figure.layout.margin.b > label / 2**0.5
    assert figures({"pairs": pd.DataFrame([few])}) == {}


def test_the_verdict_flips_with_its_numbers():
    assert verdict([0.5, 0.9], [0.5, 0.6]) == "the same problems"
    assert verdict([0.5, 0.9], [0.49, 0.6]) == "the same kinds of problems"
    assert verdict([0.49, 0.9], [0.9, 0.9]) == "partly the same problems"
    assert verdict([0.1, -0.2], [0.0, 0.0]) == "mostly different problems"
    assert verdict([0.11, -0.2], [0.0, 0.0]) == "partly the same problems"
    assert verdict([], []) == "unknown"
