"""The figures of analysis `ntk-ensembles`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analyses._rows import Row, where
from analyses.kernel._ntk_ensembles_permutation import LAW, MIDPOINT, TRAINED, ZERO
from analyses.kernel._ntk_ensembles_protocol import Sums
from analyses.kernel._ntk_ensembles_tables import published

if TYPE_CHECKING:
    import plotly.graph_objects as go

NAMES = {"nngp": "standard form", "ntk": "NTK form"}
WORDS = {"permute": "permutation", "add": "addition", "multiply": "multiplication"}
PAINT = {"permute": "#009E73", "add": "#0072B2", "multiply": "#D55E00"}


def _legend(y: float) -> dict[str, Any]:
    """A legend in one line above the panels."""
    return {"orientation": "h", "x": 0, "xanchor": "left", "y": y, "yref": "container", "yanchor": "top"}


def permutations(cells: Sequence[Row]) -> "go.Figure":
    """Networks needed against k, a panel an error: laws with their bands, trained networks, published counts."""
    from workbench.figures import BLACK, BLUE, GREEN, VERMILLION, error_bars, figure

    errors = sorted({cell["error"] for cell in cells}, reverse=True)
    whole = figure(
        "Networks needed until a random permutation of k bits is right",
        "lines: Gaussian law, median and 5 to 95% of trials; squares, triangles: trained, median and range",
        width=max(950, 620 * len(errors) + 130),
        height=640,
    ).set_subplots(cols=len(errors), shared_yaxes=True, horizontal_spacing=0.03,
                   subplot_titles=[f"accuracy at least {1 - error:g}" for error in errors])  # fmt: skip
    for column, error in enumerate(errors, start=1):
        at = {"row": 1, "col": column}
        show = {"showlegend": column == 1}
        for form, colour, symbol in (("nngp", BLUE, "square"), ("ntk", VERMILLION, "triangle-up")):
            here = sorted(where(cells, error=error, form=form, kind=LAW, threshold=ZERO), key=lambda cell: cell["k"])
            ks = [cell["k"] for cell in here]
            edge = [cell["band_low"] for cell in here] + [cell["band_high"] for cell in reversed(here)]
            whole.add_scatter(
                x=[*ks, *reversed(ks)], y=edge, fill="toself", mode="lines", line={"width": 0}, hoverinfo="skip",
                fillcolor=_pale(colour), showlegend=False, **at,
            )  # fmt: skip
            whole.add_scatter(
                x=ks, y=[cell["median"] for cell in here], mode="lines", line={"color": colour, "width": 2},
                name=f"law, {NAMES[form]}", legendgroup=f"law {form}", **show, **at,
            )  # fmt: skip
            real = where(cells, error=error, form=form, kind=TRAINED, threshold=ZERO)
            middle, low, high = ([cell[key] for cell in real] for key in ("median", "least", "most"))
            whole.add_scatter(
                x=[cell["k"] for cell in real], y=middle, error_y=error_bars(middle, low, high), mode="markers",
                marker={"color": colour, "size": 11, "symbol": symbol, "line": {"color": "white", "width": 1}},
                name=f"trained, {NAMES[form]}", legendgroup=f"trained {form}", **show, **at,
            )  # fmt: skip
        theirs = published(error)
        whole.add_scatter(
            x=list(theirs), y=list(theirs.values()), mode="markers", name="published, one trial",
            marker={"color": BLACK, "size": 9, "symbol": "x-thin", "line": {"width": 2}}, legendgroup="p", **show, **at,
        )  # fmt: skip
        middle = where(cells, error=error, form="nngp", kind=TRAINED, threshold=MIDPOINT)
        whole.add_scatter(
            x=[cell["k"] for cell in middle], y=[cell["median"] for cell in middle], mode="markers", legendgroup="m",
            name="trained, standard form, threshold midpoint", marker={"color": GREEN, "size": 10, "symbol": "diamond"},
            **show, **at,
        )  # fmt: skip
    whole.update_xaxes(title_text="bits k", range=[1, 31])
    whole.update_yaxes(type="log", tickvals=[1, 3, 10, 30, 100, 300, 1000, 3000], range=[-0.12, 3.5])
    whole.update_yaxes(title_text="networks (log scale)", col=1)
    return whole.update_layout(margin={"t": 150}, legend=_legend(0.9))


def _pale(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def widths(rows: Sequence[Row]) -> "go.Figure":
    """Means and spread of trained networks against the width, a row of panels a k, lines at the law."""
    from workbench.figures import BLUE, GREY, VERMILLION, error_bars, figure

    ks = sorted({row["k"] for row in rows})
    parts = (("on", "mean, answer 1"), ("off", "mean, answer 0"), ("spread", "standard deviation"))
    whole = figure(
        "The predictor against the hidden width",
        f"means over {max(row['pairs'] for row in rows)} networks and their mirrors, 95% intervals; dashed: law",
        width=1250,
        height=200 + 300 * len(ks),
    ).set_subplots(rows=len(ks), cols=3, horizontal_spacing=0.07, vertical_spacing=0.16,
                   subplot_titles=[f"k = {k}: {words}" for k in ks for _, words in parts])  # fmt: skip
    for line, k in enumerate(ks, start=1):
        for column, (part, _) in enumerate(parts, start=1):
            for form, colour in (("standard", BLUE), ("ntk", VERMILLION)):
                here = where(rows, k=k, form=form)
                real = [row for row in here if row["width"]]
                value, low, high = ([row[key] for row in real] for key in (part, f"{part}_low", f"{part}_high"))
                whole.add_scatter(
                    x=[row["width"] for row in real], y=value, error_y=error_bars(value, low, high),
                    mode="markers", marker={"color": colour, "size": 9}, legendgroup=form,
                    name="standard form" if form == "standard" else "NTK form",
                    showlegend=(line, column) == (1, 1), row=line, col=column,
                )  # fmt: skip
                law = here[0][part]
                whole.add_hline(law, row=line, col=column, line={"color": colour, "dash": "dash", "width": 1.5})  # type: ignore[arg-type]
    ticks = [256, 1024, 4096, 16384, 65536]
    whole.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{tick:,}" for tick in ticks], linecolor=GREY)
    whole.update_xaxes(title_text="hidden width", row=len(ks))
    return whole.update_layout(margin={"t": 130}, legend=_legend(1 - 70 / (200 + 300 * len(ks))))


def ratios(predicted: Sequence[Row]) -> "go.Figure":
    """The largest rho^2 of any decision against l, a panel a threshold."""
    from workbench.figures import figure

    panels = ((ZERO, "threshold zero"), (MIDPOINT, "threshold midpoint"))
    whole = figure(
        "The hardest decision of any input",
        "largest variance of one network over squared distance from the threshold; NTK law, all inputs",
        width=1100,
        height=500,
    ).set_subplots(cols=2, subplot_titles=[words for _, words in panels], horizontal_spacing=0.1)
    for column, (threshold, _) in enumerate(panels, start=1):
        for operation in ("add", "multiply"):
            here = where(predicted, operation=operation, threshold=threshold)
            whole.add_scatter(
                x=[row["bits"] for row in here], y=[row["ratio"] for row in here], mode="lines+markers",
                line={"color": PAINT[operation], "width": 2}, marker={"size": 9}, name=WORDS[operation],
                legendgroup=operation, showlegend=column == 1, row=1, col=column,
            )  # fmt: skip
    whole.update_xaxes(title_text="bits l of an operand", dtick=1).update_yaxes(rangemode="tozero")
    whole.update_yaxes(title_text="rho squared (networks)", col=1)
    return whole.update_layout(margin={"t": 120}, legend=_legend(0.86))


def growth(sums: Sums) -> "go.Figure":
    """Networks that make all inputs right against l: runs over all inputs, and ceilings by counting for large l."""
    from workbench.figures import GREY, figure

    whole = figure(
        "Networks needed for all inputs, threshold zero",
        "at most 10% failure. Solid: summed over kinds of decision; dotted: the worst one for every decision; "
        "dots: all states that occur; circles: trained to exactness, median",
        x="bits l of an operand (log scale)",
        y="networks (log scale)",
        width=1000,
        height=680,
    )
    for operation in ("permute", "add", "multiply"):
        here = where(sums.ceilings, operation=operation)
        for name, dash, words in (("networks", "solid", "sum"), ("bound", "dot", "worst decision")):
            whole.add_scatter(
                x=[row["bits"] for row in here], y=[row[name] for row in here], mode="lines",
                line={"color": PAINT[operation], "width": 2, "dash": dash}, name=f"{WORDS[operation]}, {words}",
            )  # fmt: skip
        real = where(sums.predicted, operation=operation, threshold=ZERO)
        whole.add_scatter(
            x=[row["bits"] for row in real], y=[row["networks"] for row in real], mode="markers", showlegend=False,
            marker={"color": PAINT[operation], "size": 9}, name=f"{WORDS[operation]}, all states",
        )  # fmt: skip
    middle = _medians(where(sums.trials, kind="trained", threshold=ZERO))
    whole.add_scatter(
        x=list(middle), y=list(middle.values()), mode="markers", name="addition, trained networks",
        marker={"color": PAINT["add"], "size": 11, "symbol": "circle-open", "line": {"width": 2}},
    )  # fmt: skip
    for power, words, dash in ((1, "slope of l", "dash"), (2, "slope of l^2", "dashdot")):
        whole.add_scatter(
            x=[2, 2048], y=[100, 100 * 1024**power], mode="lines", hoverinfo="skip", name=words,
            line={"color": GREY, "dash": dash, "width": 1.5},
        )  # fmt: skip
    ticks = [2**i for i in range(1, 12, 2)]
    whole.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{tick:,}" for tick in ticks])
    return whole.update_yaxes(type="log", exponentformat="power", range=[1.8, 9.2])


def _medians(rows: Sequence[Row]) -> dict[int, float]:
    import statistics

    bits = sorted({row["bits"] for row in rows})
    return {at: statistics.median(row["networks"] for row in where(rows, bits=at)) for at in bits}
