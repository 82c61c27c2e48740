import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import task
from workbench.errors import BadInput
from workbench.task import Problems

operands = st.integers(0, 9999)
problem = st.tuples(operands, operands, st.booleans())


def batch(rows):
    a, b, subtract = zip(*rows, strict=True)
    return Problems(np.array(a, np.uint16), np.array(b, np.uint16), np.array(subtract, bool))


def written(a, b, subtract):
    """The sixteen characters of a problem, from Python's own integers and formatting."""
    answer = a - b if subtract else a + b
    return f"{a:04d}{'-' if subtract else '+'}{b:04d}={'-' if answer < 0 else '+'}{abs(answer):05d}"


# The worked example of the task's definition: digits are themselves, + is 10, - is 11, = is 12.
def test_tokens_of_the_worked_example():
    tokens = task.encode(task.parse("1234+0567"))
    assert tokens.dtype == np.uint8
    assert tokens.tolist() == [[1, 2, 3, 4, 10, 0, 5, 6, 7, 12, 10, 0, 1, 8, 0, 1]]
    assert task.decode(tokens) == ["1234+0567=+01801"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9999+9999", "9999+9999=+19998"),
        ("0-0", "0000-0000=+00000"),
        ("7-8", "0007-0008=-00001"),
        ("0-9999", "0000-9999=-09999"),
        ("5000+5000", "5000+5000=+10000"),
        ("5678-5678", "5678-5678=+00000"),
    ],
)
def test_corners_of_the_domain(text, expected):
    assert task.decode(task.encode(task.parse(text))) == [expected]


@given(st.lists(problem, min_size=1, max_size=20))
def test_encoding_agrees_with_python_integers(rows):
    problems = batch(rows)
    assert problems.answers.tolist() == [a - b if subtract else a + b for a, b, subtract in rows]
    assert problems.negative.tolist() == [subtract and a < b for a, b, subtract in rows]
    tokens = task.encode(problems)
    texts = [written(*row) for row in rows]
    assert task.decode(tokens) == texts
    assert [["0123456789+-=".index(c) for c in text] for text in texts] == tokens.tolist()
    assert task.format_problems(problems) == [text[:9] for text in texts]
    assert task.format_answers(problems.answers) == [text[10:] for text in texts]


@given(st.lists(problem, min_size=1, max_size=20))
def test_everything_reads_back(rows):
    problems = batch(rows)
    again = [
        Problems.from_index(problems.index),
        task.problems_from_tokens(task.encode(problems)),
        task.problems_from_tokens(task.encode(problems, hide_sign=True)[:, :9].astype(np.int64)),
        task.parse_all(task.format_problems(problems)),
    ]
    for other in again:
        assert list(zip(other.a, other.b, other.subtract, strict=True)) == rows
        assert (other.a.dtype, other.b.dtype, other.subtract.dtype) == (np.uint16, np.uint16, bool)


@given(problem)
def test_index_counts_additions_first_then_operands(row):
    a, b, subtract = row
    assert batch([row]).index.tolist() == [int(subtract) * 100_000_000 + a * 10_000 + b]


@given(problem)
def test_hiding_the_sign_changes_position_ten_alone(row):
    shown, hidden = task.encode(batch([row])), task.encode(batch([row]), hide_sign=True)
    assert hidden[0, 10] == 12
    assert (np.delete(shown, 10, axis=1) == np.delete(hidden, 10, axis=1)).all()


@given(
    operands, operands, st.sampled_from("+-"), st.integers(1, 4), st.lists(st.integers(0, 3), min_size=4, max_size=4)
)
def test_parsing_takes_any_padding_and_spaces(a, b, operator, width, spaces):
    left, one, two, right = (" " * n for n in spaces)
    found = task.parse(f"{left}{a:0{width}d}{one}{operator}{two}{b:0{width}d}{right}")
    assert (found.a.tolist(), found.b.tolist(), found.subtract.tolist()) == ([a], [b], [operator == "-"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("12a+3", "'a'"),
        ("hello", "'h'"),
        ("12345+1", "operand of 5 digits, expected 1 to 4"),
        ("1+00001", "operand of 5 digits, expected 1 to 4"),
        ("1+2+3", "2 operators, expected one"),
        ("1--2", "2 operators, expected one"),
        ("-1+2", "2 operators, expected one"),
        ("1234 567", "0 operators, expected one"),
        ("\N{ARABIC-INDIC DIGIT THREE}+4", "not one of the ASCII digits"),
        ("\N{FULLWIDTH DIGIT THREE}+4", "not one of the ASCII digits"),
        ("1+\N{SUPERSCRIPT TWO}", "not one of the ASCII digits"),
        ("1\N{MINUS SIGN}2", "not the ASCII minus"),
        ("1\N{EN DASH}2", "not the ASCII minus"),
        ("1+", "is not a problem"),
        ("+1", "is not a problem"),
        ("12 34+5", "is not a problem"),
        ("1+2=3", "'='"),
        ("1.5+2", "'.'"),
        ("1*2", "'*'"),
        ("1+2\n", r"'\n'"),
        ("1\t+2", r"'\t'"),
        ("\x001+2", r"'\x00'"),
    ],
)
def test_other_text_is_refused_with_what_was_found(text, said):
    with pytest.raises(BadInput) as refused:
        task.parse(text)
    message = str(refused.value)
    assert said in message and "like 1234-5678" in message and "\n" not in message


def test_a_long_wrong_text_is_cut_in_the_message():
    with pytest.raises(BadInput) as refused:
        task.parse("9" * 100_000)
    assert len(str(refused.value)) < 200


@given(st.text(max_size=12))
def test_no_text_does_anything_but_parse_or_be_refused(text):
    try:
        found = task.parse(text)
    except BadInput:
        return
    compact = text.replace(" ", "")
    operator = "-" if found.subtract[0] else "+"
    a, b = compact.split(operator)
    assert set(compact) <= set("0123456789+-") and (int(a), int(b)) == (found.a[0], found.b[0])


def test_a_file_of_problems_skips_blank_lines_and_counts_them(tmp_path):
    good = tmp_path / "good.txt"
    good.write_bytes("\ufeff1+2\r\n\r\n 30 - 4\n".encode())
    assert task.format_problems(task.read_problems(good)) == ["0001+0002", "0030-0004"]
    bad = tmp_path / "bad.txt"
    bad.write_text("1+2\n\n3x4\n")
    with pytest.raises(BadInput, match=r"bad\.txt: line 3: '3x4' has 'x'"):
        task.read_problems(bad)


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "no problems"), (b" \n\n", "no problems"), (b"\xff\xfe1+2", "not a text file")]
)
def test_a_file_without_problems_is_refused(tmp_path, content, said):
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=said) as refused:
        task.read_problems(path)
    assert str(refused.value).startswith(str(path))


def test_a_file_that_is_none_is_refused(tmp_path):
    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(BadInput, match="no such file"):
            task.read_problems(path)


def test_the_whole_domain_in_blocks():
    total, previous = 0, -1
    for block in task.blocks(7_000_000):
        index = block.index
        assert (index[0], index[-1]) == (previous + 1, previous + len(block))
        assert len(block) == 7_000_000 or index[-1] == 199_999_999
        total, previous = total + len(block), int(index[-1])
        if total == 7_000_000:
            assert (np.diff(index.astype(np.int64)) == 1).all()
            assert task.format_problems(block[:2]) == ["0000+0000", "0000+0001"]
    assert total == 200_000_000
    assert task.format_problems(block[-1:]) == ["9999-9999"]


def test_problems_outside_the_domain_are_refused():
    for index in ([-1], [200_000_000]):
        with pytest.raises(BadInput, match=r"0\.\.199999999"):
            Problems.from_index(np.array(index))
    with pytest.raises(BadInput, match="above 9999"):
        batch([(10_000, 0, False)])
    with pytest.raises((BadInput, TypeError), match="operands|problem=2"):  # the shape checker may come first
        Problems(np.zeros(2, np.uint16), np.zeros(3, np.uint16), np.zeros(2, bool))


def test_tokens_that_are_no_problem_are_refused():
    tokens = task.encode(task.parse("1234+0567")).astype(np.int64)
    for place, value in ((0, 10), (0, -1), (4, 5), (4, 12), (8, 12)):
        wrong = tokens.copy()
        wrong[0, place] = value
        with pytest.raises(BadInput, match="does not begin"):
            task.problems_from_tokens(wrong)
    with pytest.raises(BadInput, match=r"0\.\.12"):
        task.decode(np.array([[13] * 16]))
    with pytest.raises(BadInput, match=r"0\.\.12"):
        task.decode(np.array([[-1] * 16]))


def test_choosing_problems_keeps_them_together():
    problems = batch([(1, 2, False), (3, 4, True), (5, 6, True)])
    assert task.format_problems(problems[problems.subtract]) == ["0003-0004", "0005-0006"]
    assert task.format_problems(problems[np.array([2, 0])]) == ["0005-0006", "0001+0002"]
    assert len(problems[:0]) == 0 and task.encode(problems[:0]).shape == (0, 16)


def test_labels_name_the_tokens():
    text = "1234+0567=+01801"
    labels = dict(zip(task.POSITION_LABELS, text, strict=True))
    assert (labels["a3"], labels["a0"], labels["op"], labels["b3"], labels["b0"]) == ("1", "4", "+", "0", "7")
    assert (labels["="], labels["s"], labels["d4"], labels["d0"]) == ("=", "+", "0", "1")
    assert text[task.ANSWER_TOKENS] == "01801"
    assert list(range(16))[task.ANSWER_POSITIONS] == [10, 11, 12, 13, 14]
