"""The most confusable problems: wrong in most models, and among those the ones whose right answer costs most."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from analyses.learned._errors_read import OPERATORS, Asked
from workbench import evaluation, forward
from workbench.generation import generate
from workbench.structure import categories, structure
from workbench.task import CHARACTERS, Problems, format_answers, format_problems

CANDIDATES = 2_000  # of the problems wrong in most models, so many have their loss computed
SHOWN = 20  # of each operator


def hardest_rows(asked: Asked) -> Iterator[dict[str, Any]]:
    """The most confusable problems of each operator, with what the models answer when they write it themselves.

    `loss` is the mean cross-entropy of the right digits over models, in nats a digit; `candidates_loss` its mean over
    the `candidates`, those wrong in most models, from which the rows are the hardest.
    """
    for operator in OPERATORS:
        index, wrong_in = np.unique(
            np.concatenate([model.index[model.of(operator)] for model in asked.models]), return_counts=True
        )
        if not len(index):
            continue
        first = np.argsort(-wrong_in, kind="stable")[:CANDIDATES]
        index, wrong_in = index[first], wrong_in[first]
        loss = _losses(asked, Problems.from_index(index))
        order = np.lexsort((-loss, -wrong_in))[:SHOWN]
        problems = Problems.from_index(index[order])
        answers, found = _answers(asked, problems), structure(problems)
        columns = zip(
            format_problems(problems), format_answers(problems.answers), categories(problems, "class").tolist(),
            found.count.tolist(), wrong_in[order].tolist(), loss[order].tolist(), answers, strict=True,
        )  # fmt: skip
        for rank, (problem, exact, of, moves, times, nats, said) in enumerate(columns, start=1):
            row: dict[str, Any] = {"asked": asked.words, "operator": operator, "rank": rank, "problem": problem}
            row |= {"exact": exact, "class": of, "count": moves, "wrong_in": times, "models": len(asked.models)}
            row |= {"loss": nats, "candidates": len(index), "candidates_loss": float(loss.mean())}
            yield row | {"answers": said}


def _losses(asked: Asked, problems: Problems) -> np.ndarray:
    losses = []
    for model in asked.models:
        config = model.checkpoint.config
        weights = forward.tensors(model.checkpoint.weights)
        losses.append(evaluation.run(weights, config.architecture, problems, config.problems).loss)
    return np.mean(losses, axis=0)


def _answers(asked: Asked, problems: Problems) -> list[str]:
    """What the models write for each problem, commonest first: `05999 x4, 04999 x2`."""
    written = []
    for model in asked.models:
        config = model.checkpoint.config
        weights, hide = forward.tensors(model.checkpoint.weights), config.problems == "sign-hidden"
        tokens = generate(weights, config.architecture, problems, hide_sign=hide).tokens[:, 1:]
        written.append(["".join(row) for row in np.array(list(CHARACTERS))[tokens].tolist()])
    return [
        ", ".join(f"{answer} x{times}" for answer, times in Counter(of_one).most_common())
        for of_one in zip(*written, strict=True)
    ]
