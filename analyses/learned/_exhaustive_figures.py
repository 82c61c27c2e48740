"""The figures of analysis `exhaustive`."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.learned._exhaustive_kinds import OFF_BY, PASSING
from analyses.learned._exhaustive_tables import OPERATORS
from workbench.exhaustive.tally import PLACES
from workbench.structure import CLASSES

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")  # by place among the seeds of a shape
Looks = dict[str, dict[str, Any]]
NONE = "none wrong"  # at the axis's end, where no logarithm would be


def figures(tables: "Mapping[str, pd.DataFrame]") -> "dict[str, go.Figure]":
    """`classes` and `digits`; with lists of wrong problems also `kinds` and `passing-pairs`."""
    looks, kinds = _looks(tables["errors"]), tables["kinds"]
    found = {"classes": classes_figure(tables["classes"], looks), "digits": digits_figure(tables["digits"], looks)}
    return found | ({"kinds": kinds_figure(kinds), "passing-pairs": passing_figure(kinds, looks)} if len(kinds) else {})


def _looks(models: "pd.DataFrame") -> Looks:
    """Name, colour and symbol of each model: a colour a shape, a symbol a seed."""
    from workbench.figures import PALETTE

    shapes = dict(zip(models["model"], models["shape"], strict=True))
    order = list(dict.fromkeys(shapes.values()))
    looks: Looks = {}
    for model, shape in shapes.items():
        seed = sum(shapes[other] == shape for other in looks)
        marks = {"color": PALETTE[order.index(shape) % len(PALETTE)], "symbol": SYMBOLS[seed % len(SYMBOLS)]}
        looks[model] = {"name": model.removeprefix("arithmetic-"), "marks": marks}
    return looks


def _floor(rates: Any) -> float:
    """A power of ten below every error rate but zero; it stands for none wrong on a logarithmic axis."""
    above = [rate for rate in rates if rate > 0]
    return 10.0 ** (math.floor(math.log10(min(above, default=0.1))) - 1)


def _add_models(
    shown: "go.Figure",
    table: "pd.DataFrame",
    looks: Looks,
    *,
    x: str,
    floor: float,
    mode: str,
    operator: str = "",
    **where: Any,
) -> None:
    """Share wrong of each model over a column `x`, of one operator if told; hollow markers at `floor` where it is 0."""
    for model, look in looks.items():
        rows = table.query(f"model == {model!r}")
        if operator:
            rows = rows.query(f"operator == {operator!r}")
        shares, words = rows["wrong"] / rows["n"], zip(rows["wrong"], rows["n"], strict=True)
        marks, first = {**look["marks"], "size": 8}, _is_first(shown, model)
        shown.add_scatter(
            x=rows[x], y=np.maximum(shares, floor), mode=mode, line={"color": marks["color"], "width": 1}, marker=marks,
            text=[f"{wrong:,} of {n:,} wrong" for wrong, n in words], hovertemplate="%{text}", name=look["name"],
            legendgroup=model, showlegend=first, **where,
        )  # fmt: skip
        none = rows[x][rows["wrong"] == 0]
        if len(none):
            shown.add_scatter(
                x=none, y=[floor] * len(none), mode="markers", marker={**marks, "color": "white", "size": 4},
                legendgroup=model, showlegend=False, hoverinfo="skip", name=f"{look['name']}, {NONE}", **where,
            )  # fmt: skip


def _is_first(shown: "go.Figure", group: str) -> bool:
    """Whether no trace of a legend group is there yet, so that the next one may stand in the legend."""
    return group not in {trace.legendgroup for trace in shown.data}  # type: ignore[attr-defined]


def classes_figure(classes: "pd.DataFrame", looks: Looks) -> "go.Figure":
    """Error rate by class and model on a logarithmic axis; models without an error in a class stand at its foot."""
    from workbench.figures import GREY, figure

    sizes = dict(zip(classes["class"], classes["n"], strict=True))
    names = [name for name in CLASSES if name in sizes]
    floor = _floor([*classes["rate"], *(1 / n for n in sizes.values())])
    shown = figure(
        "Error rate by class of problem",
        "every problem counted; hollow, at the foot: none wrong. Grey: the rate that one wrong problem makes.<br>"
        "S addition, M subtraction with answer of at least 0, N negative answer; the number is the longest chain",
        y="share of the class's problems answered wrong",
        width=1250,
        height=640,
    )
    least = [1 / sizes[name] for name in names]
    wide = [step for at in range(len(names)) for step in (at - 0.42, at + 0.42, None)]
    high = [step for rate in least for step in (rate, rate, None)]
    shown.add_scatter(
        x=wide, y=high, mode="lines", line={"color": GREY, "width": 1.5}, name="one wrong problem", hoverinfo="skip"
    )
    models = list(looks)
    aside = [0.8 * ((models.index(model) + 0.5) / len(models) - 0.5) for model in classes["model"]]
    placed = classes.assign(at=[names.index(name) + a for name, a in zip(classes["class"], aside, strict=True)])
    _add_models(shown, placed, looks, x="at", floor=floor, mode="markers")
    for edge in [at - 0.5 for at in range(1, len(names)) if names[at][0] != names[at - 1][0]]:
        shown.add_vline(edge, line={"color": "#444444", "width": 1})
    shown.update_xaxes(
        range=[-0.5, len(names) - 0.5], tickvals=list(range(len(names))), showgrid=False,
        ticktext=[f"{name}<br>n={_short(sizes[name])}" for name in names],
    )  # fmt: skip
    decades = list(range(round(math.log10(floor)) + 1, 1))
    shown.update_yaxes(
        type="log", range=[math.log10(floor) - 0.3, 0.15], tickvals=[floor, *(10.0**power for power in decades)],
        ticktext=[NONE, *(f"{10.0**power:g}" for power in decades)], title_standoff=16,
    )  # fmt: skip
    return shown.update_layout(margin={"t": 110})


def _short(n: int) -> str:
    """45,000 as 45k and 77,551,750 as 77.6M."""
    return f"{n / 1e6:.3g}M" if n >= 1e6 else f"{n / 1e3:.3g}k" if n >= 1e3 else str(n)


def digits_figure(digits: "pd.DataFrame", looks: Looks) -> "go.Figure":
    """Accuracy by digit place, operator and model, on an axis logarithmic in the share wrong."""
    from workbench.figures import figure

    floor = _floor(digits["wrong"] / digits["n"])
    operators = [name for name in OPERATORS if name in set(digits["operator"])]
    whole = figure(
        "Accuracy by digit place",
        "every problem counted, the right digits before each given; axis logarithmic in the share wrong; hollow, on "
        f"top: {NONE}",
        width=1100,
        height=560,
    ).set_subplots(rows=1, cols=len(operators), shared_yaxes=True, subplot_titles=operators, horizontal_spacing=0.04)
    for column, operator in enumerate(operators, start=1):
        where = {"operator": operator, "row": 1, "col": column}
        _add_models(whole, digits, looks, x="place", floor=floor, mode="lines+markers", **where)
    decades = list(range(round(math.log10(floor)) + 1, 1))
    whole.update_yaxes(
        type="log", range=[0.15, math.log10(floor) - 0.3], tickvals=[floor, *(10.0**power for power in decades)],
        ticktext=["1", *(f"{1 - 10.0**power:.{max(0, -power)}f}" for power in decades)],
    )  # fmt: skip
    whole.update_xaxes(title_text="digit of the answer, most significant first", categoryarray=list(PLACES))
    whole.update_yaxes(title_text="share of digits right", title_standoff=16, col=1)
    return whole.update_layout(margin={"t": 110})


def kinds_figure(kinds: "pd.DataFrame") -> "go.Figure":
    """By what wrong answers are off, by model and operator: shares of the wrong answers, found and by chance."""
    from workbench.figures import BLUE, GREEN, GREY, ORANGE, SKY, VERMILLION, figure

    bars: dict[str, dict[str, tuple[int, float]]] = {}
    for row in kinds.query("grouping == 'off by'").to_dict(orient="records"):
        bar = bars.setdefault(f"{row['model'].removeprefix('arithmetic-')}, {row['operator']}", {})
        bar[row["category"]] = row["wrong"], row["wrong_by_chance"]
    totals = [sum(wrong for wrong, _ in bar.values()) for bar in bars.values()]
    labels = [f"{name}, {total:,} wrong" for name, total in zip(bars, totals, strict=True)]
    whole = figure(
        "By what wrong answers are off",
        "one: by a power of ten; several: by a sum of neighbouring ones; missed: as if a carry or borrow were left out"
        "<br>by chance: expected if each wrong digit were any other digit, at the same places",
        width=1200,
        height=200 + 30 * len(bars),
    ).set_subplots(
        rows=1, cols=2, shared_yaxes=True, column_widths=[0.6, 0.4], subplot_titles=("found", "by chance"),
        horizontal_spacing=0.03,
    )  # fmt: skip
    for category, colour in zip(OFF_BY, (BLUE, VERMILLION, SKY, ORANGE, GREY, GREEN), strict=True):
        for column in (0, 1):
            shares = [bar[category][column] / total for bar, total in zip(bars.values(), totals, strict=True)]
            whole.add_bar(
                y=labels, x=shares, orientation="h", name=category, legendgroup=category, showlegend=not column,
                marker_color=colour, hovertemplate="%{x:.3f}", row=1, col=1 + column,
            )  # fmt: skip
    whole.update_xaxes(range=[0, 1], title_text="share of wrong answers")
    whole.update_yaxes(autorange="reversed", showgrid=False)
    return whole.update_layout(barmode="stack", margin={"t": 120}, legend_traceorder="normal")


def passing_figure(kinds: "pd.DataFrame", looks: Looks) -> "go.Figure":
    """How many passing pairs lie below the first wrong digit, by operator and model, beside all problems."""
    from workbench.figures import GREY, figure

    rows = kinds.query(f"grouping == {PASSING!r}")
    operators = [name for name in OPERATORS if name in set(rows["operator"])]
    whole = figure(
        "Pairs that pass a carry or borrow on, right below the first wrong digit",
        "shares of the wrong answers; a pair passes if its digits sum to nine, in subtractions if they are equal<br>"
        "bars: of any problems of the operator, asked of the same digits",
        width=1100,
        height=540,
    ).set_subplots(rows=1, cols=len(operators), shared_yaxes=True, subplot_titles=operators, horizontal_spacing=0.04)
    for column, operator in enumerate(operators, start=1):
        here = rows.query(f"operator == {operator!r}")
        sums = here.groupby("category").agg({"wrong": "sum", "wrong_by_chance": "sum"})
        whole.add_bar(
            x=list(sums.index), y=sums["wrong_by_chance"] / sums["wrong"].sum(), marker_color=GREY, opacity=0.4,
            name="any problems", showlegend=column == 1, legendgroup="any", row=1, col=column,
        )  # fmt: skip
        for model in dict.fromkeys(here["model"]):
            look, own = looks[model], here.query(f"model == {model!r}")
            whole.add_scatter(
                x=own["category"], y=own["share"], mode="lines+markers", marker={**look["marks"], "size": 8},
                line={"color": look["marks"]["color"], "width": 1}, name=look["name"], legendgroup=model,
                showlegend=_is_first(whole, model), hovertemplate="%{y:.4f}", row=1, col=column,
            )  # fmt: skip
    whole.update_xaxes(title_text="passing pairs in a row", type="category")
    whole.update_yaxes(range=[-0.03, 1]).update_yaxes(title_text="share of wrong answers", col=1)
    return whole.update_layout(margin={"t": 120})
