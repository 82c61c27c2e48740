"""What `similarity` compares: residual streams and heads of all models on the same batches of problems."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from analyses.learned._conditions import GROUPS, Weights, groups_of, models, shape_of, tokens_of
from analyses.learned._similarity_cka import Grams, cka, grams, hsic, known_mean, left_out, strata, without
from workbench.activations.collect import collect
from workbench.checkpoint import Checkpoint
from workbench.forward import head_results
from workbench.recipe import Architecture
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, POSITIONS_READ, Problems

BATCHES = 10  # of problems: what is left out in turn for intervals; heads are matched on every other one
OPERATORS = ("addition", "subtraction")
LEVELS = ("position", "own token", "token and digit")  # apart from what two sites are compared; the sign always
MODELS = ("trained", "untrained")
ANSWER = "right digit"  # the pseudo-site that knows the digit to be predicted and nothing else
POSITIONS = range(ANSWER_POSITIONS.start, ANSWER_POSITIONS.stop)


@dataclass(frozen=True)
class Site:
    """A place in a model's residual stream; `place` is `pre`, `L0 mid`, `L0 post`, ..."""

    model: str
    shape: str
    kind: str
    place: str


@dataclass(frozen=True)
class Head:
    """A head of a model."""

    model: str
    kind: str
    layer: int
    head: int


@dataclass(frozen=True, eq=False)
class Streams:
    """CKA of every two sites, mean over the answer positions; first from all batches, then without each.

    `by_position` is from all batches. `shuffled` has the trained sites' problems in another order within strata.
    """

    sites: list[Site]
    operators: list[str]
    cka: Float[np.ndarray, "batch_and_all operator level site site"]
    by_position: Float[np.ndarray, "operator level position site site"]
    shuffled: Float[np.ndarray, "batch_and_all operator level trained trained"]
    n: dict[str, int]


@dataclass(frozen=True, eq=False)
class Heads:
    """By batch, group of problems and answer position: mean pattern, mean square and HSIC of what heads write."""

    heads: list[Head]
    groups: list[str]
    pattern: Float[np.ndarray, "batch group position head key"]
    square: Float[np.ndarray, "batch group position head"]
    hsic: Float[np.ndarray, "batch group position head head"]
    n: dict[str, int]


def places(architecture: Architecture) -> dict[str, str]:
    """Hook of each place of the stream, in order."""
    found = {"pre": "blocks.0.hook_resid_pre"}
    for layer in range(architecture.n_layers):
        found |= {f"L{layer} {part}": f"blocks.{layer}.hook_resid_{part}" for part in ("mid", "post")}
    return found


@dataclass(frozen=True, eq=False)
class _Seen:
    stream: Float[Tensor, "site position problem d_model"]
    pattern: Float[Tensor, "layer_head position problem key"]
    write: Float[Tensor, "layer_head position problem d_model"]


def _look(weights: Weights, tokens: UInt8[Tensor, "problem key"], architecture: Architecture) -> _Seen:
    attn = [f"blocks.{layer}.attn" for layer in range(architecture.n_layers)]
    streams = list(places(architecture).values())
    hooks = [*streams, *(f"{name}.hook_{part}" for name in attn for part in ("pattern", "z"))]
    found = collect(weights, tokens, architecture, hooks, list(POSITIONS))
    pattern = torch.cat([found[f"{name}.hook_pattern"] for name in attn], dim=1)
    write = torch.cat([head_results(found[f"{name}.hook_z"], weights[f"{name}.W_O"]) for name in attn], dim=2)
    stream = torch.stack([found[hook] for hook in streams]).transpose(1, 2)
    return _Seen(stream, pattern.permute(1, 2, 0, 3), write.permute(2, 1, 0, 3))


def _wide(parts: Sequence[Float[Tensor, "_ position problem _"]]) -> Float[Tensor, "sites position problem width"]:
    """Parts of several widths side by side, filled up with zeros, which change no inner product."""
    width = max(part.shape[-1] for part in parts)
    return torch.cat([torch.nn.functional.pad(part.double(), (0, width - part.shape[-1])) for part in parts])


def batches(problems: Problems) -> dict[str, list[Problems]]:
    """The problems of each operator in BATCHES parts; an operator without problems is left out."""
    found = {}
    for operator, subtract in zip(OPERATORS, (False, True), strict=True):
        members = np.flatnonzero(problems.subtract == subtract)
        if len(members):
            found[operator] = [problems[part] for part in np.array_split(members, BATCHES)]
    return found


def _order(code: np.ndarray, seed: int) -> np.ndarray:
    """An order of the problems that keeps each in its stratum."""
    rng = np.random.default_rng(seed)
    order = np.arange(len(code))
    for value in np.unique(code):
        members = np.flatnonzero(code == value)
        order[members] = rng.permutation(members)
    return order


def _levels(
    x: Float[Tensor, "site problem width"], problems: Problems, tokens: UInt8[Tensor, "problem 16"], at: int
) -> Iterator[tuple[Float[Tensor, "site problem width"], np.ndarray]]:
    """Activations and the stratum of each problem at a position, level by level.

    Token and right digit together would leave strata too small, so a sum of their effects is taken out by least
    squares; the estimate is then no longer exactly unbiased, and the shuffled control shows by how much.
    """
    sign = 13 * problems.negative.astype(np.int64)
    token, digit = (sign + tokens[:, where].numpy() for where in (at, at + 1))
    yield x, sign
    yield x, token
    yield without(x, token, digit), digit


def _compare_streams(
    stream: Float[Tensor, "site position problem width"],
    trained: int,
    problems: Problems,
    tokens: UInt8[Tensor, "problem 16"],
    seed: int,
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """HSIC, HSIC of the first `trained` sites with shuffled problems, and mean squares; by position, then level."""
    found, shuffled, squares = [], [], []
    for number, at in enumerate(POSITIONS):
        x = stream[:, number]
        squares.append(x.square().sum(dim=2).mean(dim=1).numpy())
        for part, code in _levels(x, problems, tokens, at):
            of = strata(code)
            one = grams(part, of)
            other = grams(part[:trained, torch.from_numpy(_order(code, seed))], of)
            found.append(hsic(one, one, of).numpy())
            first = Grams(one.pair[:trained], one.own[:trained], one.total[:trained])
            shuffled.append(hsic(first, other, of).numpy())
    return found, shuffled, squares


def _compare_heads(
    pattern: Float[Tensor, "head position problem key"],
    write: Float[Tensor, "head position problem width"],
    problems: Problems,
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of each group: mean patterns, mean squares and HSIC of what is written, by position."""
    found = {}
    for group, chosen in groups_of(problems).items():
        of = strata(np.where(chosen, 0, np.arange(1, len(chosen) + 1)))  # the others are alone in theirs
        here = torch.from_numpy(chosen)
        mean = pattern[:, :, here].mean(dim=2).transpose(0, 1).numpy()
        square = write[:, :, here].square().sum(dim=3).mean(dim=2).T.numpy()
        each = [grams(write[:, number], of) for number in range(len(POSITIONS))]
        found[group] = (mean, square, np.stack([hsic(one, one, of).numpy() for one in each]))
    return found


def measure(checkpoints: Sequence[Checkpoint], problems: Problems, seed: int) -> tuple[Streams, Heads]:
    """Streams and heads of all models, trained ones first, on the same problems."""
    weights = [models(one) for one in checkpoints]
    both = [(kind, one, of[kind]) for kind in MODELS for one, of in zip(checkpoints, weights, strict=True)]
    sites = [Site(one.name, shape_of(one), kind, p) for kind, one, _ in both for p in places(one.config.architecture)]
    trained = sum(site.kind == MODELS[0] for site in sites)
    sites.append(Site(ANSWER, "", "", ""))
    heads = [
        Head(one.name, kind, layer, head)
        for kind, one, _ in both
        for layer in range(one.config.architecture.n_layers)
        for head in range(one.config.architecture.n_heads)
    ]
    parts = batches(problems)
    found: dict[str, list[tuple[list[np.ndarray], ...]]] = {}
    of_heads: dict[str, list[tuple[np.ndarray, ...]]] = {}
    for operator, of_operator in parts.items():
        for batch in of_operator:
            tokens = tokens_of(checkpoints[0], batch)
            seen = [_look(of, tokens[:, :POSITIONS_READ], one.config.architecture) for _, one, of in both]
            right = torch.nn.functional.one_hot(tokens[:, ANSWER_TOKENS].long(), 13).double().transpose(0, 1)
            stream = _wide([*(one.stream for one in seen), right[None]])
            found.setdefault(operator, []).append(_compare_streams(stream, trained, batch, tokens, seed))
            pattern = torch.cat([one.pattern for one in seen]).double()
            for group, values in _compare_heads(pattern, _wide([one.write for one in seen]), batch).items():
                of_heads.setdefault(group, []).append(values)
    n = {name: sum(map(len, of)) for name, of in parts.items()}
    streams = _streams(found, sites, trained, n)
    groups = [group for group in GROUPS if group in of_heads]
    pattern, square, values = (
        np.stack([np.stack([batch[number] for batch in of_heads[group]]) for group in groups], axis=1)
        for number in range(3)
    )
    n = {group: int(mask.sum()) for group, mask in groups_of(problems).items()}
    return streams, Heads(heads, groups, pattern, square, values, n)


def _streams(
    found: dict[str, list[tuple[list[np.ndarray], ...]]], sites: list[Site], trained: int, n: dict[str, int]
) -> Streams:
    wholes, shuffles, apart = [], [], []
    for of_batches in found.values():
        cross, shuffled, square = (np.stack([np.stack(batch[i]) for batch in of_batches]) for i in range(3))
        shape = (len(cross), len(POSITIONS), len(LEVELS))
        cross, shuffled = (left_out(of.reshape(*shape, *of.shape[2:])) for of in (cross, shuffled))
        scale = np.repeat(left_out(square)[:, :, None], len(LEVELS), axis=2)
        own = cross.diagonal(axis1=-2, axis2=-1)
        first, first_scale = own[..., :trained], scale[..., :trained]
        values = cka(cross, own, own, scale, scale)
        apart.append(values[0].swapaxes(0, 1))
        wholes.append(known_mean(values, 1))
        shuffles.append(known_mean(cka(shuffled, first, first, first_scale, first_scale), 1))
    whole, shuffled = (np.stack(of, axis=1) for of in (wholes, shuffles))
    return Streams(sites, list(found), whole, np.stack(apart), shuffled, n)
