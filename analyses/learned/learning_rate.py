"""Analysis `learning-rate`: which rate the stated rule picks, from a sweep on disk.

The sweep, the criterion of stability and the rule are `workbench.sweeps`'s, written before it was run.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyses.published import load
from workbench import sweeps
from workbench.analysis import Finding, Result, analysis
from workbench.recipe import Recipe

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Options:
    """Nothing to choose: a threshold that could be moved afterwards would not be a rule."""


@analysis(
    question="Which learning rate is the highest at which both MLP kinds stay stable, and is it the published one?",
    options=Options,
    inputs="folder",
    within="sweeps/learning-rate",
)
def learning_rate(folder: Path, options: Options) -> Result:
    """Tables, curves and the picked rate of the learning-rate sweep in `folder`, finished and diverged runs alike.

    Raises BadInput when a run of the sweep is missing or unfinished.
    """
    courses = sweeps.read_sweep(folder, sweeps.learning_rate_sweep, "lr-sweep")
    picked = sweeps.picked_rate({point(course): course.stable for course in courses.values()})
    published = float(load("twelve")["recipe"]["lr"])
    runs = _runs(courses)
    return Result(
        tables={"runs": runs, "curves": _curves(courses)},
        figures={"curves": _curves_figure(courses), "rates": _rates_figure(runs, picked, published)},
        findings=findings(courses, picked, published),
    )


def point(course: sweeps.Course) -> tuple[float, str]:
    """(rate, MLP kind) of one run of the sweep."""
    return course.config.recipe.lr, course.config.architecture.mlp


def _runs(courses: dict[str, sweeps.Course]) -> "pd.DataFrame":
    """One row a run; losses in nats a digit, NaN where a run has no validation or nothing to compare it with."""
    import pandas as pd

    rows = []
    for name, course in courses.items():
        rise_at, rise = course.largest_rise or (0, math.nan)
        row: dict[str, Any] = {"run": name, "rate": course.config.recipe.lr, "mlp": course.config.architecture.mlp}
        row |= {"steps": course.config.recipe.steps, "seed": course.config.seed}
        row["lowest_loss"] = course.lowest if course.losses else math.nan
        row["last_loss"] = course.losses[-1] if course.losses else math.nan
        row |= {"largest_rise": rise, "largest_rise_step": rise_at, "stable": course.stable, "why": course.why}
        rows.append(row)
    return pd.DataFrame(rows)


def _curves(courses: dict[str, sweeps.Course]) -> "pd.DataFrame":
    """One row a validation: its loss, and the learning-rate sweep's stability ratio where it applies."""
    import pandas as pd

    rows = []
    for name, course in courses.items():
        rises = dict(course.rises)
        for step, loss in zip(course.steps, course.losses, strict=True):
            rate, mlp = point(course)
            rows.append({"run": name, "rate": rate, "mlp": mlp, "step": step, "validation_loss": loss})
            rows[-1]["rise"] = rises.get(step, math.nan)
    return pd.DataFrame(rows, columns=["run", "rate", "mlp", "step", "validation_loss", "rise"])


def findings(courses: dict[str, sweeps.Course], picked: float | None, published: float) -> list[Finding]:
    """The picked rate beside the published one, what decides it, where the loss is lowest, what n=1 cannot show."""
    any_course = next(iter(courses.values()))
    steps, seed = any_course.config.recipe.steps, any_course.config.seed
    if picked is None:
        answer = "The rule picks none of the six rates: at each, one MLP kind is unstable"
    else:
        answer = f"The rule picks {picked:g}, the highest of six rates at which both MLP kinds stay stable"
    verdict = "the same" if picked == published else "not the same"
    found = [
        Finding(
            f"{answer}; the published recipe trains at {published:g}, {verdict}.",
            value=picked or 0.0,
            n=len(courses),
            control="published rate",
            control_value=published,
        )
    ]
    for rate in [rate for rate in sweeps.RATES if rate in (published, picked, _next_rate(picked))]:
        at = [course for course in courses.values() if course.config.recipe.lr == rate]
        found += [_stability(rate, course) for course in at if course.losses]
    for mlp in ("relu", "bilinear"):
        best = min((c for c in courses.values() if c.config.architecture.mlp == mlp), key=lambda c: c.best)
        if not best.stopped:
            rate = best.config.recipe.lr
            text = (
                f"{mlp}: the lowest validation loss after {steps} steps, {best.best:.4g} nats a digit, is at {rate:g}"
            )
            found.append(Finding(f"{text}.", value=rate, n=1, control="published rate", control_value=published))
    short = "" if steps == sweeps.RATE_STEPS else f"A try-out: the rule was written for {sweeps.RATE_STEPS} steps. "
    limits = (
        f"{short}Each point is one seed ({seed}) and {steps:,} of the recipe's {Recipe().steps:,} steps: it shows "
        "which rates break early on that seed. It cannot show the spread between seeds, a break that comes later, or "
        "rates between the six, and a lowest loss here says little about the end of a full run."
    )
    return [*found, Finding(limits, value=1.0, n=1)]


def _next_rate(picked: float | None) -> float | None:
    """The sweep's rate just above the picked one, which the rule turned down."""
    return None if picked is None else next((rate for rate in sweeps.RATES if rate > picked), None)


def _stability(rate: float, course: sweeps.Course) -> Finding:
    """What makes one run stable or not."""
    state = "stable" if course.stable else "unstable"
    rise = course.largest_rise[1] if course.largest_rise else 0.0
    text = f"{course.config.architecture.mlp} at {rate:g} is {state}: {course.why}."
    return Finding(text, value=rise, n=1, control="largest rise the rule allows", control_value=sweeps.SPIKE)


def _colours() -> dict[float, str]:
    """A colour a rate, dark to light as the rate grows."""
    from plotly.colors import sample_colorscale

    places = [0.92 * i / (len(sweeps.RATES) - 1) for i in range(len(sweeps.RATES))]
    return dict(zip(sweeps.RATES, map(str, sample_colorscale("Plasma", places)), strict=True))


def _curves_figure(courses: dict[str, sweeps.Course]) -> "go.Figure":
    from workbench.figures import figure

    kinds, colours = ("relu", "bilinear"), _colours()
    whole = figure(
        "Validation loss in the learning-rate sweep",
        "two layers, one seed; dashed: unstable by the rule; the warm-up is shaded",
        width=1100,
        height=520,
    ).set_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=kinds, horizontal_spacing=0.05)
    for course in courses.values():
        rate, mlp = point(course)
        whole.add_scatter(
            x=course.steps,
            y=course.losses,
            mode="lines+markers",
            marker_size=5,
            line={"color": colours[rate], "dash": "solid" if course.stable else "dash", "width": 2},
            name=f"{rate:g}",
            legendgroup=f"{rate:g}",
            showlegend=mlp == kinds[0],
            row=1,
            col=1 + kinds.index(mlp),
        )
    warmup = next(iter(courses.values())).config.recipe.warmup_steps
    whole.add_vrect(x0=0, x1=warmup, fillcolor="#888888", opacity=0.12, line_width=0, layer="below")
    whole.update_yaxes(type="log", nticks=8)
    whole.update_xaxes(title_text="step")
    whole.update_yaxes(title_text="validation loss (nats a digit)", col=1)
    return whole.update_layout(legend_title_text="learning rate", margin={"t": 110})


def _rates_figure(runs: "pd.DataFrame", picked: float | None, published: float) -> "go.Figure":
    from workbench.figures import GREY, PALETTE, figure

    shown = figure(
        "Lowest validation loss by learning rate",
        "two layers, one seed a point; crosses: unstable by the rule",
        x="peak learning rate",
        y="lowest validation loss (nats a digit)",
        width=800,
        height=520,
    )
    for colour, (mlp, group) in zip(PALETTE, runs.groupby("mlp", sort=False), strict=False):
        shown.add_scatter(
            x=group["rate"],
            y=group["lowest_loss"],
            mode="lines+markers",
            name=str(mlp),
            line={"color": colour, "width": 1.5},
            marker={
                "size": 11,
                "line": {"width": 2, "color": colour},
                "symbol": ["circle" if stable else "x-thin-open" for stable in group["stable"]],
            },
        )
    for rate, words, dash in _marked(picked, published):
        shown.add_vline(rate, line={"color": GREY, "dash": dash, "width": 1.5}, layer="below")
        place = {"x": math.log10(rate), "y": 1, "yref": "paper", "xanchor": "center", "yanchor": "bottom"}
        shown.add_annotation(text=words, showarrow=False, font_color=GREY, **place)
    ends = [math.log10(sweeps.RATES[0] / 1.2), math.log10(sweeps.RATES[-1] * 1.2)]
    shown.update_xaxes(
        type="log", range=ends, tickvals=sweeps.RATES, ticktext=[f"{rate:g}" for rate in sweeps.RATES], showgrid=False
    )
    return shown.update_yaxes(type="log", nticks=8, title_standoff=14)


def _marked(picked: float | None, published: float) -> list[tuple[float, str, str]]:
    """(rate, words, line style) of the vertical lines."""
    if picked == published:
        return [(published, "picked and published", "solid")]
    return [(published, "published", "dot"), *([(picked, "picked", "solid")] if picked else [])]
