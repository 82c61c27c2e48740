"""Analysis `ntk-exhaustive`: permutation, addition and multiplication over every input, each bit a predictor's sign.

Each template set of arXiv 2502.16763 is run from every start state by the mean predictor of the infinitely wide
network: a bit is 1 where `g_m S - h_m T`, in float64, is above 1e-10. Answers are compared with integer arithmetic
after each step, so that the number of steps that all inputs need is measured too. What occurred, the (m, S, T) of every
bit, says how near the signs came to failing: the sign rule asks for `load = T (m - 1/g_m) / S < N + 2 pi - 1`, and
their ratio is the factor by which h could grow. The control multiplies h by more than that and counts wrong answers.

Nothing is drawn but the random permutations, so counts are exact and have no interval.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from workbench.analysis import Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob

if TYPE_CHECKING:
    import pandas as pd

    from analyses.kernel._ntk_exhaustive_check import Checked
    from workbench.checkpoint import Checkpoint
    from workbench.ntk.arithmetic import Algorithm

OPERATIONS = ("permute", "add", "multiply")
SHORT = {"permute": 12, "add": 8, "multiply": 6}  # bits up to which a run without options goes
FULL = {"permute": 20, "add": 10, "multiply": 10}
MOST_INPUTS = 2**26
CONTROL_BITS = 4  # the controls run at this size, or the largest smaller one
BEYOND = 3.0  # of the factor that the signs would survive, in the control that counts wrong answers
SIZES = 31  # bits up to which template sets are counted, without running them


@dataclass(frozen=True)
class Options:
    """Which algorithms, and up to which size."""

    op: Literal["permute", "add", "multiply", "all"] = knob("all", "which algorithm")
    bits: int = knob(0, "every input of every size up to so many bits an operand; 0: a short run")
    seed: int = knob(0, "seed that draws a permutation of each size, beside reversal and rotation")
    full: bool = knob(False, "up to 10 bits for addition and multiplication, 20 for permutations")

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 <= self.seed < 2**31:
            raise BadInput(f"seed is {self.seed}, expected 0 to 2**31 - 1")
        if self.bits and self.full:
            raise BadInput("both bits and full were given; give one of them")
        if self.bits < 0:
            raise BadInput(f"bits is {self.bits}, expected 1 or more")
        for operation, bits in self.sizes.items():
            inputs = bits * (1 if operation == "permute" else 2)
            if 2**inputs > MOST_INPUTS:
                raise BadInput(f"{operation} of {bits} bits has 2**{inputs} inputs, at most 2**26; ask for fewer bits")

    @property
    def sizes(self) -> dict[str, int]:
        """Bits up to which each asked algorithm is run."""
        asked = OPERATIONS if self.op == "all" else (self.op,)
        return {name: self.bits or (FULL if self.full else SHORT)[name] for name in asked}


@analysis(
    question="Do permutation, addition and multiplication come out exactly for every input?",
    options=Options,
    inputs="nothing",
)
def ntk_exhaustive(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """All sizes from one bit on, a control of each algorithm, and template sets beside their numbers of inputs."""
    from analyses.kernel import _ntk_exhaustive_figures as figures
    from analyses.kernel import _ntk_exhaustive_findings as findings
    from analyses.kernel._ntk_exhaustive_check import check

    checked = [
        check(algorithm, label)
        for operation, most in options.sizes.items()
        for bits in range(1, most + 1)
        for label, algorithm in algorithms(operation, bits, options.seed).items()
    ]
    by_operation = {name: [one for one in checked if one.algorithm.name == name] for name in options.sizes}
    controls = {name: controlled(rows) for name, rows in by_operation.items()}
    sizes = sizes_table(list(options.sizes))
    tables = {
        "summary": summary(by_operation),
        "exhaustive": exhaustive_table(checked),
        "controls": controls_table(controls),
        "matched": matched_table(by_operation),
        "points": points_table(by_operation),
        "sizes": sizes,
    }
    return Result(
        tables,
        {
            "margin": figures.margin_figure(by_operation),
            "tolerance": figures.tolerance_figure(by_operation),
            "sizes": figures.sizes_figure(sizes),
        },
        findings.all_of(by_operation, controls, sizes, options.sizes),
    )


def algorithms(operation: str, bits: int, seed: int) -> "dict[str, Algorithm]":
    """The algorithms of one size by label: three permutations (fewer where they are the same), or the one."""
    import torch

    from workbench.ntk.arithmetic import addition, multiplication, permutation

    if operation != "permute":
        return {"": (addition if operation == "add" else multiplication)(bits)}
    drawn = torch.randperm(bits, generator=torch.Generator().manual_seed(seed * 64 + bits)).tolist()
    orders = {"reversal": list(range(bits))[::-1], "rotation": [*range(1, bits), 0], "random": drawn}
    kept = {tuple(order): label for label, order in reversed(orders.items())}  # the first label of an order
    return {label: permutation(order) for order, label in reversed(kept.items())}


def controlled(rows: "list[Checked]") -> "list[Checked]":
    """One algorithm again with h a millionth below and above what its signs survive, and BEYOND times that.

    Empty where no sign would ever fail, as with one bit.
    """
    from analyses.kernel._ntk_exhaustive_check import check

    small = [row for row in rows if row.algorithm.bits <= CONTROL_BITS]
    tolerance = small[-1].numbers["tolerance"]
    if tolerance == float("inf"):
        return []
    factors = (tolerance * (1 - 1e-6), tolerance * (1 + 1e-6), tolerance * BEYOND)
    return [check(small[-1].algorithm, small[-1].label, factor) for factor in factors]


def summary(by_operation: "dict[str, list[Checked]]") -> "pd.DataFrame":
    """A row an algorithm: all its sizes together, and what the largest one needs."""
    import pandas as pd

    lines = []
    for name, rows in by_operation.items():
        largest = rows[-1]
        line: dict[str, Any] = {"operation": name, "bits": f"1 to {largest.algorithm.bits}"}
        line["inputs"] = sum(row.algorithm.inputs for row in rows)
        line["wrong"] = sum(row.wrong for row in rows)
        line["flips"] = sum(row.survey.flips for row in rows)
        line["templates"] = largest.algorithm.templates.count
        line["steps"] = largest.algorithm.steps
        line["needed"] = largest.settled
        line["most_matched"] = int(largest.numbers["most"])
        line["h_may_grow"] = f"x {largest.numbers['tolerance']:.3f}"
        lines.append(line)
    return pd.DataFrame(lines)


def exhaustive_table(checked: "list[Checked]") -> "pd.DataFrame":
    """A row an algorithm of one size."""
    import pandas as pd

    from workbench.ntk.kernel import ridge

    lines = []
    for row in checked:
        algorithm, numbers = row.algorithm, row.numbers
        line: dict[str, Any] = {"operation": algorithm.name, "bits": algorithm.bits, "which": row.label}
        line |= {"inputs": algorithm.inputs, "wrong": row.wrong, "flips": row.survey.flips}
        line |= {"templates": algorithm.templates.count, "state_bits": algorithm.templates.layout.bits}
        line |= {"steps": algorithm.steps, "needed": row.settled, "most_matched": int(numbers["most"])}
        line |= {"smallest_one": numbers["one"], "smallest_zero": numbers["zero"], "load": numbers["load"]}
        line |= {"allowed": algorithm.templates.count + ridge()}
        line |= {"most_written": int(algorithm.templates.written.max())}
        lines.append(line)
    return pd.DataFrame(lines)


def controls_table(controls: "dict[str, list[Checked]]") -> "pd.DataFrame":
    """A row a control: what became of all inputs with h multiplied."""
    import pandas as pd

    columns = ("operation", "bits", "which", "h_times", "flips", "wrong", "inputs")
    lines = [
        (row.algorithm.name, row.algorithm.bits, row.label, row.leaking, row.survey.flips, row.wrong,
         row.algorithm.inputs)
        for rows in controls.values()
        for row in rows
    ]  # fmt: skip
    return pd.DataFrame(lines, columns=list(columns))


def matched_table(by_operation: "dict[str, list[Checked]]") -> "pd.DataFrame":
    """How many (state, step) of the largest size match m templates."""
    import pandas as pd

    lines = [
        {"operation": name, "bits": rows[-1].algorithm.bits, "m": m, "states": int(count)}
        for name, rows in by_operation.items()
        for m, count in enumerate(rows[-1].survey.matched)
        if count
    ]
    return pd.DataFrame(lines)


def points_table(by_operation: "dict[str, list[Checked]]") -> "pd.DataFrame":
    """Every (m, S, T) that occurs at the largest size, with the mean that decides the bit."""
    import pandas as pd

    from analyses.kernel._ntk_exhaustive_check import mean
    from workbench.ntk.sliced import Sliced

    lines = []
    for name, rows in by_operation.items():
        machine = Sliced(rows[-1].algorithm.templates)
        for point in sorted(rows[-1].survey.points):
            m, writers, written = point
            lines.append({"operation": name, "m": m, "S": writers, "T": written, "mean": mean(machine, point)})
    return pd.DataFrame(lines)


def sizes_table(operations: list[str]) -> "pd.DataFrame":
    """Templates, padding included, beside the number of possible inputs, for sizes that need not be run."""
    import pandas as pd

    lines = []
    for name in operations:
        for bits in range(1, SIZES + 1):
            algorithm = algorithms(name, bits, 0)["reversal" if name == "permute" else ""]
            digits = bits * len(algorithm.operands)
            line = {"operation": name, "bits": bits, "templates": algorithm.templates.count, "inputs": float(2**digits)}
            lines.append(line | {"templates_per_doubling": algorithm.templates.count / digits})
    return pd.DataFrame(lines)
