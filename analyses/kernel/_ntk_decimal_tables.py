"""Tables and findings of `ntk-decimal`; the limits in its verdicts are those asked for before it was built."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from analyses.kernel._ntk_decimal_runs import Asked, loads
from workbench.analysis import Finding
from workbench.exhaustive.tally import Counts, lines
from workbench.ntk import kernel
from workbench.ntk.decimal import Decimal
from workbench.ntk.decimal_words import Checked
from workbench.ntk.sliced import Point
from workbench.ntk.templates import Template
from workbench.statistics import wilson
from workbench.structure import CLASSES, GROUPINGS
from workbench.task import DOMAIN_SIZE

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

MOST_TEMPLATES = 2000  # of the machine of four digits, padding included
MOST_PLACES = 1  # of an operand, or of what is computed from a place of both, that one template may read
PLACED = ("a", "b", "sum", "dif", "out")  # blocks whose first index is a place; carries and borrows lie between places

_NAME = re.compile(r"(\w+)\[(\d+)")


@dataclass(frozen=True)
class Leak:
    """Flips and wrong answers on the same problems with h_m just below and just above what the sign rule allows."""

    problems: int
    factor: float  # by which the rule lets h_m grow on these problems
    below: tuple[int, int]
    above: tuple[int, int]


def places_read(names: Sequence[str], one: Template) -> int:
    """The most places of one block of PLACED that a template reads; `names` are those of the layout's bits."""
    found: dict[str, set[str]] = {}
    for bit in (*one.on, *one.off):
        if (name := _NAME.match(names[bit])) and name[1] in PLACED:
            found.setdefault(name[1], set()).add(name[2])
    return max(map(len, found.values()), default=0)


def groups(machine: Decimal) -> "pd.DataFrame":
    """One row a group of templates: how many, how many bits each reads and writes, and places read."""
    import pandas as pd

    names, rows = machine.templates.layout.names(), []
    for name in dict.fromkeys(one.group for one in machine.templates.templates):
        here = [one for one in machine.templates.templates if one.group == name]
        reads = [len(one.on) + len(one.off) for one in here]
        rows.append({
            "group": name, "templates": len(here), "fewest_read": min(reads), "most_read": max(reads),
            "most_written": max(len(one.writes) for one in here),
            "most_places": max(places_read(names, one) for one in here),
        })  # fmt: skip
    return pd.DataFrame(rows)


def sizes(checked: Sequence[tuple[Decimal, Checked]]) -> "pd.DataFrame":
    """One row a number of digits: the template set, the sign rule's numbers, and the problems asked."""
    import pandas as pd

    rows = []
    for machine, found in checked:
        templates, matched = machine.templates, int(found.survey.matched.nonzero()[0].max())
        written = int(templates.written.max())
        rows.append({
            "digits": machine.digits, "templates": templates.count, "bits": templates.layout.bits,
            "iterations": int(found.iterations.max()), "most matched m": matched, "most written T": written,
            "load": max(loads(found.survey.points, templates.count).values()),
            "padding needed": kernel.padding(written, matched, templates.count - templates.padding),
            "problems": len(found.right), "wrong": int((~found.right).sum()), "flips": found.survey.flips,
        })  # fmt: skip
    return pd.DataFrame(rows)


def categories(asked: Asked, sampled: bool) -> "pd.DataFrame":
    """One row a category of every grouping; the interval is NaN where every problem there is was asked."""
    import pandas as pd

    rows = []
    for grouping in GROUPINGS:
        for line in lines(asked.counts, grouping):
            n, right = line["n"], line["right"]
            low, high = wilson(right, n) if sampled else (np.nan, np.nan)
            spent = _in_line(asked, line.category, grouping)
            steps = np.arange(len(spent))
            rows.append({
                "grouping": grouping, "category": line.category, "n": n, "right": right, "wrong": n - right,
                "low": low, "high": high, "mean_iterations": float(spent @ steps / n),
                "most_iterations": int(steps[spent > 0].max()),
            })  # fmt: skip
    return pd.DataFrame(rows)


def iterations(asked: Asked) -> "pd.DataFrame":
    """One row a class and number of iterations after which answers stand."""
    import pandas as pd

    rows = []
    for name in CLASSES:
        spent = _in_line(asked, name, "class")
        rows += [
            {"class": name, "iterations": steps, "problems": int(spent[steps]), "n": int(spent.sum())}
            for steps in np.flatnonzero(spent).tolist()
        ]
    return pd.DataFrame(rows)


def _in_line(asked: Asked, category: str, grouping: str) -> np.ndarray:
    """How many problems of a category stand after each number of iterations."""
    found = np.zeros(asked.iterations.shape[1], np.int64)
    for cell in asked.counts[:, 0].nonzero()[0].tolist():
        alone: Counts = np.zeros_like(asked.counts)
        alone[cell] = asked.counts[cell]
        (line,) = lines(alone, grouping)
        if line.category == category:
            found += asked.iterations[cell]
    return found


def spoilt_rows(found: dict[str, Asked]) -> "pd.DataFrame":
    """One row a changed template: how many answers it makes wrong, and in which classes."""
    import pandas as pd

    rows = []
    for name, asked in found.items():
        classes = [line.category for line in lines(asked.counts, "class") if line.wrong]
        rows.append({"changed": name, "n": asked.n, "wrong": asked.wrong, "share": asked.wrong / asked.n,
                     "classes": " ".join(classes)})  # fmt: skip
    return pd.DataFrame(rows)


def points(found: set[Point], templates: int) -> "pd.DataFrame":
    """One row a (m, S, T) that occurred: the mean there, and the load where S >= 1."""
    import pandas as pd

    rows = sorted(found)
    m, s, t = torch.tensor(rows, dtype=torch.float64).T
    mean = kernel.gain(m) * s - kernel.leak(m, templates) * t
    load = loads(found, templates)
    table = pd.DataFrame(rows, columns=["m", "S", "T"]).assign(mean=mean.numpy())
    return table.assign(load=[load.get(point, np.nan) for point in rows])


def findings(
    machine: Decimal, asked: Asked, spoilt: "pd.DataFrame", means: "pd.DataFrame", sizes: "pd.DataFrame", leak: Leak
) -> list[Finding]:
    """What was asked, and what the machine shows."""
    from analyses.kernel._ntk_decimal_findings import about_means, about_size, about_templates

    whole, wrong = asked.n == DOMAIN_SIZE, asked.wrong
    low, high = (None, None) if whole else wilson(wrong, asked.n)
    kind = "problems (all there are)" if whole else "random problems"
    control, share = f"least of {len(spoilt)} sets with one template changed", min(spoilt["share"])
    by_class = list(lines(asked.counts, "class"))
    rarest = min(by_class, key=lambda line: line["n"])
    failed = [line.category for line in by_class if line.wrong]
    text = (
        f"{len(by_class)} of {len(CLASSES)} classes were asked, the rarest, {rarest.category}, {rarest['n']:,} times; "
    )
    text += f"wrong answers in {' '.join(failed)}." if failed else "none has a wrong answer."
    answered = f"{wrong:,} of {asked.n:,} {kind} are answered wrong."
    return [
        Finding(answered, wrong / asked.n, low, high, asked.n, control, share),
        Finding(text, len(failed), n=len(by_class)),
        *about_templates(machine, asked, MOST_TEMPLATES, MOST_PLACES, groups(machine)),
        *about_means(means, asked, leak),
        *about_size(sizes),
    ]  # fmt: skip
