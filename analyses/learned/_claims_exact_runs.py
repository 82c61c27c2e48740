"""The analyses of exact units and kernel machines, as short as the ledger's rules allow: some 85 seconds in all."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from analyses.learned._claims_hill import DIVISION_EPOCHS
from workbench.analysis import Analysis

if TYPE_CHECKING:
    import pandas as pd

SIZES: dict[str, dict[str, Any]] = {
    "hill-saturation": {"epochs": 1},
    "hill-momentum": {"seeds": 2, "epochs": 3},
    "hill-optimizers": {"seeds": 2, "epochs": 2},
    "hill-fractional": {"seeds": 1, "epochs": 3},
    "hill-precision": {"samples": 200_000, "checked": 1_000},
    "hill-composition": {"seeds": 6, "steps": 1_000},
    "hill-division": {"seeds": 200, "epochs": DIVISION_EPOCHS},
    "hill-inalu": {"seeds": 1, "epochs": 16, "lottery_seeds": 10},
    "hill-initialisation": {"seeds": 2, "epochs": 2},
    "hill-plateaus": {"starts": 20, "others": 2},
    "ntk-exhaustive": {"bits": 10},
}
PROGRAMS = 500
KS = (5, 10, 15, 20, 25, 30)  # bits of permutations, of the published counts
ERROR = 0.1  # of the first published experiment
TRIALS: dict[str, int] = {"nngp": 20, "ntk": 6}
ADD, MULTIPLY = (2, 3, 4, 5, 6, 7, 8), (2, 3, 4, 5)  # bits of which every input is followed
DOUBLINGS = tuple(2**i for i in range(1, 12))


def asked(name: str) -> Analysis:
    """The analysis of this name, of the folder it stands in, whatever else is installed."""
    folder, module = ("hill" if name.startswith("hill-") else "kernel"), name.replace("-", "_")
    return getattr(importlib.import_module(f"analyses.{folder}.{module}"), module)


@contextmanager
def one_thread() -> Iterator[None]:
    """These tensors are small, so that threads would wait for each other; afterwards as many threads as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run() -> "Mapping[str, Mapping[str, pd.DataFrame]]":
    """The tables by analysis and name."""
    with one_thread():
        found: dict[str, Mapping[str, pd.DataFrame]] = {}
        for name, sizes in SIZES.items():
            one = asked(name)
            found[name] = one.function([], one.options(**sizes)).tables
        return found | {"ntk-sbn": sbn_tables(PROGRAMS), "ntk-ensembles": ensemble_tables()}


def sbn_tables(programs: int) -> "Mapping[str, pd.DataFrame]":
    """Tables `cases` and `paddings` of `ntk-sbn`, which has no shorter form: its longest programs left out."""
    from analyses.kernel import _ntk_sbn_rule as rule
    from analyses.kernel import _ntk_sbn_runs as runs
    from analyses.kernel import _ntk_sbn_tables as tables
    from workbench.ntk.assembler import load
    from workbench.ntk.sbn import Size

    cases = [runs.singles(Size(*size), 0) for size in runs.SINGLES]
    cases.append(runs.fuzz(Size(*runs.FUZZ), programs, runs.FUZZ_INSTRUCTIONS, 0))
    factors = runs.factors()
    attempts = [rule.attempt(factors, padding) for padding in (0, load("multiply").size.padding)]
    return {"cases": tables.whole([*cases, attempts[-1].case]), "paddings": tables.attempts(attempts)}


def ensemble_tables() -> "Mapping[str, pd.DataFrame]":
    """Tables `counts`, `published` and `orders` of `ntk-ensembles` without trained networks, which take a minute."""
    import pandas as pd

    from analyses.kernel import _ntk_ensembles_arithmetic as arithmetic
    from analyses.kernel import _ntk_ensembles_tables as tables
    from analyses.kernel._ntk_ensembles_permutation import FORMS, law_trials

    trials = [row for form in FORMS for k in KS for row in law_trials(k, form, (ERROR,), TRIALS[form], 0)]
    cells = tables.counts(trials)
    chosen: tuple[tuple[arithmetic.Operation, Sequence[int]], ...] = (("add", ADD), ("multiply", MULTIPLY))
    predicted = [
        row
        for operation, every in chosen
        for bits in every
        for row in arithmetic.predictions(operation, arithmetic.reached(operation, bits))
    ]
    ceilings = [arithmetic.ceiling(name, bits) for name in ("permute", "add", "multiply") for bits in DOUBLINGS]
    orders = pd.DataFrame(tables.orders(predicted, ceilings))
    return {"counts": pd.DataFrame(cells), "published": tables.beside(cells), "orders": orders}
