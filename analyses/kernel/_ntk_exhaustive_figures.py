"""Figures of `ntk-exhaustive`."""

from typing import TYPE_CHECKING

from workbench.ntk.sliced import Sliced

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from analyses.kernel._ntk_exhaustive_check import Checked

TITLES = {"permute": "permutation", "add": "addition", "multiply": "multiplication"}
DASHES = ("solid", "dash", "dot")  # by T, from 1


def margin_figure(by_operation: "dict[str, list[Checked]]") -> "go.Figure":
    """The mean against m: the curves of the predictor, and the points that occur, for each algorithm's largest size."""
    from workbench.figures import figure

    names = list(by_operation)
    labels = [
        f"{TITLES[name]}, {rows[-1].algorithm.bits} bits, N = {rows[-1].algorithm.templates.count}"
        for name, rows in by_operation.items()
    ]
    whole = figure(
        "Every bit that occurs, and how far its mean is from the threshold",
        "lines: g<sub>m</sub> S - h<sub>m</sub> T; marks: every (m, S, T) that occurs over all inputs and steps; "
        "S of the matched templates write the bit, T of all",
        width=420 * len(names) + 200,
        height=740,
        margin_t=115,
    ).set_subplots(
        rows=2, cols=len(names), shared_xaxes=True, shared_yaxes=True, subplot_titles=labels,
        horizontal_spacing=0.025, vertical_spacing=0.05,
    )  # fmt: skip
    shown: set[str] = set()
    for column, name in enumerate(names, start=1):
        _margins(whole, by_operation[name][-1], column, shown)
        whole.update_xaxes(title_text="matched templates m", row=2, col=column)
    whole.update_yaxes(type="log", exponentformat="power", dtick=1)
    whole.update_yaxes(title_text="mean of bits to be 1", row=1, col=1)
    whole.update_yaxes(title_text="mean of bits to be 0, below zero", row=2, col=1)
    for column in range(1, len(names) + 1):
        whole.update_yaxes(autorange="reversed", tickprefix="-", row=2, col=column)
    return whole


def _margins(whole: "go.Figure", checked: "Checked", column: int, shown: set[str]) -> None:
    """One algorithm: positive means above, negative ones below."""
    from workbench.figures import BLUE, GREEN, PALETTE, VERMILLION

    colours = {0: VERMILLION, 1: BLUE, 2: GREEN}
    machine, most = Sliced(checked.algorithm.templates), int(checked.numbers["most"])
    kinds = sorted({(s, t) for m, s, t in checked.survey.points if t and (s or m >= 2)})
    for writers, written in kinds:
        colour = colours.get(writers, PALETTE[3])
        dash = DASHES[min(written, len(DASHES)) - 1]
        label = f"S = {writers}, T = {written}"
        curve = machine.means(written)[writers].abs().tolist()
        first = 2 if writers == 0 else max(writers, 1)
        here = sorted(m for m, s, t in checked.survey.points if (s, t) == (writers, written) and m >= first)
        row = 1 if writers else 2
        whole.add_scatter(
            x=list(range(first, most + 1)), y=curve[first : most + 1], mode="lines", hoverinfo="skip",
            line={"color": colour, "width": 1, "dash": dash}, showlegend=False, row=row, col=column,
        )  # fmt: skip
        whole.add_scatter(
            x=here, y=[curve[m] for m in here], mode="markers", name=label, legendgroup=label,
            showlegend=label not in shown, legendrank=10 * writers + written,
            marker={"color": colour, "size": 7, "symbol": ("circle", "square", "diamond")[min(written, 3) - 1]},
            row=row, col=column,
        )  # fmt: skip
        shown.add(label)


def tolerance_figure(by_operation: "dict[str, list[Checked]]") -> "go.Figure":
    """By which factor h could grow before some sign fails, against the size."""
    from workbench.figures import GREY, PALETTE, figure

    whole = figure(
        "How far the signs are from failing",
        "the factor by which h could grow before the first bit flips; below 1 the algorithm would need padding",
        x="bits of an operand",
        y="factor on h",
        width=900,
        height=520,
    )
    for colour, (name, rows) in zip(PALETTE, by_operation.items(), strict=False):
        one_a_size = {row.algorithm.bits: row for row in rows if row.numbers["tolerance"] != float("inf")}
        here = list(one_a_size.values())  # permutations of one size all have the same
        whole.add_scatter(
            x=[row.algorithm.bits for row in here], y=[row.numbers["tolerance"] for row in here],
            mode="lines+markers", name=TITLES[name], line_color=colour, marker_size=8,
        )  # fmt: skip
    whole.add_hline(1, line={"color": GREY, "dash": "dot", "width": 1.5})
    whole.update_xaxes(dtick=2, rangemode="tozero")
    return whole.update_yaxes(type="log", tickvals=[1, 2, 3, 5, 10, 20, 30])


def sizes_figure(sizes: "pd.DataFrame") -> "go.Figure":
    """Templates against the number of possible inputs: straight lines on a logarithmic axis."""
    from workbench.figures import PALETTE, figure

    whole = figure(
        "Templates against possible inputs",
        "padding included; a straight line here is growth with the logarithm of the number of inputs",
        x="possible inputs",
        y="templates N",
        width=900,
        height=520,
    )
    for colour, (name, rows) in zip(PALETTE, sizes.groupby("operation", sort=False), strict=False):
        whole.add_scatter(
            x=list(rows["inputs"]), y=list(rows["templates"]), mode="lines+markers", name=TITLES[str(name)],
            line_color=colour, text=[f"{bits} bits" for bits in rows["bits"]],
        )  # fmt: skip
    return whole.update_xaxes(type="log", exponentformat="power", dtick=3)
