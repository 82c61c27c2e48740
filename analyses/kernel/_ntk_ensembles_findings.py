"""Findings of `ntk-ensembles`; the thresholds of its verdicts were written before its full run."""

import statistics
from collections.abc import Sequence

from analyses._rows import Row, where
from analyses.kernel._ntk_ensembles_arithmetic import FAILURE
from analyses.kernel._ntk_ensembles_permutation import LAW, MIDPOINT, TRAINED, ZERO
from analyses.kernel._ntk_ensembles_protocol import ERRORS, Checks, Sums
from analyses.kernel._ntk_ensembles_recipes import mean_error
from analyses.kernel._ntk_ensembles_tables import ALL_INPUTS, published, quotients
from analyses.published import load
from workbench.analysis import Finding
from workbench.ntk.ensemble import LIMIT
from workbench.statistics import Z95

LARGE = 10  # the smallest k at which counts are compared one by one
WITHIN = 1.5  # a measured median over the published count, or the other way round
LINEAR = 4  # the smallest k at which the published rate is below the largest stable one: 8.2, 3.0, 1.5 for k = 2, 3, 4
COUNT_MOVED = 1.2  # a width moves the predictor if the count that its mean and spread imply differs by this factor
STEP_MOVED = 0.05  # steps move it if outputs differ by this share of one network's standard deviation, root mean square
QUADRATIC = 1.75  # an exponent whose interval lies below this is less than that of l^2


def every(
    trials: Sequence[Row], cells: Sequence[Row], checks: Checks, sums: Sums, orders: Sequence[Row]
) -> list[Finding]:
    """All findings, those of the published experiments first."""
    found: list[Finding] = []
    for error in ERRORS:
        found += beside_published(cells, error)
    for error in ERRORS:
        found += inside_bands(cells, error)
    return [
        *found, *forms(trials), *against_law(cells), *middle(cells), *means(checks), *widths(checks),
        *steps(checks), *grows(orders), *half_way(sums), *unwritten(sums), *exact(sums),
    ]  # fmt: skip


def factor(a: float, b: float) -> float:
    """How many times the larger is the smaller."""
    return max(a / b, b / a)


def beside_published(cells: Sequence[Row], error: float) -> list[Finding]:
    """Whether every median of trained networks in the standard form is within `WITHIN` of the published count."""
    theirs = published(error)
    of = [cell for cell in where(cells, error=error, threshold=ZERO) if cell["k"] >= LARGE and cell["k"] in theirs]
    mine = where(of, form="nngp", kind=TRAINED)
    if not mine:
        return []
    quotient = {cell["k"]: cell["median"] / theirs[cell["k"]] for cell in mine}
    worst = max(quotient, key=lambda k: factor(quotient[k], 1))
    other = [factor(cell["median"], theirs[cell["k"]]) for cell in where(of, form="ntk", kind=LAW)]
    holds = factor(quotient[worst], 1) <= WITHIN
    text = (
        f"Trained networks in the published form, accuracy {1 - error:g}: medians are "
        f"{', '.join(f'{value:.2f}' for value in quotient.values())} times the published counts at k = "
        f"{', '.join(map(str, quotient))}; {'all' if holds else 'NOT all'} are within a factor {WITHIN}."
    )
    trials = min(cell["trials"] for cell in mine)
    control = max(other) if other else None
    return [
        Finding(text, quotient[worst], n=trials, control="largest factor under the NTK law" if other else None,
                control_value=control)
    ]  # fmt: skip


def inside_bands(cells: Sequence[Row], error: float) -> list[Finding]:
    """How many published counts lie within the 90% band of single trials under each law."""
    theirs = {k: n for k, n in published(error).items() if k >= LINEAR}

    def inside(form: str) -> list[bool]:
        laws = where(cells, error=error, threshold=ZERO, form=form, kind=LAW)
        return [cell["band_low"] <= theirs[cell["k"]] <= cell["band_high"] for cell in laws if cell["k"] in theirs]

    nngp, ntk = inside("nngp"), inside("ntk")
    if not nngp or not ntk:
        return []
    text = (
        f"Published counts at accuracy {1 - error:g} from k = {LINEAR}: {sum(nngp)} of {len(nngp)} lie in the 90% band "
        f"of the NNGP law, {sum(ntk)} of {len(ntk)} in that of the NTK law."
    )
    share = sum(ntk) / len(ntk)
    return [Finding(text, sum(nngp) / len(nngp), n=len(nngp), control="in the NTK band", control_value=share)]


def forms(trials: Sequence[Row]) -> list[Finding]:
    """How many times the networks NTK form takes, trained both ways."""
    found = []
    for error in ERRORS:
        for row in quotients(trials, error):
            more = "more" if row["low"] > 1 else "fewer" if row["high"] < 1 else "not clearly more or fewer"
            text = (
                f"k = {row['k']}, accuracy {1 - error:g}: NTK form needs {row['times']:.1f} times the networks of the "
                f"standard form ({more}), both trained."
            )
            found.append(Finding(text, row["times"], row["low"], row["high"], row["n"], "no difference", 1.0))
    return found


def against_law(cells: Sequence[Row]) -> list[Finding]:
    """Medians of trained networks against the law of their own form."""
    found = []
    for form, words in (("nngp", "standard"), ("ntk", "NTK")):
        pairs = [
            (cell["median"], law)
            for cell in where(cells, form=form, kind=TRAINED, threshold=ZERO)
            for law in where(cells, form=form, kind=LAW, threshold=ZERO, k=cell["k"], error=cell["error"])
        ]
        if not pairs:
            continue
        held = sum(law["band_low"] <= median <= law["band_high"] for median, law in pairs)
        quotient = [median / law["median"] for median, law in pairs]
        text = (
            f"Trained in {words} form: {held} of {len(pairs)} medians lie in the 90% band of their Gaussian law; they "
            f"are {min(quotient):.2f} to {max(quotient):.2f} times its medians."
        )
        middle = statistics.median(quotient)
        found.append(Finding(text, middle, n=len(pairs), control="the law", control_value=1.0))
    return found


def middle(cells: Sequence[Row]) -> list[Finding]:
    """The midpoint threshold's counts beside those of zero."""
    real = where(cells, kind=TRAINED, threshold=MIDPOINT)
    if not real:
        return []
    most = max(cell["most"] for cell in real)
    zero = max(cell["most"] for cell in where(cells, kind=TRAINED, threshold=ZERO))
    text = (
        f"With the midpoint as threshold no trial of either form took more than {most} networks, at any k and accuracy."
    )
    n = sum(cell["trials"] for cell in real)
    return [Finding(text, most, n=n, control="most at threshold zero", control_value=zero)]


def means(checks: Checks) -> list[Finding]:
    """Which law the published networks' means are those of, at k = 10, within the sampling error of their number."""
    theirs, k = load("ntk")["means_at_10"], 10
    if not where(checks.widths, k=k, form="standard"):
        return []
    found = []
    widest = max(where(checks.widths, k=k, form="standard"), key=lambda row: row["width"])
    limits = {form: where(checks.widths, k=k, form=form, width=0)[0] for form in ("standard", "ntk")}
    for part, words in (("on", "1"), ("off", "0")):
        half = {form: Z95 * mean_error(form, k)[part] / theirs["networks"] ** 0.5 for form in LIMIT}
        fits = [name for form, name in (("standard", "NNGP"), ("ntk", "NTK"))
                if abs(theirs[part] - limits[form][part]) <= half[form]]  # fmt: skip
        text = (
            f"k = {k}, mean output where the answer is {words}: {widest[part]:.4f} in the standard form at width "
            f"{widest['width']:,}, {theirs[part]:.4f} +- {half['standard']:.4f} in the published networks, "
            f"{limits['standard'][part]:.4f} by the NNGP law, {limits['ntk'][part]:.4f} by the NTK law; the published "
            f"agrees with {' and '.join(fits) or 'NEITHER'}."
        )
        low, high = widest[f"{part}_low"], widest[f"{part}_high"]
        found.append(Finding(text, widest[part], low, high, widest["pairs"], "published", theirs[part]))
    return found


def widths(checks: Checks) -> list[Finding]:
    """Whether a narrower width moves the predictor."""
    found = []
    for form, k in dict.fromkeys((row["form"], row["k"]) for row in checks.widths):
        law, *rows = where(checks.widths, form=form, k=k)
        moves = [row["width"] for row in rows if not _meets(row, law["implied"])]
        verdict = f"{', '.join(f'{width:,}' for width in moves)} MOVES" if moves else "none moves"
        every = ", ".join(f"{row['width']:,}" for row in rows)
        text = (
            f"{form} form, k = {k}: mean and spread at widths {every} imply "
            f"{', '.join(str(row['implied']) for row in rows)} networks, the law {law['implied']}; {verdict} the "
            f"count beyond a factor {COUNT_MOVED}."
        )
        last = rows[-1]
        ends = [last[name] / law["implied"] for name in ("implied", "implied_low", "implied_high")]
        found.append(Finding(text, ends[0], min(ends), max(ends), last["pairs"], "the law", 1.0))
    return found


def steps(checks: Checks) -> list[Finding]:
    """Whether larger steps move the outputs of the same networks."""
    found = []
    for row in checks.steps:
        text = (
            f"{row['form']} form, k = {row['k']}, width {row['width']:,}: {row['count']} {row['steps']} steps "
            f"{'do not move' if row['rms'] <= STEP_MOVED else 'MOVE'} the outputs of the same networks: "
            f"{row['rms']:.2g} of a standard deviation, root mean square; their mean where the answer is 0 moves by "
            f"{row['off']:.2g} ({row['off_low']:.2g} to {row['off_high']:.2g})."
        )
        found.append(Finding(text, row["rms"], n=2 * row["pairs"], control="threshold", control_value=STEP_MOVED))
    return found


def _meets(row: Row, law: float) -> bool:
    """Whether the interval of implied counts meets the law's within the factor; `implied_high` 0 is no count."""
    high = row["implied_high"] or float("inf")
    return row["implied_low"] <= law * COUNT_MOVED and high >= law / COUNT_MOVED


def grows(orders: Sequence[Row]) -> list[Finding]:
    """Does the ensemble grow as l^2? At the midpoint there are too few networks for an exponent (`half_way`)."""
    found = []
    for row in where(orders, threshold=ZERO, of="networks"):
        (bound,) = where(orders, operation=row["operation"], threshold=ZERO, source=row["source"], of="bound")
        less = row["high"] < QUADRATIC
        text = (
            f"{row['operation']}, threshold zero, l = {row['from']:,} to {row['to']:,} ({row['source']}): networks for "
            f"all inputs grow as l^{row['exponent']:.2f}, {'less than' if less else 'NOT less than'} l^2; the bound "
            f"from the worst decision grows as l^{bound['exponent']:.2f}."
        )
        ends = (row["low"], row["high"]) if row["source"] == ALL_INPUTS else (None, None)
        found.append(
            Finding(text, row["exponent"], *ends, control="exponent of the bound", control_value=bound["exponent"])
        )
    return found


def half_way(sums: Sums) -> list[Finding]:
    """Networks for all inputs at the midpoint."""
    found = []
    for operation in dict.fromkeys(row["operation"] for row in sums.predicted):
        zero, middle = (where(sums.predicted, operation=operation, threshold=name) for name in (ZERO, MIDPOINT))
        text = (
            f"{operation}, l = {middle[0]['bits']} to {middle[-1]['bits']}: at the midpoint "
            f"{', '.join(str(row['networks']) for row in middle)} networks make every decision of all inputs right but "
            f"for probability {FAILURE:g}; at threshold zero {', '.join(format(row['networks'], ',') for row in zero)}."
        )
        found.append(
            Finding(text, middle[-1]["networks"], n=middle[-1]["decisions"], control="at threshold zero",
                    control_value=zero[-1]["networks"])
        )  # fmt: skip
    return found


def unwritten(sums: Sums) -> list[Finding]:
    """Decisions that threshold zero leaves to chance."""
    found = []
    last = {row["operation"]: row for row in where(sums.predicted, threshold=ZERO) if row["unwritten"]}
    for operation, row in last.items():
        text = (
            f"{operation}, l = {row['bits']}: {row['unwritten']:,} decisions fall on bits that no template writes, in "
            f"states with m >= 2; their mean is exactly 0, so no ensemble decides them at threshold zero."
        )
        n = row["unwritten"] + row["decisions"]
        found.append(Finding(text, row["unwritten"], n=n, control="at the midpoint", control_value=0))
    return found


def exact(sums: Sums) -> list[Finding]:
    """Networks that were trained until every state of addition was right."""
    found = []
    real = where(sums.trials, kind="trained")
    for bits in sorted({row["bits"] for row in real}):
        zero, half = (
            [row["networks"] for row in where(real, bits=bits, threshold=threshold)] for threshold in (ZERO, MIDPOINT)
        )
        law = [row["networks"] for row in where(sums.trials, kind="law", bits=bits, threshold=ZERO)]
        text = (
            f"Addition of {bits} bits by trained networks in NTK form: every state of every input is right with "
            f"{statistics.median(zero):g} networks ({min(zero)} to {max(zero)}) at threshold zero, "
            f"{statistics.median(half):g} at the midpoint."
        )
        found.append(
            Finding(text, statistics.median(zero), n=len(zero), control="median under the law",
                    control_value=statistics.median(law))
        )  # fmt: skip
    return found
