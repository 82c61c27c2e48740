"""A finished count on disk: it reads back equal, and what does not fit is refused by name."""

import json

import numpy as np
import pytest

from workbench.errors import BadInput
from workbench.exhaustive import result, tally
from workbench.exhaustive.result import Exhaustive
from workbench.task import ANSWER_TOKENS, Problems, encode

INDEX = np.array([5, 77, 150_000_000, 199_999_999], np.uint32)


@pytest.fixture
def written(tmp_path):
    """A count of 50 problems, four of them wrong, and their answers."""
    problems = Problems.from_index(np.concatenate([INDEX, np.arange(1_000, 1_046, dtype=np.uint32)]))
    right = np.ones((50, 5), bool)
    right[:4, 2] = False
    counts = tally.count(problems, right)
    tokens = encode(problems)[:4, ANSWER_TOKENS].copy()
    tokens[:, 2] = (tokens[:, 2] + 1) % 10
    tokens[0, 4] = 11  # it wrote a minus
    made = Exhaustive(tmp_path / "one", "one", "ab" * 32, "all", "torch", [0, 1, 2, 3, 4], counts, True)
    result.write(made, tmp_path / "one", (INDEX, tokens))
    return made, tokens


def test_it_reads_back_equal(written):
    made, _ = written
    found = result.read(made.folder)
    assert (found.n, found.wrong, found.near, found.model) == (50, 4, [0, 1, 2, 3, 4], "one")
    np.testing.assert_array_equal(found.counts, made.counts)
    table = found.wrong_problems()
    assert table.columns.tolist() == ["a", "operator", "b", "exact", "answer"]
    assert table.a.tolist() == [0, 0, 5000, 9999] and table.b.tolist() == [5, 77, 0, 9999]
    assert table.operator.tolist() == ["+", "+", "-", "-"]
    assert table.exact.tolist() == [5, 77, 5000, 0]
    assert table.answer.tolist() == ["0010-", "00177", "05100", "00100"]


def test_the_same_count_is_the_same_bytes(written, tmp_path):
    made, tokens = written
    result.write(made, tmp_path / "again", (INDEX, tokens))
    for file in made.folder.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_without_a_list_there_is_a_reason(written, tmp_path):
    made, _ = written
    unlisted = Exhaustive(tmp_path / "two", "two", "ab" * 32, "all", "torch", [0] * 5, made.counts, False)
    result.write(unlisted, tmp_path / "two", None)
    with pytest.raises(BadInput, match="4 wrong problems are too many to be listed"):
        result.read(tmp_path / "two").wrong_problems()


def change(folder, **fields):
    path = folder / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"n": 51}, "do not belong together"),
        ({"wrong": 5}, "do not belong together"),
        ({"near": [1, 2]}, "near ties"),
        ({"near": [1, 2, 3, 4, -5]}, "near ties"),
        ({"schema": 2}, "schema"),
        ({"listed": "yes"}, "not the summary"),
        ({"more": 1}, "not the summary"),
    ],
)
def test_a_summary_that_does_not_fit(written, fields, says):
    change(written[0].folder, **fields)
    with pytest.raises(BadInput, match=f"summary.json: .*{says}"):
        result.read(written[0].folder)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("class,", "kind,", "columns"),
        ("S0,0,0,", "S9,0,0,", "line 2"),
        ("S0,0,0,4", "S0,0,0,x", "line 2"),
        ("S0,0,0,4", "S0,0,0,", "line 2"),
        ("S0,0,0,", "S0,0,", "line 2"),
    ],
)
def test_counts_that_do_not_fit(written, old, new, says):
    path = written[0].folder / "counts.csv"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(BadInput, match=rf"counts\.csv: .*{says}"):
        result.read(written[0].folder)


def test_a_row_twice_is_refused(written):
    path = written[0].folder / "counts.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[1]]))
    with pytest.raises(BadInput, match=r"counts\.csv: line"):
        result.read(written[0].folder)


@pytest.mark.parametrize(
    "wrong",
    [
        (INDEX[:3], None),
        (INDEX[::-1].copy(), None),
        (INDEX + np.uint32(5), None),
    ],
)
def test_a_list_that_does_not_fit(written, wrong):
    made, tokens = written
    index = wrong[0]
    (made.folder / "wrong.parquet").write_bytes(result._wrong_bytes(index, tokens[: len(index)]))
    with pytest.raises(BadInput, match=r"wrong\.parquet: .*restore the file"):
        result.read(made.folder).wrong_problems()


def test_what_is_no_parquet_is_refused(written):
    path = written[0].folder / "wrong.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadInput, match=r"wrong\.parquet: not readable as parquet"):
        result.read(written[0].folder).wrong_problems()


def test_a_list_of_other_problems_is_refused(written):
    made, tokens = written
    other = INDEX + np.array([5, 0, 0, 0], np.uint32)
    (made.folder / "wrong.parquet").write_bytes(result._wrong_bytes(other - np.array([0, 0, 1, 0], np.uint32), tokens))
    with pytest.raises(BadInput, match="not those that counts.csv counts"):
        result.read(made.folder).wrong_problems()


def test_an_answer_that_is_right_is_refused(written):
    made, tokens = written
    right = encode(Problems.from_index(INDEX))[:, ANSWER_TOKENS]
    (made.folder / "wrong.parquet").write_bytes(result._wrong_bytes(INDEX, np.concatenate([tokens[:3], right[3:]])))
    with pytest.raises(BadInput, match="a right answer is listed as wrong"):
        result.read(made.folder).wrong_problems()
