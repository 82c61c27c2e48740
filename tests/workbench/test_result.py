import hashlib
import json
import math
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.figures import figure
from workbench.recipe import Recipe
from workbench.result import Finding, Result, load, save


def example() -> Result:
    table = pd.DataFrame(
        {
            "name": ["relu", "", 'a "quoted", text\nof two lines', " NaN ", "1e5"],
            "n": [1, -(2**63), 2**63 - 1, 0, 7],
            "byte": np.array([0, 255, 1, 2, 3], dtype=np.uint8),
            "r2": [0.1 + 0.2, math.nan, math.inf, -math.inf, 5e-324],
            "small": np.array([0.1, math.nan, 1, 2, 3], dtype=np.float32),
            "right": [True, False, True, True, False],
        }
    )
    drawn = figure("Title", "R² of each", x="site", y="R²")
    drawn.add_heatmap(z=np.array([[0.5, math.nan], [1.0, 2.0]]), x=["s", "d4"], y=["L0", "L1"])
    drawn.add_scatter(x=table["n"].head(2), y=np.array([0.25, 0.5]), error_y={"array": [0.1, 0.2]})
    findings = [Finding("says é", 0.5, 0.25, 0.75, 100, "untrained", 0.0), Finding("plain", -1e-300)]
    return Result({"all": table, "empty": table.head(0)}, {"map": drawn}, findings)


def stored(folder, result=None):
    save(result or example(), folder, analysis_name="any", options=Recipe(), inputs=["x"])
    return folder


def rewrite(folder, change):
    """Change result.json as plain data."""
    index = json.loads((folder / "result.json").read_text())
    change(index)
    (folder / "result.json").write_text(json.dumps(index))


def test_a_result_reads_back_equal_and_keeps_its_dtypes(tmp_path):
    result, back = example(), load(stored(tmp_path))
    assert back == result
    assert back.tables["all"].dtypes.map(str).to_dict() == {
        **{"name": "str", "n": "int64", "byte": "uint8", "r2": "float64", "small": "float32", "right": "bool"}
    }
    assert back.tables["all"]["name"].tolist() == ["relu", "", 'a "quoted", text\nof two lines', " NaN ", "1e5"]
    assert back.tables["all"]["r2"].tolist()[0] == 0.30000000000000004 and back.tables["all"]["r2"].isna().sum() == 1
    assert back.findings[0] == Finding("says é", 0.5, 0.25, 0.75, 100, "untrained", 0.0)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8)
rows = st.tuples(texts, st.floats(), st.floats(width=32), st.integers(-(2**63), 2**63 - 1), st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.lists(rows, max_size=4), st.integers(0, 4))
def test_any_text_and_number_reads_back_equal(tmp_path_factory, rows, alone):
    kinds = {"text": "str", "double": "float64", "single": "float32", "count": "int64", "flag": "bool"}
    table = pd.DataFrame(rows, columns=list(kinds)).astype(kinds)
    one = table[[table.columns[alone]]]  # a single column is where CSV is most easily misread
    result = Result({"all": table, "one": one}, {}, [])
    with mock.patch("os.fsync"):
        assert load(stored(tmp_path_factory.mktemp("any"), result)) == result


def test_equality_sees_a_value_a_dtype_a_name_and_a_figure():
    result = example()
    table, drawn = result.tables["all"], result.figures["map"]
    assert result == Result(dict(result.tables), dict(result.figures), list(result.findings))
    for tables in ({"all": table.assign(n=1)}, {"all": table.astype({"n": float})}, {"other": table}):
        assert Result({"all": table}, {}, []) != Result(tables, {}, [])
    assert Result({}, {"map": drawn}, []) != Result({}, {"map": figure("Other")}, [])
    assert Result({}, {}, [Finding("a", 1.0)]) != Result({}, {}, [Finding("a", 2.0)])
    assert result != "text"


def test_row_numbers_and_the_dtype_of_text_carry_no_meaning():
    table = pd.DataFrame({"a": [3, 1], "t": pd.Series(["x", "y"], dtype=object)})
    shuffled = table.iloc[::-1].sort_values("a", ascending=False)
    assert Result({"t": shuffled}, {}, []) == Result({"t": table}, {}, [])
    assert table["t"].dtype == object  # the analysis's own table is left alone


@pytest.mark.parametrize(
    "values",
    [
        [1, None],
        ["a", None],
        ["a", math.nan],
        [1, "a"],
        [{}, {}],
        pd.Series([1, None], dtype="Int64"),
        pd.to_datetime(["2026-01-01", "2026-01-02"]),
        np.array([1j, 2j]),
        np.array([1, 2], dtype=np.float16),
    ],
    ids=lambda values: str(list(values)),
)
def test_a_column_that_csv_cannot_give_back_is_refused(values):
    table = pd.DataFrame({"ok": [1, 2], "odd": pd.Series(values, dtype=None if hasattr(values, "dtype") else object)})
    with pytest.raises(TypeError, match="table t, column odd"):
        Result({"t": table}, {}, [])


@pytest.mark.parametrize("table", [pd.DataFrame(), pd.DataFrame([[1, 2]], columns=["a", "a"]), pd.DataFrame({1: [2]})])
def test_columns_need_different_names(table):
    with pytest.raises(TypeError, match="table t"):
        Result({"t": table}, {}, [])


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a\\b", "a\nb", "x" * 201, "a:b", 3])
def test_names_that_are_not_file_names_are_refused(name):
    with pytest.raises(BadInput, match="cannot name a table or figure"):
        Result({name: pd.DataFrame({"a": [1]})}, {}, [])
    with pytest.raises(BadInput, match="cannot name a table or figure"):
        Result({}, {name: figure("")}, [])


def test_numbers_of_a_finding_become_pythons_and_must_be_finite():
    found = Finding("text", np.float32(0.5), n=np.int64(3), control_value=1)  # type: ignore[arg-type]
    assert (type(found.value), type(found.n), type(found.control_value)) == (float, int, float)
    with pytest.raises(ValueError, match="low of the finding 'text' is nan"):
        Finding("text", 0.5, low=math.nan)


def test_files_written_are_named_and_the_index_says_what_was_asked(tmp_path):
    files = save(example(), tmp_path, analysis_name="any", options=Recipe(lr=0.5), inputs=["one", "two"])
    assert [str(file.relative_to(tmp_path)) for file in files] == [
        *("tables/all.csv", "tables/empty.csv", "figures/map.json", "result.json")
    ]
    index = json.loads((tmp_path / "result.json").read_text())
    assert (index["analysis"], index["inputs"], index["options"]["lr"]) == ("any", ["one", "two"], 0.5)
    assert index["sha256"]["tables/all.csv"] == hashlib.sha256(files[0].read_bytes()).hexdigest()


def test_the_same_result_gives_the_same_bytes(tmp_path):
    one, two = (stored(tmp_path / name) for name in ("one", "two"))
    for file in ("result.json", "tables/all.csv", "figures/map.json"):
        assert (one / file).read_bytes() == (two / file).read_bytes()


def test_a_folder_holds_one_result_and_no_file_of_others_is_touched(tmp_path):
    stored(tmp_path)
    (tmp_path / "tables" / "mine.csv").write_text("kept")
    second = Result({"all": pd.DataFrame({"a": [1]})}, {}, [])
    stored(tmp_path, second)
    assert sorted(p.name for p in tmp_path.rglob("*.*")) == ["all.csv", "mine.csv", "result.json"]
    assert load(tmp_path) == second


def test_a_hostile_earlier_index_removes_nothing_outside(tmp_path):
    outside = tmp_path / "precious.csv"
    outside.write_text("kept")
    folder = stored(tmp_path / "result")
    rewrite(folder, lambda index: index["tables"].update({"../../precious": {"a": "str"}}))
    stored(folder)
    assert outside.read_text() == "kept"


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(BadInput, match="out is a file"):
        stored(tmp_path / "out")


def test_a_part_too_large_to_read_back_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.result.MAX_TABLE_BYTES", 50)
    with pytest.raises(BadInput, match=r"tables/all\.csv would take [0-9]+ bytes, at most 50"):
        stored(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("part", ["tables/all.csv", "figures/map.json", "result.json"])
def test_a_missing_part_is_named(tmp_path, part):
    (stored(tmp_path) / part).unlink()
    with pytest.raises(BadInput, match=f"{part}: no such file"):
        load(tmp_path)


def test_a_table_cut_at_a_line_is_noticed(tmp_path):
    path = stored(tmp_path) / "tables" / "all.csv"
    path.write_bytes(path.read_bytes().rsplit(b"\n", 2)[0] + b"\n")
    with pytest.raises(BadInput, match=r"all\.csv: not the file that result\.json describes"):
        load(tmp_path)


HOSTILE = {
    "another schema": lambda index: index.update(schema=2),
    "no findings": lambda index: index.pop("findings"),
    "a finding of text": lambda index: index["findings"][0].update(value="0.5"),
    "a finding that is not finite": lambda index: index["findings"][0].update(value=math.nan),
    "a finding beyond floats": lambda index: index["findings"][0].update(value=10**400),
    "a finding with another field": lambda index: index["findings"][0].update(verdict="supported"),
    "a finding without text": lambda index: index["findings"][0].update(text=None),
    "findings of numbers": lambda index: index.update(findings=[1]),
    "tables in a list": lambda index: index.update(tables=["all"]),
    "a kind of pandas": lambda index: index["tables"]["all"].update(name="category"),
    "kinds of numbers": lambda index: index["tables"].update(all={"name": 1}),
    "kinds of lists": lambda index: index["tables"].update(all={"name": [1]}),
    "text read as integers": lambda index: index["tables"]["all"].update(name="int64"),
    "text read as booleans": lambda index: index["tables"]["all"].update(name="bool"),
    "integers that do not fit": lambda index: index["tables"]["all"].update(n="int8"),
    "a column more": lambda index: index["tables"]["all"].update(more="str"),
    "a column less": lambda index: index["tables"]["all"].pop("n"),
    "a table outside the folder": lambda index: index["tables"].update({"../all": {"name": "str"}}),
    "a figure outside the folder": lambda index: index.update(figures=["../tables/all"]),
    "a figure named by a number": lambda index: index.update(figures=[1]),
    "no hashes": lambda index: index.pop("sha256"),
    "hashes in a list": lambda index: index.update(sha256=[]),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_index_is_one_line_of_bad_input(tmp_path, change):
    rewrite(stored(tmp_path), change)
    with pytest.raises(BadInput) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def replace_part(folder, part, content):
    """Another content under the hash that belongs to it."""
    (folder / part).write_bytes(content)
    rewrite(folder, lambda index: index["sha256"].update({part: hashlib.sha256(content).hexdigest()}))


NO_KIND, NO_BASE64 = b'{"data": [{"type": "none"}], "layout": {}}', b'{"data": [{"x": {"bdata": "?"}}], "layout": {}}'


@pytest.mark.parametrize(
    "content", [b"{}", b"[]", b'{"data": 3, "layout": {}}', NO_KIND, NO_BASE64, b"\xff", b"[", b"[" * 100_000]
)
def test_a_hostile_figure_is_bad_input_even_with_the_right_hash(tmp_path, content):
    replace_part(stored(tmp_path), "figures/map.json", content)
    with pytest.raises(BadInput, match="not a saved result"):
        load(tmp_path)


HEADER = b"name,n,byte,r2,small,right\n"
ROWS = [
    b"a,1\n",
    b"a,1,1,1,1,yes\n",
    b"a,,1,1,1,True\n",
    b"a,1,1,x,1,True\n",
    b'"a',
    b"a" * 200_000 + b",1,1,1,1,True\n",
]


@pytest.mark.parametrize(
    "content", [b"", b"name\n", b"\xff\n", *(HEADER + row for row in ROWS)], ids=lambda c: str(c[:50])
)
def test_a_hostile_table_is_bad_input_even_with_the_right_hash(tmp_path, content):
    replace_part(stored(tmp_path), "tables/all.csv", content)
    with pytest.raises(BadInput, match="not a saved result"):
        load(tmp_path)
