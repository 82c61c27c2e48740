"""Figures of `attention`: where every head looks, what sets its scores, and the patterns of each model."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.learned._attention_circuits import LEVELS
from analyses.learned._attention_order_figures import choices_figure, order_figure
from analyses.learned._conditions import GROUPS, PREDICTED
from analyses.learned._exact_probe_fit import where
from workbench.figures import BLUE, GREY, ORANGE, SEQUENTIAL, SKY, figure
from workbench.task import EQUALS_AT, OPERATOR_AT, POSITION_LABELS, POSITIONS_READ, SIGN_AT

SIDES = ("a, this place", "b, this place", "a, next lower", "b, next lower", "a, lower", "b, lower", "a, higher")
SIDES += ("b, higher", "operator", "=", "sign", "answer digits")
HEAD = ["layer", "head"]
FIXED = {OPERATOR_AT: "operator", EQUALS_AT: "=", SIGN_AT: "sign"}
LEVEL_NAMES = dict(zip(LEVELS, ("key's position", "key's token", "query's token"), strict=True))


def figures(tables: Mapping[str, pd.DataFrame]) -> dict[str, go.Figure]:
    """`summary` and `circuits` over all models, and `patterns-NAME` for each."""
    found = {"summary": _summary(tables["patterns"]), "circuits": _circuits(tables["qk"])}
    found["order"] = order_figure(tables["order"], tables["units"])
    if "choices" in tables and len(chosen := where(tables["choices"], model="trained")):
        found["choices"] = choices_figure(chosen)
    for name in tables["patterns"]["checkpoint"].unique():
        found[f"patterns-{name}"] = _patterns(name, where(tables["patterns"], checkpoint=name, model="trained"))
    return found


def side(answer: str, key: int) -> str:
    """Which of SIDES a position is on, seen from where an answer digit is predicted."""
    if key in FIXED or key > SIGN_AT:
        return FIXED.get(key, "answer digits")
    operand, place = POSITION_LABELS[key]
    below = int(answer[1]) - int(place)
    where_ = "higher" if below < 0 else ("this place", "next lower", "lower", "lower", "lower")[below]
    return f"{operand}, {where_}"


def _label(name: str, layer: int, head: int) -> str:
    return f"{name.removeprefix('arithmetic-')}  L{layer}H{head}"


def _grid(panels: list[list[go.Heatmap]], titles: list[str], cell: tuple[int, int], **layout: Any) -> go.Figure:
    """Maps in rows and columns on one scale from 0 to 1, each cell of the given width and height in pixels."""
    sizes = [len(list(row[0].y or ())) * cell[1] for row in panels]
    across = [len(list(trace.x or ())) * cell[0] for trace in panels[0]]
    gap_x, gap_y, left, top = 14, 44, layout.pop("left"), 130
    width, height = sum(across) + gap_x * (len(across) - 1), sum(sizes) + gap_y * (len(sizes) - 1)
    grid = make_subplots(
        rows=len(sizes), cols=len(across), shared_yaxes=True, subplot_titles=titles, row_heights=sizes,
        column_widths=across, vertical_spacing=gap_y / height if len(sizes) > 1 else 0,
        horizontal_spacing=gap_x / width if len(across) > 1 else 0,
    )  # fmt: skip
    for i, row in enumerate(panels, start=1):
        for j, trace in enumerate(row, start=1):
            grid.add_trace(trace, row=i, col=j)
    bar = {"title": {"text": "mean weight"}, "thickness": 14, "len": min(1, 400 / height)}
    scale = {"colorscale": SEQUENTIAL, "cmin": 0, "cmax": 1, "colorbar": bar}
    bottom = layout.pop("bottom", 50)
    look = figure(**layout, coloraxis=scale, width=width + left + 120, height=height + top + bottom)
    grid.update_layout(look.layout).update_layout(margin={"l": left, "r": 120, "t": top, "b": bottom})
    grid.update_annotations(font_size=12).update_xaxes(showgrid=False, showticklabels=True)
    return grid.update_yaxes(autorange="reversed", showgrid=False, automargin=False)


def _map(z: Any, x: list[str], y: list[str]) -> go.Heatmap:
    hover = "%{y}, %{x}<br>%{z:.3f}<extra></extra>"
    return go.Heatmap(z=z, x=x, y=y, xgap=1, ygap=1, coloraxis="coloraxis", hovertemplate=hover)


def _patterns(name: str, patterns: pd.DataFrame) -> go.Figure:
    """Heads down, operator and sign across; each map is answer digit by position."""
    groups = [group for group in GROUPS if group in set(patterns["group"])]
    heads = patterns[["layer", "head"]].drop_duplicates().itertuples(index=False, name=None)
    rows = [f"predicts {digit}" for digit in PREDICTED]
    keys: list[str] = list(POSITION_LABELS[:POSITIONS_READ])
    panels, titles = [], []
    for layer, head in heads:
        line = []
        for group in groups:
            part = where(patterns, layer=layer, head=head, group=group)
            z = part.pivot(index="answer", columns="key", values="weight").reindex(index=list(PREDICTED), columns=keys)
            line.append(_map(z.to_numpy(), keys, rows))
            titles.append(f"L{layer}H{head}, {group}")
        panels.append(line)
    subtitle = (
        "Mean attention weight from where an answer digit is predicted (rows) to the token that stands at a position "
        f"(columns);<br>n = {_counts(patterns, groups)}. A row sums to 1; white has not been read yet."
    )
    grid = _grid(panels, titles, (21, 17), title=f"{name}: where the heads look", subtitle=subtitle, left=90)
    return grid.update_xaxes(tickfont_size=10, tickangle=0, dtick=1)


def _counts(patterns: pd.DataFrame, groups: list[str]) -> str:
    return ", ".join(f"{where(patterns, group=group)['n'].iloc[0]:,} ({group})" for group in groups)


def _summary(patterns: pd.DataFrame) -> go.Figure:
    """Heads of all models down; where they look, relative to the answer digit's place, across; by operator and sign."""
    trained = where(patterns, model="trained")
    trained = trained[trained["answer"] != "d4"]  # no operand digit stands in its place
    key = {label: place for place, label in enumerate(POSITION_LABELS)}
    sides = [side(answer, key[label]) for answer, label in zip(trained["answer"], trained["key"], strict=True)]
    table = trained.assign(side=sides)
    groups = [group for group in GROUPS if group in set(table["group"])]
    panels = []
    for name in table["checkpoint"].unique():
        line = []
        for group in groups:
            part = where(table, checkpoint=name, group=group)
            z = part.pivot_table(
                index=["layer", "head"], columns="side", values="weight", aggfunc="sum", fill_value=0.0
            )
            z = z.reindex(columns=list(SIDES), fill_value=0.0) / (len(PREDICTED) - 1)
            labels = [f"{name.removeprefix('arithmetic-')}  L{layer}H{head}" for layer, head in z.index]
            line.append(_map(z.to_numpy(), list(SIDES), labels))
        panels.append(line)
    merged = [[_stack([line[j] for line in panels]) for j in range(len(groups))]]
    grid = _grid(
        merged, groups, (26, 14), left=210, bottom=110, title="Where the heads look",
        subtitle="Mean attention weight where d3 to d0 are predicted, by place relative to that digit's place; mean "
        "over the four.<br>“Lower” are two or more places below. A row sums to 1.",
    )  # fmt: skip
    return grid.update_xaxes(tickangle=45).update_yaxes(tickfont_size=11, dtick=1)


def _stack(maps: list[go.Heatmap]) -> go.Heatmap:
    """Maps of the same columns as one."""
    labels = [label for one in maps for label in one.y or ()]
    return _map(np.concatenate([np.asarray(one.z) for one in maps]), list(SIDES), labels)


def _circuits(qk: pd.DataFrame) -> go.Figure:
    """For every head how much of its scores' variance each part of the QK circuit gives, beside the untrained model."""
    keys = ["checkpoint", *HEAD]
    columns = [f"by_{level}" for level in LEVELS]
    models = [model for model in ("trained", "untrained") if model in set(qk["model"])]
    grid = make_subplots(rows=1, cols=len(models), shared_yaxes=True, subplot_titles=models, horizontal_spacing=0.03)
    height = 0
    for number, model in enumerate(models, start=1):
        means = where(qk, model=model).pivot_table(index=keys, values=columns, sort=False, dropna=False)[columns]
        labels = [_label(*head) for head in means.index.to_frame().to_numpy().tolist()]
        height = 14 * len(labels)
        parts = np.diff(means.to_numpy(), axis=1, prepend=0.0)
        for place, (level, color) in enumerate(zip(LEVELS, (BLUE, ORANGE, SKY), strict=True)):
            grid.add_bar(
                x=parts[:, place], y=labels, orientation="h", name=LEVEL_NAMES[level], marker_color=color,
                legendgroup=level, showlegend=number == 1, hovertemplate="%{y}<br>%{x:.3f}", row=1, col=number,
            )  # fmt: skip
        grid.add_vline(x=1, line={"color": GREY, "width": 1, "dash": "dot"}, row=1, col=number)  # type: ignore[arg-type]
    look = figure(
        "What sets the attention scores",
        "Share of the scores' variance over keys and problems, mean over the five answer positions, held-out problems."
        "<br>What a bar lacks to 1 is no function of tokens and positions (layer 0 lacks nothing); no bar: all equal.",
    )
    legend = {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"}
    grid.update_layout(look.layout).update_layout(
        barmode="relative",
        width=1150,
        height=height + 220,
        margin={"l": 210, "r": 30, "t": 120, "b": 90},
        legend=legend,
    )
    grid.update_annotations(font_size=13)
    grid.update_yaxes(autorange="reversed", tickfont_size=11, dtick=1, showgrid=False, automargin=False)
    return grid.update_xaxes(title={"text": "share of variance", "font_size": 13})
