"""The figure of analysis `claims`: what 1-layer and 2-layer models can do with and without borrows and directions."""

from typing import TYPE_CHECKING

from analyses.learned._claims_evidence import Row, shares

if TYPE_CHECKING:
    import plotly.graph_objects as go

SHOWN = (  # (label, group, trained on)
    ("units digit", "units", "all"),
    ("no borrow, +", "no borrow, +", "all"),
    ("no borrow, -", "no borrow, -", "all"),
    ("borrow", "borrow", "all"),
    ("borrow,<br>only a >= b", "borrow", "ordered"),
    ("borrow, only<br>subtraction", "borrow", "subtraction"),
    ("borrow,<br>sign hidden", "borrow", "sign-hidden"),
    ("addition", "addition", "all"),
)


def borrow_figure(rows: list[Row]) -> "go.Figure":
    """One mark a model: the share right of each group of problems, 1 layer beside 2, relu above bilinear."""
    import plotly.graph_objects as go

    from workbench.figures import BLUE, VERMILLION, error_bars, figure

    whole = figure(
        "What does the second layer buy?",
        "share of fresh problems right, one mark a seed, 95% Wilson intervals; subtraction but for the last column",
        width=1100,
        height=820,
    ).set_subplots(rows=2, cols=1, subplot_titles=["relu", "bilinear"], vertical_spacing=0.13)
    for line, mlp in enumerate(("relu", "bilinear"), start=1):
        for layers, colour, symbol, shift in ((1, VERMILLION, "circle", -0.14), (2, BLUE, "diamond", 0.14)):
            found = [
                (place + shift + 0.07 * (number - 1), row)
                for place, (_, group, trained_on) in enumerate(SHOWN)
                for number, row in enumerate(shares(rows, group, mlp, layers, trained_on))
            ]
            share, low, high = ([row[name] for _, row in found] for name in ("share", "low", "high"))
            whole.add_trace(
                go.Scatter(
                    x=[place for place, _ in found],
                    y=share,
                    error_y=error_bars(share, low, high),
                    mode="markers",
                    marker={"color": colour, "symbol": symbol, "size": 9},
                    name=f"{layers} layer{'s' * (layers > 1)}",
                    showlegend=line == 1,
                    text=[row["model"] for _, row in found],
                ),
                row=line,
                col=1,
            )
    whole.update_xaxes(tickvals=list(range(len(SHOWN))), ticktext=[label for label, _, _ in SHOWN], showgrid=False)
    whole.update_yaxes(range=[-0.03, 1.03], tickformat=".0%", title="right")
    return whole.update_layout(legend={"orientation": "h", "y": 1.09, "x": 1, "xanchor": "right"})
