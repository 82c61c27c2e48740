"""The figures of `hill-initialisation`: the plateau lottery, and failures by operation and scale."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from analyses.hill._hill_initialisation_runs import PLAIN, SCALES
from analyses.hill._hill_initialisation_tables import REPORT, Row

if TYPE_CHECKING:
    import plotly.graph_objects as go

SHOWN = (0.1, 1.0, 3.0)  # scales of the lottery; the smaller ones look like 0.1
TICKS = (-1e6, -1e3, -30.0, -3.0, 0.0, 3.0, 30.0, 1e3, 1e6)
GRID = np.linspace(-1.0, 1.0, 161)


def squeezed(raw: Any) -> Float[np.ndarray, " value"]:
    """Raw parameters as the axes show them: linear near 0, logarithmic far from it."""
    return np.arcsinh(np.asarray(raw, dtype=float))


def plateau_figure(rows: Sequence[Row]) -> "go.Figure":
    """Where the two weights of every run of the report's protocol start (above) and end (below), by initial scale.

    The background is the weight `tanh(W_hat) sigmoid(M_hat)` that a place stands for.
    """
    from workbench.figures import BLUE, VERMILLION, figure

    titles = [f"{when}, initial scale {scale:g}" for when in ("start", "end") for scale in SHOWN]
    whole = figure(
        "The plateau lottery",
        "both weights of every run; the shade is the weight W: flat away from the axes, so what starts far out stays",
        width=1200,
        height=860,
    ).set_subplots(rows=2, cols=len(SHOWN), subplot_titles=titles, horizontal_spacing=0.05, vertical_spacing=0.11)
    ends = float(squeezed(TICKS[-1:])[0])
    _background(whole, ends * GRID)
    for line, when in enumerate(("start", "end"), start=1):
        for column, scale in enumerate(SHOWN, start=1):
            for learned, colour, symbol in ((True, BLUE, "circle"), (False, VERMILLION, "x")):
                group = [r for r in rows if r["protocol"] == REPORT and r["scale"] == scale and r["learned"] == learned]
                places = [[row[f"{when}_{name}{k}"] for row in group for k in (1, 2)] for name in ("W_hat", "M_hat")]
                inside = [np.clip(squeezed(values), -ends, ends) for values in places]
                whole.add_scatter(
                    x=inside[0], y=inside[1], mode="markers", name="learned" if learned else "failed",
                    legendgroup=str(learned), showlegend=(line, column) == (1, len(SHOWN)),
                    text=[f"{row['operation']}, weight {k}, seed {row['seed']}" for row in group for k in (1, 2)],
                    hovertemplate="%{text}",
                    marker={"color": colour, "symbol": symbol, "size": 6, "line": {"width": 0.5, "color": "white"}},
                    row=line, col=column,
                )  # fmt: skip
    ticks = {"tickvals": squeezed(TICKS), "ticktext": [f"{tick:g}" for tick in TICKS], "showgrid": False}
    whole.update_xaxes(range=[-1.03 * ends, 1.03 * ends], tickangle=0, **ticks)
    whole.update_yaxes(range=[-1.03 * ends, 1.03 * ends], **ticks)
    whole.update_xaxes(title_text="raw parameter W_hat", row=2)
    whole.update_yaxes(title_text="raw parameter M_hat", col=1)
    corner = {"orientation": "h", "x": 1, "xanchor": "right", "y": 0.985, "yref": "container", "yanchor": "top"}
    return whole.update_layout(margin={"t": 110}, legend=corner)


def _background(whole: "go.Figure", places: Float[np.ndarray, " place"]) -> None:
    """The hill surface in every panel."""
    from workbench.figures import DIVERGING

    raw = np.sinh(places)
    with np.errstate(over="ignore"):
        surface = np.tanh(raw)[None, :] / (1 + np.exp(-raw))[:, None]
    for line in (1, 2):
        for column in range(1, len(SHOWN) + 1):
            whole.add_heatmap(
                x=places, y=places, z=surface, colorscale=DIVERGING, zmid=0, opacity=0.35, hoverinfo="skip",
                showscale=(line, column) == (1, 1), colorbar={"title": {"text": "W"}, "tickvals": [-1, 0, 1]},
                row=line, col=column,
            )  # fmt: skip


def failures_figure(cells: Sequence[Row]) -> "go.Figure":
    """How many runs of each operation fail at each scale, bound together as in the report and each by itself."""
    from workbench.figures import SEQUENTIAL, figure

    protocols = [("report", "as in the report"), ("plain", "each operation by itself")]
    whole = figure(
        "Runs that fail, by operation and initial scale",
        "share of runs that end above an extrapolation error of 1e-6; the numbers are runs",
        width=1000,
        height=620,
    ).set_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=[t for _, t in protocols], horizontal_spacing=0.04)
    for column, (protocol, _) in enumerate(protocols, start=1):
        at = {(cell["operation"], cell["scale"]): cell for cell in cells if cell["protocol"] == protocol}
        lines = [[at.get((name, scale)) for scale in SCALES] for name in PLAIN]
        whole.add_heatmap(
            z=[[cell["failed"] / cell["n"] if cell else None for cell in line] for line in lines],
            text=[[f"{cell['failed']} of {cell['n']}" if cell else "" for cell in line] for line in lines],
            x=[f"{scale:g}" for scale in SCALES], y=list(PLAIN), zmin=0, zmax=1, colorscale=SEQUENTIAL, xgap=1, ygap=1,
            texttemplate="%{text}", showscale=column == 1, colorbar={"title": {"text": "share<br>failed"}},
            row=1, col=column,
        )  # fmt: skip
    whole.update_xaxes(
        title_text="standard deviation of the raw parameters at the start", type="category", showgrid=False
    )
    whole.update_yaxes(autorange="reversed", showgrid=False)
    return whole.update_layout(margin={"t": 110})
