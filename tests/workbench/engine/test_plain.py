"""The training loss by hand."""

import math

import pytest
import torch

from workbench.engine import plain
from workbench.recipe import Architecture
from workbench.task import encode, parse_all

SHAPE = Architecture(n_layers=1)


def test_a_decoder_that_knows_nothing_loses_log_13_a_digit():
    weights = {name: torch.zeros(shape) for name, shape in SHAPE.shapes.items()}
    tokens = torch.from_numpy(encode(parse_all(["1234+0567", "9-10"])))
    assert plain.loss(weights, tokens, SHAPE).item() == pytest.approx(math.log(13), abs=1e-6)


def test_only_the_five_answer_digits_count():
    weights = {name: torch.zeros(shape) for name, shape in SHAPE.shapes.items()}
    weights["pos_embed.W_pos"][10:15, 0] = 1.0  # the positions that predict the answer digits
    weights["unembed.W_U"][0, 3] = 50.0  # say 3 there
    tokens = torch.from_numpy(encode(parse_all(["3333+0000", "0000+0003"])))
    # 03333 has one wrong digit of five, 00003 four; a wrong one costs 50 nats
    assert plain.loss(weights, tokens, SHAPE).item() == pytest.approx(50 * 5 / 10, rel=1e-6)
