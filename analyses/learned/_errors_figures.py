"""Figures of `errors`: shared errors of every two models, how many models err at once, what wrong digits are."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses.learned._ablation_figures import groups, only
from analyses.learned._errors_agreement import FEW
from analyses.learned._errors_patterns import GROUPS
from analyses.learned._wrong_digits import KINDS
from workbench.exhaustive.tally import PLACES
from workbench.figures import BLUE, DIVERGING, GREY, ORANGE, PALETTE, SKY, VERMILLION, figure

Tables = Mapping[str, pd.DataFrame]
LEVELS = {"shared": "beyond chance", "shared_within": "beyond what kinds of digit pairs explain"}


def figures(tables: Tables) -> dict[str, go.Figure]:
    """`agreement`, `times`, `kinds` and `direction`, each where there is something to show."""
    makers = {"pairs": ("agreement", _agreement), "times": ("times", _times), "kinds": ("kinds", _kinds)}
    found = {name: make(tables[table]) for table, (name, make) in makers.items() if table in tables}
    if "agreement" in found and not found["agreement"].data:
        del found["agreement"]
    if "kinds" in tables and len(rows := only(tables["kinds"], digits="every", group=GROUPS[1:], place=PLACES[1:])):
        found["direction"] = _direction(rows)
    return found


def _short(name: str) -> str:
    return name.removeprefix("arithmetic-")


def _agreement(pairs: pd.DataFrame) -> go.Figure:
    """What two models share of the errors they could share: a map an operator and level, of models against models.

    Pairs of which a model errs on fewer than FEW problems are left empty, and maps without any other are left out.
    """
    few = pairs[["first_wrong", "second_wrong"]].min(axis=1) < FEW
    pairs = pairs.assign(**{level: pairs[level].mask(few) for level in LEVELS})
    asked = [(key, rows) for key, rows in groups(pairs, "asked", "operator") if len(rows.dropna(subset="shared"))]
    if not asked:
        return go.Figure()
    names = {key: list(dict.fromkeys([*rows["first"], *rows["second"]])) for key, rows in asked}
    longest = max(len(_short(name)) for of in names.values() for name in of) * 6.5  # pixels
    cell, top, left = 46, 150, 40 + longest
    below = 30 + longest * 0.7  # labels at 45 degrees
    gap = below + 45  # and a title of two lines
    size = cell * max(map(len, names.values()))
    width, height = 2 * size + 40, len(asked) * size + (len(asked) - 1) * gap
    grid = make_subplots(
        rows=len(asked), cols=2, shared_yaxes=True, horizontal_spacing=40 / width,
        vertical_spacing=gap / height if len(asked) > 1 else 0,
        subplot_titles=[f"{key[1]}, {key[0]}<br>{level}" for key, _ in asked for level in LEVELS.values()],
    )  # fmt: skip
    for i, (key, rows) in enumerate(asked, start=1):
        order = names[key]
        for j, level in enumerate(LEVELS, start=1):
            values = np.full((len(order), len(order)), np.nan)
            for first, second, value in zip(rows["first"], rows["second"], rows[level], strict=True):
                at = order.index(first), order.index(second)
                values[at] = values[at[::-1]] = value
            labels = [_short(name) for name in order]
            text = [["" if np.isnan(value) else f"{value:.2f}" for value in line] for line in values]
            heat = go.Heatmap(
                z=values, x=labels, y=labels, text=text, texttemplate="%{text}", textfont={"size": 11}, xgap=1, ygap=1,
                coloraxis="coloraxis", hovertemplate="%{y}, %{x}: %{z:.3f}<extra></extra>",
            )  # fmt: skip
            grid.add_trace(heat, row=i, col=j)
    bar = {"title": {"text": "shared"}, "thickness": 14, "lenmode": "pixels", "len": min(300, height)}
    bar |= {"y": 1, "yanchor": "top"}
    look = figure(
        "Do two models get the same problems wrong?",
        "0: no more shared errors than by chance, below: fewer; 1: all that the numbers of errors allow (Cohen's kappa "
        f"over its highest value)<br>right: chance within each pattern of the four digit pairs<br>empty: a model with "
        f"fewer than {FEW} wrong problems, or chance alone shares all there is",
        coloraxis={"colorscale": DIVERGING, "cmin": -1, "cmax": 1, "colorbar": bar},
        width=max(width + left + 120, 960),
        height=height + top + below,
    )
    grid.update_layout(look.layout).update_layout(margin={"l": left, "r": 120, "t": top, "b": below})
    grid.update_annotations(font_size=13)
    grid.update_xaxes(showgrid=False, tickangle=-45, tickfont_size=11)
    return grid.update_yaxes(showgrid=False, autorange="reversed", tickfont_size=11)


def _times(times: pd.DataFrame) -> go.Figure:
    """Problems wrong in exactly k models, found and by chance, on a logarithmic axis."""
    panels = list(groups(times, "asked", "models", "operator"))
    lines = -(-len(panels) // 2)
    series = (("observed", "found", BLUE), ("by_pattern", "by chance within kinds of digit pairs", ORANGE),
              ("by_chance", "by chance", GREY))  # fmt: skip
    whole = figure(
        "How many models get a problem wrong at once",
        "problems wrong in exactly so many models, logarithmic; by chance: they err independently at their rates<br>"
        "no bar: none, or fewer than 0.1 expected",
        width=1200,
        height=150 + 250 * lines,
    ).set_subplots(
        rows=lines, cols=2, subplot_titles=[f"{key[2]}: {key[1]}<br>{key[0]}" for key, _ in panels],
        vertical_spacing=0.3 / lines, horizontal_spacing=0.09,
    )  # fmt: skip
    for number, (_, rows) in enumerate(panels):
        i, j = divmod(number, 2)
        for column, name, colour in series:
            shown = rows[rows["times"] > 0]
            values = np.where(shown[column] >= 0.1, shown[column], np.nan)
            whole.add_bar(
                x=shown["times"], y=values, name=name, marker_color=colour, legendgroup=name, showlegend=number == 0,
                hovertemplate="%{y:,.1f}", row=i + 1, col=j + 1,
            )  # fmt: skip
    top = np.ceil(np.log10(times.loc[times["times"] > 0, [column for column, _, _ in series]].max().max())) + 0.3
    whole.update_yaxes(type="log", title={"text": "problems", "font_size": 13}, dtick=1, exponentformat="power")
    whole.update_yaxes(range=[-1, top], tickfont_size=11)
    whole.update_xaxes(dtick=1).update_xaxes(title={"text": "models that get it wrong", "font_size": 13}, row=lines)
    whole.update_annotations(font_size=13)
    legend = {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", "x": 0}
    return whole.update_layout(barmode="group", margin={"t": 130, "b": 100}, legend=legend)


def _kinds(kinds: pd.DataFrame) -> go.Figure:
    """What the first wrong digit is, by model and group of problems, beside chance."""
    rows = only(kinds, digits="first", place="all")
    labels = [
        f"{_short(name)}, {group}, {wrong:,} wrong"
        for name, group, wrong in zip(rows["checkpoint"], rows["group"], rows["wrong"], strict=True)
    ]
    whole = figure(
        "What the first wrong digit is",
        "carry: the right digits joined rightly, with what arrives from below wrong; direction: a subtraction the "
        "other way round;<br>operation: a sum for a difference or the reverse. By chance: any of the nine others",
        width=1200,
        height=210 + 22 * len(rows),
    ).set_subplots(
        rows=1, cols=2, shared_yaxes=True, column_widths=[0.6, 0.4], subplot_titles=("found", "by chance"),
        horizontal_spacing=0.03,
    )  # fmt: skip
    for kind, colour in zip(KINDS, (BLUE, VERMILLION, SKY, GREY), strict=True):
        for column, name in enumerate((kind, f"{kind}_by_chance"), start=1):
            whole.add_bar(
                y=labels, x=rows[name], orientation="h", name=kind, legendgroup=kind, showlegend=column == 1,
                marker_color=colour, hovertemplate="%{x:.3f}", row=1, col=column,
            )  # fmt: skip
    whole.update_xaxes(range=[0, 1], title_text="share of wrong problems")
    whole.update_yaxes(autorange="reversed", showgrid=False, tickfont_size=11)
    return whole.update_layout(barmode="stack", margin={"t": 120}, legend_traceorder="normal")


def _direction(rows: pd.DataFrame) -> go.Figure:
    """Of all wrong digits of subtractions, by place, how many are the other direction's; a line a model."""
    shapes = list(dict.fromkeys(rows["shape"]))
    whole = figure(
        "Wrong digits of subtractions that are the other direction's",
        "of all wrong digits of a place, each with right ones before it<br>"
        "dotted: by chance, any of the nine other digits",
        width=1100,
        height=520,
    ).set_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=GROUPS[1:], horizontal_spacing=0.04)
    named: set[str] = set()
    for (shape, _, group), here in groups(rows, "shape", "checkpoint", "group"):
        column = 1 + GROUPS[1:].index(group)
        marks = {"color": PALETTE[shapes.index(shape) % len(PALETTE)]}
        for values, name, line in ((here["direction"], shape, marks), (here["direction_by_chance"], "by chance", {})):
            control = name == "by chance"
            whole.add_scatter(
                x=here["place"], y=values, mode="lines" if control else "lines+markers", name=name, legendgroup=name,
                line={"color": GREY, "dash": "dot", "width": 1} if control else {**line, "width": 1.5},
                text=[f"{n:,} wrong" for n in here["wrong"]], hovertemplate="%{y:.3f} of %{text}",
                showlegend=name not in named, row=1, col=column,
            )  # fmt: skip
            named.add(name)
    whole.update_traces({"legendrank": 2000}, {"legendgroup": "by chance"})
    whole.update_xaxes(title_text="digit of the answer", categoryarray=list(PLACES[1:]))
    whole.update_yaxes(range=[-0.03, 1.03]).update_yaxes(title_text="share of wrong digits", col=1)
    return whole.update_layout(margin={"t": 120})
