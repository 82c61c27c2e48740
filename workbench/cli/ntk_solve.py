"""`workbench ntk solve`: one problem of the task on the decimal kernel machine."""

import collections
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.output import note, print_json, print_table, say

if TYPE_CHECKING:
    from workbench.ntk.decimal import Decimal
    from workbench.ntk.decimal_trace import Trace

TITLES = {"ab": "a-b borrows", "ba": "b-a borrows", "out": "answer"}
Text = Annotated[str, typer.Argument(help="A problem such as 1234-5678.", metavar="PROBLEM")]
ShowTrace = Annotated[bool, typer.Option("--trace", help="Show the state after every iteration.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def solve(problem: Text, trace: ShowTrace = False, as_json: AsJson = False) -> None:
    """Solve a problem by digit templates, every bit the sign of the infinitely wide network's mean.

    The answer is compared with integer arithmetic; exit code 1 when it is another.
    """
    from workbench.task import CHARACTERS, format_answers, format_problems, parse

    asked = parse(problem)
    from workbench.ntk.decimal import BLANK, Decimal
    from workbench.ntk.decimal_trace import trace as run

    machine = Decimal()
    found = run(machine, int(asked.a[0]), int(asked.b[0]), bool(asked.subtract[0]))
    answer = "".join("." if token == BLANK else CHARACTERS[token] for token in found.written.tolist())
    (exact,), (text,) = format_answers(asked.answers), format_problems(asked)
    if as_json:
        print_json({"problem": text, "answer": answer, "exact": exact, **_as_dict(machine, found, trace)})
    else:
        _report(f"{text}={answer}", machine, found, trace)
    if answer != exact:
        note(f"integer arithmetic says {exact}")
        raise typer.Exit(1)


def _groups(machine: "Decimal") -> dict[str, int]:
    return dict(collections.Counter(one.group for one in machine.templates.templates))


def _as_dict(machine: "Decimal", found: "Trace", trace: bool) -> dict[str, Any]:
    values: dict[str, Any] = {
        "templates": machine.templates.count, "groups": _groups(machine), "bits": machine.templates.layout.bits,
        "iterations": found.steps, "flips": found.flips,
    }  # fmt: skip
    if trace:
        values["trace"] = [{"iteration": one.step, "matched": one.matched, **one.blocks} for one in found.snapshots]
    return values


def _report(answer: str, machine: "Decimal", found: "Trace", trace: bool) -> None:
    say(answer)
    groups = ", ".join(f"{count} {group}" for group, count in _groups(machine).items())
    say(f"{machine.templates.count:,} templates over {machine.templates.layout.bits} bits: {groups}")
    low = min(one.lowest_one for one in found.snapshots)
    high = max(one.highest_zero for one in found.snapshots)
    say(
        f"{found.steps} iterations; bits to be 1 have a mean of at least {low:.4f}, the others of at most {high:.4f}; "
        f"{found.flips} flips"
    )
    if not trace:
        return
    blocks = list(found.snapshots[0].blocks)
    widths = {block: max(len(text) for one in found.snapshots for text in one.blocks[block]) for block in blocks}
    rows = []
    for one in found.snapshots:
        cells = [" ".join(f"{text or '.':>{widths[block]}}" for text in one.blocks[block]) for block in blocks]
        rows.append([one.step, one.matched or "", *cells])
    print_table(
        "state after each iteration; a dot is not known yet",
        ["iteration", "m", *(TITLES.get(block, block) for block in blocks)],
        rows,
    )


def add_to(group: typer.Typer) -> None:
    """Register the command in the group `ntk`."""
    group.command("solve")(solve)
