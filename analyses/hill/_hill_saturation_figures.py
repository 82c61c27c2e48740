"""Figures of the snapping sweep of `hill-saturation`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analyses.hill._hill_saturation_snapping import FACTORS, OPERATIONS, OPTIMIZERS, WEIGHT, Snapped
from workbench.hill.constraint import SNAP
from workbench.statistics import wilson

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

FLOOR = 1e-17  # stands for a distance of exactly 0 on the logarithmic axis
WORDS = {FACTORS: "snapping tanh and sigmoid (report)", WEIGHT: "snapping the weight"}


def snapping_figure(rows: Sequence[Snapped], published: tuple[float, float]) -> "go.Figure":
    """Units that are exact, and roots that are touched, by threshold and rule; the published band shaded."""
    from workbench.figures import BLUE, GREY, VERMILLION, figure

    learned, roots = rows[0].learned, rows[0].roots
    whole = figure(
        "Which snapping thresholds work",
        f"{learned} learned units, {roots} roots; Wilson intervals; shaded: the report's range, dotted its default",
        x="snapping threshold",
        y="share of units",
        width=1050,
        height=560,
    )
    for rule, colour in ((FACTORS, BLUE), (WEIGHT, VERMILLION)):
        here = [row for row in rows if row.rule == rule and row.threshold > 0]
        x = [row.threshold for row in here]
        bounds = [wilson(row.exact, row.learned) for row in here]
        whole.add_scatter(
            x=[*x, *reversed(x)], y=[high for _, high in bounds] + [low for low, _ in reversed(bounds)], fill="toself",
            fillcolor=colour, opacity=0.15, line_width=0, mode="lines", hoverinfo="skip", showlegend=False,
        )  # fmt: skip
        for label, y, dash in (
            ("exact", [row.exact / row.learned for row in here], "solid"),
            ("roots touched", [row.touched / row.roots for row in here], "dash"),
        ):
            whole.add_scatter(
                x=x, y=y, mode="lines", line={"color": colour, "width": 2, "dash": dash},
                name=f"{label}, {WORDS[rule]}",
            )  # fmt: skip
    whole.add_vrect(x0=published[0], x1=published[1], fillcolor=GREY, opacity=0.15, line_width=0, layer="below")
    whole.add_vline(SNAP, line={"color": GREY, "dash": "dot", "width": 1.5})  # type: ignore[arg-type]
    whole.update_xaxes(type="log", exponentformat="power", dtick=1)
    whole.update_yaxes(range=[-0.03, 1.03])
    return whole.update_layout(legend={"x": 0.01, "y": 0.99, "yanchor": "top", "bgcolor": "rgba(255,255,255,0.8)"})


def parked_figure(parked: "pd.DataFrame") -> "go.Figure":
    """How far from its selection every unit's farther weight ended, by optimizer and operation."""
    from workbench.figures import GREY, PALETTE, figure

    optimizers = list(OPTIMIZERS)
    whole = figure(
        "Where optimizers park the weights",
        f"distance of the farther weight from its selection; at {FLOOR:g}: exactly there; dotted: the threshold 1e-2",
        y="distance from the selection",
        width=1150,
        height=580,
    )
    for place, (name, colour) in enumerate(zip(OPERATIONS, PALETTE, strict=True)):
        here = parked[parked["operation"] == name]
        shift = 0.08 * (place - (len(OPERATIONS) - 1) / 2)
        whole.add_scatter(
            x=[optimizers.index(label) + shift for label in here["optimizer"]],
            y=[max(value, FLOOR) for value in here["distance"]],
            mode="markers",
            name=name,
            marker={"color": colour, "size": 8, "line": {"color": "#444444", "width": 0.5}},
        )
    whole.add_hline(SNAP, line={"color": GREY, "dash": "dot", "width": 1.5})
    labels = [label.replace(", ", ",<br>").replace(" with ", "<br>with ") for label in optimizers]
    whole.update_xaxes(tickvals=list(range(len(optimizers))), ticktext=labels, showgrid=False)
    return whole.update_yaxes(type="log", exponentformat="power", dtick=2, title_standoff=16)
