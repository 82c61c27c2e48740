"""Figures of `clock`: how layers' neurons divide, at which frequencies logits and MLPs turn, and the embeddings."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses._rows import Row, grouped, mean, where
from analyses.learned._clock_families import (
    CARRY,
    DIFFERENCE,
    FREQUENCIES,
    LOOKUP,
    ONE_DIGIT,
    SUM,
    SUM_MOD,
    TURNS,
    frequency_of,
)
from analyses.learned._clock_tables import spectrum
from workbench.figures import BLUE, GREEN, ORANGE, SEQUENTIAL, SKY, VERMILLION, figure

SEGMENTS = (  # name and colour; they add to 1 at the places where all pairs occur
    ("one digit alone", SKY),
    ("sum mod 10", BLUE),
    ("difference mod 10", VERMILLION),
    ("the rest of the pair", ORANGE),
    ("carry or borrow alone", GREEN),
    ("neither", "#D9D9D9"),
)
SCALE = {"colorscale": SEQUENTIAL, "cmin": 0, "cmax": 1, "colorbar": {"title": {"text": "share"}, "thickness": 14}}


def figures(averages: Sequence[Row], spectra: Sequence[Row]) -> dict[str, go.Figure]:
    """`neurons`, `frequencies` and `embeddings`."""
    rows = _operators(averages)
    return {"neurons": _neurons(rows), "frequencies": _frequencies(rows), "embeddings": _embeddings(spectra)}


def _operators(averages: Sequence[Row]) -> list[Row]:
    """The trained models' rows by operator: the two signs of a subtraction averaged, labelled for an axis."""
    found = []
    rows = [row | {"operator": row["group"].split()[0]} for row in where(averages, model="trained")]
    for (name, kind, layer, component, operator), part in grouped(
        rows, "checkpoint", "kind", "layer", "component", "operator"
    ).items():
        numbers = [key for key, value in part[0].items() if isinstance(value, float)]
        label = f"{_short(name)}  {f'L{layer}' if kind == 'neurons' else component}"
        row = {"label": label, "kind": kind, "operator": operator}
        found.append(row | {key: mean(part, key) for key in numbers})
    return found


def _short(name: str) -> str:
    return name.removeprefix("arithmetic-")


def _panels(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {operator: part for (operator,), part in grouped(rows, "operator").items()}


def _parts(row: Row) -> list[float]:
    """The segments' lengths; sampling can take one a little below 0, which is drawn as 0."""
    pair = row[LOOKUP] - row[CARRY]
    one, plus, minus = row[ONE_DIGIT] - row[CARRY], row[SUM_MOD] - row[CARRY], row[TURNS] - row[SUM_MOD]
    return [max(0.0, part) for part in (one, plus, minus, pair - one - plus - minus, row[CARRY], 1 - row[LOOKUP])]


def _neurons(rows: Sequence[Row]) -> go.Figure:
    panels = _panels(where(rows, kind="neurons"))
    grid = make_subplots(cols=len(panels), shared_yaxes=True, subplot_titles=list(panels), horizontal_spacing=0.03)
    labels: list[str] = []
    for column, here in enumerate(panels.values(), start=1):
        labels = [row["label"] for row in here]
        for (name, colour), lengths in zip(SEGMENTS, zip(*map(_parts, here), strict=True), strict=True):
            grid.add_bar(
                x=lengths, y=labels, orientation="h", name=name, marker_color=colour, legendgroup=name,
                showlegend=column == 1, row=1, col=column, hovertemplate="%{y}: %{x:.3f}",
            )  # fmt: skip
    subtitle = (
        "Variance of what a layer's neurons write at a digit's position, over problems of one operator and sign; "
        "mean of<br>units, tens and hundreds. A table of random pairs has 18/99 in one digit, 9/99 in the sum, 8/99 in "
        "the difference<br>mod 10, 64/99 in the rest. Frequency 5, which sum and difference share, is drawn at the sum."
    )
    look = figure("What MLP neurons compute of the digit pair", subtitle)
    grid.update_layout(look.layout).update_layout(
        barmode="stack", width=1250, height=26 * len(labels) + 300, margin={"l": 190, "r": 30, "t": 150, "b": 90},
        legend={"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )  # fmt: skip
    grid.update_xaxes(range=[0, 1.001], title={"text": "share of variance", "standoff": 4})
    return grid.update_yaxes(autorange="reversed", categoryorder="array", categoryarray=labels)


def _heat(grid: go.Figure, z: list[list[float]], x: list[str], y: list[str], row: int, col: int) -> None:
    grid.add_heatmap(
        z=z, x=x, y=y, text=[[f"{value:.2f}" for value in line] for line in z], texttemplate="%{text}",
        textfont={"size": 11}, xgap=1, ygap=1, coloraxis="coloraxis", row=row, col=col,
    )  # fmt: skip


def _frequencies(rows: Sequence[Row]) -> go.Figure:
    panels = _panels([row for row in rows if row["kind"] in ("MLP", "logits")])
    columns = {
        f"{sign} {k}": frequency_of(name, k) for name, sign in ((SUM, "a+b"), (DIFFERENCE, "a-b")) for k in FREQUENCIES
    }
    grid = make_subplots(cols=len(panels), shared_yaxes=True, subplot_titles=list(panels), horizontal_spacing=0.03)
    labels: list[str] = []
    for number, here in enumerate(panels.values(), start=1):
        labels = [row["label"] for row in here]
        z = [[max(0.0, row[name] - row[CARRY]) for name in columns.values()] for row in here]
        _heat(grid, z, list(columns), labels, 1, number)
    subtitle = (
        "Share of variance over problems at each frequency of a+b or a-b (it may turn with the carry), mean of units, "
        "tens and<br>hundreds. A lookup of the answer that treats all digits alike has 0.22 at frequencies 1 to "
        "4, 0.11 at 5."
    )
    look = figure("At which frequencies MLPs and logits turn", subtitle)
    grid.update_layout(look.layout).update_layout(
        width=1250, height=24 * len(labels) + 230, margin={"l": 230, "r": 110, "t": 130, "b": 60}, coloraxis=SCALE
    )
    return grid.update_xaxes(showgrid=False).update_yaxes(autorange="reversed", showgrid=False)


def _embeddings(spectra: Sequence[Row]) -> go.Figure:
    columns = [*(f"k={k}" for k in FREQUENCIES), "line"]
    names = list(dict.fromkeys(row["checkpoint"] for row in spectra))
    titles = ["embedding W_E", "unembedding W_U"]
    grid = make_subplots(cols=2, shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.03)
    ramp = spectrum(np.arange(10.0)[:, None])
    labels = [*map(_short, names), "untrained, mean", "a straight line", "random rows, expected"]
    for number, matrix in enumerate(("W_E", "W_U"), start=1):
        rows = where(spectra, matrix=matrix, model="trained")
        trained = {row["checkpoint"]: [row[column] for column in columns] for row in rows}
        start = where(spectra, matrix=matrix, model="untrained")
        z = [trained.get(name, [math.nan] * len(columns)) for name in names]
        z += [[mean(start, column) for column in columns], [ramp[column] for column in columns]]
        _heat(grid, [*z, [2 / 9] * 4 + [1 / 9] * 2], [*map(str, FREQUENCIES), "line"], labels, 1, number)
    subtitle = (
        "Share of the ten rows' variance at frequencies 1 to 5 (they add to 1), and in a straight line of the digit."
    )
    look = figure("Digits in the Fourier basis", subtitle)
    grid.update_layout(look.layout).update_layout(
        width=1000, height=26 * len(labels) + 190, margin={"l": 190, "r": 110, "t": 110, "b": 60}, coloraxis=SCALE
    )
    grid.update_xaxes(type="category", showgrid=False, title={"text": "frequency", "standoff": 4})
    return grid.update_yaxes(autorange="reversed", showgrid=False)
