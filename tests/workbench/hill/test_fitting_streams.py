import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.fitting import Stack
from workbench.hill.fitting_gradients import Target
from workbench.hill.fitting_optimizers import optimizer
from workbench.hill.fitting_streams import Stream, Unit, alternating, in_parts, shuffled

ADAM = optimizer("adam")


def test_an_epoch_is_a_permutation_that_seed_and_epoch_decide():
    order = shuffled(70, 8, seed=3)
    first = order(0)
    assert first.shape == (8, 8)  # 70 problems make eight whole batches
    assert len(first.unique()) == 64
    assert first.max() < 70
    assert torch.equal(order(0), first)
    assert torch.equal(shuffled(70, 8, seed=3)(5), order(5))
    assert not torch.equal(order(1), first)
    assert not torch.equal(shuffled(70, 8, seed=4)(0), first)


def test_parts_of_epochs_are_the_epochs_batches_in_their_order():
    order, parts = shuffled(80, 8, seed=0), in_parts(shuffled(80, 8, seed=0), 5)
    assert torch.equal(torch.cat([parts(part) for part in range(10)]), torch.cat([order(0), order(1)]))
    rest = in_parts(shuffled(80, 8, seed=0), 3)  # ten batches in three parts of three
    assert torch.equal(torch.cat([rest(part) for part in range(3)]), order(0)[:9])


def test_turns_alternate_and_give_each_its_batches():
    assert alternating(3, 3)(0).tolist() == [0, 1, 0, 1, 0, 1]
    whose = alternating(6, 2)(7).tolist()
    assert (whose.count(0), whose.count(1)) == (6, 2)
    assert whose[:4].count(1) == 1


def stream(x=None, y=None, samples=16):
    x = torch.ones(samples, 2, dtype=torch.float64) if x is None else x
    y = torch.ones(samples, dtype=torch.float64) if y is None else y
    return Stream(Target.of("add"), x, y, shuffled(samples, 4, 0))


@pytest.mark.parametrize(
    ("streams", "units", "words"),
    [
        ([], [Unit((0,), ADAM)], "1 units and 0 streams"),
        ([stream()], [], "0 units and 1 streams"),
        ([stream()], [Unit((1,), ADAM)], r"unit 0 reads streams \(1,\), expected places below 1"),
        ([stream()], [Unit((), ADAM)], r"unit 0 reads streams \(\)"),
        ([stream()], [Unit((0, 0), ADAM)], "turns are for more than one, and needed there"),
        ([stream()], [Unit((0,), ADAM, turns=alternating(4))], "turns are for more than one"),
        ([stream(), stream(x=torch.ones(16, 2))], [Unit((0,), ADAM)], "one float dtype for all"),
        ([stream(x=torch.ones(16, 3, dtype=torch.float64))], [Unit((0,), ADAM)], r"x \[16, 3\], y \[16\]"),
        ([stream(y=torch.ones(5, dtype=torch.float64))], [Unit((0,), ADAM)], r"x \[16, 2\], y \[5\]"),
    ],
)
def test_what_does_not_fit_together_is_bad_input(streams, units, words):
    with pytest.raises(BadInput, match=words):
        Stack(streams, units)


@pytest.mark.parametrize("batch", [0, 17])
def test_a_batch_that_there_is_not(batch):
    with pytest.raises(BadInput, match=f"a batch of {batch} from 16 samples; expected 1 to 16"):
        shuffled(16, batch, 0)
