"""Measuring of `surrogate`: components' outputs from exact features, and the answers with those in their place."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from analyses.learned._conditions import groups_of, tokens_of
from analyses.learned._surrogate_features import Features
from analyses.learned._surrogate_swap import Part, Values, Weights, columns_of, parts_of, replacements, run, targets_of
from workbench import forward
from workbench.activations.collect import collect
from workbench.checkpoint import Checkpoint
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, POSITIONS_READ, Problems, encode

CHUNK = 2_000  # problems a forward pass
Said = Float[Tensor, "scored 5 target"]
FEWEST = 100  # problems of an operator and sign to be scored
ANSWERED = tuple(range(POSITIONS_READ))[ANSWER_POSITIONS]


@dataclass(frozen=True, eq=False)
class Group:
    """Problems of one operator and sign: their places in the sample, fitted before scored, and their features."""

    name: str
    chosen: Int64[np.ndarray, " problem"]
    features: Features

    @property
    def operator(self) -> str:
        """The operator alone."""
        return self.name.split()[0]

    @cached_property
    def right(self) -> Int64[np.ndarray, "scored 5"]:
        """The right digits of the scored problems."""
        return encode(self.features.problems)[self.features.fitted :, ANSWER_TOKENS].astype(np.int64)


def split(problems: Problems, fitted: int, seed: int) -> list[Group]:
    """The operators and signs with enough problems; of all problems, the first `fitted` are fitted on."""
    found = []
    for name, mask in groups_of(problems).items():
        chosen = mask.nonzero()[0]
        n = int((chosen < fitted).sum())
        if min(n, len(chosen) - n) >= FEWEST:
            found.append(Group(name, chosen, Features(problems[chosen], n, seed)))
    return found


@dataclass(frozen=True, eq=False)
class Fit:
    """How well each set gives each part's output on scored problems: squared errors, beside those of the mean."""

    error: dict[str, Float[Tensor, " part"]]
    spread: Float[Tensor, " part"]  # of the fitted problems' mean at each position


@dataclass(frozen=True, eq=False)
class Outcome:
    """One model on one group: its own digits, those with each replacement from each set, and the fits."""

    group: Group
    own: Int64[np.ndarray, "scored 5"]
    digits: dict[tuple[str, str], Int64[np.ndarray, "scored 5"]]  # by replacement and set
    fit: Fit
    untrained: Fit


def outcome(checkpoint: Checkpoint, group: Group) -> Outcome:
    """Every replacement from every set, and the untrained model's fits."""
    config = checkpoint.config
    architecture = config.architecture
    tokens = tokens_of(checkpoint, group.features.problems)
    weights = forward.tensors(checkpoint.weights)
    fitted = group.features.fitted
    values, given = _given(weights, architecture, tokens, group.features)
    unchanged = run(weights, tokens[fitted:], architecture, values[fitted:])
    own = unchanged.answers(unchanged.values, []).numpy()
    digits = {
        (name, of): unchanged.answers(said, parts).numpy()
        for of, said in given.items()
        for name, parts in replacements(architecture).items()
    }
    start = initial_weights(architecture, config.recipe.init, config.seed)
    fits = [
        _fit(model, architecture, *pair, fitted)
        for model, pair in ((weights, (values, given)), (start, _given(start, architecture, tokens, group.features)))
    ]
    return Outcome(group, own, digits, *fits)


def _given(
    weights: Weights, architecture: Architecture, tokens: UInt8[Tensor, "problem 16"], features: Features
) -> tuple[Values, dict[str, Said]]:
    """All parts' values at the answer positions, and what each set says of the scored problems'."""
    hooks = list(dict.fromkeys(part.hook for part in parts_of(architecture)))
    parts = [collect(weights, chunk, architecture, hooks, ANSWERED) for chunk in tokens.split(CHUNK)]
    values = torch.cat([targets_of(part, architecture) for part in parts])
    return values, features.predict(values[: features.fitted])


def _fit(weights: Weights, architecture: Architecture, values: Values, given: dict[str, Said], fitted: int) -> Fit:
    """Squared errors of what each part adds to the residual stream, all positions together."""
    columns = columns_of(architecture)

    def size(error: Values) -> Float[Tensor, " part"]:
        return torch.stack([_written(weights, part, error[..., place]) for part, place in columns.items()])

    scored = values[fitted:]
    return Fit({name: size(said - scored) for name, said in given.items()}, size(scored - values[:fitted].mean(dim=0)))


def _written(weights: Weights, part: Part, value: Values) -> Float[Tensor, ""]:
    """The squared norm of what a part adds to the stream, given its value, summed over problems and positions."""
    if part.head is not None:
        value = value @ weights[f"blocks.{part.layer}.attn.W_O"][part.head]
    return value.double().square().sum()
