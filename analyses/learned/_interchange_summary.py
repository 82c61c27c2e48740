"""What `interchange` found in a few rows: each site with all digits together, and the findings."""

from collections.abc import Mapping, Sequence

from analyses._rows import Row, Share, grouped, mean, where
from analyses.learned._causal_rules import verdict
from analyses.learned._interchange_variables import meaning
from workbench.result import Finding
from workbench.statistics import wilson

CONTROLS = {"readout": ("random",), "pattern": ("random", "pushed")}  # beside each way to swap; the higher one counts
WORDS = {"random": "as many random directions swapped, same site", "pushed": "a random move of equal length, same site"}


def site_name(hook: str) -> str:
    """`L0 mid`, `L0 post`, ... of a hook in the residual stream."""
    _, layer, part = hook.split(".")
    return f"L{layer} {part.removeprefix('hook_resid_')}"


def sites_of_swaps(swaps: Sequence[Row]) -> list[Row]:
    """One row a checkpoint, variable, site and way to swap: all digits together, beside its control, with a verdict.

    `share` of swaps after which the digit is what exact units predict; `kept` of those after which it stays; `r2` the
    mean over digits of what the readouts explain.
    """
    found = []
    for (checkpoint, variable, hook), rows in grouped(swaps, "checkpoint", "variable", "hook").items():
        for subspace, controls in CONTROLS.items():
            here = where(rows, subspace=subspace)
            hits, kept, n = _counts(here)
            beside = {control: _counts(where(rows, subspace=control)) for control in controls}
            control, (other, _, other_n) = max(beside.items(), key=lambda item: item[1][0])
            low, high = wilson(hits, n)
            row = {"checkpoint": checkpoint, "variable": variable, "site": site_name(hook), "subspace": subspace}
            row |= {"directions": here[0]["directions"], "r2": mean(here, "r2"), "predicted": hits, "n": n}
            row |= {"share": hits / n, "low": low, "high": high, "kept": kept / n}
            row |= {"control": control, "control_share": other / other_n, "control_n": other_n}
            found.append(row | {"verdict": verdict(hits, n, other, other_n)})
    return found


def _counts(rows: Sequence[Row]) -> tuple[int, int, int]:
    predicted, kept, n = (sum(row[name] for row in rows) for name in ("predicted", "kept", "n"))
    return predicted, kept, n


def by_shape(sites: Sequence[Row], shapes: Mapping[str, str]) -> list[Row]:
    """Mean over the seeds of a shape of `pattern`'s share at each site; the readouts' and controls' highest."""
    rows = [row | {"shape": shapes[row["checkpoint"]]} for row in sites]
    columns = sorted({row["site"] for row in sites})
    found = []
    for (shape, variable), here in grouped(rows, "shape", "variable").items():
        pattern, readout = (where(here, subspace=kind) for kind in ("pattern", "readout"))
        means = {site: mean(part, "share") for (site,), part in grouped(pattern, "site").items()}
        row = {"shape": shape, "variable": variable, **{site: means.get(site, float("nan")) for site in columns}}
        row["best readout"] = max(mean(part, "share") for part in grouped(readout, "site").values())
        row["highest control"] = max(mean(part, "control_share") for part in grouped(here, "site", "subspace").values())
        found.append(row | {"models": len(grouped(here, "checkpoint"))})
    return found


def findings(sites: Sequence[Row], shapes: Mapping[str, str], short: str) -> list[Finding]:
    """What holds for the models of a shape, then each checkpoint, variable by variable."""
    rows = [row | {"shape": shapes[row["checkpoint"]]} for row in sites]
    found = [_of_shape(part, short) for part in grouped(rows, "shape", "variable").values()]
    return found + [_of_checkpoint(part) for part in grouped(rows, "checkpoint", "variable").values()]


def _of_shape(rows: Sequence[Row], short: str) -> Finding:
    shape, variable = (rows[0][name] for name in ("shape", "variable"))
    parts = grouped(rows, "site", "subspace")
    (site, subspace), best = max(parts.items(), key=lambda part: mean(part[1], "share"))
    shares = [row["share"] for row in best]
    said = [f"{key[0]} {mean(part, 'share'):.2f}" for key, part in parts.items() if key[1] == "pattern"]
    readout = max(mean(part, "share") for key, part in parts.items() if key[1] == "readout")
    pool = f"all swaps pooled, lowest to highest of {len(best)} seeds {min(shares):.2f} to {max(shares):.2f}"
    pool = pool if len(best) > 1 else "of one seed"
    text = (
        f"{shape}, {variable} ({meaning(variable)}): swapped, the digit is what exact units predict; highest by "
        f"{subspace} at {site}, {pool} (yes: {len(where(best, verdict='yes'))} of {len(best)} models); means "
        f"by pattern {', '.join(said)}, by readout at most {readout:.2f}{short}"
    )
    swapped = Share(*(sum(row[name] for row in best) for name in ("predicted", "n")))
    control = sum(row["control_share"] * row["control_n"] for row in best) / sum(row["control_n"] for row in best)
    return Finding(text, swapped.share, *swapped.interval, swapped.n, _control(best), control)


def _control(rows: Sequence[Row]) -> str:
    """The controls that stand beside the rows, in words."""
    return " or ".join(WORDS[control] for (control,) in grouped(rows, "control"))


def _of_checkpoint(rows: Sequence[Row]) -> Finding:
    row, readable = max(rows, key=lambda row: row["share"]), max(rows, key=lambda row: row["r2"])
    text = (
        f"{row['checkpoint']}, {row['variable']}: swapped by {row['subspace']} at {row['site']}, its highest, the "
        f"digit is what exact units predict ({row['verdict']}); it stays in {row['kept']:.2f}; most readable at "
        f"{readable['site']}, variance explained {readable['r2']:.2f}"
    )
    return Finding(text, row["share"], row["low"], row["high"], row["n"], _control([row]), row["control_share"])
