"""Means of `attribution` by category and answer digit, with 95% intervals, as tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from analyses.learned._attribution_parts import Parts, components, depths, take_apart
from analyses.learned._attribution_problems import Drawn, Masks
from analyses.learned._attribution_shares import share_rows
from analyses.learned._conditions import PREDICTED, models, tokens_of
from workbench.checkpoint import Checkpoint
from workbench.recipe import Architecture
from workbench.statistics import student_quantile, wilson
from workbench.task import ANSWER_POSITIONS

ALL_DIGITS = "d3-d0"  # their mean; d4 takes two values in addition and one in subtraction, so it would hide the others
ANSWERS = (*PREDICTED, ALL_DIGITS)
NODES = {name: f"P{ANSWER_POSITIONS.start + place}" for place, name in enumerate(PREDICTED)} | {ALL_DIGITS: ""}

Means = Float[np.ndarray, "3 category *value"]
Values = Float[Tensor, "problem *value"]
Ends = Float[Tensor, "3 *value"]  # mean, lower and upper end


def means(values: Values, masks: Masks) -> Means:
    """Mean over each category's problems with its 95% interval (Student 1908); NaN bounds for a single problem."""
    return torch.stack([_student(values[torch.from_numpy(mask)]) for mask in masks.values()], dim=1).numpy()


def ratios(top: Values, bottom: Float[Tensor, "problem *#value"], masks: Masks) -> Means:
    """Ratio of two means over each category's problems with its 95% interval; NaN bounds for a single problem.

    The interval is that of the linearised ratio (Cochran 1977, section 6.4): of the residuals `top - ratio bottom`.
    """
    found = []
    for mask in masks.values():
        above, below = (values[torch.from_numpy(mask)] for values in (top, bottom))
        ratio = above.mean(dim=0) / below.mean(dim=0)
        found.append(ratio + _student((above - ratio * below) / below.mean(dim=0)))
    return torch.stack(found, dim=1).numpy()


def _student(values: Values) -> Ends:
    n, mean = len(values), values.mean(dim=0)
    half = values.std(dim=0) * (student_quantile(n - 1) / n**0.5) if n > 1 else torch.full_like(mean, torch.nan)
    return torch.stack([mean, mean - half, mean + half])


def with_all_digits(values: Float[Tensor, "problem answer *rest"]) -> Float[Tensor, "problem digits *rest"]:
    """The five answer digits, and sixth the mean of d3 to d0."""
    return torch.cat([values, values[:, 1:].mean(dim=1, keepdim=True)], dim=1)


@dataclass(frozen=True)
class _Table:
    """Rows of every category, answer digit and item; columns are added as arrays of that shape."""

    masks: Masks
    item: str
    items: list[str]

    def frame(self, **columns: Float[np.ndarray, "category digits item"]) -> pd.DataFrame:
        keys = pd.MultiIndex.from_product(
            [range(len(self.masks)), ANSWERS, self.items], names=["_", "answer", self.item]
        )
        rows = keys.to_frame(index=False)
        place = rows.pop("_").to_numpy()
        labels = np.array(list(self.masks))
        rows.insert(0, "grouping", labels[place, 0])
        rows.insert(1, "category", labels[place, 1])
        rows["n"] = np.array([mask.sum() for mask in self.masks.values()])[place]
        return rows.assign(**{name: value.ravel() for name, value in columns.items()})


def component_table(parts: Parts, masks: Masks, architecture: Architecture) -> pd.DataFrame:
    """What each component adds on average to the logit difference; `share` only where that is surely above zero."""
    added = with_all_digits(parts.parts)
    mean, low, high = means(added, masks)
    (elsewhere, *_), (_, surely, _) = (
        means(with_all_digits(values), masks) for values in (parts.elsewhere, parts.margin)
    )
    shares = ratios(added, with_all_digits(parts.margin)[..., None], masks)
    shares = shares * np.where(surely > 0, 1.0, np.nan)[..., None]
    table = _Table(masks, "component", components(architecture))
    share = dict(zip(("share", "share_low", "share_high"), shares, strict=True))
    rows = table.frame(mean=mean, low=low, high=high, **share, elsewhere=elsewhere)
    rows.insert(4, "node", rows["answer"].map(NODES.get) + rows["component"])
    return rows


def margin_table(parts: Parts, masks: Masks) -> pd.DataFrame:
    """The logit difference itself, and how far the components' sum is from it at most (rounding)."""
    mean, low, high = (values[..., None] for values in means(with_all_digits(parts.margin), masks))
    gap = (parts.parts.sum(dim=2) - parts.margin).abs()
    gap = torch.cat([gap, gap.amax(dim=1, keepdim=True)], dim=1).numpy()
    most = np.stack([gap[mask].max(axis=0) for mask in masks.values()])[..., None]
    rows = _Table(masks, "component", ["margin"]).frame(margin=mean, low=low, high=high, largest_gap=most)
    return rows.drop(columns="component")


def lens_table(parts: Parts, masks: Masks, architecture: Architecture) -> pd.DataFrame:
    """How often each depth's stream gives the correct digit straight away, and its mean log-probability (nats).

    Intervals are Wilson's for one digit; for the mean over digits, which are not independent, Student's.
    """
    right, low, high = means(with_all_digits(parts.right), masks)
    said, *_ = means(with_all_digits(parts.lens), masks)
    rows = _Table(masks, "depth", depths(architecture)).frame(right=right, low=low, high=high, log_prob=said)
    single = (rows["answer"] != ALL_DIGITS).to_numpy()
    counts = (rows["right"] * rows["n"]).round().astype(int)
    bounds = np.array([wilson(count, n) for count, n in zip(counts, rows["n"], strict=True)])
    for number, name in enumerate(("low", "high")):
        rows[name] = np.where(single, bounds[:, number], rows[name])
    return rows


def neuron_table(parts: Parts, masks: Masks, architecture: Architecture) -> pd.DataFrame:
    """What each neuron adds on average to the logit difference."""
    names = [f"L{layer}M{neuron}" for layer in range(architecture.n_layers) for neuron in range(architecture.d_mlp)]
    mean, low, high = means(with_all_digits(parts.neurons), masks)
    rows = _Table(masks, "neuron", names).frame(mean=mean, low=low, high=high)
    rows.insert(4, "node", rows["answer"].map(NODES.get) + rows["neuron"])
    return rows


def effective(values: Float[Tensor, "*batch neuron"]) -> Float[Tensor, "*batch"]:
    """Participation ratio `(sum |c|)^2 / sum c^2`: 1 when one neuron adds all, n when n add equally; NaN for none."""
    return values.abs().sum(dim=-1).square() / values.square().sum(dim=-1)


def crowd_table(parts: Parts, masks: Masks, architecture: Architecture) -> pd.DataFrame:
    """How many neurons of a layer make its part of a problem's logit difference, as a mean of `effective` (95%).

    Problems to which no neuron adds anything are left out; `adding` is the share of the others.
    """
    by_layer = parts.neurons.unflatten(2, (architecture.n_layers, architecture.d_mlp))
    number = effective(by_layer)
    adds = ~number.isnan()
    number, adds = (with_all_digits(values) for values in (number.nan_to_num(), adds.double()))
    neurons, low, high = ratios(number, adds, masks)
    layers = [str(layer) for layer in range(architecture.n_layers)]
    table = _Table(masks, "layer", layers)
    return table.frame(neurons=neurons, low=low, high=high, adding=means(adds, masks)[0])


def measure(checkpoint: Checkpoint, on: Drawn, *, full: bool) -> Iterator[tuple[str, pd.DataFrame]]:
    """(table name, rows) of the trained and the untrained model.

    Neurons by operator and sign, and if `full` by class, of the trained model only.
    """
    architecture = checkpoint.config.architecture
    tokens = tokens_of(checkpoint, on.problems)
    few: Masks = on.masks if full else {key: mask for key, mask in on.masks.items() if key[0] != "class"}
    for model, weights in models(checkpoint).items():
        parts = take_apart(weights, tokens, architecture, on.other)
        tables = {
            "components": component_table(parts, on.masks, architecture),
            "margins": margin_table(parts, on.masks),
            "lens": lens_table(parts, on.masks, architecture),
            "crowds": crowd_table(parts, on.masks, architecture),
            "shares": pd.DataFrame(list(share_rows(parts, on, architecture))),
        }
        if model == "trained":
            tables["neurons"] = neuron_table(parts, few, architecture)
        for name, rows in tables.items():
            condition: dict[str, Any] = {"checkpoint": checkpoint.name, "model": model}
            yield name, rows.assign(**condition).reindex(columns=[*condition, *rows.columns])
