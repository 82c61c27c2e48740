"""The figures of analysis `hill-momentum`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analyses._rows import Row, grouped, where

if TYPE_CHECKING:
    import plotly.graph_objects as go


def _column(rows: Sequence[Row], name: str) -> list:
    return [row[name] for row in rows]


def grid_figure(grid: Sequence[Row]) -> "go.Figure":
    """Share of runs that end exact for every pair of betas, with epsilon and without."""
    from workbench.figures import SEQUENTIAL, VERMILLION, figure

    epsilons = sorted(set(_column(grid, "epsilon")), reverse=True)
    whole = figure(
        "Adam ends exact where beta2 < beta1\u00b2; without epsilon, wherever it has the time",
        f"share of {grid[0]['n']} runs (four operations) whose weights are the selection to the last bit; "
        "dashed: beta2 = beta1\u00b2",
        width=1150,
        height=580,
    ).set_subplots(
        rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.04,
        subplot_titles=[f"epsilon {epsilon:g}" for epsilon in epsilons],
    )  # fmt: skip
    beta1, beta2 = (sorted(set(_column(grid, name))) for name in ("beta1", "beta2"))
    rows = np.arange(len(beta1))
    edge = np.interp(np.square(beta1), [0.0, *beta2, 1.0], np.arange(-1, len(beta2) + 1))
    for column, epsilon in enumerate(epsilons, start=1):
        by = {(row["beta1"], row["beta2"]): row for row in where(grid, epsilon=epsilon)}
        whole.add_heatmap(
            z=[[by[one, two]["exact_share"] for two in beta2] for one in beta1], coloraxis="coloraxis", xgap=2, ygap=2,
            text=[[f"{by[one, two]['median_distance']:.0e}" for two in beta2] for one in beta1],
            hovertemplate="median distance %{text}<extra></extra>", row=1, col=column,
        )  # fmt: skip
        whole.add_scatter(
            x=edge, y=rows, mode="lines", showlegend=False, hoverinfo="skip", row=1, col=column,
            line={"color": VERMILLION, "width": 3, "dash": "dash"},
        )  # fmt: skip
    whole.update_xaxes(
        title_text="beta2", tickvals=list(range(len(beta2))), ticktext=[f"{beta:g}" for beta in beta2],
        range=[-1.5, len(beta2) - 0.5], showgrid=False, tickangle=-60,
    )  # fmt: skip
    whole.update_yaxes(tickvals=rows, ticktext=[f"{beta:g}" for beta in beta1], showgrid=False)
    whole.update_yaxes(title_text="beta1", col=1)
    bar = {"title": "share exact", "tickformat": ".0%"}
    return whole.update_layout(
        margin={"t": 110}, coloraxis={"cmin": 0, "cmax": 1, "colorscale": SEQUENTIAL, "colorbar": bar}
    )


def throws_figure(throws: Sequence[Row]) -> "go.Figure":
    """Measured growth a step against beta1 / sqrt(beta2)."""
    from workbench.figures import GREY, PALETTE, figure

    shown = figure(
        "Each step of a throw is longer than the last by beta1 / sqrt(beta2)",
        "mean factor a step while the raw weights are thrown; two operations",
        x="predicted factor, beta1 / sqrt(beta2)",
        y="measured factor",
        width=800,
        height=560,
    )
    ends = [1.0, max(_column(throws, "predicted")) * 1.02]
    shown.add_scatter(x=ends, y=ends, mode="lines", name="equal", line={"color": GREY, "dash": "dash"})
    for colour, ((beta1,), rows) in zip(PALETTE, grouped(throws, "beta1").items(), strict=False):
        shown.add_scatter(
            x=_column(rows, "predicted"), y=_column(rows, "measured"), mode="markers", name=f"beta1 {beta1:g}",
            marker={"color": colour, "size": 9}, text=[f"beta2 {row['beta2']:g}" for row in rows],
        )  # fmt: skip
    return shown


def rates_figure(rates: Sequence[Row]) -> "go.Figure":
    """Share exact against the learning rate in units of the critical one."""
    from workbench.figures import GREY, PALETTE, error_bars, figure

    shown = figure(
        "At beta2 = 0.5 the throw begins near the predicted critical learning rate",
        f"share of {rates[0]['n']} runs (four operations) whose weights end exact; 95% Wilson intervals",
        x="learning rate over the critical one (logarithmic)",
        y="share exact",
        width=900,
        height=520,
    )
    shown.add_vline(1, line={"color": GREY, "dash": "dash"})
    for place, (colour, ((beta1,), rows)) in enumerate(zip(PALETTE, grouped(rates, "beta1").items(), strict=False)):
        shown.add_scatter(
            x=[row["factor"] * 1.03 ** (place - 1) for row in rows], y=_column(rows, "exact_share"),
            mode="lines+markers", name=f"beta1 {beta1:g} (critical {rows[0]['critical_rate']:.4f})",
            line={"color": colour, "width": 1.5}, marker={"size": 8},
            error_y=error_bars(*(_column(rows, f"exact_{end}") for end in ("share", "low", "high"))),
        )  # fmt: skip
    ticks = [0.25, 0.5, 1, 2, 4]
    shown.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])
    return shown.update_yaxes(range=[-0.03, 1.03], tickformat=".0%")


def hazards_figure(hazards: Sequence[Row]) -> "go.Figure":
    """Share of runs that find the selection, by operation and setting."""
    from workbench.figures import SEQUENTIAL, figure

    settings = list(grouped(hazards, "rate", "beta1", "beta2"))
    by_name = grouped(hazards, "operation")
    shown = figure(
        "What is thrown can land elsewhere",
        "runs whose weights, snapped at 0.01, are the selection; all start from zero",
        width=900,
        height=640,
    )
    shown.add_heatmap(
        x=[f"rate {rate:g}<br>betas {b1:g}, {b2:g}" for rate, b1, b2 in settings], y=[name for (name,) in by_name],
        z=[_column(rows, "found_share") for rows in by_name.values()], zmin=0, zmax=1, colorscale=SEQUENTIAL, xgap=2,
        text=[[f"{row['found']} of {row['n']}" for row in rows] for rows in by_name.values()], texttemplate="%{text}",
        ygap=2, colorbar={"title": "share", "tickformat": ".0%"},
    )  # fmt: skip
    return shown.update_yaxes(autorange="reversed", showgrid=False).update_xaxes(showgrid=False)


def paths_figure(paths: Sequence[Row]) -> "go.Figure":
    """How far from the selection one unit is, step by step, under a few settings."""
    from workbench.figures import PALETTE, figure

    shown = figure(
        "Thrown, walking, stopped: one addition unit under five Adams",
        "largest distance of a weight from the selection [1, 1]; a line that drops out is exact",
        x="step (logarithmic)",
        y="distance from the selection (logarithmic)",
        width=1000,
        height=580,
    )
    for colour, ((label,), rows) in zip(PALETTE, grouped(paths, "setting").items(), strict=False):
        shown.add_scatter(
            x=_column(rows, "step"), y=[row["distance"] or None for row in rows], mode="lines", name=str(label),
            line={"color": colour, "width": 2},
        )  # fmt: skip
    shown.update_yaxes(type="log", exponentformat="power", dtick=2)
    shown.update_xaxes(type="log", dtick=1)
    return shown.update_layout(legend={"orientation": "h", "y": -0.16}, margin={"b": 110})
