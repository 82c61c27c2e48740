import functools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from workbench import checkpoint, evaluation, forward
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, twelve
from workbench.splits import Splits
from workbench.structure import GROUPINGS
from workbench.task import CHARACTERS, Problems, parse_all

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
SMALL = Architecture(d_model=8, n_heads=2, d_head=4, d_mlp=8, n_layers=1)
LINES = ["0999+0001", "1234+0567", "0055+0055", "5000-0001", "0123-0456", "7777-7777", "0000+0000", "9999+9999"]


def text_of(line: str, hide_sign: bool = False) -> str:
    """A problem with its answer, from Python's own arithmetic."""
    a, operator, b = int(line[:4]), line[4], int(line[5:])
    answer = a + b if operator == "+" else a - b
    sign = "=" if hide_sign else "-" if answer < 0 else "+"
    return f"{line}={sign}{abs(answer):05d}"


def some_problems(count: int) -> Problems:
    generator = np.random.default_rng(5)
    more = [f"{a:04d}{'+-'[s]}{b:04d}" for a, b, s in generator.integers(0, [10_000, 10_000, 2], (count, 3))]
    return parse_all([*LINES, *more])


def lines_of(problems: Problems) -> list[str]:
    rows = zip(problems.a, problems.b, problems.subtract, strict=True)
    return [f"{a:04d}{'-' if minus else '+'}{b:04d}" for a, b, minus in rows]


@pytest.mark.parametrize("variant", ["all", "sign-hidden"])
def test_an_outcome_is_what_plain_python_computes(variant) -> None:
    problems, weights = some_problems(32), initial_weights(SMALL, "transformer-lens", 3)
    found = evaluation.run(weights, SMALL, problems, variant)
    for row, line in enumerate(lines_of(problems)):
        text = text_of(line, hide_sign=variant == "sign-hidden")
        ids = [CHARACTERS.index(character) for character in text]
        logits = forward.logits(weights, torch.tensor([ids[:15]]), SMALL)[0].double().tolist()
        losses, right = [], []
        for position in range(10, 15):
            target, values = ids[position + 1], logits[position]
            losses.append(math.log(sum(map(math.exp, values))) - values[target])
            right.append(values.index(max(values)) == target)
        assert found.loss[row] == pytest.approx(sum(losses) / 5, rel=1e-5)
        assert found.digits[row].tolist() == right
        said = logits[9].index(max(logits[9]))
        assert found.sign[row] == (CHARACTERS[said] == text_of(line)[10])
        assert found.sequence[row] == all(right)


class Oracle:
    """Logits that answer every problem rightly, but for one digit of one problem and the sign of another."""

    def __init__(self, wrong_line: str, wrong_digit: int, wrong_sign: str) -> None:
        self.wrong_line, self.wrong_digit, self.wrong_sign = wrong_line, wrong_digit, wrong_sign

    def __call__(self, weights, tokens, architecture) -> torch.Tensor:
        logits = torch.zeros(*tokens.shape, 13)
        for row, ids in enumerate(tokens.tolist()):
            line = "".join(CHARACTERS[token] for token in ids[:9])
            answer = text_of(line)
            for position in range(14 + 1):
                logits[row, position, CHARACTERS.index(answer[position + 1])] = 50.0
            if line == self.wrong_line:
                position = 10 + self.wrong_digit
                digit = int(answer[position + 1])
                logits[row, position, digit], logits[row, position, (digit + 1) % 10] = 0.0, 50.0
            if line == self.wrong_sign:
                logits[row, 9] = -logits[row, 9]
        return logits


def test_a_planted_wrong_digit_and_sign_are_counted_once_and_in_their_categories(monkeypatch) -> None:
    problems = some_problems(60)
    n = len(problems)
    monkeypatch.setattr(forward, "logits", Oracle("0999+0001", 2, wrong_sign="5000-0001"))
    weights = {"embed.W_E": torch.zeros(1)}
    outcome = evaluation.run(weights, SMALL, problems)
    whole = evaluation.score(outcome)
    assert (whole.n, whole.digits_right, whole.sequences_right, whole.signs_right) == (n, 5 * n - 1, n - 1, n - 1)
    assert whole.loss == pytest.approx(50.0 / (5 * n), rel=1e-5)  # one digit of 5n costs 50 nats

    missed = {(g, name) for g, name, s in evaluation.by_category(outcome, problems) if s.sequences_right < s.n}
    assert missed == {
        ("operator", "addition"), ("sign", "+"), ("count", "3 carries"), ("chain", "addition chain 3"), ("class", "S3")
    }  # fmt: skip
    unsigned = {(g, name) for g, name, s in evaluation.by_category(outcome, problems) if s.signs_right < s.n}
    assert unsigned == {
        ("operator", "subtraction"), ("sign", "+"), ("count", "3 borrows"), ("chain", "subtraction chain 3"),
        ("class", "M3"),
    }  # fmt: skip


def random_outcome(count: int) -> evaluation.Outcome:
    generator = np.random.default_rng(11)
    digits = generator.random((count, 5)) < 0.8
    return evaluation.Outcome(generator.random(count), digits, generator.random(count) < 0.1)


def test_operators_add_up() -> None:
    problems = some_problems(200)
    found = evaluation.by_operator(random_outcome(len(problems)), problems)
    assert list(found) == ["all", "addition", "subtraction"]
    parts = found["addition"], found["subtraction"]
    for count in ("n", "digits_right", "sequences_right", "signs_right"):
        assert sum(getattr(part, count) for part in parts) == getattr(found["all"], count)
    assert sum(part.loss * part.n for part in parts) == pytest.approx(found["all"].loss * len(problems))
    assert found["subtraction"].n == sum("-" in line for line in lines_of(problems))


def test_an_operator_without_problems_is_left_out() -> None:
    problems = parse_all(["1+1", "2+2"])
    assert list(evaluation.by_operator(random_outcome(2), problems)) == ["all", "addition"]


def carries(line: str) -> str:
    """How many digits carry or borrow, by the schoolbook."""
    a, b, minus = int(line[:4]), int(line[5:]), line[4] == "-"
    if minus and a < b:
        a, b = b, a
    count = carry = 0
    for place in range(4):
        x, y = a // 10**place % 10, b // 10**place % 10
        carry = (x - y - carry < 0) if minus else (x + y + carry >= 10)
        count += carry
    if minus:
        return f"{count} borrow{'' if count == 1 else 's'}"
    return f"{count} {'carry' if count == 1 else 'carries'}"


def test_categories_add_up_and_count_as_the_schoolbook_does() -> None:
    problems = some_problems(300)
    rows = evaluation.by_category(random_outcome(len(problems)), problems)
    assert list(dict.fromkeys(grouping for grouping, _, _ in rows)) == list(GROUPINGS)
    whole = evaluation.score(random_outcome(len(problems)))
    for grouping in GROUPINGS:
        for count in ("n", "digits_right", "sequences_right", "signs_right"):
            assert sum(getattr(s, count) for g, _, s in rows if g == grouping) == getattr(whole, count)
    expected = Counter(map(carries, lines_of(problems)))
    assert {name: s.n for grouping, name, s in rows if grouping == "count"} == expected


def test_chunks_change_nothing(monkeypatch) -> None:
    problems, weights = some_problems(41), initial_weights(SMALL, "fan-in", 0)
    whole = evaluation.run(weights, SMALL, problems)
    monkeypatch.setattr(evaluation, "CHUNK", 7)
    parts = evaluation.run(weights, SMALL, problems)
    np.testing.assert_allclose(parts.loss, whole.loss, rtol=1e-5)
    np.testing.assert_array_equal(parts.digits, whole.digits)


def test_no_problems_are_no_outcome() -> None:
    empty = some_problems(0)[:0]
    assert len(evaluation.run(initial_weights(SMALL, "fan-in", 0), SMALL, empty).loss) == 0


@functools.cache
def validation() -> Problems:
    return Splits().validation


@pytest.mark.parametrize("name", [config.name for config in twelve()])
def test_a_committed_checkpoint_has_the_validation_numbers_of_its_history(name: str) -> None:
    one = checkpoint.read(CHECKPOINTS / name)
    assert (one.config.data_seed, one.config.problems) == (1234, "all")
    outcome = evaluation.run(forward.tensors(one.weights), one.config.architecture, validation())
    found, stored = evaluation.by_operator(outcome, validation()), one.history["results"]["validation"]
    assert found.keys() == stored.keys()
    for operator, score in found.items():
        assert score.n == stored[operator]["n"]
        for count in ("digits_right", "sequences_right", "signs_right"):
            # float32 matrix products round differently from CPU to CPU, so a digit at a tie may go either way
            assert abs(getattr(score, count) - stored[operator][count]) <= 2
        assert score.loss == pytest.approx(stored[operator]["loss"], abs=1e-6)
