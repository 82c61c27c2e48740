import copy
import functools
import math

import numpy as np
import pytest
import torch
from scipy import integrate, optimize, stats

from analyses.hill import _hill_zero_crossing_findings as findings
from analyses.hill import _hill_zero_crossing_runs as runs
from analyses.hill import _hill_zero_crossing_surface as surface
from analyses.hill import hill_zero_crossing as module
from analyses.hill._hill_zero_crossing_surface import Inputs
from analyses.published import load
from workbench.errors import BadInput
from workbench.hill.constraint import constrain

FIVE = Inputs("uniform", 5.0)


def loss_at(w, inputs):
    return surface.derivatives(np.array(w, dtype=float), inputs)[0]


@pytest.mark.parametrize("p", [-0.7, 0.0, 0.5, 2.0, 4.0])
def test_moments_are_those_of_scipys_distributions(p):
    power = torch.tensor(p, dtype=torch.float64)
    assert float(Inputs("uniform", 3.0).log_moment(power).exp()) == pytest.approx(3.0**p / (p + 1), rel=1e-13)
    normal = stats.truncnorm(-3, 3)
    half, _ = integrate.quad(lambda u: normal.pdf(u ** (1 / (p + 1))) / (p + 1), 0, 3 ** (p + 1))  # u = x^(p + 1)
    assert float(Inputs("normal", 2.0).log_moment(power).exp()) == pytest.approx(2.0**p * 2 * half, rel=1e-8)


@pytest.mark.parametrize("w", [(0.3, 0.7), (0.9, 0.2), (0.0, 0.6), (-0.2, 0.8)])
def test_the_loss_is_the_expectation_of_the_complex_powers_error(w):
    """Integrated over the four quadrants of U(-2, 2) with numpy's complex power, as section 3.2 writes the unit."""

    def squared(a, b):
        value = np.power(complex(a), w[0]) * np.power(complex(b), w[1])
        return (value.real - a * b) ** 2 / 16

    ends = [(-2, 0), (0, 2)]
    whole = sum(integrate.dblquad(squared, *second, *first, epsrel=1e-6)[0] for first in ends for second in ends)
    assert loss_at(w, Inputs("uniform", 2.0)) == pytest.approx(whole, rel=1e-4)


def test_what_is_known_of_the_surface_by_hand():
    """At [1, 1] nothing is lost; at 0 the answer is 1, so E(1 - xy)^2 = 1 + (c^2 / 3)^2; the slope 2 (ln c - 1)."""
    value, slope, _ = surface.derivatives(np.zeros(2), FIVE)
    assert value == pytest.approx(1 + (25 / 3) ** 2, rel=1e-14)
    assert slope == pytest.approx([2 * (math.log(5) - 1)] * 2, rel=1e-12)
    assert loss_at((1, 1), FIVE) == pytest.approx(0, abs=1e-10)
    assert loss_at((-0.5, 0.3), FIVE) == math.inf
    assert loss_at((0.2, -0.3), FIVE) == pytest.approx(loss_at((-0.3, 0.2), FIVE), rel=1e-14)


def test_derivatives_are_those_of_differences():
    w, h = np.array([0.3, -0.2]), 1e-5
    _, slope, curvature = surface.derivatives(w, Inputs("normal", 1.3))
    for place in (0, 1):
        step = np.eye(2)[place] * h
        up, down = (surface.derivatives(w + sign * step, Inputs("normal", 1.3)) for sign in (1, -1))
        assert slope[place] == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-7)
        assert curvature[place] == pytest.approx((up[1] - down[1]) / (2 * h), rel=1e-6)


@pytest.mark.parametrize(("scale", "near"), [(5.0, (-0.4, 0.76)), (1.5, (-0.26, 0.63))])
def test_the_spurious_minima_are_those_that_scipy_finds(scale, near):
    inputs = Inputs("uniform", scale)
    theirs = optimize.minimize(lambda w: loss_at(w, inputs), near, method="Nelder-Mead", options={"xatol": 1e-9})
    found = surface.minima(inputs)
    assert found[0].w == (1.0, 1.0) and not found[0].spurious
    assert sorted(found[1].w) == pytest.approx(sorted(theirs.x), abs=1e-5)
    assert [one.spurious for one in found[1:]] == [True, True]
    assert found[1].loss == pytest.approx(theirs.fun, rel=1e-10)


def brute(w1, w2, c):
    """The formula once more, in numpy, for scanning."""
    a, b, t = np.cos(np.pi * w1), np.cos(np.pi * w2), np.cos(np.pi * (w1 + w2))
    second = c ** (2 * w1 + 2 * w2) / (2 * w1 + 1) / (2 * w2 + 1) * (1 + a * a + b * b + t * t) / 4
    return second - c ** (w1 + w2 + 2) / (w1 + 2) / (w2 + 2) * (1 - a - b + t) / 2 + c**4 / 9


def test_the_critical_scales_part_the_surfaces():
    """Below each the shape is not there, above it is, by scanning; the slope turns at e, where ln c - 1 is 0."""
    assert surface.appears("slope", "uniform") == pytest.approx(math.e, abs=2e-6)
    hill, w = surface.appears("hill", "uniform"), np.linspace(0, 1, 100_001)
    assert hill == pytest.approx(1.75003, abs=1e-5)
    assert (np.diff(brute(w, w, hill - 0.001)) < 0).all() and (np.diff(brute(w, w, hill + 0.001)) > 0).any()
    pair = surface.appears("pair", "uniform")
    assert pair == pytest.approx(1.02803, abs=1e-5)
    grid = np.linspace(-0.45, 0.95, 1401)
    for scale, there in ((pair - 0.01, False), (pair + 0.01, True)):
        values = brute(grid[:, None], grid[None, :], scale)
        inner = values[1:-1, 1:-1]
        lower = [values[1 + i : 1400 + i, 1 + j : 1400 + j] > inner for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        assert bool(np.all(lower, axis=0).any()) == there


def test_the_reports_normal_inputs_are_just_short_of_their_hill():
    assert 1.0 < surface.appears("hill", "normal") < 1.1


def test_the_pass_is_climbed_only_where_it_must_be():
    begin = loss_at((0, 0), FIVE)
    assert surface.mountain_pass(Inputs("uniform", 1.0)) == loss_at((0, 0), Inputs("uniform", 1.0))
    saddle = surface.diagonal_saddle(FIVE)
    assert saddle == pytest.approx(0.40085, abs=1e-4)
    assert begin < surface.mountain_pass(FIVE) <= loss_at((saddle, saddle), FIVE) * (1 + 1e-3)
    assert surface.mountain_pass(FIVE, (0.6, 0.6)) == pytest.approx(loss_at((0.6, 0.6), FIVE), rel=1e-12)


def test_starts_are_the_weights_asked_for():
    for w in ((0.0, 0.0), (0.3, -0.4), (0.8, 0.95)):
        W_hat, M_hat = (torch.tensor(part, dtype=torch.float64) for part in runs.raw_start(w))
        assert constrain(W_hat, M_hat).tolist() == pytest.approx(w, abs=1e-12)
    assert runs.raw_start((0.0, 0.0)) == ((0.0, 0.0), (0.0, 0.0))


def test_a_run_of_each_kind_ends_where_the_surface_says():
    """Two seeds: U(-5, 5) from zero ends near the spurious minimum; narrow, past the hill or positive at [1, 1]."""
    narrow = Inputs("uniform", 1.0)
    plans = [runs.Plan(inputs, seed, start, positive)
             for inputs, start, positive in ((FIVE, (0.0, 0.0), False), (narrow, (0.0, 0.0), False),
                                             (FIVE, (0.5, 0.5), False), (FIVE, (0.0, 0.0), True))
             for seed in (0, 1)]  # fmt: skip
    rows = runs.outcome(plans, steps=700, samples=6400)
    assert [row["success"] for row in rows] == [False] * 2 + [True] * 6
    assert sorted((rows[0]["w1"], rows[0]["w2"])) == pytest.approx([-0.40, 0.76], abs=0.15)
    assert rows == runs.outcome(plans, steps=700, samples=6400)


def test_the_noiseless_descent_ends_in_the_minimum_below_it():
    ends = runs.expected_end([(0.6, 0.6), (0.1, 0.4)], FIVE, 900)
    assert ends[0].tolist() == pytest.approx([1, 1], abs=1e-3)
    assert ends[1].tolist() == pytest.approx([-0.40001, 0.76079], abs=0.01)


def test_the_error_outside_is_that_of_samples():
    x = np.random.default_rng(0).uniform(-10, -5, (400_000, 2))
    W = np.array([[1.0, 1.0], [-0.4, 0.76]])
    value = np.abs(x[:, 0]) ** -0.4 * np.abs(x[:, 1]) ** 0.76 * np.cos(np.pi * 0.36)
    found = runs.outside_error(W)
    assert found[0] == pytest.approx(0, abs=1e-9)
    assert found[1] == pytest.approx(float(((value - x.prod(axis=1)) ** 2).mean()), rel=5e-3)


def counts(successes, n=100, family="uniform", positive=False):
    return [{"family": family, "scale": scale, "positive": positive, "n": n, "success": k, "success_share": k / n}
            for scale, k in successes.items()]  # fmt: skip


SCALES = [{"shape": "hill", "uniform": 1.75, "normal": 1.04}, {"shape": "slope", "uniform": 2.718, "normal": 1.9},
          {"shape": "pair", "uniform": 1.03, "normal": 0.71}]  # fmt: skip


@pytest.mark.parametrize(
    ("narrow", "wide", "words"),
    [(100, 0, "The width fails it"), (85, 0, "Not decided"), (100, 20, "Not decided"), (0, 0, "at every width")],
)
def test_the_verdict_on_width_flips(narrow, wide, words):
    summary = counts({1.0: narrow, 1.7: 50, 5.0: wide}) + counts({5.0: 100}, positive=True)
    finding = findings.width_or_crossing(summary, SCALES)
    assert words in finding.text and (finding.value, finding.control_value) == (narrow / 100, wide / 100)


@pytest.mark.parametrize(("past", "short", "words"), [(100, 0, "rescues"), (85, 0, "NOT"), (100, 15, "NOT")])
def test_the_verdict_on_rescue_flips(past, short, words):
    starts = [{"start_1": w, "n": 100, "success": k} for w, k in ((0.2, short), (0.4, 50), (0.6, past))]
    surfaces = [{"family": "uniform", "scale": 5.0, "diagonal_saddle": 0.4}]
    assert words in findings.rescue(starts, surfaces).text


@pytest.mark.parametrize(
    ("wrong", "alike", "words"),
    [(0, False, "nearness to [1, 1] does not"), (0, True, "does as well"), (30, True, "NOT")],
)
def test_the_verdict_on_the_map_flips(wrong, alike, words):
    """Starts on a line; success by distance, or by something that distance does not know."""
    mapped = []
    for place in range(200):
        w = place / 200
        success = w > 0.5 if alike else place % 2 == 0
        mapped.append({"start_1": w, "start_2": w, "success": success, "predicted": success != (place < wrong)})
    assert words in findings.map_finding(mapped).text


def test_half_is_interpolated():
    assert findings.crossing_of([1.0, 2.0, 3.0], [1.0, 0.75, 0.25]) == pytest.approx(2.5)
    assert findings.crossing_of([1.0, 2.0], [1.0, 0.9]) == 2.0
    near = findings.hill(counts({1.0: 100, 1.5: 80, 2.0: 20}) + counts({1.0: 9}, 10, "normal"), SCALES)
    far = findings.hill(counts({1.0: 100, 2.0: 80, 3.0: 20}) + counts({1.0: 9}, 10, "normal"), SCALES)
    assert "within 10%" in near.text and "NOT within" not in near.text and "NOT within" in far.text


@pytest.fixture(scope="module")
def short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "REPORTED_SEEDS", 3)
        patch.setattr(module, "UNIFORM", (1.0, 1.75, 5.0))
        patch.setattr(module, "NORMAL", (1.0,))
        patch.setattr(module, "POSITIVE", (5.0,))
        patch.setattr(module, "STARTS", (0.2, 0.6))
        small = functools.partial(runs.outcome, samples=1280)
        patch.setattr(runs, "outcome", lambda plans, steps: small(plans, steps=steps // 20))
        patch.setattr(runs, "expected_end", functools.partial(runs.expected_end, steps=50))
        yield module.hill_zero_crossing.function([], module.Options(seeds=2, starts=10))


def test_a_short_run_says_so_and_has_every_table_and_figure(short):
    assert short.findings[0].text.startswith("A short run") and len(short.findings) == 9
    assert set(short.tables) == {"summary", "scales", "surface", "starts", "outside", "map", "runs"}
    summary = short.tables["summary"].set_index(["family", "scale", "positive"])
    assert summary.loc[("uniform", 5.0, False), "n"] == 3 and summary.loc[("uniform", 1.0, False), "n"] == 2
    assert short.tables["scales"].set_index("shape").loc["slope", "uniform"] == pytest.approx(math.e, abs=1e-5)
    for figure in short.figures.values():
        assert figure.layout.title.text and figure.layout.title.subtitle.text and figure.layout.xaxis.title.text
    assert len(short.figures["surfaces"].data) == 12


def test_replacing_the_published_numbers_by_noise_changes_no_measured_number(short, monkeypatch):
    rows = short.tables["runs"].to_dict("records")
    measured = module.outside(rows)
    noise = copy.deepcopy(load("hill"))
    for row in noise["raw_4_3_summary"]:
        row["matched_mean"], row["matched_std"] = 1.25, 0.5
    before = module.beside_published(measured)
    monkeypatch.setattr(module, "load", lambda name: noise)
    after = module.beside_published(measured)
    assert {name for name in after if after[name] != before[name]} == {
        "published", "published_deviation", "published_normal"
    }  # fmt: skip
    assert "may NOT have ended" in findings.outside_finding(after).text
    assert "may NOT" not in findings.outside_finding(before).text


@pytest.mark.parametrize("wrong", [{"seeds": 1}, {"starts": 5}, {"seed": -1}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput, match="expected"):
        module.Options(**wrong)
