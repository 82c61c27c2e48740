"""Grids of heat maps of shares from 0 to 1, all on one colour scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from analyses._rows import Row
from workbench.figures import SEQUENTIAL, figure


@dataclass(frozen=True, eq=False)
class Panel:
    """One heat map: NaN where there is nothing to show."""

    title: str
    shares: Float[np.ndarray, "row column"]
    rows: Sequence[str]
    columns: Sequence[str]


@dataclass(frozen=True)
class Sizes:
    """Pixels of a cell and of what stands around the maps."""

    across: int = 38
    down: int = 21
    left: int = 130
    top: int = 120
    gap_x: int = 34
    gap_y: int = 70
    bottom: int = 60


def matrix(
    rows: Sequence[Row], down: str, downs: Sequence[str], across: str, acrosses: Sequence[str]
) -> Float[np.ndarray, "row column"]:
    """The `share` of each row under its values of `down` and `across`; NaN where there is no row."""
    found = {(row[down], row[across]): row["share"] for row in rows}
    return np.array([[found.get((one, other), np.nan) for other in acrosses] for one in downs])


def cell(share: float) -> str:
    """A share in the fewest characters that tell it: `.97`, `0`, `1` (only for 0.995 and above), or nothing."""
    if np.isnan(share):
        return ""
    text = f"{share:.2f}"
    return {"0.00": "0", "-0.00": "0", "1.00": "1"}.get(text, text.replace("0.", ".", 1))


def share_maps(
    title: str, subtitle: str, panels: Sequence[Panel], columns: int, bar: str, sizes: Sizes | None = None
) -> go.Figure:
    """The panels, `columns` a row, of equal numbers of rows and columns each; `bar` names the colour scale."""
    size = sizes or Sizes()
    down = -(-len(panels) // columns)
    width = columns * len(panels[0].columns) * size.across + (columns - 1) * size.gap_x
    height = down * len(panels[0].rows) * size.down + (down - 1) * size.gap_y
    grid = make_subplots(
        rows=down,
        cols=columns,
        shared_yaxes=True,
        subplot_titles=[panel.title for panel in panels],
        horizontal_spacing=size.gap_x / width if columns > 1 else 0,
        vertical_spacing=size.gap_y / height if down > 1 else 0,
    )
    for number, panel in enumerate(panels):
        grid.add_trace(_map(panel), row=number // columns + 1, col=number % columns + 1)
    legend = {"title": {"text": bar, "side": "right", "font": {"size": 13}}, "thickness": 14}
    scale = {"colorscale": SEQUENTIAL, "cmin": 0, "cmax": 1, "colorbar": legend}
    look = figure(
        title,
        subtitle,
        coloraxis=scale,
        width=width + size.left + 130,
        height=height + size.top + size.bottom,
    )
    grid.update_layout(look.layout)
    grid.update_layout(margin={"l": size.left, "r": 130, "t": size.top, "b": size.bottom})
    grid.update_annotations(font_size=13)
    rows, across = len(panels[0].rows), len(panels[0].columns)  # said, since a map without numbers at its edge shrinks
    grid.update_xaxes(range=[-0.5, across - 0.5])
    grid.update_yaxes(range=[rows - 0.5, -0.5])
    grid.update_xaxes(showticklabels=True, tickangle=0, showgrid=False, ticks="", tickfont_size=11)
    return grid.update_yaxes(showgrid=False, ticks="", tickfont_size=12)


def _map(panel: Panel) -> go.Heatmap:
    return go.Heatmap(
        z=panel.shares,
        x=list(panel.columns),
        y=list(panel.rows),
        text=[[cell(share) for share in line] for line in panel.shares],
        texttemplate="%{text}",
        textfont={"size": 11},
        xgap=1,
        ygap=1,
        coloraxis="coloraxis",
        hovertemplate="%{y}, %{x}: %{z:.3f}<extra></extra>",
    )
