"""Patching at every site that can matter: how often the corrupted prompt then gets the clean prompt's digit."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from analyses._rows import Row
from analyses.learned._exact_places import ANSWER_LABELS, predicted_at
from analyses.learned._patching_pairs import Pairs
from analyses.learned._replace import Where, replaced
from workbench import forward
from workbench.activations.collect import collect
from workbench.checkpoint import Checkpoint
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.task import POSITION_LABELS

PARTS = {"attn.hook_z": "H", "hook_attn_out": "attention", "hook_resid_mid": "mid"}
PARTS |= {"hook_mlp_out": "MLP", "hook_resid_post": "post"}

B_UNITS_AT = 8  # position of b0

Prompts = UInt8[Tensor, "pair pos"]
Cache = Mapping[str, Float[Tensor, "pair ..."]]


def places_to_patch(architecture: Architecture, first: int, last: int) -> list[Where]:
    """Sites that the changed token can reach and from which the prediction at `last` can be reached, inputs first.

    Before position `first` nothing differs. Of the last layer only position `last` is read out. The residual stream
    before a layer is the one after the layer before; before the first it is the changed token itself.
    """
    found = []
    for layer in range(architecture.n_layers):
        positions = range(last if layer == architecture.n_layers - 1 else first, last + 1)
        for part in PARTS:
            heads: Sequence[int | None] = range(architecture.n_heads) if part == "attn.hook_z" else (None,)
            found += [Where(f"blocks.{layer}.{part}", p, head) for head in heads for p in positions]
    return found


def component(where: Where) -> str:
    """`L0 H2`, `L0 attention`, `L0 mid`, `L0 MLP` or `L0 post`."""
    part = PARTS[where.hook.split(".", 2)[2]]
    return f"L{where.layer} {part}{'' if where.head is None else where.head}"


def by_construction(where: Where, architecture: Architecture, last: int) -> bool:
    """Whether everything that differs passes through the site, so that patching it restores any model's answer.

    At the predicting position that is the last layer's stream, and in a model of one layer what attention writes too.
    """
    part = PARTS[where.hook.split(".", 2)[2]]
    final = where.layer == architecture.n_layers - 1 and where.position == last
    return final and (part in ("mid", "post") or (part == "attention" and architecture.n_layers == 1))


def digits_said(weights: forward.Weights, tokens: Prompts, architecture: Architecture) -> Float[Tensor, "pair digit"]:
    """Logits of the ten digits at the last position of the prompts."""
    return replaced(weights, tokens, architecture, [Where("blocks.0.none", 0)], [torch.empty(len(tokens), 0)])[0]


def usable(pairs: Pairs, weights: forward.Weights, architecture: Architecture, most: int) -> tuple[Pairs, Row]:
    """The first `most` pairs on which the model says both digits, and counts of what it says on all of them.

    Of the impossible prompts with a turned sign it need only not say the clean digit.
    """
    said = [
        digits_said(weights, tokens, architecture).argmax(dim=1).numpy()
        for tokens in (_prompts(pairs.clean, pairs), _prompts(pairs.corrupted, pairs))
    ]
    right, other, same = (
        said[0] == pairs.clean_digit,
        said[1] == pairs.corrupted_digit,
        said[1] == pairs.clean_digit,
    )
    kept = right & (~same if pairs.kind.name == "sign" else other)
    found = pairs.chosen(kept).chosen(slice(0, most))
    counts = {"clean_right": right, "corrupted_right": other, "corrupted_says_clean": same, "usable": kept}
    return found, {"drawn": len(pairs), **{name: int(is_so.sum()) for name, is_so in counts.items()}, "n": len(found)}


def _prompts(tokens: UInt8[Any, "pair 16"], pairs: Pairs) -> Prompts:
    """The tokens read up to where the digit of the pairs' place is predicted."""
    return torch.from_numpy(tokens[:, : predicted_at(pairs.place) + 1])


def patch(pairs: Pairs, weights: forward.Weights, architecture: Architecture) -> list[Row]:
    """One row a site: pairs restored, the share of the logit difference recovered, and what the control restores.

    `restored` counts corrupted prompts for which the clean digit has the largest logit of the ten. `recovered` is
    (patched - corrupted) / (clean - corrupted) of the mean logit of the clean less that of the corrupted digit.
    `control_restored` counts the same with the control prompt's activation, at the predicting position and in the
    stream between the layers only.
    """
    last = predicted_at(pairs.place)
    base, clean, control = (_prompts(t, pairs) for t in (pairs.corrupted, pairs.clean, pairs.control))
    changed = (base != clean).any(dim=0).nonzero()[:, 0].tolist()
    places = places_to_patch(architecture, changed[0], last)
    hooks = list(dict.fromkeys(where.hook for where in places))
    caches = [collect(weights, tokens, architecture, hooks) for tokens in (clean, control)]
    patched = replaced(weights, base, architecture, places, [where.of(caches[0][where.hook]) for where in places])
    here = [where for where in places if where.position == last or where.hook.endswith("hook_resid_post")]
    by_control = replaced(weights, base, architecture, here, [where.of(caches[1][where.hook]) for where in here])

    wanted, other = (torch.from_numpy(digit) for digit in (pairs.clean_digit, pairs.corrupted_digit))
    ends = [_difference(digits_said(weights, tokens, architecture), wanted, other) for tokens in (base, clean)]
    recovered = (_difference(patched, wanted, other) - ends[0]) / (ends[1] - ends[0])
    restored, control_restored = ((logits.argmax(dim=-1) == wanted).sum(dim=1) for logits in (patched, by_control))
    by_place = dict(zip(here, control_restored.tolist(), strict=True))
    return [
        {
            **_columns(where, pairs, architecture),
            "stands": stands(where.position, changed, pairs),
            "restored": int(count),
            "n": len(pairs),
            "recovered": float(share),
            "control_restored": by_place.get(where, 0),
            "control_n": len(pairs) if where in by_place else 0,
        }
        for where, count, share in zip(places, restored, recovered, strict=True)
    ]


def _difference(logits: Float[Tensor, "*place pair digit"], wanted: Tensor, other: Tensor) -> Float[Tensor, "*place"]:
    pairs = torch.arange(len(wanted))
    return (logits[..., pairs, wanted] - logits[..., pairs, other]).mean(dim=-1)


def stands(position: int, changed: Sequence[int], pairs: Pairs) -> str:
    """What kind of position it is: of a carry or borrow, b's digit of the place that is changed has a name too."""
    if position == predicted_at(pairs.place):
        return "predicting position"
    if position in changed:
        return "changed token"
    if pairs.kind.below and position == B_UNITS_AT - (pairs.place - pairs.kind.below):
        return "b's digit beside it"
    return "elsewhere"


def _columns(where: Where, pairs: Pairs, architecture: Architecture) -> Row:
    """What says which row of the table it is; `node` is the closest peer's name, P{position}L{layer}{component}."""
    last, name = predicted_at(pairs.place), component(where)
    return {
        "kind": pairs.kind.name,
        "digit": ANSWER_LABELS[pairs.place],
        "component": name,
        "position": POSITION_LABELS[where.position],
        "node": f"P{where.position}{name.replace(' ', '')}",
        "at_answer": where.position == last,
        "by_construction": by_construction(where, architecture, last),
    }


def measure(checkpoint: Checkpoint, sets: Sequence[Pairs], most: int) -> tuple[list[Row], list[Row]]:
    """(sites, pairs) of one checkpoint: every site of every set of pairs, and how many pairs of each could be used.

    `untrained_usable` counts the pairs that could be used with the weights that training starts from.
    """
    config, weights = checkpoint.config, forward.tensors(checkpoint.weights)
    architecture = config.architecture
    start = initial_weights(architecture, config.recipe.init, config.seed)
    name, sites, counted = {"checkpoint": checkpoint.name}, [], []
    for drawn in sets:
        pairs, counts = usable(drawn, weights, architecture, most)
        counts["untrained_usable"] = usable(drawn, start, architecture, most)[1]["usable"]
        counted.append(name | {"kind": drawn.kind.name, "digit": ANSWER_LABELS[drawn.place], **counts})
        if len(pairs):
            sites += [name | row for row in patch(pairs, weights, architecture)]
    return sites, counted
