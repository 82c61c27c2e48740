"""The figures of analysis `hill-zero-crossing`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from analyses._rows import Row, where
from analyses.hill import _hill_zero_crossing_surface as surface
from analyses.hill._hill_zero_crossing_runs import REPORTED

if TYPE_CHECKING:
    import plotly.graph_objects as go

CEILING = 1.3  # of the loss over that at zero: what is shown of hills


def surfaces_figure(scales: "Sequence[surface.Inputs]") -> "go.Figure":
    """Contours of the expected loss, over that at the zero start, with its minima."""
    from workbench.figures import SEQUENTIAL, VERMILLION, figure

    whole = figure(
        "The expected loss of a x b over both weights",
        "in units of the loss at the zero start (cross), at most 1.3; stars: the solution; diamonds: spurious minima",
        width=1250,
        height=520,
    ).set_subplots(
        rows=1, cols=len(scales), shared_yaxes=True, horizontal_spacing=0.03,
        subplot_titles=[f"inputs U(-{one.scale:g}, {one.scale:g})" for one in scales],
    )  # fmt: skip
    for column, inputs in enumerate(scales, start=1):
        axis, values = surface.surface(inputs, 121)
        begin = surface.derivatives(np.zeros(2), inputs)[0]
        whole.add_contour(
            x=axis, y=axis, z=np.minimum(values.T / begin, CEILING), coloraxis="coloraxis", ncontours=27,
            line_width=0.5, row=1, col=column,
        )  # fmt: skip
        found = surface.minima(inputs)
        for spurious, symbol, colour in ((False, "star", "white"), (True, "diamond", VERMILLION)):
            here = [one for one in found if one.spurious == spurious]
            whole.add_scatter(
                x=[one.w[0] for one in here], y=[one.w[1] for one in here], mode="markers", showlegend=False,
                marker={"symbol": symbol, "size": 14, "color": colour, "line": {"color": "black", "width": 1.5}},
                text=[f"loss {one.loss / begin:.4f}" for one in here], cliponaxis=False, row=1, col=column,
            )  # fmt: skip
        whole.add_scatter(
            x=[0], y=[0], mode="markers", showlegend=False, hovertext="the zero start",
            marker={"symbol": "x", "size": 11, "color": "white", "line": {"color": "black", "width": 1.5}},
            row=1, col=column,
        )  # fmt: skip
    whole.update_xaxes(title_text="first weight", range=[-0.49, 1.03], showgrid=False)
    whole.update_yaxes(range=[-0.49, 1.03], showgrid=False)
    whole.update_yaxes(title_text="second weight", col=1)
    bar = {"title": "loss over<br>that at zero"}
    return whole.update_layout(coloraxis={"colorscale": SEQUENTIAL, "cmin": 0, "colorbar": bar}, margin={"t": 115})


def _bars(rows: Sequence[Row]) -> dict:
    from workbench.figures import error_bars

    return error_bars(*([row[f"success_{end}"] for row in rows] for end in ("share", "low", "high")))


def success_figure(summary: Sequence[Row], scales: Sequence[Row]) -> "go.Figure":
    """Share of runs that succeed from zero by width, with the closed-form widths at which the surface changes."""
    from workbench.figures import BLUE, GREY, VERMILLION, figure

    shown = figure(
        "Multiplication trains across zero as long as the range is narrow",
        "from zero weights, RMSprop; 95% Wilson intervals; lines: where the expected loss changes shape",
        x="half width c of the inputs (logarithmic)",
        y="share of runs at [1, 1]",
        width=950,
        height=600,
    )
    for positive, colour, name in ((True, GREY, "U(0, c), the control"), (False, BLUE, "U(-c, c)")):
        rows = sorted(where(summary, family="uniform", positive=positive), key=lambda row: row["scale"])
        shown.add_scatter(
            x=[row["scale"] for row in rows], y=[row["success_share"] for row in rows], mode="lines+markers", name=name,
            line={"color": colour, "width": 1.5}, marker={"size": 8}, error_y=_bars(rows),
        )  # fmt: skip
    words = {"pair": "spurious minima", "hill": "hill on the diagonal", "slope": "slope at zero turns"}
    for place, (shape, what) in enumerate(words.items()):
        at = where(scales, shape=shape)[0]["uniform"]
        shown.add_vline(at, line={"color": VERMILLION, "dash": "dash" if shape == "hill" else "dot"})
        shown.add_annotation(
            x=float(np.log10(at)), y=1.02 + 0.05 * (2 - place), yref="paper", text=f"{what} {at:.3f}", showarrow=False,
            xanchor="left", font={"color": VERMILLION, "size": 12},
        )  # fmt: skip
    ticks = [0.5, 1, 1.5, 2, 3, 5, 10]
    shown.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])
    shown.update_yaxes(range=[-0.03, 1.03], tickformat=".0%")
    return shown.update_layout(margin={"t": 150}, legend={"x": 0.72, "y": 0.55})


def starts_figure(starts: Sequence[Row], saddle: float) -> "go.Figure":
    """Success on U(-5, 5) by starting weights, beside the loss along the diagonal and its saddle."""
    from workbench.figures import BLUE, GREY, VERMILLION, figure

    shown = figure(
        "On U(-5, 5) what starts past the hill arrives",
        "both weights start equal; 95% Wilson intervals; grey: the expected loss on the diagonal",
        x="both weights at the start",
        y="share of runs at [1, 1]",
        width=900,
        height=560,
    )
    w = torch.linspace(0, 1, 201, dtype=torch.float64)
    loss = surface.diagonal(w, REPORTED) / surface.derivatives(np.zeros(2), REPORTED)[0]
    shown.add_scatter(
        x=w.numpy(), y=loss.numpy(), mode="lines", line_color=GREY, name="expected loss (right)", yaxis="y2"
    )
    shown.add_scatter(
        x=[row["start_1"] for row in starts], y=[row["success_share"] for row in starts], mode="lines+markers",
        name="share at [1, 1]", marker={"size": 9}, line={"color": BLUE}, error_y=_bars(starts),
    )  # fmt: skip
    shown.add_vline(saddle, line={"color": VERMILLION, "dash": "dash"})
    shown.add_annotation(
        x=saddle, y=1.1, text=f"top of the hill {saddle:.4f}", showarrow=False, xanchor="left", xshift=5,
        font_color=VERMILLION,
    )  # fmt: skip
    shown.update_yaxes(range=[-0.03, 1.16], tickformat=".0%")
    second = {"title": "loss over that at zero", "overlaying": "y", "side": "right", "range": [-0.03, 1.16]}
    return shown.update_layout(yaxis2={**second, "showgrid": False}, margin={"r": 80}, legend={"x": 0.64, "y": 0.35})


def map_figure(mapped: Sequence[Row]) -> "go.Figure":
    """Random starts on the surface: where the training ended, and whether the expected loss says so."""
    from workbench.figures import BLUE, ORANGE, figure

    axis, values = surface.surface(REPORTED, 121)
    begin = surface.derivatives(np.zeros(2), REPORTED)[0]
    shown = figure(
        "Where runs on U(-5, 5) end, by their starting weights",
        "contours: expected loss over that at zero; crossed: the noiseless descent ends elsewhere",
        x="first weight at the start",
        y="second weight at the start",
        width=820,
        height=800,
    )
    shown.add_contour(
        x=axis, y=axis, z=np.minimum(values.T / begin, CEILING), colorscale="Greys", showscale=False, ncontours=27,
        contours_coloring="lines", line_width=1, hoverinfo="skip",
    )  # fmt: skip
    for success, colour, symbol, name in ((True, BLUE, "circle", "at [1, 1]"), (False, ORANGE, "square", "elsewhere")):
        for agrees in (True, False):
            rows = [row for row in where(mapped, success=success) if (row["predicted"] == success) == agrees]
            shown.add_scatter(
                x=[row["start_1"] for row in rows], y=[row["start_2"] for row in rows], mode="markers",
                name=f"ends {name}" + ("" if agrees else ", not predicted"),
                marker={"color": colour, "size": 9 if agrees else 12, "symbol": symbol if agrees else f"{symbol}-x",
                        "line": {"color": "black", "width": 0.5 if agrees else 1.5}},
            )  # fmt: skip
    shown.update_xaxes(showgrid=False).update_yaxes(showgrid=False)
    return shown.update_layout(legend={"orientation": "h", "y": -0.1})
