"""Figures of `patching`: one over checkpoints; for each its components; with two layers, what lies between."""

from collections.abc import Sequence

import plotly.graph_objects as go

from analyses._rows import Row, grouped, where
from analyses.learned._causal_rules import FEWEST
from analyses.learned._conditions import PREDICTED
from analyses.learned._patching_summary import SHOWN
from analyses.learned._share_maps import Panel, Sizes, matrix, share_maps
from workbench.task import POSITION_LABELS, POSITIONS_READ

BAR = "share restored"
WHAT = "Share of corrupted prompts whose digit becomes the clean one when one site is patched"


def figures(sites: Sequence[Row], answer: Sequence[Row], between: Sequence[Row]) -> dict[str, go.Figure]:
    """`summary`, and for each checkpoint `components-NAME` and, if it has two layers, `between-NAME`."""
    found = {"summary": _summary(answer)}
    for (name,), rows in grouped(sites, "checkpoint").items():
        if here := [row for row in where(rows, at_answer=True, by_construction=False) if row["n"] >= FEWEST]:
            found[f"components-{name}"] = _components(name, here)
        if stream := [row for row in where(between, checkpoint=name) if row["n"] >= FEWEST]:
            found[f"between-{name}"] = _between(name, stream)
    return found


def _summary(answer: Sequence[Row]) -> go.Figure:
    names = list(grouped(answer, "checkpoint"))
    rows = [row for row in where(answer, by_construction=False) if row["n"] >= FEWEST]
    columns = [component.replace("attention", "attn") for component in SHOWN]
    labels = [name.removeprefix("arithmetic-") for (name,) in names]
    panels = [
        Panel(kind, matrix(here, "checkpoint", [name for (name,) in names], "component", SHOWN), labels, columns)
        for (kind,), here in ((kind, where(rows, kind=kind[0])) for kind in grouped(answer, "kind"))
    ]
    subtitle = (
        f"{WHAT} at the predicting position, all digits together.<br>Pairs differ in one thing only. Empty: no such "
        "site, fewer than 20 pairs answered, or restored by construction in any model."
    )
    return share_maps("Which sites hold what differs", subtitle, panels, 3, BAR, Sizes(across=58, left=160))


def _components(name: str, sites: Sequence[Row]) -> go.Figure:
    components = [key for (key,) in grouped(sites, "component") if not key.endswith("mid")]
    panels = [
        Panel(kind, matrix(_with_share(rows), "component", components, "digit", PREDICTED), components, PREDICTED)
        for (kind,), rows in grouped(sites, "kind").items()
    ]
    subtitle = (
        f"{WHAT} at the predicting position.<br>Across: the answer's digit; down: components from the input on. Empty: "
        "no such pairs, or fewer than 20 that the model answers."
    )
    return share_maps(f"{name}: components at the predicting position", subtitle, panels, 4, BAR)


def _with_share(rows: Sequence[Row]) -> list[Row]:
    return [row | {"share": row["restored"] / row["n"]} for row in rows]


def _between(name: str, stream: Sequence[Row]) -> go.Figure:
    positions = POSITION_LABELS[:POSITIONS_READ]
    panels = [
        Panel(kind, matrix(rows, "digit", PREDICTED, "position", positions), PREDICTED, positions)
        for (kind,), rows in grouped(stream, "kind").items()
    ]
    subtitle = (
        f"{WHAT}: the residual stream after layer 0, at one position.<br>Across: the token that stands there; down: "
        "the answer's digit, predicted at the last filled position. Before the changed token nothing differs (empty)."
    )
    return share_maps(f"{name}: where it stands between the layers", subtitle, panels, 2, BAR, Sizes(left=70))
