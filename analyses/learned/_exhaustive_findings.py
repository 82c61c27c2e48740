"""Findings of `exhaustive`, and the rules of their verdicts.

The thresholds were written before any error of these models was looked at. A set of problems is where errors
*concentrate* when in every seed it holds at least half of the errors and twice its share of the problems; a set that
was picked for its errors is picked on the other seeds. Wrong answers are *mostly* of a kind when in every seed at least
half are, and twice as many as by chance. Passing pairs alone were asked about later, and FAR was set, after the first
model (relu-2layer-seed0) had been seen; the other models test it.
"""

from collections.abc import Sequence
from typing import Any

from analyses.learned._exhaustive_kinds import BEYOND, NO_NUMBER, OFF_BY, PASSING
from analyses.learned._exhaustive_tables import (
    HARDEST,
    OPERATORS,
    Cell,
    Shapes,
    cells_of,
    classes_of,
    operators_of,
    ranked_cells,
    ranked_classes,
)
from workbench.analysis import Finding
from workbench.exhaustive.result import Exhaustive
from workbench.exhaustive.tally import PLACES, lines
from workbench.recipe import TRAIN_EXAMPLES

HALF = 0.5
TIMES = 2.0
FAR = 2  # passing pairs below a digit


def holds(shares: Sequence[float], controls: Sequence[float]) -> bool:
    """The rule: in every seed at least HALF, and TIMES what the control gives."""
    pairs = list(zip(shares, controls, strict=True))
    return bool(pairs) and all(share >= HALF and share >= TIMES * control for share, control in pairs)


def findings(shapes: Shapes, kinds: list[dict[str, Any]], unfinished: Sequence[str]) -> list[Finding]:
    """What was counted; then for each shape its totals, hardest class, where errors concentrate, how they look."""
    found = [_counted([one for group in shapes.values() for one in group], unfinished)]
    for shape, models in shapes.items():
        found += [total for operator in OPERATORS if (total := _total(shape, models, operator))]
        erring = [one for one in models if one.wrong]
        if not erring:
            continue
        found += [_hardest_class(shape, models), _class_of_most_errors(shape, erring), _hardest_cells(shape, erring)]
        listed = [one for one in erring if one.listed]
        if listed:
            own = [row for row in kinds if row["shape"] == shape]
            found += [
                _passing(shape, listed, own),
                _off_by_one(shape, listed, own),
                _beyond_the_first(shape, listed, own),
            ]
    return found


def _counted(models: list[Exhaustive], unfinished: Sequence[str]) -> Finding:
    digits, problems = sum(sum(one.near) for one in models), sum(one.n for one in models)
    text = (
        f"Every problem is counted for each of {len(models)} {_plural('model', len(models))}, {problems:,} answers in "
        f"all, {digits:,} digits of them decided by float64. Nothing is sampled, so rates have no sampling interval; "
        f"`a to b` is the lowest to the highest seed of a shape. The {TRAIN_EXAMPLES:,} training problems are "
        "among them."
    )
    left_out = f" Left out, as unfinished: {', '.join(unfinished)}." if unfinished else ""
    return Finding(text + left_out, value=problems, n=len(models))


def _plural(word: str, n: int) -> str:
    return word if n == 1 else f"{word}s"


def _range(values: Sequence[int | float], form: str) -> str:
    """Lowest to highest over seeds."""
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if len(values) == 1 else f"{low} to {high}"


def _total(shape: str, models: Sequence[Exhaustive], operator: str) -> Finding | None:
    """Wrong problems of one operator; the value is the error rate over all seeds."""
    if operator not in operators_of(models[0]):
        return None
    counts = [operators_of(found)[operator] for found in models]
    n, wrong = counts[0]["n"], [line.wrong for line in counts]
    rates = _range([value / n for value in wrong], ".3g")
    text = f"{shape}, {operator}: {_range(wrong, ',')} of {n:,} problems wrong (error rate {rates})."
    return Finding(text, value=sum(wrong) / n / len(models), n=len(models))


def _hardest_class(shape: str, models: Sequence[Exhaustive]) -> Finding:
    """The class of the highest error rate over all seeds, against all other problems."""
    name = ranked_classes(models)[0]
    here = [classes_of(found)[name] for found in models]
    n, rates = here[0]["n"], [line.wrong / line["n"] for line in here]
    everywhere = all(ranked_classes([found])[:1] == [name] for found in models)
    verdict = f"; it is {'' if everywhere else 'NOT '}the hardest in every seed" if len(models) > 1 else ""
    text = f"{shape}: the hardest class is {name}, error rate {_range(rates, '.3g')}, {n:,} problems{verdict}."
    elsewhere = sum(found.wrong for found in models) - sum(line.wrong for line in here)
    control = elsewhere / max(1, sum(found.n - n for found in models))
    return Finding(text, sum(rates) / len(rates), n=len(models), control="all other problems", control_value=control)


def _class_of_most_errors(shape: str, models: Sequence[Exhaustive]) -> Finding:
    """The class that holds most errors over all seeds, and whether they concentrate there."""
    by_class = [classes_of(found) for found in models]
    name = max(by_class[0], key=lambda name: sum(one[name].wrong for one in by_class))
    shares = [one[name].wrong / found.wrong for one, found in zip(by_class, models, strict=True)]
    problems = by_class[0][name]["n"] / models[0].n
    verdict = "concentrate" if holds(shares, [problems] * len(shares)) else "do NOT concentrate"
    text = (
        f"{shape}: class {name} holds the most errors, {_range(shares, '.1%')}; it has {problems:.1%} of the problems, "
        f"so the errors {verdict} there."
    )
    value = sum(one[name].wrong for one in by_class) / sum(found.wrong for found in models)
    return Finding(text, value, n=len(models), control="share of all problems", control_value=problems)


def share_of(cells: Sequence[Cell], found: Exhaustive) -> tuple[float, float]:
    """The share of a model's errors, and of its problems, that lie in some cells."""
    there = cells_of(found)
    return sum(there[cell][1] for cell in cells) / found.wrong, sum(there[cell][0] for cell in cells) / found.n


def _hardest_cells(shape: str, models: Sequence[Exhaustive]) -> Finding:
    """How much of all errors the hardest cells hold, chosen on all seeds and on all but the one asked."""
    cells = ranked_cells(models)[:HARDEST]
    wrong = sum(cells_of(found)[cell][1] for cell in cells for found in models)
    value, problems = wrong / sum(found.wrong for found in models), share_of(cells, models[0])[1]
    text = (
        f"{shape}: the {len(cells)} hardest of {len(cells_of(models[0]))} cells (class and count of carries or "
        f"borrows) hold {value:.1%} of all errors and {problems:.1%} of all problems"
    )
    if len(models) == 1:
        text += "; one seed cannot tell whether they would for another."
    else:
        others = [[other for other in models if other is not found] for found in models]
        held = [share_of(ranked_cells(rest)[:HARDEST], found) for rest, found in zip(others, models, strict=True)]
        shares, controls = map(list, zip(*held, strict=True))
        verdict = "concentrate" if holds(shares, controls) else "do NOT concentrate"
        text += (
            f"; those of the other seeds hold {_range(shares, '.1%')} of a seed's errors and "
            f"{min(controls):.1%} to {max(controls):.1%} of the problems: errors {verdict} there."
        )
    return Finding(text, value, n=len(models), control="share of all problems", control_value=problems)


def _of(rows: list[dict[str, Any]], found: Exhaustive, grouping: str) -> list[dict[str, Any]]:
    """The rows of table `kinds` of one model and grouping, both operators."""
    return [row for row in rows if (row["model"], row["grouping"]) == (found.model, grouping)]


def _shares(
    models: Sequence[Exhaustive], kinds: list[dict[str, Any]], grouping: str, categories: Sequence[str]
) -> tuple[list[float], list[float], int, float]:
    """Each model's share of wrong answers in some categories; that by chance; answers of all, found and by chance."""
    rows = [[row for row in _of(kinds, found, grouping) if row["category"] in categories] for found in models]
    counts, chance = ([sum(row[key] for row in of_one) for of_one in rows] for key in ("wrong", "wrong_by_chance"))
    sizes = [found.wrong for found in models]
    shares, expected = ([value / size for value, size in zip(of, sizes, strict=True)] for of in (counts, chance))
    return shares, expected, sum(counts), sum(chance)


def _passing(shape: str, models: Sequence[Exhaustive], kinds: list[dict[str, Any]]) -> Finding:
    """How often the first wrong digit hangs on a carry or borrow from far below, against all problems."""
    shares, chance, count, by_chance = _shares(models, kinds, PASSING, [str(pairs) for pairs in range(FAR, 5)])
    verdict = "mostly" if holds(shares, chance) else "NOT mostly"
    total = sum(found.wrong for found in models)
    text = (
        f"{shape}: first wrong digits {verdict} stand above {FAR} or more pairs in a row that only pass a carry or "
        f"borrow on: {_range(shares, '.1%')} ({count:,} of {total:,}); what arrives from below them decides the digit."
    )
    control = "any problem, asked of the same digits"
    return Finding(text, count / total, n=len(models), control=control, control_value=by_chance / total)


def _off_by_one(shape: str, models: Sequence[Exhaustive], kinds: list[dict[str, Any]]) -> Finding:
    """How many wrong answers are off by exactly one carry or borrow, against chance at the same places."""
    shares, chance, count, by_chance = _shares(models, kinds, "off by", OFF_BY[:2])
    missed = _shares(models, kinds, "off by", OFF_BY[:1])[2]
    verdict = "are mostly" if holds(shares, chance) else "are NOT mostly"
    total = sum(found.wrong for found in models)
    text = (
        f"{shape}: wrong answers {verdict} off by one power of ten, as by one carry or borrow: {_range(shares, '.1%')} "
        f"({count:,} of {total:,}; {missed:,} of them as if one were missed, the others as if one were made up)."
    )
    control = "any other digit at the same places"
    return Finding(text, count / total, n=len(models), control=control, control_value=by_chance / total)


def _beyond_the_first(shape: str, models: Sequence[Exhaustive], kinds: list[dict[str, Any]]) -> Finding:
    """Wrong digits written after the first wrong one, against those said wrongly when all before are given right."""
    after = [sum(row["wrong"] * int(row["category"]) for row in _of(kinds, found, BEYOND)) for found in models]
    given = [sum(found.n - line[place] for line in lines(found.counts, "all") for place in PLACES) for found in models]
    wrong = [found.wrong for found in models]
    odd = _shares(models, kinds, "off by", [NO_NUMBER])[2]
    ratios = [a / w for a, w in zip(after, wrong, strict=True)]
    text = (
        f"{shape}: per wrong answer, {_range(ratios, '.3f')} further wrong digits are written after the first "
        f"({sum(after):,} in {sum(wrong):,} answers); answers with a non-digit: {odd:,}."
    )
    control = "the same, each digit asked with the right ones before it"
    control_value = (sum(given) - sum(wrong)) / sum(wrong)
    return Finding(text, sum(after) / sum(wrong), n=len(models), control=control, control_value=control_value)
