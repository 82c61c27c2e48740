"""Figures of `ablation`: needed parts of all checkpoints, what their layers are for, neurons, and maps of nodes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.learned._ablation_forward import ALL
from analyses.learned._ablation_measure import CONTROL, MEAN, METHODS
from analyses.learned._ablation_problems import NEEDS
from workbench.figures import GREY, PALETTE, SEQUENTIAL, figure
from workbench.task import POSITION_LABELS

Tables = Mapping[str, pd.DataFrame]
TITLES = {
    "zero": "zero: writes nothing",
    "mean": "mean over other problems",
    "resample": "resample: another problem's",
    "random": "control: random change, as far as the mean",
}
FEW_COLUMNS = 5  # of maps that stand side by side
NARROWEST = 960  # pixels, which the longest subtitle needs
FAILING = "share of right<br>answers failing"


def figures(tables: Tables) -> dict[str, go.Figure]:
    """`summary`, `needs`, `neurons`, and `nodes-SHAPE` with a map for every seed."""
    found = {"summary": _summary(tables), "needs": _needs(tables["needs"]), "neurons": _neurons(tables["components"])}
    for (shape,), rows in groups(only(tables["nodes"], part=("head", "MLP"), method=MEAN), "shape"):
        found[f"nodes-{shape.replace(' ', '-')}"] = _nodes(shape, rows)
    return found


def only(table: pd.DataFrame, **values: object) -> pd.DataFrame:
    """The rows that hold the given values, or one of a tuple of values, in the columns of those names."""
    for column, value in values.items():
        table = cast(pd.DataFrame, table[table[column].isin(value if isinstance(value, tuple) else (value,))])
    return table


def groups(table: pd.DataFrame, *columns: str) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """(values of the columns, rows that hold them), in the order of first appearance."""
    for values in dict.fromkeys(zip(*(table[column] for column in columns), strict=True)):
        yield values, only(table, **dict(zip(columns, values, strict=True)))


def _short(name: str) -> str:
    return name.removeprefix("arithmetic-")


def _percent(value: float) -> str:
    """A share in percent, as few characters as tell it: `0` only for none."""
    if np.isnan(value):
        return ""
    return "0" if value == 0 else "<1" if value < 0.01 else f"{100 * value:.0f}"


@dataclass(frozen=True, eq=False)
class Map:
    """Shares by row and column, NaN where there is none, and what stands in each cell."""

    title: str
    values: pd.DataFrame
    text: list[list[str]]

    @classmethod
    def of(cls, title: str, values: pd.DataFrame, words: pd.DataFrame | None = None) -> "Map":
        """Percent in every cell, with `words` below it."""
        text = [[_percent(value) for value in line] for line in values.to_numpy(dtype=float)]
        if words is not None:
            pairs = (zip(*line, strict=True) for line in zip(text, words.to_numpy(), strict=True))
            text = [[f"{percent}<br>{word}" if word else percent for percent, word in line] for line in pairs]
        return cls(title, values, text)


def _grid(title: str, subtitle: str, panels: Sequence[Sequence[Map]], cell: tuple[int, int], size: int) -> go.Figure:
    """Maps in rows and columns, every cell as large, one colour scale from 0 to 1."""
    rows, columns = len(panels), max(map(len, panels))
    maps = [panel for line in panels for panel in line]
    across, down = (cell[axis] * max(panel.values.shape[1 - axis] for panel in maps) for axis in (0, 1))
    longest = max(len(str(label)) for panel in maps for label in panel.values.index)
    gap_x, gap_y, left, right, top = 30, 64, 30 + 7 * longest, 120, 120
    width, height = columns * across + (columns - 1) * gap_x, rows * down + (rows - 1) * gap_y
    grid = make_subplots(
        rows=rows, cols=columns, shared_yaxes=True, subplot_titles=[panel.title for panel in maps],
        horizontal_spacing=gap_x / width if columns > 1 else 0, vertical_spacing=gap_y / height if rows > 1 else 0,
    )  # fmt: skip
    for i, j, panel in [(i, j, panel) for i, line in enumerate(panels, 1) for j, panel in enumerate(line, 1)]:
        heat = go.Heatmap(
            z=panel.values.to_numpy(dtype=float), x=list(panel.values.columns), y=list(panel.values.index),
            text=panel.text, texttemplate="%{text}", textfont={"size": size}, xgap=1, ygap=1, coloraxis="coloraxis",
            hovertemplate="%{y}, %{x}: %{z:.3f}<extra></extra>",
        )  # fmt: skip
        grid.add_trace(heat, row=i, col=j)
    bar = {"title": {"text": FAILING, "font": {"size": 12}}, "thickness": 14, "tickformat": ".0%",
           "lenmode": "pixels", "len": min(320, height), "y": 1, "yanchor": "top"}  # fmt: skip
    scale = {"colorscale": SEQUENTIAL, "cmin": 0, "cmax": 1, "colorbar": bar}
    look = figure(
        title, subtitle, coloraxis=scale, width=max(width + left + right, NARROWEST), height=height + top + 70
    )
    grid.update_layout(look.layout).update_layout(margin={"l": left, "r": right, "t": top, "b": 70})
    grid.update_annotations(font_size=13)
    grid.update_xaxes(showgrid=False, tickangle=0, tickfont_size=11, showticklabels=True, type="category")
    return grid.update_yaxes(showgrid=False, autorange="reversed", tickfont_size=12, type="category")


def _table(rows: pd.DataFrame, index: str, columns: str, order: Sequence[str]) -> pd.DataFrame:
    """Shares of rows as a rectangle, in the order of first appearance and the order given; NaN where there is none."""
    return rows.pivot(index=index, columns=columns, values="share").reindex(
        index=list(dict.fromkeys(rows[index])), columns=list(order)
    )


def _summary(tables: Tables) -> go.Figure:
    rows = only(tables["components"], part=("head", "MLP"))
    rows = rows.assign(checkpoint=rows["checkpoint"].map(_short))
    order = sorted(set(rows["component"]), key=lambda name: (name[:2], "MLP" in name, name))
    maps = []
    for method in METHODS:
        values = _table(only(rows, method=method), "checkpoint", "component", order)
        maps.append(Map.of(TITLES[method], values))
    subtitle = (
        "percent of the answers that were right; at all positions at once; every class of problems weighs the same<br>"
        "columns: head (H) and MLP of each layer (L)"
    )
    return _grid("Answers that fail without a head or MLP", subtitle, [maps[:2], maps[2:]], (44, 26), 11)


def _needs(needs: pd.DataFrame) -> go.Figure:
    """By what problems need: layers but the last at groups of positions, and parts of the last layer."""
    deepest = max(needs["layer"])
    parts = []
    for _, rows in groups(only(needs, method=(MEAN, CONTROL)), "checkpoint"):
        last = max(rows["layer"])
        if last == deepest:
            parts.append(only(rows, layer=last, part=("attention", "head", "MLP")))
            parts.append(only(rows, layer=tuple(range(last)), position=tuple({*rows["position"]} - {ALL})))
    rows = pd.concat(parts, ignore_index=True)
    labels = {name: name.replace(", ", ",<br>") for name in NEEDS}
    what = [
        f"{_short(name)}  {component}" + ("" if label == ALL else f" at {label}")
        for name, component, label in zip(rows["checkpoint"], rows["component"], rows["position"], strict=True)
    ]
    rows = rows.assign(what=what, needs=[labels[name] for name in rows["needs"]])
    maps = []
    for method in (MEAN, CONTROL):
        values = _table(only(rows, method=method), "what", "needs", list(labels.values()))
        maps.append(Map.of(TITLES[method], values))
    subtitle = (
        "percent of the answers that were right, by what their digits need (borrows: larger less smaller); attn: all "
        "heads;<br>L0 at b3..b0: all that layer 0 writes there; empty: no problem of the kind is answered right"
    )
    return _grid("What layers are for: answers that fail without a part", subtitle, [maps], (84, 20), 11)


def _nodes(shape: str, rows: pd.DataFrame) -> go.Figure:
    """Position by component: percent failing and the first failing classes, a map a seed."""
    order = sorted(set(rows["component"]), key=lambda name: (name[:2], "MLP" in name, name))
    positions = [label for label in POSITION_LABELS if label in set(rows["position"])]
    maps = []
    for (name,), here in groups(rows, "checkpoint"):
        values, first = (here.pivot(index="component", columns="position", values=of) for of in ("share", "first"))
        values = values.reindex(index=order, columns=positions)
        maps.append(Map.of(_short(name), values, first.reindex_like(values).fillna("")))
    subtitle = (
        "percent of right answers that fail when a head's or MLP's write is replaced by its mean at one position; "
        "below it the simplest<br>failing class of S (addition), M (answer >= 0), N (negative); none named: no class "
        "fails; empty: it cannot reach an answer"
    )
    panels = [maps] if len(positions) <= FEW_COLUMNS else [[panel] for panel in maps]
    return _grid(f"Useful nodes, {shape}", subtitle, panels, (62, 34), 9)


def _neurons(components: pd.DataFrame) -> go.Figure:
    """Neurons in the order of what fails without them, a line a checkpoint, beside the control."""
    rows = only(components, part="neuron")
    shapes, layers = list(dict.fromkeys(rows["shape"])), sorted(set(rows["layer"]))
    shown = figure(
        "Answers that fail without one neuron",
        "neurons of a layer from the most needed on, mean ablation at all positions; a line a seed; dotted: random "
        "change of equal size",
        width=560 * len(layers) + 140,
        height=560,
    ).set_subplots(
        rows=1, cols=len(layers), shared_yaxes=True, subplot_titles=[f"layer {layer}" for layer in layers],
        horizontal_spacing=0.05,
    )  # fmt: skip
    named: set[str] = set()
    for (name, layer, method), here in groups(only(rows, method=(MEAN, CONTROL)), "checkpoint", "layer", "method"):
        shape = here["shape"].iloc[0]
        colour = PALETTE[shapes.index(shape) % len(PALETTE)]
        control = method == CONTROL
        shares = np.sort(here["share"].fillna(0).to_numpy())[::-1]
        group = "control" if control else shape
        shown.add_scatter(
            x=np.arange(1, len(shares) + 1), y=shares, mode="lines", name="random change" if control else shape,
            line={"color": GREY if control else colour, "dash": "dot" if control else "solid", "width": 1.5},
            opacity=0.6 if control else 1, legendgroup=group, showlegend=group not in named,
            text=[_short(name)] * len(shares),
            hovertemplate="%{text}: neuron %{x} in order, %{y:.3f}<extra></extra>", row=1, col=layers.index(layer) + 1,
        )  # fmt: skip
        named.add(group)
    shown.update_traces({"legendrank": 2000}, {"legendgroup": "control"})
    shown.update_xaxes(title_text="neurons, most needed first")
    shown.update_yaxes(title_text="share of right answers failing", rangemode="tozero", col=1)
    return shown.update_layout(margin={"t": 110})
