"""What `patching` found in a few rows: sites at the predicting position with all digits together, and the findings."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from analyses._rows import Row, Share, grouped, mean, where
from analyses.learned._causal_rules import FEWEST, lowest_to_highest, verdict
from analyses.learned._patching_pairs import KINDS
from workbench.result import Finding
from workbench.statistics import wilson

SHOWN = ("L0 attention", "L0 MLP", "L0 post", "L1 attention", "L1 MLP")
COUNTS = ("drawn", "corrupted_right", "corrupted_says_clean", "clean_right")
CARRIED = ("carry", "borrow", "sign")  # the kinds that have a finding for every checkpoint
DIFFERS = {kind.name: kind.differs for kind in KINDS}
CONTROLS = {
    kind.name: "same site, from the same digit changed and nothing else arriving"
    if kind.below
    else "same site, from another pair's corrupted prompt"
    for kind in KINDS
}


def answer_position(sites: Sequence[Row]) -> list[Row]:
    """One row a checkpoint, kind and component: all digits together, at the predicting position, with the verdict."""
    found = []
    names = ("checkpoint", "kind", "component", "by_construction")
    for key, rows in grouped(where(sites, at_answer=True), *names).items():
        restored, n, control, control_n = (
            sum(row[name] for row in rows) for name in ("restored", "n", "control_restored", "control_n")
        )
        low, high = wilson(restored, n)
        row = dict(zip(names, key, strict=True)) | {"restored": restored, "n": n}
        row |= {"share": restored / n, "low": low, "high": high, "control_share": control / control_n}
        told = "by construction" if row["by_construction"] else verdict(restored, n, control, control_n)
        found.append(row | {"verdict": told})
    return found


def by_shape(answer: Sequence[Row], shapes: Mapping[str, str]) -> list[Row]:
    """Mean over the seeds of a shape of the shares restored, one column a component; NaN where there is none."""
    rows = [row | {"shape": shapes[row["checkpoint"]]} for row in _told(answer)]
    found = []
    for (shape, kind), here in grouped(rows, "shape", "kind").items():
        shares = {name: where(here, component=name) for name in SHOWN}
        found.append(
            {
                "shape": shape,
                "kind": kind,
                **{name: mean(part, "share") if part else float("nan") for name, part in shares.items()},
                "models": len(grouped(here, "checkpoint")),
                "pairs": sum(row["n"] for row in shares[_main(here)]),
            }
        )
    return found


def _told(answer: Sequence[Row]) -> list[Row]:
    """The rows that say something: not restored by construction, nor resting on too few pairs."""
    return [row for row in answer if row["verdict"] not in ("by construction", "too few")]


def findings(answer: Sequence[Row], pairs: Sequence[Row], shapes: Mapping[str, str], short: str) -> list[Finding]:
    """What holds for the models of a shape; then each checkpoint's carry, borrow and direction."""
    found: list[Finding] = []
    for shape in dict.fromkeys(shapes.values()):
        rows, counts = (
            [row for row in table if shapes[row["checkpoint"]] == shape] for table in (_told(answer), pairs)
        )
        for (kind,) in grouped(counts, "kind"):
            if here := where(rows, kind=kind):
                found.append(_of_shape(shape, kind, here, short))
        found += [*_not_patched(shape, counts, rows), *_wrong_sign(shape, where(counts, kind="sign"))]
    for (name, kind), part in grouped(_told(answer), "checkpoint", "kind").items():
        if kind in CARRIED:
            found.append(_of_checkpoint(name, kind, part))
    return found


def _not_patched(shape: str, pairs: Sequence[Row], told: Sequence[Row]) -> Iterator[Finding]:
    """How many kinds can be patched, a count without an interval, when of some every model answers too few pairs."""
    kinds = grouped(pairs, "kind")
    patched = grouped(told, "kind")
    left = {kind: rows for (kind,), rows in kinds.items() if (kind,) not in patched}
    if not left:
        return
    said = []
    for kind, rows in left.items():
        counts = [
            [sum(row[of] for row in part) for of in ("usable", "drawn")]
            for part in grouped(rows, "checkpoint").values()
        ]
        usable, drawn = max(counts)
        said.append(f"{kind} (at most {usable} of {drawn} pairs)")
    text = (
        f"{shape}: kinds of pairs that can be patched, counted; of the others every model answers too few pairs (below "
        f"{FEWEST}): {', '.join(said)}"
    )
    untrained = {
        kind
        for (kind, _), rows in grouped(pairs, "kind", "checkpoint").items()
        if sum(row["untrained_usable"] for row in rows) >= FEWEST
    }
    yield Finding(text, len(patched), n=len(kinds), control="the same, untrained", control_value=len(untrained))


def pooled(rows: Sequence[Row]) -> tuple[Share, float, str]:
    """Restored pairs of several models together, what their controls restore, and in words what was pooled."""
    found = Share(*(sum(row[name] for row in rows) for name in ("restored", "n")))
    control = sum(row["control_share"] * row["n"] for row in rows) / found.n  # a control a pair
    shares = [row["share"] for row in rows]
    said = f"all pairs pooled, lowest to highest of {len(rows)} seeds {min(shares):.2f} to {max(shares):.2f}"
    return found, control, said if len(rows) > 1 else "of one seed"


def _main(rows: Sequence[Row]) -> str:
    """The component a finding's number is about: has what differs arrived before layer 1; in one layer, the MLP."""
    return "L0 post" if where(rows, component="L1 MLP") else "L0 MLP"


def _of_shape(shape: str, kind: str, rows: Sequence[Row], short: str) -> Finding:
    parts = []
    for component in SHOWN:
        if here := where(rows, component=component):
            shares, yes = [row["share"] for row in here], len(where(here, verdict="yes"))
            parts.append(f"{component} {lowest_to_highest(shares)} (yes: {yes} of {len(here)})")
    main = where(rows, component=_main(rows))
    all_pairs, control, said = pooled(main)
    text = (
        f"{shape}, {kind} ({DIFFERS[kind]}): one site patched at the predicting position brings the clean digit back: "
        f"{'; '.join(parts)}; the number is {_main(rows)}, {said}{short}"
    )
    return Finding(text, all_pairs.share, *all_pairs.interval, all_pairs.n, CONTROLS[kind], control)


def _wrong_sign(shape: str, pairs: Sequence[Row]) -> Iterator[Finding]:
    """How models answer the impossible prompt with the wrong sign, by digit."""
    if not pairs:
        return
    parts, total = [], Counter[str]()
    for (digit,), rows in grouped(pairs, "digit").items():
        counts = {name: sum(row[name] for row in rows) for name in COUNTS}
        total.update(counts)
        turned, stays = (counts[name] / counts["drawn"] for name in ("corrupted_right", "corrupted_says_clean"))
        parts.append(f"{digit} {turned:.2f} and {stays:.2f}")
    text = (
        f"{shape}: the sign token turned, operands kept (an impossible prompt): share of digits that become those of "
        f"the other direction, and that stay right: {'; '.join(parts)}; the number is the first, all digits together"
    )
    n, turned = total["drawn"], total["corrupted_right"]
    control = total["clean_right"] / n
    yield Finding(text, turned / n, *wilson(turned, n), n, "right digits with the right sign", control)


def _of_checkpoint(name: str, kind: str, rows: Sequence[Row]) -> Finding:
    told = [row for row in rows if not row["component"].endswith("mid")]
    yes, part = (", ".join(row["component"] for row in where(told, verdict=v)) or "none" for v in ("yes", "in part"))
    (row,) = where(rows, component=_main(rows))
    text = (
        f"{name}, {kind}: sites at the predicting position that alone bring the clean digit back: {yes}; in part: "
        f"{part}; the number is {row['component']}, {row['verdict']}"
    )
    return Finding(text, row["share"], row["low"], row["high"], row["n"], CONTROLS[kind], row["control_share"])
