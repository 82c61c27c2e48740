"""Analysis `ntk-sbn`: programs of "subtract and branch if negative", run by the infinitely wide network.

arXiv 2502.16763 says that its templates run SBN; the templates here are ours (`workbench.ntk.sbn`), one set for all
programs of a size. Three kinds of runs are compared with an ordinary interpreter, in every bit after every instruction:
each single instruction there is from each memory, for three small sizes; random programs; and four programs on all the
inputs that fit them. Every bit is the sign of the predictor's mean.

The sign rule says how many templates that never match a set needs besides. The multiplication program runs with them,
with none, and with the least number that the rule allows its own runs and one less: it ought to fail exactly where the
rule says.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint

FULL_PROGRAMS = 20_000


@dataclass(frozen=True)
class Options:
    """How many random programs, and their seed."""

    programs: int = knob(2000, "random programs")
    seed: int = knob(0, "seed that draws them")
    full: bool = knob(False, f"{FULL_PROGRAMS:,} random programs, and negative inputs too: minutes")

    def __post_init__(self) -> None:
        check_types(self)
        if not 1 <= self.programs <= 100_000:
            raise BadInput(f"programs is {self.programs:,}, expected 1 to 100,000")
        if not 0 <= self.seed < 2**31:
            raise BadInput(f"seed is {self.seed}, expected 0 to 2**31 - 1")


@analysis(
    question="Does the kernel machine run SBN programs exactly, and fail exactly where the sign rule says?",
    options=Options,
    inputs="nothing",
)
def ntk_sbn(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Machine against interpreter in every bit; the control is the machine with less padding than the rule asks for."""
    from analyses.kernel import _ntk_sbn_figures as figures
    from analyses.kernel import _ntk_sbn_rule as rule
    from analyses.kernel import _ntk_sbn_runs as runs
    from analyses.kernel import _ntk_sbn_tables as tables
    from workbench.ntk.assembler import load
    from workbench.ntk.sbn import Size

    cases = [runs.singles(Size(*size), options.seed) for size in runs.SINGLES]
    programs = FULL_PROGRAMS if options.full else options.programs
    cases.append(runs.fuzz(Size(*runs.FUZZ), programs, runs.FUZZ_INSTRUCTIONS, options.seed))
    cases += runs.programs(options.full)
    factors, size = runs.factors(), load("multiply").size
    enough = rule.smallest(factors)
    attempts = [rule.attempt(factors, padding) for padding in (0, enough - 1, enough, size.padding)]
    tight = (rule.fullest(size, size.padding), rule.fullest(size, size.padding - 1))
    traces = [figures.trace("multiply", {"x": 5, "y": 6}), figures.trace("sort", {"x": 5, "y": 7, "z": 2})]
    found = {
        "summary": tables.whole(cases)[tables.NARROW],
        "cases": tables.whole(cases),
        "machines": tables.machines(cases),
        "paddings": tables.attempts(attempts),
        "loads": tables.loads(attempts),
        "factors": tables.grid(factors, attempts[0]),
        "traces": figures.trace_table(traces),
    }
    shown = {f"trace-{one.program.name}": figures.trace_figure(one) for one in traces}
    shown |= {"load": figures.load_figure(found["loads"], size), "unpadded": figures.grid_figure(found["factors"])}
    return Result(found, shown, [*tables.short(options.full), *tables.findings(cases, attempts, enough, tight)])
