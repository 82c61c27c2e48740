"""Patterns: what each of a problem's four digit pairs does by itself; the chance of an error is compared within them.

In additions a pair's digits sum to less than nine, to nine, or to more; in subtractions the first is larger, both are
zero, both are equal, or the second is larger. Carries, borrows, chains and classes all follow from the pattern, so
what two models share beyond the patterns is not that both find long chains hard.
"""

import numpy as np
from jaxtyping import Int64

from workbench.recipe import Variant
from workbench.task import Problems, digits_of

GROUPS = ("addition", "answer >= 0", "negative")
_ADDITION, _SUBTRACTION = (45, 10, 45), (45, 1, 9, 45)  # digit pairs of each kind
_FIRST = 3**4  # subtractions follow
PATTERNS = _FIRST + 4**4


def patterns(problems: Problems) -> Int64[np.ndarray, " problem"]:
    """The pattern of each problem: 81 of additions, then 256 of subtractions; thousands weigh most."""
    a, b = digits_of(problems.a).astype(np.int64), digits_of(problems.b).astype(np.int64)
    summed = np.digitize(a + b, (9, 10)) @ 3 ** np.arange(3, -1, -1)
    apart = np.where(a > b, 0, np.where(a < b, 3, np.where(a == 0, 1, 2))) @ 4 ** np.arange(3, -1, -1)
    return np.where(problems.subtract, _FIRST + apart, summed)


def sizes(variant: Variant) -> Int64[np.ndarray, " pattern"]:
    """How many problems of the whole domain have each pattern; raises ValueError for `ordered`, which splits them."""
    if variant == "ordered":
        raise ValueError("a >= b is no function of an addition's pattern")
    found = []
    for kinds in (_ADDITION, _SUBTRACTION):
        one = np.array(kinds, np.int64)
        found.append(np.einsum("i,j,k,l->ijkl", one, one, one, one).ravel())
    found[0] *= variant != "subtraction"
    found[1] *= variant != "addition"
    return np.concatenate(found)


def of_operator(operator: str) -> slice:
    """The patterns of additions or of subtractions."""
    return slice(_FIRST) if operator == "addition" else slice(_FIRST, PATTERNS)


def groups(problems: Problems) -> Int64[np.ndarray, " problem"]:
    """Place in GROUPS of each problem."""
    return problems.subtract.astype(np.int64) + problems.negative
