"""Figures of `surrogate`: explained accuracy of wholes by feature set, and the smallest set that explains each part."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses._rows import Row, grouped
from analyses.learned._surrogate_features import ANSWER, NESTED, NOTHING, SHUFFLED
from analyses.learned._surrogate_tables import EXPLAINED, IDLE, NONE, WHOLES, shown
from workbench.figures import SEQUENTIAL, figure

SHOWN = (NOTHING, *NESTED, ANSWER, SHUFFLED)
COLOURS = {  # of the smallest set that explains; light to dark as it grows
    IDLE: "#F2F2F2", "digits": "#CFE3F3", "phases": "#8FC1E3", "sums": "#4A90C2", "carries": "#1F5F99",
    "totals": "#E69F00", NONE: "#B22222",
}  # fmt: skip


def figures(rows: Sequence[Row], firsts: Sequence[Row]) -> dict[str, go.Figure]:
    """`accuracy` with wholes replaced, and `parts`: the smallest set that explains each."""
    return {"accuracy": _accuracy(rows), "parts": _parts(firsts)}


def _short(name: str) -> str:
    return name.removeprefix("arithmetic-")


def _accuracy(rows: Sequence[Row]) -> go.Figure:
    panels = grouped([row for row in rows if row["replaced"] in WHOLES], "operator")
    titles = [operator for (operator,) in panels]
    grid = make_subplots(cols=len(panels), shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.03)
    labels: list[str] = []
    for column, part in enumerate(panels.values(), start=1):
        lines = grouped(part, "checkpoint", "replaced")
        labels = [f"{_short(checkpoint)}  {name}" for checkpoint, name in lines]
        z = [
            [*({row["features"]: shown(row) for row in line}[of] for of in SHOWN), line[0]["full"]]
            for line in lines.values()
        ]
        grid.add_heatmap(
            z=z, x=[*SHOWN, "full model"], y=labels,
            text=[["" if math.isnan(value) else f"{value:.2f}" for value in line] for line in z],
            texttemplate="%{text}", textfont={"size": 11}, xgap=1, ygap=1, coloraxis="coloraxis", row=1, col=column,
        )  # fmt: skip
    subtitle = (
        "Sequence accuracy when parts write, at the answer positions, the best linear readout of exact features of the "
        "problem.<br>Each set holds the one before; from totals on the answer can be read off the features themselves."
        "<br>answer digit: the ceiling of MLPs and of everything; empty for heads, which write other things than that "
        "digit."
    )
    look = figure("Accuracy that survives linear surrogates", subtitle)
    scale = {
        "colorscale": SEQUENTIAL,
        "cmin": 0,
        "cmax": 1,
        "colorbar": {"title": {"text": "accuracy"}, "thickness": 14},
    }
    grid.update_layout(look.layout).update_layout(
        width=1300, height=22 * len(labels) + 260, margin={"l": 240, "r": 110, "t": 150, "b": 110}, coloraxis=scale
    )
    return grid.update_xaxes(showgrid=False, tickangle=-40).update_yaxes(autorange="reversed", showgrid=False)


def _parts(firsts: Sequence[Row]) -> go.Figure:
    names = list(COLOURS)
    panels = grouped([row for row in firsts if row["replaced"] not in WHOLES], "operator")
    titles = [operator for (operator,) in panels]
    grid = make_subplots(cols=len(panels), shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.03)
    labels: list[str] = []
    for column, part in enumerate(panels.values(), start=1):
        lines = {checkpoint: line for (checkpoint,), line in grouped(part, "checkpoint").items()}
        labels = list(map(_short, lines))
        x = sorted({row["replaced"] for row in part})
        found = [{row["replaced"]: row["smallest"] for row in line} for line in lines.values()]
        z = [[names.index(line[part]) if part in line else math.nan for part in x] for line in found]
        text = [["" if line.get(part, IDLE) == IDLE else line[part] for part in x] for line in found]
        steps = [[edge, colour] for i, colour in enumerate(COLOURS.values()) for edge in (i / 7, (i + 1) / 7)]
        grid.add_heatmap(
            z=z, x=x, y=labels, text=text, texttemplate="%{text}", textfont={"size": 11}, xgap=1, ygap=1, zmin=-0.5,
            zmax=6.5, colorscale=steps, showscale=False, row=1, col=column,
        )  # fmt: skip
    subtitle = (
        f"The smallest set whose linear readout, in the part's place, brings back {EXPLAINED:.0%} of the accuracy that "
        "its mean loses.<br>Pale: its mean loses less than 5 points. totals tells the answer. none: not even that."
    )
    look = figure("What explains each head and MLP", subtitle)
    grid.update_layout(look.layout).update_layout(
        width=1300, height=32 * len(labels) + 230, margin={"l": 180, "r": 30, "t": 130, "b": 60}
    )
    return grid.update_xaxes(showgrid=False).update_yaxes(autorange="reversed", showgrid=False)
