"""What `attribution` found in a few rows: a summary of each checkpoint, and the findings."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from analyses.learned._attribution_shares import NOTHING, alone, makers
from analyses.learned._attribution_tables import ALL_DIGITS
from analyses.learned._bounds import OVER_PROBLEMS, mean_bounds
from analyses.learned._columns import mean, numbers, seeds
from analyses.learned._conditions import GROUPS, shape_of
from analyses.learned._exact_probe_fit import where
from workbench.checkpoint import Checkpoint
from workbench.result import Finding

ELSEWHERE = "the same on another problem's two tokens"
UNTRAINED = "the untrained models"
Tables = Mapping[str, pd.DataFrame]


def makers_table(components: pd.DataFrame) -> pd.DataFrame:
    """One row a checkpoint, category and answer digit: the components that make the answer, by the rule, or none."""
    keys = ["checkpoint", "grouping", "category", "answer"]
    groups: dict[tuple[str, ...], list[dict[Any, Any]]] = {}
    for row in where(components, model="trained").to_dict("records"):
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return pd.DataFrame([dict(zip(keys, key, strict=True)) | _made(rows) for key, rows in groups.items()])


def _made(rows: list[dict[Any, Any]]) -> dict[str, Any]:
    """The rule applied to one category and answer digit."""
    shares = {row["component"]: row["share"] for row in rows}
    found = makers(shares)
    made = {"n": rows[0]["n"], "makers": _said(shares, found), "alone": alone(shares) or ""}
    made["against"] = _said(shares, [name for name, share in shares.items() if share < -NOTHING])
    kept = [row for row in rows if row["component"] in found]
    for name in ("share", "share_low", "share_high"):  # ends added up: at least 95%, however the parts go together
        made[name] = sum(row[name] for row in kept) if found else math.nan
    elsewhere = sum(row["elsewhere"] for row in kept)
    return made | {"elsewhere": elsewhere / sum(row["mean"] for row in rows) if found else math.nan}


def _said(shares: Mapping[str, float], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {shares[name]:.2f}" for name in names)


def summarise(tables: Tables) -> pd.DataFrame:
    """One row a checkpoint: the mean logit difference, each kind's share of it, and what the logit lens has right."""
    shares, lens = (where(tables[name], model="trained", category="all") for name in ("shares", "lens"))
    rows = []
    for name in shares["checkpoint"].unique():
        own = where(shares, checkpoint=name)
        row = {"checkpoint": name.removeprefix("arithmetic-"), "margin": own["margin"].iloc[0]}
        row |= dict(zip(own["kind"], own["share"], strict=True))
        seen = where(lens, checkpoint=name, answer=ALL_DIGITS)
        right = dict(zip(seen["depth"], seen["right"], strict=True))
        rows.append(row | {f"right {depth}": share for depth, share in right.items() if "MLP" in depth})
    return pd.DataFrame(rows)


def findings(checkpoints: Sequence[Checkpoint], tables: Tables) -> list[Finding]:
    """What holds of each shape; then who makes the answers of each checkpoint."""
    gap = max(numbers(tables["margins"], "largest_gap"))
    n = int(sum(numbers(where(tables["margins"], category="all", answer=ALL_DIGITS), "n")))
    margin = mean(numbers(where(tables["margins"], model="trained", category="all", answer=ALL_DIGITS), "margin"))
    text = "Largest gap between a logit difference and the sum of its parts (rounding; the largest has no interval)"
    found = [Finding(text, gap, n=n, control="mean logit difference", control_value=margin)]
    shapes: dict[str, list[Checkpoint]] = {}
    for checkpoint in checkpoints:
        shapes.setdefault(shape_of(checkpoint), []).append(checkpoint)
    for shape, members in shapes.items():
        found += [*_shares(shape, members, tables), *_lens(shape, members, tables["lens"])]
        found += _crowds(shape, members, tables["crowds"])
    return found + [_makers(one.name, tables["makers"], tables["margins"]) for one in checkpoints]


def _of(table: pd.DataFrame, members: Sequence[Checkpoint], **values: object) -> pd.DataFrame:
    return where(cast(pd.DataFrame, table[table["checkpoint"].isin([one.name for one in members])]), **values)


def _ends(rows: pd.DataFrame, low: str = "low", high: str = "high") -> tuple[float, float] | tuple[None, None]:
    return mean_bounds(numbers(rows, low), numbers(rows, high))


def _margin(text: str, margins: pd.DataFrame) -> Finding:
    """The mean logit difference itself, where it has no shares, beside the untrained models'."""
    trained, untrained = (where(margins, model=model, answer=ALL_DIGITS) for model in ("trained", "untrained"))
    value, control = (mean(numbers(rows, "margin")) for rows in (trained, untrained))
    return Finding(text, value, *_ends(trained), int(numbers(trained, "n")[0]), UNTRAINED, control)


def _shares(shape: str, members: Sequence[Checkpoint], tables: Tables) -> Iterator[Finding]:
    """The last MLP's share, by operator and sign; the others in words."""
    shares = tables["shares"]
    last = f"L{members[0].config.architecture.n_layers - 1} MLP"
    for group in GROUPS:
        rows = _of(shares, members, model="trained", category=group)
        main = where(rows, kind=last)
        if not len(main):
            continue
        shown, margins = numbers(main, "share"), numbers(main, "margin")
        if any(np.isnan(shown)):
            differences = seeds(margins, ".2f")
            text = f"{shape}, {group}: a mean logit difference is not surely above zero, so parts have no shares"
            text = f"{text}: {differences}. Value: {OVER_PROBLEMS}"
            yield _margin(text, _of(tables["margins"], members, category=group))
            continue
        others = [kind for kind in rows["kind"].unique() if kind != last]
        rest = "; ".join(f"{kind} {seeds(numbers(where(rows, kind=kind), 'share'), '.2f')}" for kind in others)
        share = f"share of the mean logit difference that {last} adds: {seeds(shown)}"
        text = f"{shape}, {group}: {share}; {rest}. Value: {OVER_PROBLEMS}"
        n, control = int(numbers(main, "n")[0]), mean(numbers(main, "elsewhere"))
        yield Finding(text, mean(shown), *_ends(main), n, ELSEWHERE, control)


def _lens(shape: str, members: Sequence[Checkpoint], lens: pd.DataFrame) -> Iterator[Finding]:
    """What the stream after each layer but the last would answer, beside the model's own answer."""
    n_layers = members[0].config.architecture.n_layers
    depths = ["embedding", *(f"after L{layer} {part}" for layer in range(n_layers) for part in ("attention", "MLP"))]
    for group in GROUPS:
        rows = _of(lens, members, model="trained", category=group, answer=ALL_DIGITS)
        if len(rows):
            right = {depth: numbers(where(rows, depth=depth), "right") for depth in depths}
            said = "; ".join(f"{depth} {seeds(values)}" for depth, values in right.items())
            before, n = depths[-3] if n_layers > 1 else depths[-2], int(numbers(rows, "n")[0])
            text = f"{shape}, {group}: share of digits right by the logit lens {before}, mean of seeds; {said}"
            text = f"{text}. Value: {OVER_PROBLEMS}"
            bounds, control = _ends(where(rows, depth=before)), mean(right[depths[-1]])
            yield Finding(text, mean(right[before]), *bounds, n, "the model", control)


def _crowds(shape: str, members: Sequence[Checkpoint], crowds: pd.DataFrame) -> Iterator[Finding]:
    last = str(members[0].config.architecture.n_layers - 1)
    trained, untrained = (
        _of(crowds, members, model=model, category="all", answer=ALL_DIGITS, layer=last)
        for model in ("trained", "untrained")
    )
    number, control = numbers(trained, "neurons"), mean(numbers(untrained, "neurons"))
    if not any(np.isnan(number)):
        text = (
            f"{shape}: how many neurons of the last MLP make its part of one problem's logit difference (participation "
            f"ratio, of {members[0].config.architecture.d_mlp}): {seeds(number, '.1f')}. "
            f"Value: {OVER_PROBLEMS}"
        )
        name = UNTRAINED if np.isfinite(control) else None
        n, value = int(numbers(trained, "n")[0]), control if name else None
        yield Finding(text, mean(number), *_ends(trained), n, name, value)


def _makers(name: str, rows: pd.DataFrame, margins: pd.DataFrame) -> Finding:
    """Who makes the answers of one model over all problems, and whether one component does it alone."""
    (row,) = where(rows, checkpoint=name, category="all", answer=ALL_DIGITS).to_dict("records")
    of_it = where(margins, checkpoint=name, category="all", answer=ALL_DIGITS)
    (margin,) = where(of_it, model="trained").to_dict("records")
    difference = f"mean logit difference, {margin['margin']:.2f}"
    if not row["makers"]:
        text = f"{name}, all problems: no components make the answer (table makers has the categories); {difference}"
        return _margin(text, of_it)
    alone = f"; {row['alone']} alone" if row["alone"] else ""
    against = f"; against it: {row['against']}" if row["against"] else ""
    text = (
        f"{name}, all problems: the answer is made by {row['makers']}{alone}{against}; their share of the {difference}"
    )
    ends = (row["share_low"], row["share_high"])
    return Finding(text, row["share"], *ends, int(margin["n"]), ELSEWHERE, row["elsewhere"])
