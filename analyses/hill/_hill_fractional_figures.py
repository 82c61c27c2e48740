"""The figures of analysis `hill-fractional`."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from analyses.hill._hill_fractional_training import NOISES, ROOTS, SELECTIONS, TARGETS
from analyses.hill._hill_optimizers_matrix import RATES

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

FLOOR = 1e-17  # stands for 0 on a logarithmic scale


def distances_figure(cells: "pd.DataFrame") -> "go.Figure":
    """How near units end, and how far training still moves them, by target and optimizer, without and with noise."""
    from workbench.figures import SEQUENTIAL, figure

    lines = (("away", "distance at the end"), ("jitter", "movement in the last epoch"))
    titles = [f"{words}, {'1% noise' if noise else 'exact answers'}" for _, words in lines for noise in NOISES]
    whole = figure(
        "How near weights come to a root, and how still they lie there",
        "medians over seeds, decimal logarithms in the cells; below the line: exponents out of reach, and selections",
        width=1330,
        height=980,
    ).set_subplots(rows=2, cols=2, shared_xaxes=True, shared_yaxes=True, subplot_titles=titles,
                   horizontal_spacing=0.03, vertical_spacing=0.07)  # fmt: skip
    targets, settings = list(TARGETS), list(RATES)
    for row, (key, _) in enumerate(lines, start=1):
        for column, noise in enumerate(NOISES, start=1):
            here = [row for row in cells.to_dict("records") if row["noise"] == noise]
            found = {(row["target"], row["optimizer"]): row[key] for row in here}
            z = [[_exponent(found[target, one]) for one in settings] for target in targets]
            whole.add_heatmap(
                z=z, x=settings, y=targets, zmin=-17, zmax=0, colorscale=SEQUENTIAL, xgap=1, ygap=1,
                texttemplate="%{z:.0f}", showscale=(row, column) == (1, 2), hovertemplate="%{y}, %{x}: 1e%{z:.1f}",
                colorbar={"title": "", "tickvals": [-16, -12, -8, -4, 0],
                          "ticktext": ["1e-16", "1e-12", "1e-8", "1e-4", "1"]},
                row=row, col=column,
            )  # fmt: skip
    whole.add_hline(len(ROOTS) - 0.5, line={"color": "white", "width": 4})  # type: ignore[arg-type]
    whole.update_xaxes(showgrid=False, tickangle=-35)
    whole.update_yaxes(autorange="reversed", showgrid=False)
    return whole.update_layout(margin={"t": 110})


def _exponent(value: float) -> float:
    return math.log10(min(max(value, FLOOR), 1e3))


def slopes(weights: Float[np.ndarray, " weight"]) -> tuple[Float[np.ndarray, " weight"], Float[np.ndarray, " weight"]]:
    """Smallest and largest slope of the constraint over all (W_hat, M_hat) that give each weight in (0, 1).

    With t = tanh(W_hat) from w to 1 and s = w / t the gate, the slope is the length of ((1 - t^2) s, t s (1 - s)), the
    constraint's gradient (report section 2.1).
    """
    t = weights[:, None] + (1 - weights[:, None]) * np.linspace(0, 1, 2001)
    s = weights[:, None] / t
    length = np.hypot((1 - t * t) * s, t * s * (1 - s))
    return length.min(axis=1), length.max(axis=1)


def slopes_figure(rows: "Sequence[dict[str, Any]]") -> "go.Figure":
    """The constraint's slope at every weight, and where trained units lie in it."""
    from workbench.figures import BLUE, GREY, VERMILLION, figure

    weights = np.linspace(1e-3, 1 - 1e-3, 400)
    low, high = slopes(weights)
    whole = figure(
        "How steep the constraint is at a weight",
        "grey: all raw parameters that give the weight; points: units trained on exact answers",
        x="size of the weight",
        y="length of the gradient of W over (W_hat, M_hat)",
        width=950,
        height=560,
    )
    whole.add_scatter(
        x=[*weights, *weights[::-1]], y=[*high, *low[::-1]], fill="toself", fillcolor=GREY, opacity=0.25, line_width=0,
        mode="lines", hoverinfo="skip", name="possible",
    )  # fmt: skip
    for words, targets, colour in (("roots", ROOTS, BLUE), ("selections", SELECTIONS, VERMILLION)):
        here = [row for row in rows if row["target"] in targets and not row["noise"] and not row["diverged"]]
        whole.add_scatter(
            x=[row["size"] for row in here], y=[row["slope"] for row in here], mode="markers", name=words,
            marker={"color": colour, "size": 6, "opacity": 0.7},
            text=[f"{row['target']} by {row['optimizer']}" for row in here], hovertemplate="%{text}: %{y:.3g}",
        )  # fmt: skip
    return whole.update_xaxes(range=[-0.03, 1.03]).update_yaxes(range=[-0.03, 1.03])
