"""The figures of analysis `hill-optimizers`."""

import math
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_optimizers_matrix import DEFAULT, OPERATIONS, PLAIN, SETTINGS, SNAPS
from analyses.hill._hill_optimizers_tables import FAILED, REACHED, SHORT, kind

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analyses.hill._hill_optimizers_tables import Row

WORDS = {REACHED: "below 1e-6", SHORT: "1e-6 to 1e-2", FAILED: "1e-2 or more"}
TITLES = [f"snapping at {snap:g}" if snap else "no snapping" for snap in SNAPS]


def _colours() -> dict[str, str]:
    from workbench.figures import BLUE, ORANGE, VERMILLION

    return {REACHED: BLUE, SHORT: ORANGE, FAILED: VERMILLION}


def _short(mse: float) -> str:
    """One digit and the exponent without zeros, to fit a cell."""
    if math.isnan(mse):
        return "NaN"
    if mse == 0:
        return "0"
    digits, exponent = f"{mse:.0e}".split("e")
    return f"{digits}e{int(exponent)}"


def _panel(whole: "go.Figure", rows: "list[Row]", key: str, row: int, column: int) -> None:
    """One snapping's settings and operations, coloured by class, the error as text."""
    found = {(one["optimizer"], one["operation"]): one[key] for one in rows}
    values = [[found[setting, name] for name in OPERATIONS] for setting in SETTINGS]
    kinds, colours = (REACHED, SHORT, FAILED), _colours()
    edges = [(place / 3, colours[name]) for place, name in enumerate(kinds)]
    scale = [pair for at, colour in edges for pair in ((at, colour), (at + 1 / 3, colour))]
    whole.add_heatmap(
        z=[[kinds.index(kind(value)) for value in line] for line in values],
        text=[[_short(value) for value in line] for line in values],
        texttemplate="%{text}", textfont={"size": 11, "color": "white"}, hovertemplate="%{y}, %{x}: %{text}",
        x=list(OPERATIONS), y=list(SETTINGS), zmin=-0.5, zmax=2.5, colorscale=scale, showscale=False, xgap=1, ygap=1,
        row=row, col=column,
    )  # fmt: skip


def _legend(whole: "go.Figure") -> None:
    for name, colour in _colours().items():
        whole.add_scatter(
            x=[None], y=[None], mode="markers", name=WORDS[name],
            marker={"symbol": "square", "size": 14, "color": colour}, row=1, col=1,
        )  # fmt: skip


def _panels(title: str, subtitle: str, rows: "list[Row]", lines: list[tuple[str, str]]) -> "go.Figure":
    """A line of three panels, one a snapping, for each (column of the table, words before the panels' titles)."""
    from workbench.figures import figure

    whole = figure(title, subtitle, width=1330, height=190 + 370 * len(lines)).set_subplots(
        rows=len(lines), cols=3, shared_yaxes=True, horizontal_spacing=0.015, vertical_spacing=0.26 / len(lines),
        subplot_titles=[f"{words}{name}" for _, words in lines for name in TITLES],
    )  # fmt: skip
    for line, (key, _) in enumerate(lines, start=1):
        for column, snap in enumerate(SNAPS, start=1):
            _panel(whole, [row for row in rows if row["snapping"] == snap], key, line, column)
    _legend(whole)
    whole.update_xaxes(tickangle=-40, showgrid=False)
    whole.update_yaxes(autorange="reversed", showgrid=False)
    below = 1 - 36 / (190 + 370 * len(lines))  # plotly's buttons stand above
    place: dict[str, Any] = {"orientation": "h", "x": 1, "xanchor": "right", "y": below, "yref": "container"}
    return whole.update_layout(margin={"t": 120}, legend=place | {"yanchor": "top"})


def _short_run(rows: "list[Row]") -> str:
    """Words for figures of a run too short to be compared with the published one."""
    return "" if any(row["agrees"] for row in rows) else "A SHORT RUN, weights still on their way: "


def matrix_figure(rows: "list[Row]") -> "go.Figure":
    """The published protocol's cells; a black frame where the class is not the published one."""
    whole = _panels(
        "Error of ten optimizers on eight operations, trained as published",
        f"{_short_run(rows)}mean squared error on (-10,000, 10,000); framed: not the published class",
        rows,
        [("measured", "")],
    )
    for row in rows:
        if row["agrees"] == "no":
            x, y, axis = (
                OPERATIONS.index(row["operation"]),
                SETTINGS.index(row["optimizer"]),
                SNAPS.index(row["snapping"]),
            )
            name = "" if axis == 0 else str(axis + 1)
            whole.add_shape(
                type="rect", x0=x - 0.5, x1=x + 0.5, y0=y - 0.5, y1=y + 0.5, xref=f"x{name}", yref=f"y{name}",
                line={"color": "black", "width": 3},
            )  # fmt: skip
    return whole


def plain_figure(rows: "list[Row]") -> "go.Figure":
    """Median errors over the plain seeds, with the published rates above and torch's defaults below."""
    return _panels(
        "The published rates are not the defaults",
        f"{_short_run(rows)}median mean squared error over {rows[0][f'{PLAIN}_seeds']} seeds of plain training",
        rows,
        [(f"{PLAIN}_median", "published rates, "), (f"{DEFAULT}_median", "torch's defaults, ")],
    )


def beside_figure(rows: "list[Row]") -> "go.Figure":
    """Measured against published errors of all cells."""
    from workbench.figures import GREY, PALETTE, figure

    whole = figure(
        "Measured and published errors, cell by cell",
        f"{_short_run(rows)}240 mean squared errors; bars: begun 1e-12 away; dotted: where classes part",
        x="published", y="measured", width=860, height=720,
    )  # fmt: skip
    symbols = dict(zip(SNAPS, ("circle", "square-open", "cross-thin-open"), strict=True))
    for (snap, symbol), colour in zip(symbols.items(), PALETTE, strict=False):
        here = [row for row in rows if row["snapping"] == snap and row["measured"] > 0]
        upper = [row["nudged_high"] - row["measured"] for row in here]
        lower = [row["measured"] - row["nudged_low"] for row in here]
        whole.add_scatter(
            x=[row["published"] for row in here], y=[row["measured"] for row in here], mode="markers",
            name=TITLES[SNAPS.index(snap)], marker={"symbol": symbol, "size": 9, "color": colour, "line_width": 2},
            error_y={"type": "data", "symmetric": False, "array": upper, "arrayminus": lower, "thickness": 1},
            text=[f"{row['optimizer']}, {row['operation']}" for row in here], hovertemplate="%{text}: %{y:.3g}",
        )  # fmt: skip
    ends = [1e-38, 1e17]
    whole.add_scatter(x=ends, y=ends, mode="lines", line={"color": GREY, "width": 1}, name="equal", hoverinfo="skip")
    for edge in (1e-6, 1e-2):
        whole.add_vline(edge, line={"color": GREY, "dash": "dot", "width": 1})  # type: ignore[arg-type]
        whole.add_hline(edge, line={"color": GREY, "dash": "dot", "width": 1})
    logs = [math.log10(end) for end in ends]
    return whole.update_xaxes(type="log", range=logs, dtick=6, exponentformat="power").update_yaxes(
        type="log", range=logs, dtick=6, exponentformat="power"
    )
