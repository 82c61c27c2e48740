"""Carry and borrow structure of each problem, and the categories it falls in.

Words as in the closest peer's work (Quirke, Neo, Barez, "Understanding Addition and Subtraction in Transformers"):
S is addition, M subtraction with answer >= 0, N subtraction with a negative answer; the number is the longest chain.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int8

from workbench.errors import BadInput
from workbench.task import Problems, digits_of

CLASSES = ("S0", "S1", "S2", "S3", "S4", "M0", "M1", "M2", "M3", "N1", "N2", "N3", "N4")
GROUPINGS = ("operator", "sign", "count", "chain", "class")

Flags = Bool[np.ndarray, "problem place"]


@dataclass(frozen=True, eq=False)
class Structure:
    """Per problem: which places carry (borrow), how many, and the longest chain.

    `moves[:, i]` says that place i (0 is the units) carries into place i+1, or borrows from it. Subtractions are taken
    larger minus smaller, as the answer's digits are; only `peer_chain` of a negative answer reads a - b literally.
    """

    moves: Bool[np.ndarray, "problem 4"]
    count: Int8[np.ndarray, " problem"]
    chain: Int8[np.ndarray, " problem"]
    peer_chain: Int8[np.ndarray, " problem"]


def _travel(starts: Flags, continues: Flags) -> tuple[Flags, Int8[np.ndarray, " problem"]]:
    """Where a carry or borrow moves, and the longest run of places one of them travels.

    It starts where a digit pair makes one by itself and continues while the next pair passes it on.
    """
    moves = np.zeros_like(starts)
    run = np.zeros(len(starts), dtype=np.int8)
    longest = run.copy()
    for place in range(starts.shape[1]):
        run = np.where(starts[:, place], 1, np.where(continues[:, place] & (run > 0), run + 1, 0)).astype(np.int8)
        moves[:, place] = run > 0
        np.maximum(longest, run, out=longest)
    return moves, longest


def structure(problems: Problems) -> Structure:
    """The carry or borrow structure of each problem."""
    a = digits_of(problems.a)[:, ::-1].astype(np.int8)
    b = digits_of(problems.b)[:, ::-1].astype(np.int8)
    minus, negative = problems.subtract[:, None], problems.negative[:, None]
    larger, smaller = np.where(negative, b, a), np.where(negative, a, b)
    starts = np.where(minus, larger < smaller, a + b >= 10)
    continues = np.where(minus, larger == smaller, a + b == 9)
    moves, chain = _travel(starts, continues)

    above = np.cumsum((a + b)[:, ::-1], axis=1)[:, ::-1] > 0  # some digit at this place or a higher one
    _, literal = _travel(a < b, (a == b) & above)
    peer_chain = np.where(problems.negative, literal, chain).astype(np.int8)
    return Structure(moves, moves.sum(axis=1, dtype=np.int8), chain, peer_chain)


def categories(problems: Problems, grouping: str) -> np.ndarray:
    """The category of each problem as text, under one of GROUPINGS.

    operator: addition, subtraction. sign: +, -. count: `2 carries`, `1 borrow`. chain: `addition chain 3`.
    class: S0..S4, M0..M3, N1..N4. Raises BadInput for another grouping.
    """
    if grouping not in GROUPINGS:
        raise BadInput(f"unknown grouping {grouping!r}; choose from {', '.join(GROUPINGS)}")
    subtract, negative = problems.subtract.astype(int), problems.negative.astype(int)
    match grouping:
        case "operator":
            place = subtract
        case "sign":
            place = negative
        case "count":
            place = 5 * subtract + structure(problems).count  # additions have 0 to 4 carries, then borrows follow
        case "chain":
            place = 5 * subtract + structure(problems).chain
        case _:
            place = 5 * subtract + 3 * negative + structure(problems).peer_chain  # N1 follows M3
    return np.array(category_names(grouping))[place]


def in_category(problems: Problems, name: str) -> Bool[np.ndarray, " problem"]:
    """Which problems fall in a category, whatever its grouping (`subtraction`, `-`, `2 carries`, `M3`, ...)."""
    for grouping in GROUPINGS:
        if name in category_names(grouping):
            return categories(problems, grouping) == name
    known = [name for grouping in GROUPINGS for name in category_names(grouping)]
    raise BadInput(f"unknown category {name!r}; choose from {', '.join(known)}")


def category_names(grouping: str) -> list[str]:
    """Every category of a grouping, in reading order."""
    counts = [f"{n} {'carry' if n == 1 else 'carries'}" for n in range(5)]
    return {
        "operator": ["addition", "subtraction"],
        "sign": ["+", "-"],
        "count": counts + [f"{n} borrow{'' if n == 1 else 's'}" for n in range(4)],
        "chain": [f"addition chain {n}" for n in range(5)] + [f"subtraction chain {n}" for n in range(4)],
        "class": list(CLASSES),
    }[grouping]
