"""Pairs of prompts that differ in exactly one thing, for `patching`.

A pair is made for one place of the answer. Up to the position where the digit of that place is predicted, the two
prompts differ in one token; the answer's higher digits and its sign, which a model reads there, are the same. So the
prediction can only differ because of that token:

- a digit of an operand at the place itself (`sum digit`, `difference digit`);
- the operator (b is below 10^(place + 1), since the higher digits must not change);
- the sign token, operands kept: an impossible prompt, whose digit is that of the subtraction in the other direction;
- a digit of a below the place, chosen so that a carry or borrow arrives at the place or not (`carry`, `borrow`: from
  the place just below; `far carry`, `far borrow`: from two below, passed on by a sum of nine or a difference of zero).
  It is a's, so that where b's digit stands nothing differs but what attention brought there.

The control prompt lacks the thing: of a carry or borrow, the same digit is changed and nothing else arrives; of the
others it is another pair's corrupted prompt of the same operator and sign, so it only shows what disruption does.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
from jaxtyping import Bool, Int, UInt8

from analyses.learned._exact_places import answer_digit, turned_digit
from workbench.recipe import Variant
from workbench.splits import in_variant
from workbench.task import MINUS, OPERATOR_AT, PLUS, SIGN_AT, Problems, encode

ROUND = 4_000  # candidates a round
MOST_ROUNDS = 50

Tokens = UInt8[np.ndarray, "pair 16"]
Digits = Int[np.ndarray, "problem 4"]  # units first
Candidates = tuple[Problems, Problems, Problems | None]


@dataclass(frozen=True)
class Kind:
    """One way in which prompts differ, and the places of the answer it is asked for."""

    name: str
    differs: str
    places: tuple[int, ...]
    subtract: bool = False
    below: int = 0  # how far below the place the changed digit stands


KINDS = (
    Kind("sum digit", "one operand digit, addition", (0, 1, 2, 3)),
    Kind("difference digit", "one operand digit, subtraction", (0, 1, 2, 3), subtract=True),
    Kind("operator", "the operator", (0, 1, 2, 3)),
    Kind("sign", "the sign token, operands kept", (0, 1, 2, 3), subtract=True),
    Kind("carry", "a carry from the place below", (1, 2, 3, 4), below=1),
    Kind("far carry", "a carry from two places below", (2, 3, 4), below=2),
    Kind("borrow", "a borrow from the place below", (1, 2, 3), subtract=True, below=1),
    Kind("far borrow", "a borrow from two places below", (2, 3), subtract=True, below=2),
)


def kinds_of(variant: Variant) -> list[Kind]:
    """The kinds whose prompts a model of the variant was trained on (`sign`: whose sign it reads, and both signs)."""
    match variant:
        case "all":
            return list(KINDS)
        case "ordered" | "sign-hidden":
            return [kind for kind in KINDS if kind.name != "sign"]
        case "subtraction":
            return [kind for kind in KINDS if kind.subtract]
        case "addition":
            return [kind for kind in KINDS if not kind.subtract and kind.name != "operator"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Prompts of one kind and place: `clean` and `corrupted` differ in one token and in the digit wanted there."""

    kind: Kind
    place: int
    clean: Tokens
    corrupted: Tokens
    control: Tokens
    clean_digit: Int[np.ndarray, " pair"]
    corrupted_digit: Int[np.ndarray, " pair"]

    def __len__(self) -> int:
        return len(self.clean)

    def chosen(self, which: Bool[np.ndarray, " pair"] | slice) -> "Pairs":
        """The pairs at a mask or slice."""
        arrays = {field.name: getattr(self, field.name)[which] for field in fields(self)[2:]}
        return replace(self, **arrays)


def draw(kind: Kind, place: int, count: int, seed: int, variant: Variant = "all") -> Pairs:
    """Up to `count` pairs, by seed; fewer only where the variant hardly has any."""
    rng = np.random.default_rng([seed, KINDS.index(kind), place])
    parts: list[Pairs] = []
    for _ in range(MOST_ROUNDS):
        parts.append(_pairs(kind, place, _candidates(rng, kind, place), variant))
        if sum(map(len, parts)) >= count:
            break
    arrays = {f.name: np.concatenate([getattr(part, f.name) for part in parts])[:count] for f in fields(Pairs)[2:]}
    pairs = Pairs(kind, place, **arrays)
    return pairs if kind.below else replace(pairs, control=_of_another(pairs.corrupted))


def _candidates(rng: np.random.Generator, kind: Kind, place: int) -> Candidates:
    make: dict[str, Callable[..., Candidates]] = {"operator": _operator, "sign": _sign}
    return make.get(kind.name, _digit)(rng, kind, place)


def _problems(a: Digits, b: Digits, subtract: bool) -> Problems:
    powers = 10 ** np.arange(4)
    a, b = (a @ powers).astype(np.uint16), (b @ powers).astype(np.uint16)
    return Problems(a, b, np.full(len(a), subtract))


def _digit(rng: np.random.Generator, kind: Kind, place: int) -> Candidates:
    """One digit of one operand changed, at the place or below it; the control has a third digit there."""
    a, b = rng.integers(0, 10, (2, ROUND, 4))
    for between in range(place - kind.below + 1, place):
        b[:, between] = a[:, between] if kind.subtract else 9 - a[:, between]
    rows, at = np.arange(ROUND), place - kind.below
    operand = np.zeros(ROUND, int) if kind.below else rng.integers(0, 2, ROUND)
    third = rng.permuted(np.tile(np.arange(1, 10), (ROUND, 1)), axis=1)[:, :2].T  # two different changes
    prompts = [_problems(a, b, kind.subtract)]
    for change in third:
        digits = np.stack([a, b])
        digits[operand, rows, at] = (digits[operand, rows, at] + change) % 10
        prompts.append(_problems(digits[0], digits[1], kind.subtract))
    first, second, control = prompts
    return second, first, control if kind.below else None


def _operator(rng: np.random.Generator, kind: Kind, place: int) -> Candidates:
    a, b = rng.integers(0, 10_000, ROUND), rng.integers(0, 10 ** (place + 1), ROUND)
    minus = rng.integers(0, 2, ROUND).astype(bool)
    first, second = (Problems(a.astype(np.uint16), b.astype(np.uint16), subtract) for subtract in (minus, ~minus))
    return first, second, None


def _sign(rng: np.random.Generator, kind: Kind, place: int) -> Candidates:
    a, b = rng.integers(0, 10_000, (2, ROUND)).astype(np.uint16)
    problems = Problems(a, b, np.ones(ROUND, dtype=bool))
    return problems, problems, None


def _pairs(kind: Kind, place: int, candidates: Candidates, variant: Variant) -> Pairs:
    """Of the candidates, those that differ as they should."""
    clean, corrupted, control = candidates
    hidden = variant == "sign-hidden"
    texts = [encode(problems, hide_sign=hidden) for problems in (clean, corrupted, control or corrupted)]
    signs = [problems.negative for problems in (clean, corrupted, control or corrupted)]
    digits = [answer_digit(problems.answers, place) for problems in (clean, corrupted, control or corrupted)]
    if kind.name == "sign":
        texts[1][:, SIGN_AT] = PLUS + MINUS - texts[1][:, SIGN_AT]
        digits[1] = turned_digit(clean.answers, place)
        signs[1] = signs[0]
    read = slice(SIGN_AT + 1, 15 - place)  # the answer's digits read before the one of the place
    fits = (texts[0][:, read] == texts[1][:, read]).all(axis=1) & (digits[0] != digits[1]) & (signs[0] == signs[1])
    fits &= in_variant(clean.index, variant) & in_variant(corrupted.index, variant)
    if control is not None:
        fits &= (texts[2][:, read] == texts[1][:, read]).all(axis=1) & (digits[2] == digits[1])
        fits &= (signs[2] == signs[1]) & in_variant(control.index, variant)
    return Pairs(kind, place, texts[0], texts[1], texts[2], digits[0], digits[1]).chosen(fits)


def _of_another(corrupted: Tokens) -> Tokens:
    """Each pair's place taken by the next pair's corrupted prompt of the same operator and sign."""
    other = corrupted.copy()
    groups = corrupted[:, OPERATOR_AT].astype(int) * 16 + corrupted[:, SIGN_AT]
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        other[members] = corrupted[np.roll(members, 1)]
    return other
