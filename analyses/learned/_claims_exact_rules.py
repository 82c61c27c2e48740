"""When a short run supports or refutes a sentence on exact units or kernel machines: rules, without numbers measured.

A short run can be too short to refute: units may still be on their way. So `mostly` refutes only if told that the run
was a whole one, and what cannot be decided is open; the row then names the command that decides.

Unlike those of `_claims_rules.py`, these were written when the analyses had already been run, and the sizes of the
short runs were chosen after trying some: they sum up what the analyses found, and are no new test of it.
"""

from collections.abc import Sequence

from analyses._rows import Share
from analyses.learned._claims_rules import Verdict

IDENTICAL = 0.9999  # what a sample's interval must lie above for "identical": 38,411 samples without an exception
RELIABLE = 0.95  # "reliably"
ALMOST_ALL = 0.90  # "almost all"
RARELY = 0.05  # "rarely"
HALF = 0.5  # "should" do a thing: more often than not
FLAT = 1.1  # times as many templates a doubling of the inputs at the largest size as at one bit, for "logarithmically"
STEEP = 2.0  # and from which it is not


def every(right: int, n: int) -> Verdict:
    """Of a sentence about all of n things, all of them looked at: one exception refutes it."""
    return "supported" if right == n else "refuted"


def identical(same: Share) -> Verdict:
    """Of "identical", from a sample: one exception refutes it, too small a sample leaves it open."""
    if same.right < same.n:
        return "refuted"
    return "supported" if same.low > IDENTICAL else "open"


def mostly(found: Share, least: float, *, whole: bool) -> Verdict:
    """Of a sentence that at least a share `least` do a thing; below it a whole run refutes, a shorter one does not."""
    if found.low >= least:
        return "supported"
    return "refuted" if whole and found.high < least else "open"


def rarely(found: Share, most: float = RARELY) -> Verdict:
    """Of a sentence that a thing happens in less than a share `most`."""
    return "supported" if found.high < most else "refuted" if found.low > most else "open"


def apart(more: Share, less: Share) -> Verdict:
    """Of a sentence that a thing happens more often here than there: the 95% intervals must not overlap."""
    return "supported" if more.low > less.high else "refuted" if more.high < less.low else "open"


def enough_alone(alone: Share, together: Share) -> Verdict:
    """Of a sentence that one of two causes does it: refuted if alone it does less often what both do together."""
    if alone.high < together.low:
        return "refuted"
    return "supported" if alone.low > HALF else "open"


def only_there(there: Share, elsewhere: Share) -> Verdict:
    """Of a sentence that failures happen there and nowhere else."""
    if elsewhere.low > there.high:
        return "refuted"
    return "supported" if elsewhere.right == 0 and apart(there, elsewhere) == "supported" else "open"


def begins(near: Share, far: Share) -> Verdict:
    """Of "near ones never fail, failures begin further out": refuted by one failure near."""
    if near.right:
        return "refuted"
    return "supported" if apart(far, near) == "supported" else "open"


def piecewise(circuits: Share, single: Share) -> Verdict:
    """Of "circuits lock in piecewise": most of them do, and more of them than of circuits with one unit trained."""
    if circuits.high < HALF:
        return "refuted"
    return "supported" if circuits.low > HALF and circuits.low > single.high else "open"


def exact(wrong: int, control_wrong: int) -> Verdict:
    """Of "executes exactly", over every input: one wrong refutes it; open if the control, made to fail, does not."""
    if wrong:
        return "refuted"
    return "supported" if control_wrong else "open"


def logarithmic(growth: Sequence[float]) -> Verdict:
    """Of "logarithmically many": templates a doubling of the inputs, the largest size over the smallest, by algorithm.

    A number that grows as the logarithm keeps that quotient at 1; one that grows as its square raises it without bound.
    """
    if all(quotient <= FLAT for quotient in growth):
        return "supported"
    return "refuted" if any(quotient >= STEEP for quotient in growth) else "open"


def foretold(flips: int, missed: int, false_alarms: int) -> Verdict:
    """Of a condition under which signs are kept: refuted by a flip that it does not tell; open if nothing flips."""
    if missed or false_alarms:
        return "refuted"
    return "supported" if flips else "open"


def at_most_order(exponents: Sequence[tuple[float, float]], claimed: float) -> Verdict:
    """Of `O(l^claimed)`, an upper bound, from the 95% intervals of measured exponents."""
    if any(low > claimed for low, _ in exponents):
        return "refuted"
    return "supported" if all(high <= claimed for _, high in exponents) else "open"
