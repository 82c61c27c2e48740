"""Figures of `similarity`: CKA of all sites, of pairs of seeds, matched heads, and shared errors."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyses.learned._ablation_figures import groups, only
from analyses.learned._conditions import shape_of
from analyses.learned._similarity_findings import who
from analyses.learned._similarity_heads import SAME_LOOK, SAME_WRITE
from analyses.learned._similarity_streams import LEVELS, places
from workbench.checkpoint import Checkpoint
from workbench.figures import BLUE, DIVERGING, GREY, ORANGE, PALETTE, SEQUENTIAL, SKY, figure

Tables = Mapping[str, pd.DataFrame]
MAIN = LEVELS[1]
APART = "apart from position, sign and the token that stands there"
CELL = 11  # pixels of a site


def figures(tables: Tables, checkpoints: Sequence[Checkpoint]) -> dict[str, go.Figure]:
    """`cka`, `sites`, `jobs`, `matches`, `errors` and `twins`, each where there is something to show."""
    found = {"cka": _cka(tables["cka"], checkpoints)}
    if len(seeds := only(tables["groups"], relation="other seed", level=MAIN)):
        found["sites"] = _sites(seeds)
    if "layers" in tables:
        found["jobs"] = _jobs(tables["layers"])
        found["matches"] = _matches(tables["heads"])
    if "errors" in tables:
        found["errors"] = _errors(tables["errors"], [one.name for one in checkpoints])
    if "twins" in tables:
        found["twins"] = _twins(tables["twins"])
    return found


def _short(name: str) -> str:
    return name.removeprefix("arithmetic-")


def _cka(cka: pd.DataFrame, checkpoints: Sequence[Checkpoint]) -> go.Figure:
    """Every two sites, trained and untrained, by operator; sites stand together by shape and place."""
    rows = only(cka, level=MAIN)
    shapes = {one.name: shape_of(one) for one in checkpoints}
    met = {*zip(rows["first"], rows["place"], strict=True), *zip(rows["second"], rows["other_place"], strict=True)}
    in_order = {name: number for number, name in enumerate(shapes)}
    order = list(dict.fromkeys(shapes.values()))
    deepest = max((one.config.architecture for one in checkpoints), key=lambda shape: shape.n_layers)
    in_stream = list(places(deepest))
    sites = sorted(met, key=lambda s: (order.index(shapes[s[0]]), in_stream.index(s[1]), in_order[s[0]]))
    varies = {*_known(rows, "first", "place"), *_known(rows, "second", "other_place")}
    sites = [site for site in sites if site in varies]
    at = {site: number for number, site in enumerate(sites)}
    blocks: dict[str, list[int]] = {}
    for (name, place), number in at.items():
        blocks.setdefault(f"{shapes[name]}, {place}", []).append(number)
    ticks = {"tickvals": [float(np.mean(of)) for of in blocks.values()], "ticktext": list(blocks), "tickfont_size": 11}
    cuts = [of[0] - 0.5 for of in list(blocks.values())[1:]]
    operators = list(dict.fromkeys(rows["operator"]))
    size = max(CELL * len(sites), 260)
    left, top, gap = 190, 130, 50
    width, height = 2 * size + gap, len(operators) * size + (len(operators) - 1) * gap
    whole = figure(
        "Where do residual streams of different models hold the same?",
        f"linear CKA, {APART}; mean over the five answer positions; 1: the same up to rotation and scale<br>"
        "within a block, the models of one shape; sites where nothing varies are left out",
        width=width + left + 130, height=height + top + 190,
    ).set_subplots(
        rows=len(operators), cols=2, shared_yaxes=True, shared_xaxes=True, horizontal_spacing=gap / width,
        vertical_spacing=gap / height if len(operators) > 1 else 0,
        subplot_titles=[f"{name}, {kind}" for name in operators for kind in ("trained", "untrained")],
    )  # fmt: skip
    for i, operator in enumerate(operators, start=1):
        here = only(rows, operator=operator)
        for j, column in enumerate(("cka", "untrained"), start=1):
            values = np.full((len(sites), len(sites)), np.nan)
            np.fill_diagonal(values, 1)
            for row in here.to_dict("records"):
                one, other = at.get((row["first"], row["place"])), at.get((row["second"], row["other_place"]))
                if one is not None and other is not None:
                    values[one, other] = values[other, one] = row[column]
            names = [f"{_short(name)} {place}" for name, place in sites]
            whole.add_heatmap(
                z=values, coloraxis="coloraxis", customdata=np.array(np.meshgrid(names, names)).transpose(1, 2, 0),
                hovertemplate="%{customdata[1]}, %{customdata[0]}: %{z:.3f}<extra></extra>", row=i, col=j,
            )  # fmt: skip
            for cut in cuts:
                whole.add_hline(y=cut, line={"color": "white", "width": 1}, row=i, col=j)  # pyright: ignore
                whole.add_vline(x=cut, line={"color": "white", "width": 1}, row=i, col=j)  # pyright: ignore
    whole.update_xaxes(**ticks, tickangle=60, showgrid=False)
    whole.update_yaxes(**ticks, autorange="reversed", showgrid=False)
    bar = {"title": {"text": "CKA"}, "thickness": 14, "lenmode": "pixels", "len": 300, "y": 1, "yanchor": "top"}
    return whole.update_layout(
        coloraxis={"colorscale": SEQUENTIAL, "cmin": 0, "cmax": 1, "colorbar": bar},
        margin={"l": left, "r": 130, "t": top, "b": 190},
    )


def _known(rows: pd.DataFrame, name: str, place: str) -> set[tuple[str, str]]:
    kept = rows.dropna(subset=["cka"])
    return set(zip(kept[name], kept[place], strict=True))


def _sites(rows: pd.DataFrame) -> go.Figure:
    """CKA of pairs of seeds at the same place: mean of pairs and its spread, beside untrained pairs."""
    rows = rows.query("place == other_place").dropna(subset=["mean"])
    shapes, operators = (list(dict.fromkeys(rows[name])) for name in ("shape", "operator"))
    whole = figure(
        "Do seeds of one shape hold the same, layer by layer?",
        f"linear CKA of two seeds at the same place, {APART}<br>mean of the pairs; bars: lowest to highest pair",
        width=max(300 * len(shapes), 1000), height=190 + 260 * len(operators),
    ).set_subplots(
        rows=len(operators), cols=len(shapes), shared_yaxes=True, horizontal_spacing=0.03, vertical_spacing=0.16,
        subplot_titles=[f"{shape}: {operator}" for operator in operators for shape in shapes],
    )  # fmt: skip
    for number, (_, here) in enumerate(groups(rows.sort_values("operator", kind="stable"), "operator", "shape")):
        i, j = 1 + number // len(shapes), 1 + number % len(shapes)
        for prefix, name, colour in (("", "trained", BLUE), ("untrained_", "untrained", GREY)):
            mean, low, high = (here[f"{prefix}{column}"] for column in ("mean", "lowest", "highest"))
            whole.add_scatter(
                x=here["place"], y=mean, mode="lines+markers", name=name, legendgroup=name, showlegend=number == 0,
                marker={"color": colour, "size": 8}, line={"color": colour, "width": 1.5},
                error_y={"type": "data", "symmetric": False, "array": high - mean, "arrayminus": mean - low},
                hovertemplate="%{x}: %{y:.3f}", row=i, col=j,
            )  # fmt: skip
    whole.update_yaxes(range=[-0.03, 1.05]).update_yaxes(title_text="CKA", col=1)
    whole.update_annotations(font_size=13)
    return whole.update_layout(margin={"t": 130, "b": 80})


def _jobs(layers: pd.DataFrame) -> go.Figure:
    """Share of jobs that both models of a pair have, by group of pairs and layer; a mark a pair."""
    keys = zip(*(layers[name] for name in ("relation", "shape", "other_shape", "layer")), strict=True)
    labels = [f"{who((relation, shape, other))}, layer {layer}" for relation, shape, other, layer in keys]
    rows = layers.assign(label=labels)
    trained, untrained = only(rows, model="trained"), only(rows, model="untrained", same_start=False)
    names = list(dict.fromkeys(trained["label"]))
    whole = figure(
        "Do heads of two models do the same jobs?",
        "share of jobs (head, answer digit, group of problems) that the matched head has too; a mark a pair<br>"
        f"same: reads one or two positions, mean patterns overlap by {SAME_LOOK}, CKA of what is written {SAME_WRITE}",
        x="share of jobs that both have", width=1200, height=230 + 62 * len(names),
    )  # fmt: skip
    series = (
        ("jobs", "heads matched as wholes", BLUE, trained, "circle", -0.27),
        ("jobs_by_digit", "each answer digit's heads matched apart", SKY, trained, "diamond", -0.09),
        ("jobs_at_random", "matched at random", ORANGE, trained, "square", 0.09),
        ("jobs", "untrained, as wholes", GREY, untrained, "x", 0.27),
    )
    for column, name, colour, of, symbol, shift in series:
        whole.add_scatter(
            x=of[column], y=[names.index(label) + shift for label in of["label"]], mode="markers", name=name,
            marker={"color": colour, "symbol": symbol, "size": 9, "opacity": 0.8},
            text=[f"{_short(a)}, {_short(b)}" for a, b in zip(of["first"], of["second"], strict=True)],
            hovertemplate="%{text}: %{x:.2f}",
        )  # fmt: skip
    whole.update_xaxes(range=[-0.03, 1.03])
    whole.update_yaxes(
        tickvals=list(range(len(names))), ticktext=names, range=[len(names) - 0.5, -0.5], tickfont_size=12
    )
    legend = {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", "x": 0}
    return whole.update_layout(margin={"t": 110, "b": 120}, legend=legend)


def _matches(heads: pd.DataFrame) -> go.Figure:
    """What matched heads look at against what they write, a mark a matched head of two seeds."""
    known = heads.dropna(subset=["write"])
    seeds = only(known, relation="other seed")
    rows = seeds if len(seeds) else known
    panels = list(dict.fromkeys(rows["shape"]))
    whole = figure(
        "How alike are matched heads?",
        "mean over answer digits and groups of problems, on problems that the match was not made on; a mark a head<br>"
        "untrained heads all spread their attention alike, so a raw likeness says little",
        width=max(330 * len(panels), 1000),
        height=500,
    ).set_subplots(rows=1, cols=max(len(panels), 1), shared_yaxes=True, subplot_titles=panels, horizontal_spacing=0.03)
    named: set[str] = set()
    for (shape, model, layer), here in groups(rows, "shape", "model", "layer"):
        name = f"layer {layer}" if model == "trained" else "untrained"
        colour = PALETTE[layer % len(PALETTE)] if model == "trained" else GREY
        whole.add_scatter(
            x=here["look"], y=here["write"], mode="markers", name=name, legendgroup=name, showlegend=name not in named,
            marker={"color": colour, "size": 9, "opacity": 0.8, "symbol": "circle" if model == "trained" else "x"},
            hovertemplate="looks %{x:.2f}, writes %{y:.2f}", row=1, col=1 + panels.index(shape),
        )  # fmt: skip
        named.add(name)
    whole.update_xaxes(range=[0, 1.03], title_text="overlap of mean patterns")
    whole.update_yaxes(range=[-0.05, 1.05]).update_yaxes(title_text="CKA of what they write", col=1)
    return whole.update_layout(margin={"t": 120})


def _matrix(rows: pd.DataFrame, value: str, first: list[str], second: list[str], *, mirrored: bool) -> go.Heatmap:
    values = np.full((len(first), len(second)), np.nan)
    for row in rows.to_dict("records"):
        i, j = first.index(row["first"]), second.index(row["second"])
        values[i, j] = row[value]
        if mirrored:
            values[j, i] = row[value]
    text = [["" if np.isnan(of) else f"{of:.2f}" for of in line] for line in values]
    return go.Heatmap(
        z=values, x=[_short(name) for name in second], y=[_short(name) for name in first], text=text,
        texttemplate="%{text}", textfont={"size": 11}, xgap=1, ygap=1, coloraxis="coloraxis",
        hovertemplate="%{y}, %{x}: %{z:.3f}<extra></extra>",
    )  # fmt: skip


def _panels(title: str, subtitle: str, heats: dict[str, go.Heatmap], unit: str, most: float) -> go.Figure:
    """Heat maps side by side."""
    cell, gap, left = 50, 160, 170
    sides = [max(np.asarray(heat.z).shape[axis] for heat in heats.values()) for axis in (1, 0)]
    width = len(heats) * cell * max(sides[0], 4) + gap * (len(heats) - 1)
    bar = {"title": {"text": unit}, "thickness": 14}
    whole = figure(
        title, subtitle, width=max(width + left + 130, 1000), height=max(cell * sides[1], 240) + 270,
        coloraxis={"colorscale": DIVERGING, "cmin": -most, "cmax": most, "colorbar": bar},
    ).set_subplots(rows=1, cols=len(heats), subplot_titles=list(heats), horizontal_spacing=gap / width)  # fmt: skip
    for column, heat in enumerate(heats.values(), start=1):
        whole.add_trace(heat, row=1, col=column)
    whole.update_xaxes(showgrid=False, tickangle=40, tickfont_size=11)
    whole.update_yaxes(showgrid=False, autorange="reversed", tickfont_size=11)
    return whole.update_layout(margin={"l": left, "r": 130, "t": 130, "b": 140})


def _errors(errors: pd.DataFrame, order: list[str]) -> go.Figure:
    """What two models share of the errors they could, within patterns, by operator."""
    kept = only(errors, enough=True)
    heats = {}
    for (operator,), rows in groups(kept if len(kept) else errors, "operator"):
        names = sorted({*rows["first"], *rows["second"]}, key=order.index)
        heats[operator] = _matrix(rows, "shared_within", names, names, mirrored=True)
    return _panels(
        "Do two models get the same problems wrong, beyond the kinds of their digit pairs?",
        "0: no more shared errors than by chance within each pattern of digit pairs; 1: all that the numbers of errors "
        "allow<br>blank: models not asked the same problems, or too few errors",
        heats, "shared", 1.0,
    )  # fmt: skip


def _twins(twins: pd.DataFrame) -> go.Figure:
    """How much more often the one without a list is wrong where the other errs than on twins."""
    heats = {}
    for (operator,), rows in groups(twins, "operator"):
        names = (list(dict.fromkeys(rows[side])) for side in ("first", "second"))
        heats[operator] = _matrix(rows, "excess", *names, mirrored=False)
    return _panels(
        "Is a model wrong where one that seldom errs is?",
        "share wrong (model below) on problems that the model at the left gets wrong, less the share wrong on random "
        "problems<br>of the same pattern of digit pairs; 0: it fails on these problems as on others of their kind",
        heats, "difference", 0.3,
    )  # fmt: skip
