"""The figures of analysis `hill-plateaus`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analyses._rows import Row, where
from analyses.hill._hill_plateaus_findings import RACE, straight
from analyses.hill._hill_plateaus_runs import SCALES, signed
from workbench.hill.constraint import SNAP

if TYPE_CHECKING:
    import plotly.graph_objects as go

SHOWN = 1500  # points a panel and kind, to keep the figure small


def weights(rows: Sequence[Row]) -> list[Row]:
    """Each weight of selection 1 or -1: W_hat times that sign, M_hat, and whether it ended elsewhere."""
    return [
        {
            "scale": row["scale"],
            "W_hat": goal * row[f"start_W_hat_{place}"],
            "M_hat": row[f"start_M_hat_{place}"],
            "lost": abs(row[f"end_W_{place}"] - goal) >= SNAP,
            "words": f"{row['operation']}, start {row['number']}",
        }
        for row in rows
        for place, goal in enumerate(signed(row["operation"]), start=1)
        if goal
    ]


def plane_figure(rows: Sequence[Row], scores: Sequence[Row]) -> "go.Figure":
    """Where weights start on the plane of raw values, and which of them are lost."""
    from workbench.figures import BLUE, GREY, ORANGE, figure

    points = weights(straight(rows))
    threshold = where(scores, rule=RACE)[0]["threshold"]
    whole = figure(
        "Weights are lost where W_hat starts with the wrong sign and a gate not open enough",
        "a mark a weight of selection 1 or -1 (no cos, sin); one can be lost because the other is; dashed: the race",
        width=1150,
        height=640,
    ).set_subplots(
        rows=1, cols=2, horizontal_spacing=0.06, subplot_titles=[f"initial scale {scale:g}" for scale in SCALES]
    )
    for column, scale in enumerate(SCALES, start=1):
        reach = 3.2 * scale
        for lost, colour, symbol, name in ((False, BLUE, "circle", "ends right"), (True, ORANGE, "x", "is lost")):
            here = where(points, scale=scale, lost=lost)[:SHOWN]
            whole.add_scatter(
                x=[point["W_hat"] for point in here], y=[point["M_hat"] for point in here], mode="markers", name=name,
                text=[point["words"] for point in here], legendgroup=name, showlegend=column == 1,
                marker={"color": colour, "size": 6, "symbol": symbol, "opacity": 0.75}, row=1, col=column,
            )  # fmt: skip
        whole.add_scatter(
            x=[-reach, 0], y=[threshold + reach, threshold], mode="lines", showlegend=False, hoverinfo="skip",
            line={"color": "black", "dash": "dash"}, row=1, col=column,
        )  # fmt: skip
        whole.add_scatter(
            x=[0, 0], y=[-reach, reach], mode="lines", showlegend=False, hoverinfo="skip",
            line={"color": GREY, "width": 1}, row=1, col=column,
        )  # fmt: skip
        whole.update_xaxes(range=[-reach, reach], title_text="W_hat towards the selection", row=1, col=column)
        whole.update_yaxes(range=[-reach, reach], row=1, col=column)
    whole.update_yaxes(title_text="M_hat", col=1)
    return whole.update_layout(margin={"t": 110}, legend={"orientation": "h", "y": -0.2})


def _bars(rows: Sequence[Row]) -> dict[str, Any]:
    from workbench.figures import error_bars

    return error_bars(*([row[f"failed_{end}"] for row in rows] for end in ("share", "low", "high")))


def operations_figure(cells: Sequence[Row]) -> "go.Figure":
    """Share of runs that fail by operation and number of wrong signs."""
    from workbench.figures import PALETTE, figure

    names = list(dict.fromkeys(row["operation"] for row in cells))
    whole = figure(
        "Failures by operation and wrong signs of W_hat at the start",
        "the report's Adam; 95% Wilson intervals; sin-sum has no weight of selection 1 or -1",
        width=1150,
        height=600,
    ).set_subplots(
        rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.03,
        subplot_titles=[f"initial scale {scale:g}" for scale in SCALES],
    )  # fmt: skip
    words = ("no wrong sign", "one", "two")
    for column, scale in enumerate(SCALES, start=1):
        for wrong, colour in enumerate((PALETTE[0], PALETTE[4], PALETTE[1])):
            rows = where(cells, scale=scale, wrong=wrong)
            whole.add_scatter(
                x=[row["failed_share"] for row in rows],
                y=[names.index(row["operation"]) + 0.22 * (wrong - 1) for row in rows], mode="markers",
                name=words[wrong], legendgroup=words[wrong], showlegend=column == 1, error_x=_bars(rows),
                marker={"color": colour, "size": 8}, text=[f"{row['failed']} of {row['n']}" for row in rows],
                row=1, col=column,
            )  # fmt: skip
    whole.update_xaxes(range=[-0.03, 1.03], tickformat=".0%", title_text="share that fails")
    whole.update_yaxes(tickvals=list(range(len(names))), ticktext=names, range=[len(names) - 0.5, -0.5], showgrid=False)
    return whole.update_layout(margin={"t": 110}, legend={"orientation": "h", "y": -0.2})


def changes_figure(changes: Sequence[Row], settings: Sequence[Row]) -> "go.Figure":
    """Share of runs that fail after one change of the starts, or of the optimizer."""
    from workbench.figures import BLUE, figure

    large = where(settings, unit_circle=False, scale=SCALES[-1])
    whole = figure(
        "The same starts, one thing changed",
        f"initial scale {SCALES[-1]:g}, without cos and sin; 95% Wilson intervals",
        width=1150,
        height=420,
    ).set_subplots(
        rows=1, cols=2, horizontal_spacing=0.24, subplot_titles=["the report's Adam, starts changed", "Adam's setting"]
    )
    for column, (rows, key) in enumerate(((changes, "change"), (large, "setting")), start=1):
        whole.add_scatter(
            x=[row["failed_share"] for row in rows], y=[row[key] for row in rows], mode="markers", showlegend=False,
            marker={"color": BLUE, "size": 10}, error_x=_bars(rows), row=1, col=column,
            text=[f"{row['failed']} of {row['n']}" for row in rows],
        )  # fmt: skip
    whole.update_xaxes(range=[-0.03, 1.03], tickformat=".0%", title_text="share that fails")
    whole.update_yaxes(autorange="reversed")
    return whole.update_layout(margin={"t": 110})
