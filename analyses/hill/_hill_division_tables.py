"""The tables of `hill-division`."""

import statistics
from typing import TYPE_CHECKING, Any

from jaxtyping import Bool
from torch import Tensor

from analyses.hill._hill_division_training import PASSED, SHOWN, TESTS, Answers, Divisions
from workbench.hill.formats import UNCOUNTED, ulps
from workbench.statistics import wilson

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
PUBLISHED = {"script": "reliably; three ticks"}  # the report's words; no numbers are published


def passes(said: Answers, which: str = "printed") -> Bool[Tensor, "seed case"]:
    """The script's own test of each answer: a squared error below 1e-4."""
    return (getattr(said, which) - said.native).square() < PASSED


def native_bits(said: Answers, which: str) -> Bool[Tensor, "seed case"]:
    """Whether each answer is the native quotient to the last bit."""
    return getattr(said, which).eq(said.native)


def summary(found: list[Divisions], said: list[Answers]) -> "pd.DataFrame":
    """One row a variant."""
    import pandas as pd

    rows = []
    for one, answer in zip(found, said, strict=True):
        exact, n = int(one.exact.sum()), len(one.exact)
        low, high = wilson(exact, n)
        ticks = int(passes(answer).all(dim=1).sum())
        soon = [epochs for epochs in one.exact_after.tolist() if epochs]
        rows.append(
            {
                "variant": one.variant.name,
                "n": n,
                "exact": exact / n,
                "low": low,
                "high": high,
                "ticked": ticks / n,
                "epochs": float(statistics.median(soon)) if soon else float("nan"),
                "distance": float((one.W - one.snapped.new_tensor([1, -1])).abs().amax(dim=1).median()),
                "published": PUBLISHED.get(one.variant.name, ""),
            }
        )
    return pd.DataFrame(rows)


def cases(found: list[Divisions], said: list[Answers]) -> "pd.DataFrame":
    """One row a variant and test: shares of units that pass it, or answer native division's bits, in three ways.

    `largest_ulps` is that of exact units, snapped, in sign-exact powers; -1 without any.
    """
    import pandas as pd

    rows = []
    for one, answer in zip(found, said, strict=True):
        for place, (a, b) in enumerate(TESTS):
            row: Row = {"variant": one.variant.name, "test": f"{a:g} / {b:g}", "native": float(answer.native[place])}
            n = len(one.exact)
            for name, right in (
                ("ticked", passes(answer)),
                ("bits", native_bits(answer, "printed")),
                ("bits_snapped", native_bits(answer, "snapped")),
                ("bits_snapped_real", native_bits(answer, "snapped_real")),
            ):
                k = int(right[:, place].sum())
                low, high = wilson(k, n)
                row |= {name: k / n, f"{name}_low": low, f"{name}_high": high}
            off = ulps(answer.snapped[:, place], answer.native[place].expand(n))[one.exact]
            row |= {"n": n, "largest_ulps": int(off[off != UNCOUNTED].max()) if len(off) else -1}
            rows.append(row)
    return pd.DataFrame(rows)


def losses(found: list[Divisions]) -> "pd.DataFrame":
    """One row a variant and an epoch at which the script prints its loss: median and ends over the seeds."""
    import pandas as pd

    rows = []
    for one in found:
        for epoch, values in zip(SHOWN, one.shown, strict=False):
            row: Row = {"variant": one.variant.name, "epoch": epoch, "median": float(values.median())}
            rows.append(row | {"smallest": float(values.min()), "largest": float(values.max()), "n": len(values)})
    return pd.DataFrame(rows)


def units(found: list[Divisions], first: int) -> "pd.DataFrame":
    """One row a unit: raw parameters, weights, whether exact once snapped, and after how many epochs (0: never)."""
    import pandas as pd

    rows = []
    for one in found:
        for place in range(len(one.exact)):
            row: Row = {"variant": one.variant.name, "seed": first + place}
            for name, values in (("W_hat", one.W_hat), ("M_hat", one.M_hat), ("W", one.W)):
                row |= {f"{name}_1": float(values[place, 0]), f"{name}_2": float(values[place, 1])}
            row |= {"exact": bool(one.exact[place]), "exact_after": int(one.exact_after[place])}
            rows.append(row)
    return pd.DataFrame(rows)
