import math

import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.circuit import Circuit, Node
from workbench.hill.primitives import PRIMITIVES, compute

REAL = torch.float64


def rows(*values):
    return torch.tensor(values, dtype=REAL)


@pytest.mark.parametrize(
    ("units", "x", "answer"),
    [
        ([("add", 0, 1), ("multiply", 3, 2)], (2.0, 3.0, -4.0), -20.0),
        ([("multiply", 0, 1), ("subtract", 3, 2)], (2.0, -3.0, 4.0), -10.0),
        ([("sin-sum", 0, 1), ("multiply", 3, 2)], (0.5, -1.5, 3.0), 3 * math.sin(-1.0)),
        ([("subtract", 0, 1), ("add", 2, 0), ("divide", 3, 4)], (1.0, 4.0, 5.0), -0.5),
    ],
)
def test_the_selections_compute_the_composed_operations(units, x, answer):
    circuit, selection = Circuit.of(3, *units)
    assert circuit.answers(rows(x), selection).item() == pytest.approx(answer, rel=1e-15, abs=1e-15)


def test_answers_are_exact_to_the_last_bit():
    circuit, selection = Circuit.of(4, ("subtract", 0, 1), ("add", 2, 3), ("divide", 4, 5))
    x = torch.randn(1000, 4, dtype=REAL, generator=torch.Generator().manual_seed(0)) * 100
    a, b, c, d = x.unbind(1)
    assert torch.equal(circuit.answers(x, selection), (a - b) / (c + d))


@pytest.mark.parametrize("first", PRIMITIVES)
@pytest.mark.parametrize("last", PRIMITIVES)
@pytest.mark.parametrize("lowest", [-2, 0])
def test_loss_and_gradient_are_those_of_autograd_through_the_primitives(first, last, lowest):
    """Three units, the last of which reads the others; weights of both signs, inputs too or not; five circuits."""
    circuit = Circuit(3, (Node(first, (0, 1)), Node("additive", (1, 2)), Node(last, (3, 4))))
    generator = torch.Generator().manual_seed(7)
    W = torch.rand(3, 2, 5, dtype=REAL, generator=generator) * 2 - 1
    x = torch.rand(3, 5, 16, dtype=REAL, generator=generator) * 4 + lowest
    y = torch.rand(5, 16, dtype=REAL, generator=generator)
    loss, gradient = circuit.loss(x, y, W)
    leaf = W.clone().requires_grad_(True)
    total = []
    for lane in range(5):
        wires = list(x[:, lane])
        for place, node in enumerate(circuit.nodes):
            pair = torch.stack([wires[at] for at in node.reads], dim=-1)
            wires.append(compute(node.primitive, pair, leaf[place, :, lane]))
        total.append((wires[-1] - y[lane]).square().mean())
    expected = torch.stack(total)
    (slope,) = torch.autograd.grad(expected.sum(), leaf)
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-11, atol=0)
    torch.testing.assert_close(gradient, slope, rtol=1e-9, atol=1e-10)


def test_a_unit_read_twice_gets_the_sum_and_one_read_by_nobody_nothing():
    """(w a)^2 by a multiply that reads one wire twice: d/dw of ((w a)^2 - 0)^2 is 4 w^3 a^4."""
    circuit = Circuit(1, (Node("additive", (0, 0)), Node("additive", (0, 0)), Node("exponential", (1, 1))))
    W = rows((0.5, 0.0), (0.7, 0.7), (1.0, 1.0))[:, :, None]
    loss, gradient = circuit.loss(rows((3.0,))[:, None], rows((0.0,)), W)
    assert loss.item() == pytest.approx(1.5**4)
    assert gradient[0, 0].item() == pytest.approx(4 * 0.5**3 * 3**4)
    assert gradient[1].abs().max() == 0


def test_circuits_of_a_stack_do_not_read_each_other():
    circuit, _ = Circuit.of(3, ("add", 0, 1), ("multiply", 3, 2))
    generator = torch.Generator().manual_seed(1)
    W, x = torch.rand(2, 2, 4, dtype=REAL, generator=generator), torch.rand(3, 4, 8, dtype=REAL, generator=generator)
    y = torch.rand(4, 8, dtype=REAL, generator=generator)
    whole = circuit.loss(x, y, W)
    W[..., 2] = torch.nan
    other = circuit.loss(x, y, W)
    kept = [0, 1, 3]
    assert torch.equal(whole[0][kept], other[0][kept]) and torch.equal(whole[1][..., kept], other[1][..., kept])
    shared = circuit.loss(x[:, :1], y[:1], torch.rand(2, 2, 4, dtype=REAL, generator=generator))
    assert shared[0].shape == (4,) and shared[1].shape == (2, 2, 4)


@pytest.mark.parametrize(
    ("inputs", "nodes"),
    [
        (0, (Node("additive", (0, 0)),)),
        (2, ()),
        (2, (Node("additive", (0, 2)),)),
        (2, (Node("additive", (0, -1)),)),
        (2, (Node("cosine", (0, 1)),)),  # type: ignore[arg-type]
    ],
)
def test_a_wiring_that_cannot_be_is_refused(inputs, nodes):
    with pytest.raises(BadInput, match="expected|choose"):
        Circuit(inputs, nodes)
