"""Exact features of problems of one operator and sign, in nested sets, and least squares from them.

The order of the sets is by what spans what: the phases of a sum are functions of the sum, so they stand before it, and
after it would add nothing. `totals` joins each place's sum (or difference) with the carry (or borrow) that arrives, so
it spans the answer's digits: from there on a surrogate is told the answer, and what survives says only that a
component's output is a function of it. Up to `carries` no set spans any answer digit but the units' and d4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from analyses.learned._clock_families import FREQUENCIES, waves
from workbench.structure import structure
from workbench.task import ANSWER_TOKENS, Problems, digits_of, encode

NOTHING, DIGITS, PHASES, SUMS, CARRIES, TOTALS = "nothing", "digits", "phases", "sums", "carries", "totals"
ANSWER, SHUFFLED = "answer digit", "shuffled totals"
NESTED = (DIGITS, PHASES, SUMS, CARRIES, TOTALS)
SETS = (NOTHING, *NESTED, ANSWER, SHUFFLED)  # the mean; the nested; the ceiling of MLPs; the control
TOLD = (TOTALS, ANSWER)  # sets from which every answer digit can be read off
POSITIONS = 5  # answer positions, which a surrogate is fitted at one by one
TOLERANCE = 1e-10  # of a set's largest eigenvalue: below it a direction is a dependence among the features

Matrix = Float[Tensor, "problem feature"]


def _one_hot(values: np.ndarray, low: int, high: int) -> Float[np.ndarray, "problem value"]:
    return (values[:, None] == np.arange(low, high + 1)).astype(np.float32)


def blocks(problems: Problems) -> dict[str, Float[np.ndarray, "problem feature"]]:
    """What each nested set adds to the one before, for problems of one operator and sign. Places are units first.

    digits: each operand digit, one-hot. phases: cosine and sine of `2 pi k (a_i + b_i) / 10` and of the difference,
    k = 1..5. sums: a_i + b_i and a_i - b_i, one-hot. carries: whether each place carries (borrows, larger minus
    smaller). totals: a_i + b_i + carry, or larger minus smaller minus borrow, one-hot.
    """
    a, b = (digits_of(of)[:, ::-1].astype(np.int64) for of in (problems.a, problems.b))
    moves = structure(problems).moves
    arrives = np.pad(moves[:, :-1], ((0, 0), (1, 0))).astype(np.int64)
    minus, negative = problems.subtract[:, None], problems.negative[:, None]
    totals = np.where(minus, np.where(negative, b - a, a - b) - arrives, a + b + arrives)
    places = range(a.shape[1])
    return {
        DIGITS: np.concatenate([_one_hot(of[:, i], 0, 9) for of in (a, b) for i in places], axis=1),
        PHASES: np.concatenate(
            [waves(of[:, i], k)[:, 1:] for of in (a + b, a - b) for i in places for k in FREQUENCIES], axis=1
        ).astype(np.float32),
        SUMS: np.concatenate(
            [*(_one_hot((a + b)[:, i], 0, 18) for i in places), *(_one_hot((a - b)[:, i], -9, 9) for i in places)],
            axis=1,
        ),
        CARRIES: moves.astype(np.float32),
        TOTALS: np.concatenate([_one_hot(totals[:, i], -10, 19) for i in places], axis=1),
    }


@dataclass(frozen=True, eq=False)
class Features:
    """Problems of one operator and sign as features; the first `fitted` are fitted on, the rest scored.

    Every set but `nothing` and `answer digit` also has the answer's digits above, one-hot: the tokens that stand at and
    before the position, which a model has read as it has read the operands.
    """

    problems: Problems
    fitted: int
    seed: int

    @cached_property
    def _answer(self) -> Float[Tensor, "problem position 10"]:
        digits = encode(self.problems)[:, ANSWER_TOKENS].astype(np.int64)
        return torch.from_numpy((digits[..., None] == np.arange(10)).astype(np.float32))

    @cached_property
    def _nested(self) -> tuple[Matrix, dict[str, int]]:
        """A 1, the answer's digits above d0, all nested features side by side; how many of these each set takes."""
        parts = [np.ones((len(self.problems), 1), np.float32), self._answer[:, :-1].flatten(1).numpy()]
        width, stops = 1 + parts[1].shape[1], {}
        for name, part in blocks(self.problems).items():
            parts.append(part)
            width += part.shape[1]
            stops[name] = width
        return torch.from_numpy(np.concatenate(parts, axis=1)), stops

    def columns(self, name: str, position: int) -> Int[Tensor, " feature"]:
        """Which of all features a set takes at one of the five answer positions, d4's first; not for `answer digit`."""
        stops = self._nested[1]
        unread = range(1 + 10 * position, 1 + 10 * (POSITIONS - 1))  # digits of the answer that are still to come
        chosen = [0] if name == NOTHING else [n for n in range(stops.get(name, stops[TOTALS])) if n not in unread]
        return torch.tensor(chosen)

    def of(self, name: str, position: int) -> Matrix:
        """The features of a set at one of the answer positions."""
        return self._answer[:, position] if name == ANSWER else self._nested[0][:, self.columns(name, position)]

    @cached_property
    def _solvers(self) -> dict[tuple[str, int], Float[Tensor, "feature feature"]]:
        return {}

    def _solver(self, name: str, position: int) -> Float[Tensor, "feature feature"]:
        """The pseudo-inverse of a set's moments at a position over the fitted problems, computed once."""
        if (name, position) not in self._solvers:
            x = self.of(name, position)[: self.fitted].double()
            self._solvers[name, position] = torch.linalg.pinv(x.T @ x, rtol=TOLERANCE, hermitian=True)
        return self._solvers[name, position]

    def predict(
        self, targets: Float[Tensor, "fitted position target"], sets: Sequence[str] = SETS
    ) -> dict[str, Float[Tensor, "scored position target"]]:
        """What least squares from each set, fitted on the first problems, says of the targets of the rest.

        The control is fitted on the targets of other problems of the group, so that it knows their mean.
        """
        said: dict[str, list[Tensor]] = {name: [] for name in sets}
        x, order = self._nested[0], torch.from_numpy(np.random.default_rng(self.seed).permutation(self.fitted))
        for position in range(POSITIONS):
            y = targets[:, position]
            moments = {labels: x[: self.fitted].T @ labelled for labels, labelled in ((False, y), (True, y[order]))}
            for name in sets:
                solver = self._solver(TOTALS if name == SHUFFLED else name, position)
                features = self.of(name, position)
                if name == ANSWER:
                    moment = features[: self.fitted].T @ y
                else:
                    moment = moments[name == SHUFFLED][self.columns(name, position)]
                said[name].append(features[self.fitted :] @ (solver @ moment.double()).to(x.dtype))
        return {name: torch.stack(parts, dim=1) for name, parts in said.items()}
