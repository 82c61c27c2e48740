"""The figure of `interchange`: a map for each variable, checkpoints down, sites and ways to swap across."""

from collections.abc import Sequence

import plotly.graph_objects as go

from analyses._rows import Row, grouped, where
from analyses.learned._causal_rules import FEWEST
from analyses.learned._interchange_variables import meaning
from analyses.learned._share_maps import Panel, Sizes, matrix, share_maps

MARKS = {"readout": ("R", "r"), "pattern": ("P", "p")}  # each beside its control


def summary(sites: Sequence[Row]) -> go.Figure:
    """Share of swaps that give the predicted digit, by readout (R) and pattern (P), beside their controls (r, p)."""
    names = [name for (name,) in grouped(sites, "checkpoint")]
    marks = [mark for pair in MARKS.values() for mark in pair]
    columns = [f"{site} {mark}" for site in sorted({row["site"] for row in sites}) for mark in marks]
    labels = [name.removeprefix("arithmetic-") for name in names]
    cells = [cell for row in sites if row["n"] >= FEWEST for cell in _cells(row)]
    panels = [
        Panel(
            f"{variable}: {meaning(variable)}",
            matrix(where(cells, variable=variable), "checkpoint", names, "column", columns),
            labels,
            [column.replace(" ", "<br>") for column in columns],
        )
        for (variable,) in grouped(sites, "variable")
    ]
    subtitle = (
        "Share of swaps between two runs after which the digit is what exact units predict, all digits together. R: "
        "onto the span of the linear readouts (r: as many random directions);<br>P: along their pattern (p: the higher "
        "of that and a random move of equal length).<br>Across: the stream after attention (mid) and after the MLP "
        "(post) of each layer. Empty: no such site, or fewer than 20 swaps."
    )
    return share_maps(
        "Which exact variables the answer follows", subtitle, panels, 2, "share as predicted",
        Sizes(across=36, left=160, top=140, gap_x=40, gap_y=110, bottom=80),
    )  # fmt: skip


def _cells(row: Row) -> list[Row]:
    """The share of a row and of its control, each under its column."""
    return [
        {**row, "column": f"{row['site']} {mark}", "share": row[name]}
        for mark, name in zip(MARKS[row["subspace"]], ("share", "control_share"), strict=True)
    ]
