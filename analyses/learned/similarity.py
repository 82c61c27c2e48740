"""`similarity`: whether models of other seeds, MLP kinds and depths hold the same, err alike and share heads' jobs.

*Streams* (table `groups`; every two sites in `cka`): linear CKA of the residual stream at the five positions where a
digit of the answer is predicted, each position, operator and sign apart, so that none of these makes two sites alike.
Three levels: `position` only that; `own token` also apart from the token that stands there, which the stream carries
anyway; `token and digit` apart from that and the digit to be predicted, which models that are right must share. The
estimate is unbiased, so unlike sites have 0, and a pair may fall below it or above 1. Controls: the untrained models of
the same shapes, where their seeds differ (models of one seed begin alike); the other model's problems shuffled within
strata; and `by_answer`, the root of the product of both sites' CKA with the right digit.

*Errors* (table `errors`): problems wrong in both, against chance at the models' own rates over an operator and within
patterns of digit pairs, as `errors` has it (see there for lists of every wrong problem, which are used where they
are); same first wrong digit, against each model's own distribution within patterns. *Too few errors* below 100. Where
one model has a list and the other none (table `twins`), the other is asked listed problems and, as chance, for each a
random problem with the same pattern.

*Heads* (`layers`, `heads`; `jobs`): matched one for one within a layer, by what they look at and write, on one half of
the problems; judged on the other by the rule of `_similarity_heads.py`. Controls: random matches (the mean over all,
exactly) and the untrained models through the same measurement. Only models of one task variant are compared, and heads
only between models of one depth and width. Pairs of three seeds are three, and not independent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyses.learned._asked import check_options
from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 1_000, 50_000


@dataclass(frozen=True)
class Options:
    """Options of `similarity`."""

    problems: int = knob(4_000, "problems on which streams and heads are compared, 1,000 to 50,000")
    asked: int = knob(40_000, "problems asked of models without a list of wrong ones, 1,000 to 50,000")
    seed: int = knob(0, "seed of the problems, of shuffles and of the bootstrap")
    counts: str = knob("", "folder with a finished exhaustive count a model; `exhaustive` beside each model if empty")

    def __post_init__(self) -> None:
        check_options(self, problems=(FEWEST, MOST), asked=(FEWEST, MOST))


@analysis(
    question="Do models that differ in seed, MLP kind or depth hold the same things, err alike and share heads' jobs?",
    options=Options,
)
def similarity(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """CKA of streams, agreement of errors and matched heads of every two models, each beside its controls."""
    from workbench.checkpoint import refuse_namesakes

    refuse_namesakes(checkpoints)
    counts = Path(options.counts) if options.counts else None
    if counts and not counts.is_dir():
        raise BadInput(f"{counts}: no such folder; give one that holds a finished count a model")
    import pandas as pd

    from analyses.learned._similarity_errors import error_rows
    from analyses.learned._similarity_figures import figures
    from analyses.learned._similarity_findings import findings, summary

    variants: dict[str, list[Checkpoint]] = {}
    for one in checkpoints:
        variants.setdefault(one.config.problems, []).append(one)
    several = {variant: models for variant, models in variants.items() if len(models) > 1}
    if not several:
        raise BadInput("similarity needs two checkpoints of one task variant; give a folder that holds some")
    rows: dict[str, list[dict[str, Any]]] = {}
    for variant, models in several.items():
        for name, row in _compared(variant, models, options):
            rows.setdefault(name, []).append({"variant": variant} | row)
        for name, row in error_rows(models, options.asked, options.seed, counts):
            rows.setdefault(name, []).append({"variant": variant} | row)
    alone = [models[0].name for models in variants.values() if len(models) == 1]
    found: list[Finding] = findings(rows, alone)
    tables = {name: pd.DataFrame(of) for name, of in ({"summary": summary(rows)} | rows).items() if of}
    return Result(tables, figures(tables, checkpoints), found)


def _compared(variant: str, models: "list[Checkpoint]", options: Options) -> "Iterator[tuple[str, dict[str, Any]]]":
    """(table name, row) of streams and heads of the models of one variant."""
    from analyses.learned import _similarity_heads as heads_of
    from analyses.learned import _similarity_tables as streams_of
    from analyses.learned._similarity_streams import measure
    from workbench.sample import sample

    problems = sample(options.problems, options.seed, variant)  # pyright: ignore[reportArgumentType]
    streams, heads = measure(models, problems, options.seed)
    for name, rows in (
        ("groups", streams_of.group_rows(streams, models)),
        ("cka", streams_of.site_rows(streams)),
        ("answer", streams_of.answer_rows(streams)),
        ("positions", streams_of.position_rows(streams, models)),
        ("layers", heads_of.layer_rows(heads, models)),
        ("heads", heads_of.head_rows(heads, models)),
        ("jobs", heads_of.job_rows(heads, models)),
    ):
        for row in rows:
            yield name, row
