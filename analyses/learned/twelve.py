"""Analysis `twelve`: how the checkpoints score, beside the published twelve.

Every checkpoint is evaluated again from its weights. A number is *outside* when, rounded as the published ones are, it
is below the lowest or above the highest of the three published seeds of its shape, on the same split and operator. Were
ours drawn from the same distribution as theirs, a number would be outside half the time: of four exchangeable draws,
the fourth is an extreme with probability 2/4. So a share near 0.5 is what agreement looks like; it counts only numbers
in which the published seeds differ. A seed's number is a name: nothing ties our seed 0 to the published one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.learned._twelve_figures import classes_figure, sequence_figure
from analyses.published import load
from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import Architecture, RunConfig, knob
from workbench.statistics import Z95, mean_interval

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint
    from workbench.evaluation import Outcome
    from workbench.task import Problems

METRICS = ("loss", "digit_acc", "seq_acc", "sign_acc")
OUTSIDE_BY_CHANCE = 0.5
MOST_FRESH = 10_000_000
# (layers, operators, sequence accuracy asked of every model on validation and test), written before the twelve were run
ASKED = ((2, ("addition", "subtraction"), 0.97), (1, ("addition",), 0.90))

Key = tuple[str, str]  # (split, operator)


@dataclass(frozen=True)
class Options:
    """How much is evaluated."""

    fresh: int = knob(100_000, "held-out problems besides validation and test, so that rare categories have some")

    def __post_init__(self) -> None:
        if not 0 <= self.fresh <= MOST_FRESH:
            raise BadInput(f"--fresh is {self.fresh}, expected 0 to {MOST_FRESH:,}")


@analysis(
    question="How do the checkpoints score by split, operator and category, beside the published twelve?",
    options=Options,
)
def twelve(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Scores, comparison and categories of checkpoints of the twelve's shapes.

    Raises BadInput when no checkpoint has one of those shapes.
    """
    import pandas as pd

    from workbench.checkpoint import refuse_namesakes

    refuse_namesakes(checkpoints)
    if not any(shape_of(one.config) for one in checkpoints):
        raise BadInput(
            "none of these has a shape of the twelve (recipe's sizes, problems `all`); use workbench evaluate"
        )
    published = load("twelve")
    scores, categories = [], []
    problems: dict[tuple[int, str], dict[str, Problems]] = {}
    for one in checkpoints:
        drawn = (one.config.data_seed, one.config.problems)
        if drawn not in problems:
            problems[drawn] = _held_out(one.config, options.fresh)
        found = _evaluate(one, problems[drawn])
        scores += found[0]
        categories += found[1]
    beside = [{**row, **_published_columns(row, published)} for row in scores]
    score_table = pd.DataFrame(beside)
    compared = comparisons(scores, published)
    outside = [row for row in compared if row["side"] != "inside"]
    category_table = pd.DataFrame(categories)
    return Result(
        tables={
            "summary": pd.DataFrame(_summary(beside)),
            "scores": score_table,
            "outside": pd.DataFrame(outside, columns=list(COMPARED)).astype(KINDS),
            "compared": pd.DataFrame(compared, columns=list(COMPARED)).astype(KINDS),
            "categories": category_table,
        },
        figures={"sequence-accuracy": sequence_figure(score_table), "peer-classes": classes_figure(category_table)},
        findings=[*_sentences(scores, published), *_asked(scores), *_outside(compared)],
    )


def shape_of(config: RunConfig) -> tuple[str, int] | None:
    """(MLP kind, layers) of a run whose shape and task are those of the twelve, None for another."""
    shape = config.architecture
    if shape.n_layers not in (1, 2) or config.problems != "all":
        return None
    return (shape.mlp, shape.n_layers) if shape == Architecture(mlp=shape.mlp, n_layers=shape.n_layers) else None


def _held_out(config: RunConfig, fresh: int) -> "dict[str, Problems]":
    """Validation, test, and problems that no model trained on."""
    from workbench.splits import Splits

    splits = Splits(config.data_seed, config.problems)
    return {"validation": splits.validation, "test": splits.test, "fresh": splits.fresh(fresh)}


def _evaluate(one: "Checkpoint", held_out: "dict[str, Problems]") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows by split and operator, and rows by category over all held-out problems together."""
    from workbench import evaluation, forward
    from workbench.task import Problems

    weights, config = forward.tensors(one.weights), one.config
    shape = config.architecture
    who = {"model": one.name, "mlp": shape.mlp, "n_layers": shape.n_layers, "seed": config.seed}
    who["shape"] = "" if shape_of(config) is None else f"{shape.mlp} {shape.n_layers}"
    rows, outcomes = [], []
    for split, problems in held_out.items():
        outcome = evaluation.run(weights, shape, problems, config.problems)
        outcomes.append(outcome)
        for operator, mask in evaluation.operator_masks(problems).items():
            rows.append({**who, "split": split, "operator": operator, **_score_row(outcome, mask)})
    everything = evaluation.Outcome(
        *(np.concatenate([getattr(o, part) for o in outcomes]) for part in ("loss", "digits", "sign"))
    )
    together = Problems.from_index(np.concatenate([problems.index for problems in held_out.values()]))
    categories = [
        {"model": one.name, "grouping": grouping, "category": name, **score.row()}
        for grouping, name, score in evaluation.by_category(everything, together)
    ]
    return rows, categories


def _score_row(outcome: "Outcome", mask: np.ndarray) -> dict[str, Any]:
    """Score and intervals; that of the loss is normal, from the spread over problems."""
    from workbench.evaluation import score

    found, losses = score(outcome, mask).row(), outcome.loss[mask]
    half = Z95 * float(losses.std(ddof=1)) / math.sqrt(len(losses)) if len(losses) > 1 else math.nan
    loss = found.pop("loss")
    return {"n": found.pop("n"), "loss": loss, "loss_low": loss - half, "loss_high": loss + half, **found}


def published_by_key(model: dict[str, Any]) -> dict[Key, dict[str, float]]:
    """A published model's numbers by split and operator: operators were published for one split, without the sign."""
    rows = {("validation", "all"): model["validation"], ("test", "all"): model["test"]}
    by_operator = model["by_operator"]
    for operator in ("addition", "subtraction"):
        rows[by_operator["split"], operator] = by_operator[operator]
    return rows


def _published_columns(row: dict[str, Any], published: dict[str, Any]) -> dict[str, float]:
    """The published numbers of the model of the same name, NaN where there is none."""
    same = [model for model in published["models"] if model["name"] == row["model"] and row["shape"]]
    values = published_by_key(same[0]).get((row["split"], row["operator"]), {}) if same else {}
    return {f"published_{metric}": values.get(metric, math.nan) for metric in METRICS}


def _summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a model: validation loss, sequence accuracy by operator, each beside the published one."""
    summary: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["split"] == "validation":
            title, metric = ("loss", "loss") if row["operator"] == "all" else (row["operator"], "seq_acc")
            line = summary.setdefault(row["model"], {"model": row["model"], "n": row["n"]})
            line |= {title: row[metric], f"{title}, published": row[f"published_{metric}"]}
    return list(summary.values())


def _spread(published: dict[str, Any], row: dict[str, Any], metric: str) -> list[float]:
    """What the published seeds of a row's shape have for one metric on its split and operator; may be empty."""
    same = [m for m in published["models"] if f"{m['mlp']} {m['n_layers']}" == row["shape"]]
    found = [published_by_key(model).get((row["split"], row["operator"]), {}).get(metric) for model in same]
    return [value for value in found if value is not None]


def side_of(value: float, spread: Sequence[float], decimals: int) -> str:
    """`below`, `inside` or `above` the smallest and largest of `spread`, at the decimals those were published with."""
    rounded = round(value, decimals)
    return "below" if rounded < min(spread) else "above" if rounded > max(spread) else "inside"


KINDS = {
    "model": "str", "split": "str", "operator": "str", "metric": "str", "n": "int64", "value": "float64",
    "low": "float64", "high": "float64", "published_lowest": "float64", "published_highest": "float64", "side": "str",
    "interval_outside_too": "bool",
}  # fmt: skip
COMPARED = tuple(KINDS)


def comparisons(scores: list[dict[str, Any]], published: dict[str, Any]) -> list[dict[str, Any]]:
    """Every measured number that has published ones of its shape, and on which side of their spread it lies.

    `interval_outside_too`: the whole 95% interval lies there, so the choice of problems does not explain it.
    """
    rows, decimals = [], published["decimals"]
    for row in scores:
        for metric in METRICS:
            spread = _spread(published, row, metric)
            if not spread:
                continue
            name = metric.removesuffix("_acc")
            low, high = row[f"{name}_low"], row[f"{name}_high"]
            side = side_of(row[metric], spread, decimals)
            both = side != "inside" and side_of(low, spread, decimals) == side == side_of(high, spread, decimals)
            values = (row["model"], row["split"], row["operator"], metric, row["n"], row[metric], low, high)
            rows.append(dict(zip(COMPARED, (*values, min(spread), max(spread), side, both), strict=True)))
    return rows


def _sentences(scores: list[dict[str, Any]], published: dict[str, Any]) -> list[Finding]:
    """Sequence accuracy on validation of each shape and operator: mean over seeds, lowest and highest."""
    found = []
    for shape in dict.fromkeys(row["shape"] for row in scores if row["shape"]):
        for operator in ("addition", "subtraction"):
            here = [r for r in scores if (r["shape"], r["split"], r["operator"]) == (shape, "validation", operator)]
            values = [row["seq_acc"] for row in here]
            theirs = _spread(published, here[0], "seq_acc")
            mean, published_mean = float(np.mean(values)), float(np.mean(theirs))
            low, high = np.clip(mean_interval(values), 0, 1).tolist() if len(values) > 1 else (None, None)
            runs = "seed" if len({row["seed"] for row in here}) == len(here) else "checkpoint"
            runs += "" if len(here) == 1 else "s"
            mlp, layers = shape.split()
            text = (
                f"{mlp}, {layers} layer{'s' if layers != '1' else ''}, {operator}: sequence accuracy {mean:.4f} on "
                f"validation, {min(values):.4f} to {max(values):.4f} over {len(values)} {runs}; published "
                f"{published_mean:.4f}, {min(theirs):.4f} to {max(theirs):.4f} over {len(theirs)}."
            )
            control = "mean of the published seeds"
            found.append(Finding(text, mean, low, high, len(values), control, published_mean))
    return found


def _asked(scores: list[dict[str, Any]]) -> list[Finding]:
    """Whether every model reaches the sequence accuracy asked of its depth, by the lowest there is."""
    found = []
    for layers, operators, asked in ASKED:
        rows = [r for r in scores if r["shape"].endswith(f" {layers}") and r["operator"] in operators]
        rows = [r for r in rows if r["split"] in ("validation", "test")]
        if not rows:
            continue
        worst = min(rows, key=lambda row: row["seq_acc"])
        models = len({row["model"] for row in rows})
        verdict = "reaches" if worst["seq_acc"] >= asked else "does NOT reach"
        text = (
            f"Of {models} {layers}-layer models, the lowest sequence accuracy on {' and '.join(operators)}, validation "
            f"and test, {verdict} {asked:g}: {worst['seq_acc']:.4f}, {worst['model']}, {worst['operator']}, "
            f"{worst['split']}."
        )
        interval = (worst["seq_low"], worst["seq_high"])
        found.append(Finding(text, worst["seq_acc"], *interval, worst["n"], "asked of every model", asked))
    return found


def _outside(compared: list[dict[str, Any]]) -> list[Finding]:
    """How many numbers are outside the published spread, beside what chance alone gives.

    Where the published seeds agree to the last decimal there is no spread to be inside of, and nothing is counted.
    """
    spread = [row for row in compared if row["published_lowest"] < row["published_highest"]]
    if not (n := len(spread)):
        return []
    outside = sum(row["side"] != "inside" for row in spread)
    surely = sum(row["interval_outside_too"] for row in spread)
    return [
        Finding(
            f"{outside} of {n} numbers are outside the spread of the published seeds, {surely} of them with their "
            "whole 95% interval; table `outside` names them. They hang together (loss and accuracies, all and its "
            f"operators): n is no sample size. {len(compared) - n} more, of which the published seeds have one single "
            "value, are not counted.",
            value=outside / n,
            n=n,
            control="one more draw among the published three",
            control_value=OUTSIDE_BY_CHANCE,
        )
    ]
