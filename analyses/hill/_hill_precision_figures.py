"""The figures of analysis `hill-precision`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from analyses.hill._hill_precision_tables import Row

FORMATS = ("float32", "float64")
SHIFT = 0.17  # rows between the middle of a line and its measured (above) or published (below) markers


def absolute(rows: "list[Row]") -> "list[Row]":
    """The rows with every mean as the squared error itself, instead of what a method adds to the native operator's.

    Adds `shown` and `shown_published` (NaN where nothing was published). A published mean is the printed native one
    plus the printed addition.
    """
    native = {(r["operation"], r["format"]): r for r in rows if (r["method"], r["quantity"]) == ("Native", "mean")}
    found = []
    for row in rows:
        base = native[row["operation"], row["format"]]
        added = row["quantity"] == "mean" and row["method"] != "Native"
        text = row["published"]
        shown = row["measured"] + (base["measured"] if added else 0.0)
        theirs = float(text) + (float(base["published"]) if added else 0.0) if text else float("nan")
        found.append({**row, "shown": shown, "shown_published": theirs})
    return found


def errors_figure(beside: "list[Row]") -> "go.Figure":
    """Mean, 99.99% quantile and maximum of the squared error of every method, beside the published ones."""
    from workbench.figures import BLUE, GREEN, VERMILLION, figure

    rows = absolute(beside)
    lines = list(dict.fromkeys(_line(row) for row in rows))
    looks = {"mean": (BLUE, "circle"), "99.99%": (GREEN, "triangle-up"), "max": (VERMILLION, "square")}
    samples = max(row["n"] for row in rows)
    whole = figure(
        "Squared error of native operators and exact units",
        f"inputs uniform on (-10,000, 10,000), {samples:,} pairs a row; open marks: published (100,000,000 pairs)",
        width=1200,
        height=190 + 34 * len(lines),
    ).set_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=FORMATS, horizontal_spacing=0.03)
    for column, name in enumerate(FORMATS, start=1):
        for quantity, (colour, symbol) in looks.items():
            here = [row for row in rows if row["format"] == name and row["quantity"] == quantity]
            place = [lines.index(_line(row)) for row in here]
            for label, key, offset, look in (
                (quantity, "shown", -SHIFT, symbol),
                (f"{quantity}, published", "shown_published", SHIFT, f"{symbol}-open"),
            ):
                whole.add_scatter(
                    x=[row[key] for row in here], y=[p + offset for p in place], mode="markers", name=label,
                    legendgroup=label, showlegend=column == 1, hovertemplate="%{x:.4g}",
                    marker={"color": colour, "symbol": look, "size": 8, "line_width": 1.6 * (offset > 0)},
                    row=1, col=column,
                )  # fmt: skip
    whole.update_xaxes(
        type="log", exponentformat="power", dtick=4, title_text="squared error (logarithmic)", showgrid=True
    )
    _stripes(whole, lines)
    return whole.update_layout(margin={"t": 130}, legend=_above(0.87))


def _line(row: "dict[Any, Any]") -> str:
    return f"{row['operation']}, {row['method']}"


def _stripes(whole: "go.Figure", lines: list[str]) -> None:
    """Lines from top to bottom, an operation's set apart from the next."""
    operations = [line.partition(",")[0] for line in lines]
    for at in range(1, len(lines)):
        if operations[at] != operations[at - 1]:
            whole.add_hline(at - 0.5, line={"color": "#444444", "width": 1}, layer="below")
    whole.update_yaxes(range=[len(lines) - 0.5, -0.5], tickvals=list(range(len(lines))), showgrid=False)
    whole.update_yaxes(ticktext=lines, col=1)
    whole.update_yaxes(ticks="", col=2)


def _above(y: float) -> dict[str, Any]:
    return {"orientation": "h", "x": 1, "xanchor": "right", "y": y, "yref": "container", "yanchor": "bottom"}


def bits_figure(bits: "pd.DataFrame") -> "go.Figure":
    """Share of samples on which each method returns the native operator's bits."""
    from workbench.figures import BLUE, VERMILLION, error_bars, figure

    names = [_line(row) for row in bits.to_dict("records")]
    lines = list(dict.fromkeys(names))
    whole = figure(
        "Share of answers with the native operator's bits",
        f"{max(bits['n'].tolist()):,} input pairs a row; 95% Wilson intervals, mostly narrower than the marks",
        width=1200,
        height=190 + 32 * len(lines),
    ).set_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=FORMATS, horizontal_spacing=0.03)
    for column, name in enumerate(FORMATS, start=1):
        here = bits[bits["format"] == name]
        place = [lines.index(names[at]) for at in here.index]
        whole.add_scatter(
            x=here["share"], y=[p - SHIFT for p in place], mode="markers", name="measured", legendgroup="measured",
            error_x=error_bars(here["share"], here["low"], here["high"]), showlegend=column == 1,
            marker={"color": BLUE, "size": 8}, hovertemplate="%{x:.6f}", row=1, col=column,
        )  # fmt: skip
        whole.add_scatter(
            x=here["published"], y=[p + SHIFT for p in place], mode="markers", name="published",
            legendgroup="published", showlegend=column == 1, hovertemplate="%{x:.6f}",
            marker={"color": VERMILLION, "size": 8, "symbol": "diamond-open", "line_width": 2}, row=1, col=column,
        )  # fmt: skip
    whole.update_xaxes(range=[-0.03, 1.03], dtick=0.2, title_text="share of answers")
    _stripes(whole, lines)
    return whole.update_layout(margin={"t": 120}, legend=_above(0.84))
