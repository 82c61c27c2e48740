"""Counting blocks: what a made-up decoder gets wrong is what is counted, interrupted or not."""

from pathlib import Path

import numpy as np
import pytest

from workbench import checkpoint
from workbench.errors import BadInput
from workbench.exhaustive import result, run, state, tally
from workbench.exhaustive.digits import BLOCK, Predictor
from workbench.native import library
from workbench.recipe import Architecture, RunConfig
from workbench.task import ANSWER_TOKENS, Problems, encode

ROOT = Path(__file__).parents[3]
BLOCKS = [0, 1, 624, 625, 1249]


@pytest.fixture
def decoder(tmp_path, write_run, monkeypatch):
    """A checkpoint whose predictor is wrong in d1 where b ends in 7, and never asked for other blocks than BLOCKS."""
    config = RunConfig(Architecture(n_layers=1, d_model=4, n_heads=1, d_head=4, d_mlp=4))
    one = checkpoint.read(write_run(tmp_path / "one", config, {1: 2.0}))
    asked = []

    def block(self, number):
        asked.append(number)
        problems = Problems.from_index(np.arange(number * BLOCK, (number + 1) * BLOCK, dtype=np.uint32))
        digits = encode(problems)[:, ANSWER_TOKENS].copy()
        wrong = problems.b % 10 == 7
        digits[wrong, 3] = (digits[wrong, 3] + 1) % 10
        near = np.zeros((BLOCK, 5), bool)
        near[:3, 4] = True
        return digits, near

    monkeypatch.setattr(Predictor, "block", block)
    monkeypatch.setattr(Predictor, "generated", lambda self, problems: np.full((len(problems), 5), 9, np.uint8))
    monkeypatch.setattr(run, "blocks_of", lambda variant: BLOCKS)
    return one, asked


def test_counts_and_the_list_of_wrong_problems(decoder, tmp_path):
    one, asked = decoder
    done = []
    found = run.count(one, tmp_path / "counts" / "one", jobs=2, on_block=done.append)
    assert sorted(asked) == BLOCKS
    assert done == [BLOCK * n for n in range(6)]
    assert (found.n, found.wrong, found.near) == (5 * BLOCK, BLOCK // 2, [0, 0, 0, 0, 15])
    (line,) = tally.lines(found.counts, "all")
    assert [line[place] for place in tally.PLACES] == [5 * BLOCK] * 3 + [5 * BLOCK - BLOCK // 2, 5 * BLOCK]
    operators = {line.category: line for line in tally.lines(found.counts, "operator")}
    assert operators["addition"]["n"] == 3 * BLOCK and operators["subtraction"]["n"] == 2 * BLOCK
    wrong = found.wrong_problems()
    assert len(wrong) == BLOCK // 2 and (wrong.b % 10 == 7).all() and set(wrong.answer) == {"99999"}
    assert sorted(path.name for path in (tmp_path / "counts").iterdir()) == ["one"]
    again = run.count(one, tmp_path / "counts" / "one", jobs=2)
    assert sorted(asked) == BLOCKS and (again.counts == found.counts).all()


def test_interrupted_it_continues_to_the_same_bytes(decoder, tmp_path):
    one, asked = decoder
    whole = run.count(one, tmp_path / "whole", jobs=1)
    asked.clear()

    def stop(done):
        if done == 2 * BLOCK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.count(one, tmp_path / "parts", jobs=1, on_block=stop)
    assert not (tmp_path / "parts").exists()
    before = len(asked)
    run.count(one, tmp_path / "parts", jobs=2)
    assert sorted(asked[before:]) == BLOCKS[2:]
    for file in whole.folder.iterdir():
        assert file.read_bytes() == (tmp_path / "parts" / file.name).read_bytes()


def test_a_block_that_fails_loses_nothing_counted(decoder, tmp_path, monkeypatch):
    one, _ = decoder
    block = Predictor.block

    def fails(self, number):
        if number == 624:
            raise MemoryError
        return block(self, number)

    monkeypatch.setattr(Predictor, "block", fails)
    with pytest.raises(MemoryError):
        run.count(one, tmp_path / "mine", jobs=1)
    about = {"weights_sha256": one.weights_sha256, "problems": "all", "by": "torch"}
    assert np.flatnonzero(state.load(tmp_path / "mine.partial", about).done).tolist() == [0, 1]


def test_counts_of_other_weights_are_refused(decoder, tmp_path, write_run):
    one, _ = decoder
    run.count(one, tmp_path / "mine", jobs=2)
    other = checkpoint.read(write_run(tmp_path / "other", RunConfig(one.config.architecture, seed=5), {1: 2.0}))
    with pytest.raises(BadInput, match="other weights than those of other"):
        run.count(other, tmp_path / "mine", jobs=2)


def test_a_variant_counts_its_own_problems(decoder, tmp_path, write_run):
    shape = decoder[0].config.architecture
    ordered = checkpoint.read(write_run(tmp_path / "ordered", RunConfig(shape, problems="ordered"), {1: 2.0}))
    found = run.count(ordered, tmp_path / "mine", jobs=2)
    index = np.concatenate([np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.uint32) for block in BLOCKS])
    problems = Problems.from_index(index)
    assert found.n == (problems.a >= problems.b).sum()
    assert [line.category for line in tally.lines(found.counts, "sign")] == ["+"]


def test_blocks_of_each_variant():
    assert run.blocks_of("addition") == list(range(625))
    assert run.blocks_of("subtraction") == list(range(625, 1250))
    assert run.blocks_of("all") == run.blocks_of("sign-hidden") == list(range(1250))


def test_committed_counts_are_of_the_committed_weights():
    models = list(checkpoint.read_all(ROOT / "checkpoints"))
    assert len(models) == 12
    for one in models:
        found = result.read(ROOT / "checkpoints" / "exhaustive" / one.name)
        assert found.weights_sha256 == one.weights_sha256 and found.n == 200_000_000
        n = {line.category: line["n"] for line in tally.lines(found.counts, "class")}
        assert n["S0"] == n["M0"] == 55**4  # 55 of the 100 digit pairs make no ten, or no borrow
        assert sum(n[name] for name in n if name[0] == "M") == (10_000**2 + 10_000) // 2  # a >= b
        assert found.listed == (one.config.architecture.n_layers == 2)


def test_the_committed_list_of_wrong_problems_is_whole():
    found = result.read(ROOT / "checkpoints" / "exhaustive" / "arithmetic-relu-2layer-seed0")
    wrong = found.wrong_problems()
    exact = wrong.exact.abs().astype(str).str.zfill(5)
    assert (wrong.answer != exact).all()
    problems = Problems(wrong.a.to_numpy(), wrong.b.to_numpy(), (wrong.operator == "-").to_numpy())
    none_right = np.zeros((len(wrong), 5), bool)
    assert (tally.count(problems, none_right)[:, 0] == found.counts[:, 0] - found.counts[:, -1]).all()


@pytest.mark.skipif(bool(library.missing()), reason=library.missing())
def test_a_block_counted_now_is_what_was_committed():
    one = checkpoint.read(ROOT / "checkpoints" / "arithmetic-relu-2layer-seed0")
    block = 937  # subtractions from 4992 to 5007
    predictor = Predictor.of(one.weights, one.config.architecture, False)
    _, counts, _, wrong = run.count_block(predictor, block, "all")
    listed = result.read(ROOT / "checkpoints" / "exhaustive" / one.name).wrong_problems()
    there = listed[(listed.operator == "-") & listed.a.between(4992, 5007)]
    problems = Problems.from_index(wrong)
    assert there.a.tolist() == problems.a.tolist() and there.b.tolist() == problems.b.tolist() and len(wrong) > 0
    assert counts[:, 0].sum() == BLOCK
