"""Sentences of `ntk-decimal` about the template set, the means and the number of digits."""

import itertools
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis import Finding
from workbench.ntk.decimal import Decimal

if TYPE_CHECKING:
    import pandas as pd

    from analyses.kernel._ntk_decimal_runs import Asked
    from analyses.kernel._ntk_decimal_tables import Leak


def about_templates(
    machine: Decimal, asked: "Asked", most: int, most_places: int, groups: "pd.DataFrame"
) -> list[Finding]:
    """How many templates, how much of an operand one reads, and how many iterations an answer takes."""
    count, places = machine.templates.count, max(groups["most_places"])
    verdict = "within" if count <= most else "MORE than"
    one = "no template reads more than" if places <= most_places else "some template reads MORE than"
    spent = asked.iterations.sum(axis=0)
    steps = np.arange(len(spent))
    mean, highest = float(spent @ steps / spent.sum()), int(steps[spent > 0].max())
    return [
        Finding(
            f"{count:,} templates ({machine.templates.padding} of them padding) over {machine.templates.layout.bits} "
            f"bits, {verdict} the {most:,} asked for; {one} {most_places} place of each operand.",
            count,
            control="templates asked for, at most",
            control_value=most,
        ),
        Finding(
            f"An answer stands after {mean:.2f} iterations on average and {highest} at most; a place more that a carry "
            "or borrow may have to pass costs one.",
            highest,
            n=asked.n,
            control="mean",
            control_value=mean,
        ),
    ]


def about_means(means: "pd.DataFrame", asked: "Asked", leak: "Leak") -> list[Finding]:
    """How far the means of bits to be 1 and of the others lie apart, and how near the sign rule is to failing."""
    ones = means[means["S"] >= 1]
    others = means[(means["S"] == 0) & (means["T"] > 0) & (means["m"] >= 2)]
    low, high, load = min(ones["mean"]), max(others["mean"]), max(ones["load"])
    right = leak.below == (0, 0) and leak.above[0] > 0
    return [
        Finding(
            f"Bits that a matched template writes have a mean of {low:.4f} or more, bits that only others write one of "
            f"{high:.5f} or less; {asked.flips:,} signs differ from the wanted ones. The load of the sign rule is "
            f"{load:.3f} at most, where 1 would be too much.",
            load,
            n=asked.n,
            control="load at which a sign fails",
            control_value=1,
        ),
        Finding(
            f"On {leak.problems} problems the rule lets h_m grow {leak.factor:.2f} times: {leak.below[0]:,} bits flip "
            f"1% below that and {leak.above[0]:,} flip 1% above it, {leak.above[1]:,} answers wrong, which "
            f"{'is' if right else 'is NOT'} as predicted.",
            leak.above[0],
            n=leak.problems,
            control="flips 1% below",
            control_value=leak.below[0],
        ),
    ]


def about_size(sizes: "pd.DataFrame") -> list[Finding]:
    """What more digits cost."""
    n, wrong, templates = sum(sizes["problems"]), sum(sizes["wrong"]), list(sizes["templates"])
    more = {above - below for below, above in itertools.pairwise(templates)}
    cost = f"{min(more):,}" if len(more) == 1 else "not always as many"
    text = (
        f"From {min(sizes['digits'])} to {max(sizes['digits'])} digits, each digit costs {cost} templates and one "
        f"iteration; padding needed: {max(sizes['padding needed'])}; {wrong:,} of {n:,} random problems wrong."
    )
    return [Finding(text, wrong, n=n)]
