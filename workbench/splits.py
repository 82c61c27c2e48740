"""Training, validation and test problems: one draw without replacement, sliced; the task's variants.

The draw is a stream of raw 64-bit words of PCG64 (whose words NumPy promises never to change), each reduced modulo the
200,000,000 problems of the domain (bias below 1.1e-11), kept where the variant allows the problem and dropped where the
problem came before. So it is uniform without replacement, the same on every machine, and small in memory.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, UInt32

from workbench.recipe import TEST_EXAMPLES, TRAIN_EXAMPLES, VALIDATION_EXAMPLES, Variant
from workbench.task import DOMAIN_SIZE, PAIR_COUNT, Problems

TOTAL_EXAMPLES = TRAIN_EXAMPLES + VALIDATION_EXAMPLES + TEST_EXAMPLES


def in_variant(index: UInt32[np.ndarray, " problem"], variant: Variant) -> Bool[np.ndarray, " problem"]:
    """Which problems a variant contains: `ordered` keeps a >= b for both operators."""
    match variant:
        case "all" | "sign-hidden":
            return np.ones(len(index), dtype=bool)
        case "addition":
            return index < PAIR_COUNT
        case "subtraction":
            return index >= PAIR_COUNT
        case "ordered":
            a, b = np.divmod(index % PAIR_COUNT, np.uint32(10_000))
            return a >= b


def draw(data_seed: int, count: int, variant: Variant = "all") -> UInt32[np.ndarray, " problem"]:
    """`count` different problems of the variant, as domain indices, uniform, in the order drawn.

    A longer draw starts with the shorter one.
    """
    source = np.random.PCG64(data_seed)
    words_a_round = max(1024, count + count // 16)
    drawn = np.empty(0, dtype=np.uint32)
    while len(drawn) < count:
        words = (source.random_raw(words_a_round) % DOMAIN_SIZE).astype(np.uint32)
        together = np.concatenate([drawn, words[in_variant(words, variant)]])
        _, first = np.unique(together, return_index=True)
        first.sort()
        drawn = together[first]
    return drawn[:count]


@dataclass(frozen=True)
class Splits:
    """The problems of one data seed and variant: batch t of training depends on those two and t alone."""

    data_seed: int = 1234
    variant: Variant = "all"

    @cached_property
    def _drawn(self) -> UInt32[np.ndarray, " problem"]:
        return draw(self.data_seed, TOTAL_EXAMPLES, self.variant)

    def batch(self, step: int, size: int) -> Problems:
        """Problems of training step `step`; the last batch of a pass holds what is left (832 of 1024)."""
        return Problems.from_index(self._drawn[:TRAIN_EXAMPLES][step * size : (step + 1) * size])

    @property
    def train(self) -> Problems:
        """All 5,000,000 training problems."""
        return Problems.from_index(self._drawn[:TRAIN_EXAMPLES])

    @property
    def validation(self) -> Problems:
        """The 10,000 validation problems."""
        return Problems.from_index(self._drawn[TRAIN_EXAMPLES : TRAIN_EXAMPLES + VALIDATION_EXAMPLES])

    @property
    def test(self) -> Problems:
        """The 10,000 test problems."""
        return Problems.from_index(self._drawn[TRAIN_EXAMPLES + VALIDATION_EXAMPLES :])
