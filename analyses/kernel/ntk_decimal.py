"""Analysis `ntk-decimal`: the task's own problems on the kernel machine, digit by digit.

Templates for signed addition and subtraction on the task's digits (`workbench.ntk.decimal`), executed by the mean
predictor of the infinitely wide network: every bit the sign of `g_m S - h_m T`. Answers are compared with integer
arithmetic, every bit of them; the same check is made on sets with one template changed, which it has to notice.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob
from workbench.sample import MOST

if TYPE_CHECKING:
    from analyses.kernel._ntk_decimal_tables import Leak
    from workbench.checkpoint import Checkpoint
    from workbench.ntk.decimal import Decimal
    from workbench.ntk.decimal_words import Checked
    from workbench.task import Problems

PROBLEMS = 1_000_000
CHANGED = 100_000  # problems, at most, asked of each set with one template changed
SIZES = range(1, 9)  # digits
SIZE_PROBLEMS = 20_000  # random ones of each number of digits
LEAK_PROBLEMS = 200  # by the plain machine
NEAR = 0.01  # below and above the factor at which the sign rule says that bits flip


@dataclass(frozen=True)
class Options:
    """How many problems are asked, and which are drawn."""

    problems: int = knob(PROBLEMS, "random problems")
    addition: str = knob("9999+0001", "an addition whose way through the machine is drawn")
    subtraction: str = knob("5000-5001", "a subtraction whose way is drawn")
    seed: int = knob(0, "seed that draws the problems")
    full: bool = knob(False, "ask all 200,000,000 problems instead: minutes")

    def __post_init__(self) -> None:
        check_types(self)
        if not 1_000 <= self.problems <= MOST or not 0 <= self.seed < 2**31:
            found = f"problems and seed are {self.problems:,} and {self.seed}"
            raise BadInput(f"{found}, expected 1,000 to {MOST:,} and 0 to 2**31 - 1")


@analysis(
    question="Does a kernel machine of digit templates solve every problem of the task, and with what margin?",
    options=Options,
    inputs="nothing",
)
def ntk_decimal(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Exact answers by category, iterations, means and the sign rule; what changed templates break; other digits.

    Raises BadInput for a drawn problem that is none of its operator.
    """
    from analyses.kernel import _ntk_decimal_tables as tables
    from analyses.kernel._ntk_decimal_figures import iterations_figure, means_figure, trace_figure
    from analyses.kernel._ntk_decimal_runs import ask, parts_of, spoilt
    from workbench.ntk.decimal import Decimal
    from workbench.sample import sample
    from workbench.task import blocks

    drawn = _drawn(options)
    machine = Decimal()
    problems = sample(options.problems, options.seed)
    asked = ask(machine, machine.templates, blocks() if options.full else parts_of(problems))
    few = problems[: min(CHANGED, len(problems))]
    changed = {name: ask(machine, one, parts_of(few)) for name, one in spoilt(machine).items()}
    means = tables.points(asked.points, machine.templates.count)
    found = {
        "summary": tables.sizes([(one, _sized(one, options.seed)) for one in map(Decimal, SIZES)]),
        "groups": tables.groups(machine),
        "categories": tables.categories(asked, sampled=not options.full),
        "iterations": tables.iterations(asked),
        "changed": tables.spoilt_rows(changed),
        "means": means,
    }
    leak = _leak(machine, problems[:LEAK_PROBLEMS])
    said = tables.findings(machine, asked, found["changed"], means, found["summary"], leak)
    figures = {
        "trace": trace_figure(machine, drawn),
        "means": means_figure(means, asked.n),
        "iterations": iterations_figure(found["iterations"]),
    }
    return Result(found, figures, [*_short(options, asked.n), *said])


def _drawn(options: Options) -> "Problems":
    """The two problems that are drawn."""
    from workbench.task import parse_all

    found = parse_all([options.addition, options.subtraction])
    if len(found) != 2 or found.subtract.tolist() != [False, True]:
        raise BadInput(
            f"{options.addition!r} and {options.subtraction!r} are to be drawn, expected an addition and a subtraction"
        )
    return found


def _sized(machine: "Decimal", seed: int) -> "Checked":
    """Random problems of a machine's number of digits, every number of digits as often, so that few are zero above."""
    import numpy as np

    from workbench.ntk.decimal_words import check
    from workbench.ntk.sliced import Sliced

    rng = np.random.default_rng([seed, machine.digits])
    top = 10 ** rng.integers(1, machine.digits + 1, (2, SIZE_PROBLEMS))
    a, b = rng.integers(0, top)
    return check(machine, Sliced(machine.templates), a, b, rng.integers(0, 2, SIZE_PROBLEMS) == 1)


def _leak(machine: "Decimal", problems: "Problems") -> "Leak":
    """How the machine fares with h_m just below and just above what the sign rule allows on these problems."""
    from analyses.kernel._ntk_decimal_runs import ask, flips_with_leak, loads
    from analyses.kernel._ntk_decimal_tables import Leak

    points = ask(machine, machine.templates, [problems]).points
    factor = 1 / max(loads(points, machine.templates.count).values())
    below, above = (flips_with_leak(machine, problems, factor * (1 + side)) for side in (-NEAR, NEAR))
    return Leak(len(problems), factor, below, above)


def _short(options: Options, asked: int) -> list[Finding]:
    """A word on a run that asks fewer problems than there are."""
    if options.full:
        return []
    from workbench.task import DOMAIN_SIZE

    text = f"A short run of {asked:,} random problems; --full asks all {DOMAIN_SIZE:,}."
    return [Finding(text, asked, control="problems of the full run", control_value=DOMAIN_SIZE)]
