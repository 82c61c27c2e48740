"""What `ntk-exhaustive` found, in sentences: rules, and what they compare with."""

from typing import TYPE_CHECKING

from workbench.analysis import Finding

if TYPE_CHECKING:
    import pandas as pd

    from analyses.kernel._ntk_exhaustive_check import Checked

NAMES = {"permute": "Permutation", "add": "Addition", "multiply": "Multiplication"}
LAWS = {
    "permute": ("1", lambda bits: 1),
    "add": ("2l - 1", lambda bits: 2 * bits - 1),
    "multiply": ("4l^2 + l from l = 2 on", lambda bits: 4 * bits**2 + bits if bits > 1 else 3),
}  # steps that all inputs need: measured up to 6 and 4 bits before this analysis was written


def all_of(
    by_operation: "dict[str, list[Checked]]",
    controls: "dict[str, list[Checked]]",
    sizes: "pd.DataFrame",
    asked: dict[str, int],
) -> list[Finding]:
    """Every finding, an algorithm after the other."""
    found = short(asked)
    for name, rows in by_operation.items():
        found += [exact(rows, controls[name]), *threshold(controls[name]), margin(rows), steps(rows), padding(rows)]
        found.append(logarithmic(sizes.query("operation == @name")))
    return found


def short(asked: dict[str, int]) -> list[Finding]:
    """That the run stops at smaller sizes than --full, where it does."""
    from analyses.kernel.ntk_exhaustive import FULL

    less = [name for name, bits in asked.items() if bits < FULL[name]]
    if not less:
        return []
    sizes = ", ".join(f"{name} up to {asked[name]} bits ({FULL[name]} with --full)" for name in less)
    return [Finding(f"A short run: {sizes}.", len(less), n=len(asked))]


def exact(rows: "list[Checked]", control: "list[Checked]") -> Finding:
    """Wrong answers over every input of every size, beside the same with h spoilt."""
    name, bits = rows[-1].algorithm.name, rows[-1].algorithm.bits
    inputs, wrong = sum(row.algorithm.inputs for row in rows), sum(row.wrong for row in rows)
    flips = sum(row.survey.flips for row in rows)
    verdict = "is exact on every input" if wrong == 0 else "is NOT exact"
    text = (
        f"{NAMES[name]} {verdict} of 1 to {bits} bits: {wrong:,} of {inputs:,} wrong (all of them, so no interval), "
        f"{flips:,} bits whose sign is not that of an OR."
    )
    if not control:
        return Finding(text, wrong, n=inputs)
    spoilt = control[-1]
    label = f"h x {spoilt.leaking:.3g}, {spoilt.algorithm.bits} bits: wrong of {spoilt.algorithm.inputs}"
    return Finding(text, wrong, n=inputs, control=label, control_value=spoilt.wrong)


def threshold(control: "list[Checked]") -> list[Finding]:
    """Whether signs fail exactly where the sign rule says."""
    if not control:
        return []
    below, above, _ = control
    holds = below.survey.flips == 0 and below.wrong == 0 and above.survey.flips > 0
    name, bits = below.algorithm.name, below.algorithm.bits
    text = (
        f"{NAMES[name]} of {bits} bits: the sign rule {'tells' if holds else 'does NOT tell'} to a millionth how much "
        f"h may grow, x {(below.leaking + above.leaking) / 2:.4f}: {below.survey.flips:,} flips a millionth below it, "
        f"{above.survey.flips:,} above."
    )
    return [Finding(text, above.survey.flips, control="a millionth below", control_value=below.survey.flips)]


def margin(rows: "list[Checked]") -> Finding:
    """The means that come nearest to the threshold at the largest size."""
    algorithm, numbers = rows[-1].algorithm, rows[-1].numbers
    allowed = numbers["load"] * numbers["tolerance"] if numbers["load"] else 0.0
    text = (
        f"{NAMES[algorithm.name]} of {algorithm.bits} bits, N = {algorithm.templates.count}: at most "
        f"{numbers['most']:.0f} templates match; the smallest mean of a bit to be 1 is {numbers['one']:.4g}"
    )
    if numbers["zero"] == numbers["zero"]:
        text += f", the largest of one to be 0 is {-numbers['zero']:.3g}"
    if numbers["load"]:
        text += (
            f". The largest load is {numbers['load']:.1f} of {allowed:.1f}, so h may grow x {numbers['tolerance']:.3f}"
        )
    return Finding(text + ".", numbers["one"])


def steps(rows: "list[Checked]") -> Finding:
    """Whether the steps that all inputs need follow the law."""
    name = rows[-1].algorithm.name
    words, law = LAWS[name]
    off = [row.algorithm.bits for row in rows if row.settled != law(row.algorithm.bits)]
    verdict = f"is {words} at every size" if not off else f"is NOT {words} at {', '.join(map(str, off))} bits"
    text = (
        f"{NAMES[name]}: the number of steps after which no answer is wrong any more {verdict}; the machine is given "
        f"{rows[-1].algorithm.steps} at {rows[-1].algorithm.bits} bits."
    )
    return Finding(text, rows[-1].settled, n=len(rows), control="the law", control_value=law(rows[-1].algorithm.bits))


def padding(rows: "list[Checked]") -> Finding:
    """Whether the largest T times the largest m stays below the templates, without padding: then no sign can fail."""
    shares = [
        int(row.algorithm.templates.written.max()) * row.numbers["most"] / len(row.algorithm.templates.templates)
        for row in rows
    ]
    verdict = "needs no padding" if max(shares) <= 1 else "may need padding: the sufficient condition does NOT hold"
    text = (
        f"{NAMES[rows[-1].algorithm.name]} {verdict}: the largest T times the largest m is at most {max(shares):.3f} "
        f"of the templates at any size run, {shares[-1]:.3f} at the largest."
    )
    return Finding(text, max(shares), n=len(rows))


def logarithmic(sizes: "pd.DataFrame") -> Finding:
    """Whether templates grow as the logarithm of the number of possible inputs."""
    ratio = sizes["templates_per_doubling"]
    bounded = bool((ratio.diff().fillna(0) <= 1e-12).all())
    last = sizes.iloc[-1]
    verdict = "grow logarithmically with" if bounded else "grow FASTER than the logarithm of"
    text = (
        f"{NAMES[last['operation']]}: templates {verdict} the possible inputs, {ratio.iloc[-1]:.4g} for each doubling "
        f"of them at {last['bits']} bits ({ratio.iloc[0]:.4g} at one): {last['templates']} templates for "
        f"{last['inputs']:.3g} inputs."
    )
    return Finding(text, float(ratio.iloc[-1]), n=len(sizes), control="at one bit", control_value=float(ratio.iloc[0]))
