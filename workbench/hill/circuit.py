"""Circuits of units: some units read what others compute. Values, and gradients of whole stacks of circuits at once.

The report studies single units (section 2.6 leaves circuits open). A circuit here has a fixed wiring and one weight
pair a unit; a stack of them differs in weights, data or both, and no circuit reads another's numbers. The derivatives
are those of the primitives of sections 3.1 to 3.4, written out: by the weights, and by the inputs, which is what stands
before.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from workbench.errors import BadInput
from workbench.hill.operations import Primitive, operation
from workbench.hill.primitives import PRIMITIVES, compute

Signal = Float[Tensor, "*lane sample"]
Pull = Callable[[Signal], tuple[Signal, Signal, Signal, Signal]]  # of dL/dvalue: dL/dw_1, dL/dw_2, dL/dx_1, dL/dx_2
# each still a value a sample


@dataclass(frozen=True)
class Node:
    """One unit of a circuit: its primitive, and which two wires it reads."""

    primitive: Primitive
    reads: tuple[int, int]


@dataclass(frozen=True)
class Circuit:
    """Units in the order in which they compute; the last one's value is the answer.

    Wires are numbered: first the `inputs` of the circuit, then the value of each unit. Raises BadInput for a unit that
    reads a wire which is not there before it, or an unknown primitive.
    """

    inputs: int
    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        if self.inputs < 1 or not self.nodes:
            raise BadInput(f"a circuit of {self.inputs} inputs and {len(self.nodes)} units, expected some of each")
        for place, node in enumerate(self.nodes):
            if node.primitive not in PRIMITIVES:
                raise BadInput(f"unknown primitive {node.primitive!r}; choose from {', '.join(PRIMITIVES)}")
            if not all(0 <= wire < self.inputs + place for wire in node.reads):
                raise BadInput(
                    f"unit {place} reads wires {node.reads}, expected two of the {self.inputs + place} before it"
                )

    @classmethod
    def of(cls, inputs: int, *units: tuple[str, int, int]) -> tuple["Circuit", tuple[tuple[int, int], ...]]:
        """The circuit of operations (name, first wire, second wire), and the selection of each unit."""
        nodes = tuple(Node(operation(name).primitive, (first, second)) for name, first, second in units)
        return cls(inputs, nodes), tuple(operation(name).selection for name, _, _ in units)

    def answers(
        self, x: Float[Tensor, "sample input"], W: Float[Tensor, "unit 2"] | Sequence[Sequence[float]]
    ) -> Float[Tensor, " sample"]:
        """One circuit's answers by the exact primitives, in the inputs' format; powers sign-exact."""
        W = torch.as_tensor(W, dtype=x.dtype)
        wires = list(x.unbind(dim=-1))
        for node, w in zip(self.nodes, W, strict=True):
            wires.append(compute(node.primitive, torch.stack([wires[at] for at in node.reads], dim=-1), w))
        return wires[-1]

    def loss(
        self, x: Float[Tensor, "input *lane sample"], y: Signal, W: Float[Tensor, "unit 2 *lane"]
    ) -> tuple[Float[Tensor, "*lane"], Float[Tensor, "unit 2 *lane"]]:
        """Mean squared error of every circuit of a stack on its samples, and its gradient by the weights.

        The lanes of x and y may be 1 where all circuits read the same. An input of exactly 0 under an exponential unit
        gives NaN.
        """
        wires: list[Signal] = list(x.unbind(dim=0))
        pulls: list[Pull] = []
        for node, w in zip(self.nodes, W, strict=True):
            value, pull = FORWARD[node.primitive](*(wires[at] for at in node.reads), *w[..., None].unbind(dim=0))
            wires.append(value)
            pulls.append(pull)
        error = wires[-1] - y
        found: list[Tensor] = []
        by: dict[int, Signal] = {len(wires) - 1: error * (2 / error.shape[-1])}
        for place in reversed(range(len(self.nodes))):
            above = by.get(self.inputs + place)
            if above is None:  # a unit that nothing reads
                found.append(torch.zeros_like(W[place]))
                continue
            first, second, *below = pulls[place](above)
            found.append(torch.stack([first.sum(dim=-1), second.sum(dim=-1)]))
            for wire, slope in zip(self.nodes[place].reads, below, strict=True):
                if wire >= self.inputs:
                    by[wire] = by[wire] + slope if wire in by else slope
        return error.square().mean(dim=-1), torch.stack(found[::-1])


def _additive(x1: Signal, x2: Signal, w1: Signal, w2: Signal) -> tuple[Signal, Pull]:
    return w1 * x1 + w2 * x2, lambda g: (g * x1, g * x2, g * w1, g * w2)


def _exponential(x1: Signal, x2: Signal, w1: Signal, w2: Signal) -> tuple[Signal, Pull]:
    """The value `E cos(f)`, `E = |x_1|^w_1 |x_2|^w_2`, f = pi times the sum of the weights over negative inputs."""
    log1, log2 = x1.abs().log(), x2.abs().log()
    size = torch.exp(w1 * log1 + w2 * log2)
    if not bool((x1 < 0).any() or (x2 < 0).any()):

        def positive(g: Signal) -> tuple[Signal, Signal, Signal, Signal]:
            along = g * size
            return along * log1, along * log2, along * (w1 / x1), along * (w2 / x2)

        return size, positive
    n1, n2 = ((x < 0) * torch.tensor(math.pi, dtype=x.dtype) for x in (x1, x2))
    turn = w1 * n1 + w2 * n2
    value, across = size * torch.cos(turn), size * torch.sin(turn)

    def signed(g: Signal) -> tuple[Signal, Signal, Signal, Signal]:
        along, aside = g * value, g * across
        return along * log1 - aside * n1, along * log2 - aside * n2, along * (w1 / x1), along * (w2 / x2)

    return value, signed


def _unit_circle(x1: Signal, x2: Signal, w1: Signal, w2: Signal) -> tuple[Signal, Pull]:
    t = x1 + math.pi * w2
    cos, sin = torch.cos(t), torch.sin(t)

    def pull(g: Signal) -> tuple[Signal, Signal, Signal, Signal]:
        angle = g * (cos * (1 - w1) - sin * (1 + w1)) / 2
        return g * (cos - sin) / 2, math.pi * angle, angle, torch.zeros_like(angle)

    return (cos * (1 + w1) + sin * (1 - w1)) / 2, pull


def _trigonometric_products(x1: Signal, x2: Signal, w1: Signal, w2: Signal) -> tuple[Signal, Pull]:
    difference, total = x1 - x2, x1 + x2
    cos_d, sin_d = torch.cos(difference), torch.sin(difference)
    cos_s, sin_s = torch.cos(total), torch.sin(total)
    v1, v2 = 1 - w1, 1 - w2
    cos, sin = w2 * cos_d + v2 * cos_s, w2 * sin_d + v2 * sin_s

    def pull(g: Signal) -> tuple[Signal, Signal, Signal, Signal]:
        second = w1 * (cos_d - cos_s) + v1 * (sin_d - sin_s)
        by_difference, by_total = w2 * (v1 * cos_d - w1 * sin_d), v2 * (v1 * cos_s - w1 * sin_s)
        return g * (cos - sin), g * second, g * (by_difference + by_total), g * (by_total - by_difference)

    return w1 * cos + v1 * sin, pull


FORWARD: dict[str, Callable[[Signal, Signal, Signal, Signal], tuple[Signal, Pull]]] = {
    "additive": _additive,
    "exponential": _exponential,
    "unit-circle": _unit_circle,
    "trigonometric-products": _trigonometric_products,
}
