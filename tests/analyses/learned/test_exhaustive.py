import dataclasses
import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyses.learned import _exhaustive_findings as findings
from analyses.learned import _exhaustive_kinds as kinds
from analyses.learned import _exhaustive_tables as tables
from analyses.learned import exhaustive
from workbench import analysis
from workbench.errors import BadInput
from workbench.exhaustive import result as counts_on_disk
from workbench.exhaustive import tally
from workbench.exhaustive.result import Exhaustive
from workbench.splits import in_variant
from workbench.task import CHARACTERS, encode, parse_all

RELU = "arithmetic-relu-2layer-seed{}"
# one digit pair of each kind, and how many there are: sum below nine, nine, above; larger, 0-0, equal, smaller
PAIRS = {"+": [((0, 0), 45), ((4, 5), 10), ((5, 5), 45)], "-": [((1, 0), 45), ((0, 0), 1), ((1, 1), 9), ((0, 1), 45)]}


def sizes(operators: str = "+-") -> np.ndarray:
    """Problems of each cell of the domain, from the kinds of digit pairs: what they do depends on nothing else."""
    found = np.zeros(tally.CELLS, np.int64)
    for operator in operators:
        for pairs in itertools.product(PAIRS[operator], repeat=4):
            a, b = ("".join(str(pair[side]) for pair, _ in pairs) for side in (0, 1))
            found[tally.cells(parse_all([f"{a}{operator}{b}"]))] += np.prod([many for _, many in pairs])
    return found


@pytest.fixture(scope="module")
def domain() -> np.ndarray:
    return sizes()


Listed = dict[str, str]  # problem -> the five characters written


@pytest.fixture
def write(tmp_path: Path, domain: np.ndarray) -> Callable[..., Path]:
    """Write counts: problems listed with their wrong answers, or so many wrong d3 of cells without a list.

    Where a list is given, the first wrong digit is the only one when the right ones before it are given.
    """

    def _write(
        model: str, listed: Listed | None = None, cells: dict[tables.Cell, int] | None = None, **changes: Any
    ) -> Path:
        sizes_here = changes.pop("sizes", domain)
        counts = np.repeat(sizes_here[:, None], 7, axis=1)
        wrong = None
        if listed is not None:
            order = sorted(listed, key=lambda text: int(parse_all([text]).index[0]))
            problems = parse_all(order)
            tokens = np.array([[CHARACTERS.index(c) for c in listed[text]] for text in order], np.uint8).reshape(-1, 5)
            first = (tokens != encode(problems)[:, 11:]).argmax(axis=1)
            right = np.arange(5) != first[:, None]
            there = tally.count(problems, right)
            counts[:, 1:] -= there[:, :1] - there[:, 1:]
            wrong = problems.index, tokens
        for (name, moves), many in (cells or {}).items():
            found = [cell for cell in np.flatnonzero(sizes_here) if tally.cell_labels(int(cell))[:2] == (name, moves)]
            left = many
            for cell in found:
                here = min(left, int(sizes_here[cell]))
                counts[cell, [2, 6]] -= here
                left -= here
            assert not left, "more wrong than problems"
        sha256 = hashlib.sha256(model.encode()).hexdigest()
        values = {"near": [1, 2, 3, 4, 5], "problems": "all", "weights_sha256": sha256, "by": "kernels"} | changes
        made = Exhaustive(tmp_path / model, model, counts=counts, listed=wrong is not None, **values)
        counts_on_disk.write(made, tmp_path / model, wrong)
        return tmp_path

    return _write


def run(folder: Path) -> analysis.Result:
    return exhaustive.exhaustive.function(folder, exhaustive.Options())


def saying(result: analysis.Result, *words: str) -> analysis.Finding:
    (found,) = [finding for finding in result.findings if all(word in finding.text for word in words)]
    return found


# exact, written: one missed; one missed; one too many; several too many; a non-digit; 0 for 9 alone; off by three
WRONG = {
    "0999+0001": "00990",
    "5000-0001": "05999",
    "0123-0456": "00323",
    "1111+1111": "03322",
    "0000+0000": "0+000",
    "1000-0000": "01009",
    "0002+0002": "00007",
}


def test_the_domain_these_tests_count_is_the_whole(domain: np.ndarray) -> None:
    by_class = {line.category: line["n"] for line in tally.lines(np.repeat(domain[:, None], 7, axis=1), "class")}
    assert domain.sum() == 200_000_000
    # S0: four sums below ten; S4: three nines above a ten or more; M3: a larger, two equal, a smaller digit
    assert (by_class["S0"], by_class["S4"], by_class["M3"]) == (55**4, 45 * 10**3, 45 * 10 * 10 * 45)
    assert sum(n for name, n in by_class.items() if name[0] == "N") == (10**8 - 10**4) // 2


def test_exact_errors_of_worked_problems(write) -> None:
    result = run(write(RELU.format(0), WRONG))
    (row,) = result.tables["errors"].to_dict("records")
    assert (row["n"], row["wrong"]) == (200_000_000, 7)
    assert (row["addition_n"], row["addition_wrong"]) == (100_000_000, 4)
    assert (row["subtraction_wrong"], row["negative_n"], row["negative_wrong"]) == (3, 49_995_000, 1)
    assert [row[f"{place}_wrong"] for place in tally.PLACES] == [0, 4, 0, 1, 2]
    assert [row[f"{place}_float64"] for place in tally.PLACES] == [1, 2, 3, 4, 5]
    assert (row["shape"], row["listed"]) == ("relu-2layer", True)
    classes = result.tables["classes"].set_index("class")
    assert len(classes) == 13 and classes["n"].sum() == 200_000_000
    assert classes["wrong"][classes["wrong"] > 0].to_dict() == {"S0": 3, "S3": 1, "M0": 1, "M3": 1, "N1": 1}
    assert classes.loc["S3", "rate"] == 1 / 855_000
    (line,) = result.tables["summary"].to_dict("records")
    assert (line["hardest class"], line["wrong there"], line["problems there"]) == ("M3", 1, 202_500)
    digits = result.tables["digits"].set_index(["operator", "place"])
    assert digits.loc[("addition", "d3"), "wrong"] == 3
    assert digits.loc[("subtraction", "d3"), "accuracy"] == 1 - 1 / 100_000_000


@pytest.mark.parametrize(
    ("grouping", "addition", "subtraction"),
    [
        ("off by", {"one missed": 1, "several too many": 1, "another number": 1, "has a non-digit": 1},
         {"one missed": 1, "one too many": 1, "another number": 1}),
        ("wrong digits off", {"each by one": 2, "some by more": 1, "has a non-digit": 1}, {"each by one": 3}),
        (kinds.PASSING, {"0": 3, "2": 1}, {"0": 2, "2": 1}),
        ("first wrong", {"d3": 3, "d0": 1}, {"d3": 1, "d1": 1, "d0": 1}),
        ("wrong beyond the first", {"0": 2, "1": 1, "2": 1}, {"0": 3}),
        ("digits", {"d3 d2 d1": 1, "d3 d2": 1, "d3": 1, "d0": 1}, {"d3": 1, "d1": 1, "d0": 1}),
    ],
)  # fmt: skip
def test_kinds_of_wrong_answers(write, grouping: str, addition: dict[str, int], subtraction: dict[str, int]) -> None:
    rows = run(write(RELU.format(0), WRONG)).tables["kinds"].query(f"grouping == {grouping!r}")
    for operator, expected in (("addition", addition), ("subtraction", subtraction)):
        own = rows.query(f"operator == {operator!r}").set_index("category")
        assert own["wrong"][own["wrong"] > 0].to_dict() == expected
        assert own["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize("problem", ["0999+0001", "4999+5001", "1000-0100", "9000-0001", "0007-0005"])
@pytest.mark.parametrize("places", ["01000", "01100", "00011", "01010", "11000"])
def test_chance_is_every_other_digit_at_the_same_places_equally_often(problem: str, places: str) -> None:
    """Against a plain count of all replacements, with runs of ones and zeros as the numbers off."""
    exact = int(parse_all([problem]).answers[0])
    options = [[c for c in "0123456789" if (c != d) == (p == "1")] for d, p in zip(f"{exact:05d}", places, strict=True)]
    other = list(itertools.product(*options))
    off = [int("".join(digits)) - exact for digits in other]
    missed = -1 if "+" in problem else 1
    expected = dict.fromkeys(kinds.OFF_BY, 0.0)
    for value in off:
        ones = str(abs(value)).rstrip("0")
        word = "one" if ones == "1" else "several" if set(ones) == {"1"} else ""
        name = f"{word} {'missed' if value * missed > 0 else 'too many'}" if word else "another number"
        expected[name] += 1 / len(other)
    neighbours = [
        all(c == d or abs(int(c) - int(d)) in (1, 9) for c, d in zip(one, f"{exact:05d}", strict=True)) for one in other
    ]
    answers = made(problem, "".join(other[-1]))
    assert kinds.off_by_chance(answers) == pytest.approx(list(expected.values()))
    assert kinds.steps_by_chance(answers)[0] == pytest.approx(sum(neighbours) / len(other))


def made(problem: str, *written: str) -> kinds.Answers:
    import pandas as pd

    (exact,) = parse_all([problem]).answers.tolist()
    a, b = int(problem[:4]), int(problem[5:])
    subtract = problem[4] == "-"
    rows = [{"a": a, "b": b, "operator": problem[4], "exact": exact, "answer": answer} for answer in written]
    return kinds.answers_of(pd.DataFrame(rows), subtract)


def test_a_non_digit_is_left_out_of_chance() -> None:
    answers = made("1000+0000", "02000", "0=000")
    assert kinds.off_by_chance(answers) == pytest.approx([1 / 9, 1 / 9, 0, 0, 7 / 9, 1])  # 0 or 2 for the 1
    assert kinds.steps_by_chance(answers) == pytest.approx([2 / 9, 7 / 9, 1])


@pytest.mark.parametrize(
    ("problem", "written", "pairs"),
    [
        ("5445+4554", "19999", 4),  # all nines below d4
        ("5445+4554", "09998", 0),  # nothing below d0
        ("5440+4559", "08999", 3),
        ("5441+4559", "09000", 3),  # of 10000, the pair 1+9 does not pass
        ("5541+4559", "09100", 1),
        ("1234-0234", "02000", 3),  # equal digits, no borrow anywhere
        ("1934-0264", "02670", 0),
        ("0234-1235", "00001", 2),
        ("0134+0265", "00398", 0),
    ],
)
def test_pairs_that_pass_below_the_first_wrong_digit(problem: str, written: str, pairs: int) -> None:
    assert made(problem, written).passing().tolist() == [pairs]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("19999", [0.9, 0.09, 0.009, 0.0009, 0.0001]),
        ("08999", [0.9, 0.09, 0.009, 0.001, 0]),
        ("09989", [0.9, 0.1, 0, 0, 0]),
        ("09998", [1, 0, 0, 0, 0]),
    ],
)
def test_passing_pairs_by_chance_are_one_in_ten(written: str, expected: list[float]) -> None:
    assert kinds.passing_by_chance(made("5445+4554", written)) == pytest.approx(expected)


def test_the_hardest_cells_are_pooled_over_the_seeds(write) -> None:
    write(RELU.format(0), cells={("M3", 3): 100, ("S1", 2): 300, ("N1", 0): 1})
    folder = write(RELU.format(1), cells={("M3", 3): 50, ("S1", 2): 500})
    write("arithmetic-bilinear-1layer-seed0", cells={("S4", 4): 45_000})
    rows = run(folder).tables["hardest"]
    assert rows["shape"].tolist() == ["relu-2layer"] * 3 + ["bilinear-1layer"]
    first, second, third, alone = rows.to_dict("records")
    assert (first["class"], first["count"], first["n"], first["pooled_n"], first["wrong"]) == (
        "M3",
        3,
        202_500,
        405_000,
        150,
    )
    assert (first["rate"], first["lowest"], first["highest"]) == (150 / 405_000, 50 / 202_500, 100 / 202_500)
    assert (first["rank"], first["models"], first["share_of_errors"]) == (1, 2, 150 / 951)
    assert first["share_of_problems"] == 202_500 / 200_000_000
    assert (second["class"], second["count"], second["wrong"]) == ("S1", 2, 800)
    assert (third["class"], third["wrong"], third["lowest"]) == ("N1", 1, 0)
    assert (alone["class"], alone["rate"], alone["share_of_errors"]) == ("S4", 1, 1)


def test_ten_cells_of_28_at_most(write) -> None:
    cells = {("M1", moves): 10 for moves in (1, 2, 3)} | {("S1", moves): 5 for moves in (1, 2, 3, 4)}
    cells |= {("N1", moves): 7 for moves in range(4)} | {("S4", 4): 1, ("N4", 0): 1}
    result = run(write(RELU.format(0), cells=cells))
    rows = result.tables["hardest"]
    assert len(rows) == 10 and rows["rate"].is_monotonic_decreasing
    assert "the 10 hardest of 28 cells" in saying(result, "hardest of 28").text
    assert rows.iloc[0]["class"] == "N4"  # 1 of 40,500, S4 1 of 45,000


def test_a_class_over_the_seeds_of_a_shape(write) -> None:
    for seed, wrong in enumerate((30, 10, 500)):
        folder = write(RELU.format(seed), cells={("S4", 4): wrong})
    shape = run(folder).tables["shape"].set_index("class")
    assert shape.loc["S4", ["models", "n", "lowest", "median", "highest"]].tolist() == [
        3, 45_000, 10 / 45_000, 30 / 45_000, 500 / 45_000,
    ]  # fmt: skip
    assert (shape.loc["M0", ["lowest", "median", "highest"]] == 0).all()


@pytest.mark.parametrize(
    ("shares", "controls", "expected"),
    [
        ([0.5, 0.9], [0.25, 0.1], True),
        ([0.49, 0.9], [0.1, 0.1], False),
        ([0.9, 0.9], [0.1, 0.46], False),
        ([], [], False),
    ],
)
def test_the_rule(shares: list[float], controls: list[float], expected: bool) -> None:
    assert findings.holds(shares, controls) is expected


def test_totals_are_from_the_lowest_to_the_highest_seed(write) -> None:
    for seed, wrong in enumerate((3_000, 1_000, 2_000)):
        folder = write(RELU.format(seed), cells={("S4", 4): wrong, ("M0", 0): 7})
    result = run(folder)
    addition = saying(result, "addition:")
    assert "relu-2layer, addition: 1,000 to 3,000 of 100,000,000 problems wrong" in addition.text
    assert (addition.value, addition.n, addition.low) == (pytest.approx(2e-5), 3, None)
    assert "subtraction: 7 to 7 of 100,000,000" in saying(result, "subtraction:").text
    assert "no sampling interval" in result.findings[0].text
    assert (result.findings[0].value, result.findings[0].n) == (600_000_000, 3)


def test_the_hardest_class_and_whether_it_is_so_in_every_seed(write) -> None:
    folder = write(RELU.format(0), cells={("S4", 4): 450, ("M0", 0): 1_000})
    assert saying(run(folder), "hardest class").text.endswith("is S4, error rate 0.01, 45,000 problems.")
    write(RELU.format(1), cells={("S4", 4): 45})
    found = saying(run(folder), "hardest class")
    assert "is S4, error rate 0.001 to 0.01, 45,000 problems; it is the hardest in every seed" in found.text
    assert found.value == pytest.approx(495 / 90_000)
    assert found.control_value == pytest.approx(1_000 / (400_000_000 - 90_000))
    write(RELU.format(2), cells={("M3", 3): 300})
    assert "is S4" in saying(run(folder), "is NOT the hardest in every seed").text


@pytest.mark.parametrize(
    ("elsewhere", "verdict"),
    [((0, 0), "concentrate"), ((1_000, 1_000), "concentrate"), ((0, 1_001), "do NOT concentrate")],
)
def test_whether_errors_concentrate_in_a_class(write, elsewhere: tuple[int, int], verdict: str) -> None:
    """S3 has 0.4% of all problems; at least half of each seed's errors must lie there."""
    for seed, other in enumerate(elsewhere):
        elsewhere_twice = {("S1", 1): other // 2, ("M1", 1): other - other // 2}
        folder = write(RELU.format(seed), cells={("S3", 3): 1_000, **elsewhere_twice})
    found = saying(run(folder), "class S3 holds the most errors")
    assert f"the errors {verdict} there" in found.text
    assert found.control_value == 855_000 / 200_000_000
    assert found.value == pytest.approx(2_000 / (2_000 + sum(elsewhere)))


def test_a_class_of_many_problems_is_no_concentration(write) -> None:
    """S1 has 39% of all problems and 60% of the errors: more than half, less than twice its share."""
    folder = write(RELU.format(0), cells={("S1", 1): 600, ("M1", 1): 400})
    assert "the errors do NOT concentrate" in saying(run(folder), "class S1 holds the most errors, 60.0%").text


def test_the_hardest_cells_are_judged_on_the_other_seeds(write) -> None:
    folder = write(RELU.format(0), cells={("M3", 3): 100, ("S0", 0): 20})
    alone = saying(run(folder), "hardest of 28 cells")
    assert "one seed cannot tell" in alone.text and "concentrate" not in alone.text
    assert alone.value == 1
    write(RELU.format(1), cells={("M3", 3): 150, ("S0", 0): 20})
    both = saying(run(folder), "hardest of 28 cells")
    assert "hold 100.0% of a seed's errors" in both.text.replace("100.0% to 100.0%", "100.0%")
    assert both.text.endswith("errors concentrate there.")
    write(RELU.format(2), cells={("M0", 0): 9_000, ("M3", 3): 8_999})  # the others' cells hold less than half
    three = saying(run(folder), "hardest of 28 cells")
    assert "hold 50.0% to 100.0%" in three.text and three.text.endswith("errors do NOT concentrate there.")


def test_off_by_one_flips_with_the_answers(write) -> None:
    """Three of five are off by a power of ten; of these two as if a carry or borrow were missed."""
    mostly = {
        "1000+0000": "00000",
        "1000-0000": "02000",
        "2000+0000": "03000",
        "3000+0000": "09000",
        "4000+0000": "09000",
    }
    found = saying(run(write(RELU.format(0), mostly)), "power of ten")
    assert "are mostly off by one power of ten, as by one carry or borrow: 60.0% (3 of 5; 2 of them" in found.text
    assert (found.value, found.control_value) == (0.6, pytest.approx(2 / 9))
    folder = write(RELU.format(1), {**mostly, "5000+0000": "09000", "6000+0000": "09000"})
    found = saying(run(folder), "power of ten")
    assert "are NOT mostly" in found.text and "42.9% to 60.0% (6 of 12; 4 of them" in found.text


def test_standing_above_passing_pairs_flips_with_the_problems(write) -> None:
    far = {"1890+0109": "00999", "1000-0000": "02000"}  # two or three passing pairs below d3
    near = {"1000+0000": "00000", "2000+0000": "03000"}
    found = saying(run(write(RELU.format(0), {**far, "1000+0000": "00000"})), "pass a carry")
    assert "first wrong digits mostly stand above 2 or more" in found.text and "66.7% (2 of 3)" in found.text
    assert (found.value, found.control_value) == (pytest.approx(2 / 3), pytest.approx(0.01))
    found = saying(run(write(RELU.format(1), {**far, **near, "3000+0000": "00000"})), "pass a carry")
    assert "NOT mostly" in found.text and "40.0% to 66.7% (4 of 8)" in found.text


def test_wrong_digits_beyond_the_first_stand_beside_those_with_the_right_ones_given(write) -> None:
    found = saying(run(write(RELU.format(0), WRONG)), "further wrong digits")
    assert "(3 in 7 answers); answers with a non-digit: 1." in found.text  # 00990 for 01000 has two more, 03322 one
    assert (found.value, found.control_value) == (pytest.approx(3 / 7), 0)


def test_a_model_without_an_error(write) -> None:
    result = run(write(RELU.format(0), {}))
    assert "addition: 0 of 100,000,000" in saying(result, "addition").text
    assert len(result.findings) == 3
    assert len(result.tables["hardest"]) == len(result.tables["kinds"]) == 0
    assert set(result.figures) == {"classes", "digits"}
    write(RELU.format(1), WRONG)  # a seed without an error has no shares, and says nothing of where errors lie
    result = run(write(RELU.format(2), WRONG))
    assert saying(result, "holds the most errors").n == 2
    assert "addition: 0 to 4 of" in saying(result, "addition:").text


def test_none_wrong_is_hollow_at_the_axis_end(write) -> None:
    folder = write(RELU.format(0), cells={("S4", 4): 45, ("M0", 0): 1})
    shown = run(folder).figures["classes"]
    least, rates, none = shown.data
    assert list(least.y)[:2] == [1 / 55**4] * 2  # one wrong problem of S0
    assert len(rates.y) == 13 and sorted(rates.y)[-1] == 0.001
    floor = min(rates.y)
    assert floor < min(y for y in least.y if y) / 10
    assert (list(none.y), none.marker.color) == ([floor] * 11, "white")
    assert list(none.x) == [x for x, y in zip(rates.x, rates.y, strict=True) if y == floor]
    assert shown.layout.yaxis.tickvals[0] == floor and shown.layout.yaxis.ticktext[0] == "none wrong"
    digits = run(folder).figures["digits"]
    added, _, taken, _ = digits.data
    assert list(added.x) == list(tally.PLACES)
    assert (added.y[1], taken.y[1]) == (45 / 10**8, 1 / 10**8)
    assert digits.layout.yaxis.ticktext[0] == "1" and "0.9999999" in digits.layout.yaxis.ticktext


def test_figures_of_kinds_show_shares_found_and_by_chance(write) -> None:
    figures = run(write(RELU.format(0), WRONG)).figures
    found, chance = figures["kinds"].data[:2]
    assert found.name == chance.name == "one missed"
    assert list(found.y) == ["relu-2layer-seed0, addition, 4 wrong", "relu-2layer-seed0, subtraction, 3 wrong"]
    assert list(found.x) == [1 / 4, 1 / 3]
    for row in range(2):
        assert sum(trace.x[row] for trace in figures["kinds"].data) == pytest.approx(2)
    bars, line = figures["passing-pairs"].data[:2]
    assert list(bars.y) == pytest.approx([(3 * 0.9 + 1) / 4, 3 * 0.09 / 4, 3 * 0.009 / 4, 3 * 0.001 / 4, 0])
    assert list(line.y) == [0.75, 0, 0.25, 0, 0]


def test_models_in_reading_order_and_shapes_by_name(write) -> None:
    names = [
        "arithmetic-bilinear-1layer-seed0",
        RELU.format(10),
        RELU.format(2),
        "arithmetic-relu-1layer-seed0",
        "mine",
    ]
    for name in names:
        folder = write(name, {})
    result = run(folder)
    assert result.tables["errors"]["model"].tolist() == [names[3], names[2], names[1], names[0], "mine"]
    assert result.tables["errors"]["shape"].tolist() == ["relu-1layer", *["relu-2layer"] * 2, "bilinear-1layer", "mine"]
    assert tables.shape_of("arithmetic-relu-2layer-ordered-seed1") == "relu-2layer-ordered"


def test_variants_have_their_own_number_of_problems(write) -> None:
    ten_by_ten = in_variant(np.array([0, 1, 10_000, 10_001, 100_000_001], np.uint32), "ordered")
    assert ten_by_ten.tolist() == [True, False, True, True, False]  # 0+0, 0+1, 1+0, 1+1, 0-1
    assert exhaustive.SIZES["ordered"] == 2 * sum(range(1, 10_001))
    folder = write("arithmetic-relu-2layer-addition-seed0", {}, problems="addition", sizes=sizes("+"))
    result = run(folder)
    (row,) = result.tables["errors"].to_dict("records")
    assert (row["n"], row["subtraction_n"], row["negative_wrong"]) == (100_000_000, 0, 0)
    assert not any("subtraction:" in finding.text for finding in result.findings)


def test_it_reads_back_equal_and_is_the_same_again(write, tmp_path_factory) -> None:
    write(RELU.format(0), WRONG)
    folder = write("arithmetic-relu-1layer-seed0", cells={("M1", 2): 14_000_000})
    result = run(folder)
    assert result == run(folder)
    saved = tmp_path_factory.mktemp("result")
    analysis.save(result, saved, analysis_name="exhaustive", options=exhaustive.Options())
    assert analysis.load(saved) == result


def test_unfinished_counts_are_named_and_left_out(write) -> None:
    folder = write(RELU.format(0), {})
    (folder / f"{RELU.format(1)}.partial").mkdir()
    (folder / "notes").mkdir()
    result = run(folder)
    assert result.findings[0].text.endswith(f"Left out, as unfinished: {RELU.format(1)}.partial.")
    assert result.findings[0].n == 1


def test_bad_input_is_refused(write, tmp_path: Path, domain: np.ndarray) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        run(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="no finished counts in it; make them"):
        run(tmp_path)
    folder = write(RELU.format(0), {})
    with pytest.raises(BadInput, match="no finished counts in it; name the folder it lies in"):
        run(folder / RELU.format(0))
    copied = folder / "copy"
    copied.mkdir()
    for file in (folder / RELU.format(0)).iterdir():
        (copied / file.name).write_bytes(file.read_bytes())
    with pytest.raises(BadInput, match="have the same name; remove one"):
        run(folder)
    (copied / "summary.json").write_text((copied / "summary.json").read_text().replace(RELU.format(0), RELU.format(1)))
    with pytest.raises(BadInput, match="have the same weights; remove one"):
        run(folder)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"sizes": sizes("+")}, "100,000,000 problems, not all there are of 'all'"),
        ({"problems": "sums"}, "200,000,000 problems, not all there are of 'sums'"),
        ({"sizes": sizes("+"), "problems": "addition"}, "count other problems"),
        ({"listed": {"1+1": "00002"}}, "a right answer is listed as wrong"),
    ],
)
def test_counts_that_do_not_fit_are_refused(write, second: dict[str, Any], message: str) -> None:
    write(RELU.format(0), {})
    folder = write(RELU.format(1), **second)
    with pytest.raises(BadInput, match=message):
        run(folder)


def test_options_are_none() -> None:
    assert dataclasses.fields(exhaustive.Options) == ()
    assert exhaustive.exhaustive.inputs == "folder"
    assert analysis.get("exhaustive") is exhaustive.exhaustive
