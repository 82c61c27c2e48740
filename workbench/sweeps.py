"""The two short sweeps the recipe rests on, as lists of runs, each with its rule written before it was run.

Learning rate (the recipe the model cards describe: "a six-point probe run on both MLP variants ... the highest rate at
which both remain stable"): six rates x both MLP kinds, two layers, seed 100, 600 steps with the warm-up and cosine of
that length. Stable: the run does not diverge (no non-finite loss), and no validation loss after the warm-up is above
1.5 times the lowest before it. Picked: the highest rate at which both kinds are stable.

Initialisation (left open by the cards): four named choices x both MLP kinds, two layers, seed 100, 1,200 steps.
Picked: the choice with the lowest mean over the two kinds of the best validation loss; a diverged run counts as
infinite; a tie goes to the choice named first.
"""

from collections.abc import Mapping
from typing import get_args

from workbench.recipe import Architecture, Init, Mlp, Recipe, RunConfig

SWEEP_SEED = 100
RATES = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08)
RATE_STEPS = 600
INIT_STEPS = 1200
SPIKE = 1.5


def learning_rate_sweep(steps: int = RATE_STEPS) -> dict[str, RunConfig]:
    """Twelve short runs by folder name."""
    recipe = {"steps": steps, "warmup_steps": min(200, steps // 3), "validation_every": min(50, max(1, steps // 12))}
    return {
        f"lr-{rate:g}-{mlp}": RunConfig(Architecture(mlp=mlp), Recipe(lr=rate, **recipe), seed=SWEEP_SEED)
        for rate in RATES
        for mlp in get_args(Mlp)
    }


def init_sweep(steps: int = INIT_STEPS) -> dict[str, RunConfig]:
    """Eight short runs by folder name."""
    recipe = {"steps": steps, "warmup_steps": min(200, steps // 3)}
    return {
        f"init-{init}-{mlp}": RunConfig(Architecture(mlp=mlp), Recipe(init=init, **recipe), seed=SWEEP_SEED)
        for init in get_args(Init)
        for mlp in get_args(Mlp)
    }


def picked_init(best_losses: Mapping[tuple[str, str], float]) -> str:
    """The initialisation the rule picks from the best validation loss of each (initialisation, MLP kind)."""
    return min(get_args(Init), key=lambda init: sum(best_losses[init, mlp] for mlp in get_args(Mlp)))
