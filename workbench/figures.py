"""One look for every figure: palette, template, position labels. Nothing is registered with plotly globally."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from workbench.task import N_CTX, POSITION_LABELS

# Okabe & Ito, "Color Universal Design" (2008): told apart with any common colour blindness. Yellow last: weak on white.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, YELLOW = "#E69F00", "#56B4E9", "#000000", "#F0E442"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW)
GREY = "#7F7F7F"  # controls and reference lines
SEQUENTIAL = "Cividis"  # 0 to 1 or any one-sided scale; even in lightness (Nunez, Anderton & Renslow 2018)
DIVERGING = "RdBu"  # signed values about zero; set `zmid=0`

_AXIS = {"automargin": True, "gridcolor": "#E3E3E3", "linecolor": "#444444", "ticks": "outside", "zeroline": False}
TEMPLATE = go.layout.Template(
    layout={
        "colorway": PALETTE,
        "font": {"family": "Open Sans, Arial, Helvetica, sans-serif", "size": 13, "color": "#222222"},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "title": {
            **{"x": 0, "xref": "container", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"},
            **{"pad": {"l": 16, "t": 16}, "font": {"size": 18}},
        },
        "margin": {"l": 70, "r": 30, "t": 90, "b": 70},
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "colorscale": {"sequential": SEQUENTIAL, "diverging": DIVERGING},
    }
)


def figure(title: str, subtitle: str = "", *, x: str = "", y: str = "", **layout: Any) -> go.Figure:
    """An empty figure in the house look: title, a line below it saying what is shown, axis titles with units.

    `layout` goes to plotly's `update_layout` (for example `width`, `height`, `barmode`).
    """
    empty = go.Figure(layout={"template": TEMPLATE})
    empty.update_layout(title={"text": title, "subtitle": {"text": subtitle, "font": {"size": 13, "color": "#555555"}}})
    empty.update_layout(xaxis_title=x, yaxis_title=y)
    return empty.update_layout(**layout)


def position_labels(positions: Sequence[int] = range(N_CTX)) -> list[str]:
    """Label of each position: the token that stands there, `a3 a2 a1 a0 op b3 b2 b1 b0 = s d4 d3 d2 d1 d0`.

    A model at position p predicts the token at p + 1: the answer digits d4..d0 are predicted at `s d4 d3 d2 d1`.
    """
    return [POSITION_LABELS[position] for position in positions]


def error_bars(value: ArrayLike, low: ArrayLike, high: ArrayLike) -> dict[str, Any]:
    """Plotly's `error_y` (or `error_x`) for an interval that need not be symmetric about the value."""
    value, low, high = (np.asarray(v, dtype=float) for v in (value, low, high))
    return {"type": "data", "symmetric": False, "array": high - value, "arrayminus": value - low, "thickness": 1.2}
