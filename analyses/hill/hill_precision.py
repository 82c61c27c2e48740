"""Analysis `hill-precision`: what error remains once a unit's selection is exact (tables 4.4.1 and 4.4.2).

Squared errors against the exact result, by error-free transformations (`workbench.hill.error_free`) instead of a loop
over long decimals; the first samples of every row are computed again with 50 digits. The samples are the published
ones, which the report's text does not give: see `_hill_precision_measure`. Quantities are the mean squared error (in
table 4.4.2 that beyond the native operator's), the largest and the 99.99% quantile.

Methods: the native operator; Real, the primitive with real powers (or the additive one); Complex128; Log-space with
iNALU's guards; and Sign-exact, this workbench's own, which the report has not. Two more forms of Log-space differ only
in who computes logarithm and exponential, and show how far a printed digit depends on that.

Why three of the 72 printed numbers, all float32 Log-space, can differ: torch takes both functions from Intel MKL, whose
code for AVX-512 rounds some results other than its code for AVX2. In a process started with
MKL_ENABLE_INSTRUCTIONS=AVX2 all 72 agree.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis import Finding, Result, analysis
from workbench.errors import BadInput
from workbench.recipe import check_types, knob
from workbench.statistics import wilson

if TYPE_CHECKING:
    from analyses.hill._hill_precision_check import Agreement
    from analyses.hill._hill_precision_measure import Config, Powers
    from analyses.hill._hill_precision_tables import Measured, Row
    from workbench.checkpoint import Checkpoint

FEWEST, MOST = 50_000, 100_000_000  # samples a row; an interval needs two pieces
MOST_CHECKED = 100_000
ASKED = 66  # of the 72 published numbers, to their printed digits; written before the run


@dataclass(frozen=True)
class Options:
    """How many samples, and from which seed."""

    samples: int = knob(1_000_000, "input pairs a row; division's mean and maximum mean little at any number")
    full: bool = knob(False, "the published 100,000,000 input pairs a row, which alone can be compared: 2 to 3 minutes")
    checked: int = knob(10_000, "input pairs a row whose squared errors are computed again with 50 digits")
    seed: int = knob(20260724, "seed of the input pairs; the default is the published one")

    def __post_init__(self) -> None:
        check_types(self)
        if not FEWEST <= self.samples <= MOST:
            raise BadInput(f"samples is {self.samples:,}, expected {FEWEST:,} to {MOST:,}")
        if not 1 <= self.checked <= MOST_CHECKED:
            raise BadInput(f"checked is {self.checked:,}, expected 1 to {MOST_CHECKED:,}")
        if self.seed < 0:
            raise BadInput(f"seed is {self.seed}, expected 0 or more")


@analysis(
    question="What error remains once a unit's selection is exact, and where does it come from?",
    options=Options,
    inputs="nothing",
)
def hill_precision(checkpoints: "list[Checkpoint]", options: Options) -> Result:
    """Squared errors of native operators and exact units in float32 and float64, beside the published ones."""
    import pandas as pd

    from analyses.hill import _hill_precision_tables as tables
    from analyses.hill._hill_precision_check import check
    from analyses.hill._hill_precision_figures import bits_figure, errors_figure
    from analyses.hill._hill_precision_measure import CONFIGS, FULL, SEED, complex_powers, measure

    samples = FULL if options.full else options.samples
    measured = {config: measure(config, samples, options.seed) for config in CONFIGS}
    agreements = {config: check(config, options.checked, options.seed) for config in CONFIGS}

    rows = tables.numbers(measured)
    beside = tables.beside_published(rows, comparable=(samples, options.seed) == (FULL, SEED))
    different = tables.differing(rows, beside)
    bits = tables.bits(measured)
    columns = [*beside[0], "lowest", "highest", "reason"]
    found = {
        "summary": pd.DataFrame(tables.summary(beside)),
        "numbers": pd.DataFrame(beside),
        "differing": pd.DataFrame(different, columns=columns).astype(_kinds(columns)),
        "log-space": pd.DataFrame([row for row in rows if row["method"].startswith("Log-space")]),
        "bits": bits,
        "check": tables.checks(agreements),
    }
    figures = {"errors": errors_figure(beside), "bits": bits_figure(bits)}
    findings = [
        *compared(beside, different, samples),
        sign_exact(measured),
        complex_power(complex_powers(options.checked, options.seed)),
        checked(agreements),
        few_divisors(measured),
    ]
    return Result(found, figures, findings)


def _kinds(columns: list[str]) -> dict[str, str]:
    """Column kinds of table `differing`, which may have no rows."""
    kinds = {"n": "int64"} | dict.fromkeys(("measured", "low", "high", "lowest", "highest"), "float64")
    return {column: kinds.get(column, "str") for column in columns}


def compared(beside: "list[Row]", different: "list[Row]", samples: int) -> list[Finding]:
    """How many numbers agree to the printed digits, and one sentence for each that does not."""
    total = [row for row in beside if row["agrees"]]
    if not total:
        text = (
            f"A short run or another seed: {samples:,} input pairs a row. Published numbers stand beside the measured "
            "ones but are not compared; --full is the published protocol."
        )
        return [Finding(text, value=samples, n=samples, control="published input pairs", control_value=MOST)]
    agree = sum(row["agrees"] == "yes" for row in total)
    verdict = "which is enough" if agree >= ASKED else "which is TOO FEW"
    text = f"{agree} of {len(total)} published numbers agree to their printed digits, {verdict}."
    found = [Finding(text, value=agree, n=len(total), control="asked for", control_value=ASKED)]
    for row in different:
        words = f"{row['operation']} {row['format']} {row['method']}, {row['quantity']}: {row['measured']:.4g}"
        text = f"{words}, published {row['published']}. Reason: {_because(row)}."
        bounds = {} if row["low"] != row["low"] else {"low": row["low"], "high": row["high"]}
        found.append(Finding(text, row["measured"], n=row["n"], control="published",
                             control_value=float(row["published"]), **bounds))  # fmt: skip
    return found


def _because(row: "Row") -> str:
    """The reason of a differing number in words."""
    from analyses.hill._hill_precision_tables import REASONED

    if row["reason"] != REASONED:
        return "not found"
    return (
        f"who computes logarithm and exponential; three implementations give {row['lowest']:.4g} to "
        f"{row['highest']:.4g} on the same samples (MKL's code for AVX2 gives the published digits: set "
        "MKL_ENABLE_INSTRUCTIONS=AVX2 before the start)"
    )


def sign_exact(measured: "Measured") -> Finding:
    """Whether the sign-exact method returns the native operator's bits everywhere, beside what Complex128 does."""
    from analyses.hill._hill_precision_measure import COMPLEX, NATIVE, SIGN_EXACT

    rows = [(methods[SIGN_EXACT], methods[NATIVE]) for methods in measured.values() if SIGN_EXACT in methods]
    equal, n = sum(tally.equal for tally, _ in rows), sum(tally.n + tally.not_finite for tally, _ in rows)
    excess = max(abs(tally.mean - native.mean) for tally, native in rows)
    others = [methods[COMPLEX] for methods in measured.values() if COMPLEX in methods]
    share = sum(tally.equal for tally in others) / sum(tally.n + tally.not_finite for tally in others)
    verdict = "returns the native operator's bits on every sample" if equal == n else "does NOT return the native bits"
    text = (
        f"Sign-exact {verdict} of multiply and divide in both formats; the largest additional mean squared error of "
        f"the four rows is {excess:.2g}."
    )
    return Finding(text, equal / n, *wilson(equal, n), n, "the same share for Complex128", share)


def complex_power(powers: "Powers") -> Finding:
    """How often a number to the power 1 comes back from complex128 as it was: the reason for Complex128's floor."""
    n, share = powers.numbers, powers.kept / powers.numbers
    text = (
        f"x^1 in complex128 is x on {share:.1%} of the float64 inputs of multiply: a logarithm, an exponential and a "
        f"rotation round where nothing was to be computed. On {2 * powers.explained / n:.1%} of the pairs Complex128's "
        "answer is the product of the two powers, so this is all that it adds to the native error."
    )
    return Finding(text, share, *wilson(powers.kept, n), n, "x^1 in real powers", 1.0)


def checked(agreements: "dict[Config, dict[str, Agreement]]") -> Finding:
    """The largest relative difference between error-free and 50-digit squared errors."""
    from analyses.hill._hill_precision_check import DIGITS, TOLERANCE

    every = [found for methods in agreements.values() for found in methods.values()]
    largest, n = max(found.largest for found in every), sum(found.n for found in every)
    verdict = "agree with" if all(found.passed for found in every) else "do NOT agree with"
    text = f"Squared errors by error-free transformations {verdict} {DIGITS}-digit arithmetic on {n:,} answers."
    return Finding(text, largest, n=n, control="largest relative difference allowed", control_value=TOLERANCE)


def few_divisors(measured: "Measured") -> Finding:
    """How much of native float64 division's summed squared error ten samples carry, beside multiplication's."""
    from analyses.hill._hill_precision_measure import NATIVE

    shares = {c.operation: t[NATIVE].share_of_largest(10) for c, t in measured.items() if c.precision == "float64"}
    n = next(t[NATIVE].n for c, t in measured.items() if (c.operation, c.precision) == ("divide", "float64"))
    text = (
        f"Ten of {n:,} samples carry {shares['divide']:.1%} of the summed squared error of float64 division, those "
        "whose divisors come near 0: its mean and maximum belong to these samples, not to the distribution."
    )
    return Finding(text, shares["divide"], n=n, control="the same for multiplication", control_value=shares["multiply"])
