"""Tables of `similarity`: CKA of every two sites, and of groups of model pairs beside what could fool it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from jaxtyping import Float

from analyses.learned._conditions import shape_of
from analyses.learned._similarity_cka import jackknife, known_mean
from analyses.learned._similarity_streams import ANSWER, LEVELS, MODELS, POSITIONS, Streams
from workbench.checkpoint import Checkpoint
from workbench.task import POSITION_LABELS

RELATIONS = ("other seed", "other MLP kind", "other depth", "other MLP kind and depth", "other width")


def relation(one: Checkpoint, other: Checkpoint) -> str:
    """In what two models of one task variant differ, in one of RELATIONS."""
    first, second = one.config.architecture, other.config.architecture
    if any(getattr(first, name) != getattr(second, name) for name in ("d_model", "n_heads", "d_head", "d_mlp")):
        return RELATIONS[4]
    return RELATIONS[(first.mlp != second.mlp) + 2 * (first.n_layers != second.n_layers)]


def same_start(one: Checkpoint, other: Checkpoint) -> bool:
    """Whether two models drew their initial weights alike: with one seed, embedding and first layer begin equal."""
    first, second = one.config, other.config
    return (first.seed, first.recipe.init) == (second.seed, second.recipe.init)


@dataclass(frozen=True, eq=False)
class _At:
    """Where each site of a model stands among all sites, trained and untrained."""

    number: dict[tuple[str, str, str], int]
    places: dict[str, list[str]]


def _at(streams: Streams) -> _At:
    number = {(site.model, site.kind, site.place): i for i, site in enumerate(streams.sites)}
    places: dict[str, list[str]] = {}
    for site in streams.sites:
        if site.kind == MODELS[0]:
            places.setdefault(site.model, []).append(site.place)
    return _At(number, places)


def site_rows(streams: Streams) -> Iterator[dict[str, Any]]:
    """One row for every two trained sites, operator and level: CKA, that of the same sites untrained, and shuffled."""
    trained = [i for i, site in enumerate(streams.sites) if site.kind == MODELS[0]]
    for i, j in combinations(trained, 2):
        one, other = streams.sites[i], streams.sites[j]
        key = {"first": one.model, "place": one.place, "second": other.model, "other_place": other.place}
        for (o, operator), (level, name) in product(enumerate(streams.operators), enumerate(LEVELS)):
            whole = streams.cka[0, o, level]
            value = {"cka": whole[i, j], "untrained": whole[i + len(trained), j + len(trained)]}
            value |= {"shuffled": streams.shuffled[0, o, level, i, j], "n": streams.n[operator]}
            yield key | {"operator": operator, "level": name} | {k: _plain(v) for k, v in value.items()}


def answer_rows(streams: Streams) -> Iterator[dict[str, Any]]:
    """CKA of every site with the digit to be predicted alone, beside the untrained one's."""
    at, last = _at(streams), len(streams.sites) - 1
    for (model, kind, place), i in at.number.items():
        if kind != MODELS[0]:
            continue
        for (o, operator), (level, name) in product(enumerate(streams.operators), enumerate(LEVELS[:2])):
            value, low, high = jackknife(streams.cka[:, o, level, i, last])
            row = {"checkpoint": model, "place": place, "operator": operator, "level": name, "cka": value}
            control = streams.cka[0, o, level, at.number[model, MODELS[1], place], last]
            yield row | {"low": low, "high": high, "untrained": _plain(control), "n": streams.n[operator]}


def group_rows(streams: Streams, checkpoints: Sequence[Checkpoint]) -> Iterator[dict[str, Any]]:
    """One row a group of model pairs, two places, operator and level.

    `mean` over the pairs has the 95% jackknife interval over problems; `lowest` and `highest` are of the pairs. The
    untrained are pairs that did not begin alike; `same_start` is the mean of trained pairs that did.
    """
    at, by_name = _at(streams), {one.name: one for one in checkpoints}
    grouped: dict[tuple[str, str, str, str, str], list[tuple[str, str]]] = {}
    for one, other in combinations(by_name.values(), 2):
        kind = relation(one, other)
        for places in product(at.places[one.name], at.places[other.name]):
            key = (kind, shape_of(one), shape_of(other), *places)
            grouped.setdefault(key, []).append((one.name, other.name))
    last = at.number[ANSWER, "", ""]
    for (kind, shape, other_shape, place, other_place), pairs in grouped.items():
        row = {"relation": kind, "shape": shape, "other_shape": other_shape, "place": place, "other_place": other_place}
        alike = [pair for pair in pairs if same_start(*(by_name[name] for name in pair))]
        trained, untrained, started = (
            ([at.number[a, of, place] for a, _ in chosen], [at.number[b, of, other_place] for _, b in chosen])
            for of, chosen in (
                (MODELS[0], pairs),
                (MODELS[1], [pair for pair in pairs if pair not in alike]),
                (MODELS[0], alike),
            )
        )
        for (o, operator), (level, name) in product(enumerate(streams.operators), enumerate(LEVELS)):
            values = streams.cka[:, o, level]
            known: dict[str, Any] = {"pairs": len(pairs), "n": streams.n[operator]} | _spread(
                values[:, trained[0], trained[1]]
            )
            known |= {f"untrained_{k}": v for k, v in _spread(values[:, untrained[0], untrained[1]]).items()}
            known["same_start"] = known_mean(values[0, started[0], started[1]], 0)
            known["shuffled"] = known_mean(streams.shuffled[0, o, level, trained[0], trained[1]], 0)
            answer = np.sqrt(np.maximum(values[0, trained[0], last] * values[0, trained[1], last], 0))
            known["by_answer"] = known_mean(answer, 0)
            yield row | {"operator": operator, "level": name} | {k: _plain(v) for k, v in known.items()}


def position_rows(streams: Streams, checkpoints: Sequence[Checkpoint]) -> Iterator[dict[str, Any]]:
    """CKA of pairs of seeds at the same place, by the position where a digit is predicted."""
    at = _at(streams)
    for one, other in combinations(checkpoints, 2):
        if relation(one, other) != RELATIONS[0]:
            continue
        for place in at.places[one.name]:
            i, j = at.number[one.name, MODELS[0], place], at.number[other.name, MODELS[0], place]
            a, b = at.number[one.name, MODELS[1], place], at.number[other.name, MODELS[1], place]
            for (o, operator), (level, name) in product(enumerate(streams.operators), enumerate(LEVELS)):
                for p, position in enumerate(POSITIONS):
                    here = streams.by_position[o, level, p]
                    key = {"first": one.name, "second": other.name, "place": place, "operator": operator}
                    key |= {"level": name, "answer": POSITION_LABELS[position + 1]}
                    yield key | {"cka": _plain(here[i, j]), "untrained": _plain(here[a, b])}


def _spread(values: Float[np.ndarray, "batch_and_all pair"]) -> dict[str, float]:
    """Mean over pairs with its interval, and the lowest and highest pair; NaN where no pair varies."""
    whole = values[0][~np.isnan(values[0])]
    if not len(whole):
        return dict.fromkeys(("mean", "low", "high", "lowest", "highest"), np.nan)
    mean, low, high = jackknife(known_mean(values, 1))
    return {"mean": mean, "low": low, "high": high, "lowest": whole.min(), "highest": whole.max()}


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else float(value)
