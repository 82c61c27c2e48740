"""The figures of analysis `hill-sharing`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_sharing_gradients import OPERATIONS as ASKED
from analyses.hill._hill_sharing_gradients import SCALES as SPREADS
from analyses.hill._hill_sharing_gradients import Escape, Expected
from analyses.hill._hill_sharing_training import GROUPS, SCALES, SEPARATE, SHARED

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


def sharing_figure(cells: "pd.DataFrame") -> "go.Figure":
    """Share of exact units by initial scale, shared and separate, a panel an operation."""
    from workbench.figures import BLUE, ORANGE, error_bars, figure

    names = [name for group in GROUPS.values() for name in group]
    titles = [f"{name} {group}" for group, members in GROUPS.items() for name in members]
    whole = figure(
        "One weight pair for operations of one selection, or one for each",
        f"share of {cells['n'].iloc[0]} seeds whose snapped weights are the selection, 95% Wilson intervals",
        width=1300,
        height=640,
    ).set_subplots(rows=2, cols=5, shared_xaxes=True, shared_yaxes=True, subplot_titles=titles,
                   horizontal_spacing=0.02, vertical_spacing=0.12)  # fmt: skip
    for place, name in enumerate(names):
        for way, colour, shift in ((SHARED, BLUE, -0.08), (SEPARATE, ORANGE, 0.08)):
            here = cells[(cells["operation"] == name) & (cells["way"] == way)]
            whole.add_scatter(
                x=[at + shift for at in range(len(SCALES))], y=here["exact"], mode="lines+markers", name=f"{way} pair",
                error_y=error_bars(here["exact"], here["exact_low"], here["exact_high"]), legendgroup=way,
                showlegend=place == 0, line={"color": colour, "width": 2}, row=place // 5 + 1, col=place % 5 + 1,
            )  # fmt: skip
    whole.update_xaxes(tickvals=list(range(len(SCALES))), ticktext=[f"{scale:g}" for scale in SCALES])
    whole.update_xaxes(title_text="initial scale", row=2)
    whole.update_yaxes(range=[-0.05, 1.05]).update_yaxes(title_text="share exact", col=1)
    return whole.update_layout(margin={"t": 120}, legend=_above(0.94))


def _above(y: float) -> dict[str, Any]:
    """A legend in one line, to the right above the panels and below plotly's buttons."""
    return {"orientation": "h", "x": 1, "xanchor": "right", "y": y, "yref": "container", "yanchor": "top"}


def expected_figure(found: Sequence[Expected]) -> "go.Figure":
    """Mean gradient of each raw parameter over initial weights, as a share of its root mean square."""
    from workbench.figures import BLUE, GREY, ORANGE, SKY, VERMILLION, error_bars, figure

    whole = figure(
        "The expected gradient at zero-mean initial weights",
        f"mean over {found[0].n:,} starts by the root mean square, 95% intervals; crosses: additive closed form",
        width=1250,
        height=520,
    ).set_subplots(rows=1, cols=len(ASKED), shared_yaxes=True, subplot_titles=list(ASKED), horizontal_spacing=0.02)
    looks = (("W_hat 1", BLUE), ("W_hat 2", SKY), ("M_hat 1", VERMILLION), ("M_hat 2", ORANGE))
    for column, name in enumerate(ASKED, start=1):
        for place, (parameter, colour) in enumerate(looks):
            here = [one for one in found if (one.operation, one.parameter) == (name, parameter)]
            x = [SPREADS.index(one.scale) + (place - 1.5) * 0.16 for one in here]
            value, low, high = ([getattr(one, key) / one.size for one in here] for key in ("mean", "low", "high"))
            whole.add_scatter(
                x=x, y=value, error_y=error_bars(value, low, high), mode="markers", name=parameter,
                legendgroup=parameter, showlegend=column == 1,
                marker={"color": colour, "size": 8, "symbol": ("circle", "diamond")[place % 2]},
                row=1, col=column,
            )  # fmt: skip
            whole.add_scatter(
                x=x, y=[one.predicted / one.size for one in here], mode="markers", name="closed form",
                legendgroup="closed form", showlegend=(column, place) == (1, 3), hoverinfo="skip",
                marker={"color": "black", "symbol": "cross-thin-open", "size": 9}, row=1, col=column,
            )  # fmt: skip
    whole.add_hline(0, line={"color": GREY, "width": 1, "dash": "dot"})  # type: ignore[arg-type]
    ticks = [f"{scale:g}" for scale in SPREADS]
    whole.update_xaxes(tickvals=list(range(len(ticks))), ticktext=ticks, title_text="standard deviation at the start")
    return whole.update_yaxes(title_text="mean / root mean square", col=1)


def escape_figure(ways: Sequence[Escape]) -> "go.Figure":
    """Sizes of both gradients along the first steps from zero weights: medians over the seeds."""
    from workbench.figures import BLUE, VERMILLION, figure

    whole = figure(
        "How training leaves zero weights",
        f"gradients before each step, Adam with beta2 0.5, median of {ways[0].by_W_hat.shape[1]} seeds; "
        "that of M_hat is 0 before the first",
        width=1250,
        height=480,
    ).set_subplots(rows=1, cols=len(ways), subplot_titles=[way.operation for way in ways], horizontal_spacing=0.045)
    for column, way in enumerate(ways, start=1):
        for name, values, colour in (("W_hat", way.by_W_hat, BLUE), ("M_hat", way.by_M_hat, VERMILLION)):
            middle = values.median(dim=1).values
            steps = [step for step in range(len(middle)) if float(middle[step]) > 0]
            whole.add_scatter(
                x=steps, y=[float(middle[step]) for step in steps], mode="lines", name=f"gradient of {name}",
                legendgroup=name, showlegend=column == 1, line={"color": colour, "width": 2}, row=1, col=column,
            )  # fmt: skip
    whole.update_xaxes(title_text="step")
    whole.update_yaxes(type="log", exponentformat="power", nticks=8).update_yaxes(title_text="gradient", col=1)
    return whole.update_layout(margin={"t": 120}, legend=_above(0.92))
