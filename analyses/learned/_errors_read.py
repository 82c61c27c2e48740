"""Which problems each checkpoint gets wrong: all of them where a count lists them, else those of a sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
import torch
from jaxtyping import Int64, UInt8, UInt32

from analyses.learned import _errors_patterns as patterns
from analyses.learned._ablation_measure import shape_of
from analyses.learned._wrong_digits import RightDigits
from workbench import forward
from workbench.checkpoint import Checkpoint
from workbench.errors import BadInput
from workbench.exhaustive.result import SUMMARY, read
from workbench.recipe import Variant
from workbench.sample import sample
from workbench.task import ANSWER_POSITIONS, POSITIONS_READ, Problems, encode

COUNTS = "exhaustive"  # folder beside the checkpoints, where `workbench evaluate --exhaustive` writes
CHUNK = 2_000  # problems a forward pass
OPERATORS = ("addition", "subtraction")


@dataclass(frozen=True, eq=False)
class Wrong:
    """The problems one model gets wrong, by domain index in order, and what it says of them.

    `said` are the tokens in place of the five digits, each with the right ones before it. Of a list they are generated
    answers: the same up to the first wrong digit, which what follows has read. Then `every` is False.
    """

    checkpoint: Checkpoint
    index: UInt32[np.ndarray, " wrong"]
    said: UInt8[np.ndarray, "wrong 5"]
    every: bool

    @property
    def name(self) -> str:
        """The checkpoint's."""
        return self.checkpoint.name

    @property
    def shape(self) -> str:
        """What its seeds share."""
        return shape_of(self.checkpoint.config)

    @cached_property
    def problems(self) -> Problems:
        """The problems themselves."""
        return Problems.from_index(self.index)

    @cached_property
    def exact(self) -> RightDigits:
        """Their right digits."""
        return RightDigits(self.problems)

    @cached_property
    def place(self) -> Int64[np.ndarray, " wrong"]:
        """Place of the first wrong digit, d4 first."""
        return (self.said != self.exact.digits).argmax(axis=1)

    @cached_property
    def patterns(self) -> Int64[np.ndarray, " wrong"]:
        """The pattern of each."""
        return patterns.patterns(self.problems)

    @property
    def subtract(self) -> slice:
        """The subtractions among them, which follow the additions."""
        return slice(int(np.searchsorted(self.problems.subtract, True)), None)

    def of(self, operator: str) -> slice:
        """Those of one operator."""
        return self.subtract if operator == "subtraction" else slice(self.subtract.start)


@dataclass(frozen=True, eq=False)
class Asked:
    """Models asked the same problems: the whole domain, or a sample (by domain index)."""

    variant: Variant
    models: list[Wrong]
    sizes: Int64[np.ndarray, " pattern"]
    index: UInt32[np.ndarray, " problem"] | None = None

    @property
    def words(self) -> str:
        """What was asked; no other group has the same words."""
        kind = "problem" if self.variant == "all" else f"{self.variant} problem"
        return f"every {kind}" if self.counted else f"a sample of {self.total:,} {kind}s"

    @property
    def counted(self) -> bool:
        """Whether every problem of the domain was asked, so that nothing has a sampling interval."""
        return self.index is None

    @property
    def total(self) -> int:
        """How many were asked."""
        return int(self.sizes.sum())

    def n(self, operator: str) -> int:
        """Problems of an operator."""
        return int(self.sizes[patterns.of_operator(operator)].sum())


def listed(checkpoint: Checkpoint, counts: Path | None) -> Wrong | None:
    """The wrong problems that a count lists, if there is one: in `counts`, or in `exhaustive` beside the checkpoint.

    Raises BadInput when the count is of other weights, or damaged.
    """
    folder = (counts or checkpoint.folder.parent / COUNTS) / checkpoint.name
    if checkpoint.config.problems == "ordered" or not (folder / SUMMARY).is_file():
        return None
    found = read(folder)
    if (found.weights_sha256, found.problems) != (checkpoint.weights_sha256, checkpoint.config.problems):
        raise BadInput(f"{folder}: a count of other weights than those of {checkpoint.name}; count again")
    if not found.listed:
        return None
    table = found.wrong_problems()
    problems = Problems(table["a"].to_numpy(), table["b"].to_numpy(), (table["operator"] == "-").to_numpy())
    letters = np.frombuffer("".join(table["answer"]).encode(), np.uint8).reshape(-1, 5)
    said = np.where(letters < ord("0"), np.uint8(10), letters - np.uint8(ord("0")))  # + and - are no digits, nor is =
    return Wrong(checkpoint, problems.index, said, every=False)


@torch.no_grad()
def sampled(checkpoint: Checkpoint, problems: Problems) -> Wrong:
    """The wrong ones among problems given in the order of their index."""
    weights, architecture = forward.tensors(checkpoint.weights), checkpoint.config.architecture
    tokens = torch.from_numpy(encode(problems, hide_sign=checkpoint.config.problems == "sign-hidden"))
    parts = [
        forward.logits(weights, part[:, :POSITIONS_READ], architecture)[:, ANSWER_POSITIONS].argmax(dim=-1)
        for part in tokens.split(CHUNK)
    ]
    said, right = torch.cat(parts).to(torch.uint8).numpy(), RightDigits(problems).digits
    wrong = (said != right).any(axis=1)
    return Wrong(checkpoint, problems.index[wrong], said[wrong], every=True)


def ask(checkpoints: Sequence[Checkpoint], count: int, seed: int, counts: Path | None) -> list[Asked]:
    """Every checkpoint's wrong problems, those asked the same problems together; lists come first."""
    asked: dict[tuple[bool, Variant], Asked] = {}
    for checkpoint in checkpoints:
        variant, found = checkpoint.config.problems, listed(checkpoint, counts)
        key = (found is None, variant)
        if key not in asked:
            if found is not None:
                asked[key] = Asked(variant, [], patterns.sizes(variant))
            else:
                index = np.sort(sample(count, seed, variant).index)
                of = patterns.patterns(Problems.from_index(index))
                asked[key] = Asked(variant, [], np.bincount(of, minlength=patterns.PATTERNS), index)
        index = cast("UInt32[np.ndarray, ' problem']", asked[key].index)
        asked[key].models.append(found or sampled(checkpoint, Problems.from_index(index)))
    return [asked[key] for key in sorted(asked)]
