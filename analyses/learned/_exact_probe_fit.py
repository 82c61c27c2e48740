"""Fitting and scoring of `exact-probe`: problems in two halves, readouts at every site, exact units on top."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbench.activations.collect import collect
from workbench.checkpoint import Checkpoint
from workbench.hill.unit import HillUnit
from workbench.initialise import initial_weights
from workbench.probe import fit, resamples, shuffled_within, variance_explained
from workbench.recipe import Architecture, RunConfig
from workbench.statistics import wilson
from workbench.task import POSITION_LABELS, POSITIONS_READ, Problems, digits_of, encode

UNITS = {"addition": "add", "subtraction": "subtract"}
PROBES = ("operands, then unit", "linear probe of the result")
PLACES = ("thousands", "hundreds", "tens", "units")
OPERANDS, FIRST_DIGITS, SECOND_DIGITS, RESULT = slice(0, 2), slice(2, 6), slice(6, 10), 10  # columns of the targets
OPERANDS_READ = 8  # position b0: from here on a model has read both operands
CHUNK = 2_000  # problems a forward pass

Labels = Literal["true", "shuffled"]
LABELS: dict[str, tuple[Labels, ...]] = {"trained": ("true", "shuffled"), "untrained": ("true",)}


def where(table: pd.DataFrame, **values: object) -> pd.DataFrame:
    """The rows of a table that hold the given values in the columns of those names."""
    chosen = np.ones(len(table), dtype=bool)
    for column, value in values.items():
        chosen &= (table[column] == value).to_numpy()
    return cast(pd.DataFrame, table[chosen])


@dataclass(frozen=True)
class Site:
    """A hook and a position."""

    hook: str
    position: int

    @property
    def columns(self) -> dict[str, Any]:
        """The site in a table: its layer, hook and the label of its position."""
        return {"layer": int(self.hook.split(".")[1]), "hook": self.hook, "position": POSITION_LABELS[self.position]}


def sites_of(architecture: Architecture, full: bool) -> list[Site]:
    """The residual stream at every depth from b0 on; `full` adds earlier positions and what attention and MLP write."""
    parts = ["hook_resid_mid", "hook_resid_post"]
    if full:
        parts = ["hook_attn_out", "hook_resid_mid", "hook_mlp_out", "hook_resid_post"]
    hooks = ["blocks.0.hook_resid_pre"] + [f"blocks.{n}.{part}" for n in range(architecture.n_layers) for part in parts]
    return [Site(hook, position) for hook in hooks for position in range(0 if full else OPERANDS_READ, POSITIONS_READ)]


def activations(
    sites: list[Site], weights: Mapping[str, Tensor], config: RunConfig, problems: Problems
) -> Float[Tensor, "site problem d_model"]:
    """Residual-stream activations of every problem at `sites`, which are every chosen position of each hook in turn."""
    hooks, positions = list(dict.fromkeys(site.hook for site in sites)), sorted({site.position for site in sites})
    tokens = torch.from_numpy(encode(problems, hide_sign=config.problems == "sign-hidden"))
    found = torch.empty(len(sites), len(problems), config.architecture.d_model)
    for start in range(0, len(problems), CHUNK):
        part = collect(weights, tokens[start : start + CHUNK], config.architecture, hooks, positions)
        stacked = torch.stack([part[hook] for hook in hooks])  # [hook, problem, position, d_model]
        found[:, start : start + CHUNK] = stacked.transpose(1, 2).flatten(0, 1)
    return found


@dataclass(frozen=True, eq=False)
class Split:
    """Problems of which the first half is fitted on and the second scored."""

    problems: Problems

    @property
    def half(self) -> int:
        """How many problems the readouts are fitted on."""
        return len(self.problems) // 2

    @cached_property
    def exact(self) -> Float[Tensor, "problem 11"]:
        """Exact values: a, b, a3 a2 a1 a0, b3 b2 b1 b0, and the signed result."""
        p = self.problems
        columns = [p.a[:, None], p.b[:, None], digits_of(p.a), digits_of(p.b), p.answers[:, None]]
        return torch.from_numpy(np.concatenate(columns, axis=1).astype(np.float64))

    def labels(self, kind: Labels, seed: int) -> Float[Tensor, "fitted 11"]:
        """The fitting half's exact values, or the same permuted among its problems of one operator."""
        values = self.exact[: self.half]
        if kind == "shuffled":
            return values[torch.from_numpy(shuffled_within(self.problems.subtract[: self.half], seed))]
        return values

    def of(self, operator: str) -> tuple[Int[Tensor, " fitted"], Int[Tensor, " scored"]]:
        """Indices of an operator's problems in the fitting and in the scoring half."""
        chosen = torch.from_numpy(self.problems.subtract == (operator == "subtraction")).nonzero()[:, 0]
        return chosen[chosen < self.half], chosen[chosen >= self.half]

    @property
    def operators(self) -> list[str]:
        """The operators that have problems in both halves."""
        return [operator for operator in UNITS if all(map(len, self.of(operator)))]


@dataclass(frozen=True, eq=False)
class _Scoring:
    """Where readouts of one operator are scored: its problems in each half, and bootstrap resamples of the second."""

    operator: str
    fitting: Int[Tensor, " fitted"]
    scoring: Int[Tensor, " scored"]
    counts: Float[Tensor, "replicate scored"]

    def table(
        self,
        sites: list[Site],
        said: Float[Tensor, "site problem"],
        labels: Float[Tensor, " fitted"],
        exact: Float[Tensor, " problem"],
        **columns: Any,
    ) -> pd.DataFrame:
        """One row a site: variance explained in both halves, and how often rounding gives exactly the right number."""
        labels, exact, outside = labels[self.fitting], exact[self.scoring], said[:, self.scoring]
        mean = labels.mean().item()
        left = (said[:, self.fitting] - labels).square().sum(dim=1) / (labels - mean).square().sum()
        found = variance_explained(outside, exact, mean, self.counts)
        explained = {"fit_r2": 1 - left, "r2": found.r2, "low": found.low, "high": found.high}
        rows = pd.DataFrame([site.columns for site in sites]).assign(operator=self.operator, **columns)
        rows["n_score"] = len(exact)
        rows = rows.assign(**{name: value.numpy() for name, value in explained.items()})
        return rows.assign(**_shares((outside.round() == exact).sum(dim=1), len(exact)))


def _shares(right: Int[Tensor, " site"], n: int) -> dict[str, np.ndarray]:
    """Share of n problems that are right, with its 95% Wilson interval."""
    low, high = np.array([wilson(count, n) for count in right.tolist()]).T
    return {"exact_share": right.numpy() / n, "exact_low": low, "exact_high": high}


def measure(
    x: Float[Tensor, "site problem d_model"], sites: list[Site], split: Split, kind: Labels, seed: int
) -> Iterator[tuple[str, pd.DataFrame]]:
    """(table name, rows) of both probes and of the decimal places, by operator; `kind` says which labels are fitted."""
    labels = split.labels(kind, seed)
    said = fit(x[:, : split.half], labels[:, :RESULT]).read(x)
    for operator in split.operators:
        fitting, scoring = split.of(operator)
        score = _Scoring(operator, fitting, scoring, resamples(len(scoring), seed))
        unit = HillUnit.enumerated(UNITS[operator])
        direct = fit(x[:, fitting], labels[fitting, RESULT:]).read(x)[..., 0]
        outputs = ((PROBES[0], unit(said[..., OPERANDS]), split.half), (PROBES[1], direct, len(fitting)))
        for probe, output, n_fit in outputs:
            rows = score.table(sites, output, labels[:, RESULT], split.exact[:, RESULT], probe=probe, n_fit=n_fit)
            yield "sites", rows
        yield "places", _places(sites, unit, said, labels, split, score)


def _places(
    sites: list[Site],
    unit: HillUnit,
    said: Float[Tensor, "site problem target"],
    labels: Float[Tensor, "fitted 11"],
    split: Split,
    score: _Scoring,
) -> pd.DataFrame:
    """The unit on the two digit readouts of each decimal place, and how often all four places are exactly right."""
    pairs, labelled, exact = (
        unit(torch.stack([values[..., FIRST_DIGITS], values[..., SECOND_DIGITS]], dim=-1))
        for values in (said, labels, split.exact)
    )
    tables = [
        score.table(sites, pairs[..., i], labelled[:, i], exact[:, i], place=place, n_fit=split.half)
        for i, place in enumerate(PLACES)
    ]
    right = (pairs[:, score.scoring].round() == exact[score.scoring]).all(dim=-1).sum(dim=1)
    unread = dict.fromkeys(("fit_r2", "r2", "low", "high"), np.nan)
    whole = tables[0].assign(place="all four", **unread, **_shares(right, len(score.scoring)))
    return pd.concat([*tables, whole], ignore_index=True)


def measure_checkpoint(
    checkpoint: Checkpoint, split: Split, *, full: bool, seed: int
) -> Iterator[tuple[str, pd.DataFrame]]:
    """(table name, rows) for the trained model, the same model untrained, and the trained one with shuffled labels."""
    config = checkpoint.config
    sites = sites_of(config.architecture, full)
    models = {
        "trained": {name: torch.tensor(value) for name, value in checkpoint.weights.items()},
        "untrained": initial_weights(config.architecture, config.recipe.init, config.seed),
    }
    for model, weights in models.items():
        x = activations(sites, weights, config, split.problems)
        for kind in LABELS[model]:
            for name, rows in measure(x, sites, split, kind, seed):
                condition = {"checkpoint": checkpoint.name, "model": model, "labels": kind}
                yield name, rows.assign(**condition).reindex(columns=[*condition, *rows.columns])
