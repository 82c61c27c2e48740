"""The Hill Space report's sentences in the ledger, from the tables that its analyses give in a short run."""

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from analyses._rows import Row, Share, share, where
from analyses.learned import _claims_exact_rules as rules
from analyses.learned._claims_entry import Entry
from analyses.learned._claims_rules import Verdict
from analyses.published import load
from workbench.result import Finding

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, "Mapping[str, pd.DataFrame]"]  # analysis, table

CROSSING = ("U(-5,5)", "N(-3,3)")  # the report's training ranges with both signs
OPTIMIZERS = {  # the published settings' names, and torch's
    "Adam(def)": "Adam", "Adam(β₂=0.5)": "Adam", "AdamW": "AdamW", "RAdam": "RAdam", "NAdam": "NAdam",
    "RMSProp": "RMSprop", "Adagrad": "Adagrad", "Adadelta": "Adadelta", "Rprop": "Rprop", "SGD+mom": "SGD",
}  # fmt: skip


def entries(tables: Tables) -> list[Entry]:
    """A row a sentence, in the report's order."""

    def of(analysis: str, table: str) -> list[Row]:
        return tables[f"hill-{analysis}"][table].to_dict("records")

    return [
        thresholds(of("saturation", "thresholds")),
        twenty(of("saturation", "inalu")),
        default_rates(load("hill")["optimizer_matrix"]["protocol"]["lr"]),
        *beta2(of("momentum", "grid"), of("momentum", "summary")),
        almost_all(of("optimizers", "cells")),
        roots(of("fractional", "units")),
        *bits(of("precision", "bits")),
        piecewise(of("composition", "runs")),
        division(of("division", "summary")),
        crossing(of("inalu", "runs"), of("inalu", "lotteries")),
        *scales(of("initialisation", "runs"), of("plateaus", "operations")),
    ]


def _entry(
    analysis: str, section: str, sentence: str, verdict: Verdict, test: str, text: str, found: Share,
    control: str, value: float,
) -> Entry:  # fmt: skip
    """A row whose number is a share; one that is left open names the command that decides."""
    where_else = f"; open at this size, `workbench analyze hill-{analysis} --full` decides" if verdict == "open" else ""
    numbers = Finding(f"({text}{where_else}; hill-{analysis})", found.share, found.low, found.high, found.n, control,
                      value)  # fmt: skip
    return Entry(sentence, f"Hill Space report, {section}", verdict, test, numbers)


def _counted(row: Row, name: str, n: str = "n") -> Share:
    return Share(round(row[name]), int(row[n]))


def _pooled(shares: Sequence[Share]) -> Share:
    return Share(sum(one.right for one in shares), sum(one.n for one in shares))


def thresholds(rows: Sequence[Row]) -> Entry:
    """Table 2.2: the smallest argument at which tanh and sigmoid are 1, by format."""
    theirs = [row for row in rows if row["agrees"]]
    right = share(theirs, lambda row: row["agrees"] == "yes" and row["exceptions"] == 0)
    rounded = share(theirs, lambda row: row["rounded"] == row["from"])
    tried = sum(row["tried"] for row in theirs)
    return Entry(
        "Measured with torch on CPU, the smallest value at which each returns exactly 1.0", "Hill Space report, 2.2",
        rules.every(right.right, right.n), "every published threshold, and no number beyond it at which it fails",
        Finding(f"({right} thresholds as published, {tried:,} numbers tried; hill-saturation)", right.right, n=right.n,
                control="equal to those of correctly rounded functions", control_value=rounded.right),
    )  # fmt: skip


def twenty(rows: Sequence[Row]) -> Entry:
    """What iNALU's regularizer stops at."""
    (row,) = where(rows, format="float64")
    holds = [row["tanh(20)"] == 1.0, row["sigmoid(20)"] < 1.0]
    return Entry(
        "At 20, tanh already rounds to exactly 1.0 in float64, but \u03c3(20) is just shy", "Hill Space report, 2.2",
        rules.every(sum(holds), len(holds)), "tanh(20) is 1 and sigmoid(20) is not",
        Finding(f"(the weight is {row['ulps_below_1']:,} ulps below 1; hill-saturation)", 1 - row["W"],
                control="below 1 once snapped", control_value=1 - row["snapped"]),
    )  # fmt: skip


def default_rates(rates: Mapping[str, float | str]) -> Entry:
    """The settings of the report's experiment file beside those that torch takes if none is given."""
    import torch

    def default(name: str) -> float:
        return float(inspect.signature(getattr(torch.optim, OPTIMIZERS[name])).parameters["lr"].default)

    same = [name for name, rate in rates.items() if float(str(rate).split()[0]) == default(name)]
    return Entry(
        "I sweep ten standard optimizer configurations at default learning rates", "Hill Space report, 2.2",
        rules.every(len(same), len(rates)), "the experiment file's learning rates are torch's defaults",
        Finding(f"({len(same)} of {len(rates)} rates are: {', '.join(same)}; hill-optimizers has both)", len(same),
                n=len(rates), control="all", control_value=len(rates)),
    )  # fmt: skip


def beta2(grid: Sequence[Row], scores: Sequence[Row]) -> list[Entry]:
    """Whether the report's Adam saturates, and whether it is the small beta2 that does it."""

    def cell(beta1: float, beta2: float) -> Share:
        (row,) = [row for row in where(grid, beta1=beta1, beta2=beta2) if row["epsilon"] > 1e-20]
        return _counted(row, "exact")

    both, slow, alone = cell(0.9, 0.5), cell(0.9, 0.999), cell(0.0, 0.5)
    by = {row["rule"]: row["right_share"] for row in scores}
    relation = by.pop("beta2 < beta1^2")
    single = max(value for name, value in by.items() if name.endswith("alone"))
    return [
        _entry(
            "momentum", "2.2", "you can stay in the Adam family with β₂ = 0.5", rules.apart(both, slow),
            "exact more often than with 0.999, intervals apart",
            f"{both} runs at rate 0.1 end exact without snapping", both, "beta2 = 0.999", slow.share,
        ),
        _entry(
            "momentum", "2.2", "β₂ = 0.5 that tracks the shrinking gradient and keeps moving further into saturation",
            rules.enough_alone(alone, both), "refuted if without momentum it does less often what it does with it",
            f"beta2 = 0.5 without momentum: {alone} exact; beta2 < beta1^2 tells {relation:.1%} of the held-out cases, "
            f"one beta alone {single:.1%}", alone, "with beta1 = 0.9", both.share,
        ),
    ]  # fmt: skip


def almost_all(cells: Sequence[Row]) -> Entry:
    """What snapping adds; a short run cannot refute, since weights are still on their way."""
    snapped, bare = (
        _pooled([Share(round(r["plain_share_reached"] * r["plain_seeds"]), int(r["plain_seeds"])) for r in here])
        for here in (where(cells, snapping=0.01), where(cells, snapping=0.0))
    )
    return _entry(
        "optimizers", "2.2", "At 1e-2, almost all optimizers hit the floor",
        rules.mostly(snapped, rules.ALMOST_ALL, whole=False), f"{rules.ALMOST_ALL:.0%} of trainings or more",
        f"{snapped} trainings of ten settings so far", snapped, "not snapped", bare.share,
    )  # fmt: skip


def roots(rows: Sequence[Row]) -> Entry:
    """Whether weights land on a root; a distance of float64's epsilon or less is on it."""
    from analyses.hill._hill_fractional_tables import landed
    from analyses.hill._hill_fractional_training import ROOTS

    there = [row for row in rows if row["target"] in ROOTS]
    clean, noisy = (share(group, landed) for group in (where(there, noise=0.0), [r for r in there if r["noise"]]))
    return _entry(
        "fractional", "2.3", "[at a root, nudges] move your weight around the target, but rarely land directly on it",
        rules.rarely(clean), f"rarely: below {rules.RARELY:.0%}",
        f"{clean} units of roots end on the root, ten settings", clean,
        "with answers off by 1%", noisy.share,
    )  # fmt: skip


def bits(rows: Sequence[Row]) -> list[Entry]:
    """Bits of enumerated units beside those of the native operators."""

    def same(operations: Sequence[str], method: str) -> Share:
        here = [row for row in where(rows, method=method) if row["operation"] in operations]
        return _pooled([Share(round(row["share"] * row["n"]), int(row["n"])) for row in here])

    linear, products = ("add", "subtract"), ("multiply", "divide")
    sums, powers = same(linear, "Real"), same(products, "Complex128")
    exact = same(products, "Sign-exact")
    test = "the native operator's bits on every sample"
    return [
        _entry(
            "precision", "2.5", "their optimal weights can be calculated rather than learned",
            rules.identical(_pooled([sums, exact])), test,
            "four operations, weights written down, multiply and divide in sign-exact powers",
            _pooled([sums, exact]), "in complex powers", powers.share,
        ),
        _entry(
            "precision", "4.4", "Addition and Subtraction produce identical results to native IEEE operations",
            rules.identical(sums), test, "float32 and float64", sums, "multiply and divide in complex powers",
            powers.share,
        ),
    ]  # fmt: skip


def piecewise(rows: Sequence[Row]) -> Entry:
    """Whether weights of a circuit lock one after another."""
    from analyses.hill._hill_composition_findings import APART, free_runs

    single = [row for row in rows if row["solved"] and row["units_trained"] == 1 and row["spread"] == row["spread"]]
    circuits, alone = (share(group, lambda row: row["spread"] > APART) for group in (free_runs(rows), single))
    return _entry(
        "composition", "2.6", "a circuit of these units should lock in piecewise during training",
        rules.piecewise(circuits, alone), f"most have more than {APART:.0%} of the time between first and last lock, "
        "and more than circuits with one unit trained",
        f"{circuits} solved runs", circuits, "one unit trained", alone.share,
    )  # fmt: skip


def division(rows: Sequence[Row]) -> Entry:
    """The report's own script."""
    script, wide = _share(rows[0]), _share(rows[-1])
    return _entry(
        "division", "4.2", "finds division reliably", rules.mostly(script, rules.RELIABLE, whole=False),
        f"reliably: {rules.RELIABLE:.0%} or more at the selection, snapped",
        f"{script} units after {DIVISION_EPOCHS * 1000:,} of the script's 50,000 steps", script,
        "trained on -10 to 10", wide.share,
    )  # fmt: skip


DIVISION_EPOCHS = 2  # of 1,000 steps


def _share(row: Row) -> Share:
    return Share(round(row["exact"] * row["n"]), int(row["n"]))


def crossing(runs: Sequence[Row], lotteries: Sequence[Row]) -> Entry:
    """Where matched training fails: the four lotteries, and the other ranges."""
    there, normal = (
        _pooled([Share(int(row["n"] - row["won"]), int(row["n"])) for row in where(lotteries, distribution=name)])
        for name in CROSSING
    )
    failed = [{**row, "failed": not row["right"]} for row in runs]
    matched = [row for row in where(failed, training="matched") if row["distribution"] not in CROSSING]
    elsewhere, universal = share(matched, "failed"), share(where(failed, training="universal"), "failed")
    return _entry(
        "inalu", "4.3", "the remaining failures occur when training on the two ranges that cross zero",
        rules.only_there(there, elsewhere), "none elsewhere, and more often there, intervals apart",
        f"multiply and divide: {there} fail on U(-5,5), {normal} on N(-3,3); {elsewhere} on other ranges, "
        f"{universal} trained on U(1e-8, 10); that the width of the range decides is in hill-zero-crossing",
        there, "other ranges", elsewhere.share,
    )  # fmt: skip


def scales(runs: Sequence[Row], operations: Sequence[Row]) -> list[Entry]:
    """Section 4.5: which initial scales fail, and what a wrong sign has to do with it."""
    mine = [{**row, "failed": not row["learned"]} for row in where(runs, protocol="report")]
    near, one = (share([row for row in mine if row["scale"] in at], "failed") for at in ((0.0, 0.01, 0.1), (1.0,)))
    straight = [row for row in operations if row["operation"] not in ("cos", "sin")]
    wrong, right = (
        _pooled([_counted(row, "failed") for row in straight if (row["wrong"] > 0) is sign]) for sign in (True, False)
    )
    return [
        _entry(
            "initialisation", "4.5",
            "Near-neutral initializations all reach the floor; failures begin around scale 1.0",
            rules.begins(near, one), "no failure up to 0.1, more at 1, intervals apart",
            f"{near} runs fail up to scale 0.1, {one} at scale 1", one, "up to scale 0.1", near.share,
        ),
        _entry(
            "plateaus", "4.5",
            "The randomly chosen plateau protects a correct selection and works against an incorrect one",
            rules.apart(wrong, right), "starts with a W_hat of the wrong sign fail more often, intervals apart",
            f"scales 1 and 3: {wrong} starts with a wrong sign fail, {right} without; cos and sin apart", wrong,
            "all signs right", right.share,
        ),
    ]  # fmt: skip
