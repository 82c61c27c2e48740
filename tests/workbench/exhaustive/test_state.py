"""An unfinished count on disk: it comes back equal, and a damaged one is refused by name."""

import numpy as np
import pytest
import safetensors.numpy

from workbench.errors import BadInput
from workbench.exhaustive import state
from workbench.exhaustive.state import STATE, State

ABOUT = {"weights_sha256": "ab", "problems": "all", "by": "torch"}


def filled():
    one = State()
    counts = np.zeros_like(one.counts)
    counts[7] = (10, 9, 10, 10, 10, 10, 8)
    one.add(3, counts, np.array([0, 1, 2, 0, 0]), np.array([480_001, 480_005], np.uint32))
    return one


def test_it_comes_back_equal(tmp_path):
    assert not state.load(tmp_path, ABOUT).done.any()
    one = filled()
    state.save(one, tmp_path, ABOUT)
    again = state.load(tmp_path, ABOUT)
    for name in ("done", "counts", "near", "wrong"):
        np.testing.assert_array_equal(getattr(again, name), getattr(one, name))
    assert np.flatnonzero(again.done).tolist() == [3]


def test_too_many_wrong_problems_are_no_longer_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "MOST_LISTED", 1)
    one = filled()
    assert one.wrong is None
    state.save(one, tmp_path, ABOUT)
    assert state.load(tmp_path, ABOUT).wrong is None
    one.add(4, np.zeros_like(one.counts), np.zeros(5, np.int64), np.empty(0, np.uint32))
    assert one.wrong is None


def test_another_count_is_refused(tmp_path):
    state.save(filled(), tmp_path, ABOUT)
    with pytest.raises(BadInput, match="other weights or by other means"):
        state.load(tmp_path, {**ABOUT, "weights_sha256": "cd"})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: a.pop("near"),
        lambda a: a.update(extra=np.zeros(1)),
        lambda a: a.update(counts=a["counts"].astype(np.int32)),
        lambda a: a.update(counts=-a["counts"]),
        lambda a: a["counts"].__setitem__((7, 6), 11),
        lambda a: a.update(done=np.zeros_like(a["done"])),
        lambda a: a.update(wrong=a["wrong"][:1]),
        lambda a: a.update(wrong=a["wrong"] + np.uint32(200_000_000)),
        lambda a: a.update(done=np.ones(7, bool)),
    ],
)
def test_a_damaged_state_is_refused(tmp_path, spoil):
    state.save(filled(), tmp_path, ABOUT)
    path = tmp_path / STATE
    with safetensors.safe_open(path, framework="np") as file:
        metadata, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    spoil(arrays)
    path.write_bytes(safetensors.numpy.save(arrays, metadata=metadata))
    with pytest.raises(BadInput, match=r"state\.safetensors: .*count again"):
        state.load(tmp_path, ABOUT)


def test_half_a_file_is_refused(tmp_path):
    state.save(filled(), tmp_path, ABOUT)
    (tmp_path / STATE).write_bytes((tmp_path / STATE).read_bytes()[:100])
    with pytest.raises(BadInput, match="not a saved count"):
        state.load(tmp_path, ABOUT)


def test_an_interruption_inside_adding_leaves_the_block_uncounted(monkeypatch):
    one = filled()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(state.np, "concatenate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.add(9, one.counts, np.zeros(5, np.int64), np.array([1], np.uint32))
    assert not one.done[9] and one.counts[:, 0].sum() == 10 and len(one.wrong) == 2
