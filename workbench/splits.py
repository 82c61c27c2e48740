"""Training, validation and test problems: one draw without replacement, sliced; the task's variants.

The draw is a stream of raw 64-bit words of PCG64 (whose words NumPy promises never to change), each reduced modulo the
200,000,000 problems of the domain (bias below 1.1e-11), kept where the variant allows the problem and dropped where the
problem came before. So it is uniform without replacement, the same on every machine, and small in memory.
"""

from dataclasses import dataclass
from functools import lru_cache

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


@lru_cache(maxsize=2)
def _drawn(data_seed: int, variant: Variant) -> UInt32[np.ndarray, " problem"]:
    """All problems of one data seed and variant: training, validation, test (20 MB, shared, not writable)."""
    drawn = draw(data_seed, TOTAL_EXAMPLES, variant)
    drawn.flags.writeable = False
    return drawn


def draw(data_seed: int, count: int, variant: Variant = "all") -> UInt32[np.ndarray, " problem"]:
    """`count` different problems of the variant, as domain indices, uniform, in the order drawn.

    A longer draw starts with the shorter one.
    """
    source = np.random.PCG64(data_seed)
    words_a_round = max(1024, count + count // 16)
    drawn = np.empty(0, dtype=np.uint32)
    while len(drawn) < count:
        words = next_indices(source, words_a_round)
        drawn = without_repeats(np.concatenate([drawn, words[in_variant(words, variant)]]))
    return drawn[:count]


def next_indices(source: np.random.PCG64, count: int) -> UInt32[np.ndarray, " word"]:
    """Domain indices from the next `count` raw words of the stream, repeats included."""
    return (source.random_raw(count) % DOMAIN_SIZE).astype(np.uint32)


def without_repeats(index: UInt32[np.ndarray, " word"]) -> UInt32[np.ndarray, " problem"]:
    """Each index where it comes first, in order: one sort of (index, place) packed in 64 bits, one of the places."""
    keys = np.sort(index.astype(np.uint64) << np.uint64(32) | np.arange(len(index), dtype=np.uint64))
    first = np.diff(keys >> np.uint64(32), prepend=np.uint64(2**32)) != 0
    return index[np.sort(keys[first] & np.uint64(2**32 - 1))]


@dataclass(frozen=True)
class Splits:
    """The problems of one data seed and variant: batch t of training depends on those two and t alone."""

    data_seed: int = 1234
    variant: Variant = "all"

    @property
    def _drawn(self) -> UInt32[np.ndarray, " problem"]:
        return _drawn(self.data_seed, self.variant)

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

    def fresh(self, count: int) -> Problems:
        """`count` problems that come after all of these in the same draw: no run of this data seed has met them."""
        return Problems.from_index(draw(self.data_seed, TOTAL_EXAMPLES + count, self.variant)[TOTAL_EXAMPLES:])
