"""Training data of single operations for the open leads: float64 answers, a fresh order every epoch, from a seed."""

import numpy as np
import torch

from analyses.hill._report_protocol import BATCH, GOLDILOCKS, SAMPLES, Distribution, inputs, targets
from workbench.hill.fitting import Stream, Target, shuffled
from workbench.hill.operations import OPERATIONS


def plain_stream(name: str, seed: int, *, within: Distribution = GOLDILOCKS, samples: int = SAMPLES) -> Stream:
    """The stream of an operation: `samples` problems drawn from `within` as the report draws them, batches of 64.

    Problems and batch orders of two operations, or of two seeds, are independent; the answers are the operation's own
    in float64 (not through decimals). Raises BadInput for an unknown operation.
    """
    target = Target.of(name)
    number = list(OPERATIONS).index(name)
    x = inputs(name, within, np.random.default_rng([seed, number]), samples)
    order = shuffled(samples, BATCH, 1000 * seed + number)
    return Stream(target, torch.from_numpy(x), torch.from_numpy(targets(name, x)), order)
