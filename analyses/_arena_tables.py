"""The arena's table, what it is made of, and its findings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses._arena_beyond import CANNOT, LEARNED, QUESTIONS, Beyond
from analyses._arena_forms import Answered, Form
from analyses._arena_problems import Asked
from workbench.analysis import Finding
from workbench.exhaustive.tally import lines
from workbench.statistics import mean_interval, wilson
from workbench.structure import CLASSES, GROUPINGS, categories, category_names
from workbench.task import DOMAIN_SIZE, Problems

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
OPERATORS = ("addition", "subtraction")
WHOLE = f"wrong of {DOMAIN_SIZE:,}"
NOT_COUNTED = "not counted"


@dataclass(frozen=True, eq=False)
class Played:
    """One form's answers to all problems, and how many of the whole domain it gets wrong by operator, where known."""

    form: Form
    random: Answered
    classes: Answered
    domain: dict[str, int] | None

    @property
    def exact(self) -> bool:
        """Whether it writes its own sign, and so its whole answer."""
        return self.random.sign is None


def played(form: Form, asked: Asked, domain: dict[str, int] | None = None) -> Played:
    """Ask one form; what it gets wrong of the whole domain is read from its counts, unless given."""
    if domain is None and form.exact is not None:
        domain = {line.category: line.wrong for line in lines(form.exact.counts, "operator")}
        domain = domain if form.exact.n == DOMAIN_SIZE else None
    return Played(form, form.ask(asked.random), form.ask(asked.classes), domain)


def category_rows(one: Played, asked: Asked) -> list[Row]:
    """Counts by category: of the random problems, and for classes of all that were asked."""
    together = Problems.from_index(np.concatenate([asked.random.index, asked.classes.index]))
    both = np.concatenate([one.random.right, one.classes.right])
    rows = []
    for grouping in GROUPINGS:
        problems, right = (together, both) if grouping == "class" else (asked.random, one.random.right)
        found = categories(problems, grouping)
        for name in category_names(grouping):
            here = found == name
            if not here.any():
                continue
            n, k = int(here.sum()), int(right[here].sum())
            low, high = wilson(k, n)
            row = {"form": one.form.name, "kind": one.form.kind, "grouping": grouping, "category": name, "n": n}
            rows.append(row | {"right": k, "accuracy": k / n, "low": low, "high": high})
    return rows


def cost_rows(forms: Sequence[Form]) -> list[Row]:
    """What each kind was given and what an answer takes; more than one row where its forms differ in that."""
    return [
        {"kind": kind, "examples": c.examples, "trained parameters": c.trained, "written parameters": c.written,
         "multiply-adds": c.multiply_adds, "counted": c.counted}
        for kind, c in dict.fromkeys((form.kind, form.cost) for form in forms)
    ]  # fmt: skip


def domain_rows(games: Sequence[Played]) -> list[Row]:
    """One row a form and operator of those whose every answer is known."""
    return [
        {"form": one.form.name, "kind": one.form.kind, "operator": operator, "n": DOMAIN_SIZE // 2, "wrong": wrong}
        for one in games
        if one.domain is not None
        for operator, wrong in one.domain.items()
    ]


def spread(values: Sequence[float | int], digits: int = 4) -> str:
    """Lowest to highest, or one number where they agree; 0 and 1 only where a share is exactly that."""

    def shown(value: float | int) -> str:
        if not digits or value in (0, 1):
            return f"{value:,.0f}"
        return f"{min(max(value, 10**-digits), 1 - 10**-digits):.{digits}f}"

    low, high = shown(min(values)), shown(max(values))
    return low if low == high else f"{low} to {high}"


def worst(rows: Sequence[Row], kind: str) -> tuple[str, list[float]] | None:
    """The class in which a kind's forms together are right least often, and each one's accuracy; None if always."""
    here = [row for row in rows if row["kind"] == kind and row["grouping"] == "class"]
    pooled = {}
    for name in CLASSES:
        of = [row for row in here if row["category"] == name]
        if of:
            pooled[name] = sum(row["right"] for row in of) / sum(row["n"] for row in of)
    name = min(pooled, key=lambda name: pooled[name])
    if pooled[name] == 1:
        return None
    return name, [row["accuracy"] for row in here if row["category"] == name]


def summary(games: Sequence[Played], rows: Sequence[Row], further: Sequence[Beyond]) -> "pd.DataFrame":
    """The arena's table: one column a kind, one row a question; seeds are given by their lowest and highest."""
    import pandas as pd

    kinds = dict.fromkeys(one.form.kind for one in games)
    columns = {kind: _column(kind, games, rows, further) for kind in kinds}
    asked = {"asked": list(next(iter(columns.values())))}
    return pd.DataFrame(asked | {kind: list(column.values()) for kind, column in columns.items()})


def _column(kind: str, games: Sequence[Played], rows: Sequence[Row], further: Sequence[Beyond]) -> dict[str, str]:
    here = [one for one in games if one.form.kind == kind]
    exact, found = here[0].exact, {"forms": f"{len(here)} seed{'s' if len(here) > 1 else ''}"}
    if exact:
        found["forms"] = "1"
    for operator in OPERATORS:
        where = (kind, "operator", operator)
        shares = [row["accuracy"] for row in rows if (row["kind"], row["grouping"], row["category"]) == where]
        found[f"sequence accuracy, {operator}"] = spread(shares)
    counted = [sum(one.domain.values()) for one in here if one.domain is not None]
    found[WHOLE] = spread(counted, 0) if len(counted) == len(here) else NOT_COUNTED
    fails = worst(rows, kind)
    found["fails most in"] = f"{fails[0]}: {spread(fails[1])} right" if fails else "nothing"
    found["sign"] = "its own" if exact else "given"
    first = here[0].form.cost
    given = spread([one.form.cost.examples for one in here], 0)
    found["examples"] = f"{given} templates" if exact and first.examples else given
    found["parameters"] = (
        f"{first.trained:,}" if first.trained else f"{first.written:,} written" if first.written else "infinite width"
    )
    found["multiply-adds an answer"] = f"{first.multiply_adds:,}"
    by = {one.question: one.words for one in further if one.form == (kind if exact else LEARNED)}
    return found | {question: by[question] for question in QUESTIONS}


def findings(games: Sequence[Played], rows: Sequence[Row], further: Sequence[Beyond]) -> list[Finding]:
    """Each kind's accuracy and where it fails, the sign that decoders would write, and what lies beyond the task."""
    found = []
    for kind in dict.fromkeys(one.form.kind for one in games):
        here = [one for one in games if one.form.kind == kind]
        shares = [float(one.random.right.mean()) for one in here]
        n, k = sum(len(one.random.right) for one in here), sum(int(one.random.right.sum()) for one in here)
        where = worst(rows, kind)
        fails = f"it fails most in {where[0]}, {spread(where[1])} right" if where else "it fails nowhere"
        text = f"{kind}: {k:,} of {n:,} answers to random problems are right"
        if len(here) > 1:
            low, high = np.clip(mean_interval(shares), 0, 1).tolist()
            text += f", {spread(shares)} over {len(here)} seeds"
        else:
            low, high = wilson(k, n)
        found.append(Finding(f"{text}; {fails}.", k / n, low, high, len(here) if len(here) > 1 else n))
        counted = [sum(one.domain.values()) for one in here if one.domain is not None]
        if counted:
            of = "" if len(here) == 1 else f" in {len(counted)} of {len(here)} seeds"
            text = f"{kind}: {spread(counted, 0)} of all {DOMAIN_SIZE:,} problems are answered wrong{of}."
            found.append(Finding(text, float(np.mean(counted)), n=DOMAIN_SIZE))
    signs = [one.random.sign for one in games if one.random.sign is not None]
    if signs:
        told = np.concatenate(signs)
        text = "Decoders are given the sign; the one that they would write is right in this share of random problems."
        found.append(Finding(text, told.mean(), *wilson(int(told.sum()), len(told)), len(told)))
    for one in further:
        if one.n:
            low, high = one.interval or (0.0, 1.0)
            found.append(Finding(f"{one.question}, {one.form}: {one.how}.", one.right / one.n, low, high, one.n))
        else:
            found.append(Finding(f"{one.question}, {one.form}: {CANNOT} ({one.how}).", 0, n=0))
    return found
