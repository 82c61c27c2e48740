"""Findings of `errors`, and the rules of their verdicts, all written before any two models' errors were compared.

Wrong digits are *mostly* of a kind under the rule of `exhaustive`: in every model at least half of them, and twice as
many as by chance.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from analyses.learned._ablation_findings import Row, Rows, only
from analyses.learned._errors_agreement import FEW
from analyses.learned._errors_patterns import GROUPS
from analyses.learned._errors_read import OPERATORS, Asked
from analyses.learned._exhaustive_findings import holds
from analyses.learned._wrong_digits import KINDS
from workbench.exhaustive.tally import PLACES
from workbench.result import Finding
from workbench.statistics import wilson

SAME = 0.5  # of what two models could share beyond chance, from which they err on the same problems
NOTHING = 0.1  # and up to which they err on mostly different ones
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
        pairs = [row for row in only(tables["pairs"], asked=one.words) if comparable(row)]
        for shape in shapes:
            for operator in OPERATORS:
                rows = only(pairs, shape=shape, other_shape=shape, operator=operator)
                found += _agreement(f"{shape}, {operator}: its seeds", rows, one)
        for operator in OPERATORS:
            rows = [row for row in only(pairs, operator=operator) if row["shape"] != row["other_shape"]]
            named = " and ".join(dict.fromkeys(row[name] for name in ("shape", "other_shape") for row in rows))
            found += _agreement(f"{named}, {operator}: models of different shapes", rows, one)
            found += _in_all(only(tables["times"], asked=one.words, operator=operator), one)
            found += _hardest(only(tables["hardest"], asked=one.words, operator=operator))
        for shape in shapes:
            kinds = only(tables["kinds"], asked=one.words, shape=shape)
            first = only(kinds, digits="first", place="all")
            found += _kinds_of_shape(shape, first, one)
            found += _every(shape, only(kinds, digits="every"), first)
            found += _trained(shape, only(tables["trained"], asked=one.words, shape=shape), one)
    for one in asked:
        for model in one.models:
            rows = only(tables["kinds"], checkpoint=model.name, digits="first", place="all")
            found += _kinds_of_model(model.name, rows, one)
    return found


def comparable(row: Row) -> bool:
    """Whether both models of a pair err often enough, and not so often that chance alone shares all there is."""
    return min(row["first_wrong"], row["second_wrong"]) >= FEW and row["shared"] == row["shared"]


def pooled(
    shares: Sequence[float], wrong: Sequence[int], trials: Sequence[int] | None = None
) -> tuple[float, float, float]:
    """Share of all wrong ones of several models, with a 95% interval.

    The models are asked the same problems, so their errors are not independent, and the interval is the mean of their
    own (Wilson's), by wrong ones: as wide as if they erred together. `trials`: independent ones, where fewer.
    """
    own = [wilson(round(share * n), n) for share, n in zip(shares, trials or wrong, strict=True)]
    low, high = np.average(own, axis=0, weights=wrong).tolist()
    return float(np.average(shares, weights=wrong)), low, high


def _counted(asked: Asked) -> str:
    return ", every problem counted" if asked.counted else ""


def _range(values: Sequence[float], form: str = ".2f") -> str:
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _asked(asked: Sequence[Asked], full: bool) -> Finding:
    parts = [f"{one.words} ({', '.join(dict.fromkeys(m.shape for m in one.models))})" for one in asked]
    text = (
        f"Wrong problems are taken from {'; '.join(parts)}. Where every problem is counted there is no sampling "
        "interval; an interval of several models or pairs is the mean of their own, as wide as if they erred together. "
        "A first wrong digit has right ones before it."
    )
    short = any(not one.counted for one in asked) and not full
    text += f"{' A short run: --full draws more.' if short else ''} Value: models; n: problems asked of all together"
    return Finding(text, sum(len(one.models) for one in asked), n=sum(len(one.models) * one.total for one in asked))


def _agreement(who: str, rows: Rows, asked: Asked) -> Iterator[Finding]:
    """Whether pairs of models err on the same problems, and alike; the value is the mean of the pairs."""
    if not rows:
        return
    shared, within = ([row[name] for row in rows] for name in ("shared", "shared_within"))
    lift = [row["both"] / row["both_by_chance"] for row in rows]
    alike, by_chance, common = (
        sum(row[name] for row in rows) for name in ("same_digit", "same_digit_by_chance", "common")
    )
    many = f"{len(rows)} {'pair' if len(rows) == 1 else 'pairs'}{_counted(asked)}"
    text = (
        f"{who} err on {verdict(shared, within)}: they share {_range(shared)} of what they could beyond chance, "
        f"{_range(within)} within kinds of digit pairs; {_range(lift, '.3g')} times as many problems wrong in both as "
        f"by chance, kappa {_range([row['kappa'] for row in rows])} ({many})"
    )
    if common:
        text += (
            f"; the first wrong digit is the same in {alike / common:.0%} of those, by chance {by_chance / common:.0%}"
        )
    low = high = None
    if not asked.counted:
        low, high = (_mean([row[name] for row in rows]) for name in ("shared_low", "shared_high"))
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
            f"{scope}, {last['operator']}{_counted(asked)}: {wrong:,} of {n:,} problems are wrong in all "
            f"{last['times']}; by chance {last['by_chance']:,.3g}, "
            f"within kinds of digit pairs {last['by_pattern']:,.3g}. Value: their share"
        )
        interval = (None, None) if asked.counted else wilson(wrong, n)
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
    text += (
        f" {classes}. Value: loss of the first, nats a digit, the models' own, not an estimate; n: problems compared"
    )
    control = "mean loss of all compared, those wrong in most models"
    first = rows[0]
    yield Finding(text, first["loss"], n=first["candidates"], control=control, control_value=first["candidates_loss"])


def _kinds_of_shape(shape: str, rows: Rows, asked: Asked) -> Iterator[Finding]:
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
        wrong = [row["wrong"] for row in of]
        value, *interval = pooled([row["carry"] for row in of], wrong)
        chance = float(np.average([row["carry_by_chance"] for row in of], weights=wrong))
        text = (
            f"{shape}, {group}{_counted(asked)}: what the first wrong digit is, lowest to highest model: "
            f"{', '.join(said)}. Value: carry"
        )
        low, high = (None, None) if asked.counted else interval
        yield Finding(text, value, low, high, sum(wrong), "any other digit", chance)


def _every(shape: str, rows: Rows, first: Rows) -> Iterator[Finding]:
    """By place, how many of all wrong digits of a shape's subtractions are the other direction's.

    Known of samples only. Digits of one problem are not independent, so the interval counts problems, those of `first`.
    """
    said = []
    for place in PLACES[1:]:
        of = only(rows, group=GROUPS[1:], place=place)
        if of and min(row["wrong"] for row in of) >= FEW:
            said.append(f"{place} {_range([row['direction'] for row in of])}")
    of = only(rows, group=GROUPS[1:], place="all")
    if said:
        problems = {(row["checkpoint"], row["group"]): row["wrong"] for row in first}
        wrong = [row["wrong"] for row in of]
        value, low, high = pooled(
            [row["direction"] for row in of], wrong, [problems[row["checkpoint"], row["group"]] for row in of]
        )
        chance = float(np.average([row["direction_by_chance"] for row in of], weights=wrong))
        text = (
            f"{shape}, subtraction: of all wrong digits, each with right ones before it, these shares are the other "
            f"direction's and no borrow's: {', '.join(said)} (models and signs). Value: of all places"
        )
        yield Finding(text, value, low, high, sum(wrong), "any other digit", chance)


def _kinds_of_model(name: str, rows: Rows, asked: Asked) -> Iterator[Finding]:
    wrong = sum(row["wrong"] for row in rows)
    if not wrong:
        return

    def over_all(kind: str) -> float:
        return sum(row[kind] * row["wrong"] for row in rows) / wrong

    listed = ", ".join(f"{kind} {over_all(kind):.2f}" for kind in KINDS)
    groups = ", ".join(f"{row['group']} {row['wrong']:,}" for row in rows)
    carries = round(over_all("carry") * wrong)
    text = f"{name}{_counted(asked)}: wrong problems: {groups}; their first wrong digit: {listed}. Value: a wrong carry"
    text += " or borrow"
    interval = (None, None) if asked.counted else wilson(carries, wrong)
    yield Finding(text, carries / wrong, *interval, wrong, "any other digit", over_all("carry_by_chance"))


def _trained(shape: str, rows: Rows, asked: Asked) -> Iterator[Finding]:
    """Whether problems seen in training are less often wrong.

    They are a random draw, of which the interval is, so it has one where every problem is counted too.
    """
    if not rows:
        return
    ratios = [row["trained_rate"] / row["others_rate"] for row in rows if row["others_rate"]]
    wrong = [row["wrong"] for row in rows]
    value, low, high = pooled([row["share_trained"] for row in rows], wrong)
    text = (
        f"{shape}{_counted(asked)}: problems it was trained on are wrong {_range(ratios)} times as often as others "
        "(models, operators). Value: share of wrong problems that were trained on; interval: of the draw of training "
        "problems"
    )
    expected = float(np.average([row["expected"] for row in rows], weights=wrong))
    yield Finding(text, value, low, high, sum(wrong), "share of all problems", expected)


def summary(asked: Sequence[Asked], tables: dict[str, Rows]) -> Rows:
    """One row a shape and operator: how far its seeds share their errors, and what their first wrong digits are."""
    rows: Rows = []
    shapes = dict.fromkeys((one, model.shape) for one in asked for model in one.models)
    for one, shape in shapes:
        for operator in OPERATORS:
            pairs = only(tables["pairs"], asked=one.words, shape=shape, other_shape=shape, operator=operator)
            group = GROUPS[:1] if operator == "addition" else GROUPS[1:]
            kinds = only(tables["kinds"], asked=one.words, shape=shape, digits="first", place="all", group=group)
            if wrong := sum(row["wrong"] for row in kinds):
                row: Row = {"shape": shape, "operator": operator, "counted": one.counted}
                row |= {name: _mean([p[name] for p in pairs if comparable(p)]) for name in ("shared", "shared_within")}
                row |= {kind: sum(k[kind] * k["wrong"] for k in kinds) / wrong for kind in KINDS}
                rows.append(row)
    return rows


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean(values)) if values else float("nan")
