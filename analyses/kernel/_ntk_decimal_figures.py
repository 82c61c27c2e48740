"""The figures of analysis `ntk-decimal`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.ntk import kernel
from workbench.ntk.decimal import Decimal
from workbench.ntk.decimal_trace import Trace, trace
from workbench.structure import CLASSES
from workbench.task import Problems, format_problems

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

TITLES = {
    "a": "a", "op": "op", "b": "b", "sum": "sums of digits", "dif": "differences of digits", "carry": "carries",
    "ab": "borrows of a - b", "ba": "borrows of b - a", "sign": "sign", "out": "answer",
}  # fmt: skip
EMPTY, KEPT, NEW = 0.0, 0.5, 1.0
GAP = 0.6  # columns between two blocks


def trace_figure(machine: Decimal, problems: Problems) -> "go.Figure":
    """The state block by block, an iteration a row, of each problem: what is there, and what has just come."""
    from workbench.figures import GREY, ORANGE, SKY, figure

    texts = format_problems(problems)
    fields = zip(problems.a.tolist(), problems.b.tolist(), problems.subtract.tolist(), strict=True)
    traces = [trace(machine, a, b, subtract) for a, b, subtract in fields]
    whole = figure(
        f"{' and '.join(texts)} on the kernel machine",
        "state after each iteration, highest places first; orange has just come, blue was there before, white is not "
        "known; m: matched templates",
        width=1250,
        height=230 + 44 * sum(len(one.snapshots) for one in traces),
    ).set_subplots(
        rows=len(traces), cols=1, vertical_spacing=0.18, row_heights=[len(one.snapshots) for one in traces],
        subplot_titles=texts,
    )  # fmt: skip
    colours = [[0, "white"], [0.25, "white"], [0.25, SKY], [0.75, SKY], [0.75, ORANGE], [1, ORANGE]]
    for row, one in enumerate(traces, start=1):
        x, heads, y, z, text = _grid(one)
        whole.add_heatmap(
            x=x, y=y, z=z, text=text, texttemplate="%{text}", xgap=2, ygap=2, zmin=0, zmax=1, colorscale=colours,
            showscale=False, hoverinfo="skip", row=row, col=1,
        )  # fmt: skip
        whole.update_xaxes(
            tickvals=[at for at, _ in heads], ticktext=[head for _, head in heads], showgrid=False, ticks="",
            side="bottom", linecolor=GREY, row=row, col=1,
        )  # fmt: skip
        labels = [f"{shot.step}, m = {shot.matched}" if shot.step else "start" for shot in one.snapshots]
        whole.update_yaxes(
            tickvals=y, ticktext=labels, autorange="reversed", showgrid=False, title_text="iteration",
            title_standoff=14, row=row, col=1,
        )  # fmt: skip
    return whole.update_layout(margin={"t": 125})


def _grid(one: Trace) -> tuple[list[float], list[tuple[float, str]], list[int], list[list[float]], list[list[str]]]:
    """Columns with an empty one between blocks, where each block's name stands, rows, and cells with their texts."""
    first = one.snapshots[0].blocks
    columns: list[tuple[str, int] | None] = []
    x: list[float] = []
    heads, at = [], 0.0
    for block, texts in first.items():
        heads.append((at + (len(texts) - 1) / 2, TITLES[block]))
        columns += [*((block, place) for place in range(len(texts))), None]
        x += [*(at + place for place in range(len(texts))), at + len(texts) - 1 + (1 + GAP) / 2]
        at += len(texts) + GAP
    z, text, before = [], [], dict.fromkeys(first)
    for shot in one.snapshots:
        cells = ["" if column is None else shot.blocks[column[0]][column[1]] for column in columns]
        old = [
            column is not None and (there := before[column[0]]) is not None and there[column[1]] == cell
            for column, cell in zip(columns, cells, strict=True)
        ]
        z.append([EMPTY if not cell else KEPT if same else NEW for cell, same in zip(cells, old, strict=True)])
        text.append(cells)
        before = dict(shot.blocks)
    return x, heads, list(range(len(z))), z, text


def means_figure(points: "pd.DataFrame", asked: int) -> "go.Figure":
    """The mean of a bit for every m, S and T that occurred, by m."""
    from workbench.figures import BLUE, GREEN, GREY, PALETTE, VERMILLION, figure

    whole = figure(
        "Means of the bits, by how many templates match",
        f"every (m, S, T) that occurred in {asked:,} problems: S of the m matched templates and T of all write the bit"
        "<br>a bit becomes 1 above the line at 0; dashed: half of g_m, what one matched template adds",
        x="matched templates m",
        y="mean g_m S - h_m T",
        width=1000,
        height=560,
    )
    known = {0: BLUE, 1: VERMILLION, 2: GREEN}
    for s, rows in points.groupby("S"):
        writers = int(str(s))
        aside, symbol = 0.12 * (writers - 1), "circle" if writers else "line-ew-open"
        whole.add_scatter(
            x=rows["m"] + aside, y=rows["mean"], mode="markers", name=f"S = {writers}",
            marker={"color": known.get(writers, PALETTE[-2]), "size": 7, "symbol": symbol},
            text=[f"T = {t}" for t in rows["T"]], hovertemplate="m = %{x:.0f}, %{text}: %{y:.5f}",
        )  # fmt: skip
    m = np.arange(1, max(points["m"]) + 1)
    import torch

    half = kernel.gain(torch.from_numpy(m)).numpy() / 2
    whole.add_scatter(x=m, y=half, mode="lines", name="g_m / 2", line={"color": GREY, "dash": "dash"}, hoverinfo="skip")
    line: Any = {"color": "#222222", "width": 1}
    whole.add_hline(0, line=line)
    return whole.update_layout(margin={"t": 110}).update_xaxes(dtick=1)


def iterations_figure(rows: "pd.DataFrame") -> "go.Figure":
    """Share of the problems of each class whose answer stands after so many iterations."""
    from workbench.figures import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, figure

    names = [name for name in CLASSES if name in set(rows["class"])]
    sizes = dict(zip(rows["class"], rows["n"], strict=True))
    whole = figure(
        "Iterations until the answer stands, by class of problem",
        "S addition, M subtraction with answer of at least 0, N negative answer; the number is the longest chain<br>"
        "a carry or borrow is known one place an iteration where a pair of digits only hands it on, whether or not one "
        "arrives",
        y="share of the class's problems",
        width=1100,
        height=560,
        barmode="stack",
    )
    for steps, colour in zip(
        sorted(set(rows["iterations"])), (SKY, BLUE, ORANGE, VERMILLION, PURPLE, GREEN), strict=False
    ):
        chosen = rows[rows["iterations"] == steps]
        here = dict(zip(chosen["class"], chosen["problems"], strict=True))
        whole.add_bar(
            x=[f"{name}<br>n={sizes[name]:,}" for name in names], y=[here.get(name, 0) / sizes[name] for name in names],
            name=f"{steps} iterations", marker_color=colour, hovertemplate="%{y:.4f}",
        )  # fmt: skip
    return whole.update_layout(margin={"t": 110}).update_xaxes(showgrid=False)
