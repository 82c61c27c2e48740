"""What a short and a full run of `ntk-ensembles` do, and what they hand to its tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from analyses._rows import Row
from analyses.kernel import _ntk_ensembles_arithmetic as arithmetic
from analyses.kernel import _ntk_ensembles_recipes as recipes
from analyses.kernel._ntk_ensembles_permutation import law_trials, trained_trials
from workbench.ntk.ensemble import LIMIT, Form, Recipe

PUBLISHED_KS = tuple(range(2, 31))
KS: tuple[int, ...] = (5, 10, 15, 20, 25, 30)
SHORT_NTK = (10, 15, 20)  # trained in NTK form by a short run
ERRORS = (0.1, 0.001)  # of the two published experiments
ADD, MULTIPLY = (2, 3, 4, 5, 6, 7, 8), (2, 3, 4, 5)
LAW_ADD = (2, 3, 4, 5)  # l of trials with the law: the covariance is states x states
DOUBLINGS = tuple(2**i for i in range(1, 12))
ARITHMETIC_WIDTH = 1024


class Asked(Protocol):
    """The options that decide how much is done."""

    @property
    def trials(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def law_trials(self) -> int: ...
    @property
    def pairs(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def full(self) -> bool: ...


@dataclass(frozen=True)
class Checks:
    """Rows of means and spreads by width, and of other steps against the published ones."""

    widths: list[Row]
    steps: list[Row]


@dataclass(frozen=True)
class Sums:
    """Rows of predictions from all inputs, of trials on all reachable states, and of ceilings for large l."""

    predicted: list[Row]
    trials: list[Row]
    ceilings: list[Row]


@dataclass(frozen=True)
class Plan:
    """Sizes of a run. The laws take the first error at every k, all errors at the k of the second experiment."""

    trained: dict[Form, dict[int, tuple[float, ...]]]  # errors at each k
    errors: tuple[float, ...]  # of the laws
    widths: dict[Form, int]
    trials: int
    laws: dict[Form, tuple[int, ...]]
    law_trials: int
    checked: dict[tuple[Form, int], tuple[int, ...]]  # widths at each k
    pairs: int  # networks with their mirrors
    paired: tuple[tuple[Form, int, int, int], ...]  # form, k, width, pairs
    multiply: tuple[int, ...]
    added: tuple[int, ...]  # l of trials with trained networks
    seed: int

    def permutations(self) -> list[Row]:
        """Every trial of both kinds and forms."""
        rows: list[Row] = []
        for form, ks in self.laws.items():
            for k in ks:
                errors = self.errors if k in KS else self.errors[:1]
                rows += law_trials(k, LIMIT[form], errors, self.law_trials, self.seed)
        for form, every in self.trained.items():
            for k, errors in every.items():
                recipe = Recipe(form, self.widths[form], recipes.steps(form, k))
                rows += trained_trials(k, recipe, errors, self.trials, self.seed)
        return rows

    def recipes(self) -> Checks:
        """Widths, and steps in pairs."""
        wide = [
            row
            for (form, k), every in self.checked.items()
            for row in recipes.widths(form, k, every, self.pairs, self.seed)
        ]
        return Checks(wide, [row for pair in self.paired for row in recipes.compared(*pair, self.seed)])

    def arithmetic(self) -> Sums:
        """All inputs of addition and multiplication."""
        predicted: list[Row] = []
        trials: list[Row] = []
        chosen: tuple[tuple[arithmetic.Operation, Sequence[int]], ...] = (("add", ADD), ("multiply", self.multiply))
        for operation, every in chosen:
            for bits in every:
                found = arithmetic.reached(operation, bits)
                predicted += arithmetic.predictions(operation, found)
                for kind, at in (("law", LAW_ADD), ("trained", self.added)):
                    if operation == "add" and bits in at:
                        trials += arithmetic.trials(operation, found, kind, ARITHMETIC_WIDTH, self.trials, self.seed)
        ceilings = [arithmetic.ceiling(name, bits) for name in ("permute", "add", "multiply") for bits in DOUBLINGS]
        return Sums(predicted, trials, ceilings)


def protocol(asked: Asked) -> Plan:
    """The plan of a run."""
    if asked.full:
        return Plan(
            trained={"standard": dict.fromkeys(KS, ERRORS),
                     "ntk": dict.fromkeys(KS, ERRORS[:1]) | dict.fromkeys((5, 10, 15, 20), ERRORS)},
            errors=ERRORS, widths={"standard": 4096, "ntk": 4096}, trials=5,
            laws={"standard": PUBLISHED_KS, "ntk": PUBLISHED_KS}, law_trials=30,
            checked={("standard", 10): (256, 1024, 2048, 4096, 16384, 50_000), ("ntk", 10): (256, 1024, 4096, 16384),
                     ("standard", 30): (1024, 2048, 4096, 16384, 50_000), ("ntk", 30): (1024, 4096, 16384)},
            pairs=24,
            paired=(("standard", 10, 50_000, 2), ("standard", 10, 4096, 4), ("standard", 30, 4096, 2),
                    ("ntk", 10, 4096, 4), ("ntk", 30, 4096, 2)),
            multiply=(2, 3, 4, 5, 6), added=(2, 3, 4), seed=asked.seed,
        )  # fmt: skip
    return Plan(
        trained={"standard": dict.fromkeys(KS, ERRORS[:1]), "ntk": dict.fromkeys(SHORT_NTK, ERRORS[:1])},
        errors=ERRORS[:1], widths={"standard": asked.width, "ntk": asked.width}, trials=asked.trials,
        laws={"standard": PUBLISHED_KS, "ntk": KS}, law_trials=asked.law_trials,
        checked={("standard", 10): (256, 1024, asked.width), ("ntk", 10): (256, 1024, asked.width)},
        pairs=asked.pairs, paired=(("standard", 10, asked.width, 2), ("ntk", 10, asked.width, 2)),
        multiply=(2, 3, 4, 5), added=(2, 3), seed=asked.seed,
    )  # fmt: skip
