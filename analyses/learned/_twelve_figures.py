"""The figures of analysis `twelve`."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from workbench.structure import CLASSES

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

FLOOR = 1e-4  # share wrong that stands for none wrong on the logarithmic axis; a split has about 5,000 an operator
TICKS = (0.0, 0.5, 0.9, 0.99, 0.999)


def _wrong(accuracies: Any) -> Float[np.ndarray, " model"]:
    """Shares wrong as the axis shows them."""
    return np.maximum(1 - np.asarray(accuracies, dtype=float), FLOOR)


def sequence_figure(scores: "pd.DataFrame") -> "go.Figure":
    """Sequence accuracy on validation by model and operator, with 95% intervals, beside the published values.

    The axis is logarithmic in the share wrong, so that 0.07 and 0.998 can both be read; its right end is no error.
    """
    from workbench.figures import BLUE, VERMILLION, error_bars, figure

    rows = scores[scores["split"] == "validation"]
    models = list(dict.fromkeys(rows["model"]))
    operators = ("addition", "subtraction")
    whole = figure(
        "Sequence accuracy on validation problems",
        "five digits right, sign given; 95% Wilson intervals; axis logarithmic in the share wrong",
        width=1100,
        height=160 + 34 * len(models),
    ).set_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=operators, horizontal_spacing=0.04)
    for column, operator in enumerate(operators, start=1):
        here = rows[rows["operator"] == operator]
        place = [models.index(model) for model in here["model"]]
        wrong = _wrong(here["seq_acc"])
        bars = error_bars(wrong, _wrong(here["seq_high"]), _wrong(here["seq_low"]))
        whole.add_scatter(
            x=wrong, y=[p - 0.15 for p in place], error_x=bars, mode="markers", name="measured", legendgroup="measured",
            marker={"color": BLUE, "size": 8}, text=[f"{v:.4f}" for v in here["seq_acc"]],
            hovertemplate="%{text}", showlegend=column == 1, row=1, col=column,
        )  # fmt: skip
        whole.add_scatter(
            x=_wrong(here["published_seq_acc"]), y=[p + 0.15 for p in place], mode="markers",
            name="published", legendgroup="published", text=[f"{v:.4f}" for v in here["published_seq_acc"]],
            marker={"color": VERMILLION, "size": 8, "symbol": "diamond-open", "line_width": 2},
            hovertemplate="%{text}", showlegend=column == 1, row=1, col=column,
        )  # fmt: skip
    ticks = [*[1 - accuracy for accuracy in TICKS], FLOOR]
    whole.update_xaxes(
        type="log", range=[0.06, -4.15], tickvals=ticks, ticktext=[*[f"{a:g}" for a in TICKS], "1"],
        title_text="sequence accuracy",
    )  # fmt: skip
    labels = [model.removeprefix("arithmetic-") for model in models]
    whole.update_yaxes(range=[len(models) - 0.4, -0.6], tickvals=list(range(len(models))), ticktext=labels)
    corner = {"orientation": "h", "x": 1, "xanchor": "right", "y": 0.97, "yref": "container", "yanchor": "top"}
    return whole.update_layout(margin={"t": 120}, legend=corner)


def classes_figure(categories: "pd.DataFrame") -> "go.Figure":
    """Sequence accuracy of every model by peer class, over all held-out problems together."""
    import plotly.graph_objects as go

    from workbench.figures import SEQUENTIAL, figure

    rows = categories[categories["grouping"] == "class"]
    models = list(dict.fromkeys(rows["model"]))
    counts = dict(zip(rows["category"], rows["n"], strict=True))
    classes = [name for name in CLASSES if name in counts]
    table = rows.pivot(index="model", columns="category", values="seq_acc").loc[models, classes]
    whole = figure(
        "Sequence accuracy by class of problem",
        "S addition, M subtraction with answer of at least 0, N negative answer; the number is the longest chain",
        width=1100,
        height=200 + 30 * len(models),
    )
    whole.add_trace(
        go.Heatmap(
            z=table.to_numpy().tolist(),
            x=[f"{name}<br>n={counts[name]:,}" for name in classes],
            y=[model.removeprefix("arithmetic-") for model in models],
            zmin=0,
            zmax=1,
            colorscale=SEQUENTIAL,
            texttemplate="%{z:.3f}",
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": "accuracy"}},
        )
    )
    whole.update_yaxes(autorange="reversed", showgrid=False)
    return whole.update_xaxes(showgrid=False, side="bottom")
