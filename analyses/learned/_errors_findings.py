"""Findings of `errors`, and the rules of their verdicts, all written before any two models' errors were compared.

Wrong digits are *mostly* of a kind under the rule of `exhaustive`: in every model at least half of them, and twice as
many as by chance.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from analyses.learned._ablation_findings import Row, Rows, only
from analyses.learned._errors_patterns import GROUPS
from analyses.learned._errors_read import EVERYTHING, OPERATORS, Asked
from analyses.learned._exhaustive_findings import holds
from analyses.learned._wrong_digits import KINDS
from workbench.exhaustive.tally import PLACES
from workbench.result import Finding
from workbench.statistics import wilson

SAME = 0.5  # of what two models could share beyond chance, from which they err on the same problems
NOTHING = 0.1  # and up to which they err on mostly different ones
FEW = 100  # wrong problems of a model below which nothing is said of them
NAMED = 3  # problems named in a finding


def verdict(shared: Sequence[float], within: Sequence[float]) -> str:
    """Of pairs of models: whether they err on the same problems, and whether digit pairs' kinds explain it.

    `shared` is beyond chance over all problems of an operator, `within` beyond chance within patterns. Errors on mostly
    different problems may still coincide many times as often as by chance, when there are few of them.
    """
    if not shared:
        return "unknown"
    if min(shared) >= SAME:
        return "the same problems" if min(within) >= SAME else "the same kinds of problems"
    return "mostly different problems" if max(shared) <= NOTHING else "partly the same problems"


def findings(asked: Sequence[Asked], tables: dict[str, Rows], *, full: bool) -> list[Finding]:
    """What was asked; agreement and kinds of errors of each shape; then each model's, and problems hard for all."""
    found = [_asked(asked, full)]
    for one in asked:
        shapes = list(dict.fromkeys(model.shape for model in one.models))
        pairs = only(tables["pairs"], asked=one.words)
        for shape in shapes:
            for operator in OPERATORS:
                rows = only(pairs, shape=shape, other_shape=shape, operator=operator)
                found += _agreement(f"{shape}, {operator}: its seeds", rows, one)
        for operator in OPERATORS:
            rows = [row for row in only(pairs, operator=operator) if row["shape"] != row["other_shape"]]
            found += _agreement(f"{' and '.join(shapes)}, {operator}: models of different shapes", rows, one)
            found += _in_all(only(tables["times"], asked=one.words, operator=operator), one)
            found += _hardest(only(tables["hardest"], asked=one.words, operator=operator))
        for shape in shapes:
            found += _kinds_of_shape(
                shape, only(tables["kinds"], asked=one.words, shape=shape, digits="first", place="all")
            )
            found += _every(shape, only(tables["kinds"], asked=one.words, shape=shape, digits="every"))
            found += _trained(shape, only(tables["trained"], asked=one.words, shape=shape))
    for name in dict.fromkeys(row["checkpoint"] for row in tables["kinds"]):
        found += _kinds_of_model(name, only(tables["kinds"], checkpoint=name, digits="first", place="all"))
    return found


def _range(values: Sequence[float], form: str = ".2f") -> str:
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _asked(asked: Sequence[Asked], full: bool) -> Finding:
    parts = [f"{one.words} ({', '.join(dict.fromkeys(m.shape for m in one.models))})" for one in asked]
    text = (
        f"Wrong problems are taken from {'; '.join(parts)}. Lists of every wrong problem have no sampling interval. "
        "A first wrong digit has right ones before it."
    )
    short = any(one.index is not None for one in asked) and not full
    return Finding(text + (" A short run: --full draws more." if short else ""), sum(len(one.models) for one in asked))


def _agreement(who: str, rows: Rows, asked: Asked) -> Iterator[Finding]:
    """Whether pairs of models err on the same problems, and alike; the value is the mean of the pairs."""
    rows = [
        row for row in rows if min(row["first_wrong"], row["second_wrong"]) >= FEW and row["shared"] == row["shared"]
    ]
    if not rows:
        return
    shared, within = ([row[name] for row in rows] for name in ("shared", "shared_within"))
    lift = [row["both"] / row["both_by_chance"] for row in rows]
    alike, by_chance, common = (
        sum(row[name] for row in rows) for name in ("same_digit", "same_digit_by_chance", "common")
    )
    text = (
        f"{who} err on {verdict(shared, within)}: they share {_range(shared)} of what they could beyond chance, "
        f"{_range(within)} within kinds of digit pairs; {_range(lift, '.3g')} times as many problems wrong in both as "
        f"by chance, kappa {_range([row['kappa'] for row in rows])} ({len(rows)} pairs)"
    )
    if common:
        text += (
            f"; the first wrong digit is the same in {alike / common:.0%} of those, by chance {by_chance / common:.0%}"
        )
    low = high = None
    if asked.index is not None and len(rows) == 1:
        low, high = rows[0]["shared_low"], rows[0]["shared_high"]
    elif asked.index is not None:
        widest = max(row["shared_high"] - row["shared_low"] for row in rows)
        text += f"; 95% intervals of a pair are at most {widest:.2f} wide"
    yield Finding(f"{text}. Value: mean of pairs", sum(shared) / len(shared), low, high, rows[0]["n"], "chance", 0.0)


def _in_all(rows: Rows, asked: Asked) -> Iterator[Finding]:
    """Problems that every model of those asked gets wrong, and by chance."""
    for scope in dict.fromkeys(row["models"] for row in rows):
        of = only(rows, models=scope)
        last = max(of, key=lambda row: row["times"])
        if last["times"] < 2 or not any(row["observed"] for row in of if row["times"]):
            continue
        n, wrong = last["n"], last["observed"]
        text = (
            f"{scope}, {last['operator']}: {wrong:,} of {n:,} problems are wrong in all {last['times']}; by chance "
            f"{last['by_chance']:,.3g}, within kinds of digit pairs {last['by_pattern']:,.3g}. Value: their share"
        )
        interval = (None, None) if asked.index is None else wilson(wrong, n)
        yield Finding(text, wrong / n, *interval, n, "independent errors", last["by_chance"] / n)


def _hardest(rows: Rows) -> Iterator[Finding]:
    """The most confusable problems by name."""
    if not rows:
        return
    named = "; ".join(
        f"{row['problem']} = {row['exact']}, wrong in {row['wrong_in']} of {row['models']} ({row['answers']})"
        for row in rows[:NAMED]
    )
    classes = ", ".join(dict.fromkeys(row["class"] for row in rows))
    text = f"The most confusable {rows[0]['operator']}s of {rows[0]['asked']}: {named}. The first {len(rows)} are of"
    yield Finding(f"{text} {classes}. Value: loss of the first, nats a digit", rows[0]["loss"])


def _kinds_of_shape(shape: str, rows: Rows) -> Iterator[Finding]:
    """By group of problems, what the first wrong digits of a shape's models mostly are."""
    for group in GROUPS:
        of = [row for row in only(rows, group=group) if row["wrong"] >= FEW]
        if not of:
            continue
        said = []
        for kind in KINDS:
            shares, chance = ([row[name] for row in of] for name in (kind, f"{kind}_by_chance"))
            mostly = ", mostly so" if kind != "other" and holds(shares, chance) else ""
            said.append(f"{kind} {_range(shares)} (by chance {_range(chance)}{mostly})")
        wrong = sum(row["wrong"] for row in of)
        value, chance = (sum(row[name] * row["wrong"] for row in of) / wrong for name in ("carry", "carry_by_chance"))
        text = (
            f"{shape}, {group}: what the first wrong digit is, lowest to highest model: {', '.join(said)}. Value: carry"
        )
        yield Finding(text, value, n=wrong, control="any other digit", control_value=chance)


def _every(shape: str, rows: Rows) -> Iterator[Finding]:
    """By place, how many of all wrong digits of a shape's subtractions are the other direction's."""
    said = []
    for place in PLACES[1:]:
        of = only(rows, group=GROUPS[1:], place=place)
        if of and min(row["wrong"] for row in of) >= FEW:
            said.append(f"{place} {_range([row['direction'] for row in of])}")
    of = only(rows, group=GROUPS[1:], place="all")
    if said:
        wrong = sum(row["wrong"] for row in of)
        value, chance = (
            sum(row[name] * row["wrong"] for row in of) / wrong for name in ("direction", "direction_by_chance")
        )
        text = (
            f"{shape}, subtraction: of all wrong digits, each with right ones before it, these shares are the other "
            f"direction's and no borrow's: {', '.join(said)} (models and signs). Value: of all places"
        )
        yield Finding(text, value, *wilson(round(value * wrong), wrong), wrong, "any other digit", chance)


def _kinds_of_model(name: str, rows: Rows) -> Iterator[Finding]:
    wrong = sum(row["wrong"] for row in rows)
    if not wrong:
        return

    def over_all(kind: str) -> float:
        return sum(row[kind] * row["wrong"] for row in rows) / wrong

    listed = ", ".join(f"{kind} {over_all(kind):.2f}" for kind in KINDS)
    groups = ", ".join(f"{row['group']} {row['wrong']:,}" for row in rows)
    carries = round(over_all("carry") * wrong)
    text = f"{name}: wrong problems: {groups}; their first wrong digit: {listed}. Value: a wrong carry or borrow"
    interval = wilson(carries, wrong) if rows[0]["asked"] != EVERYTHING else (None, None)
    yield Finding(text, carries / wrong, *interval, wrong, "any other digit", over_all("carry_by_chance"))


def _trained(shape: str, rows: Rows) -> Iterator[Finding]:
    """Whether problems seen in training are less often wrong."""
    if not rows:
        return
    ratios = [row["trained_rate"] / row["others_rate"] for row in rows if row["others_rate"]]
    wrong = sum(row["wrong"] for row in rows)
    inside = round(sum(row["share_trained"] * row["wrong"] for row in rows))
    text = (
        f"{shape}: problems it was trained on are wrong {_range(ratios)} times as often as others (models, operators). "
        "Value: share of wrong problems that were trained on"
    )
    expected = float(np.average([row["expected"] for row in rows], weights=[row["wrong"] for row in rows]))
    yield Finding(text, inside / wrong, *wilson(inside, wrong), wrong, "share of all problems", expected)


def summary(tables: dict[str, Rows]) -> Rows:
    """One row a shape and operator: how far its seeds share their errors, and what their first wrong digits are."""
    rows: Rows = []
    for shape in dict.fromkeys(row["shape"] for row in tables["kinds"]):
        for operator in OPERATORS:
            pairs = only(tables["pairs"], shape=shape, other_shape=shape, operator=operator)
            kinds = only(
                tables["kinds"],
                shape=shape,
                digits="first",
                place="all",
                group=GROUPS[:1] if operator == "addition" else GROUPS[1:],
            )
            if wrong := sum(row["wrong"] for row in kinds):
                row: Row = {"shape": shape, "operator": operator}
                row |= {name: _mean([p[name] for p in pairs]) for name in ("shared", "shared_within")}
                row |= {kind: sum(k[kind] * k["wrong"] for k in kinds) / wrong for kind in KINDS}
                rows.append(row)
    return rows


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean(values)) if values else float("nan")
