"""The kernel paper's sentences in the ledger, as its public summary states them, from short runs of its analyses."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from analyses._rows import Row, Share, share, where
from analyses.learned import _claims_exact_rules as rules
from analyses.learned._claims_entry import Entry
from analyses.learned._claims_rules import Verdict
from workbench.result import Finding

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, "Mapping[str, pd.DataFrame]"]  # analysis, table

SOURCE = "summary of the kernel paper"
EXECUTE = "can exactly execute binary"
NAMES = {"permute": "permutation", "add": "addition", "multiply": "multiplication"}
CLAIMED = 2.0  # the exponent in O(l^2)


def entries(tables: Tables) -> list[Entry]:
    """A row a sentence."""

    def of(analysis: str, table: str) -> list[Row]:
        return tables[f"ntk-{analysis}"][table].to_dict("records")

    return [
        templates(of("exhaustive", "sizes")),
        *(executed(name, of("exhaustive", "exhaustive"), of("exhaustive", "controls")) for name in NAMES),
        sbn(of("sbn", "cases"), of("sbn", "paddings")),
        correlations(of("sbn", "paddings")),
        growth(of("ensembles", "orders")),
        *counts(of("ensembles", "counts"), of("ensembles", "published")),
    ]


def _entry(analysis: str, sentence: str, verdict: Verdict, test: str, text: str, found: Finding) -> Entry:
    """A row; one that is left open names the command that decides."""
    open_ = f"; open at this size, `workbench analyze ntk-{analysis} --full` decides" if verdict == "open" else ""
    said = Finding(f"({text}{open_}; ntk-{analysis})", found.value, found.low, found.high, found.n, found.control,
                   found.control_value)  # fmt: skip
    return Entry(sentence, SOURCE, verdict, test, said)


def templates(rows: Sequence[Row]) -> Entry:
    """Templates a doubling of the possible inputs, by algorithm."""
    spans, growing = [], []
    for name in NAMES:
        first, *_, last = where(rows, operation=name)
        growing.append(last["templates_per_doubling"] / first["templates_per_doubling"])
        spans.append(f"{NAMES[name]} {last['templates']:,} for {last['inputs']:.1e} inputs")
    most = max(growing)
    return _entry(
        "exhaustive", "trained on logarithmically many orthonormal template examples", rules.logarithmic(growing),
        f"templates a doubling of the inputs grow to at most {rules.FLAT} times, from one bit on",
        "; ".join(spans), Finding("", most, n=len(rows), control="logarithmic", control_value=1.0),
    )  # fmt: skip


def executed(name: str, rows: Sequence[Row], controls: Sequence[Row]) -> Entry:
    """One algorithm on every input of every size run."""
    here, (*_, beyond) = where(rows, operation=name), where(controls, operation=name)
    wrong, n = sum(row["wrong"] for row in here), sum(row["inputs"] for row in here)
    bits = max(row["bits"] for row in here)
    return _entry(
        "exhaustive", f"{EXECUTE} {NAMES[name]}", rules.exact(wrong, beyond["wrong"]),
        "no input wrong; some wrong once h is beyond what the sign rule allows",
        f"{wrong} of {n:,} wrong, every input of 1 to {bits} bits",
        Finding("", wrong / n, n=n, control=f"h x {beyond['h_times']:.3g}, {beyond['bits']} bits",
                control_value=beyond["wrong"] / beyond["inputs"]),
    )  # fmt: skip


def sbn(cases: Sequence[Row], paddings: Sequence[Row]) -> Entry:
    """Every bit after every instruction; without its padding the machine must fail."""
    wrong, n = (sum(row[name] for row in cases) for name in ("wrong_states", "instructions"))
    (bare,) = where(paddings, padding=0)
    return _entry(
        "sbn", f"{EXECUTE} [...] SBN instructions", rules.exact(wrong, bare["wrong_words"]),
        "no state differs from an interpreter's; some do without padding",
        f"{wrong} states differ after {n:,} instructions: all single ones of three small machines, "
        f"{sum(row['runs'] for row in where(cases, case='random programs')):,} random programs, multiplication",
        Finding("", wrong / n, n=n, control="share of multiplications wrong without padding",
                control_value=1 - bare["products_right"] / bare["runs"]),
    )  # fmt: skip


def correlations(paddings: Sequence[Row]) -> Entry:
    """Whether signs flip exactly where unwanted correlations outweigh what is wanted."""
    (bare,) = where(paddings, padding=0)
    padded = max(paddings, key=lambda row: row["padding"])
    return _entry(
        "sbn", "predictor sign information is preserved [...] under an unwanted-correlation assumption",
        rules.foretold(bare["flips"], bare["missed"], bare["false_alarms"]),
        "every flip is foretold by T (m - 1/g) >= S (N + 2 pi - 1), and no other",
        f"without padding {bare['flips']:,} bits flip, {bare['predicted']:,} foretold, {bare['missed']} missed, "
        f"{bare['false_alarms']} false alarms", Finding("", bare["flips"], n=int(bare["runs"]),
                                                       control=f"flips with {padded['padding']} templates more",
                                                       control_value=padded["flips"]),
    )  # fmt: skip


def growth(orders: Sequence[Row]) -> Entry:
    """Exponents of the number of networks for all inputs, at threshold zero."""
    here = where(orders, threshold="zero", of="networks")
    most = max(here, key=lambda row: row["high"])
    (bound, *_) = sorted(
        (row["exponent"] for row in where(orders, threshold="zero", of="bound", source="last doubling")), reverse=True
    )
    spans = ", ".join(
        f"{NAMES[row['operation']]} l^{row['exponent']:.2f} (l = {row['from']:,} to {row['to']:,})" for row in here
    )
    return _entry(
        "ensembles", "Ensemble complexity scales as O(l^2) for permutation, addition, and multiplication",
        rules.at_most_order([(row["low"], row["high"]) for row in here], CLAIMED),
        "as an upper bound: no exponent above 2", f"{spans}: within the bound, and not as l^2",
        Finding("", most["exponent"], most["low"], most["high"], len(here), "exponent of the bound that we can prove",
                bound),
    )  # fmt: skip


def counts(cells: Sequence[Row], published: Sequence[Row]) -> list[Entry]:
    """Networks until rounding their mean is right in nine of ten cases, drawn from both laws."""
    zero = where(cells, kind="law", threshold="zero")
    theirs = {row["k"]: int(row["published"]) for row in published if row["published"]}

    def inside(form: str) -> Share:
        return share(where(zero, form=form), lambda row: row["band_low"] <= theirs[row["k"]] <= row["band_high"])

    ntk, nngp = inside("ntk"), inside("nngp")
    laws = where(zero, form="nngp")
    reached = Share(sum(row["trials"] - row["unreached"] for row in laws), sum(row["trials"] for row in laws))
    one = sum(row["least"] == 1 for row in laws)
    medians = ", ".join(f"{row['median']:g} at k = {row['k']}" for row in laws)
    error = laws[0]["error"]
    return [
        _entry(
            "ensembles", "[networks] averaged and rounded to get exact execution with high probability",
            rules.exact(reached.n - reached.right, len(laws) - one), f"every trial reaches accuracy {1 - error:g}",
            f"permutations of k bits by the NNGP law, median networks: {medians}",
            Finding("", reached.share, reached.low, reached.high, reached.n, "k at which one network was ever enough",
                    one),
        ),
        _entry(
            "ensembles", "the networks averaged are of the theory's \"infinite-width NTK regime\"",
            rules.apart(ntk, nngp), "published counts lie in the 90% band of the NTK law more often than in NNGP's",
            f"of the published networks' counts at k = {min(theirs)} to {max(theirs)}, {ntk} in the NTK band, "
            f"{nngp} in that of the last layer's kernel alone (NNGP)",
            Finding("", ntk.share, ntk.low, ntk.high, ntk.n, "in the NNGP band", nngp.share),
        ),
    ]  # fmt: skip
