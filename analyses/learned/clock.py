"""`clock`: whether what a part computes of a digit pair is a function of sum or difference, a clock, or a lookup.

At the position that predicts the answer's digit of a place, every component is measured over problems of one operator
and sign: heads (all they write), MLP neurons, what an MLP writes, the residual stream and its principal directions,
logits. Its variance is split by families of functions of the place's two operand digits (a, b), each of which may
differ with the carry or borrow that arrives there: of a alone plus of b alone; of a + b (19 values), of a + b mod 10;
the same of a - b; of sum and difference mod 10 together, which products of two turning angles span (the clock: Nanda
et al. 2023; Zhong et al., The Clock and the Pizza, 2023); of each frequency k; and any function (the lookup, 200
values, all that can be said of the pair). Each half of the problems is scored by what the other fits.

Controls: the untrained model; the digits renamed (a family of a + b must lose what it holds when 3 is called 7); and
the share that a table of 100 independent values has in a family, (values - 1) / 99. Table `embeddings` has the digits'
embedding and unembedding in the Fourier basis, beside a straight line and random rows.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses.learned._asked import check_checkpoints, check_options
from workbench.analysis import Result, analysis
from workbench.recipe import knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FEWEST, MOST, FULL = 4_000, 200_000, 100_000


@dataclass(frozen=True)
class Options:
    """Options of `clock`."""

    problems: int = knob(20_000, "problems drawn, 4,000 to 200,000: each half is scored by what the other fits")
    seed: int = knob(0, "seed of the problems")
    full: bool = knob(False, f"{FULL:,} problems, so that the borrows' rarest pairs are met often")

    def __post_init__(self) -> None:
        check_options(self, problems=(FEWEST, MOST))


@analysis(
    question="Is what neurons, heads and logits compute of a digit pair a function of its sum or difference, a clock "
    "of which frequencies, or a lookup?",
    options=Options,
)
def clock(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Shares of variance by family for every component of every checkpoint, beside the controls."""
    _check(checkpoints)
    import pandas as pd

    from analyses._rows import where
    from analyses.learned._clock_figures import figures
    from analyses.learned._clock_findings import findings
    from analyses.learned._clock_measure import SINGLES, Group, measure, split
    from analyses.learned._clock_tables import embeddings, kind_of, kinds, means, shown
    from workbench.sample import sample
    from workbench.task import Problems

    drawn: dict[str, tuple[Problems, list[Group]]] = {}
    components, singles, counted = [], [], []
    for checkpoint in checkpoints:
        variant = checkpoint.config.problems
        if variant not in drawn:
            problems = sample(FULL if options.full else options.problems, options.seed, variant)
            drawn[variant] = problems, split(problems)
        for rows in measure(checkpoint, *drawn[variant]):
            components += [row for row in rows if row["kind"] not in SINGLES]
            singles += [
                row | {"verdict": kind_of(row)} for row in where(rows, model="trained") if row["kind"] in SINGLES
            ]
            counted += kinds(rows)
    averages = means(components)
    spectra = [row for checkpoint in checkpoints for row in embeddings(checkpoint)]
    tables = {"summary": shown(averages), "kinds": counted, "means": averages, "embeddings": spectra}
    tables |= {"components": components, "singles": singles}
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    return Result(frames, figures(averages, spectra), findings(averages, counted, spectra))


def _check(checkpoints: "list[Checkpoint]") -> None:
    check_checkpoints(checkpoints, "clock")
