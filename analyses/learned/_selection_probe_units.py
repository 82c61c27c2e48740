"""Units whose own (W_hat, M_hat) are trained on two numbers read from a site, all sites at once.

A unit sees its data only through their second moments, since its output is linear in W: the mean squared error is
`W G W - 2 g W + const`. So the moments are taken once, and training is a few products of two by two matrices a unit.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from analyses._rows import Row
from workbench.hill.constraint import constrain
from workbench.statistics import wilson

STEPS = 500
RATE = 0.05  # of Adam
STARTS = 5  # random initial values a unit, N(0, 1): both factors away from their limits
NEAR = 0.25  # a weight nearer than this to -1, 0 or 1 selects it: half way to where it would be as near to the next
HOLDS = 0.5  # variance that the snapped unit must explain to be said to have selected anything
SELECTIONS = {(1, 1): "[1, 1]", (1, -1): "[1, -1]", (-1, 1): "[-1, 1]"}
NONE = "none"  # any other, or a weight near no selection
EXPECTED = {"addition": "[1, 1]", "subtraction +": "[1, -1]", "subtraction -": "[-1, 1]"}

Inputs = Float[Tensor, "unit problem 2"]
Targets = Float[Tensor, "unit problem"]


def train(
    moments: Float[Tensor, "unit 2 2"], products: Float[Tensor, "unit 2"], seed: int
) -> Float[Tensor, "start unit 2"]:
    """Trained weights of every unit from each start.

    `moments` are the mean products of the two inputs, `products` their mean products with the target, all measured from
    their means. Each unit's are divided by its inputs' mean square, so that a step means the same everywhere; a unit
    whose inputs do not vary stays where it starts.
    """
    generator = torch.Generator().manual_seed(seed)
    scale = moments.diagonal(dim1=1, dim2=2).mean(dim=1)
    still = scale < 1e-12
    scale = torch.where(still, 1.0, scale)
    moments, products = moments / scale[:, None, None], products / scale[:, None]
    raw = torch.randn((2, STARTS, len(moments), 2), generator=generator, dtype=moments.dtype).requires_grad_()
    optimizer = torch.optim.Adam([raw], lr=RATE)
    for _ in range(STEPS):
        W = constrain(raw[0], raw[1])
        loss = torch.einsum("sui,uij,suj->", W, moments, W) - 2 * (W * products).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return constrain(raw[0], raw[1]).detach()


def selected(W: Float[Tensor, "unit 2"]) -> list[str]:
    """The selection that each pair of weights is near to (NEAR)."""
    nearest = W.round().clamp(-1, 1)
    near = (W - nearest).abs().amax(dim=-1) < NEAR
    pairs = zip(nearest.int().tolist(), near.tolist(), strict=True)
    return [SELECTIONS.get((pair[0], pair[1]), NONE) if is_near else NONE for pair, is_near in pairs]


def selections(
    inputs: Inputs,
    targets: Targets,
    scored: Float[Tensor, "unit scored 2"],
    wanted: Float[Tensor, "unit scored"],
    group: str,
    seed: int,
) -> list[Row]:
    """One row a unit: where its starts land after snapping, and what the snapped weights explain on scored problems.

    `selects` is the share of starts that land on the expected selection with weights that explain at least HOLDS;
    `lands` does not ask that, and is what noise can fool: a readout that knows nothing has tiny inputs, towards which
    any weight is as good, and the constraint takes it to a limit.
    """
    middle, aim = inputs.mean(dim=1, keepdim=True), targets.mean(dim=1, keepdim=True)
    centred = inputs - middle
    n = inputs.shape[1]
    moments, products = centred.mT @ centred / n, torch.einsum("upo,up->uo", centred, targets - aim) / n
    W = train(moments, products, seed)
    outside, rest = scored - middle, wanted - aim
    spread = rest.square().sum(dim=1)
    snapped = W.round().clamp(-1, 1)
    errors = (torch.einsum("upo,suo->sup", outside, snapped) - rest).square().sum(dim=2)
    r2 = torch.where(spread > 0, 1 - errors / spread, 0.0)  # [start, unit]
    names = list(zip(*(selected(start) for start in W), strict=True))  # [unit][start]
    return [_row(names[u], W[:, u], r2[:, u], group, wanted.shape[1]) for u in range(len(inputs))]


def _row(names: Sequence[str], W: Float[Tensor, "start 2"], r2: Float[Tensor, " start"], group: str, n: int) -> Row:
    landed = [name == EXPECTED[group] for name in names]
    selects = sum(hit and explained >= HOLDS for hit, explained in zip(landed, r2.tolist(), strict=True))
    low, high = wilson(selects, STARTS)
    row: Row = {"expected": EXPECTED[group], "starts": STARTS, "n": n}
    row |= {name: sum(other == name for other in names) for name in (*SELECTIONS.values(), NONE)}
    row |= {"lands": sum(landed) / STARTS, "selects": selects / STARTS, "low": low, "high": high}
    return row | {"W_a": W[:, 0].mean().item(), "W_b": W[:, 1].mean().item(), "snapped_r2": r2.mean().item()}
