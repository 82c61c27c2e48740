"""The tables and findings of `ntk-sbn`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from analyses.kernel._ntk_sbn_rule import Attempt
from analyses.kernel._ntk_sbn_runs import Case, Cells
from workbench.analysis import Finding
from workbench.ntk import kernel
from workbench.statistics import wilson

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


def executed(case: Case) -> int:
    """Instructions, over all runs."""
    return int(case.outcome.executed.sum())


def most_matched(case: Case) -> int:
    """The largest m that occurred."""
    return int(case.outcome.record.states.nonzero().max())


NARROW = ["case", "D", "w", "P", "runs", "instructions", "words", "wrong_words", "wrong_states", "flips", "right"]


def whole(cases: Sequence[Case]) -> "pd.DataFrame":
    """One row a case: what was run on which machine, and what was wrong; `summary` is its columns in `NARROW`."""
    import pandas as pd

    rows = []
    for case in cases:
        record, size = case.outcome.record, case.size
        row = {"case": case.name, "inputs": case.inputs, "D": size.words, "w": size.width, "P": size.instructions}
        row |= {"templates": size.templates, "padding": case.padding}
        row |= {"runs": case.runs, "instructions": executed(case), "iterations": executed(case) * size.iterations}
        row |= {"words": record.words, "wrong_words": record.wrong_words, "wrong_states": record.wrong_states}
        rows.append(
            row | {"flips": record.flips, "right": "" if case.right is None else f"{case.right} of {case.runs}"}
        )
    return pd.DataFrame(rows)


def machines(cases: Sequence[Case]) -> "pd.DataFrame":
    """One row a template set: its sizes, the bounds on m and T, and how near its states come to the sign rule."""
    import pandas as pd

    rows: dict[tuple[int, int, int], Row] = {}
    for case in cases:
        size, record = case.size, case.outcome.record
        key = (size.words, size.width, size.instructions)
        row: Row = dict(zip("DwP", key, strict=True))
        row |= {"bits": size.bits, "templates": size.templates, "padding": case.padding}
        row |= {"iterations": size.iterations, "T_largest": size.most_written, "m_bound": size.most_matched}
        before = rows.get(key, {"m_largest": 0, "load_largest": 0.0, "margin": float("inf")})
        row |= {"m_largest": max(before["m_largest"], most_matched(case))}
        row |= {"load_largest": max(before["load_largest"], float(record.loads.max()))}
        row |= {"load_limit": size.templates + case.padding + kernel.ridge()}
        rows[key] = row | {"margin": min(before["margin"], record.margin)}
    return pd.DataFrame(list(rows.values()))


def attempts(found: Sequence[Attempt]) -> "pd.DataFrame":
    """One row a padding of the multiplication program: flips foretold and observed, and what became of the products."""
    import pandas as pd

    rows = []
    for one in found:
        record = one.case.outcome.record
        row = {"padding": one.padding, "load_limit": one.limit, "load_largest": float(record.loads.max())}
        row |= {"runs": one.case.runs, "runs_foretold": int((one.foretold > 0).sum())}
        row |= {"runs_flipped": int((one.case.outcome.first_flip > 0).sum()), "first_flip_as_foretold": one.agree}
        row |= {"flips": record.flips, "predicted": record.predicted, "missed": record.missed}
        row |= {"false_alarms": record.alarms, "wrong_words": record.wrong_words, "products_right": one.case.right}
        rows.append(row)
    return pd.DataFrame(rows)


def loads(found: Sequence[Attempt]) -> "pd.DataFrame":
    """For each padding and m that occurred: states, flips, the largest load, and what it must stay below."""
    import pandas as pd

    rows = []
    for one in found:
        record = one.case.outcome.record
        for m in record.states.nonzero().flatten().tolist():
            row = {"padding": one.padding, "m": m, "states": int(record.states[m]), "flips": int(record.flips_at[m])}
            rows.append(row | {"load": float(record.loads[m]), "limit": one.limit})
    return pd.DataFrame(rows)


def bound(written: int, most: int) -> list[float]:
    """`T (m - 1 / g_m)`, the highest load of a bit that T templates write, for m = 1 .. most."""
    m = torch.arange(1, most + 1)
    return (written * (m - 1 / kernel.gain(m))).tolist()


def grid(cells: Cells, unpadded: Attempt) -> "pd.DataFrame":
    """One row a pair of factors: in which iteration it first flips without padding, by the rule and on the machine."""
    import pandas as pd

    outcome = unpadded.case.outcome
    columns = {"x": cells["x"], "y": cells["y"], "foretold": unpadded.foretold, "observed": outcome.first_flip}
    columns |= {"agrees": outcome.agrees, "product": outcome.memory[:, 3], "instructions": outcome.executed}
    return pd.DataFrame({name: values.tolist() for name, values in columns.items()})


def findings(cases: Sequence[Case], found: Sequence[Attempt], enough: int, tight: tuple[int, int]) -> Iterator[Finding]:
    """What the numbers say.

    `cases` are the padded runs, `found` the paddings tried, the last with that of the rule; `enough` is the least
    padding for them by the rule; `tight` counts flips in the fullest state with the rule's padding and one less.
    """
    yield agreement([case for case in cases if case.name == "single instructions"], "single instructions of every kind")
    yield from (sampled(case) for case in cases if case.name == "random programs")
    named = [case for case in cases if case.right is not None]
    yield agreement(named, "instructions of programs")
    right, runs = sum(case.right or 0 for case in named), sum(case.runs for case in named)
    verdict = "All runs of the programs end" if right == runs else "NOT all runs of the programs end"
    yield Finding(f"{verdict} with the answer of plain arithmetic.", right / runs, n=runs)
    yield occupancy(cases)
    yield rule(found[0])
    yield threshold(found, enough)
    yield tightness(tight, found[-1].padding)


def agreement(cases: Sequence[Case], what: str) -> Finding:
    """Whether any state differs from the interpreter's, over all of a kind; nothing here is a sample."""
    wrong = sum(case.outcome.record.wrong_states for case in cases)
    flips = sum(case.outcome.record.flips for case in cases)
    n = sum(executed(case) for case in cases)
    verdict = "the machine's state is the interpreter's" if wrong == flips == 0 else "the machine does NOT agree"
    text = f"After {n:,} {what} {verdict}: {wrong:,} states differ in any bit, {flips:,} signs flip."
    return Finding(text, wrong, n=n)


def sampled(case: Case) -> Finding:
    """Random programs that never differ: a share with its interval."""
    wrong = int((~case.outcome.agrees).sum())
    low, high = wilson(wrong, case.runs)
    verdict = "agrees" if wrong == 0 else "does NOT agree"
    text = f"On random programs the machine {verdict} with the interpreter; share of programs that differ."
    return Finding(text, wrong / case.runs, low, high, case.runs)


def occupancy(cases: Sequence[Case]) -> Finding:
    """Whether m stays within its bound, and reaches it."""
    most = [(most_matched(case), case.size.most_matched) for case in cases]
    above, reached = sum(m > at for m, at in most), sum(m == at for m, at in most)
    verdict = "m never exceeds D w + 3 P + 4" if above == 0 else f"m EXCEEDS D w + 3 P + 4 in {above} cases"
    text = (
        f"{verdict}, and reaches it in {reached} of {len(most)} cases: the bound is {'tight' if reached else 'loose'}."
    )
    return Finding(text, max(m / at for m, at in most), n=len(most), control="bound", control_value=1.0)


def rule(unpadded: Attempt) -> Finding:
    """Without padding: whether the program fails exactly where the sign rule says."""
    record, runs = unpadded.case.outcome.record, unpadded.case.runs
    exact = record.missed == record.alarms == 0 and unpadded.agree == runs and record.flips > 0
    verdict = "fails exactly where the sign rule says" if exact else "does NOT fail where the sign rule says"
    text = (
        f"Without padding the multiplication program {verdict}: {record.predicted:,} flips predicted, {record.flips:,} "
        f"observed, {record.missed} missed, {record.alarms} false alarms; in {unpadded.agree} of {runs} runs the first "
        f"flip, or none, comes as foretold along the intended run; {unpadded.case.right} products are right."
    )
    return Finding(text, record.flips, n=runs, control="predicted", control_value=record.predicted)


def threshold(found: Sequence[Attempt], enough: int) -> Finding:
    """Whether the least padding that the rule allows these runs is the least that works."""
    flips = {one.padding: one.case.outcome.record.flips for one in found}
    holds = flips[enough] == 0 and (enough == 0 or flips[enough - 1] > 0)
    verdict = "is the least that works" if holds else "is NOT the least that works"
    less = flips.get(enough - 1, 0)
    text = (
        f"The padding of {enough} that the rule asks for on these runs {verdict}: {flips[enough]:,} flips with it, "
        f"{less:,} with one template less."
    )
    control = f"flips with padding {enough - 1}"
    return Finding(text, flips[enough], n=found[0].case.runs, control=control, control_value=less)


def tightness(tight: tuple[int, int], padding: int) -> Finding:
    """Whether the padding for all programs of a size can be less."""
    with_it, with_less = tight
    verdict = "cannot be less" if with_it == 0 and with_less > 0 else "is NOT what is needed"
    text = (
        f"The padding of {padding} for all programs of the size {verdict}: one instruction with every word -1 flips "
        f"{with_it} bits with it, {with_less} with one template less."
    )
    return Finding(text, with_it, control=f"flips with padding {padding - 1}", control_value=with_less)


def short(full: bool) -> list[Finding]:
    """A word on the default run, which leaves out the widest inputs."""
    if full:
        return []
    text = "A short run: factors and numbers to sort are not negative; --full also takes negative ones."
    return [Finding(text, 0, control="full run", control_value=1)]
