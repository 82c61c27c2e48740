"""What `exact-probe` found in a few rows: the best sites with their controls, and the findings."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pandas as pd
import torch

from analyses.learned._exact_probe_fit import (
    FIRST_DIGITS,
    OPERANDS_READ,
    PROBES,
    RESULT,
    SECOND_DIGITS,
    UNITS,
    Split,
    where,
)
from workbench.hill.unit import HillUnit
from workbench.probe import fit, resamples, variance_explained
from workbench.result import Finding
from workbench.task import POSITION_LABELS, SIGN_AT

BEFORE_ANSWER = POSITION_LABELS[OPERANDS_READ : SIGN_AT + 1]  # operands read, no digit of the answer yet
PREDICTED_AT = {"thousands": "d4", "hundreds": "d3", "tens": "d2", "units": "d1"}  # a model predicts the next token
EMBEDDING = "blocks.0.hook_resid_pre"
WORDS = {PROBES[0]: "a and b read linearly, then the exact unit", PROBES[1]: "linear probe of the exact result"}
CONTROL = "untrained model, its own best site of the layer"


def _best(rows: pd.DataFrame, group: list[str]) -> pd.DataFrame:
    """Of each group and layer, the trained model's residual site with the highest `fit_r2`, beside its controls.

    The untrained model stands beside it twice: at that same site, and at its own best one, since a choice among sites
    favours whoever makes it.
    """
    rows = cast(pd.DataFrame, rows[rows["hook"].str.contains("resid")])
    trained = where(rows, model="trained", labels="true")
    best = trained.loc[trained.groupby([*group, "layer"], sort=False)["fit_r2"].idxmax()]
    best = best.drop(columns=["model", "labels"])
    untrained = where(rows, model="untrained")
    own_best = untrained.loc[untrained.groupby([*group, "layer"], sort=False)["fit_r2"].idxmax()]
    controls = (
        ("untrained", untrained, ["hook", "position"]),
        ("untrained_best", own_best, ["layer"]),
        ("shuffled", where(rows, labels="shuffled"), ["hook", "position"]),
        ("embedding", where(trained, hook=EMBEDDING), ["position"]),
    )
    for name, found, site in controls:
        control = found.set_index([*group, *site])[["r2", "exact_share"]].add_prefix(f"{name}_")
        best = best.merge(control, left_on=[*group, *site], right_index=True, how="left", validate="many_to_one")
    return best


def best_of_each_layer(sites: pd.DataFrame) -> pd.DataFrame:
    """The best site of each layer before the answer's digits are read, by checkpoint, operator and probe."""
    here = sites["position"].isin(BEFORE_ANSWER)
    return _best(cast(pd.DataFrame, sites[here]), ["checkpoint", "operator", "probe"])


def best_of_each_place(places: pd.DataFrame) -> pd.DataFrame:
    """The best hook of each layer for each decimal place, at the position that predicts the answer's digit there."""
    here = places["position"] == places["place"].map(PREDICTED_AT.get)
    return _best(cast(pd.DataFrame, places[here]), ["checkpoint", "operator", "place"])


def findings(tables: Mapping[str, pd.DataFrame], splits: Mapping[str, Split], seed: int) -> list[Finding]:
    """What variance explained is about; then each checkpoint's probes and places at their best site, by `fit_r2`."""
    found = list(_thousands(splits, seed))
    for name, operator in dict.fromkeys(zip(tables["layers"]["checkpoint"], tables["layers"]["operator"], strict=True)):
        layers, digits = (where(tables[kind], checkpoint=name, operator=operator) for kind in ("layers", "digits"))
        best = layers.loc[layers.groupby("probe", sort=False)["fit_r2"].idxmax()]
        found += [_probe(row) for row in best.to_dict("records")]
        best = digits.loc[digits.groupby("place", sort=False)["fit_r2"].idxmax()]
        found.append(_hardest_place(best.loc[best["fit_r2"].idxmin()].to_dict()))
    return found


def _thousands(splits: Mapping[str, Split], seed: int) -> Iterator[Finding]:
    """What a linear reading of the exact sum or difference of the thousands digits alone explains of the result."""
    for variant, split in splits.items():
        for operator in split.operators:
            exact = split.exact[split.of(operator)[1]]
            result = exact[:, RESULT]
            digits = torch.stack([exact[:, FIRST_DIGITS.start], exact[:, SECOND_DIGITS.start]], dim=-1)
            thousands = HillUnit.enumerated(UNITS[operator])(digits)[:, None]
            said = fit(thousands[None], result[:, None], penalties=(0.0,)).read(thousands[None])[..., 0]
            share = variance_explained(said, result, result.mean().item(), resamples(len(result), seed))
            text = (
                f"{operator}, problems {variant}: share of the exact result's variance that lies in its two thousands "
                "digits; variance explained says little about the other places, which tables digits and places show"
            )
            yield Finding(text, share.r2.item(), share.low.item(), share.high.item(), len(result))


def _controls(row: Mapping[Any, Any]) -> str:
    return f"(embedding {row['embedding_r2']:.3f}, shuffled labels {row['shuffled_r2']:.3f})"


def _probe(row: Mapping[Any, Any]) -> Finding:
    text = (
        f"{row['checkpoint']}, {row['operator']}: {WORDS[row['probe']]}, at {row['hook']}, position {row['position']}: "
        f"variance explained on held-out problems {_controls(row)}"
    )
    return Finding(text, row["r2"], row["low"], row["high"], row["n_score"], CONTROL, row["untrained_best_r2"])


def _hardest_place(row: Mapping[Any, Any]) -> Finding:
    text = (
        f"{row['checkpoint']}, {row['operator']}: two digits of one place read linearly where the answer's digit is "
        f"predicted, then the exact unit; the hardest place, {row['place']}, at {row['hook']}, position "
        f"{row['position']}: variance explained on held-out problems {_controls(row)}; exactly right after rounding in "
        f"{row['exact_share']:.3f} of them"
    )
    return Finding(text, row["r2"], row["low"], row["high"], row["n_score"], CONTROL, row["untrained_best_r2"])
