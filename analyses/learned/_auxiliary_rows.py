"""Rows of `auxiliary`, one a run (`runs`), a run and quantity (`readouts`), a run and unit (`units`), a class."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from analyses._rows import Row
from analyses.learned._auxiliary_measure import OPERATORS, Looked, site_of, splits
from analyses.learned._auxiliary_rules import STEPS_TO, selected
from analyses.learned._auxiliary_runs import NONE, Condition, Grid, condition_of, decoder_of
from analyses.learned._conditions import shape_of
from workbench.auxiliary_grid import HEADS
from workbench.checkpoint import Checkpoint
from workbench.hill import head_storage, heads
from workbench.hill.constraint import constrain
from workbench.structure import CLASSES, categories

OUTPUTS = {"additive": ("result",), "digitwise": ("cosine", "sine"), "carry": ("carry or borrow",)}
NOT_THERE = "head not there"
Looks = Mapping[str, Looked]  # by the run's name


def who(one: Checkpoint) -> Row:
    """The run, its condition and its decoder."""
    head, form = condition_of(one.config.auxiliary)
    return {"run": one.name, "head": head, "form": form, "shape": shape_of(one), "seed": one.config.seed}


def run_rows(grid: Grid, looks: Looks) -> Iterator[Row]:
    """Every run beside the one of the same decoder without a head, in the grid's order, the sweep last.

    Cross-entropies are of the stored test result, nats a digit; `log_ratio` is `ln(loss / loss without)`, NaN when that
    run is not there. `steps_99` is the step of the first validation whose sequence accuracy, of both operators, reaches
    STEPS_TO, NaN when none does. `told_` is the variance that the head's own output explains, NaN without one.
    """
    without = grid.conditions.get(NONE, {})
    for one in grid.runs:
        head, test = one.config.auxiliary, one.results["test"]
        row = who(one) | {
            "sweep": any(one is swept for swept in grid.sweep),
            "weight": head.head_weight if head else 0.0,
            "schedule": head.head_schedule if head else "constant",
            "site": site_of(one),
            "kept_step": one.kept_step,
        }
        for operator in OPERATORS:
            if operator in test:
                score = test[operator]
                row |= {operator: score.seq_acc, f"{operator}_n": score.n}
                row |= dict(zip((f"{operator}_low", f"{operator}_high"), score.seq_interval, strict=True))
        base = without.get(decoder_of(one.config))
        loss, loss_without = test["all"].loss, base.results["test"]["all"].loss if base else math.nan
        row |= {"loss": loss, "loss_without": loss_without, "log_ratio": math.log(loss / loss_without)}
        row |= {"steps_99": steps_to(one), "calibration": looks[one.name].calibration, "digits": looks[one.name].digits}
        told = one.history.get("head", {}).get("test", {})
        yield row | {f"told_{name}": _explained(told.get(name)) for name in OPERATORS}


def steps_to(one: Checkpoint) -> float:
    """The step of the first validation at STEPS_TO; NaN when there is none."""
    reached = [row["step"] for row in one.history["validations"] if row["sequences_right"] >= STEPS_TO * row["n"]]
    return float(min(reached, default=math.nan))


def _explained(told: Row | None) -> float:
    """`1 - error / variance` of a head's stored result."""
    return 1 - told["loss"] / told["variance"] if told and told["variance"] > 0 else math.nan


def readout_rows(grid: Grid, looks: Looks) -> Iterator[Row]:
    """How much of every head's quantity is linearly there in each run of the grid, and how much more than without."""
    without = grid.conditions.get(NONE, {})
    for runs in grid.conditions.values():
        for key, one in runs.items():
            base = looks[without[key].name].linear if key in without else {}
            for part, found in looks[one.name].linear.items():
                row = who(one) | {"target": part.head, "operator": part.operator, "site": site_of(one)}
                row |= {"r2": found.value, "low": found.low, "high": found.high, "n": found.n}
                r2_without = base[part].value if part in base else math.nan
                yield row | {"r2_without": r2_without, "gain": found.value - r2_without}


def unit_rows(grid: Grid) -> Iterator[Row]:
    """What each unit of the trainable heads became: weights, the selection they are at, the enumerated one.

    `selection` is empty when a weight is not near -1, 0 or 1. `landed` and `same` say whether there is one and whether
    it is the enumerated one; `_before` the same of the weights before training, which are near 0. Readouts are free, so
    another selection need not be a worse one: signs, for example, can be taken over by the readouts.
    """
    for head in HEADS:
        for one in grid.conditions.get(Condition(head, "trainable"), {}).values():
            stored = (one.folder / name for name in (head_storage.CONFIG, head_storage.WEIGHTS))
            if not all(path.is_file() for path in stored):
                yield who(one) | _unit("", "", NOT_THERE, (None, None), ())
                continue
            after = head_storage.load(one.folder, one.config.architecture, one.weights_sha256)
            start = heads.initial(after.auxiliary, one.config.architecture, one.config.seed)
            before = constrain(start["W_hat"], start["M_hat"])
            for i, j in product(range(len(OPERATORS)), range(heads.KINDS[head].outputs)):
                at = selected(after.unit[i, j].tolist()), selected(before[i, j].tolist())
                exact, weights = heads.KINDS[head].selections[i][j], said(after.unit[i, j].tolist(), ".3f")
                yield who(one) | _unit(OPERATORS[i], OUTPUTS[head][j], weights, at, exact)


def _unit(
    operator: str, output: str, weights: str, at: Sequence[tuple[int, ...] | None], exact: tuple[int, ...]
) -> Row:
    row: Row = {"operator": operator, "output": output, "weights": weights}
    row |= {"selection": said(at[0]), "enumerated": said(exact)}
    for when, selection in zip(("", "_before"), at, strict=True):
        row |= {f"landed{when}": selection is not None, f"same{when}": selection == exact}
    return row


def said(selection: Sequence[float | int] | None, form: str = "d") -> str:
    """Weights as text: `[1, -1]`, and nothing for none."""
    return f"[{', '.join(format(weight, form) for weight in selection)}]" if selection else ""


def class_rows(grid: Grid, looks: Looks) -> Iterator[Row]:
    """Accuracy by shape and peer class with each head and without, lowest and highest of the seeds that have both."""
    for condition in grid.with_head:
        pairs = grid.pairs(condition)
        for shape in dict.fromkeys(shape_of(one) for one, _ in pairs):
            of = [pair for pair in pairs if shape_of(pair[0]) == shape]
            found = categories(splits(of[0][0].config.data_seed, of[0][0].config.problems)[1], "class")
            for name in CLASSES:
                chosen = found == name
                if not chosen.any():
                    continue
                rates = np.array([[looks[one.name].right[chosen].mean() for one in pair] for pair in of])
                row = {"shape": shape, "class": name, "n": int(chosen.sum()), "seeds": len(of)}
                row |= {"head": condition.head, "form": condition.form}
                for column, values in (("accuracy", rates[:, 0]), ("without", rates[:, 1])):
                    row |= {f"{column}_lowest": float(values.min()), f"{column}_highest": float(values.max())}
                yield row | {"difference": float((rates[:, 0] - rates[:, 1]).mean())}
