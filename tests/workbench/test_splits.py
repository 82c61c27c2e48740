import numpy as np
import pytest

from workbench.splits import TOTAL_EXAMPLES, Splits, draw, in_variant
from workbench.task import Problems


def pcg64_words(state, increment):
    """PCG64 (XSL-RR 128/64, O'Neill 2014, section 6.3.3) on Python's own integers."""
    while True:
        state = (state * 0x2360ED051FC65DA44385DF649FCCF645 + increment) % 2**128
        folded, turn = (state >> 64) ^ (state % 2**64), state >> 122
        yield ((folded >> turn) | (folded << (64 - turn))) % 2**64


def slow_draw(count, keep=lambda a, b, subtract: True):
    """The first `count` problems of data seed 1234, one word at a time, with a set of those seen."""
    # The state that numpy 2.4's SeedSequence(1234) gives PCG64, written down so that no later version can change it.
    words = pcg64_words(29299324949094424543410418505067287561, 107381791681050441119675421997145146149)
    seen, found = set(), []
    while len(found) < count:
        index = next(words) % 200_000_000
        subtract, pair = divmod(index, 100_000_000)
        if index not in seen and keep(*divmod(pair, 10_000), bool(subtract)):
            seen.add(index)
            found.append(index)
    return found


KEEP = {
    "all": lambda a, b, subtract: True,
    "sign-hidden": lambda a, b, subtract: True,
    "ordered": lambda a, b, subtract: a >= b,
    "addition": lambda a, b, subtract: not subtract,
    "subtraction": lambda a, b, subtract: subtract,
}


@pytest.fixture(scope="module")
def splits():
    return Splits()


def test_data_seed_1234_gives_these_problems(splits):
    first = [132456890, 22782593, 59909300, 39523470, 40251012, 84474106, 83539335, 38956187]
    assert slow_draw(8) == first  # two witnesses: the numbers, and the algorithm by hand
    assert splits.train[:8].index.tolist() == first


@pytest.mark.parametrize("variant", KEEP)
def test_the_draw_is_pcg64_words_reduced_kept_and_not_repeated(variant):
    # 20,000 of 200 million meet about one repeat; the next test makes thousands
    found = draw(1234, 20_000, variant)
    assert found.tolist() == slow_draw(20_000, KEEP[variant])
    problems = Problems.from_index(found)
    rows = zip(problems.a.tolist(), problems.b.tolist(), problems.subtract.tolist(), strict=True)
    assert all(KEEP[variant](*row) for row in rows)
    assert in_variant(found, variant).all()


def test_a_repeated_problem_is_dropped_and_the_next_takes_its_place():
    count = 300_000  # expects count^2 / (2 * 2e8) = 225 repeats
    found = draw(1234, count)
    assert found.tolist() == slow_draw(count)
    words = np.random.PCG64(1234).random_raw(count) % 200_000_000
    assert 150 < count - len(np.unique(words)) < 300  # the case was met


@pytest.mark.parametrize("variant", ["all", "ordered"])
def test_a_longer_draw_starts_with_the_shorter_one(variant):
    long = draw(7, 60_000, variant)
    for count in (0, 1, 1_000, 1_025, 30_000):
        np.testing.assert_array_equal(draw(7, count, variant), long[:count])
    assert not np.array_equal(draw(8, 1_000, variant), long[:1_000])


def test_splits_have_their_sizes_and_share_nothing(splits):
    parts = [splits.train.index, splits.validation.index, splits.test.index]
    assert [len(part) for part in parts] == [5_000_000, 10_000, 10_000]
    together = np.concatenate(parts)
    assert len(np.unique(together)) == TOTAL_EXAMPLES == 5_020_000
    np.testing.assert_array_equal(parts[1][:3], [9384589, 65309870, 98902693])
    np.testing.assert_array_equal(parts[2][-3:], [23656831, 76792587, 54992707])


def test_the_draw_is_uniform_over_the_domain(splits):
    index = splits.train.index
    # chi-square against 1,000 equal slices of the domain: mean 999, standard deviation sqrt(2 * 999)
    counts = np.bincount(index // 200_000, minlength=1000)
    chi_square = ((counts - 5_000) ** 2 / 5_000).sum()
    assert abs(chi_square - 999) < 5 * np.sqrt(2 * 999)
    # and for every digit of the operands, on the last one
    counts = np.bincount(index % 10, minlength=10)
    assert ((counts - 500_000) ** 2 / 500_000).sum() < 40  # 9 degrees of freedom, p < 1e-5


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_about_half_are_additions(splits, part):
    subtract = getattr(splits, part).subtract
    assert abs(subtract.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(subtract))


def test_batches_are_slices_of_the_training_problems(splits):
    train = splits.train.index
    np.testing.assert_array_equal(splits.batch(0, 1024).index, train[:1024])
    np.testing.assert_array_equal(splits.batch(3, 100).index, train[300:400])
    last = splits.batch(4882, 1024)
    assert len(last) == 832
    np.testing.assert_array_equal(last.index, train[-832:])
    assert len(splits.batch(4883, 1024)) == 0
    assert sum(len(splits.batch(step, 1024)) for step in range(4800, 4883)) == 5_000_000 - 4800 * 1024


def test_a_variant_fills_its_splits_from_its_own_problems():
    ordered = Splits(1234, "ordered")
    assert (len(ordered.train), len(ordered.validation), len(ordered.test)) == (5_000_000, 10_000, 10_000)
    for part in (ordered.train, ordered.validation, ordered.test):
        assert (part.a >= part.b).all() and not part.negative.any()
    assert ordered.train[:4].index.tolist() == slow_draw(4, KEEP["ordered"])


def test_another_data_seed_gives_other_problems():
    shared = np.intersect1d(draw(1, 10_000), draw(2, 10_000))
    assert len(shared) < 10  # half a problem is expected in common
