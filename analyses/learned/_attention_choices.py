"""Which digit wins the weight, where a head of `attention` looks at the two operand digits of one place.

Asked after the first of the twelve had been seen. A softmax over two keys gives the first the share
`1 / (1 + exp(s_b - s_a))`, so a head that looks at both prefers by one score a digit and position: the QK circuit.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from analyses.learned._attention_circuits import DIGITS, Circuits
from analyses.learned._conditions import PREDICTED
from workbench.task import POSITION_LABELS

PAIRS = {place: (3 - place, 8 - place) for place in range(4)}  # positions of a's and b's digit, by place


def _correlation(first: Float[Tensor, " digit"], second: Float[Tensor, " digit"]) -> float:
    return torch.corrcoef(torch.stack([first, second]))[0, 1].item()


def choice_rows(found: Circuits, layer: int, heads: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row for each head and answer digit that chooses between the digits of a place, on all problems together.

    `score_d` is how much digit d is preferred, in units of attention score, its mean over the two positions less that
    over the ten digits; `same_order` the correlation of the two positions' scores over the ten digits (1 in layer 0 by
    construction: an embedding is a token's part plus a position's); `middle` and `value` the correlations of `score_d`
    with -|d - 4.5| and with d.
    """
    labels = {f"{POSITION_LABELS[a]} {POSITION_LABELS[b]}": (a, b) for a, b in PAIRS.values()}
    scores = found.levels()["key"][:, :, 0, :, :DIGITS]
    digits = torch.arange(DIGITS, dtype=scores.dtype)
    for row in heads:
        if row["group"] != "all" or row["role"] != "chooses" or row["reads"] not in labels:
            continue
        a, b = (scores[row["head"], PREDICTED.index(row["answer"]), key] for key in labels[row["reads"]])
        both = (a + b) / 2
        both = both - both.mean()
        order = "".join(str(d) for d in both.argsort(descending=True, stable=True).tolist())
        place = {name: row[name] for name in ("layer", "head", "node", "answer", "reads", "winner", "n_score")}
        shape = {"middle": _correlation(both, -(digits - 4.5).abs()), "value": _correlation(both, digits)}
        said = {f"score_{d}": value for d, value in enumerate(both.tolist())}
        yield place | {"same_order": _correlation(a, b), "preferred": order} | shape | said
