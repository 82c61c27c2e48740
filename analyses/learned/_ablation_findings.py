"""What `ablation` found in a few rows and sentences, and the rules of its verdicts.

All thresholds were written before any of the trained decoders was ablated. That layer 0 is asked at groups of
positions, and the verdict `carries and borrows only`, came after the first maps of nodes had been seen.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analyses.learned._ablation_forward import ALL
from analyses.learned._ablation_measure import CONTROL, MEAN, METHODS
from analyses.learned._ablation_problems import FAILS, NEEDS
from analyses.learned._bounds import COUNTED, OVER_PROBLEMS, mean_bounds
from workbench.result import Finding
from workbench.statistics import wilson

ONLY = 0.9  # share of wrong digits of one kind from which a part is said to be for that kind only
FEW = 20  # wrong digits, or problems answered right, below which nothing is said of their kinds or shares
HIT = 0.5  # failing share from which a group of problems needs a part: most of it fails
SPARED = 0.1  # and up to which it does not: nine in ten stay right
BORROWING = tuple(name for name in NEEDS if name.endswith("borrows"))
MOVING = (*BORROWING, "addition, carries")
EQUAL = "random change of equal size"
GUESS, BY_GUESS = "five digits at random", 1e-5

Row = dict[str, Any]
Rows = list[Row]
Tables = Mapping[str, Rows]
PARTS = (
    ("heads and MLPs, each at all positions", "components", ("head", "MLP")),
    ("neurons, each at all positions", "components", ("neuron",)),
    ("heads and MLPs at single positions", "nodes", ("head", "MLP")),
    ("neurons at single positions", "nodes", ("neuron",)),
)


def only(rows: Rows, **values: object) -> Rows:
    """The rows that hold the given values, or one of a tuple of values, under those names."""
    wanted = {name: value if isinstance(value, tuple) else (value,) for name, value in values.items()}
    return [row for row in rows if all(row[name] in these for name, these in wanted.items())]


def useful(rows: Rows) -> int:
    """How many parts some class fails without."""
    return sum(row["first"] != "" for row in rows)


def for_carries_only(row: Row) -> bool:
    """Whether the digits lost with a part are lost to wrong carries and borrows only."""
    return row["wrong_digits"] >= FEW and row["carry"] >= ONLY


def verdict(shares: Mapping[str, float]) -> str:
    """What a part is for, from the failing shares of the NEEDS that could be judged.

    `borrows only`, `carries and borrows only`: all groups that need those fail without it, and all others are spared.
    `more than carries and borrows`: a group that needs neither fails. `nothing here`: all are spared. `some of each`:
    none of these. `unknown`: there are no groups to compare.
    """
    still = {name: share for name, share in shares.items() if name not in MOVING}
    for wanted, words in ((BORROWING, "borrows only"), (MOVING, "carries and borrows only")):
        inside = [share for name, share in shares.items() if name in wanted]
        outside = [share for name, share in shares.items() if name not in wanted]
        if not inside or not outside:
            return "unknown"
        if min(inside) >= HIT and max(outside) <= SPARED:
            return words
    if still and max(still.values()) >= HIT:
        return "more than carries and borrows"
    return "nothing here" if max(shares.values()) <= SPARED else "some of each"


def judged(rows: Rows) -> dict[str, float]:
    """Failing share of each of NEEDS with enough problems right."""
    return {row["needs"]: row["share"] for row in rows if row["n"] >= FEW}


def summary(tables: Tables) -> Rows:
    """One row a checkpoint: problems right, and useful parts of all by mean ablation."""
    rows: Rows = []
    for name in _names(tables["asked"]):
        asked = only(tables["asked"], checkpoint=name)
        right, all_asked = (sum(row[column] for row in asked) for column in ("right", "asked"))
        row: Row = {"checkpoint": name, "right": f"{right:,} of {all_asked:,}"}
        columns = ("useful heads, MLPs", "useful neurons", "useful at single positions")
        for column, (_, table, parts) in zip(columns, PARTS[:3], strict=True):
            here = only(tables[table], checkpoint=name, part=parts, method=MEAN)
            row[column] = f"{useful(here)} of {len(here)}"
        rows.append(row)
    return rows


def findings(tables: Tables, *, full: bool) -> list[Finding]:
    """What holds for the checkpoints of a shape, then each one's most needed head and what its last layer is for."""
    found = [_asked(tables["asked"], full)]
    for shape in dict.fromkeys(row["shape"] for row in tables["asked"]):
        for words, table, parts in PARTS:
            if rows := only(tables[table], shape=shape, part=parts):
                found.append(_useful(shape, words, rows))
        found.append(_carries(shape, only(tables["components"], shape=shape, part=("head", "MLP"), method=MEAN)))
        grouped = [row for row in only(tables["needs"], shape=shape) if row["position"] != ALL]
        for node in dict.fromkeys(row["node"] for row in grouped):
            found.append(_where(shape, only(grouped, node=node)))
    for name in _names(tables["asked"]):
        components, needs = (only(tables[table], checkpoint=name) for table in ("components", "needs"))
        if not components[0]["n"]:
            n = sum(row["asked"] for row in only(tables["asked"], checkpoint=name))
            text = f"{name} answers none of the problems right, so none can fail. Value: share right"
            found.append(Finding(text, 0, *wilson(0, n), n, GUESS, BY_GUESS))
            continue
        found.append(_strongest(name, only(components, part="head")))
        if last := max(row["layer"] for row in needs):
            found += _last_layer(name, only(needs, layer=last, position=ALL, method=MEAN))
    return found


def _names(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["checkpoint"] for row in rows))


def _pooled(pairs: Sequence[tuple[int, int]]) -> tuple[float, float | None, float | None, int]:
    """Share, interval and n of all models' problems, from (how many, of how many) of each model."""
    known = [(count, n) for count, n in pairs if n]
    ends = [wilson(count, n) for count, n in known]
    low, high = mean_bounds([end[0] for end in ends], [end[1] for end in ends], [n for _, n in known])
    total = sum(n for _, n in known)
    return sum(count for count, _ in known) / max(total, 1), low, high, total


def _counts(rows: Rows, count: str, n: str) -> list[tuple[int, int]]:
    """(how many, of how many) of each checkpoint's rows together."""
    each = [only(rows, checkpoint=name) for name in _names(rows)]
    return [(sum(row[count] for row in of), sum(row[n] for row in of)) for of in each]


def _asked(asked: Rows, full: bool) -> Finding:
    per_class = max(row["asked"] for row in asked)
    text = (
        f"{per_class} problems are asked of every class; failing is counted among those answered right with nothing "
        f"replaced, and a class fails when its failing share is above {FAILS:.0%} at 95%. Shares over all classes "
        "weigh every class alike, so rare long chains count as much as common problems."
    )
    text += "" if full else " A short run: neurons are replaced at all positions at once only; --full asks each one."
    text += f" Value: share of the problems asked that is answered right, {OVER_PROBLEMS}"
    return Finding(text, *_pooled(_counts(asked, "right", "asked")), GUESS, BY_GUESS)


def _spread(values: Sequence[int]) -> str:
    return f"{min(values)}" if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _useful(shape: str, words: str, rows: Rows) -> Finding:
    """How many parts some class fails without, by every method."""
    seeds = _names(rows)
    counts = {m: [useful(only(rows, checkpoint=seed, method=m)) for seed in seeds] for m in METHODS}
    total = len(rows) // len(METHODS)
    others = ", ".join(f"{method} {_spread(counts[method])}" for method in METHODS if method not in (MEAN, CONTROL))
    by_place = {(row["checkpoint"], row["node"]): row for row in only(rows, method=CONTROL)}
    beyond = [
        sum(row["low"] > by_place[row["checkpoint"], row["node"]]["high"] for row in only(of, method=MEAN))
        for of in (only(rows, checkpoint=seed) for seed in seeds)
    ]
    text = (
        f"{shape}: of {total // len(seeds)} {words}, {_spread(counts[MEAN])} are useful: some class fails when the "
        f"mean replaces what they write ({others}; {EQUAL} {_spread(counts[CONTROL])}); {_spread(beyond)} lose more "
        f"answers to the mean than to that change, intervals apart. Models: {len(seeds)}. Value: share over all of "
        f"them, {COUNTED}"
    )
    control = sum(counts[CONTROL]) / total
    return Finding(text, sum(counts[MEAN]) / total, n=total, control=EQUAL, control_value=control)


def _carries(shape: str, rows: Rows) -> Finding:
    """The heads and MLPs whose loss costs carries and borrows only."""
    kept = [row for row in rows if for_carries_only(row)]
    listed = []
    for seed in _names(rows):
        parts = ", ".join(row["component"] for row in only(kept, checkpoint=seed)) or "none"
        listed.append(f"{seed.rpartition('-')[2]}: {parts}")
    text = (
        f"{shape}: heads and MLPs without which {ONLY:.0%} of the digits lost are those of a wrong carry or borrow, "
        f"and at least {FEW} are ({'; '.join(listed)}). Value: share of heads and "
        f"MLPs, {COUNTED}"
    )
    lost = [row["carry_by_chance"] for row in rows if row["wrong_digits"]]
    control = "share of wrong digits that would be a carry's by chance"
    by_chance = sum(lost) / len(lost) if lost else None
    return Finding(text, len(kept) / len(rows), n=len(rows), control=control, control_value=by_chance)


def _strongest(name: str, heads: Rows) -> Finding:
    """The head without which most answers fail."""
    row = max(only(heads, method=MEAN), key=lambda row: row["share"])
    (control,) = only(heads, method=CONTROL, component=row["component"])
    text = (
        f"{name}: the head most answers fail without is {row['component']} (mean ablation at all positions); first "
        f"failing: {row['first'] or 'none'}; of {row['wrong_digits']:,} digits lost {row['carry']:.0%} are a wrong "
        f"carry or borrow, {row['direction']:.0%} the other direction, {row['operation']:.0%} the other operation"
    )
    return Finding(text, row["share"], row["low"], row["high"], row["n"], EQUAL, control["share"])


def _where(shape: str, rows: Rows) -> Finding:
    """What fails without a layer's writes at some positions, by what the problems need."""
    seeds = [judged(only(rows, checkpoint=seed, method=MEAN)) for seed in _names(rows)]
    ranges = []
    for need in NEEDS:
        if shares := [seed[need] for seed in seeds if need in seed]:
            ranges.append(f"{need} {min(shares):.2f} to {max(shares):.2f}")
    text = (
        f"{shape}: without what layer {rows[0]['layer']} writes at {rows[0]['position']} (mean ablation) these shares "
        f"fail, lowest to highest model: {', '.join(ranges) or 'too few right'}; there it is for: "
        f"{', '.join(verdict(seed) for seed in seeds)}. Value: of all, {OVER_PROBLEMS}"
    )
    found, control = (_pooled(_counts(only(rows, method=method), "fails", "n")) for method in (MEAN, CONTROL))
    return Finding(text, *found, EQUAL, control[0])


def _last_layer(name: str, needs: Rows) -> Iterator[Finding]:
    """Whether attention, its heads and the MLP of the last layer are for borrows only, by group of problems."""
    for part in ("attention", "MLP"):
        rows = only(needs, part=part)
        shares = judged(rows)
        borrowing = only(rows, needs=BORROWING)
        n, fails = (sum(row[column] for row in borrowing) for column in ("n", "fails"))
        if not n:
            continue
        listed = ", ".join(f"{group} {value:.2f}" for group, value in shares.items())
        text = (
            f"{name}: without {part} of layer {rows[0]['layer']} (mean ablation) these shares fail: {listed}; it is "
            f"for: {verdict(shares)}."
        )
        if part == "attention":
            heads = only(needs, part="head")
            each = dict.fromkeys(row["component"] for row in heads)
            text += " Its heads: " + ", ".join(f"{h} {verdict(judged(only(heads, component=h)))}" for h in each) + "."
        plain = shares.get(NEEDS[0])
        control = None if plain is None else "additions without a carry"
        yield Finding(f"{text} Value: of all problems that borrow", fails / n, *wilson(fails, n), n, control, plain)
