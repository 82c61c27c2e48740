"""The figures of `hill-inalu`: errors beside iNALU's, and where the lotteries end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analyses.hill._hill_inalu_runs import LOTTERIES, UNIVERSAL, Trained
from analyses.hill._hill_inalu_tables import MATCHED, TITLES, Row
from workbench.hill.operations import OPERATIONS

if TYPE_CHECKING:
    import plotly.graph_objects as go


def errors_figure(cells: Sequence[Row], inalu: dict[tuple[str, str], float]) -> "go.Figure":
    """Extrapolation error of every run by cell, matched and universal, beside iNALU's published mean."""
    from workbench.figures import BLUE, ORANGE, VERMILLION, figure

    places = list(dict.fromkeys((cell["distribution"], cell["operation"]) for cell in cells))
    labels = [f"{distribution}<br>{TITLES[name]}" for distribution, name in places]
    whole = figure(
        "Extrapolation error on iNALU's ranges",
        "means over runs, weights snapped at evaluation; iNALU's means as published",
        y="mean squared error",
        width=1150,
        height=560,
    )
    for training, colour, symbol, shift in ((MATCHED, BLUE, "circle", -0.18), (UNIVERSAL, VERMILLION, "diamond", 0.18)):
        here = [cell for cell in cells if cell["training"] == training]
        at = [places.index((cell["distribution"], cell["operation"])) + shift for cell in here]
        names = {MATCHED: "trained on the range itself", UNIVERSAL: "trained on U(1e-8, 10)"}
        whole.add_scatter(
            x=at, y=[cell["mean"] for cell in here], mode="markers", name=names[training],
            marker={"color": colour, "symbol": symbol, "size": 10},
        )  # fmt: skip
    whole.add_scatter(
        x=[places.index(place) for place in inalu], y=list(inalu.values()), mode="markers", name="iNALU, published",
        marker={"color": ORANGE, "symbol": "square-open", "size": 11, "line_width": 2},
    )  # fmt: skip
    whole.update_xaxes(
        tickvals=list(range(len(places))), ticktext=labels, showgrid=False, range=[-0.6, len(places) - 0.4]
    )
    whole.update_yaxes(type="log", exponentformat="power", dtick=5)
    corner = {"orientation": "h", "x": 1, "xanchor": "right", "y": 0.985, "yref": "container", "yanchor": "top"}
    return whole.update_layout(legend=corner)


def lotteries_figure(units: Sequence[Trained], rows: Sequence[Row]) -> "go.Figure":
    """Where the weights of every unit of the four lotteries end, with the selection and how often it is reached."""
    from workbench.figures import BLACK, BLUE, VERMILLION, figure

    rates = {(row["distribution"], row["operation"]): row for row in rows}
    titles = [f"{on}, {TITLES[name]}: {rates[on, name]['won']} of {rates[on, name]['n']}" for on, name in LOTTERIES]
    whole = figure(
        "The four lotteries: training on ranges that cross zero",
        "weights of each seed where training ended, from zero weights; the ring is the selection",
        width=1150,
        height=420,
    ).set_subplots(rows=1, cols=4, subplot_titles=titles, horizontal_spacing=0.06)
    for name, colour, symbol in (("lost", VERMILLION, "x"), ("won", BLUE, "circle")):  # for the legend alone
        whole.add_scatter(
            x=[None], y=[None], mode="markers", name=name, marker={"color": colour, "symbol": symbol, "size": 7},
        )  # fmt: skip
    for column, (trained_on, name) in enumerate(LOTTERIES, start=1):
        here = [unit for unit in units if (unit.trained_on, unit.operation) == (trained_on, name)]
        for won, colour, symbol in ((False, VERMILLION, "x"), (True, BLUE, "circle")):
            ends = [unit.W for unit in here if unit.converged == won]
            whole.add_scatter(
                x=[W[0] for W in ends], y=[W[1] for W in ends], mode="markers", name="won" if won else "lost",
                showlegend=False, row=1, col=column,
                marker={"color": colour, "symbol": symbol, "size": 7, "opacity": 0.7},
            )  # fmt: skip
        selection = OPERATIONS[name].selection
        whole.add_scatter(
            x=[selection[0]], y=[selection[1]], mode="markers", showlegend=False, hoverinfo="skip", row=1, col=column,
            marker={"color": BLACK, "symbol": "circle-open", "size": 16, "line_width": 2},
        )  # fmt: skip
    ticks = {"range": [-1.15, 1.15], "tickvals": [-1, -0.5, 0, 0.5, 1]}
    whole.update_xaxes(title_text="weight of a", **ticks)
    whole.update_yaxes(title_text="weight of b", col=1).update_yaxes(**ticks)
    corner = {"orientation": "h", "x": 1, "xanchor": "right", "y": 0.985, "yref": "container", "yanchor": "top"}
    return whole.update_layout(margin={"t": 110}, legend=corner)
