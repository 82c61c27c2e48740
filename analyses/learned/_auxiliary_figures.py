"""Figures of `auxiliary`: each head against none with the sweep, training, what is linearly there."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from analyses._rows import Row, grouped, where
from analyses.learned._auxiliary_findings import OPERATORS
from analyses.learned._auxiliary_runs import NONE, Condition, Grid
from analyses.learned._auxiliary_tables import known, mean_of
from analyses.learned._conditions import shape_of
from workbench.auxiliary_grid import HEADS
from workbench.checkpoint import Checkpoint
from workbench.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, error_bars, figure

COLOURS = (BLUE, SKY, VERMILLION, ORANGE, GREEN, PURPLE)  # of shapes, in their order
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
HEAD_COLOURS = {NONE.head: BLACK, **dict(zip(HEADS, (BLUE, VERMILLION, GREEN), strict=True))}
DASHES = {"": "solid", "frozen": "solid", "trainable": "dash", "linear": "dot", "random": "dashdot"}
WORDS = {"constant": "constant", "decay": "decaying"}
SPREAD = 0.6  # of a category, over which its points stand


def figures(grid: Grid, runs: Sequence[Row], readouts: Sequence[Row]) -> dict[str, go.Figure]:
    """`effect`, `training` and `readouts`, each where there is something to show."""
    found = {}
    if any(row["head"] != NONE.head and not math.isnan(row["log_ratio"]) for row in runs):
        found["effect"] = _effect(runs)
    found["training"] = _training(grid)
    if readouts:
        found["readouts"] = _readouts(readouts)
    return found


def _labels(rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """Each condition's name on an axis, on two lines."""
    return {(head, form): "<br>".join(filter(None, (head, form))) for head, form in grouped(rows, "head", "form")}


def _points(
    whole: go.Figure, rows: Sequence[Row], value: str, labels: Mapping[tuple[str, str], str], *, legend: bool, **at: Any
) -> None:
    """A point a decoder, by condition, coloured by shape, ordered by shape and seed; a mean with its interval."""
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    places = list(labels)
    decoders = sorted({(shapes.index(row["shape"]), row["seed"]) for row in rows})
    for number, shape in enumerate(shapes):
        of = where(rows, shape=shape)
        x = [
            places.index((row["head"], row["form"]))
            + SPREAD * ((decoders.index((number, row["seed"])) + 0.5) / len(decoders) - 0.5)
            for row in of
        ]
        whole.add_scatter(
            x=x, y=[row[value] for row in of], mode="markers", name=shape, legendgroup=shape, showlegend=legend,
            marker={"color": COLOURS[number % 6], "symbol": SYMBOLS[number % 6], "size": 8, "opacity": 0.85},
            text=[row["run"] for row in of], hovertemplate="%{text}: %{y:.4f}<extra></extra>", **at,
        )  # fmt: skip
    means = [mean_of(known(where(rows, head=head, form=form), value)) for head, form in places]
    mean, low, high = zip(*means, strict=True)
    whole.add_scatter(
        x=[place + SPREAD / 2 + 0.08 for place in range(len(places))], y=mean, mode="markers",
        error_y={**error_bars(mean, low, high), "width": 5, "thickness": 2},
        name="mean, 95% t-interval", legendgroup="mean", showlegend=legend,
        marker={"color": BLACK, "symbol": "line-ew-open", "size": 13, "line_width": 3},
        hovertemplate="mean %{y:.4f}<extra></extra>", **at,
    )  # fmt: skip
    whole.update_xaxes(
        tickvals=list(range(len(places))), ticktext=list(labels.values()), range=[-0.5, len(places) - 0.4],
        showgrid=False, **at,
    )  # fmt: skip


def _effect(runs: Sequence[Row]) -> go.Figure:
    """Log ratios against none by condition; beside them the sweep's, by weight."""
    rows = [row for row in runs if row["head"] != NONE.head and not math.isnan(row["log_ratio"])]
    grown, swept = where(rows, sweep=False), where(rows, sweep=True)
    titles = [f"the grid, weight {grown[0]['weight']:g}" if grown else "the grid"]
    if swept:
        titles.append(f"{swept[0]['head']} {swept[0]['form']},<br>{swept[0]['shape']}, seed {swept[0]['seed']}")
    whole = figure(
        "Does an exact auxiliary head help a decoder to learn?",
        "test cross-entropy with the head over that of the same decoder without it, natural logarithm; below 0 the "
        "head helps<br>a point is a decoder; controls: linear (same target, no unit), random (frozen, equal norm)",
        width=1400,
        height=680,
    ).set_subplots(
        rows=1, cols=len(titles), column_widths=[0.72, 0.28][: len(titles)], horizontal_spacing=0.1,
        subplot_titles=titles,
    )  # fmt: skip
    if grown:
        _points(whole, grown, "log_ratio", _labels(grown), legend=True, row=1, col=1)
    if swept:
        _sweep(whole, grown, swept)
        whole.update_xaxes(type="log", title_text="weight of the head's loss", dtick=1, exponentformat="power", col=2)
        whole.update_yaxes(title_text="ln(loss with / without)", col=2)
    whole.update_yaxes(title_text="ln(loss with / loss without)", col=1)
    whole.add_hline(0, line={"color": GREY, "width": 2}, layer="below")
    legend = {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", "x": 0}
    return whole.update_layout(margin={"t": 140, "b": 130}, legend=legend)


def _sweep(whole: go.Figure, grown: Sequence[Row], swept: Sequence[Row]) -> None:
    """A line a schedule, the other sites as points; the grid's own run belongs to the constant line."""
    key = ("head", "form", "shape", "seed")
    own = [row for row in grown if all(row[name] == swept[0][name] for name in key)]
    usual = own[0]["site"] if own else swept[0]["site"]
    for (site, schedule), of in grouped([*own, *swept], "site", "schedule").items():
        of = sorted(of, key=lambda row: row["weight"])
        name = f"sweep: {WORDS[schedule]} weight" if site == usual else f"sweep: at {site.rpartition('hook_')[2]}"
        whole.add_scatter(
            x=[row["weight"] for row in of], y=[row["log_ratio"] for row in of], mode="lines+markers", name=name,
            line={"color": {"constant": PURPLE, "decay": GREEN}[schedule] if site == usual else BLACK},
            marker={"size": 9, "symbol": "circle" if site == usual else "star"},
            hovertemplate="weight %{x:g}: %{y:.4f}<extra></extra>", row=1, col=2,
        )  # fmt: skip


def _mean_course(runs: Sequence[Checkpoint], of: Any) -> tuple[list[int], list[float]]:
    """Steps, and the geometric mean over seeds of a number of each validation; steps that not all have are left out."""
    courses = [{row["step"]: of(row) for row in one.history["validations"]} for one in runs]
    steps = [step for step in courses[0] if all(course.get(step) for course in courses)]
    return steps, [statistics.geometric_mean(course[step] for course in courses) for step in steps]


def _share(row: Row) -> float | None:
    """How long the second term's gradient is in the decoder's weights, over the cross-entropy's."""
    head, own = (row.get(f"grad_norm_{name}", 0) for name in ("head", "cross_entropy"))
    return head / own if own else None


def _training(grid: Grid) -> go.Figure:
    """Validation loss and the ratio of the terms' gradient norms over training, a column a shape."""
    shapes = list(dict.fromkeys(shape_of(one) for runs in grid.conditions.values() for one in runs.values()))
    whole = figure(
        "Training with and without a head",
        "geometric mean of the seeds; solid: none and frozen units, dashed: trainable, dotted: linear, dash-dot: "
        "random<br>lower row: length of the gradient of the head's weighted loss in the decoder's weights, over that "
        "of the cross-entropy",
        width=1500,
        height=820,
    ).set_subplots(
        rows=2, cols=len(shapes), shared_yaxes=True, shared_xaxes=True, subplot_titles=shapes,
        horizontal_spacing=0.02, vertical_spacing=0.06,
    )  # fmt: skip
    shown: set[Condition] = set()
    for condition, runs in grid.conditions.items():
        for column, shape in enumerate(shapes, start=1):
            of = [one for one in runs.values() if shape_of(one) == shape]
            for number, value in enumerate((lambda row: row["loss"], _share), start=1):
                steps, values = _mean_course(of, value) if of else ([], [])
                if not steps or (number == 2 and condition == NONE):
                    continue
                line = {"color": HEAD_COLOURS[condition.head], "dash": DASHES[condition.form]}
                whole.add_scatter(
                    x=steps, y=values, mode="lines", name=str(condition), legendgroup=str(condition),
                    showlegend=condition not in shown, hovertemplate="%{y:.4g}", row=number, col=column,
                    line={**line, "width": 3 if condition == NONE else 1.7},
                )  # fmt: skip
                shown.add(condition)
    whole.update_yaxes(type="log", exponentformat="power", dtick=1)
    whole.update_yaxes(title_text="validation loss<br>(nats a digit)", row=1, col=1)
    whole.update_yaxes(title_text="gradient of the head<br>over cross-entropy's", row=2, col=1)
    whole.update_xaxes(title_text="step", row=2)
    return whole.update_layout(margin={"t": 140})


def _readouts(readouts: Sequence[Row]) -> go.Figure:
    """R2 of linear readouts of each quantity by condition, a row an operator, a column a quantity."""
    labels = _labels(readouts)
    targets = {"additive": "the signed result", "digitwise": "angles of the digits", "carry": "carries and borrows"}
    operators = [name for name in OPERATORS if where(readouts, operator=name)]
    whole = figure(
        "How much of each quantity is linearly there, with and without heads",
        "held-out variance explained by a linear readout of the stream where the grid's heads read, before the last "
        "MLP (all places and outputs together)<br>a point is a decoder; the head of the same name aims at the "
        "quantity, the others are its control; the findings compare decoder by decoder",
        width=1800,
        height=960,
    ).set_subplots(
        rows=len(operators), cols=len(targets), shared_xaxes=True, horizontal_spacing=0.05, vertical_spacing=0.08,
        subplot_titles=[f"{words} ({head}), {name}" for name in operators for head, words in targets.items()],
    )  # fmt: skip
    for i, operator in enumerate(operators, start=1):
        for j, target in enumerate(targets, start=1):
            rows = where(readouts, operator=operator, target=target)
            if rows:
                _points(whole, rows, "r2", labels, legend=i == j == 1, row=i, col=j)
    whole.update_xaxes(tickangle=-90, tickfont_size=11)
    whole.update_yaxes(title_text="R2", col=1)
    legend = {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", "x": 0}
    return whole.update_layout(margin={"t": 140, "b": 150}, legend=legend)
