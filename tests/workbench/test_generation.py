"""Generated answers against a decoder that is told what to say."""

import torch

from workbench import evaluation, generation
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.task import encode, parse_all

SHAPE = Architecture(n_layers=1)


def successor():
    """A decoder that says the token's successor modulo 13 with near certainty: one-hot in, shifted one-hot out."""
    weights = {name: torch.zeros(shape) for name, shape in SHAPE.shapes.items()}
    for token in range(13):
        weights["embed.W_E"][token, token] = 1.0
        weights["unembed.W_U"][token, (token + 1) % 13] = 30.0
    return weights


def test_each_digit_follows_from_the_one_before():
    asked = parse_all(["1234-5678", "1+1"])
    given = generation.generate(successor(), SHAPE, asked)
    assert given.tokens.tolist() == [[11, 12, 0, 1, 2, 3], [10, 11, 12, 0, 1, 2]]
    own = generation.generate(successor(), SHAPE, asked, give_sign=False)
    assert own.tokens[0].tolist() == [0, 1, 2, 3, 4, 5]  # after "=" comes token 0
    assert (given.probabilities > 0.999).all() and (given.probabilities[:, 0] == 1).all()


def test_generated_and_teacher_forced_sequences_are_right_together():
    weights = {name: 3 * w for name, w in initial_weights(SHAPE, "fan-in", 0).items()}
    asked = parse_all([f"{a}+{b}" for a in range(0, 9999, 97) for b in (0, 1, 5005)])
    right = (generation.generate(weights, SHAPE, asked).tokens == encode(asked)[:, 10:]).all(axis=1)
    assert (right == evaluation.run(weights, SHAPE, asked).sequence).all()


def test_a_decoder_that_never_saw_a_sign_reads_none_of_its_own():
    asked = parse_all(["1234-5678"])
    for give in (True, False):
        said = generation.generate(successor(), SHAPE, asked, give_sign=give, hide_sign=True).tokens[0].tolist()
        assert said[1:] == [0, 1, 2, 3, 4]  # what follows "=" at the sign's place, whatever the sign would have been
    assert said[0] == 0  # its own sign, what it says after "=", is reported all the same
