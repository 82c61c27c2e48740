"""The digits a decoder predicts, as its plain float64 forward says, but faster.

A first pass in float32 settles every digit whose runner-up is well behind. Where the two best logits lie within
`NEAR` times the largest |logit|, float64 decides; where they lie within `TIED` even there, the plain float64 forward
itself does. So every prediction is that of the plain float64 forward, and what needed float64 is counted.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float32, UInt8
from torch import Tensor

from workbench import forward
from workbench.engine import eager
from workbench.native import library, predict
from workbench.recipe import Architecture
from workbench.task import ANSWER_POSITIONS, N_CTX, POSITIONS_READ, Problems, encode

NEAR = 1e-3  # of the largest |logit|; float32 errs by less than 1e-5 of it
TIED = 1e-9  # of the largest |logit|; float64 errs by less than 1e-12 of it
FIRST_OPERANDS = library.TILE  # of one block
BLOCK = FIRST_OPERANDS * predict.OPERANDS  # problems of one block: 160,000 neighbours in the domain
CHUNK = 2_000  # problems of one forward pass in torch

Tokens = UInt8[np.ndarray, "problem 5"]
Flags = Bool[np.ndarray, "problem 5"]
Arrays = dict[str, Float32[np.ndarray, "..."]]


@dataclass(frozen=True, eq=False)
class Predictor:
    """A decoder's predictions; `kernels` says whether the hand-written kernels make them, or torch."""

    arrays: Arrays
    architecture: Architecture
    hide_sign: bool = False
    kernels: bool = True
    _wide: dict[str, Tensor] = field(default_factory=dict)

    @property
    def by(self) -> str:
        """What makes the first pass: `kernels` or `torch`."""
        return "kernels" if self.kernels else "torch"

    @classmethod
    def of(cls, arrays: Arrays, architecture: Architecture, hide_sign: bool) -> "Predictor":
        """By the kernels where they are built and fit the architecture, else by torch."""
        kernels = not library.missing(architecture)
        return cls(arrays, architecture, hide_sign, kernels, forward.tensors(arrays, torch.float64))

    def block(self, number: int) -> tuple[Tokens, Flags]:
        """Predicted tokens of the 160,000 problems from index `number * BLOCK` on, everything before each given.

        The second array says which of them float64 decided.
        """
        problems = Problems.from_index(np.arange(number * BLOCK, (number + 1) * BLOCK, dtype=np.uint32))
        tokens = encode(problems, hide_sign=self.hide_sign)
        if self.kernels:
            digits, near = predict.block_digits(
                self.arrays, self.architecture, problems.a[:: predict.OPERANDS].astype(np.int32),
                subtract=bool(problems.subtract[0]), hide_sign=self.hide_sign, nearness=NEAR,
            )  # fmt: skip
        else:
            digits, near = self._by_torch(tokens)
        asked = near.any(axis=1)
        digits[asked] = np.where(near[asked], self.exact(tokens[asked]), digits[asked])
        return digits, near

    @torch.no_grad()
    def _by_torch(self, tokens: UInt8[np.ndarray, "problem 16"]) -> tuple[Tokens, Flags]:
        """The float32 pass without the kernels."""
        weights = forward.tensors(self.arrays)
        digits, near = np.empty((len(tokens), 5), np.uint8), np.empty((len(tokens), 5), bool)
        for start in range(0, len(tokens), CHUNK):
            rows = slice(start, start + CHUNK)
            logits, _ = eager.answer_logits(weights, torch.from_numpy(tokens[rows]), self.architecture)
            (best, second), kinds = logits.topk(2, dim=1).values.unbind(1), logits.argmax(dim=1)
            digits[rows] = kinds.T.numpy()
            near[rows] = ~(best - second >= NEAR * logits.abs().amax(dim=1)).T.numpy()  # NaN is near
        return digits, near

    def exact(self, tokens: UInt8[np.ndarray, "problem 16"]) -> Tokens:
        """Predicted tokens of any problems, decided in float64."""
        if not self.kernels:
            return self.plain(tokens)
        wide = {name: value.numpy() for name, value in self._wide.items()}
        digits, tied = predict.digits_of_any(wide, self.architecture, tokens, TIED)
        if (asked := tied.any(axis=1)).any():
            digits[asked] = self.plain(tokens[asked])
        return digits

    @torch.no_grad()
    def plain(self, tokens: UInt8[np.ndarray, "problem 16"]) -> Tokens:
        """What the plain float64 forward predicts: the definition of all the above."""
        digits = np.empty((len(tokens), 5), np.uint8)
        for start in range(0, len(tokens), CHUNK):
            rows = slice(start, start + CHUNK)
            logits = forward.logits(self._wide, torch.from_numpy(tokens[rows, :POSITIONS_READ]), self.architecture)
            digits[rows] = logits[:, ANSWER_POSITIONS].argmax(dim=-1).numpy()
        return digits

    def generated(self, problems: Problems) -> Tokens:
        """The five tokens written one after another, each after those written before it, decided in float64."""
        tokens = encode(problems, hide_sign=self.hide_sign)
        for place in range(5):
            tokens[:, N_CTX - 5 + place] = self.exact(tokens)[:, place]
        return tokens[:, N_CTX - 5 :]
