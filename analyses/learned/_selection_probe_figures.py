"""Figures of `selection-probe`: what linear probes and frozen units explain, and where trained units land."""

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyses._rows import Row, grouped, mean, where
from analyses.learned._selection_probe_fit import PROBE, TRAINED, UNIT
from analyses.learned._selection_probe_targets import CARRY, DIFFERENCE, FREQUENCIES, SUM
from workbench.figures import SEQUENTIAL, figure

COLUMNS = {"a+b": (SUM, 0), "a-b": (DIFFERENCE, 0), "carry": (CARRY, 0)}
COLUMNS |= {f"{sign}, k={k}": (name, k) for sign, name in (("a+b", SUM), ("a-b", DIFFERENCE)) for k in FREQUENCIES}
SUBTITLES = {
    PROBE: "Held-out R² of a linear probe of each result; 0 is what its mean explains.",
    UNIT: "Held-out R² of the frozen exact unit on digits, angles, carry and answer digit as read linearly; below 0 is "
    "drawn as 0.",
}


def figures(means: Sequence[Row], lands: Sequence[Row]) -> dict[str, go.Figure]:
    """`probes`, `units` and `selections`."""
    return {"probes": _explained(means, PROBE), "units": _explained(means, UNIT), "selections": _selections(lands)}


def _label(row: Row) -> str:
    _, layer, part = row["hook"].split(".")
    return f"{row['checkpoint'].removeprefix('arithmetic-')}  L{layer} {part.removeprefix('hook_')}"


def _grid(title: str, subtitle: str, panels: dict[str, dict[str, list[float]]], x: list[str], scale: str) -> go.Figure:
    """Heat maps side by side, one row a label, on one scale from 0 to 1."""
    grid = make_subplots(cols=len(panels), shared_yaxes=True, subplot_titles=list(panels), horizontal_spacing=0.03)
    labels: list[str] = []
    for column, lines in enumerate(panels.values(), start=1):
        labels, z = list(lines), list(lines.values())
        text = [["1" if value >= 0.995 else f"{value:.2f}".replace("0.", ".", 1) for value in line] for line in z]
        grid.add_heatmap(
            z=z, x=x, y=labels, text=text, texttemplate="%{text}", textfont={"size": 11}, xgap=1, ygap=1,
            coloraxis="coloraxis", row=1, col=column,
        )  # fmt: skip
    look = figure(title, subtitle)
    colours = {"colorscale": SEQUENTIAL, "cmin": 0, "cmax": 1, "colorbar": {"title": {"text": scale}, "thickness": 14}}
    grid.update_layout(look.layout).update_layout(
        width=1350, height=20 * len(labels) + 260, margin={"l": 270, "r": 110, "t": 130, "b": 90}, coloraxis=colours
    )
    return grid.update_xaxes(showgrid=False, tickangle=-50).update_yaxes(autorange="reversed", showgrid=False)


def _explained(means: Sequence[Row], probe: str) -> go.Figure:
    panels: dict[str, dict[str, list[float]]] = {}
    rows = [row | {"operator": row["group"].split()[0]} for row in where(means, model=TRAINED, probe=probe)]
    for (operator,), part in grouped([row for row in rows if "resid_pre" not in row["hook"]], "operator").items():
        lines = panels.setdefault(operator, {})
        for here in grouped(part, "checkpoint", "hook").values():
            each = [where(here, result=result, k=k) for result, k in COLUMNS.values()]
            lines[_label(here[0])] = [max(0.0, mean(cell, "r2")) for cell in each]
    subtitle = (
        f"{SUBTITLES[probe]} Where the digit is predicted, mean of units, tens and hundreds (and of both signs).<br>"
        "k: cosine and sine of 2 pi k (a ± b) / 10 together. Residual stream after attention (mid) and after the MLP."
    )
    title = "What linear probes read" if probe == PROBE else "What frozen exact units compute from readouts"
    return _grid(title, subtitle, panels, list(COLUMNS), "R²")


def _selections(lands: Sequence[Row]) -> go.Figure:
    panels: dict[str, dict[str, list[float]]] = {}
    names = list(dict.fromkeys(row["model"] for row in lands))
    x = [f"{name}: {what}" for what in ("selects", "lands") for name in names]
    for (group, expected), part in grouped(lands, "group", "expected").items():
        lines = panels.setdefault(f"{group}: {expected}", {})
        for here in grouped([row for row in part if "resid_pre" not in row["hook"]], "checkpoint", "hook").values():
            by_model = {row["model"]: row for row in here}
            lines[_label(here[0])] = [by_model[name][what] for what in ("selects", "lands") for name in names]
    subtitle = (
        "Share of trained units (places and starts) whose weights snap to the selection the operation needs. selects: "
        "and explain half<br>of the variance. lands: whether or not they explain anything, which noise does too."
    )
    return _grid("Where units trained on the operands' readouts land", subtitle, panels, x, "share")
