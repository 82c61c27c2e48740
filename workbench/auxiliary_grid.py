"""The runs with auxiliary heads, as lists, and the rules that choose among them, written before any was run.

The question: does a head that must tell an exact quantity help the decoder beside it to learn? All heads read
`resid_mid` of the last layer, before the last MLP: there the digits have been gathered and not yet combined.

Weight (one for all heads): the three frozen heads x WEIGHTS x both MLP kinds x 1 and 2 layers, seed 100, 1,200 steps,
and beside them the four shapes without a head's influence (weight 0), which the rule does not count. Picked: the
weight with the lowest mean, over the twelve combinations of head and shape, of the logarithm of the best validation
cross-entropy; a diverged run counts as infinite; a tie goes to the smaller weight.

Grid: the twelve decoders x three heads x frozen and trainable at that weight, constant; and the twelve with a head of
weight 0, which are the decoders of a run without a head, byte for byte.

Most promising head: the one whose frozen form has the lowest mean over the twelve of ln(validation cross-entropy
/ that of the same decoder without a head). It gets two controls on all twelve, random frozen weights of equal norm and
a linear head on the same target; and on the smallest decoder, seed 0, a sweep of weights under both schedules and the
other site, `resid_post`.
"""

import math
import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from workbench.recipe import Architecture, Auxiliary, Head, HeadForm, Mlp, Recipe, RunConfig, Schedule, twelve
from workbench.sweeps import SWEEP_SEED

WEIGHTS = (0.1, 1.0, 10.0)
WEIGHT_STEPS = 1200
WEIGHT = 0.1  # what the rule picked
SWEPT_WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)
HEADS: tuple[Head, ...] = get_args(Head)
NO_HEAD = Auxiliary(head_weight=0.0)  # it only watches


def weight_sweep(steps: int = WEIGHT_STEPS) -> dict[str, RunConfig]:
    """The forty short runs of the weight's rule, by folder name."""
    recipe = Recipe(steps=steps, warmup_steps=min(200, steps // 3))
    runs = {}
    for mlp in get_args(Mlp):
        for n_layers in (1, 2):
            plain = RunConfig(Architecture(mlp=mlp, n_layers=n_layers), recipe, seed=SWEEP_SEED)
            runs[f"none-{mlp}-{n_layers}layer"] = replace(plain, auxiliary=NO_HEAD)
            for head in HEADS:
                for weight in WEIGHTS:
                    name = f"{head}-{weight:g}-{mlp}-{n_layers}layer"
                    runs[name] = replace(plain, auxiliary=Auxiliary(head=head, head_weight=weight))
    return runs


def mean_log_losses(best_losses: Mapping[tuple[float, str], float]) -> dict[float, float]:
    """Of each weight, the mean of the logarithms of the best validation losses given as {(weight, any name): loss}."""
    found: dict[float, list[float]] = {weight: [] for weight in WEIGHTS}
    for (weight, _), loss in best_losses.items():
        found[weight].append(math.log(loss) if loss < math.inf else math.inf)
    return {weight: statistics.fmean(values) for weight, values in found.items()}


def picked_weight(best_losses: Mapping[tuple[float, str], float]) -> float:
    """The weight the rule picks."""
    means = mean_log_losses(best_losses)
    return min(WEIGHTS, key=means.__getitem__)


def _name(config: RunConfig) -> str:
    """The folder's name: a head that only watches is called none, a weight other than the grid's is named."""
    auxiliary = config.auxiliary
    assert auxiliary is not None
    shape = f"arithmetic-{config.architecture.mlp}-{config.architecture.n_layers}layer"
    if auxiliary.head_weight == 0:
        return f"{shape}-none-seed{config.seed}"
    return f"{shape}-{auxiliary.head}-{auxiliary.head_form}-seed{config.seed}"


def main_runs(weight: float, recipe: Recipe | None = None) -> dict[str, RunConfig]:
    """The 84 runs of the grid by folder name, those without a head last."""
    forms: tuple[HeadForm, ...] = ("frozen", "trainable")
    heads = [Auxiliary(head=head, head_form=form, head_weight=weight) for form in forms for head in HEADS]
    runs = [replace(config, auxiliary=head) for head in [*heads, NO_HEAD] for config in twelve(recipe)]
    return {_name(config): config for config in runs}


def promising(losses: Mapping[str, float], weight: float) -> Head:
    """The most promising head, from the validation cross-entropy of `main_runs` by folder name; the first on a tie."""
    runs = main_runs(weight)
    plain = {_without(config): losses[name] for name, config in runs.items() if config.auxiliary == NO_HEAD}
    ratios: dict[str, list[float]] = {head: [] for head in HEADS}
    for name, config in runs.items():
        head = config.auxiliary
        assert head is not None
        if head != NO_HEAD and head.head_form == "frozen":
            ratios[head.head].append(math.log(losses[name] / plain[_without(config)]))
    return min(HEADS, key=lambda head: statistics.fmean(ratios[head]))


def _without(config: RunConfig) -> RunConfig:
    """The same run without a head."""
    return replace(config, auxiliary=None)


def control_runs(head: Head, weight: float, recipe: Recipe | None = None) -> dict[str, RunConfig]:
    """The most promising head's controls on all twelve, then the sweep on one decoder, by folder name."""
    given = Auxiliary(head=head, head_weight=weight)
    controls = [
        replace(config, auxiliary=replace(given, head_form=form))
        for form in ("linear", "random")
        for config in twelve(recipe)
    ]
    found = {_name(config): config for config in controls}
    one = replace(twelve(recipe)[0], auxiliary=given)
    base = _name(one)
    for schedule in get_args(Schedule):
        for swept in SWEPT_WEIGHTS:
            if (swept, schedule) != (weight, "constant"):  # the grid has it
                head_now = replace(given, head_weight=swept, head_schedule=schedule)
                found[f"{base}-weight{swept:g}-{schedule}"] = replace(one, auxiliary=head_now)
    found[f"{base}-resid_post"] = replace(one, auxiliary=replace(given, head_site="resid_post"))
    return found
