"""Analysis `hill-division`: whether the script of report section 4.2 finds division reliably, and exactly.

The script trains four numbers on float32 quotients with Adam at 0.3, 50 epochs, without shuffling, and then tests three
divisions far outside the training range. It has no seed and its output is not published; the report says that it finds
division "reliably". Here each variant trains one unit a seed, all of a variant at once.

- *script*: the script's own arithmetic: real powers, autograd.
- *float32*, *float64*: the same training through the stacked engine, whose loss has no rounding of its own.
- *float64, beta2 0.5*: an optimizer that keeps moving.
- *float64, inputs -10 to 10*: the control; the same training on a range that crosses zero (with real powers, its first
  gradient would be NaN).

*Exact*: the snapped weights are [1, -1] to the last bit. *Ticked*: squared error below 1e-4 with the weights as they
are, in real powers, which is the script's own test.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob
from workbench.statistics import wilson

if TYPE_CHECKING:
    from analyses.hill._hill_division_training import Answers, Divisions
    from workbench.checkpoint import Checkpoint

FULL_SEEDS, FULL_EPOCHS = 100, 50
RELIABLE = 0.95  # lower end of the interval of the share that succeeds, from which it is called reliable
PUBLISHED = "reliably"  # the report's word; no number is published


@dataclass(frozen=True)
class Options:
    """How many units are trained, and for how long."""

    seeds: int = knob(10, "units a variant, each with training problems of its own")
    epochs: int = knob(5, "epochs of 1,000 steps")
    seed: int = knob(0, "the first seed")
    full: bool = knob(False, f"the script's {FULL_EPOCHS} epochs, for {FULL_SEEDS} seeds: minutes")

    def __post_init__(self) -> None:
        check_types(self)
        if not (2 <= self.seeds <= 1000 and 1 <= self.epochs <= 1000):
            raise BadInput(
                f"seeds and epochs are {self.seeds:,} and {self.epochs:,}, expected 2 to 1,000 and 1 to 1,000"
            )
        if not 0 <= self.seed < 2**31:
            raise BadInput(f"seed is {self.seed}, expected 0 to 2**31 - 1")


@analysis(
    question="Does the report's script find division reliably, and is what it finds exact?",
    options=Options,
    inputs="nothing",
)
def hill_division(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """How many units of each variant end at the exact selection, what they answer, and how soon they get there."""
    from analyses.hill import _hill_division_tables as tables
    from analyses.hill._hill_division_figures import answers_figure, training_figure
    from analyses.hill._hill_division_training import VARIANTS, answers, train

    seeds, epochs = (FULL_SEEDS, FULL_EPOCHS) if options.full else (options.seeds, options.epochs)
    found = [train(variant, range(options.seed, options.seed + seeds), epochs) for variant in VARIANTS]
    said = [answers(one) for one in found]
    cases = tables.cases(found, said)
    units = tables.units(found, options.seed)
    result = {
        "summary": tables.summary(found, said),
        "answers": cases,
        "losses": tables.losses(found),
        "units": units,
    }
    figures = {"training": training_figure(units, epochs), "answers": answers_figure(cases)}
    return Result(result, figures, [*short(epochs), reliable(found), ticked(found, said), *bits(found, said)])


def short(epochs: int) -> list[Finding]:
    """A word on runs shorter than the script's."""
    if epochs >= FULL_EPOCHS:
        return []
    text = f"A short run of {epochs} epochs; --full trains as long as the report's script."
    return [Finding(text, epochs, control="the script's epochs", control_value=FULL_EPOCHS)]


def reliable(found: "list[Divisions]") -> Finding:
    """Whether the script ends at the selection reliably, beside the range that crosses zero."""
    script, control = found[0].exact, found[-1].exact
    k, n = int(script.sum()), len(script)
    low, high = wilson(k, n)
    verdict = "reliably" if low >= RELIABLE else "NOT reliably" if high < RELIABLE else "undecided"
    text = (
        f"The script finds division {verdict} (published: {PUBLISHED}): {k} of {n} units are exactly [1, -1] once "
        f"snapped at 1e-2 (reliable: the interval is above {RELIABLE:.0%})."
    )
    share = int(control.sum()) / len(control)
    return Finding(text, k / n, low, high, n, f"the same, {found[-1].variant.name}", share)


def ticked(found: "list[Divisions]", said: "list[Answers]") -> Finding:
    """How many of the script's units pass its own three tests, and why the others do not."""
    from analyses.hill._hill_division_tables import passes

    script = passes(said[0]).all(dim=1)
    k, n = int(script.sum()), len(script)
    silent = int(said[0].printed.isnan().any(dim=1).sum())
    whole = int(found[0].W.eq(found[0].W.round()).all(dim=1).sum())
    text = (
        f"{k} of {n} of the script's units pass all three of its tests unsnapped; {silent} answer NaN to one, because "
        f"a negative operand meets a weight that is not whole. The weights of {whole} are whole without snapping."
    )
    snapped = int(passes(said[0], "snapped").all(dim=1).sum())
    return Finding(text, k / n, *wilson(k, n), n, "the share that passes once snapped", snapped / n)


def bits(found: "list[Divisions]", said: "list[Answers]") -> list[Finding]:
    """Whether exact units give native division's bits, beside the same weights in real powers."""
    from analyses.hill._hill_division_tables import native_bits

    result = []
    for one, answer in zip(found[:-1], said[:-1], strict=True):
        if not bool(one.exact.any()):
            continue
        exact = native_bits(answer, "snapped")[one.exact]
        k, n = int(exact.sum()), exact.numel()
        real = native_bits(answer, "snapped_real")[one.exact]
        verdict = "are native division's bits" if k == n else "are NOT all native division's bits"
        text = f"{one.variant.name}: {k} of the {n} answers of exact units to the three tests {verdict}."
        share = int(real.sum()) / n
        result.append(Finding(text, k / n, *wilson(k, n), n, "in real powers, which round b^-1 too", share))
    return result
