"""The model cards' sentence on the learning rate, judged by the analysis of the sweep."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analyses._rows import Row
from analyses.learned import _claims_rules as rules
from analyses.learned._claims_entry import Entry
from workbench import sweeps
from workbench.result import Finding

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint


def of_the_sweep(checkpoint: "Checkpoint") -> bool:
    """Whether it is a run of the learning-rate sweep, which is no model of the ledger's other sentences."""
    wanted = sweeps.learning_rate_sweep(checkpoint.config.recipe.steps).get(checkpoint.name)
    return wanted is not None and wanted.accepts(checkpoint.config)


def rate_entries(given: "Sequence[Checkpoint]") -> list[Entry]:
    """The row, when runs of the sweep are among those given; the analysis reads their whole folder.

    Raises BadInput, as `learning-rate` does, when a run of the sweep is missing there.
    """
    from analyses.learned.learning_rate import Options, learning_rate

    folders: Any = dict.fromkeys(one.folder.parent for one in given)  # what this analysis takes first
    return [rate_entry(learning_rate.function(f, Options()).tables["runs"].to_dict("records")) for f in folders]


def rate_entry(runs: Sequence[Row]) -> Entry:
    """The published rate beside the highest at which both kinds are stable; `runs` is table `runs`, a row a run."""
    stable = {(row["rate"], row["mlp"]): row["stable"] for row in runs}
    picked = sweeps.picked_rate(stable)
    published = all(stable[rules.STABLE_RATE, mlp] for mlp in ("relu", "bilinear"))
    text = (
        f"(picked by our criterion: {picked}; one seed a point, {runs[0]['steps']:,} steps; the cards do not say what "
        "stable meant; see `learning-rate`)"
    )
    return Entry(
        "set to the highest rate at which both remain stable", "model cards",
        rules.highest_stable(picked, published_stable=published),
        "refuted if a kind is unstable at the published rate, supported if no higher rate of the sweep is stable",
        Finding(text, picked or 0.0, n=len(runs), control="published", control_value=rules.STABLE_RATE),
    )  # fmt: skip
