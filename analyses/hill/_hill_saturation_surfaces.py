"""Figures of surfaces: the hill, its vanishing gradient, and what each primitive answers over its two weights."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from analyses.hill._hill_saturation_thresholds import FORMATS, INALU, name
from workbench.hill.constraint import constrain, partials
from workbench.hill.operations import OPERATIONS, Primitive
from workbench.hill.primitives import compute

if TYPE_CHECKING:
    import plotly.graph_objects as go

# One pair of inputs a primitive: numbers whose sums, products and ratios, and angles whose functions, all differ.
EXAMPLES: dict[Primitive, tuple[float, float]] = {
    "additive": (3.0, 2.0),
    "exponential": (3.0, 2.0),
    "unit-circle": (1.0, 0.0),
    "trigonometric-products": (1.2, 0.5),
}
W_HAT, M_HAT = "W\u0302", "M\u0302"  # in figures
FLAT = "#C8C8C8"  # where a gradient is exactly 0


def plane(high: float, half: int) -> tuple[Float[Tensor, "row column"], Float[Tensor, "row column"]]:
    """The columns' and the rows' values of a square grid from -high to high, with `half` steps on either side of 0."""
    axis = torch.arange(-half, half + 1, dtype=torch.float64) * high / half
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    return x, y


def hill_figure() -> "go.Figure":
    """`W = tanh(W_hat) sigmoid(M_hat)` as a surface: three plateaus, at -1, 0 and 1 (report section 2)."""
    import plotly.graph_objects as go

    from workbench.figures import SEQUENTIAL, figure

    W_hat, M_hat = plane(8.0, 40)
    W = constrain(W_hat, M_hat)
    axis = {"gridcolor": "#D0D0D0", "backgroundcolor": "white", "showbackground": True}
    whole = figure(
        "Hill Space: the weight over its two raw parameters",
        f"W = tanh({W_HAT}) sigmoid({M_HAT}); the plateaus at -1, 0 and 1 are where its gradient vanishes",
        width=900,
        height=700,
    )
    whole.add_trace(
        go.Surface(
            x=W_hat[0].tolist(), y=M_hat[:, 0].tolist(), z=W.tolist(), colorscale=SEQUENTIAL, cmin=-1, cmax=1,
            contours={"z": {"show": True, "start": -0.9, "end": 0.9, "size": 0.2, "color": "#555555", "width": 1}},
            colorbar={"title": {"text": "W"}, "len": 0.6},
        )
    )  # fmt: skip
    return whole.update_layout(
        scene={
            "xaxis": {"title": {"text": f"{W_HAT} (raw)"}, **axis},
            "yaxis": {"title": {"text": f"{M_HAT} (raw)"}, **axis},
            "zaxis": {"title": {"text": "W"}, "range": [-1.05, 1.05], **axis},
            "camera": {"eye": {"x": -1.2, "y": -1.7, "z": 1.1}, "center": {"z": -0.15}},
            "aspectratio": {"x": 1.2, "y": 1.2, "z": 0.8},
        },
        margin={"t": 80, "b": 10, "l": 10},
    )


def gradient_norm(W_hat: Float[Tensor, "*shape"], M_hat: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Euclidean norm of the two partial derivatives, in the inputs' format."""
    return torch.hypot(*partials(W_hat, M_hat))


def gradient_figure() -> "go.Figure":
    """Where the gradient vanishes: over the plane in float64, and along its diagonal in each format."""
    import plotly.graph_objects as go

    from workbench.figures import GREY, PALETTE, SEQUENTIAL, figure

    W_hat, M_hat = plane(45.0, 90)
    norm = gradient_norm(W_hat, M_hat)
    whole = figure(
        "The gradient vanishes where the weight is exact",
        f"left: float64, grey where it is exactly 0; right: along {W_HAT} = {M_HAT}, lines end where it is exactly 0",
        width=1200,
        height=560,
    ).set_subplots(rows=1, cols=2, horizontal_spacing=0.2)
    shown = torch.where(norm > 0, norm.log10(), torch.nan)
    whole.add_trace(
        go.Heatmap(
            x=W_hat[0].tolist(), y=M_hat[:, 0].tolist(), z=_holes(shown), colorscale=SEQUENTIAL,
            zmin=-20, zmax=0, colorbar={"title": {"text": "log10 of the<br>gradient norm"}, "x": 0.405, "len": 0.95},
            hovertemplate="W_hat %{x}, M_hat %{y}: 10^%{z:.1f}<extra></extra>",
        ),
        row=1, col=1,
    )  # fmt: skip
    ends = []
    for colour, dtype in zip(PALETTE, FORMATS, strict=False):
        t = torch.linspace(0, 40, 1601, dtype=torch.float64).to(dtype)
        along = gradient_norm(t, t).double()
        alive = along > 0
        ends.append(float(t[alive].max()))
        whole.add_scatter(
            x=t[alive].double().tolist(), y=along[alive].tolist(), mode="lines", name=name(dtype),
            line={"color": colour, "width": 2}, row=1, col=2,
        )  # fmt: skip
        whole.add_scatter(
            x=[ends[-1]], y=[float(along[alive][-1])], mode="markers", showlegend=False,
            marker={"color": colour, "size": 9, "symbol": "x"}, row=1, col=2, hoverinfo="skip",
        )  # fmt: skip
    whole.add_vline(INALU, line={"color": GREY, "dash": "dot", "width": 1.5}, row=1, col=2)  # type: ignore[arg-type]
    whole.add_annotation(
        text="iNALU's 20", x=INALU, y=1, xref="x2", yref="y2 domain", xanchor="left", yanchor="top", showarrow=False,
        font_color=GREY, xshift=4,
    )  # fmt: skip
    whole.update_xaxes(title_text=W_HAT, col=1, showgrid=False, constrain="domain")
    whole.update_yaxes(title_text=M_HAT, col=1, showgrid=False, scaleanchor="x")
    whole.update_xaxes(title_text=f"{W_HAT} = {M_HAT} = t", col=2)
    whole.update_yaxes(
        title_text=f"norm of (dW/d{W_HAT}, dW/d{M_HAT})", type="log", exponentformat="power", dtick=2, col=2
    )
    whole.update_yaxes(title_standoff=18, col=2)
    flat = {"x0": 0, "x1": 1, "y0": 0, "y1": 1, "xref": "x domain", "yref": "y domain"}
    whole.add_shape(type="rect", fillcolor=FLAT, line_width=0, layer="below", **flat)
    return whole.update_layout(legend={"x": 0.99, "xanchor": "right", "y": 0.99}, plot_bgcolor="white")


def _holes(values: Float[Tensor, "row column"]) -> list[list[float | None]]:
    """Rows with None where there is no number."""
    return [[None if np.isnan(value) else value for value in row] for row in values.tolist()]


def primitives_figure() -> "go.Figure":
    """What each primitive answers for one pair of inputs over its two weights, with the named selections marked."""
    import plotly.graph_objects as go

    from workbench.figures import SEQUENTIAL, figure

    titles = [f"{primitive}, inputs {_inputs(primitive)}" for primitive in EXAMPLES]
    whole = figure(
        "What each primitive computes over its two weights",
        "the answer for one pair of inputs; dots: the selections, each an operation; sign-exact powers",
        width=1150,
        height=1050,
    ).set_subplots(rows=2, cols=2, subplot_titles=titles, horizontal_spacing=0.17, vertical_spacing=0.11)
    w1, w2 = plane(1.0, 40)
    W = torch.stack([w1, w2], dim=-1).flatten(0, 1)
    for place, (primitive, inputs) in enumerate(EXAMPLES.items()):
        row, column = divmod(place, 2)
        x = torch.tensor([inputs], dtype=torch.float64)
        answer = compute(primitive, x, W)[0].reshape(w1.shape)
        whole.add_trace(
            go.Contour(
                x=w1[0].tolist(), y=w2[:, 0].tolist(), z=answer.tolist(), colorscale=SEQUENTIAL, ncontours=20,
                line={"width": 0.5, "color": "#444444"},
                colorbar={"x": 0.415 + 0.585 * column, "y": 0.79 - 0.56 * row, "len": 0.42, "thickness": 14},
            ),
            row=row + 1, col=column + 1,
        )  # fmt: skip
        _mark_selections(whole, primitive, row + 1, column + 1)
    whole.update_xaxes(title_text="w<sub>1</sub>", range=[-1.12, 1.12], dtick=1, showgrid=False)
    whole.update_yaxes(title_text="w<sub>2</sub>", range=[-1.12, 1.12], dtick=1, showgrid=False)
    return whole.update_layout(margin={"t": 120})


def _inputs(primitive: Primitive) -> str:
    first, second = EXAMPLES[primitive]
    return f"{first:g}" if primitive == "unit-circle" else f"{first:g} and {second:g}"


def _mark_selections(whole: "go.Figure", primitive: Primitive, row: int, column: int) -> None:
    """The operations of a primitive as labelled dots at their selections."""
    rows = [one for one in OPERATIONS.values() if one.primitive == primitive]
    whole.add_scatter(
        x=[one.selection[0] for one in rows], y=[one.selection[1] for one in rows], mode="markers", showlegend=False,
        marker={"size": 11, "color": "white", "line": {"color": "black", "width": 2}}, text=[one.name for one in rows],
        hoverinfo="text", row=row, col=column,
    )  # fmt: skip
    for one in rows:
        w1, w2 = one.selection
        whole.add_annotation(
            x=w1, y=w2, text=one.name, showarrow=False, xanchor=("center", "right", "left")[w1], xshift=-8 * w1,
            yshift=-18 if w2 == 1 else 18, bgcolor="rgba(255,255,255,0.85)", row=row, col=column,
        )  # fmt: skip
