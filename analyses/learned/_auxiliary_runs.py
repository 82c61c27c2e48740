"""The runs with heads, sorted: which decoder each trains, under which condition, and what of the grid is missing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from workbench import auxiliary_grid
from workbench.checkpoint import Checkpoint
from workbench.errors import BadInput
from workbench.recipe import Auxiliary, Head, RunConfig

FORMS = ("frozen", "trainable", "linear", "random")
Decoder = RunConfig  # what two runs have in common that differ in the head
Runs = dict[Decoder, Checkpoint]


class Condition(NamedTuple):
    """A head and its form; `none` has no form."""

    head: str
    form: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, self))


NONE = Condition("none")
ORDER = (NONE, *(Condition(head, form) for head in auxiliary_grid.HEADS for form in FORMS))


@dataclass(frozen=True, eq=False)
class Grid:
    """The runs by condition and decoder, both in reading order; `sweep` are those of another weight or site.

    `weight` is the grid's, of every condition but none; `missing` are names of the planned runs that are not there.
    """

    weight: float
    conditions: Mapping[Condition, Runs]
    sweep: Sequence[Checkpoint]
    missing: Sequence[str]

    @property
    def runs(self) -> list[Checkpoint]:
        """Every run, the sweep's last."""
        return [one for of in self.conditions.values() for one in of.values()] + list(self.sweep)

    @property
    def with_head(self) -> list[Condition]:
        """The conditions other than none."""
        return [condition for condition in self.conditions if condition != NONE]

    def pairs(self, condition: Condition, other: Condition = NONE) -> list[tuple[Checkpoint, Checkpoint]]:
        """The runs of one condition beside those of another, of the decoders that both have."""
        others = self.conditions.get(other, {})
        return [(run, others[key]) for key, run in self.conditions.get(condition, {}).items() if key in others]


def decoder_of(config: RunConfig) -> Decoder:
    """A run's configuration without its head; how and where it was computed is no part of the comparison."""
    return replace(config, auxiliary=None, engine="plain", device="cpu", threads=1)


def condition_of(auxiliary: Auxiliary | None) -> Condition:
    """A head of weight 0 only watches, so that is none."""
    return Condition(auxiliary.head, auxiliary.head_form) if auxiliary and auxiliary.head_weight else NONE


def sort(checkpoints: Sequence[Checkpoint]) -> Grid:
    """The grid that the checkpoints are of.

    Plain ones stand in for `none` where no head of weight 0 is, and are left out where no run with a head needs them.
    The grid's weight is the commonest among the runs with a constant weight at `resid_mid`. Raises BadInput when no run
    has a head, when two of them differ in more than shape, seed and head, or when one is given twice.
    """
    headed = [one for one in checkpoints if condition_of(one.config.auxiliary) != NONE]
    if not headed:
        raise BadInput(
            f"none of {len(checkpoints)} checkpoints was trained with a head: give the folder of those that were"
        )
    weight = _weight(headed)
    conditions: dict[Condition, Runs] = {condition: {} for condition in ORDER}
    sweep: list[Checkpoint] = []
    for one in headed:
        auxiliary = one.config.auxiliary
        if auxiliary and (auxiliary.head_weight, *_rest(auxiliary)) == (weight, "constant", "resid_mid"):
            _put(conditions[condition_of(auxiliary)], one)
        else:
            sweep.append(one)
    decoders = {decoder_of(one.config): one for one in headed}
    _one_recipe(decoders)
    for watched in (True, False):
        plain = [one for one in checkpoints if condition_of(one.config.auxiliary) == NONE]
        for one in [one for one in plain if (one.config.auxiliary is not None) == watched]:
            if watched or (decoder_of(one.config) in decoders and decoder_of(one.config) not in conditions[NONE]):
                _put(conditions[NONE], one)
    return Grid(weight, {c: runs for c, runs in conditions.items() if runs}, sweep, _missing(conditions, sweep, weight))


def _rest(auxiliary: Auxiliary) -> tuple[str, str]:
    return auxiliary.head_schedule, auxiliary.head_site


def _weight(headed: Sequence[Checkpoint]) -> float:
    """The commonest weight of the grid; the first of those on a tie."""
    all_of = [one.config.auxiliary for one in headed]
    usual = [a.head_weight for a in all_of if a and _rest(a) == ("constant", "resid_mid")]
    return Counter(usual or [a.head_weight for a in all_of if a]).most_common(1)[0][0]


def _put(runs: Runs, one: Checkpoint) -> None:
    key = decoder_of(one.config)
    if key in runs:
        raise BadInput(f"{runs[key].name} and {one.name} are the same run; give each once")
    runs[key] = one


def _one_recipe(decoders: Mapping[Decoder, Checkpoint]) -> None:
    first, *others = decoders
    for other in others:
        if (first.recipe, first.problems, first.data_seed) != (other.recipe, other.problems, other.data_seed):
            raise BadInput(
                f"{decoders[first].name} and {decoders[other].name} were trained by another recipe or on other "
                "problems; analyse runs of one recipe at a time"
            )


def _key(config: RunConfig) -> tuple[object, ...]:
    """What tells one planned run from another: the decoder's shape and seed, and the head."""
    head = config.auxiliary
    which = (*condition_of(head), head.head_weight, *_rest(head)) if head and head.head_weight else NONE
    return config.architecture, config.seed, which


def _missing(conditions: Mapping[Condition, Runs], sweep: Sequence[Checkpoint], weight: float) -> list[str]:
    """Names of planned runs that are not there; the controls' head is that of those there are, or the rule's."""
    runs = [one for of in conditions.values() for one in of.values()] + list(sweep)
    there = {_key(one.config) for one in runs}
    planned = auxiliary_grid.main_runs(weight)
    missing = [name for name, config in planned.items() if _key(config) not in there]
    extra = [condition.head for condition in ORDER if condition.form in ("linear", "random") and conditions[condition]]
    extra += [one.config.auxiliary.head for one in sweep if one.config.auxiliary]
    if not extra and not missing:
        losses = {_key(one.config): one.results["validation"]["all"].loss for one in runs}
        by_name = {name: losses[_key(config)] for name, config in planned.items()}
        extra = [auxiliary_grid.promising(by_name, weight)]
    for head in dict.fromkeys(extra):
        controls = auxiliary_grid.control_runs(cast("Head", head), weight)
        missing += [name for name, config in controls.items() if _key(config) not in there]
    return missing
