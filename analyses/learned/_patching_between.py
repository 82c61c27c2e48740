"""Where what differs stands between the layers: the stream after layer 0, by the kind of position."""

from collections.abc import Mapping, Sequence

from analyses._rows import Row, grouped, mean, where
from analyses.learned._causal_rules import FEWEST, lowest_to_highest, verdict
from analyses.learned._patching_summary import CONTROLS, DIFFERS, pooled
from workbench.result import Finding
from workbench.statistics import wilson

COUNTS = ("restored", "n", "control_restored", "control_n")


def between_layers(sites: Sequence[Row]) -> list[Row]:
    """The stream after each layer but the last, by digit and position, with the share restored."""
    keep = ("checkpoint", "kind", "digit", "component", "position", "node", "stands", *COUNTS, "recovered")
    return [
        {name: row[name] for name in keep} | {"share": row["restored"] / row["n"]}
        for row in sites
        if row["component"].endswith("post") and not row["by_construction"]
    ]


def standing(between: Sequence[Row]) -> list[Row]:
    """One row a checkpoint, kind and kind of position: all digits together, at each the position that restores most."""
    found = []
    for (checkpoint, kind, component, stands), rows in grouped(
        between, "checkpoint", "kind", "component", "stands"
    ).items():
        best = [max(of_digit, key=lambda row: row["share"]) for of_digit in grouped(rows, "digit").values()]
        restored, n, control, control_n = (sum(row[name] for row in best) for name in COUNTS)
        low, high = wilson(restored, n)
        row = {"checkpoint": checkpoint, "kind": kind, "component": component, "stands": stands}
        row |= {"positions": " ".join(row["position"] for row in best), "restored": restored, "n": n}
        row |= {"share": restored / n, "low": low, "high": high, "control_share": control / control_n}
        found.append(row | {"verdict": verdict(restored, n, control, control_n)})
    return found


def findings(table: Sequence[Row], shapes: Mapping[str, str]) -> list[Finding]:
    """What holds for the models of a shape, kind by kind; the number is the kind of position that restores most."""
    rows = [row | {"shape": shapes[row["checkpoint"]]} for row in table if row["n"] >= FEWEST]
    return [_of_shape(part) for part in grouped(rows, "shape", "kind", "component").values()]


def _of_shape(rows: Sequence[Row]) -> Finding:
    shape, kind, component = (rows[0][name] for name in ("shape", "kind", "component"))
    parts = {stands: where(rows, stands=stands) for (stands,) in grouped(rows, "stands")}
    said = [
        f"{stands} {lowest_to_highest([row['share'] for row in here])} (yes: {len(where(here, verdict='yes'))} of "
        f"{len(here)})"
        for stands, here in parts.items()
    ]
    stands, best = max(parts.items(), key=lambda part: mean(part[1], "share"))
    all_pairs, control, pool = pooled(best)
    text = (
        f"{shape}, {kind} ({DIFFERS[kind]}): the clean digit comes back when {component} is patched at one position: "
        f"{'; '.join(said)}; the number is {stands}, {pool}"
    )
    return Finding(text, all_pairs.share, *all_pairs.interval, all_pairs.n, CONTROLS[kind], control)
