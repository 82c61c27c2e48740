"""What `attention` found in a few rows: a summary of each checkpoint's layers, and the findings."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd

from analyses.learned import _bounds
from analyses.learned._attention_heads import EXPLAINED, TOGETHER, WINS
from analyses.learned._columns import mean, numbers, seeds
from analyses.learned._conditions import GROUPS, PREDICTED, shape_of
from analyses.learned._exact_probe_fit import where
from workbench.checkpoint import Checkpoint
from workbench.result import Finding

MODELS = ("trained", "untrained")
UNTRAINED = "untrained models of the same shape and seeds"
OWN = tuple(f"{operand}{place}" for operand in "ab" for place in "3210")


def own_digits(heads: pd.DataFrame) -> set[str]:
    """The operand digits that some head reads where the answer digit of the same place is predicted."""
    rows = zip(heads["answer"], heads["reads"], heads["role"], strict=True)
    return {key for answer, keys, role in rows for key in keys.split() if role and key in OWN and key[1] == answer[1]}


def _with_bounds(name: str, rows: pd.DataFrame, column: str) -> dict[str, float]:
    """The mean of a column where it is a number, and of its lower and upper ends there."""
    known = cast(pd.DataFrame, rows[rows[column].notna()])
    low, high = _bounds.mean_bounds(*(numbers(known, f"{column}_{end}") for end in ("low", "high")))
    ends = {f"{name}_low": low, f"{name}_high": high}
    return {name: mean(numbers(known, column))} | {end: np.nan if at is None else at for end, at in ends.items()}


def _layer(heads: pd.DataFrame, qk: pd.DataFrame, order: pd.DataFrame, turns: pd.DataFrame | None) -> dict[str, float]:
    """One model's layer in numbers; a share is of its heads at the five answer positions."""
    row: dict[str, float] = {}
    groups = [group for group in GROUPS if group in set(heads["group"])]
    roles = [role for role, group in zip(heads["role"], heads["group"], strict=True) if group in groups]
    row["reads"] = 1 - roles.count("") / len(roles)
    for name in ("copies", "chooses", "joins"):
        row[name] = roles.count(name) / len(roles)
    for group in GROUPS:
        row[f"own_digits {group}"] = len(own_digits(where(heads, group=group))) if group in groups else np.nan
        together = where(order, group=group, head="all")
        row |= _with_bounds(f"swapped {group}", together, "swapped")
        row[f"units {group}"] = mean(numbers(where(together, answer="d0"), "swapped"))
    row |= _with_bounds("by_position", qk, "by_position")
    row |= {level: mean(numbers(qk, level)) for level in ("by_key", "by_tokens")}
    for first, second in itertools.pairwise(GROUPS):
        name = f"turns to {second}"
        row |= (
            {name: np.nan}
            if turns is None
            else _with_bounds(name, where(turns, **{"from": first, "to": second}), "moved")
        )
    return row


def summarise(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row a checkpoint, model and layer."""
    rows = []
    keys = ("checkpoint", "model", "layer")
    for values in tables["heads"][list(keys)].drop_duplicates().itertuples(index=False):
        here = dict(zip(keys, values, strict=True))
        heads, qk, order = (where(tables[name], **here) for name in ("heads", "qk", "order"))
        turns = where(tables["turns"], **here) if "turns" in tables else None  # nothing turns in a single group
        rows.append(here | _layer(heads, qk, order, turns))
    return pd.DataFrame(rows)


def short(layers: pd.DataFrame) -> pd.DataFrame:
    """The trained rows beside the untrained share of copies, in few columns."""
    trained, untrained = (where(layers, model=model).reset_index(drop=True) for model in MODELS)
    columns = {"checkpoint": trained["checkpoint"].str.removeprefix("arithmetic-"), "L": trained["layer"]}
    columns |= {name: trained[name] for name in ("reads", "copies", "chooses")}
    columns |= {"untrained": untrained["reads"]}
    for group, name in zip(GROUPS, ("own add", "own sub+", "own sub-"), strict=True):
        columns[name] = trained[f"own_digits {group}"]
    columns |= {"position": trained["by_position"], "swapped": trained[f"swapped {GROUPS[1]}"]}
    return pd.DataFrame(columns)


def findings(checkpoints: Sequence[Checkpoint], tables: Mapping[str, pd.DataFrame], n: int) -> list[Finding]:
    """What holds of each shape, then each checkpoint's heads in words."""
    layers = tables["layers"]
    shapes: dict[str, list[str]] = {}
    for checkpoint in checkpoints:
        shapes.setdefault(shape_of(checkpoint), []).append(checkpoint.name)
    found = []
    for shape, names in shapes.items():
        found += [*_of_shape(shape, names, layers, n), *_units(shape, names, tables["units"], layers)]
    return found + [_heads_in_words(one.name, tables["heads"], n) for one in checkpoints]


@dataclass(frozen=True)
class _Layer:
    """One layer of a shape: a row for each seed, trained and untrained."""

    place: str
    trained: pd.DataFrame
    untrained: pd.DataFrame
    n: int

    def said(self, column: str, form: str = ".3f") -> str:
        return seeds(numbers(self.trained, column), form)

    def finding(self, text: str, columns: Sequence[str], *, counted: bool = False) -> Iterator[Finding]:
        """The mean over seeds and columns beside the untrained one's; nothing where neither has numbers.

        What is counted over heads and digits has no interval; the rest has one over problems, for these models.
        """
        value, control = (rows[list(columns)].to_numpy().mean() for rows in (self.trained, self.untrained))
        if not np.isnan(value):
            known = None if np.isnan(control) else float(control)
            name = UNTRAINED if known is not None else None
            bounds, basis = (None, None), _bounds.COUNTED
            if not counted:
                low, high = ([f"{column}_{end}" for column in columns] for end in ("low", "high"))
                ends = (self.trained[names].to_numpy().ravel().tolist() for names in (low, high))
                bounds, basis = _bounds.mean_bounds(*ends), _bounds.OVER_PROBLEMS
            yield Finding(f"{self.place}: {text}. Value: {basis}", float(value), *bounds, self.n, name, known)


def _of_shape(shape: str, names: list[str], layers: pd.DataFrame, n: int) -> Iterator[Finding]:
    rows = _of(layers, names)
    for number in sorted(set(rows["layer"])):
        trained, untrained = (where(rows, layer=number, model=model) for model in MODELS)
        yield from _of_layer(_Layer(f"{shape}, layer {number}", trained, untrained, n))


def _of(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    return cast(pd.DataFrame, table[table["checkpoint"].isin(names)])


def _of_layer(layer: _Layer) -> Iterator[Finding]:
    groups = [group for group in GROUPS if not any(np.isnan(numbers(layer.trained, f"own_digits {group}")))]

    def each(name: str, form: str = ".3f") -> str:
        return "; ".join(f"{group} {layer.said(f'{name} {group}', form)}" for group in groups)

    text = f"share of heads and answer digits that read one or two positions ({TOGETHER:.0%} of the mean weight)"
    yield from layer.finding(f"{text}: {layer.said('reads')}", ["reads"], counted=True)
    text = (
        f"share that writes a function of the two tokens it reads ({EXPLAINED:.0%} of the variance), one of which wins "
        f"the weight ({WINS:.0%} of it): {layer.said('chooses')}; another function of the two: {layer.said('joins')}; "
        f"a sum of functions of the tokens: {layer.said('copies')}"
    )
    yield from layer.finding(text, ["chooses"], counted=True)
    text = "of the 8 operand digits in the places of d3 to d0, how many some head reads where that digit is predicted"
    text = f"{text}: {each('own_digits', '.0f')}"
    yield from layer.finding(text, [f"own_digits {group}" for group in groups], counted=True)
    text = (
        "of what all heads together write as a function of the two digits of the place, the share that changes when "
        "they swap (0: they do not tell a's from b's; 0.5: both digits side by side)"
    )
    yield from layer.finding(f"{text}: {each('swapped')}", [f"swapped {group}" for group in groups])
    text = (
        "share of the attention scores' variance over keys and problems that the key's position gives: "
        f"{layer.said('by_position')}; with both tokens too: {layer.said('by_tokens')}"
    )
    yield from layer.finding(text, ["by_position"])
    text = "how far mean patterns turn from subtraction + to - (0 not at all, 1 to other positions)"
    yield from layer.finding(f"{text}: {layer.said(f'turns to {GROUPS[2]}')}", [f"turns to {GROUPS[2]}"])


def _units(shape: str, names: list[str], units: pd.DataFrame, layers: pd.DataFrame) -> Iterator[Finding]:
    """Units digits right in subtractions, beside the most that a function of the unordered pair can have right."""
    for group in GROUPS[1:]:
        rows = where(_of(units, names), model="trained", group=group)
        if len(rows):
            known = [numbers(rows, column) for column in ("right", "low", "high")]
            said = ", ".join(f"{right:.3f} ({low:.3f} to {high:.3f})" for right, low, high in zip(*known, strict=True))
            depths = [numbers(where(layers, checkpoint=name, model="trained"), f"units {group}") for name in names]
            swaps = [max(values) for values in depths]
            text = (
                f"{shape}, {group}: share of units digits right, by seed with its interval: {said}; the share that "
                f"changes when a's and b's swap, at d0 in the layer where it is larger: {seeds(swaps)}. Value: mean "
                f"share right, {_bounds.OVER_PROBLEMS}"
            )
            control = "the best that does not tell a's units digit from b's"
            best, n = numbers(rows, "best_without_order")[0], int(numbers(rows, "n")[0])
            yield Finding(text, mean(known[0]), *_bounds.mean_bounds(*known[1:]), n, control, best)


def _heads_in_words(name: str, heads: pd.DataFrame, n: int) -> Finding:
    """Every head whose output follows from the tokens it reads, all problems together: `L0H1 d3<a3 d2<a2|b2`."""
    all_rows, untrained = (where(heads, checkpoint=name, model=model, group="all") for model in MODELS)
    marks = {"copies": "+", "joins": ",", "chooses": "|"}
    parts = []
    rows = cast(pd.DataFrame, all_rows[all_rows["role"].isin(list(marks))])
    by_head: dict[tuple[int, int], dict[str, str]] = {}
    for row in rows.to_dict("records"):
        by_head.setdefault((row["layer"], row["head"]), {})[row["answer"]] = marks[row["role"]].join(
            row["reads"].split()
        )
    for (layer, head), said in sorted(by_head.items()):
        parts.append(f"L{layer}H{head} " + " ".join(f"{digit}<{said[digit]}" for digit in PREDICTED if digit in said))
    text = (
        f"{name}, all problems: heads whose output follows from the tokens they read (answer digit < read; + a sum, "
        f"| one of the two, by comma another function): {'; '.join(parts) or 'none'}. Value: share of heads and "
        f"answer digits, {_bounds.COUNTED}"
    )
    control = sum(role in marks for role in untrained["role"]) / len(untrained)
    return Finding(text, len(rows) / len(all_rows), n=n, control="the untrained model", control_value=control)
