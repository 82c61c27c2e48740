"""Analysis `hill-zero-crossing`: why matched training of a x b fails on U(-5, 5), from the expected loss's surface."""

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses._rows import grouped, share, where
from analyses.published import load
from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob
from workbench.statistics import mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses._rows import Row
    from analyses.hill._hill_zero_crossing_surface import Inputs
    from workbench.checkpoint import Checkpoint

UNIFORM = (0.5, 1.0, 1.25, 1.5, 1.65, 1.75, 1.85, 2.0, 2.5, 3.5, 5.0, 10.0)
NORMAL = (0.7, 1.0, 1.3)  # 1 is the report's N(-3, 3)
POSITIVE = (1.75, 5.0, 10.0)  # widths at which magnitudes alone are drawn, the control
REPORTED_SEEDS = 100  # at least, of the two inputs that the report trains on
FULL = (200, 1000, 20_000)  # seeds, random starts, steps of the long form
STARTS = (0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.8)  # both weights, on U(-5, 5)


@dataclass(frozen=True)
class Options:
    """How many runs of each kind."""

    seeds: int = knob(40, "seeds a width or start; the reported U(-5, 5) gets 100 at least")
    starts: int = knob(200, "random starting weights on U(-5, 5), for the map")
    full: bool = knob(False, "200 seeds a width and start, 1,000 random starts, 20 epochs: about half an hour")
    seed: int = knob(200, "the first data seed")

    def __post_init__(self) -> None:
        check_types(self)
        if not 2 <= self.seeds <= 1000 or not 10 <= self.starts <= 10_000:
            raise BadInput(f"{self.seeds} seeds and {self.starts} starts, expected 2 to 1000 and 10 to 10,000")
        if not 0 <= self.seed < 10**9:
            raise BadInput(f"seed is {self.seed}, expected 0 to 10^9")


@analysis(
    question="Why does matched training on U(-5, 5) fail for multiplication?",
    options=Options,
    inputs="nothing",
)
def hill_zero_crossing(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """The expected loss in closed form by width, and success rates beside it, with positive inputs as the control."""
    import pandas as pd

    from analyses.hill import _hill_zero_crossing_figures as figures
    from analyses.hill import _hill_zero_crossing_findings as findings
    from analyses.hill import _hill_zero_crossing_runs as runs
    from analyses.hill._hill_zero_crossing_surface import Inputs

    count, maps, steps = FULL if options.full else (options.seeds, options.starts, runs.STEPS)
    seeds = range(options.seed, options.seed + count)
    many = range(options.seed, options.seed + max(REPORTED_SEEDS, count))
    scales = [*(Inputs("uniform", c) for c in UNIFORM), *(Inputs("normal", s) for s in NORMAL)]
    plans = [runs.Plan(i, s) for i in scales for s in (many if i in (runs.REPORTED, runs.REPORTED_NORMAL) else seeds)]
    plans += [runs.Plan(Inputs("uniform", c), s, positive=True) for c in POSITIVE for s in seeds]
    plans += [runs.Plan(runs.REPORTED, s, (w, w)) for w in STARTS for s in seeds]
    plans += [runs.Plan(runs.REPORTED, s, adam=True) for s in seeds]
    drawn = runs.random_starts(maps, options.seed)
    trained = runs.outcome(
        [*plans, *(runs.Plan(runs.REPORTED, seeds[i % count], start) for i, start in enumerate(drawn))], steps=steps
    )
    rows, mapped = trained[: len(plans)], trained[len(plans) :]
    expected = (runs.expected_end(drawn, runs.REPORTED) > 1 - runs.ARRIVED).all(dim=1).tolist()
    mapped = [{**row, "predicted": there} for row, there in zip(mapped, expected, strict=True)]
    summary, starts, shapes = by_scale(rows), by_start(rows), critical_scales()
    surface, beyond = surfaces(scales), beside_published(outside(rows))
    shown = {
        "surfaces": figures.surfaces_figure([Inputs("uniform", c) for c in (1.0, 1.5, 5.0)]),
        "success": figures.success_figure(summary, shapes),
        "starts": figures.starts_figure(starts, findings.at_reported(surface)["diagonal_saddle"]),
        "map": figures.map_figure(mapped),
    }
    found = [
        findings.length_of_run(options.full, len(trained), steps),
        findings.width_or_crossing(summary, shapes),
        findings.pair(shapes, surface),
        findings.hill(summary, shapes),
        findings.rescue(starts, surface),
        findings.map_finding(mapped),
        findings.rescaled(summary),
        findings.keeps_moving(rows),
        findings.outside_finding(beyond),
    ]
    tables = {"summary": summary, "scales": shapes, "surface": surface, "starts": starts, "outside": [beyond],
              "map": mapped, "runs": rows}  # fmt: skip
    return Result({name: pd.DataFrame(table) for name, table in tables.items()}, shown, found)


def by_scale(rows: "Sequence[Row]") -> "list[Row]":
    """Success from the zero start by inputs, RMSprop as in section 4.3; positive inputs are the control."""
    return _counted(where(rows, start_1=0.0, start_2=0.0, adam=False), "family", "scale", "positive")


def by_start(rows: "Sequence[Row]") -> "list[Row]":
    """Success on U(-5, 5) by the weights both start from."""
    reported = where(rows, family="uniform", scale=5.0, positive=False, adam=False)
    found = _counted([row for row in reported if row["start_1"] == row["start_2"]], "start_1")
    return sorted(found, key=lambda row: row["start_1"])


def _counted(rows: "Sequence[Row]", *by: str) -> "list[Row]":
    groups = grouped(rows, *by).items()
    return [
        {**dict(zip(by, key, strict=True)), "n": len(group), **share(group, "success").columns("success")}
        for key, group in groups
    ]


def critical_scales() -> "list[Row]":
    """Where the surface changes, in closed form: half widths of the uniform, standard deviations of the cut normal."""
    from analyses.hill._hill_zero_crossing_surface import FAMILIES, SHAPES, appears

    return [
        {"shape": shape, "appears": words, **{family: appears(shape, family) for family in FAMILIES}}
        for shape, words in SHAPES.items()
    ]


def surfaces(scales: "Sequence[Inputs]") -> "list[Row]":
    """What stands on the surface of each scale: spurious minima, the pass to climb, the saddle on the diagonal."""
    from analyses.hill import _hill_zero_crossing_surface as surface

    rows = []
    for inputs in scales:
        begin, slope, _ = surface.derivatives(np.zeros(2), inputs)
        spurious = [one for one in surface.minima(inputs) if one.spurious]
        w, height = (spurious[0].w, spurious[0].loss) if spurious else ((math.nan, math.nan), math.nan)
        saddle = surface.diagonal_saddle(inputs)
        rows.append(
            {"family": inputs.family, "scale": inputs.scale, "start_loss": begin, "slope_at_start": float(slope[0]),
             "spurious_minima": len(spurious), "w_low": min(w), "w_high": max(w),
             "spurious_loss_share": height / begin, "pass_share": surface.mountain_pass(inputs) / begin,
             "diagonal_saddle": math.nan if saddle is None else saddle}
        )  # fmt: skip
    return rows


def outside(rows: "Sequence[Row]") -> "Row":
    """Exact error on U(-10, -5) of the failed runs on U(-5, 5), and of the spurious minimum itself."""
    from analyses.hill._hill_zero_crossing_runs import REPORTED, outside_error
    from analyses.hill._hill_zero_crossing_surface import minima

    zero = where(rows, family="uniform", scale=5.0, start_1=0.0, positive=False, adam=False, success=False)
    errors = outside_error(np.array([[row["w1"], row["w2"]] for row in zero]).reshape(-1, 2)).tolist()
    low, high = mean_interval(errors) if len(errors) > 1 else (math.nan, math.nan)
    spurious = next(one for one in minima(REPORTED) if one.spurious)
    return {
        "n": len(errors),
        "measured": statistics.fmean(errors) if errors else math.nan,
        "low": low,
        "high": high,
        "deviation": statistics.stdev(errors) if len(errors) > 1 else math.nan,
        "spurious_minimum": float(outside_error(np.array([spurious.w]))[0]),
    }


def beside_published(row: "Row") -> "Row":
    """The row with the report's mean and deviation over its ten seeds, and its mean on N(-3, 3)."""
    table = where(load("hill")["raw_4_3_summary"], operation="multiply")
    reported = where(table, config="uniform_-5_5_to_-10_-5")[0]
    normal = where(table, config="normal_-3_3_to_8_10")[0]
    published = {"published": reported["matched_mean"], "published_deviation": reported["matched_std"]}
    return {**row, **published, "published_normal": normal["matched_mean"]}
