"""A stack against the loop it stands for: torch.autograd and torch.optim, one unit at a time."""

import math

import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.constraint import constrain
from workbench.hill.fitting import Stack, Stream, Target, Unit, alternating, below, fit, optimizer, shuffled
from workbench.hill.operations import OPERATIONS
from workbench.hill.primitives import compute

D = torch.float64


def stream(name, seed=0, low=0.2, high=3.0, samples=128, batch=16, dtype=D):
    generator = torch.Generator().manual_seed(seed)
    x = (low + (high - low) * torch.rand(samples, 2, dtype=D, generator=generator)).to(dtype)
    row = OPERATIONS[name]
    return Stream(Target.of(name), x, row.exact(*x.unbind(1)[: row.arity]), shuffled(samples, batch, seed))


def loop(batches, unit, dtype=D):
    """What one unit does alone, over a list of (primitive, x, y): its raw parameters and loss before every step."""
    W_hat, M_hat = (torch.tensor(raw, dtype=dtype, requires_grad=True) for raw in (unit.W_hat, unit.M_hat))
    rule, states = unit.optimizer.torch([W_hat, M_hat]), []
    for primitive, x, y in batches:
        rule.zero_grad()
        loss = (compute(primitive, x, constrain(W_hat, M_hat)) - y).square().mean()
        states.append((W_hat.detach().clone(), M_hat.detach().clone(), loss.detach()))
        loss.backward()
        rule.step()
    states.append((W_hat.detach(), M_hat.detach(), torch.tensor(math.nan)))
    return states


def batches(one, epochs):
    samples = torch.cat([one.order(epoch) for epoch in range(epochs)])
    return [(one.target.primitive, one.x[batch], one.y[batch]) for batch in samples]


TWELVE = [  # operation, optimizer, initial scale, inputs from, to, seed
    ("add", optimizer("adam", lr=0.1, betas=(0.9, 0.5)), 0.0, 1e-8, 10.0, 0),
    ("subtract", optimizer("rmsprop", lr=0.01, alpha=0.9, eps=1e-10), 0.0, -5.0, 5.0, 1),
    ("multiply", optimizer("adam", lr=0.1), 0.1, 0.1, 5.0, 2),
    ("divide", optimizer("adamw", lr=0.05), 0.01, 0.5, 2.0, 3),
    ("multiply", optimizer("adagrad", lr=0.3), 0.1, -3.0, 3.0, 4),
    ("divide", optimizer("nadam", lr=0.02), 0.5, -2.0, -0.5, 5),
    ("power-identity", optimizer("radam", lr=0.1), 0.1, 0.5, 4.0, 6),
    ("reciprocal", optimizer("adadelta"), 0.1, 0.5, 2.0, 7),
    ("cos", optimizer("rprop"), 1.0, -4.0, 4.0, 8),
    ("sin", optimizer("sgd", lr=0.3, momentum=0.9), 0.1, 0.0, 6.0, 9),
    ("cos-difference", optimizer("adamax", lr=0.05), 1.0, -3.0, 3.0, 10),
    ("sin-sum", optimizer("adam", lr=0.1), 3.0, 0.0, 10.0, 11),
]


@pytest.fixture(scope="module")
def twelve():
    streams = [stream(name, seed, low, high) for name, _, _, low, high, seed in TWELVE]
    starts = torch.randn(12, 2, 2, dtype=D, generator=torch.Generator().manual_seed(0))
    starts *= torch.tensor([scale for _, _, scale, *_ in TWELVE], dtype=D)[:, None, None]
    units = [
        Unit((place,), rule, tuple(W_hat), tuple(M_hat))
        for place, ((_, rule, *_), (W_hat, M_hat)) in enumerate(zip(TWELVE, starts.tolist(), strict=True))
    ]
    return streams, units


def test_a_stack_of_twelve_does_what_twelve_loops_do(twelve):
    """To 1e-12 over 24 steps, in raw parameters, weights and losses.

    They are not the same bits: a loop forms predictions, subtracts the targets and averages, while the stack forms the
    squared error about the target's coefficients from sums over the batch (or with expm1), so that each rounds in other
    places; and torch computes the sigmoid of two numbers by other code than that of many, one unit in the last place
    apart at times.
    """
    streams, units = twelve
    found = fit(streams, units, epochs=3, every=1)
    assert found.trajectory.step.tolist() == list(range(24))
    for place, (one, unit) in enumerate(zip(streams, units, strict=True)):
        states = loop(batches(one, 3), unit)
        for step, (W_hat, M_hat, loss) in enumerate(states[:-1]):
            assert found.trajectory.W_hat[step, place] == pytest.approx(W_hat, rel=1e-12, abs=1e-12)
            assert found.trajectory.M_hat[step, place] == pytest.approx(M_hat, rel=1e-12, abs=1e-12)
            assert found.trajectory.loss[step, place].item() == pytest.approx(loss.item(), rel=1e-12, abs=1e-12)
        assert found.W_hat[place] == pytest.approx(states[-1][0], rel=1e-12, abs=1e-12)
        means = torch.stack([loss for *_, loss in states[:-1]]).view(3, 8).mean(dim=1)
        assert found.history[:, place] == pytest.approx(means, rel=1e-12, abs=1e-12)
    assert torch.equal(found.W, constrain(found.W_hat, found.M_hat))
    assert torch.equal(found.trajectory.W, constrain(found.trajectory.W_hat, found.trajectory.M_hat))


def test_a_shared_pair_does_what_a_loop_over_both_streams_does():
    """Gradients of the operation whose turn it is, in the order of turns; its neighbours have streams of their own."""
    streams = [stream("power-identity", 0), stream("cos", 1), stream("add", 2, samples=256)]
    whose = alternating(8, 8)
    shared = Unit((0, 1), optimizer("adam", lr=0.1, betas=(0.9, 0.5)), (0.3, -0.2), (0.1, 0.4), turns=whose)
    alone = Unit((2,), optimizer("adam", lr=0.1))
    found = fit(streams, [alone, shared, Unit((1,), optimizer("sgd"))], epochs=2)
    both = [iter(batches(streams[0], 2)), iter(batches(streams[1], 2))]
    mixed = [next(both[slot]) for epoch in range(2) for slot in whose(epoch).tolist()]
    W_hat, M_hat, _ = loop(mixed, shared)[-1]
    assert found.W_hat[1] == pytest.approx(W_hat, rel=1e-12, abs=1e-12)
    assert found.M_hat[1] == pytest.approx(M_hat, rel=1e-12, abs=1e-12)
    assert found.W_hat[0] == pytest.approx(loop(batches(streams[2], 2), alone)[-1][0], rel=1e-12)


def test_many_units_may_read_one_stream():
    streams = [stream("multiply", 0), stream("add", 1)]
    rates = (0.01, 0.02, 0.05, 0.1)
    units = [Unit((place,), optimizer("adam", lr=lr)) for lr in rates for place in (0, 1)]
    found = fit(streams, units, epochs=2)
    for place, unit in enumerate(units):
        expected = loop(batches(streams[unit.streams[0]], 2), unit)[-1][0]
        assert found.W_hat[place] == pytest.approx(expected, rel=1e-12)


def test_a_unit_that_diverges_is_dropped_and_its_neighbours_keep_their_bits(twelve):
    streams, units = twelve
    clean = fit(streams, units, epochs=4)
    wild = Unit((2,), optimizer("sgd", lr=1e308), (0.1, 0.1), (0.1, 0.1))
    poisoned = Stream(streams[3].target, streams[3].x, streams[3].y * math.nan, streams[3].order)
    sick = Unit((12,), optimizer("adam"))
    found = fit([*streams, poisoned], [*units[:5], wild, *units[5:], sick], epochs=4)
    assert found.diverged.nonzero()[:, 0].tolist() == [5, 13]
    assert found.epochs.tolist() == [4] * 5 + [1] + [4] * 7 + [1]
    others = torch.tensor([place for place in range(14) if place not in (5, 13)])
    assert torch.equal(found.W_hat[others], clean.W_hat)
    assert torch.equal(found.M_hat[others], clean.M_hat)
    assert torch.equal(found.history[:, others], clean.history)
    assert found.history[1:, 5].isnan().all()


def test_every_unit_stops_by_itself_and_stays_where_it_stopped():
    streams = [stream("add", 0), stream("subtract", 1), stream("add", 2)]
    rates = (1e-4, 0.3, 0.02)
    units = [Unit((place,), optimizer("adam", lr=lr, betas=(0.9, 0.5))) for place, lr in enumerate(rates)]
    seen = []
    found = fit(streams, units, epochs=30, stop=below(1e-3, epochs=2), watch=lambda s: seen.append(s.running.tolist()))
    assert found.epochs[0] == 30
    assert 2 < found.epochs[1] < found.epochs[2] < 30
    for place in (1, 2):
        own = found.history[: found.epochs[place], place]
        assert (own[-2:] < 1e-3).all()
        assert not ((own[:-1] < 1e-3) & (own[1:] < 1e-3))[:-1].any()  # no earlier two in a row
        assert found.history[found.epochs[place] :, place].isnan().all()
        alone = fit(streams, [units[place]], epochs=int(found.epochs[place]))
        assert torch.equal(alone.W_hat[0], found.W_hat[place])
    assert len(seen) == 30
    assert seen[0] == [True] * 3
    assert seen[-1] == [True, False, False]


def test_training_ends_when_no_unit_is_left():
    found = fit([stream("add")], [Unit((0,), optimizer("adam"))], epochs=50, stop=lambda stack: stack.running)
    assert len(found.history) == 1
    assert found.epochs.tolist() == [1]
    assert found.trajectory.step.tolist() == []


def test_driven_by_hand_units_stop_together_or_never():
    streams = [stream("add", 0), stream("multiply", 1)]
    stack = Stack(streams, [Unit((place,), optimizer("adam", lr=0.1)) for place in (0, 1, 0)])
    stack.epoch()
    frozen = stack.W_hat[0].clone()
    stack.stop(torch.tensor([True, False, False]))
    stack.stop(torch.tensor([True, False, False]))  # again: nothing
    stack.epoch()
    assert stack.running.tolist() == [False, True, True]
    assert stack.epochs.tolist() == [1, 2, 2]
    assert torch.equal(stack.W_hat[0], frozen)
    assert not torch.equal(stack.W_hat[2], frozen)


def test_a_trajectory_every_few_steps_goes_on_over_epochs_and_stops():
    streams = [stream("add", 0), stream("subtract", 1)]
    units = [Unit((place,), optimizer("adam", lr=0.1)) for place in (0, 1)]
    all_steps = fit(streams, units, epochs=2, every=1).trajectory
    stop = lambda stack: torch.tensor([False, len(stack.history) == 1])  # noqa: E731
    some = fit(streams, units, epochs=2, every=3, stop=stop).trajectory
    assert some.step.tolist() == [0, 3, 6, 9, 12, 15]
    assert torch.equal(some.W_hat[:, 0], all_steps.W_hat[::3, 0])
    assert torch.equal(some.loss[:3], all_steps.loss[:9:3])
    assert some.W_hat[3:, 1].isnan().all()


def test_float32_units_compute_in_float32():
    one = stream("divide", 0, low=0.5, dtype=torch.float32)
    unit = Unit((0,), optimizer("adam", lr=0.1), (0.1, -0.1), (0.2, 0.3))
    found = fit([one], [unit], epochs=1)
    assert found.W_hat.dtype == torch.float32
    expected = loop(batches(one, 1), unit, torch.float32)[-1][0]
    assert found.W_hat[0] == pytest.approx(expected, rel=1e-4)


def test_adam_with_a_short_memory_reaches_exact_weights_and_keeps_them():
    """Report section 2.2: beta2 = 0.5 carries the raw parameters so far that tanh and sigmoid round to 1."""
    streams = [stream("multiply", 0, 1e-3, 10.0, 6400, 64), stream("subtract", 1, 1e-3, 10.0, 6400, 64)]
    short, long = (optimizer("adam", lr=0.1, betas=(0.9, beta2)) for beta2 in (0.5, 0.999))
    found = fit(streams, [Unit((place,), rule) for rule in (short, long) for place in (0, 1)], epochs=3)
    assert found.W[:2].tolist() == [[1.0, 1.0], [1.0, -1.0]]
    assert found.history[-1, :2].tolist() == [0.0, 0.0]
    assert (found.W[2:].abs() < 1).all()


def test_an_order_that_changes_its_shape_is_bad_input():
    one = stream("add")
    changing = Stream(one.target, one.x, one.y, lambda epoch: one.order(0)[: 8 - epoch])
    with pytest.raises(BadInput, match=r"stream 0: an order of shape \[7, 16\] after \[8, 16\]"):
        fit([changing], [Unit((0,), optimizer("adam"))], epochs=2)


def test_an_order_of_samples_that_there_are_not_is_bad_input():
    one = stream("add")
    beyond = Stream(one.target, one.x[:100], one.y[:100], one.order)
    with pytest.raises(BadInput, match="stream 0: an order of samples 0 to 127, there are 100"):
        Stack([beyond], [Unit((0,), optimizer("adam"))])


def test_streams_of_two_batch_sizes_cannot_be_shared():
    streams = [stream("add", batch=16), stream("multiply", batch=8)]
    with pytest.raises(BadInput, match=r"unit 0 shares streams of batches of \[8, 16\], expected one size"):
        Stack(streams, [Unit((0, 1), optimizer("adam"), turns=alternating(8, 16))])


def test_units_that_cannot_move_any_more_are_left_out_without_a_trace():
    """Learned, stuck on a wrong plateau, with a free second weight; and one that weight decay keeps moving."""
    streams = [stream("multiply", 0, 1e-3, 10.0, 6400, 64), stream("add", 1, 1e-3, 10.0, 6400, 64)]
    streams += [stream("power-identity", 2, 1e-3, 10.0, 6400, 64), stream("cos", 3, 0.0, 10.0, 6400, 64)]
    streams[2].x[:, 1] = 1.0
    short = {"lr": 0.1, "betas": (0.9, 0.5)}
    units = [
        Unit((0,), optimizer("adam", **short)),
        Unit((1,), optimizer("adam", **short), (-40.0, 40.0), (-800.0, 40.0)),  # selects b
        Unit((2,), optimizer("adam", **short), (0.0, 0.3), (0.0, -0.2)),
        Unit((3,), optimizer("adam", **short), (-0.5, 0.5), (1.0, 1.0)),
        Unit((0,), optimizer("adamw", **short)),
        Unit((0,), optimizer("adam", lr=0.1)),
    ]
    stacks = [Stack(streams, units, settle=settle) for settle in (False, True)]
    for stack in stacks:
        for _ in range(12):
            stack.epoch()
    plain, settled = stacks
    assert torch.equal(plain.W_hat, settled.W_hat)
    assert torch.equal(plain.M_hat, settled.M_hat)
    assert plain.epochs.tolist() == settled.epochs.tolist() == [12] * 6
    assert settled.history == pytest.approx(plain.history, rel=1e-12, abs=0)
    assert settled.running.all()
    left = [place for group in settled._groups for place in group.places.tolist()]
    assert {4, 5} <= set(left)
    assert not {0, 1, 2} & set(left)
    assert plain.W[1].tolist() == [0.0, 1.0]
