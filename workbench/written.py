"""Decoders whose weights are written down, not trained: what analyses can be tried on because the truth is known.

`exact` answers all 200,000,000 problems with two ReLU layers. In layer 0 the heads fetch, for each answer digit, the
two operand digits of its place, the operator, the sign and the weighted sums of the operands' lower digits; the MLP
makes of these the mode (addition, subtraction, subtraction reversed) and the carry or borrow. Attention of layer 1 is
zero; its MLP is a lookup of the digit by mode, digit pair and carry.

`clock` is one bilinear layer: heads fetch the two digits of the place as angles, the MLP multiplies them by the angle
addition formulas, the unembedding reads the digit off. It adds modulo ten and knows no carry, operator or sign.
"""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float32

from workbench.checkpoint import Checkpoint
from workbench.recipe import Architecture, RunConfig
from workbench.task import ANSWER_POSITIONS, EQUALS_AT, MINUS, OPERATOR_AT, PLUS, SIGN_AT

Arrays = dict[str, Float32[np.ndarray, "..."]]

PLACES = 5  # of the answer, units first
A_AT, B_AT = (3, 2, 1, 0), (8, 7, 6, 5)  # positions of the operands' digits, units first
NEVER = -200.0  # an attention score that is nothing in float32
SHARP = 20.0  # logit of the right digit

# Where things stand in the residual stream of `exact`.
POSITION = 13  # tokens are 0 to 12, positions follow
ONE = 29  # 1 everywhere
DIGIT_A, DIGIT_B = 30, 40  # ten each: the operands' digits of this place, none of them set at d4
OPERATOR, SIGN = 50, 52  # two each: +, -
LOWER_A, LOWER_B = 54, 55  # weighted means of the lower digits
MODE = 56  # addition, subtraction with sign +, subtraction with sign -
CARRY = 59  # carry or borrow into this place
ANSWER = 60  # ten: the digit
EXACT = Architecture(mlp="relu", n_layers=2, d_model=70, n_heads=6, d_head=16, d_mlp=602)

# And of `clock`: positions at the same place, ONE too.
TURNS = tuple((k, part) for k in range(1, 6) for part in ("cos", "sin") if (k, part) != (5, "sin"))
ANGLE_A, ANGLE_B, ANGLE_SUM = 30, 39, 48  # nine each
CLOCK = Architecture(mlp="bilinear", n_layers=1, d_model=57, n_heads=2, d_head=16, d_mlp=17)


def exact() -> Checkpoint:
    """The decoder that answers every problem, as a checkpoint that lies nowhere on disk."""
    weights = _blank(EXACT)
    _heads_of_exact(weights)
    _carries(weights)
    _lookup(weights)
    for digit in range(10):
        weights["unembed.W_U"][ANSWER + digit, digit] = SHARP
    return _checkpoint("written-exact", EXACT, weights)


def clock() -> Checkpoint:
    """The decoder that adds the two digits of each place modulo ten by turning angles; d4 is read as 0 + 0."""
    weights = _blank(CLOCK)
    digits = np.arange(10)
    for head, (positions, angle) in enumerate(((A_AT, ANGLE_A), (B_AT, ANGLE_B))):
        values = np.stack([turn(k, part, digits) for k, part in TURNS], axis=1)
        _head(weights, 0, head, _copies(positions, last=EQUALS_AT), values, angle)
    for part in (ANGLE_A, ANGLE_B):  # at d4 a zero is read: cos 0 = 1 comes with the position
        for place, (_, kind) in enumerate(TURNS):
            weights["pos_embed.W_pos"][ANSWER_POSITIONS.start, part + place] = kind == "cos"
    gate, into, out = (weights[f"blocks.0.mlp.W_{name}"] for name in ("gate", "in", "out"))
    place = {turn: number for number, turn in enumerate(TURNS)}
    neuron = itertools.count()
    for k, first, second, result, sign in [
        (k, *formula) for k in range(1, 6) for formula in _ADDITION if {(k, name) for name in formula[:3]} <= set(TURNS)
    ]:
        unit = next(neuron)
        gate[ANGLE_A + place[k, first], unit] = 1
        into[ANGLE_B + place[k, second], unit] = 1
        out[unit, ANGLE_SUM + place[k, result]] = sign
    for (k, part), number in place.items():
        weights["unembed.W_U"][ANGLE_SUM + number, :10] = SHARP / 5 * turn(k, part, digits)
    return _checkpoint("written-clock", CLOCK, weights)


_ADDITION = (  # of the cosine and sine of a sum of two angles
    ("cos", "cos", "cos", 1), ("sin", "sin", "cos", -1), ("sin", "cos", "sin", 1), ("cos", "sin", "sin", 1),
)  # fmt: skip


def turn(k: int, part: str, digits: Float[np.ndarray, " digit"]) -> Float[np.ndarray, " digit"]:
    """Cosine or sine of `2 pi k d / 10`."""
    angle = 2 * math.pi * k * np.asarray(digits) / 10
    return np.cos(angle) if part == "cos" else np.sin(angle)


def _blank(architecture: Architecture) -> Arrays:
    """All zeros, but for one-hot tokens (digits and signs) and positions, and the 1."""
    weights = {name: np.zeros(shape, np.float32) for name, shape in architecture.shapes.items()}
    weights["embed.W_E"][:, :13] = np.eye(13)
    weights["pos_embed.W_pos"][:, POSITION : POSITION + 16] = np.eye(16)
    weights["pos_embed.W_pos"][:, ONE] = 1
    return weights


def _checkpoint(name: str, architecture: Architecture, weights: Arrays) -> Checkpoint:
    config = replace(RunConfig(architecture), engine="plain")
    return Checkpoint(Path(name), config, {}, "", weights, {})


Scores = Float[np.ndarray, "place position"]


def _copies(positions: tuple[int, ...], last: int) -> Scores:
    """Scores of a head that reads one position for each of the lowest places, and `last` for d4."""
    scores = np.full((PLACES, 16), NEVER)
    for place, position in enumerate((*positions, last)):
        scores[place, position] = 0
    return scores


def _fetches(position: int) -> Scores:
    """Scores of a head that reads the same position for every place."""
    scores = np.full((PLACES, 16), NEVER)
    scores[:, position] = 0
    return scores


def _sums(positions: tuple[int, ...]) -> Scores:
    """Scores of a head whose pattern weighs the digits below each place by their powers of ten; `=` at the units."""
    scores = np.full((PLACES, 16), NEVER)
    scores[0, EQUALS_AT] = 0
    for place in range(1, PLACES):
        for lower in range(place):
            scores[place, positions[lower]] = lower * math.log(10)
    return scores


def _head(
    weights: Arrays, layer: int, head: int, scores: Scores, values: Float[np.ndarray, "token out"], into: int
) -> None:
    """One head: its scores by place of the answer and position read, what it writes of each token, and where."""
    attention = {name: weights[f"blocks.{layer}.attn.W_{name}"][head] for name in "QKVO"}
    root = math.sqrt(attention["Q"].shape[1])  # undoes the scaling of scores
    for place in range(PLACES):
        attention["Q"][POSITION + ANSWER_POSITIONS.stop - 1 - place, place] = root
        attention["K"][POSITION : POSITION + 16, place] = scores[place]
    tokens, out = values.shape
    attention["V"][:tokens, :out] = values
    attention["O"][:out, into : into + out] = np.eye(out)


def _heads_of_exact(weights: Arrays) -> None:
    pick = np.zeros((13, 2))  # + and -
    pick[PLUS, 0] = pick[MINUS, 1] = 1
    value = np.arange(10)[:, None]
    for head, (scores, values, into) in enumerate(
        [
            (_copies(A_AT, EQUALS_AT), np.eye(10), DIGIT_A),
            (_copies(B_AT, EQUALS_AT), np.eye(10), DIGIT_B),
            (_fetches(OPERATOR_AT), pick, OPERATOR),
            (_fetches(SIGN_AT), pick, SIGN),
            (_sums(A_AT), value, LOWER_A),
            (_sums(B_AT), value, LOWER_B),
        ]
    ):
        _head(weights, 0, head, scores, values, into)


def _carries(weights: Arrays) -> None:
    """The MLP of layer 0: the mode; `relu(x) - relu(x - 1)`, x >= 1 where a carry or borrow arrives, else negative."""
    into, out = weights["blocks.0.mlp.W_in"], weights["blocks.0.mlp.W_out"]
    into[OPERATOR, 0] = 1
    for mode in (1, 2):
        into[OPERATOR + 1, mode] = into[SIGN + mode - 1, mode] = 1
        into[ONE, mode] = -1
    for mode in range(3):
        out[mode, MODE + mode] = 1
    neuron = itertools.count(3)
    for place, mode, step in itertools.product(range(1, PLACES), range(3), (0, 1)):
        unit = next(neuron)
        weight = (10**place - 1) // 9  # undoes the pattern's normalisation
        a, b = ((1, 1), (-1, 1), (1, -1))[mode]
        least = 10**place if mode == 0 else 1  # from which lower sum on one arrives
        shut = 4.0 * 10**place  # beyond any sum
        into[LOWER_A, unit], into[LOWER_B, unit] = 2 * a * weight, 2 * b * weight
        into[POSITION + ANSWER_POSITIONS.stop - 1 - place, unit] = shut
        into[OPERATOR + (mode > 0), unit] = shut
        into[SIGN + (mode == 2), unit] = shut
        into[ONE, unit] = -3 * shut - 2 * (least - 0.5) - step
        out[unit, CARRY] = 1 - 2 * step


def _lookup(weights: Arrays) -> None:
    """The MLP of layer 1: one neuron a mode, digit pair and carry, which is 1 there and 0 elsewhere; two for d4."""
    into, out = weights["blocks.1.mlp.W_in"], weights["blocks.1.mlp.W_out"]
    neuron = itertools.count()
    for mode, a, b, carry in itertools.product(range(3), range(10), range(10), (0, 1)):
        unit = next(neuron)
        for place in (MODE + mode, DIGIT_A + a, DIGIT_B + b):
            into[place, unit] = 1
        into[CARRY, unit], into[ONE, unit] = (1, -3) if carry else (-1, -2)
        digit = (a + b + carry, a - b - carry, b - a - carry)[mode] % 10
        out[unit, ANSWER + digit] = 1
    for carry in (0, 1):
        unit = next(neuron)
        into[POSITION + ANSWER_POSITIONS.start, unit] = 1
        into[CARRY, unit], into[ONE, unit] = (1, -1) if carry else (-1, 0)
        out[unit, ANSWER + carry] = 1
