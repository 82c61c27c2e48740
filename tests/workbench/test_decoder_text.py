from typing import Any

import pytest
import torch

from workbench.decoder import Decoder
from workbench.errors import BadInput
from workbench.recipe import Architecture
from workbench.task import encode, parse_all

TEXTS = ["1234+0567", "0123-0456", "9999+9999"]


@pytest.fixture
def two_layers() -> Decoder:
    return Decoder.untrained(Architecture(n_layers=2), "fan-in", 0)


@pytest.mark.parametrize(
    ("text", "characters"),
    [
        ("1234+0567", "1234+0567=+01801"),
        ("1234-5678", "1234-5678=-04444"),
        (" 7 + 35", "0007+0035=+00042"),
        ("1234+0567=", "1234+0567="),
        ("1234+0567=+0199", "1234+0567=+0199"),  # as it stands, right or wrong
        ("1234+0567=+99999", "1234+0567=+99999"),
        ("7", "7"),
        ("+", "+"),
        ("0420", "0420"),
    ],
)
def test_text_becomes_the_tasks_tokens(two_layers: Decoder, text: str, characters: str) -> None:
    tokens = two_layers.to_tokens(text)
    assert tokens.dtype == torch.int64
    assert tokens.tolist() == [["0123456789+-=".index(c) for c in characters]]
    assert two_layers.to_string(tokens) == [characters]
    assert two_layers.to_string(tokens[0]) == characters
    assert two_layers.to_str_tokens(text) == list(characters)
    assert two_layers.to_str_tokens(tokens[0]) == list(characters)


def test_several_texts_and_problems_are_one_batch(two_layers: Decoder) -> None:
    problems = parse_all(TEXTS)
    expected = torch.from_numpy(encode(problems)).long()
    assert torch.equal(two_layers.to_tokens(TEXTS), expected)
    assert torch.equal(two_layers.to_tokens(problems), expected)
    assert two_layers.to_str_tokens(["7", "+"]) == [["7"], ["+"]]
    assert torch.equal(two_layers(problems), two_layers(TEXTS))


def test_a_single_character_has_an_id_and_a_direction(two_layers: Decoder) -> None:
    assert [two_layers.to_single_token(c) for c in "09+-="] == [0, 9, 10, 11, 12]
    W_U = two_layers.W_U
    assert torch.equal(two_layers.tokens_to_residual_directions("+"), W_U[:, 10])
    assert torch.equal(two_layers.tokens_to_residual_directions(3), W_U[:, 3])
    assert torch.equal(two_layers.tokens_to_residual_directions(torch.tensor([4])), W_U[:, 4])
    directions = two_layers.tokens_to_residual_directions(torch.tensor([[1, 2, 3], [4, 5, 6]]))
    assert directions.shape == (2, 3, 32)
    assert torch.equal(directions[1, 0], W_U[:, 4])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the problem is empty"),
        ("12a4+1", "'a'"),
        ("12345+1", "operand of 5 digits"),
        ("1+2+3", "2 operators"),
        ("\u0661", "the characters of a problem are"),
        ("1234+0567=+018010", "17 characters"),
        (["1+1", "1"], "no padding"),
        ([], "no padding"),
    ],
)
def test_text_that_is_not_the_tasks_is_refused(two_layers: Decoder, text: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        two_layers.to_tokens(text)


def test_calls_that_no_task_text_can_answer_are_refused(two_layers: Decoder) -> None:
    with pytest.raises(BadInput, match="beginning-of-sequence"):
        two_layers.to_tokens("1+1", prepend_bos=True)
    with pytest.raises(BadInput, match="single token"):
        two_layers.to_single_token("12")
    with pytest.raises(BadInput, match="outside"):
        two_layers.to_string(torch.tensor([13]))
