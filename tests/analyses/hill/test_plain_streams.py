import pytest
import torch

from analyses.hill._plain_streams import plain_stream
from analyses.hill._report_protocol import Distribution
from workbench.errors import BadInput


def test_a_stream_holds_the_operations_own_answers_and_fresh_orders():
    stream = plain_stream("divide", 3, samples=640)
    assert stream.x.shape == (640, 2) and torch.equal(stream.y, stream.x[:, 0] / stream.x[:, 1])
    assert stream.target.selection == (1.0, -1.0)
    orders = [stream.order(epoch) for epoch in (0, 1)]
    assert [order.shape for order in orders] == [(10, 64)] * 2 and not torch.equal(*orders)
    assert sorted(orders[0].flatten().tolist()) == list(range(640))


def test_streams_differ_by_operation_and_seed_and_repeat():
    first, again, other, next_seed = (
        plain_stream(name, seed, samples=128) for name, seed in (("add", 0), ("add", 0), ("subtract", 0), ("add", 1))
    )
    assert torch.equal(first.x, again.x) and torch.equal(first.order(0), again.order(0))
    assert not torch.equal(first.x, other.x) and not torch.equal(first.x, next_seed.x)
    assert not torch.equal(first.order(0), other.order(0)) and not torch.equal(first.order(0), next_seed.order(0))


def test_inputs_come_from_the_distribution_asked_for():
    wide = plain_stream("multiply", 0, within=Distribution("uniform", -5.0, 5.0), samples=6400)
    assert wide.x.min() < -4.9 and wide.x.max() > 4.9
    unary = plain_stream("sin", 0, samples=64)
    assert (unary.x[:, 1] == 1).all()
    with pytest.raises(BadInput, match="unknown operation"):
        plain_stream("root", 0)
