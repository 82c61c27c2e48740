"""What the tensor program must not depend on: how much it gathers at a time, where a unit stands, who else is there."""

import pytest
import torch

from workbench.errors import BadInput
from workbench.hill import fitting_group
from workbench.hill.fitting import Stack, Stream, Target, Unit, alternating, fit, optimizer, shuffled
from workbench.hill.operations import OPERATIONS

D = torch.float64


def stream(name, seed, low=0.2, samples=64):
    generator = torch.Generator().manual_seed(seed)
    x = low + (3 - low) * torch.rand(samples, 2, dtype=D, generator=generator)
    row = OPERATIONS[name]
    return Stream(Target.of(name), x, row.exact(*x.unbind(1)[: row.arity]), shuffled(samples, 8, seed))


def mixture():
    streams = [stream(name, seed, low) for seed, name in enumerate(OPERATIONS) for low in (0.2, -3.0)]
    starts = torch.randn(len(streams), 2, 2, generator=torch.Generator().manual_seed(0)).tolist()
    kinds = ("adam", "sgd", "rprop")
    units = [
        Unit((place,), optimizer(kinds[place % 3], lr=0.1), tuple(W_hat), tuple(M_hat))
        for place, (W_hat, M_hat) in enumerate(starts)
    ]
    return streams, units


@pytest.mark.parametrize("chunk", [1, 3000])
def test_the_numbers_do_not_depend_on_how_many_steps_are_gathered_at_a_time(monkeypatch, chunk):
    streams, units = mixture()
    units.append(Unit((0, 8), optimizer("adam"), turns=alternating(8, 8)))
    whole = fit(streams, units, epochs=2)
    monkeypatch.setattr(fitting_group, "CHUNK", chunk)
    parts = fit(streams, units, epochs=2)
    assert torch.equal(whole.W_hat, parts.W_hat)
    assert torch.equal(whole.history, parts.history)


def test_a_unit_has_the_same_bits_alone_and_in_any_company():
    """Long enough for one unit in the last place of a sigmoid to show: torch's scalar code is not its vector code."""
    streams, units = mixture()
    whole = fit(streams, units, epochs=8)
    for place in range(0, len(units), 2):
        alone = fit(streams, [units[place]], epochs=8)
        assert torch.equal(alone.W_hat[0], whole.W_hat[place])
        assert torch.equal(alone.M_hat[0], whole.M_hat[place])
        assert torch.equal(alone.history[:, 0], whole.history[:, place])
    order = torch.randperm(len(units), generator=torch.Generator().manual_seed(1))
    shuffle = fit(streams, [units[place] for place in order.tolist()], epochs=8)
    assert torch.equal(shuffle.W_hat, whole.W_hat[order])


def test_units_of_different_epoch_lengths_and_batch_sizes_train_together():
    long, short = stream("add", 0, samples=160), stream("add", 1, samples=32)
    wide = Stream(long.target, long.x, long.y, shuffled(160, 32, 0))
    streams = [long, short, wide]
    units = [Unit((place,), optimizer("adam", lr=0.1)) for place in range(3)]
    whole = fit(streams, units, epochs=2, every=1)
    for place in range(3):
        assert torch.equal(fit(streams, [units[place]], epochs=2).W_hat[0], whole.W_hat[place])
    taken = (~whole.trajectory.loss.isnan()).sum(dim=0)
    assert taken.tolist() == [40, 8, 10]


def test_turns_of_the_wrong_length_are_bad_input():
    streams = [stream("add", 0), stream("multiply", 1)]
    stack = Stack(streams, [Unit((0, 1), optimizer("adam"), turns=alternating(8, 7))])
    with pytest.raises(BadInput, match="turns for 15 steps of an epoch, expected 16"):
        stack.epoch()
