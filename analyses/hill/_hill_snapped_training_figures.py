"""The figures of analysis `hill-snapped-training`."""

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analyses._rows import Row, where
from analyses.hill._hill_snapped_training_findings import EVALUATION, HARD, THROUGH, ratios
from analyses.hill._hill_snapped_training_runs import MODES, OPTIMIZERS, SCALES
from workbench.statistics import mean_interval

if TYPE_CHECKING:
    import plotly.graph_objects as go


def _bars(rows: Sequence[Row], name: str) -> dict[str, Any]:
    from workbench.figures import error_bars

    return error_bars(*([row[f"{name}_{end}"] for row in rows] for end in ("share", "low", "high")))


def right_figure(summary: Sequence[Row]) -> "go.Figure":
    """Share of runs that are right in time by initial scale, optimizer and way to snap."""
    from workbench.figures import GREY, ORANGE, SKY, figure

    whole = figure(
        "Hard masks lose runs from large starts",
        "share of runs whose snapped weights are right at the end, all operations; 95% Wilson intervals",
        width=1150,
        height=480,
    ).set_subplots(
        rows=1, cols=len(OPTIMIZERS), shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=list(OPTIMIZERS)
    )
    colours = {EVALUATION: GREY, HARD: ORANGE, THROUGH: SKY}
    for column, name in enumerate(OPTIMIZERS, start=1):
        for place, mode in enumerate(MODES):
            rows = where(summary, optimizer=name, mode=mode)
            whole.add_scatter(
                x=[SCALES.index(row["scale"]) + 0.12 * (place - 1) for row in rows], legendgroup=mode,
                y=[row["right_share"] for row in rows], mode="markers", name=mode, showlegend=column == 1,
                marker={"color": colours[mode], "size": 10, "symbol": ("circle", "x", "diamond")[place]},
                error_y=_bars(rows, "right"), row=1, col=column,
            )  # fmt: skip
    whole.update_xaxes(
        tickvals=list(range(len(SCALES))), ticktext=[f"{scale:g}" for scale in SCALES], title_text="initial scale",
        showgrid=False,
    )  # fmt: skip
    whole.update_yaxes(range=[-0.03, 1.03], tickformat=".0%")
    whole.update_yaxes(title_text="share of runs that are right", col=1)
    return whole.update_layout(margin={"t": 110}, legend={"orientation": "h", "y": -0.2})


def operations_figure(table: Sequence[Row]) -> "go.Figure":
    """Right runs by operation, trained with either form and without."""
    from workbench.figures import GREY, ORANGE, SKY, figure

    names = list(dict.fromkeys(row["operation"] for row in table))
    shown = figure(
        "What training with snapping wins and loses, by operation",
        "share of runs that are right, all optimizers and scales; 95% Wilson intervals; filled: pairs say it differs",
        x="share of runs whose snapped weights are right at the end",
        width=950,
        height=700,
    )
    for mode, colour, symbol, shift in ((HARD, ORANGE, "square", -0.18), (THROUGH, SKY, "diamond", 0.18)):
        rows = where(table, mode=mode)
        shown.add_scatter(
            x=[row["right_share"] for row in rows], y=[names.index(row["operation"]) + shift for row in rows],
            mode="markers", name=f"trained: {mode}", error_x=_bars(rows, "right"),
            text=[f"{row['right']} of {row['n']}; {row['effect']}" for row in rows],
            marker={"color": colour, "size": 9, "line_width": 2,
                    "symbol": [symbol + ("-open" if row["effect"].startswith("no") else "") for row in rows]},
        )  # fmt: skip
    rows = where(table, mode=HARD)
    shown.add_scatter(
        x=[row["evaluation_share"] for row in rows], y=[names.index(row["operation"]) for row in rows], mode="markers",
        name="snapped at evaluation only", marker={"color": GREY, "size": 10, "symbol": "line-ns", "line_width": 3,
                                                   "line_color": GREY},
    )  # fmt: skip
    shown.update_xaxes(range=[-0.03, 1.03], tickformat=".0%")
    shown.update_yaxes(tickvals=list(range(len(names))), ticktext=names, range=[len(names) - 0.5, -0.5], showgrid=False)
    return shown.update_layout(legend={"orientation": "h", "y": -0.12})


def speed_figure(rows: Sequence[Row]) -> "go.Figure":
    """Steps with snapping in training over those without, by optimizer: to right weights, and to a nil loss."""
    from workbench.figures import BLUE, GREY, VERMILLION, error_bars, figure

    near = where(rows, scale=SCALES[0])
    whole = figure(
        "Training with snapping is hardly faster to the right weights, only to a loss of 0",
        "steps over those with snapping at evaluation only, near-neutral starts; geometric means, 95% intervals",
        width=1150,
        height=440,
    ).set_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=[HARD, THROUGH])
    kinds = (("right_since", "until the snapped weights are right", BLUE, -0.12),
             ("converged_at", "until the loss of a batch is below 1e-14", VERMILLION, 0.12))  # fmt: skip
    for column, mode in enumerate((HARD, THROUGH), start=1):
        for what, words, colour, shift in kinds:
            found = [ratios(where(near, optimizer=name), mode, what) for name in OPTIMIZERS]
            places = [place for place, logs in enumerate(found) if len(logs) > 1]
            centre = [math.exp(statistics.fmean(found[place])) for place in places]
            ends = [[math.exp(end) for end in mean_interval(found[place])] for place in places]
            whole.add_scatter(
                x=centre, y=[place + shift for place in places], mode="markers", name=words, legendgroup=what,
                showlegend=column == 1, marker={"color": colour, "size": 10}, row=1, col=column,
                error_x=error_bars(centre, [low for low, _ in ends], [high for _, high in ends]),
                text=[f"{len(found[place])} pairs" for place in places],
            )  # fmt: skip
        whole.add_scatter(
            x=[1, 1], y=[-0.5, len(OPTIMIZERS) - 0.5], mode="lines", showlegend=False, hoverinfo="skip",
            line={"color": GREY, "dash": "dash"}, row=1, col=column,
        )  # fmt: skip
    ticks = [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2]
    whole.update_xaxes(
        type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks], title_text="ratio of steps (logarithmic)"
    )
    whole.update_yaxes(
        tickvals=list(range(len(OPTIMIZERS))), ticktext=list(OPTIMIZERS), range=[len(OPTIMIZERS) - 0.5, -0.5],
        showgrid=False,
    )  # fmt: skip
    return whole.update_layout(margin={"t": 110}, legend={"orientation": "h", "y": -0.25})
