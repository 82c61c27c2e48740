"""Analysis `arena`: learned decoders, the enumerated Hill circuit and the kernel machine on the same problems.

All are asked problems that no decoder trained on: some uniform over the task, and some of every class, so that rare
ones are there. A decoder is given the exact sign, as in training, and is right when all five digits are; the two exact
forms write sign and digits. What each needed, what an answer costs, and what lies beyond the task stand beside.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from analyses._arena_forms import Form
    from workbench.checkpoint import Checkpoint

MOST_PROBLEMS, MOST_OF_A_CLASS = 1_000_000, 100_000
BEYOND = 10_000  # random problems of each question beyond the task


@dataclass(frozen=True)
class Options:
    """How many problems are asked."""

    problems: int = knob(20_000, "random problems")
    of_each_class: int = knob(500, "problems of each class besides, as far as there are enough")
    seed: int = knob(1, "seed that draws them")
    full: bool = knob(False, "ask the two exact forms all 200,000,000 problems as well: minutes")

    def __post_init__(self) -> None:
        check_types(self)
        if not (1_000 <= self.problems <= MOST_PROBLEMS and 1 <= self.of_each_class <= MOST_OF_A_CLASS):
            raise BadInput(
                f"problems and of_each_class are {self.problems:,} and {self.of_each_class:,}, expected 1,000 to "
                f"{MOST_PROBLEMS:,} and 1 to {MOST_OF_A_CLASS:,}"
            )
        if not 0 <= self.seed < 2**31:
            raise BadInput(f"seed is {self.seed}, expected 0 to 2**31 - 1")


@analysis(
    question="How do learned decoders, the enumerated Hill circuit and the kernel machine fare on the same problems?",
    options=Options,
)
def arena(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Accuracy by operator and category, what each form needed, costs, fails on, and does beyond the task.

    Counts over the whole domain are read from the folder `exhaustive` beside a checkpoint where they are of its
    weights. Raises BadInput for two checkpoints of one name.
    """
    import pandas as pd

    from analyses import _arena_tables as tables
    from analyses._arena_beyond import beyond
    from analyses._arena_figures import arena_figure
    from analyses._arena_forms import forms
    from analyses._arena_problems import problems
    from workbench.checkpoint import refuse_namesakes

    refuse_namesakes(checkpoints)
    asked = problems(options.seed, options.problems, options.of_each_class, [one.config for one in checkpoints])
    games = []
    for form in forms(checkpoints):
        game = tables.played(form, asked)
        if options.full and game.exact:
            game = tables.played(form, asked, _domain(form))
        games.append(game)
    rows = [row for one in games for row in tables.category_rows(one, asked)]
    further = beyond(BEYOND, options.seed)
    costs, domain = tables.cost_rows([one.form for one in games]), tables.domain_rows(games)
    return Result(
        tables={
            "summary": tables.summary(games, rows, further),
            "categories": pd.DataFrame(rows),
            "costs": pd.DataFrame(costs),
            "beyond": pd.DataFrame([vars(one) for one in further]),
            "domain": pd.DataFrame(domain, columns=["form", "kind", "operator", "n", "wrong"]),
        },
        figures={"arena": arena_figure(rows, costs)},
        findings=[*_short(options), *tables.findings(games, rows, further)],
    )


def _domain(form: "Form") -> dict[str, int]:
    """How many of all problems a form answers wrong, by operator."""
    from workbench.task import blocks

    wrong = {"addition": 0, "subtraction": 0}
    for block in blocks():
        missed = ~form.ask(block).right
        wrong["subtraction"] += int((missed & block.subtract).sum())
        wrong["addition"] += int((missed & ~block.subtract).sum())
    return wrong


def _short(options: Options) -> list[Finding]:
    """A word on a run that does not count the exact forms' answers to every problem."""
    if options.full:
        return []
    text = "A short run: the exact forms are asked the same problems as the decoders; --full asks them every problem."
    return [Finding(text, options.problems)]
