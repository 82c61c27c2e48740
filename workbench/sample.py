"""A sample of problems to look at: so many drawn with a seed, of one category if asked."""

import numpy as np

from workbench.errors import BadInput
from workbench.recipe import Variant
from workbench.splits import draw, in_variant, next_indices, without_repeats
from workbench.statistics import wilson
from workbench.structure import in_category
from workbench.task import DOMAIN_SIZE, Problems

MOST = 10_000_000  # problems a sample
WORDS_A_ROUND = 1_000_000
ROUNDS_BEFORE_JUDGING = 4  # the rarest category holds 1 problem in 6,000, so it is met about 700 times by then


def sample(count: int, seed: int, variant: Variant = "all", category: str | None = None) -> Problems:
    """`count` different problems of the variant (and of one category of `workbench.structure`), uniform, by seed.

    The order is that of `splits.draw` with the same seed, what is of another category left out; so a larger sample
    starts with the smaller one, and the data seed of a run gives its training problems. Raises BadInput for a count
    outside 1..10,000,000, an unknown category and one that holds fewer problems.
    """
    if not 1 <= count <= MOST:
        raise BadInput(f"a sample of {count:,} problems; ask for 1 to {MOST:,}")
    if seed < 0:
        raise BadInput(f"the seed of a sample is {seed}; choose 0 or more")
    if category is None:
        return Problems.from_index(draw(seed, count, variant))
    in_category(Problems.from_index(np.zeros(1, np.uint32)), category)  # refuses an unknown name before the work
    source = np.random.PCG64(seed)
    found, hits = np.empty(0, dtype=np.uint32), 0
    for words_seen in range(WORDS_A_ROUND, DOMAIN_SIZE + 1, WORDS_A_ROUND):
        words = next_indices(source, WORDS_A_ROUND)
        words = words[in_variant(words, variant)]
        words = words[in_category(Problems.from_index(words), category)]
        found = without_repeats(np.concatenate([found, words]))
        if len(found) >= count:
            return Problems.from_index(found[:count])
        hits += len(words)
        at_most = wilson(hits, words_seen)[1] * DOMAIN_SIZE if hits else 0
        if words_seen >= ROUNDS_BEFORE_JUDGING * WORDS_A_ROUND and count > at_most:
            break
    raise BadInput(
        f"category {category!r} of the variant {variant} holds too few problems for a sample of {count:,}: "
        f"{words_seen:,} draws met {len(found):,}; ask for fewer"
    )
