"""Analysis `hill-saturation`: where weights become exact, and which snapping thresholds are safe (sections 2.1, 2.2).

- *Thresholds*: the smallest number of each format at which tanh and sigmoid return exactly 1, and sigmoid exactly 0,
  found by bisection. Every number of the 16-bit formats is tried besides, every float32 with `full`, and otherwise a
  million on either side. `rounded` is where a correctly rounded function would saturate.
- *iNALU's 20*: whether raw values of 20 give an exact weight, format by format.
- *Snapping*: eight operations by ten optimizers are trained from 0. A unit is *learned* when its weights lie nearer to
  the selection than to another, *exact* at a threshold when snapping makes them the selection to the last bit. The
  control are units trained to roots, whose weights are no selections: one is *touched* when snapping moves its weight
  by more than 1e-3. The safe band runs from the threshold at which 95% of the units are exact that any threshold below
  its end makes exact, to the last that touches no root. Snapping the weight itself stands beside the report's rule,
  which snaps tanh to -1 or 1 and sigmoid to 0 or 1.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analyses.hill._hill_saturation_findings import FULL_EPOCHS, PUBLISHED_BAND, of_snapping, of_thresholds, short
from analyses.published import load
from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob
from workbench.statistics import wilson

if TYPE_CHECKING:
    import pandas as pd

    from analyses.hill._hill_saturation_snapping import Parked, Snapped
    from analyses.hill._hill_saturation_thresholds import AtTwenty, Threshold
    from workbench.checkpoint import Checkpoint

FULL_SEEDS = 3


@dataclass(frozen=True)
class Options:
    """How long and how often units are trained."""

    epochs: int = knob(20, "epochs of 1,000 steps that each unit of the snapping sweep is trained")
    seeds: int = knob(1, "training sets and batch orders")
    seed: int = knob(1, "the first of them")
    full: bool = knob(False, f"the published {FULL_EPOCHS} epochs, {FULL_SEEDS} seeds, and all float32 numbers tried")

    def __post_init__(self) -> None:
        check_types(self)
        if not (1 <= self.epochs <= 10_000 and 1 <= self.seeds <= 100):
            raise BadInput(f"epochs and seeds are {self.epochs} and {self.seeds}, expected 1 to 10,000 and 1 to 100")
        if not 0 <= self.seed < 2**31:
            raise BadInput(f"seed is {self.seed}, expected 0 to 2**31 - 1")


@analysis(
    question="Where does each number format make weights exact, and which snapping thresholds are safe?",
    options=Options,
    inputs="nothing",
)
def hill_saturation(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Thresholds beside the published ones, iNALU's 20, the snapping sweep, and the surfaces they live on."""
    import pandas as pd

    from analyses.hill import _hill_saturation_snapping as snapping
    from analyses.hill._hill_saturation_figures import parked_figure, snapping_figure
    from analyses.hill._hill_saturation_surfaces import gradient_figure, hill_figure, primitives_figure
    from analyses.hill._hill_saturation_thresholds import FORMATS, at_twenty, thresholds

    epochs, count = (FULL_EPOCHS, FULL_SEEDS) if options.full else (options.epochs, options.seeds)
    found = [threshold for dtype in FORMATS for threshold in thresholds(dtype, options.full)]
    twenty = [at_twenty(dtype) for dtype in FORMATS]
    seeds = range(options.seed, options.seed + count)
    parked = snapping.train([*snapping.OPERATIONS, *snapping.ROOTS], epochs, seeds)
    rows = snapping.sweep(parked)

    beside = beside_published(found)
    units = units_table(parked)
    tables = {
        "summary": summary(beside),
        "thresholds": pd.DataFrame(beside),
        "inalu": twenty_table(twenty),
        "snapping": snapping_table(rows),
        "units": units,
    }
    figures = {
        "hill": hill_figure(),
        "gradient": gradient_figure(),
        "primitives": primitives_figure(),
        "snapping": snapping_figure(rows, PUBLISHED_BAND),
        "parked": parked_figure(units),
    }
    findings = [
        *short(epochs),
        *of_thresholds(beside, found, twenty),
        *of_snapping(parked, rows, epochs >= FULL_EPOCHS),
    ]
    return Result(tables, figures, findings)


def beside_published(found: "list[Threshold]") -> list[dict[str, Any]]:
    """One row a threshold, with the published one (NaN where there is none) and `agrees` (yes, no, or empty)."""
    import torch

    from analyses.hill._hill_saturation_thresholds import first_hundredth, name

    published = {row["precision"]: row for row in load("hill")["table_2_2_thresholds"]}
    keys = {"tanh(x) = 1": "tanh_eq_1_at", "sigmoid(x) = 1": "sigmoid_eq_1_at"}
    rows = []
    for one in found:
        theirs = published.get(name(one.dtype), {}).get(keys.get(one.factor, ""), math.nan)
        hundredth = first_hundredth(one.dtype, one.factor, one.found)
        agrees = "" if math.isnan(theirs) else "yes" if hundredth == theirs else "no"
        row = {"format": name(one.dtype), "eps": torch.finfo(one.dtype).eps, "factor": one.factor, "from": one.found}
        row |= {"from_hundredth": hundredth, "published": theirs, "agrees": agrees, "rounded": one.rounded}
        rows.append(row | {"tried": one.tried, "everything": one.everything, "exceptions": one.exceptions})
    return rows


def summary(beside: list[dict[str, Any]]) -> "pd.DataFrame":
    """Table 2.2: a row a format."""
    import pandas as pd

    lines: dict[str, dict[str, Any]] = {}
    for row in beside:
        line = lines.setdefault(row["format"], {"format": row["format"], "eps": f"{row['eps']:.1e}"})
        line[row["factor"]] = f"{row['from']:.6g}"
        if row["factor"] != "sigmoid(-x) = 0":
            line[f"{row['factor']}, published"] = "" if math.isnan(row["published"]) else f"{row['published']:.2f}"
    return pd.DataFrame(list(lines.values()))


def twenty_table(twenty: "list[AtTwenty]") -> "pd.DataFrame":
    """Table `inalu`: a row a format."""
    import pandas as pd

    from analyses.hill._hill_saturation_thresholds import name

    return pd.DataFrame(
        {"format": name(one.dtype), "tanh(20)": one.tanh, "sigmoid(20)": one.sigmoid, "W": one.W, "below_1": 1 - one.W,
         "ulps_below_1": one.ulps, "exact": one.W == 1, "snapped": one.snapped}
        for one in twenty
    )  # fmt: skip


def snapping_table(rows: "list[Snapped]") -> "pd.DataFrame":
    """Table `snapping`: a row a rule and threshold, with 95% Wilson intervals."""
    import pandas as pd

    lines = []
    for row in rows:
        low, high = wilson(row.exact, row.learned) if row.learned else (math.nan, math.nan)
        share = row.exact / row.learned if row.learned else math.nan
        line = {"rule": row.rule, "threshold": row.threshold, "exact": row.exact, "learned": row.learned}
        line |= {"share": share, "low": low, "high": high, "roots_touched": row.touched, "roots": row.roots}
        lines.append(line)
    return pd.DataFrame(lines)


def units_table(parked: "Parked") -> "pd.DataFrame":
    """Table `units`: where each unit ended, and the smallest threshold of each rule that makes it exact (NaN: none)."""
    import pandas as pd
    import torch

    from analyses.hill._hill_saturation_snapping import RULES, THRESHOLDS, exact
    from workbench.hill.constraint import constrain

    W = constrain(parked.W_hat, parked.M_hat)
    columns: dict[str, Any] = {"operation": parked.names, "optimizer": parked.optimizers, "seed": parked.seeds}
    for label, values in (("W_hat", parked.W_hat), ("M_hat", parked.M_hat), ("w", W)):
        columns |= {f"{label}_{place + 1}": values[:, place].tolist() for place in range(2)}
    columns |= {"distance": parked.distance.tolist(), "learned": parked.learned.tolist()}
    for rule in RULES:
        needed = torch.full((len(parked.names),), math.nan, dtype=torch.float64)
        for threshold in (*reversed(THRESHOLDS), 0.0):
            needed[exact(parked, rule, threshold)] = threshold
        columns[f"exact_from_{rule}"] = needed.tolist()
    return pd.DataFrame(columns)
