import dataclasses

import numpy as np
import pytest
import torch

from workbench import evaluation, forward, written
from workbench.sample import sample
from workbench.structure import CLASSES
from workbench.task import Problems, digits_of, encode, parse_all

EDGES = ["0+0", "0-0", "9999+9999", "9999+1", "1-9999", "9999-9999", "5000-4999", "4999-5000", "0-1", "999+1", "9-9990"]


def answered(checkpoint, problems):
    weights = forward.tensors(checkpoint.weights)
    return evaluation.run(weights, checkpoint.config.architecture, problems)


@pytest.mark.parametrize("category", [None, *CLASSES])
def test_the_exact_one_answers_everything(category):
    problems = sample(100 if category else 3_000, 3, category=category)
    outcome = answered(written.exact(), problems)
    assert outcome.digits.all() and outcome.loss.max() < 1e-4


def test_and_the_edges_of_the_domain():
    assert answered(written.exact(), parse_all(EDGES)).digits.all()


def test_every_answer_is_far_from_a_tie():
    """The right digit's logit is 20, all others 0, up to rounding: no digit is right by luck."""
    checkpoint, problems = written.exact(), sample(1_000, 4)
    tokens = torch.from_numpy(encode(problems))
    logits = forward.logits(forward.tensors(checkpoint.weights), tokens, checkpoint.config.architecture)[:, 10:15, :10]
    right = torch.nn.functional.one_hot(tokens[:, 11:16].long(), 10) * written.SHARP
    assert (logits - right).abs().max() < 0.1 * written.SHARP


def test_layer_1_attention_is_nothing_and_the_carry_is_where_it_is_said_to_be():
    checkpoint, seen = written.exact(), {}
    problems = parse_all(["0999+0001", "5000-0001", "0001-5000", "1234+1111"])
    tokens = torch.from_numpy(encode(problems))
    weights = forward.tensors(checkpoint.weights)
    forward.logits(weights, tokens, checkpoint.config.architecture, lambda name, x: seen.setdefault(name, x))
    assert not seen["blocks.1.hook_attn_out"].any()
    carries = seen["blocks.0.hook_resid_post"][:, 10:15, written.CARRY].numpy()
    into = [[0, 1, 1, 1, 0], [0, 1, 1, 1, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]]  # d4 to d0
    np.testing.assert_allclose(carries, into, atol=0.05)


def test_one_wrong_weight_is_wrong_somewhere():
    checkpoint = written.exact()
    weights = {name: value.copy() for name, value in checkpoint.weights.items()}
    weights["blocks.0.mlp.W_out"][3:5, written.CARRY] = 0  # no carry into the tens of additions
    spoilt = dataclasses.replace(checkpoint, weights=weights)
    outcome = answered(spoilt, parse_all(["0009+0001", "0009+0000", "0010-0001"]))
    assert outcome.digits.all(axis=1).tolist() == [False, True, True]


def test_the_clock_adds_each_place_modulo_ten():
    problems = sample(2_000, 5)
    problems = Problems(problems.a, problems.b, np.zeros(len(problems), bool))
    checkpoint = written.clock()
    tokens = torch.from_numpy(encode(problems))
    logits = forward.logits(forward.tensors(checkpoint.weights), tokens, checkpoint.config.architecture)[:, 10:15]
    digits = (digits_of(problems.a) + digits_of(problems.b)) % 10
    found = logits[:, :, :10].argmax(dim=2).numpy()
    np.testing.assert_array_equal(found, np.concatenate([np.zeros((len(problems), 1)), digits], axis=1))
