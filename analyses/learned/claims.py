"""Analysis `claims`: the sources' sentences on the learned models, each with its test, its control and a verdict.

Give the twelve and the control models together: `workbench analyze claims checkpoints checkpoints/controls`. Every
model answers the same fresh problems of its own task, which no model of that data seed has met in training. What
supports or refutes a sentence was written before the controls were trained (`_claims_rules.py`). Three seeds are
three: a number is the lowest and the highest of them; the interval is that over problems, of the seed that decides.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 1_000, 1_000_000


@dataclass(frozen=True)
class Options:
    """How many problems are asked."""

    problems: int = knob(20_000, "fresh problems of each task variant, 1,000 to 1,000,000")

    def __post_init__(self) -> None:
        check_types(self)
        if not FEWEST <= self.problems <= MOST:
            raise BadInput(f"problems is {self.problems:,}, expected {FEWEST:,} to {MOST:,}")


@analysis(
    question="Which of the sources' sentences on the learned models does the evidence support?",
    options=Options,
    within="controls",
)
def claims(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """The ledger, the four tests of the borrow sentence, and every number they rest on.

    Raises BadInput when two models claim one place, or none has a shape of the twelve.
    """
    import pandas as pd

    from analyses.learned import _claims_ledger as ledger
    from analyses.learned._claims_evidence import kind_of, measure
    from analyses.learned._claims_figures import borrow_figure
    from workbench.splits import Splits

    _check(checkpoints)
    problems, rows = {}, []
    for one in checkpoints:
        if kind_of(one.config) is None:
            continue
        drawn = one.config.data_seed, one.config.problems
        if drawn not in problems:
            problems[drawn] = Splits(*drawn).fresh(options.problems)
        rows += measure(one, problems[drawn])
    tests = ledger.borrow_tests(rows)
    claimed = ledger.entries(rows, tests, [one.config for one in checkpoints])
    tables = {
        "ledger": pd.DataFrame([entry.row() for entry in claimed]),
        "borrow-tests": pd.DataFrame([test.row() for test in tests], columns=list(ledger.TEST_COLUMNS)),
        "evidence": pd.DataFrame(rows),
    }
    return Result(tables, {"borrow-sentence": borrow_figure(rows)}, [entry.finding() for entry in claimed])


def _check(checkpoints: "list[Checkpoint]") -> None:
    from analyses.learned._claims_evidence import kind_of

    known = [(kind_of(one.config), one.config.seed) for one in checkpoints if kind_of(one.config)]
    if not known:
        raise BadInput("none of these is one of the twelve or of their controls; give checkpoints checkpoints/controls")
    if twice := [place for place in known if known.count(place) > 1]:
        raise BadInput(f"two checkpoints are {twice[0][0]} with seed {twice[0][1]}; give each model once")
