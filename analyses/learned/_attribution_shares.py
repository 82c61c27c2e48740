"""Who makes the answer: shares of the mean logit difference by kind of component, and the rule that names them.

The thresholds were written before any number of the twelve was seen.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from analyses.learned._attribution_parts import Parts
from analyses.learned._attribution_problems import Drawn
from workbench.recipe import Architecture

CARRIED = 0.9  # of the mean logit difference: the fewest components that add as much make the answer
NOTHING = 0.1  # share, of either sign, up to which another component adds nothing when one makes the answer alone


def makers(shares: Mapping[str, float]) -> list[str]:
    """The fewest components whose shares together reach CARRIED, largest first; none when shares are no numbers."""
    found, total = [], 0.0
    for name, share in sorted(shares.items(), key=lambda item: -item[1]):
        if total >= CARRIED or not share > 0:
            break
        found.append(name)
        total += share
    return found if total >= CARRIED else []


def alone(shares: Mapping[str, float]) -> str | None:
    """The component that makes the answer alone: it makes it, and every other one adds at most NOTHING."""
    found = makers(shares)
    others = [share for name, share in shares.items() if name not in found]
    return found[0] if len(found) == 1 and all(abs(share) <= NOTHING for share in others) else None


def kinds(architecture: Architecture) -> dict[str, slice]:
    """Where each kind stands among the components: embedding and positions, and each layer's heads and MLP."""
    found, start = {"embedding": slice(0, 2)}, 2
    for layer in range(architecture.n_layers):
        found[f"L{layer} heads"] = slice(start, start + architecture.n_heads)
        start += architecture.n_heads + 1
        found[f"L{layer} MLP"] = slice(start - 1, start)
    return found


def share_rows(parts: Parts, on: Drawn, architecture: Architecture) -> Iterator[dict[str, Any]]:
    """One row a category of the uniform sample and kind of component: its share of the mean over d3 to d0.

    Bootstrap interval over problems. `elsewhere` is what the kind adds to the difference of another problem's tokens,
    in the same unit. No shares where the mean logit difference is not above zero in 97.5% of resamples.
    """
    for (grouping, category), counts in on.counts.items():
        chosen = torch.from_numpy(on.masks[grouping, category])
        margin = parts.margin[chosen, 1:].mean(dim=1)
        total = counts @ margin
        known = bool(total.quantile(0.025) > 0)
        for kind, place in kinds(architecture).items():
            added, elsewhere = (
                values[chosen, 1:, place].sum(dim=2).mean(dim=1) for values in (parts.parts, parts.elsewhere)
            )
            row = {"grouping": grouping, "category": category, "kind": kind, "margin": margin.mean().item()}
            share = _ratio(added, margin, counts @ added / total) if known else [float("nan")] * 3
            row |= dict(zip(("share", "low", "high"), share, strict=True))
            row["elsewhere"] = (elsewhere.mean() / margin.mean()).item() if known else float("nan")
            yield row | {"n": len(margin)}


def _ratio(
    added: Float[Tensor, " problem"],
    margin: Float[Tensor, " problem"],
    resampled: Float[Tensor, " replicate"],
) -> list[float]:
    bounds = resampled.quantile(torch.tensor([0.025, 0.975], dtype=resampled.dtype))
    return [(added.mean() / margin.mean()).item(), *bounds.tolist()]
