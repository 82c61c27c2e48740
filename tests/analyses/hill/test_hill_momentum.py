import dataclasses
import itertools
import math

import pytest
import torch

from analyses.hill import _hill_momentum_findings as findings
from analyses.hill import _hill_momentum_runs as runs
from analyses.hill import hill_momentum as module
from analyses.hill._hill_momentum_theory import critical_rate, growth, quotient, steady_pace
from analyses.hill._plain_streams import plain_stream
from workbench.errors import BadInput


def torch_steps(gradients, beta1, beta2, rate=1.0):
    """The steps that torch's own Adam takes on these gradients, without epsilon."""
    p = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([p], lr=rate, betas=(beta1, beta2), eps=0.0)
    steps = []
    for gradient in gradients:
        before = p.item()
        p.grad = torch.tensor([gradient], dtype=torch.float64)
        adam.step()
        steps.append(before - p.item())
    return steps


def torch_walk(rate, beta1, beta2, steps, decay):
    """A raw value under torch's Adam with the gradient -exp(-decay x): what a plateau's is like."""
    p = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([p], lr=rate, betas=(beta1, beta2), eps=0.0)
    path = [0.0]
    for _ in range(steps):
        p.grad = -torch.exp(-decay * p.detach())
        adam.step()
        path.append(p.item())
        if path[-1] > 120:
            break
    return path


@pytest.mark.parametrize(
    ("beta1", "beta2", "r"), [(0.9, 0.5, 0.95), (0.0, 0.9, 0.96), (0.5, 0.2, 0.8), (0.9, 0.98, 0.996)]
)
def test_the_quotient_is_the_step_of_torchs_adam_on_a_geometric_gradient(beta1, beta2, r):
    steps = torch_steps([r**t for t in range(900)], beta1, beta2)
    assert steps[-1] == pytest.approx(quotient(r, beta1, beta2), rel=5e-3)


@pytest.mark.parametrize(("beta1", "beta2"), [(0.9, 0.5), (0.5, 0.2), (0.9, 0.9)])
def test_steps_of_torchs_adam_grow_by_beta1_over_the_root_of_beta2_once_the_gradient_is_gone(beta1, beta2):
    """After 200 gradients of 1 none: the averages only forget. With 0.9 and 0.9 the steps shrink instead."""
    steps = torch_steps([1.0] * 200 + [0.0] * 20, beta1, beta2)
    assert steps[-1] / steps[-2] == pytest.approx(growth(beta1, beta2), rel=1e-9)
    assert (growth(beta1, beta2) > 1) == (beta2 < beta1**2)


@pytest.mark.parametrize(("beta1", "beta2"), [(0.9, 0.5), (0.8, 0.5), (0.7, 0.1), (0.5, 0.1)])
@pytest.mark.parametrize("decay", [1.0, 2.0])
def test_the_critical_rate_parts_throws_from_walks(beta1, beta2, decay):
    """Torch's Adam on exp(-k x), up to x = 120: steps in units of the critical rate stay small or grow without end."""
    critical = critical_rate(beta1, beta2, decay)
    below, above = (torch_walk(factor * critical, beta1, beta2, 3000, decay) for factor in (0.8, 1.3))
    longest = [max(b - a for a, b in itertools.pairwise(path)) / critical for path in (below, above)]
    assert longest[0] < 10 and longest[1] > 100


@pytest.mark.parametrize("beta2", [0.82, 0.9, 0.999])
def test_there_is_no_critical_rate_unless_beta2_is_below_beta1_squared(beta2):
    assert critical_rate(0.9, beta2) == math.inf
    assert not math.isnan(steady_pace(1.0, 0.9, beta2))
    assert math.isnan(steady_pace(0.1, 0.9, 0.5))


@pytest.mark.parametrize(
    ("rate", "beta1", "beta2"), [(0.05, 0.0, 0.5), (0.1, 0.9, 0.99), (0.02, 0.9, 0.9), (0.01, 0.9, 0.5)]
)
def test_the_steady_pace_is_that_of_torchs_adam(rate, beta1, beta2):
    path = torch_walk(rate, beta1, beta2, 4000, 2.0)
    late = path[len(path) // 2 :]
    assert (late[-1] - late[0]) / (len(late) - 1) == pytest.approx(steady_pace(rate, beta1, beta2), rel=0.01)


def test_a_slow_second_average_sets_the_pace_whatever_the_rate():
    """-ln(0.999) / 4 = 0.00025013 of a raw unit a step, worked by hand from r = sqrt(beta2) and exp(-2 x)."""
    assert steady_pace(0.1, 0.9, 0.999) == pytest.approx(0.00025013, rel=1e-3)
    assert steady_pace(1.0, 0.9, 0.999) == pytest.approx(0.00025013, rel=1e-3)


def test_growth_is_read_between_one_and_a_twentieth_of_the_longest():
    lengths = torch.tensor([9.0, 0.1] + [1.5**t for t in range(40)] + [0.5, math.nan], dtype=torch.float64)
    assert runs.growth_of(lengths) == pytest.approx(1.5, rel=1e-12)
    assert math.isnan(runs.growth_of(torch.tensor([1.0, 2.0, 3.0, 2.0])))


def test_one_unit_of_each_kind_ends_where_the_finding_says():
    """1,000 steps: the report's Adam exact; no momentum stopped by epsilon; without epsilon exact; identity lost."""
    settings = [
        runs.Setting("add", 0, 0.1, 0.9, 0.5),
        runs.Setting("add", 0, 0.1, 0.0, 0.5),
        runs.Setting("add", 0, 0.1, 0.0, 0.5, runs.NO_EPSILON),
        runs.Setting("identity", 0, 0.1, 0.9, 0.5),
        runs.Setting("identity", 0, 0.1, 0.0, 0.5),
    ]
    rows = runs.outcomes(settings, 1)
    assert [row["exact"] for row in rows] == [True, False, True, False, False]
    assert [row["found"] for row in rows] == [True, True, True, False, True]
    assert [row["outrun"] for row in rows] == [True, False, False, True, False]
    assert rows[0]["raw"] > 1e4 > 100 > rows[1]["raw"]
    assert 1e-8 < rows[1]["distance"] < 1e-5 and rows[3]["distance"] == 1.0


def cases(exact):
    """Rows of the sweep for the fitted and scored operations, exact where the given rule says."""
    return [
        {"operation": name, "beta1": b1, "beta2": b2, "epsilon": runs.EPSILON, "throw": b2 < b1**2,
         "outrun": critical_rate(b1, b2) < 0.1, "exact": exact(b1, b2)}
        for name in runs.SELECTING_ONES
        for b1 in runs.BETA1
        for b2 in runs.BETA2
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("exact", "words", "threshold"),
    [
        (lambda b1, b2: b2 < b1**2, "a relation between both", None),
        (lambda b1, b2: b2 <= 0.6, "It is beta2 alone", ("beta2 alone", 0.6)),
        (lambda b1, b2: b1 >= 0.9, "It is beta1 alone", ("beta1 alone", 0.9)),
        (lambda b1, b2: False, "It is beta1 alone", ("beta1 alone", math.inf)),
    ],
)
def test_the_verdict_flips_with_the_rule_that_made_the_runs(exact, words, threshold):
    scores = findings.rule_scores(cases(exact))
    finding = findings.verdict(scores)
    assert words in finding.text and finding.n == len(runs.SCORED) * len(runs.BETA1) * len(runs.BETA2)
    if threshold:
        by = {row["rule"]: row for row in scores}
        assert (by[threshold[0]]["threshold"], by[threshold[0]]["right_share"]) == (threshold[1], 1.0)


def test_near_the_line_nothing_is_decided():
    def exact(b1, b2):
        return b2 < b1**2 if (10 * b1 + 100 * b2) % 2 < 1 else b2 <= 0.6

    assert findings.verdict(findings.rule_scores(cases(exact))).text.startswith("Not decided")


@pytest.mark.parametrize(("lost", "words"), [(5, "does not know where to stop"), (0, "finds the selection")])
def test_the_hazard_names_what_is_lost(lost, words):
    rows = [{"operation": name, "outrun": thrown, "found": not (thrown and name == "identity" and run < lost)}
            for name in ("add", "identity") for thrown in (True, False) for run in range(5)]  # fmt: skip
    finding = findings.hazard(rows)
    assert words in finding.text and finding.control_value == 1.0
    assert ("identity" in finding.text) == (lost > 0)


@pytest.fixture(scope="module")
def short():
    """The whole analysis, on few settings and short epochs: what it says is tested above, here that all is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BETA1", (0.0, 0.9, 0.99))
        patch.setattr(runs, "BETA2", (0.5, 0.95))
        patch.setattr(runs, "FACTORS", (0.25, 1.0, 4.0))
        patch.setattr(runs, "SLOW_BETA1", (0.9,))
        patch.setattr(runs, "ALL", ("add", "identity"))
        patch.setattr(runs, "PACES", ((0.3, 0.0, 0.5),))
        patch.setattr(runs, "plain_stream", lambda n, s, samples: plain_stream(n, s, samples=min(samples, 6400)))
        return module.hill_momentum.function([], module.Options(seeds=1, epochs=3))


def test_a_short_run_says_so_and_has_every_table_and_figure(short):
    assert short.findings[0].text.startswith("A short run") and len(short.findings) == 9
    assert len(short.tables["grid"]) == 12 and set(short.tables["grid"]["n"]) == {4}
    assert {"summary", "rates", "hazards", "throws", "paces", "runs"} < set(short.tables)
    for finding in short.findings[1:]:
        assert finding.n is not None and finding.low is not None and finding.control_value is not None
    for figure in short.figures.values():
        assert (
            figure.layout.title.text
            and figure.layout.title.subtitle.text
            and figure.layout.xaxis.title.text is not None
        )
    heat, edge = short.figures["grid"].data[:2]
    assert heat.z[1][0] == 1.0 and heat.z[1][1] == 0.0  # beta1 0.9 with beta2 0.5 and 0.95, with epsilon
    assert tuple(edge.x) == pytest.approx((-1, (0.81 - 0.5) / 0.45, 1 + (0.9801 - 0.95) / 0.05))  # of beta1^2


def test_the_same_seed_gives_the_same_result(short):
    settings = [runs.Setting("divide", 3, 0.1, 0.9, 0.5)]
    assert runs.outcomes(settings, 1) == runs.outcomes(settings, 1)


@pytest.mark.parametrize("wrong", [{"seeds": 0}, {"epochs": 2}, {"seed": -1}, {"seeds": 101}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput, match="expected"):
        module.Options(**wrong)


def test_the_long_form_is_the_one_flag():
    assert dataclasses.asdict(module.Options())["full"] is False
    assert (module.FULL_SEEDS, module.FULL_EPOCHS) == (5, 100)
