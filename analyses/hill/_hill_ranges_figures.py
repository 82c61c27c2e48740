"""The figures of analysis `hill-ranges`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_ranges_training import OPERATIONS, OPTIMIZERS, PLACES, SIGNS, SIZES

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

TITLES = {"positive": "(0, c)", "negative": "(-c, 0)", "crossing": "(-c, c)"}


def gradients_figure(steep: "Sequence[dict[str, Any]]") -> "go.Figure":
    """The gradient's size against the range's, for each operation, sign and place on the way."""
    from workbench.figures import PALETTE, figure

    titles = [f"inputs on {TITLES[kind]}, {place:.0%} of the way" for place in PLACES for kind in SIGNS]
    whole = figure(
        "Gradients grow with the range of the inputs, but for quotients and angles",
        "root mean square over batches of 64 of the loss's gradient over W; the way: from W = 0 to the selection",
        width=1250,
        height=1050,
    ).set_subplots(rows=len(PLACES), cols=3, shared_xaxes=True, shared_yaxes=True, subplot_titles=titles,
                   horizontal_spacing=0.02, vertical_spacing=0.05)  # fmt: skip
    for row, place in enumerate(PLACES, start=1):
        for column, kind in enumerate(SIGNS, start=1):
            for colour, name in zip(PALETTE, OPERATIONS, strict=False):
                here = [o for o in steep if (o["operation"], o["signs"], o["place"]) == (name, kind, place)]
                whole.add_scatter(
                    x=[one["size"] for one in here], y=[one["gradient"] for one in here], mode="lines+markers",
                    name=name, legendgroup=name, showlegend=(row, column) == (1, 1), line={"color": colour, "width": 2},
                    row=row, col=column,
                )  # fmt: skip
    whole.update_xaxes(type="log", dtick=1, exponentformat="power")
    whole.update_yaxes(type="log", dtick=3, exponentformat="power")
    whole.update_xaxes(title_text="size c of the range", row=len(PLACES))
    whole.update_yaxes(title_text="gradient", col=1)
    return whole.update_layout(margin={"t": 110})


def lost_figure(cells: "pd.DataFrame") -> "go.Figure":
    """Share of units that are lost, by operation and range, a panel an optimizer and kind of signs."""
    from workbench.figures import SEQUENTIAL, figure

    rows = cells.to_dict("records")
    titles = [f"{setting}, {TITLES[kind]}" for setting in OPTIMIZERS for kind in SIGNS]
    whole = figure(
        "Units that training on a range loses",
        f"share of {rows[0]['n']} seeds whose weights end nearer to another selection than to the right one",
        width=1250,
        height=1250,
    ).set_subplots(rows=len(OPTIMIZERS), cols=3, shared_xaxes=True, shared_yaxes=True, subplot_titles=titles,
                   horizontal_spacing=0.02, vertical_spacing=0.04)  # fmt: skip
    for line, setting in enumerate(OPTIMIZERS, start=1):
        for column, kind in enumerate(SIGNS, start=1):
            here = {
                (r["operation"], r["size"]): r["lost"] for r in rows if (r["optimizer"], r["signs"]) == (setting, kind)
            }
            whole.add_heatmap(
                z=[[here[name, size] for size in SIZES] for name in OPERATIONS], x=[f"{size:g}" for size in SIZES],
                y=list(OPERATIONS), zmin=0, zmax=1, colorscale=SEQUENTIAL, xgap=1, ygap=1, texttemplate="%{z:.1f}",
                showscale=(line, column) == (1, 3), colorbar={"title": "lost", "len": 0.4, "y": 0.8},
                hovertemplate="%{y}, c = %{x}: %{z:.2f}", row=line, col=column,
            )  # fmt: skip
    whole.update_yaxes(autorange="reversed", showgrid=False)
    whole.update_xaxes(type="category", showgrid=False)
    whole.update_xaxes(title_text="size c of the range", row=len(OPTIMIZERS))
    return whole.update_layout(margin={"t": 110})
