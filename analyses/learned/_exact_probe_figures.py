"""Figures of `exact-probe`: one summary over checkpoints, and two maps of sites for each."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.learned._exact_probe_fit import PLACES, PROBES, UNITS, where
from workbench.figures import BLUE, GREEN, GREY, SEQUENTIAL, VERMILLION, error_bars, figure
from workbench.task import POSITION_LABELS

CONDITIONS = {
    "trained": ("trained", "true"),
    "untrained": ("untrained", "true"),
    "shuffled labels": ("trained", "shuffled"),
}
SUBTITLE = (
    "R² on held-out problems. Hooks from the input (below) to the output (above); positions by the token that stands "
    "there.<br>Right of the white line the model has read digits of the answer; at s it has read its sign."
)
Panels = list[list[tuple[str, pd.DataFrame]]]


def figures(tables: Mapping[str, pd.DataFrame]) -> dict[str, go.Figure]:
    """`summary` of the best sites, and for each checkpoint `sites-NAME` and `places-NAME`."""
    found = {"summary": _summary(tables["layers"])}
    for name in tables["sites"]["checkpoint"].unique():
        sites, places = (where(tables[kind], checkpoint=name) for kind in ("sites", "places"))
        found[f"sites-{name}"] = _sites(name, sites)
        found[f"places-{name}"] = _places(name, places)
    return found


def _short(hook: str) -> str:
    _, layer, part = hook.split(".")
    return f"L{layer} {part.removeprefix('hook_')}"


def _cell(value: float) -> str:
    """R² in the fewest characters that tell it: `.97`, `0`, `1` (only for 0.995 and above)."""
    text = f"{value:.2f}"
    return {"0.00": "0", "-0.00": "0", "1.00": "1"}.get(text, text.replace("0.", ".", 1))


def _maps(title: str, panels: Panels) -> go.Figure:
    """A grid of heat maps of `r2` over position (across) and hook (from the input up), on one scale from 0 to 1."""
    first = panels[0][0][1]
    hooks = list(dict.fromkeys(first["hook"]))
    positions = [label for label in POSITION_LABELS if label in set(first["position"])]
    across, down = 36 * len(positions), 22 * len(hooks)
    columns, rows = max(map(len, panels)), len(panels)
    gap_x, gap_y, left, top = 24, 64, 120, 130
    width, height = columns * across + (columns - 1) * gap_x, rows * down + (rows - 1) * gap_y
    grid = make_subplots(
        rows=rows,
        cols=columns,
        shared_xaxes=True,
        shared_yaxes=True,
        subplot_titles=[name for row in panels for name, _ in row],
        vertical_spacing=gap_y / height if rows > 1 else 0,
        horizontal_spacing=gap_x / width if columns > 1 else 0,
    )
    tables = [table for row in panels for _, table in row]
    places = [(i, j) for i, row in enumerate(panels, start=1) for j in range(1, len(row) + 1)]
    maps = [_map(table, hooks, positions) for table in tables]
    grid.add_traces(maps, rows=[i for i, _ in places], cols=[j for _, j in places])
    x = positions.index("s") + 0.5
    line = {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": {"color": "white", "width": 4}}
    lines = [{**line, "xref": trace.xaxis, "yref": f"{trace.yaxis} domain"} for trace in grid.data]  # type: ignore[attr-defined]
    scale = {"colorscale": SEQUENTIAL, "cmin": 0, "cmax": 1, "colorbar": {"title": {"text": "R²"}, "thickness": 14}}
    look = figure(title, SUBTITLE, coloraxis=scale, width=width + left + 110, height=height + top + 60)
    grid.update_layout(look.layout).update_layout(margin={"l": left, "r": 110, "t": top, "b": 60}, shapes=lines)
    grid.update_annotations(font_size=12)
    return grid.update_xaxes(showticklabels=True, tickangle=0, showgrid=False).update_yaxes(showgrid=False)


def _map(table: pd.DataFrame, hooks: list[str], positions: list[str]) -> go.Heatmap:
    values = table.pivot(index="hook", columns="position", values="r2").loc[hooks, positions].to_numpy()
    return go.Heatmap(
        z=values,
        x=positions,
        y=[_short(hook) for hook in hooks],
        text=[[_cell(value) for value in line] for line in values],
        texttemplate="%{text}",
        textfont={"size": 11},
        xgap=1,
        ygap=1,
        coloraxis="coloraxis",
    )


def _sites(name: str, sites: pd.DataFrame) -> go.Figure:
    panels: Panels = []
    for operator in dict.fromkeys(sites["operator"]):
        for probe in PROBES:
            rows = where(sites, operator=operator, probe=probe)
            parts = [
                (f"{operator}: {probe}<br>{label}", where(rows, model=model, labels=labels))
                for label, (model, labels) in CONDITIONS.items()
            ]
            panels.append(parts)
    return _maps(f"{name}: variance of the exact result explained", panels)


def _places(name: str, places: pd.DataFrame) -> go.Figure:
    panels: Panels = []
    for place in PLACES:
        parts = [
            (
                f"{place}<br>{operator}, {model}",
                where(places, place=place, operator=operator, model=model, labels="true"),
            )
            for operator in dict.fromkeys(places["operator"])
            for model in ("trained", "untrained")
        ]
        panels.append(parts)
    return _maps(f"{name}: variance of each place's exact sum or difference explained", panels)


# what each row of the summary shows: legend, column of table `layers`, marker
SERIES = (
    ("trained", "r2", {"color": BLUE, "symbol": "circle", "size": 9}),
    ("untrained, its best site", "untrained_best_r2", {"color": VERMILLION, "symbol": "circle-open", "size": 9}),
    ("embedding, same position", "embedding_r2", {"color": GREEN, "symbol": "diamond-open", "size": 9}),
    ("shuffled labels, same site", "shuffled_r2", {"color": GREY, "symbol": "x-thin-open", "size": 8}),
)


def _summary(layers: pd.DataFrame) -> go.Figure:
    """One row a checkpoint and layer: its best site before the answer's digits are read, with every control."""
    operators = [operator for operator in UNITS if operator in set(layers["operator"])]
    panels = [(probe, operator) for probe in PROBES for operator in operators]
    labels = {
        (checkpoint, layer): f"{checkpoint.removeprefix('arithmetic-')}  L{layer}"
        for checkpoint, layer in zip(layers["checkpoint"], layers["layer"], strict=True)
    }
    height = len(PROBES) * 24 * len(labels) + 90
    grid = make_subplots(
        rows=len(PROBES),
        cols=len(operators),
        shared_xaxes=True,
        shared_yaxes=True,
        subplot_titles=[f"{operator}: {probe}" for probe, operator in panels],
        horizontal_spacing=0.03,
        vertical_spacing=90 / height,
    )
    for number, (probe, operator) in enumerate(panels):
        i, j = divmod(number, len(operators))
        rows = where(layers, probe=probe, operator=operator)
        y = [labels[key] for key in zip(rows["checkpoint"], rows["layer"], strict=True)]
        site = rows["hook"] + ", position " + rows["position"]
        for name, column, marker in SERIES:
            bars = error_bars(rows["r2"], rows["low"], rows["high"]) if column == "r2" else None
            grid.add_scatter(
                x=rows[column],
                y=y,
                mode="markers",
                name=name,
                marker=marker,
                error_x=bars,
                text=site,
                hovertemplate="%{y}<br>%{text}<br>R² %{x:.4f}",
                legendgroup=name,
                showlegend=number == 0,
                row=i + 1,
                col=j + 1,
            )
    subtitle = (
        "Best residual site of each layer before any answer digit is read (positions b0, =, s), chosen on the fitting "
        "half.<br>R² on held-out problems, 95% bootstrap interval over problems. At s the model has read the sign."
    )
    look = figure("Variance of the exact result explained", subtitle)
    grid.update_layout(look.layout).update_layout(
        width=520 * len(operators) + 240,
        height=height + 220,
        margin={"l": 220, "r": 30, "t": 120, "b": 100},
        legend={"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", "x": 0},
    )
    grid.update_annotations(font_size=13)
    lowest = layers[[column for _, column, _ in SERIES]].min().min()
    grid.update_xaxes(
        range=[min(0, lowest) - 0.05, 1.05], showticklabels=True, title={"text": "R²", "font_size": 13, "standoff": 4}
    )
    return grid.update_yaxes(autorange="reversed")
