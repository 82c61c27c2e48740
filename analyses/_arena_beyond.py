"""What the arena's forms do beyond the task: a digit more, another operation; or why that cannot be asked of one.

*A digit more* is five-digit operands. The Hill circuit gets one place value more; the kernel machine is the template
set of the same rule for five digits, N of which grows, not that of four. *A product* is of two four-digit operands: the
Hill circuit's readout stays, and the unit is `multiply`, enumerated. A decoder has sixteen positions and thirteen kinds
of token; the kernel machine of four digits has no bit for a fifth place, and neither has a template for a product.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from analyses._arena_forms import HILL, KERNEL
from workbench.statistics import wilson
from workbench.task import N_CTX

DIGIT, PRODUCT = "a digit more", "a product"
QUESTIONS = (DIGIT, PRODUCT)
LEARNED = "decoders"
CANNOT = "cannot be asked"
DIGITS = 5
EXTREMES = [(99_999, 1), (99_999, 99_999), (10_000, 99_999), (90_000, 10_000), (0, 99_999), (50_000, 50_001)]

Numbers = Int64[np.ndarray, " problem"]


@dataclass(frozen=True)
class Beyond:
    """A form's answers to one question; n is 0 where it cannot be asked, and `how` says why, or with what it was."""

    form: str
    question: str
    n: int
    right: int
    how: str
    needs: str = ""  # what it was given for it, in two or three words

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% Wilson interval of the share right."""
        return wilson(self.right, self.n) if self.n else None

    @property
    def words(self) -> str:
        """For a cell of a table."""
        if not self.n:
            return CANNOT
        share = "all" if self.right == self.n else f"{self.right / self.n:.4f}"
        return f"{share} right, {self.needs}"


def beyond(count: int, seed: int) -> list[Beyond]:
    """Every form under every question, `count` random problems each where it can be asked."""
    rng = np.random.default_rng([seed, DIGITS])
    a, b = rng.integers(0, 10**DIGITS, (2, count))
    subtract = rng.integers(0, 2, count) == 1
    extremes = np.array(EXTREMES)
    a, b = np.concatenate([a, *[extremes[:, 0]] * 2]), np.concatenate([b, *[extremes[:, 1]] * 2])
    subtract = np.concatenate([subtract, np.zeros(len(extremes), bool), np.ones(len(extremes), bool)])
    factors = rng.integers(0, 10**4, (2, count))
    needs = 3 * DIGITS + 4  # operands, operator, =, sign, and a digit more of the answer
    return [
        Beyond(LEARNED, DIGIT, 0, 0, f"a problem takes {needs} tokens, a decoder has {N_CTX} positions"),
        _hill_digit(a, b, subtract),
        _kernel_digit(a, b, subtract),
        Beyond(LEARNED, PRODUCT, 0, 0, "no token says it"),
        _hill_product(factors[0], factors[1]),
        Beyond(KERNEL, PRODUCT, 0, 0, "no template says it (binary numbers are multiplied by a set of their own)"),
    ]


def _exact(a: Numbers, b: Numbers, subtract: Bool[np.ndarray, " problem"]) -> np.ndarray:
    from workbench.ntk.decimal import Decimal

    return Decimal(DIGITS).exact(a, b, subtract)


def _hill_digit(a: Numbers, b: Numbers, subtract: Bool[np.ndarray, " problem"]) -> Beyond:
    import torch

    from workbench.hill.token_circuit import TokenCircuit
    from workbench.task import EQUALS, MINUS, PLUS

    places = 10 ** np.arange(DIGITS - 1, -1, -1)
    operators = np.where(subtract, MINUS, PLUS)[:, None]
    digits_a, digits_b = (values[:, None] // places % 10 for values in (a, b))
    tokens = np.concatenate([digits_a, operators, digits_b, np.full_like(operators, EQUALS)], axis=1)
    written = TokenCircuit(DIGITS).written(torch.from_numpy(tokens.astype(np.uint8))).numpy()
    right = (written == _exact(a, b, subtract)).all(axis=1)
    return Beyond(HILL, DIGIT, len(right), int(right.sum()), "one place value more in the readout", "a place value")


def _kernel_digit(a: Numbers, b: Numbers, subtract: Bool[np.ndarray, " problem"]) -> Beyond:
    from workbench.ntk.decimal import Decimal
    from workbench.ntk.decimal_words import check
    from workbench.ntk.sliced import Sliced

    machine = Decimal(DIGITS)
    right = check(machine, Sliced(machine.templates), a, b, subtract).right
    how = (
        f"another set by the same rule, {machine.templates.count:,} templates; that of four digits has no place for it"
    )
    return Beyond(KERNEL, DIGIT, len(right), int(right.sum()), how, f"{machine.templates.count:,} templates")


def _hill_product(a: Numbers, b: Numbers) -> Beyond:
    import torch

    from workbench.hill.token_circuit import TokenCircuit
    from workbench.hill.unit import HillUnit
    from workbench.task import EQUALS_AT, Problems, encode

    asked = Problems(a.astype(np.uint16), b.astype(np.uint16), np.zeros(len(a), bool))
    tokens = torch.from_numpy(encode(asked)[:, : EQUALS_AT + 1])  # the operator's token is not read
    unit = HillUnit.enumerated("multiply")
    with torch.no_grad():
        products = unit(TokenCircuit().operands(tokens)).numpy()
    right = products == a * b
    return Beyond(
        HILL, PRODUCT, len(right), int(right.sum()), f"the unit is {unit.primitive}, weights [1, 1]", "a unit"
    )
