"""Findings of `similarity`, and the rules of its verdicts, all written before any two models were compared."""

from collections.abc import Iterator, Sequence

import numpy as np

from analyses.learned._ablation_findings import Row, Rows, only
from analyses.learned._bounds import COUNTED, OVER_PROBLEMS, mean_bounds
from analyses.learned._errors_findings import FEW, verdict
from analyses.learned._similarity_streams import LEVELS, OPERATORS
from analyses.learned._similarity_tables import RELATIONS
from workbench.result import Finding
from workbench.statistics import wilson

ALIKE = 0.8  # CKA from which two streams hold much the same
MARGIN = 0.1  # by which a pair must be above every untrained pair
SAME, FEWER, ABOVE = 0.75, 0.25, 0.25  # shares of heads with a counterpart, and how far above untrained heads
Key = tuple[str, str, str]


def alike(lowest: float, untrained_highest: float) -> str:
    """Whether all pairs of a group hold the same, from its least alike pair and the most alike untrained pair."""
    if np.isnan(lowest):
        return "nothing there varies"
    if not np.isnan(untrained_highest) and lowest < untrained_highest + MARGIN:
        return "not all pairs are more alike than untrained models"
    return "much the same" if lowest >= ALIKE else "partly the same"


def same_jobs(shares: Sequence[float], untrained: Sequence[float]) -> str:
    """Whether heads do the same jobs, from shares of heads with a counterpart, one a pair of models."""
    if max(shares) <= FEWER:
        return "mostly different jobs"
    if min(shares) >= SAME and min(shares) >= max(untrained, default=0) + ABOVE:
        return "mostly the same jobs"
    return "some of the same jobs"


def findings(tables: dict[str, Rows], alone: Sequence[str]) -> list[Finding]:
    """Streams, then heads, then errors, of each group of pairs; last, models that nothing compares with."""
    found: list[Finding] = []
    for key in (key for key in _keys(tables["groups"]) if key[0] != RELATIONS[3]):  # which the tables have
        found += _streams(key, _of(tables["groups"], key))
    for key in _keys(tables.get("layers", [])):
        found += _heads(key, _of(tables["layers"], key))
    found += _jobs(tables.get("jobs", []))
    for key in _keys(tables.get("errors", [])):
        for operator in OPERATORS:
            if rows := only(_of(tables["errors"], key), operator=operator):
                found.append(_errors(f"{who(key)}, {operator}", rows))
    for key in _keys(tables.get("twins", [])):
        for operator in OPERATORS:
            found += _twins(f"{who(key)}, {operator}", only(_of(tables["twins"], key), operator=operator))
    if alone:
        text = f"compared with nothing, as no other model has its task variant: {', '.join(alone)}. Value: how many"
        known = {"control": "models to compare with", "control_value": 0}
        found.append(Finding(f"{text}, {COUNTED}", len(alone), n=len(alone), **known))
    return found


def who(key: Key) -> str:
    """A group of pairs in words."""
    kind, shape, other = key
    return f"{shape}, {kind}" if shape == other else f"{shape} and {other}"


def _keys(rows: Rows) -> list[Key]:
    keys = dict.fromkeys((row["relation"], row["shape"], row["other_shape"]) for row in rows)
    return sorted(keys, key=lambda key: RELATIONS.index(key[0]))


def _of(rows: Rows, key: Key) -> Rows:
    return only(rows, relation=key[0], shape=key[1], other_shape=key[2])


def _span(values: Sequence[float], form: str = ".2f") -> str:
    known = [value for value in values if not np.isnan(value)]
    if not known:
        return "none"
    low, high = format(min(known), form), format(max(known), form)
    return low if low == high else f"{low} to {high}"


def _many(rows: Rows, what: str) -> str:
    return f"{len(rows)} {what}{'s' if len(rows) != 1 else ''}"


def _last(rows: Rows) -> Row:
    """The row of the last place of both models."""
    return rows[-1]


def _streams(key: Key, rows: Rows) -> Iterator[Finding]:
    """One finding an operator: the last place at every level, then apart from the token, place by place."""
    for operator in OPERATORS:
        here = only(rows, operator=operator)
        if not here:
            continue
        by_level = {level: _last(only(here, level=level)) for level in LEVELS}
        main, deep = by_level[LEVELS[1]], by_level[LEVELS[2]]
        own = only(here, level=LEVELS[1])
        if main["place"] == main["other_place"]:
            shown = [row for row in own if row["place"] == row["other_place"]]
        else:
            shown = [row for row in own if row["place"].split()[-1] == row["other_place"].split()[-1]]
        each = "; ".join(
            f"{_places(row)} {_span([row['lowest'], row['highest']])} (untrained "
            f"{_span([row['untrained_lowest'], row['untrained_highest']])})"
            for row in shown
            if not np.isnan(row["lowest"])
        )
        said = alike(main["lowest"], main["untrained_highest"])
        beyond = alike(deep["lowest"], deep["untrained_highest"])
        start = main["same_start"]
        start = f"; pairs of one seed, which began alike, {start:.2f} on average" if not np.isnan(start) else ""
        text = (
            f"{who(key)}, {operator}: CKA of streams apart from position, sign and own token, lowest to highest of "
            f"{main['pairs']} pair{'s' if main['pairs'] > 1 else ''}: {each}. At the last place {said}; apart from the "
            f"right digit too {beyond} ({_span([deep['lowest'], deep['highest']])}, untrained "
            f"{_span([deep['untrained_lowest'], deep['untrained_highest']])}; shuffled {deep['shuffled']:.3f}). "
            f"Shuffled {main['shuffled']:.3f}; what the right digit alone would give {main['by_answer']:.2f}{start}. "
            f"Value: mean of pairs at the last place, apart from the token, {OVER_PROBLEMS}"
        )
        if np.isnan(main["mean"]):
            continue
        control = ("untrained pairs", main["untrained_mean"])
        if np.isnan(control[1]):
            control = ("the other model's problems shuffled", main["shuffled"])
        yield Finding(text, main["mean"], main["low"], main["high"], main["n"], *control)


def _places(row: Row) -> str:
    return row["place"] if row["place"] == row["other_place"] else f"{row['place']} against {row['other_place']}"


def _heads(key: Key, rows: Rows) -> Iterator[Finding]:
    """One finding a layer: heads with a counterpart, and jobs that both models have."""
    for layer in sorted({row["layer"] for row in rows}):
        trained, untrained = (only(rows, layer=layer, model=model) for model in ("trained", "untrained"))
        trained = [row for row in trained if row["heads"]]
        untrained = [row for row in untrained if row["heads"] and not row["same_start"]]
        if not trained:
            continue
        shares, by_chance = (
            [row[name] / row["heads"] for row in trained] for name in ("counterparts", "counterparts_at_random")
        )
        control = [row["counterparts"] / row["heads"] for row in untrained]
        heads = sum(row["heads"] for row in trained)
        text = (
            f"{who(key)}, layer {layer}: {same_jobs(shares, control)}: share of heads whose match does the same job, "
            f"lowest to highest of {_many(trained, 'pair')}: {_span(shares)}; matched at "
            f"random {_span(by_chance)}, untrained {_span(control)}. Of all jobs (head, answer digit, group) both "
            f"have {_span([row['jobs'] for row in trained])}, {_span([row['jobs_by_digit'] for row in trained])} with "
            f"each digit matched apart, {_span([row['jobs_at_random'] for row in trained])} at random (untrained "
            f"{_span([row['jobs'] for row in untrained])}). Mean score of matches "
            f"{_span([row['score'] for row in trained])} (a pair's 95% interval over problems at most "
            f"{max(row['score_high'] - row['score_low'] for row in trained):.2f} wide), at random "
            f"{_span([row['score_at_random'] for row in trained])}, untrained "
            f"{_span([row['score'] for row in untrained])}. Value: share of heads, all pairs, {COUNTED}"
        )
        value = sum(row["counterparts"] for row in trained) / heads
        name, known = ("untrained heads", control) if control else ("heads matched at random", by_chance)
        yield Finding(text, value, n=heads, control=name, control_value=sum(known) / len(known))


def _jobs(rows: Rows) -> Iterator[Finding]:
    """Per shape and layer, what some head of every model reads, in all groups of problems alike."""
    for shape, layer in dict.fromkeys((row["shape"], row["layer"]) for row in rows):
        here = [row for row in only(rows, shape=shape, layer=layer) if row["trained"]]
        if not here or here[0]["models"] < 2:
            continue
        shared = [row for row in here if row["trained"] == row["models"]]
        groups = len({row["group"] for row in only(rows, shape=shape)})
        by_job: dict[str, int] = {}
        for row in shared:
            job = f"{row['answer']}<{row['reads'].replace(' ', ',')}"
            by_job[job] = by_job.get(job, 0) + 1
        everywhere = sorted((job for job, times in by_job.items() if times == groups), reverse=True)
        chance = sum(row["untrained"] == row["models"] for row in only(rows, shape=shape, layer=layer))
        text = (
            f"{shape}, layer {layer}: {len(shared)} of {len(here)} readings (answer digit, positions, group) are those "
            f"of some head in each of {here[0]['models']} models ({chance} of untrained ones); in all {groups} groups "
            f"alike: {' '.join(everywhere) or 'none'}. Value: their share, "
            f"{COUNTED}"
        )
        control = chance / len(here)
        yield Finding(text, len(shared) / len(here), n=len(here), control="untrained models", control_value=control)


def _errors(whose: str, rows: Rows) -> Finding:
    """Agreement of errors of a group of pairs, of those with enough errors."""
    enough = [row for row in rows if row["enough"] and not np.isnan(row["shared"])]
    if not enough and any(row["enough"] for row in rows):
        fewest = min(rows, key=lambda row: row["first_wrong"] / row["n"])
        text = f"{whose}: chance alone lets errors coincide as far as their numbers allow. Value: lowest share wrong"
        return _wrong(text, fewest, fewest["first_wrong"], ("the other model of its pair", fewest["second_wrong"]))
    if not enough:
        most = max(rows, key=lambda row: min(row["first_wrong"], row["second_wrong"]))
        text = f"{whose}: too few errors (fewer than {FEW} of one model in each pair) to say. Value: the most of a pair"
        wrong = int(min(most["first_wrong"], most["second_wrong"]))
        return _wrong(f"{text} ({wrong:,}), as a share", most, wrong, ("the fewest that are enough", FEW))
    within = [row["shared_within"] for row in enough if not np.isnan(row["shared_within"])]
    said = verdict([row["shared"] for row in enough], within or [np.nan])
    alike, chance, common = (sum(row[k] for row in enough) for k in ("same_digit", "same_digit_by_chance", "common"))
    same = f"; first wrong digit the same in {alike / common:.0%} of {common:,} wrong in both, by chance "
    same = f"{same}{chance / common:.0%}" if common >= FEW else f"; {common} wrong in both: too few to compare answers"
    few = f" ({len(rows) - len(enough)} more have too few errors)" if len(rows) > len(enough) else ""
    known = [row for row in enough if not np.isnan(row["shared_low"])]
    width = max((row["shared_high"] - row["shared_low"] for row in known), default=0)
    sampled = f"; a pair's 95% interval is at most {width:.2f} wide" if known else "; every problem counted"
    text = (
        f"{whose}: they err on {said}; of what two could share beyond chance {_span([r['shared'] for r in enough])}, "
        f"within patterns of digit pairs {_span(within)}, lowest to highest of {_many(enough, 'pair')}{few}; kappa "
        f"{_span([r['kappa'] for r in enough])}, within patterns {_span([r['kappa_within'] for r in enough])}{same}"
        f"{sampled}. Value: mean of pairs"
    )
    low, high = mean_bounds(*([row[name] for row in enough] for name in ("shared_low", "shared_high")))
    mean = sum(row["shared"] for row in enough) / len(enough)
    return Finding(text, mean, low, high, int(enough[0]["n"]), "independent errors", 0.0)


def _wrong(text: str, row: Row, wrong: int, control: tuple[str, int]) -> Finding:
    """A share of a pair's problems, with an interval unless every problem is counted."""
    n = int(row["n"])
    if row["asked"].startswith("every "):
        return Finding(f"{text}, {COUNTED}", wrong / n, None, None, n, control[0], control[1] / n)
    return Finding(text, wrong / n, *wilson(int(wrong), n), n, control[0], control[1] / n)


def beyond_twins(low: Sequence[float], high: Sequence[float]) -> str:
    """Whether a model errs more often on what another gets wrong than on twins, from intervals of the difference."""
    more, less = sum(of > 0 for of in low), sum(of < 0 for of in high)
    if more == len(low):
        return "more often"
    return "less often" if less == len(low) else f"more often in {more}, less often in {less} of {len(low)} pairs"


def _twins(whose: str, rows: Rows) -> Iterator[Finding]:
    """How often the second model is wrong where the first is, beside twins and any problem."""
    rows = [row for row in rows if row["enough"]]
    if not rows:
        return
    low, high = ([row[name] for row in rows] for name in ("excess_low", "excess_high"))
    text = (
        f"{whose}: where the first errs, the second is wrong in {_span([row['wrong'] for row in rows])}, on twins of "
        f"the same pattern {_span([row['twins'] for row in rows])}, on any problem "
        f"{_span([row['any'] for row in rows])} ({_many(rows, 'pair')}); than on twins {beyond_twins(low, high)}: "
        f"difference {_span([row['excess'] for row in rows])} (95% intervals "
        f"within {min(low):.2f} to {max(high):.2f}). "
        f"Value: wrong, mean of pairs, {OVER_PROBLEMS}"
    )
    value, twins = (sum(row[name] for row in rows) / len(rows) for name in ("wrong", "twins"))
    interval = mean_bounds(*([row[name] for row in rows] for name in ("wrong_low", "wrong_high")))
    yield Finding(text, value, *interval, max(row["n"] for row in rows), "twins", twins)


def summary(tables: dict[str, Rows]) -> Rows:
    """One row a group of pairs: CKA at the last place, shared errors, and shares of heads with a counterpart."""
    rows: Rows = []
    for key in _keys(tables["groups"]):
        row: Row = {"models": who(key)}
        for operator in OPERATORS:
            short = operator[:3]
            here = only(_of(tables["groups"], key), operator=operator, level=LEVELS[1])
            row[f"cka {short}"] = _last(here)["mean"] if here else np.nan
            row[f"untrained {short}"] = _last(here)["untrained_mean"] if here else np.nan
            errors = [
                one["shared"]
                for one in only(_of(tables.get("errors", []), key), operator=operator, enough=True)
                if not np.isnan(one["shared"])
            ]
            row[f"errors {short}"] = sum(errors) / len(errors) if errors else np.nan
        layers = only(_of(tables.get("layers", []), key), model="trained")
        heads = sum(one["heads"] for one in layers)
        row["heads"] = sum(one["counterparts"] for one in layers) / heads if heads else np.nan
        rows.append(row)
    return rows
