"""Measuring of `selection-probe`: frozen units on readouts, and linear probes of their results."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from analyses._rows import Row, Share
from analyses.learned._conditions import groups_of, tokens_of
from analyses.learned._exact_probe_fit import Site, activations, sites_of
from analyses.learned._selection_probe_targets import PLACES, Exact, computed, right
from analyses.learned._selection_probe_units import selections
from workbench import evaluation, forward
from workbench.checkpoint import Checkpoint
from workbench.initialise import initial_weights
from workbench.probe import fit
from workbench.statistics import Z95
from workbench.task import ANSWER_POSITIONS, POSITIONS_READ, Problems

UNIT, PROBE = "readouts, then unit", "linear probe"
TRAINED, UNTRAINED, SHUFFLED = "trained", "untrained", "shuffled labels"
FEWEST = 100  # problems of an operator and sign in each half
PREDICTED_AT = {place: POSITIONS_READ - 1 - n for n, place in enumerate(PLACES)}  # where a place's digit is predicted


@dataclass(frozen=True, eq=False)
class Group:
    """Problems of one operator and sign in each half of the sample."""

    name: str
    fitting: Int[Tensor, " fitting"]
    scoring: Int[Tensor, " scoring"]


@dataclass(frozen=True, eq=False)
class Split:
    """Problems of which the first half is fitted on and the second scored, with their exact values."""

    problems: Problems
    exact: Exact
    groups: tuple[Group, ...]

    @property
    def half(self) -> int:
        """How many problems are fitted on."""
        return len(self.problems) // 2


def split(problems: Problems) -> Split:
    """The problems in halves, with the operators and signs that have enough in each."""
    half, groups = len(problems) // 2, []
    for name, mask in groups_of(problems).items():
        chosen = torch.from_numpy(mask).nonzero()[:, 0]
        fitting, scoring = chosen[chosen < half], chosen[chosen >= half]
        if min(len(fitting), len(scoring)) >= FEWEST:
            groups.append(Group(name, fitting, scoring))
    return Split(problems, Exact(problems), tuple(groups))


def shuffled(these: Split, seed: int) -> Int[Tensor, " fitted"]:
    """An order of the fitting half that moves each problem within its operator and sign."""
    order, rng = torch.arange(these.half), np.random.default_rng(seed)
    for group in these.groups:
        order[group.fitting] = group.fitting[torch.from_numpy(rng.permutation(len(group.fitting)))]
    return order


@dataclass(frozen=True, eq=False)
class Readings:
    """One model (or one with shuffled labels) at its sites: activations, readouts of units' inputs, its own digits."""

    these: Split
    sites: list[Site]
    x: Float[Tensor, "site problem d_model"]
    order: Int[Tensor, " fitted"]  # whose labels the fitting half has
    read: Float[Tensor, "site problem target"]
    said: Float[Tensor, "problem place"]

    def chosen(self, full: bool) -> list[tuple[int, int]]:
        """Sites and places that are measured: where a place's digit is predicted, or everywhere if `full`."""
        every = [(s, n) for s in range(len(self.sites)) for n in range(len(PLACES))]
        return [(s, n) for s, n in every if full or self.columns(s, n)["predicted"]]

    def columns(self, s: int, n: int) -> Row:
        """A site and place in a table; `predicted` says whether the place's digit is predicted there."""
        predicted = self.sites[s].position == PREDICTED_AT[PLACES[n]]
        return {**self.sites[s].columns, "place": PLACES[n], "predicted": predicted}


def readings(checkpoint: Checkpoint, these: Split, seed: int) -> Iterator[tuple[str, Readings]]:
    """The trained model, the untrained one, and the trained one with labels shuffled within operator and sign."""
    config = checkpoint.config
    listed = sites_of(config.architecture, full=False)
    start = initial_weights(config.architecture, config.recipe.init, config.seed)
    for model, weights in ((TRAINED, forward.tensors(checkpoint.weights)), (UNTRAINED, start)):
        x = activations(listed, weights, config, these.problems)
        said = _answered(weights, checkpoint, these.problems)
        for name, order in ((model, torch.arange(these.half)), (SHUFFLED, shuffled(these, seed))):
            if name == model or model == TRAINED:
                read = fit(x[:, : these.half], these.exact.inputs[order]).read(x)
                yield name, Readings(these, listed, x, order, read, said)


@torch.no_grad()
def _answered(
    weights: Mapping[str, Tensor], checkpoint: Checkpoint, problems: Problems
) -> Float[Tensor, "problem place"]:
    """The digits that the model itself answers at the four places, units first."""
    tokens = tokens_of(checkpoint, problems)[:, :POSITIONS_READ]
    architecture = checkpoint.config.architecture
    found = [forward.logits(weights, part, architecture) for part in tokens.split(evaluation.CHUNK)]
    return torch.cat([part[:, ANSWER_POSITIONS, :10].argmax(dim=-1) for part in found])[:, 1:].flip(1).double()


def measure(checkpoint: Checkpoint, these: Split, *, full: bool, seed: int) -> Iterator[tuple[str, list[Row]]]:
    """(table, rows) by model and by operator and sign."""
    for model, reading in readings(checkpoint, these, seed):
        for group in these.groups:
            who = {"model": model, "group": group.name}
            yield "units", [who | row for row in _units(reading, group, full)]
            chosen = reading.chosen(full)
            column = these.exact.column_answered(reading.said, group.name != "addition")
            column[: these.half] = column[reading.order]
            digits = reading.read[..., :8].unflatten(2, (2, 4))
            inputs = torch.stack([digits[s, :, :, n] for s, n in chosen])
            targets = column[:, [n for _, n in chosen]].T
            halves = [(inputs[:, half], targets[:, half]) for half in (group.fitting, group.scoring)]
            where = [reading.columns(s, n) for s, n in chosen]
            found = selections(*halves[0], *halves[1], group.name, seed)
            yield "selections", [who | at | row for at, row in zip(where, found, strict=True)]


def _units(reading: Readings, group: Group, full: bool) -> Iterator[Row]:
    """Each unit's output on the readouts, and a linear probe of the same result, against the exact result."""
    results = reading.these.exact.results
    labels = torch.cat([value[reading.order][group.fitting].flatten(1) for value in results.values()], dim=1)
    directly = fit(reading.x[:, group.fitting], labels).read(reading.x[:, group.scoring])
    widths = [value.flatten(1).shape[1] for value in results.values()]
    units = [computed(read, group.name) for read in reading.read[:, group.scoring]]
    probes = [dict(zip(results, read.split(widths, dim=1), strict=True)) for read in directly]
    for (result, k), exact in results.items():
        truth, known = exact[group.scoring], exact[group.fitting].mean(dim=0)
        for s, n in reading.chosen(full):
            probe = probes[s][result, k].unflatten(1, truth.shape[1:])
            for kind, said in ((UNIT, units[s][result, k]), (PROBE, probe)):
                if found := _explained(said[:, n], truth[:, n], known[n]):
                    row = reading.columns(s, n) | {"result": result, "k": k, "probe": kind}
                    whole = Share(int(right(said, truth)[:, n].sum()), len(truth)).share if k == 0 else np.nan
                    yield row | found | {"exact_share": whole, "n": len(truth)}


def _explained(
    said: Float[Tensor, "problem part"], exact: Float[Tensor, "problem part"], mean: Float[Tensor, " part"]
) -> Row:
    """Variance explained of all parts together, or nothing when the exact result does not vary.

    The 95% interval is that of a ratio of means, linearised (Cochran, Sampling Techniques, 1977, section 2.11).
    """
    error, spread = (said - exact).square().sum(dim=1), (exact - mean).square().sum(dim=1)
    total = spread.sum()
    if not total > 1e-9 * len(exact):
        return {}
    left = error.sum() / total
    half = Z95 * ((error - left * spread).square().sum().sqrt() / total).item()
    r2 = 1 - left.item()
    return {"r2": r2, "low": r2 - half, "high": r2 + half}
