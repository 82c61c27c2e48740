"""The figures of `ntk-sbn`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from analyses.kernel._ntk_sbn_tables import bound
from workbench.ntk import sbn
from workbench.ntk.assembler import HALT, Program, load
from workbench.ntk.lockstep import compare
from workbench.ntk.machine import Machine

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Trace:
    """One run: the next instruction and every word, at the start and after each instruction, by the machine."""

    program: Program
    pc: list[int]
    words: list[list[int]]
    same: list[bool]  # the interpreter has the same, in every bit


def trace(name: str, values: dict[str, int]) -> Trace:
    """A built-in program from these first values, until it halts."""
    program = load(name).starting(values)
    size, found = program.size, Trace(program, [], [], [])

    def watch(instruction: int, states: torch.Tensor, expected: torch.Tensor) -> None:
        if found.pc and found.pc[-1] == size.instructions:
            return
        found.pc.append(int(sbn.pc(size, states)))
        found.words.append(sbn.memory(size, states)[0].tolist())
        found.same.append(bool((states == expected).all()))

    start = torch.zeros(1, dtype=torch.long)
    compare(Machine(sbn.templates(size)), size, program.codes(1), program.memory(1, {}), start, 1000, watch)
    return found


def trace_table(traces: Sequence[Trace]) -> "pd.DataFrame":
    """One row a run, instruction and cell."""
    import pandas as pd

    return pd.DataFrame(
        {"program": one.program.name, "after": after, "pc": one.pc[after], "cell": cell, "value": value,
         "interpreter_has_it_too": one.same[after]}
        for one in traces
        for after, words in enumerate(one.words)
        for cell, value in zip(one.program.cells, words, strict=True)
    )  # fmt: skip


def trace_figure(one: Trace) -> "go.Figure":
    """The next instruction above, the words below; a number is written where a word changes."""
    from workbench.figures import BLUE, DIVERGING, VERMILLION, figure

    program, after = one.program, list(range(len(one.pc)))
    first = ", ".join(f"{c} = {v}" for c, v in zip(program.cells, program.initial, strict=True))
    agree = "agrees in every bit after every instruction" if all(one.same) else "differs where marked"
    whole = figure(
        f"The program {program.name} on the kernel machine",
        f"from {first}; {program.size.iterations} iterations an instruction; an ordinary interpreter {agree}",
        width=1300,
        height=300 + 26 * (len(program.code) + len(program.cells)),
    ).set_subplots(
        rows=2,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.04,
        row_heights=[len(program.code) + 1, len(program.cells)],
    )
    whole.add_scatter(
        x=after, y=one.pc, mode="lines+markers", line={"color": BLUE, "shape": "hv", "width": 1.5},
        name="next instruction", showlegend=False, row=1, col=1,
    )  # fmt: skip
    if wrong := [place for place in after if not one.same[place]]:
        whole.add_scatter(
            x=wrong, y=[one.pc[place] for place in wrong], mode="markers", name="interpreter differs",
            marker={"color": VERMILLION, "symbol": "x", "size": 11}, row=1, col=1,
        )  # fmt: skip
    lines = [f"{place}: {program.line(place)}" for place in range(len(program.code))]
    whole.update_yaxes(tickvals=list(range(len(lines) + 1)), ticktext=[*lines, HALT], row=1, col=1)
    whole.update_yaxes(autorange="reversed", row=1, col=1)
    columns = list(zip(*one.words, strict=True))
    text = [
        [str(v) if place == 0 or v != column[place - 1] else "" for place, v in enumerate(column)] for column in columns
    ]
    whole.add_heatmap(
        x=after, y=list(program.cells), z=columns, text=text, texttemplate="%{text}", colorscale=DIVERGING, zmid=0,
        colorbar={"title": "word", "len": 0.5, "y": 0, "yanchor": "bottom"}, xgap=1, ygap=1,
        name="word", row=2, col=1,
    )  # fmt: skip
    whole.update_yaxes(autorange="reversed", title_text="cell", row=2, col=1)
    return whole.update_xaxes(title_text="after instruction", row=2, col=1)


def load_figure(loads: "pd.DataFrame", size: sbn.Size) -> "go.Figure":
    """Above, the largest load of any bit at each m against what it must stay below; under it, the flips by m."""
    from workbench.figures import BLUE, GREY, VERMILLION, figure

    paddings = sorted(int(padding) for padding in loads["padding"].unique())
    whole = figure(
        "The sign rule on the multiplication program",
        "load T (m - 1/g_m) / S, the largest of any bit at each m that occurs; a bit flips where its load reaches "
        "N + 2 pi - 1",
        width=1200,
        height=760,
        barmode="overlay",
    ).set_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.05, row_heights=[3, 1])
    looks = ((paddings[0], VERMILLION, "x", 8), (paddings[-1], BLUE, "circle-open", 13))
    every = list(range(1, size.most_matched + 1))
    whole.add_scatter(
        x=every, y=bound(size.most_written, size.most_matched), mode="lines", row=1, col=1,
        name=f"highest possible: T = {size.most_written}, S = 1", line={"color": GREY, "dash": "dash"},
    )  # fmt: skip
    for padding, colour, mark, points in looks:
        here = loads[loads["padding"] == padding]
        whole.add_scatter(
            x=here["m"], y=here["load"], mode="markers", name=f"runs with padding {padding}",
            marker={"color": colour, "size": points, "symbol": mark, "line": {"width": 2, "color": colour}},
            row=1, col=1,
        )  # fmt: skip
        whole.add_bar(x=here["m"], y=here["flips"], marker_color=colour, showlegend=False, name="flips", row=2, col=1)
    for padding in paddings:
        limit = float(loads.loc[loads["padding"] == padding, "limit"].iloc[0])
        flips = int(loads.loc[loads["padding"] == padding, "flips"].sum())
        whole.add_scatter(
            x=[0, size.most_matched], y=[limit, limit], mode="lines", line={"color": "#222222", "width": 1},
            showlegend=False, hoverinfo="skip", row=1, col=1,
        )  # fmt: skip
        whole.add_annotation(
            x=0, y=limit, text=f"N + 2 pi - 1, padding {padding}: {flips:,} flips", showarrow=False, xanchor="left",
            yanchor="top" if padding == paddings[1] else "bottom", font={"size": 12}, row=1, col=1,
        )  # fmt: skip
    whole.update_yaxes(title_text="load", row=1, col=1).update_yaxes(title_text="flips", row=2, col=1)
    whole.update_xaxes(title_text="matched templates m", row=2, col=1)
    return whole.update_layout(legend={"x": 0.99, "xanchor": "right", "y": 0.36, "yanchor": "bottom"})


def grid_figure(grid: "pd.DataFrame") -> "go.Figure":
    """Where the unpadded program fails: the pairs of factors, by the first flip that is foretold and observed."""
    from workbench.figures import BLUE, GREY, VERMILLION, figure

    whole = figure(
        "The multiplication program without padding",
        "each pair of factors x, y; the number is the instruction in which a bit first flips on the machine",
        x="x",
        y="y",
        width=1300,
        height=820,
    )
    fails = grid[grid["observed"] > 0]
    fine = grid[(grid["observed"] == 0) & (grid["foretold"] == 0)]
    whole.add_scatter(
        x=fine["x"], y=fine["y"], mode="markers", name=f"no flip foretold, none observed: {len(fine)} pairs",
        marker={"color": GREY, "symbol": "circle-open", "size": 11},
    )  # fmt: skip
    hits, surprises = fails[fails["foretold"] == fails["observed"]], grid[grid["foretold"] != grid["observed"]]
    whole.add_scatter(
        x=hits["x"], y=hits["y"], mode="markers+text", text=[str(-(-at // 11)) for at in hits["observed"]],
        name=f"first flip in the iteration foretold: {len(hits)} pairs",
        marker={"color": BLUE, "size": 20}, textfont={"color": "white", "size": 10},
    )  # fmt: skip
    whole.add_scatter(
        x=surprises["x"], y=surprises["y"], mode="markers", name=f"otherwise: {len(surprises)} pairs",
        marker={"color": VERMILLION, "symbol": "x", "size": 14}, visible=True if len(surprises) else "legendonly",
    )  # fmt: skip
    whole.update_xaxes(range=[-1, 32]).update_yaxes(range=[-1, 32])
    return whole.update_layout(legend={"x": 0.99, "xanchor": "right", "y": 0.98, "yanchor": "top"})
