"""The figures of analysis `hill-division`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


def training_figure(units: "pd.DataFrame", epochs: int) -> "go.Figure":
    """Share of units that are exact once snapped, and stay so, after each epoch."""
    from workbench.figures import PALETTE, figure

    whole = figure(
        "Units that have found division, by epoch",
        f"share whose snapped weights are exactly [1, -1] and stay so; {units['seed'].nunique()} units a variant",
        x="epochs of 1,000 steps",
        y="share of units",
        width=950,
        height=520,
    )
    for colour, (variant, here) in zip(PALETTE, units.groupby("variant", sort=False), strict=False):
        after = [value for value in here["exact_after"] if value]
        steps = range(epochs + 1)
        whole.add_scatter(
            x=list(steps), y=[sum(value <= epoch for value in after) / len(here) for epoch in steps], name=str(variant),
            mode="lines", line={"color": colour, "width": 2.5, "shape": "hv", "dash": _dash(str(variant))},
        )  # fmt: skip
    return whole.update_yaxes(range=[-0.03, 1.03]).update_layout(legend_title_text="variant")


def _dash(variant: str) -> str:
    return {"float32": "dash", "float64, beta2 0.5": "dot"}.get(variant, "solid")


def answers_figure(cases: "pd.DataFrame") -> "go.Figure":
    """How often each test is answered with native division's bits: unsnapped, snapped, and in which powers."""
    from workbench.figures import BLUE, GREEN, ORANGE, error_bars, figure

    variants, tests = list(cases["variant"].unique()), list(cases["test"].unique())
    whole = figure(
        "Answers with native division's bits",
        f"share of {cases['n'].iloc[0]} units a variant, 95% Wilson intervals",
        width=1250,
        height=540,
    ).set_subplots(rows=1, cols=len(tests), shared_yaxes=True, subplot_titles=tests, horizontal_spacing=0.03)
    looks = (
        ("bits", "as trained, real powers", ORANGE, -0.2),
        ("bits_snapped_real", "snapped, real powers", GREEN, 0.0),
        ("bits_snapped", "snapped, sign-exact powers", BLUE, 0.2),
    )
    for column, test in enumerate(tests, start=1):
        here = cases[cases["test"] == test]
        for key, words, colour, shift in looks:
            whole.add_scatter(
                x=here[key], y=[variants.index(name) + shift for name in here["variant"]], mode="markers", name=words,
                error_x=error_bars(here[key], here[f"{key}_low"], here[f"{key}_high"]), legendgroup=words,
                marker={"color": colour, "size": 9}, showlegend=column == 1, row=1, col=column,
            )  # fmt: skip
    whole.update_xaxes(range=[-0.05, 1.05], title_text="share of units", dtick=0.25)
    whole.update_yaxes(range=[len(variants) - 0.5, -0.5], tickvals=list(range(len(variants))), showgrid=False)
    whole.update_yaxes(ticktext=variants, col=1)
    place = {"orientation": "h", "x": 1, "xanchor": "right", "y": 0.93, "yref": "container", "yanchor": "top"}
    return whole.update_layout(margin={"t": 120}, legend=place)
