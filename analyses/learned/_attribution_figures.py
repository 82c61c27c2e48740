"""Figures of `attribution`: shares and logit lens of all models, and every component of each."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.learned._attribution_tables import ALL_DIGITS, ANSWERS
from analyses.learned._conditions import GROUPS
from analyses.learned._exact_probe_fit import where
from workbench.figures import BLUE, DIVERGING, GREY, ORANGE, SEQUENTIAL, SKY, VERMILLION, figure
from workbench.structure import CLASSES

COLOURS = (GREY, SKY, BLUE, ORANGE, VERMILLION)  # embedding, then heads and MLP of each layer
LEFT, RIGHT, TOP, BOTTOM = 170, 110, 130, 50


def figures(tables: Mapping[str, pd.DataFrame]) -> dict[str, go.Figure]:
    """`summary` and `lens` over all models, and `components-NAME` for each."""
    found = {"summary": _summary(where(tables["shares"], model="trained"))}
    found["lens"] = _lens(where(tables["lens"], model="trained", answer=ALL_DIGITS))
    for name in tables["components"]["checkpoint"].unique():
        found[f"components-{name}"] = _components(name, where(tables["components"], checkpoint=name, model="trained"))
    return found


def _summary(shares: pd.DataFrame) -> go.Figure:
    """For every model and group, the kinds of components as parts of a bar that adds up to 1."""
    groups = [group for group in GROUPS if group in set(shares["category"])]
    grid = make_subplots(rows=1, cols=len(groups), shared_yaxes=True, subplot_titles=groups, horizontal_spacing=0.03)
    kinds = sorted(set(shares["kind"]), key=lambda kind: ("embedding" not in kind, kind[:2], "MLP" in kind))
    names = list(dict.fromkeys(shares["checkpoint"]))
    for column, group in enumerate(groups, start=1):
        for number, kind in enumerate(kinds):
            rows = where(shares, category=group, kind=kind)
            grid.add_bar(
                x=rows["share"], y=[name.removeprefix("arithmetic-") for name in rows["checkpoint"]], orientation="h",
                name=kind, legendgroup=kind, showlegend=column == 1, marker_color=COLOURS[number % len(COLOURS)],
                customdata=rows[["low", "high", "elsewhere"]],
                hovertemplate="%{y}<br>%{x:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f}; "
                "elsewhere %{customdata[2]:.3f})",
                row=1, col=column,
            )  # fmt: skip
    look = figure(
        "Who adds to the logit of the correct digit",
        "Shares of the mean logit difference, correct digit less runner-up, mean over d3 to d0; a bar adds up to 1. "
        "Direct effect only.<br>No bar: the mean difference is not surely above zero (the model is mostly wrong).",
        width=1200,
        height=26 * len(names) + 240,
    )
    legend = {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"}
    margin = {"l": LEFT, "r": 30, "t": TOP, "b": 100}
    grid.update_layout(look.layout).update_layout(barmode="relative", margin=margin, legend=legend)
    grid.update_annotations(font_size=13).update_xaxes(title={"text": "share", "font_size": 13}, matches="x")
    order = [name.removeprefix("arithmetic-") for name in reversed(names)]
    return grid.update_yaxes(categoryorder="array", categoryarray=order, automargin=False)


def _maps(maps: list[go.Heatmap], titles: list[str], cell: tuple[int, int], **layout: Any) -> go.Figure:
    """Maps side by side, every cell of the given width and height in pixels."""
    widths = [len(list(trace.x or ())) * cell[0] for trace in maps]
    width, height = sum(widths) + 16 * (len(maps) - 1), len(list(maps[0].y or ())) * cell[1]
    grid = make_subplots(
        rows=1, cols=len(maps), shared_yaxes=True, column_widths=widths, subplot_titles=titles,
        horizontal_spacing=16 / width if len(maps) > 1 else 0,
    )  # fmt: skip
    for column, trace in enumerate(maps, start=1):
        grid.add_trace(trace, row=1, col=column)
    bottom = layout.pop("bottom", BOTTOM)
    look = figure(**layout, width=width + LEFT + RIGHT, height=height + TOP + bottom)
    grid.update_layout(look.layout).update_layout(margin={"l": LEFT, "r": RIGHT, "t": TOP, "b": bottom})
    grid.update_annotations(font_size=13).update_xaxes(showgrid=False, type="category")
    return grid.update_yaxes(autorange="reversed", showgrid=False, automargin=False, dtick=1)


def _map(table: pd.DataFrame, form: str) -> go.Heatmap:
    z = table.to_numpy(dtype=float)
    text = [["" if np.isnan(value) else format(value, form) for value in line] for line in z]
    x, y = [str(name) for name in table.columns], [str(name).removeprefix("arithmetic-") for name in table.index]
    return go.Heatmap(
        z=z, x=x, y=y, text=text, texttemplate="%{text}", textfont={"size": 11}, xgap=1, ygap=1, coloraxis="coloraxis",
        hovertemplate="%{y}, %{x}<br>%{z:.3f}<extra></extra>",
    )  # fmt: skip


def _lens(lens: pd.DataFrame) -> go.Figure:
    """Models down, depth across, by group: share of digits that the stream at that depth gives."""
    groups = [group for group in GROUPS if group in set(lens["category"])]
    names = list(dict.fromkeys(lens["checkpoint"]))
    longest = max(names, key=lambda name: lens.loc[lens["checkpoint"] == name, "depth"].nunique())
    depths = list(dict.fromkeys(where(lens, checkpoint=longest)["depth"]))
    maps = []
    for group in groups:
        table = where(lens, category=group).pivot(index="checkpoint", columns="depth", values="right")
        table = table.reindex(index=names, columns=depths)
        maps.append(_map(table.rename(columns=lambda depth: str(depth).replace("after ", "")), ".2f"))
    bar = {"title": {"text": "right"}, "thickness": 14}
    return _maps(
        maps, groups, (58, 24), bottom=110, title="The logit lens: at which depth is the answer there?",
        subtitle="Share of answer digits right when the stream is sent straight to the unembedding, mean over d3 to "
        "d0;<br>after the embedding, and after each layer's attention and MLP. The last is the model's own answer.",
        coloraxis={"colorscale": SEQUENTIAL, "cmin": 0, "cmax": 1, "colorbar": bar},
    ).update_xaxes(tickangle=45)  # fmt: skip


def _components(name: str, rows: pd.DataFrame) -> go.Figure:
    """Components down; by group the answer digits, and last the classes, across; mean part of the logit difference."""
    parts = list(dict.fromkeys(rows["component"]))
    groups = [group for group in GROUPS if group in set(rows["category"])]
    tables = [
        where(rows, category=group).pivot(index="component", columns="answer", values="mean").loc[parts, list(ANSWERS)]
        for group in groups
    ]
    classes = where(rows, grouping="class", answer=ALL_DIGITS)
    known = [one for one in CLASSES if one in set(classes["category"])]
    tables.append(classes.pivot(index="component", columns="category", values="mean").loc[parts, known])
    most = max(table.drop(columns="d4", errors="ignore").abs().to_numpy().max() for table in tables)
    bar = {"title": {"text": "logits"}, "thickness": 14}
    return _maps(
        [_map(table, ".1f") for table in tables], [*groups, "d3-d0, by class"], (42, 22),
        title=f"{name}: what each component adds to the correct digit over the runner-up",
        subtitle="Mean part of the logit difference, by answer digit and by class (mean over d3 to d0); a column adds "
        f"up to it. The colours leave d4 out.<br>n = {_counts(rows, groups)}; {_counts(rows, known)}.",
        coloraxis={"colorscale": DIVERGING, "cmin": -most, "cmax": most, "colorbar": bar},
    )  # fmt: skip


def _counts(rows: pd.DataFrame, categories: list[str]) -> str:
    return ", ".join(f"{where(rows, category=name)['n'].iloc[0]:,} {name}" for name in categories)
