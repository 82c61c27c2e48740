"""The language of the task: `a op b = s d4 d3 d2 d1 d0`, sixteen tokens a problem, thirteen token kinds.

`1234+0567=+01801`: two zero-padded four-digit operands, then the sign and five zero-padded digits of |a op b|. Ids:
a digit is itself, `+` 10, `-` 11, `=` 12. A model reads the first fifteen tokens and predicts the five answer digits at
positions 10..14. Everything is vectorised over problems; nothing here imports torch.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int, Integer, UInt8, UInt16, UInt32

from workbench.errors import BadInput
from workbench.files import read_bytes

OPERAND_COUNT = 10_000
PAIR_COUNT = OPERAND_COUNT * OPERAND_COUNT
DOMAIN_SIZE = 2 * PAIR_COUNT

PLUS, MINUS, EQUALS = 10, 11, 12
CHARACTERS = "0123456789+-="
N_CTX = 16
POSITIONS_READ = 15  # a model reads the first fifteen tokens
OPERATOR_AT, EQUALS_AT, SIGN_AT = 4, 9, 10
ANSWER_POSITIONS = slice(10, 15)  # where the five answer digits are predicted
ANSWER_TOKENS = slice(11, 16)  # where they stand
POSITION_LABELS = ("a3", "a2", "a1", "a0", "op", "b3", "b2", "b1", "b0", "=", "s", "d4", "d3", "d2", "d1", "d0")

MAX_TEXT_BYTES = 64 * 1024 * 1024  # of a file of problems

_DIGITS = np.stack([np.arange(OPERAND_COUNT) // 10**place % 10 for place in (3, 2, 1, 0)], axis=1).astype(np.uint8)
_PROBLEM = re.compile(r" *(\d{1,4}) *([+-]) *(\d{1,4}) *", re.ASCII)


@dataclass(frozen=True, eq=False)
class Problems:
    """A batch of problems: operands 0..9999 and whether each subtracts."""

    a: UInt16[np.ndarray, " problem"]
    b: UInt16[np.ndarray, " problem"]
    subtract: Bool[np.ndarray, " problem"]

    def __post_init__(self) -> None:
        if not len(self.a) == len(self.b) == len(self.subtract):
            raise BadInput(f"{len(self.a)} and {len(self.b)} operands for {len(self.subtract)} operators")
        if len(self) and max(self.a.max(), self.b.max()) >= OPERAND_COUNT:
            raise BadInput("an operand is above 9999")

    def __len__(self) -> int:
        return len(self.subtract)

    def __getitem__(self, chosen: slice | np.ndarray) -> "Problems":
        """The problems at a slice, a boolean mask or an array of indices."""
        return type(self)(self.a[chosen], self.b[chosen], self.subtract[chosen])

    @property
    def index(self) -> UInt32[np.ndarray, " problem"]:
        """Place of each problem in the domain: additions first, then by first and second operand."""
        return self.subtract * np.uint32(PAIR_COUNT) + self.a * np.uint32(OPERAND_COUNT) + self.b

    @classmethod
    def from_index(cls, index: Integer[np.ndarray, " problem"]) -> "Problems":
        """The problems at the given places of the domain (0 <= index < 200,000,000), BadInput outside."""
        if len(index) and not (index.min() >= 0 and index.max() < DOMAIN_SIZE):
            raise BadInput(f"a problem index is outside 0..{DOMAIN_SIZE - 1}")
        subtract, pair = np.divmod(index.astype(np.uint32), np.uint32(PAIR_COUNT))
        a, b = np.divmod(pair, np.uint32(OPERAND_COUNT))
        return cls(a.astype(np.uint16), b.astype(np.uint16), subtract.astype(bool))

    @property
    def answers(self) -> Int[np.ndarray, " problem"]:
        """Exact signed answers as int32."""
        b = self.b.astype(np.int32)
        return self.a + np.where(self.subtract, -b, b)

    @property
    def negative(self) -> Bool[np.ndarray, " problem"]:
        """Whether the answer is below zero (zero has sign +)."""
        return self.subtract & (self.a < self.b)


def digits_of(operands: Integer[np.ndarray, " problem"]) -> UInt8[np.ndarray, "problem 4"]:
    """Four decimal digits of numbers 0..9999, most significant first."""
    return _DIGITS[operands]


def encode(problems: Problems, *, hide_sign: bool = False) -> UInt8[np.ndarray, "problem 16"]:
    """Tokens of each problem and its exact answer; `hide_sign` puts `=` where the sign stands (variant sign-hidden)."""
    tokens = np.empty((len(problems), N_CTX), dtype=np.uint8)
    tokens[:, 0:4] = _DIGITS[problems.a]
    tokens[:, OPERATOR_AT] = np.where(problems.subtract, MINUS, PLUS)
    tokens[:, 5:9] = _DIGITS[problems.b]
    tokens[:, EQUALS_AT] = EQUALS
    tokens[:, SIGN_AT] = EQUALS if hide_sign else np.where(problems.negative, MINUS, PLUS)
    size = np.abs(problems.answers)
    tokens[:, 11] = size >= OPERAND_COUNT
    tokens[:, 12:16] = _DIGITS[size % OPERAND_COUNT]
    return tokens


def decode(tokens: Integer[np.ndarray, "problem 16"]) -> list[str]:
    """Each row of tokens as its sixteen characters; BadInput for an id outside 0..12."""
    if tokens.size and not (tokens.min() >= 0 and tokens.max() < len(CHARACTERS)):
        raise BadInput(f"a token id is outside 0..{len(CHARACTERS) - 1}")
    return ["".join(row) for row in np.array(list(CHARACTERS))[tokens]]


def problems_from_tokens(tokens: Integer[np.ndarray, "problem length"]) -> Problems:
    """The problems that rows of at least nine tokens ask; BadInput when a row is not `dddd op dddd`."""
    operands = np.delete(tokens[:, :9], OPERATOR_AT, axis=1).astype(np.int64)
    operator = tokens[:, OPERATOR_AT]
    if tokens.size and not (
        np.all((operands >= 0) & (operands <= 9)) and np.all((operator == PLUS) | (operator == MINUS))
    ):
        raise BadInput("a row of tokens does not begin with four digits, an operator and four digits")
    values = operands.reshape(-1, 2, 4) @ np.array([1000, 100, 10, 1])
    return Problems(values[:, 0].astype(np.uint16), values[:, 1].astype(np.uint16), operator == MINUS)


def parse(text: str) -> Problems:
    """One problem from text such as `"1234-5678"` or `"7 + 35"`: 1 to 4 ASCII digits an operand, spaces allowed.

    Raises BadInput, saying what was found, for anything else.
    """
    return _from_fields([_fields(text)])


def parse_all(lines: Iterable[str]) -> Problems:
    """One problem a line, as `parse` reads it, blank lines skipped; BadInput names the first line that is not one."""
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                found.append(_fields(line))
        except BadInput as error:
            raise BadInput(f"line {number}: {error}") from None
    return _from_fields(found)


def read_problems(path: Path) -> Problems:
    """The problems of a UTF-8 text file, one a line, blank lines skipped; BadInput names the file and line."""
    try:
        problems = parse_all(read_bytes(path, MAX_TEXT_BYTES).decode("utf-8-sig").splitlines())
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a text file; expected one problem a line") from None
    except BadInput as error:
        message = str(error)
        raise BadInput(message if message.startswith(str(path)) else f"{path}: {message}") from None
    if not len(problems):
        raise BadInput(f"{path}: no problems in it; expected one a line, like 1234-5678")
    return problems


def _fields(text: str) -> tuple[int, int, bool]:
    match = _PROBLEM.fullmatch(text)
    if match is None:
        raise BadInput(f"{_complaint(text)}; write two numbers of 1 to 4 digits with + or -, like 1234-5678")
    return int(match[1]), int(match[3]), match[2] == "-"


def _from_fields(fields: list[tuple[int, int, bool]]) -> Problems:
    values = np.array(fields, dtype=np.uint16).reshape(-1, 3)
    return Problems(values[:, 0].copy(), values[:, 1].copy(), values[:, 2].astype(bool))


def _complaint(text: str) -> str:
    """Why `text` is not a problem, in a few words."""
    shown = repr(text if len(text) <= 40 else text[:40] + "…")
    strange = next((c for c in text if c not in CHARACTERS[:12] + " "), None)
    if not text.strip():
        return "the problem is empty"
    if strange is not None and strange.isdigit():
        return f"{shown} has {strange!r}, which is not one of the ASCII digits 0-9"
    if strange is not None and strange in "\N{MINUS SIGN}\N{EN DASH}\N{EM DASH}\N{HYPHEN}\N{FULLWIDTH HYPHEN-MINUS}":
        return f"{shown} has {strange!r}, which is not the ASCII minus -"
    if strange is not None:
        return f"{shown} has {strange!r}, which no problem contains"
    if len(re.findall(r"[+-]", text)) != 1:
        return f"{shown} has {len(re.findall(r'[+-]', text))} operators, expected one"
    if long := re.search(r"\d{5,}", text):
        return f"{shown} has an operand of {len(long[0])} digits, expected 1 to 4"
    return f"{shown} is not a problem"


def format_problems(problems: Problems) -> list[str]:
    """Each problem as text, zero-padded: `"0007+0035"`."""
    rows = zip(problems.a.tolist(), problems.b.tolist(), problems.subtract.tolist(), strict=True)
    return [f"{a:04d}{'-' if subtract else '+'}{b:04d}" for a, b, subtract in rows]


def format_answers(answers: Integer[np.ndarray, " problem"]) -> list[str]:
    """Signed answers as the task writes them: `"+01801"`."""
    return [f"{answer:+06d}" for answer in answers.tolist()]


def blocks(size: int = 1_000_000) -> Iterator[Problems]:
    """The whole domain of 200,000,000 problems, in order of their index, `size` at a time."""
    for start in range(0, DOMAIN_SIZE, size):
        yield Problems.from_index(np.arange(start, min(start + size, DOMAIN_SIZE), dtype=np.uint32))
