"""Figures of `attention` about pairs of digits: does their order matter, and which of them wins."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.learned._conditions import GROUPS, PREDICTED
from analyses.learned._exact_probe_fit import where
from workbench.figures import DIVERGING, SEQUENTIAL, figure

ANSWERS: list[str] = list(PREDICTED[1:])
MOST = 0.6  # of the colour scale; 0.5 is both digits side by side
CELL, LINE, LEFT, TOP, BOTTOM, RIGHT = 52, 20, 190, 140, 50, 120


def _label(name: str, layer: int) -> str:
    return f"{name.removeprefix('arithmetic-')}  L{layer}"


def order_figure(order: pd.DataFrame, units: pd.DataFrame) -> go.Figure:
    """Model and layer down; by group, what changes at each answer digit when the place's digits swap; units right."""
    rows = where(order, model="trained", head="all")
    groups = [group for group in GROUPS if group in set(rows["group"])]
    named = [(name, layer) for name, layer in rows[["checkpoint", "layer"]].drop_duplicates().itertuples(index=False)]
    labels = [_label(name, layer) for name, layer in named]
    maps = []
    for group in groups:
        values = where(rows, group=group).pivot(index=["checkpoint", "layer"], columns="answer", values="swapped")
        answers = ANSWERS if group == GROUPS[0] else ANSWERS[1:]  # given the sign, thousands come in one order
        maps.append(_map(values.reindex(index=named, columns=answers).to_numpy(), answers, labels))
    right = where(units, model="trained").pivot(index="checkpoint", columns="group", values="right")
    right = right.reindex(index=[name for name, _ in named], columns=groups)
    last = _map(
        right.to_numpy(), [group.replace("subtraction", "sub").replace("addition", "add") for group in groups], labels
    )
    last.update(coloraxis=None, colorscale="Greys", zmin=0, zmax=2, showscale=False)
    widths = [CELL * len(list(trace.x or ())) for trace in (*maps, last)]
    width, height = sum(widths) + 16 * len(groups), LINE * len(labels)
    grid = make_subplots(
        rows=1, cols=len(widths), shared_yaxes=True, column_widths=widths, horizontal_spacing=16 / width,
        subplot_titles=[*groups, "units digit right"],
    )  # fmt: skip
    for column, trace in enumerate([*maps, last], start=1):
        grid.add_trace(trace, row=1, col=column)
    bar = {"title": {"text": "share"}, "thickness": 14, "len": min(1, 240 / height)}
    look = figure(
        "Does what attention writes tell a's digit from b's?",
        "Of what all heads of a layer write as a function of the two digits of the place, the share that changes when "
        "these swap:<br>0 is a function of the unordered pair, 0.5 both digits side by side. Empty: no such pairs, or "
        "nothing of the pair.<br>Grey: share of units digits right; without the order at most 0.600 in subtraction.",
        coloraxis={"colorscale": SEQUENTIAL, "cmin": 0, "cmax": MOST, "colorbar": bar},
        width=width + LEFT + RIGHT,
        height=height + TOP + BOTTOM,
    )
    grid.update_layout(look.layout).update_layout(margin={"l": LEFT, "r": RIGHT, "t": TOP, "b": BOTTOM})
    grid.update_annotations(font_size=12).update_xaxes(showgrid=False)
    return grid.update_yaxes(autorange="reversed", showgrid=False, automargin=False, dtick=1)


def _map(z: np.ndarray, x: list[str], y: list[str]) -> go.Heatmap:
    text = [["" if np.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00") for value in line] for line in z]
    look = {"texttemplate": "%{text}", "textfont": {"size": 11}, "xgap": 1, "ygap": 1, "coloraxis": "coloraxis"}
    return go.Heatmap(z=z, x=x, y=y, text=text, hovertemplate="%{y}, %{x}<br>%{z:.3f}<extra></extra>", **look)


def choices_figure(choices: pd.DataFrame) -> go.Figure:
    """Heads that choose, down; how much each prefers each digit, across, on a scale of its own largest preference."""
    scores = choices[[f"score_{digit}" for digit in range(10)]].to_numpy()
    scaled = scores / np.abs(scores).max(axis=1, keepdims=True)
    labels = [
        f"{name.removeprefix('arithmetic-')}  L{layer}H{head} {answer} < {reads}"
        for name, layer, head, answer, reads in choices[["checkpoint", "layer", "head", "answer", "reads"]].itertuples(
            index=False
        )
    ]
    bar = {"title": {"text": "preference"}, "thickness": 14}
    whole = figure(
        "Which of two digits does a head choose?",
        "Attention score of each digit at the two positions that the head looks at, less the mean over digits,<br>"
        "divided by the largest; the higher one takes most of the weight. All heads and answer digits that choose.",
        x="digit",
        width=760,
        height=20 * len(labels) + 200,
        margin={"l": 300, "r": 110, "t": 120, "b": 60},
    )
    hover = "%{y}<br>digit %{x}: %{z:.2f}<extra></extra>"
    digits = [str(digit) for digit in range(10)]
    whole.add_heatmap(
        z=scaled, x=digits, y=labels, zmin=-1, zmax=1, colorscale=DIVERGING, colorbar=bar, xgap=1, ygap=1,
        hovertemplate=hover,
    )  # fmt: skip
    whole.update_xaxes(type="category", showgrid=False)
    return whole.update_yaxes(autorange="reversed", showgrid=False, automargin=False, dtick=1, tickfont_size=11)
