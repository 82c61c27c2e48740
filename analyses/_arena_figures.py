"""The arena's figure: who is wrong where, and at what cost."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analyses._arena_forms import HILL, KERNEL
from workbench.structure import CLASSES

if TYPE_CHECKING:
    import plotly.graph_objects as go

Row = dict[str, Any]

NONE = "none wrong"  # at the axis's foot, where no logarithm would be
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")  # by place among the seeds of a shape
WIDE = 0.84  # of a class's column, over which its forms stand side by side


def arena_figure(rows: Sequence[Row], costs: Sequence[Row]) -> "go.Figure":
    """Left, share wrong by class and form with 95% intervals; right, multiply-adds an answer against examples."""
    from workbench.figures import figure

    looks = _looks(rows)
    here = [row for row in rows if row["grouping"] == "class"]
    least = min(1 / row["n"] for row in here)
    floor = 10.0 ** (math.floor(math.log10(least)) - 0.5)
    whole = figure(
        "Decoders, the enumerated Hill circuit and the kernel machine on the same problems",
        "left: share answered wrong, 95% Wilson intervals; hollow, at the foot: none wrong (of some hundreds or "
        "more, table `categories`)<br>S addition, M subtraction with answer of at least 0, N negative answer; the "
        "number is the longest chain",
        width=1400,
        height=640,
    ).set_subplots(
        rows=1, cols=2, column_widths=[0.72, 0.28], horizontal_spacing=0.09,
        subplot_titles=("who is wrong where", "what an answer costs"),
    )  # fmt: skip
    _wrong(whole, here, looks, floor)
    _costs(whole, costs, looks)
    corner = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.2, "yanchor": "top"}
    return whole.update_layout(margin={"t": 140, "b": 170}, legend=corner)


def _looks(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Marks of each form: a colour a kind, a symbol a seed; the exact forms are stars."""
    from workbench.figures import BLACK, BLUE, GREEN, ORANGE, PALETTE, PURPLE, SKY, VERMILLION

    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    colours = {HILL: BLACK, KERNEL: GREEN}
    free = [SKY, BLUE, ORANGE, VERMILLION, PURPLE, *PALETTE]
    colours |= {kind: free[at % len(free)] for at, kind in enumerate(k for k in kinds if k not in colours)}
    looks: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["form"] in looks:
            continue
        seed = sum(look["kind"] == row["kind"] for look in looks.values())
        symbol = "star" if row["kind"] in (HILL, KERNEL) else SYMBOLS[seed % len(SYMBOLS)]
        looks[row["form"]] = {"kind": row["kind"], "color": colours[row["kind"]], "symbol": symbol}
    return looks


def _wrong(whole: "go.Figure", rows: Sequence[Row], looks: dict[str, dict[str, Any]], floor: float) -> None:
    from workbench.figures import error_bars

    names = [name for name in CLASSES if any(row["category"] == name for row in rows)]
    for at, (form, look) in enumerate(looks.items()):
        here = [row for row in rows if row["form"] == form]
        aside = WIDE * ((at + 0.5) / len(looks) - 0.5)
        missed = [row for row in here if row["right"] < row["n"]]
        marks = {"color": look["color"], "symbol": look["symbol"], "size": 8}
        shares = [1 - row["accuracy"] for row in missed]
        low, high = ([max(1 - row[end], floor) for row in missed] for end in ("high", "low"))
        whole.add_scatter(
            x=[names.index(row["category"]) + aside for row in missed], y=shares, mode="markers", name=form,
            marker=marks, error_y={**error_bars(shares, low, high), "width": 0}, legendgroup=form,
            showlegend=bool(missed),
            text=[f"{row['n'] - row['right']:,} of {row['n']:,} wrong" for row in missed], hovertemplate="%{text}",
            row=1, col=1,
        )  # fmt: skip
        none = [row for row in here if row["right"] == row["n"]]
        hollow = marks | {"color": "white", "size": 7, "line": {"color": look["color"], "width": 1.5}}
        whole.add_scatter(
            x=[names.index(row["category"]) + aside for row in none], y=[floor] * len(none), mode="markers", name=form,
            marker=hollow, text=[f"0 of {row['n']:,} wrong" for row in none], hovertemplate="%{text}", legendgroup=form,
            showlegend=not missed, row=1, col=1,
        )  # fmt: skip
    for edge in range(1, len(names)):
        line: Any = {"color": "#444444" if names[edge][0] != names[edge - 1][0] else "#E3E3E3", "width": 1}
        whole.add_vline(edge - 0.5, line=line, row=1, col=1)  # type: ignore[arg-type]
    whole.update_xaxes(
        range=[-0.5, len(names) - 0.5], tickvals=list(range(len(names))), ticktext=names, showgrid=False, row=1, col=1
    )
    decades = range(math.ceil(math.log10(floor)), 1)
    whole.update_yaxes(
        type="log", range=[math.log10(floor) - 0.2, 0.1], tickvals=[floor, *(10.0**power for power in decades)],
        ticktext=[NONE, *(f"{10.0**power:g}" for power in decades)], title_text="share of the class answered wrong",
        row=1, col=1,
    )  # fmt: skip


def _costs(whole: "go.Figure", costs: Sequence[Row], looks: dict[str, dict[str, Any]]) -> None:
    marks = {look["kind"]: look for look in reversed(looks.values())}
    zero = 100.0  # where no examples stand on a logarithmic axis
    dearest = max((row["multiply-adds"] for row in costs if row["trained parameters"]), default=0)
    for row in costs:
        look, learned = marks[row["kind"]], row["trained parameters"] > 0
        label = row["kind"] if not learned else "decoders" if row["multiply-adds"] == dearest else ""
        whole.add_scatter(
            x=[max(row["examples"], zero)], y=[row["multiply-adds"]], mode="markers+text", text=[label],
            textposition="top center", showlegend=False,
            marker={"color": look["color"], "symbol": look["symbol"], "size": 11}, cliponaxis=False, row=1, col=2,
            hovertemplate=f"{row['examples']:,} examples, {row['multiply-adds']:,} multiply-adds<extra></extra>",
        )  # fmt: skip
    whole.update_xaxes(
        type="log", range=[1.2, 7.4], tickvals=[zero, 10**3, 10**4, 10**5, 10**6, 10**7],
        ticktext=["none", "1,000", "", "100,000", "", "10 million"], title_text="examples, or templates", row=1, col=2,
    )  # fmt: skip
    whole.update_yaxes(
        type="log",
        range=[0.5, 7.5],
        exponentformat="power",
        dtick=1,
        title_text="multiply-adds an answer",
        row=1,
        col=2,
    )
