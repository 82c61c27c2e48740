"""Analysis `claims`: the sources' sentences, each with its test, its control and a verdict.

Give the twelve and the control models together: `workbench analyze claims checkpoints checkpoints/controls`. Every
model answers the same fresh problems of its own task, which no model of that data seed has met in training. What
supports or refutes a sentence was written before the controls were trained (`_claims_rules.py`). Three seeds are
three: a number is the lowest and the highest of them; the interval is that over problems, of the seed that decides.
Where a borrow or a direction is held in both layers is asked by `patching`, `interchange`, `attention`, `exact-probe`.
With runs of the sweep in `checkpoints/sweeps/learning-rate` among those given, the sentence on it is judged too.

Sentences on exact units and kernel machines are judged by short runs of the analyses `hill-...` and `ntk-...`, with
rules of their own (`_claims_exact_rules.py`). What a short run cannot decide is open, and the row names the command
that decides it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from analyses.learned._claims_entry import Entry
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 1_000, 1_000_000


@dataclass(frozen=True)
class Options:
    """How many problems are asked, and of which sources."""

    problems: int = knob(20_000, "fresh problems of each task variant, 1,000 to 1,000,000")
    exact: bool = knob(True, "also the sentences on exact units and kernel machines: a minute and a half")

    def __post_init__(self) -> None:
        check_types(self)
        if not FEWEST <= self.problems <= MOST:
            raise BadInput(f"problems is {self.problems:,}, expected {FEWEST:,} to {MOST:,}")


@analysis(
    question="Which of the sources' sentences does the evidence support?",
    options=Options,
    within="controls",
)
def claims(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """The ledger, the four tests of the borrow sentence, and every number they rest on.

    Raises BadInput when two models claim one place, none has a shape of the twelve, or a sweep is not whole.
    """
    import pandas as pd

    from analyses.learned import _claims_ledger as ledger
    from analyses.learned._claims_evidence import kind_of, measure
    from analyses.learned._claims_figures import borrow_figure
    from analyses.learned._claims_sweep import of_the_sweep, rate_entries
    from workbench.splits import Splits

    swept = [one for one in checkpoints if of_the_sweep(one)]
    models = [one for one in checkpoints if not of_the_sweep(one)]
    _check(models)
    problems, rows = {}, []
    for one in models:
        if kind_of(one.config) is None:
            continue
        drawn = one.config.data_seed, one.config.problems
        if drawn not in problems:
            problems[drawn] = Splits(*drawn).fresh(options.problems)
        rows += measure(one, problems[drawn])
    tests = ledger.borrow_tests(rows)
    claimed = [*ledger.entries(rows, tests, [one.config for one in models]), *rate_entries(swept)]
    if options.exact:
        claimed += exact_entries()
    tables = {
        "ledger": pd.DataFrame([entry.row() for entry in claimed]),
        "borrow-tests": pd.DataFrame([test.row() for test in tests], columns=list(ledger.TEST_COLUMNS)),
        "evidence": pd.DataFrame(rows),
    }
    return Result(tables, {"borrow-sentence": borrow_figure(rows)}, [entry.finding() for entry in claimed])


def exact_entries() -> "list[Entry]":
    """The sentences of the Hill Space report and of the kernel paper, from short runs of their analyses."""
    from analyses.learned import _claims_hill as hill
    from analyses.learned import _claims_kernel as kernel
    from analyses.learned._claims_exact_runs import run

    tables = run()
    return [*hill.entries(tables), *kernel.entries(tables)]


def _check(checkpoints: "list[Checkpoint]") -> None:
    from analyses.learned._claims_evidence import kind_of

    known = [(kind_of(one.config), one.config.seed) for one in checkpoints if kind_of(one.config)]
    if not known:
        raise BadInput("none of these is one of the twelve or of their controls; give checkpoints checkpoints/controls")
    if twice := [place for place in known if known.count(place) > 1]:
        raise BadInput(f"two checkpoints are {twice[0][0]} with seed {twice[0][1]}; give each model once")
