"""The figures of analysis `hill-composition`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analyses._rows import Row, grouped, where
from analyses.hill._hill_composition_findings import free_runs
from analyses.hill._hill_composition_runs import END_TO_END, Trained

if TYPE_CHECKING:
    import plotly.graph_objects as go


def arms_figure(table: Sequence[Row]) -> "go.Figure":
    """Share of seeds that are solved, by arm and circuit."""
    from workbench.figures import SEQUENTIAL, figure

    circuits = [circuit for (circuit,) in grouped(table, "circuit")]
    arms = [arm for (arm,) in grouped(table, "arm")]
    cells: list[list[float | None]] = []
    words: list[list[str]] = []
    for arm in arms:
        found = [where(table, circuit=circuit, arm=arm) for circuit in circuits]
        cells.append([one[0]["solved_share"] if one else None for one in found])
        words.append([f"{one[0]['solved']} of {one[0]['n']}" if one else "" for one in found])
    shown = figure(
        "Which circuits train, and what rescues them",
        "seeds whose snapped weights compute the circuit exactly; RMSprop 0.01 from scale 0.1 unless said otherwise",
        width=1000,
        height=680,
    )
    shown.add_heatmap(
        z=cells, x=circuits, y=arms, zmin=0, zmax=1, colorscale=SEQUENTIAL, text=words, texttemplate="%{text}", xgap=2,
        ygap=2, colorbar={"title": "share solved", "tickformat": ".0%"}, hoverongaps=False,
    )  # fmt: skip
    shown.update_yaxes(autorange="reversed", showgrid=False)
    return shown.update_xaxes(showgrid=False, title_text="circuit")


def locks_figure(rows: Sequence[Row]) -> "go.Figure":
    """When the first and the second unit of solved two-unit circuits lock."""
    from workbench.figures import GREY, PALETTE, figure

    runs = [row for row in free_runs(rows) if "lock_3" not in row]
    shown = figure(
        "When units of solved circuits lock",
        "one mark a run with both units trained, any arm; above the line the unit next to the inputs locks first",
        x="step at which the first unit locks (logarithmic)",
        y="step at which the second unit locks (logarithmic)",
        width=800,
        height=640,
    )
    ends = [10, max((max(row["lock_1"], row["lock_2"]) for row in runs), default=1000) * 1.2]
    shown.add_scatter(x=ends, y=ends, mode="lines", name="together", line={"color": GREY, "dash": "dash"})
    for place, ((circuit,), group) in enumerate(grouped(runs, "circuit").items()):
        shown.add_scatter(
            x=[max(row["lock_1"], 10) for row in group], y=[max(row["lock_2"], 10) for row in group], mode="markers",
            name=circuit, text=[f"{row['arm']}, seed {row['seed']}" for row in group],
            marker={"color": PALETTE[place], "size": 8, "symbol": ("circle", "square", "diamond")[place % 3],
                    "opacity": 0.8},
        )  # fmt: skip
    return shown.update_xaxes(type="log", dtick=1).update_yaxes(type="log", dtick=1)


def paths_figure(trained: Sequence[Trained]) -> "go.Figure":
    """The weights of one run of each circuit, end to end: that of the first seed."""
    from workbench.figures import PALETTE, figure

    whole = figure(
        "Weights of one circuit of each kind, trained end to end",
        "the first seed of each; dashed: the second weight of a unit",
        width=1250,
        height=480,
    ).set_subplots(
        rows=1, cols=len(trained), shared_yaxes=True, horizontal_spacing=0.02,
        subplot_titles=[one.task.name for one in trained],
    )  # fmt: skip
    for column, one in enumerate(trained, start=1):
        arm = [arm.name for arm in one.arms].index(END_TO_END)
        for unit in range(one.path.shape[1]):
            for weight in (0, 1):
                name = f"unit {unit + 1}"
                whole.add_scatter(
                    x=one.step.tolist(), y=one.path[:, unit, weight, arm, 0].tolist(), mode="lines", name=name,
                    legendgroup=name, showlegend=weight == 0 and column == len(trained),
                    line={"color": PALETTE[unit], "dash": "dash" if weight else "solid", "width": 2},
                    row=1, col=column,
                )  # fmt: skip
    whole.update_xaxes(title_text="step")
    whole.update_yaxes(range=[-1.05, 1.05])
    whole.update_yaxes(title_text="weight", col=1)
    return whole.update_layout(margin={"t": 110})
