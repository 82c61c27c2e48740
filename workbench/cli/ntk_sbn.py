"""`workbench ntk sbn`: a program on the kernel machine, beside an ordinary interpreter."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.output import note, print_json, print_table, say
from workbench.errors import BadInput

if TYPE_CHECKING:
    from workbench.ntk.assembler import Program
    from workbench.ntk.lockstep import Outcome

Name = Annotated[
    str,
    typer.Argument(
        help="A program: countdown, fibonacci, multiply, sort, or a file that ends in .sbn.", metavar="PROGRAM"
    ),
]
Cells = Annotated[
    list[str] | None, typer.Argument(help="First values of cells, such as x=5 y=6.", metavar="[CELL=NUMBER]...")
]
Trace = Annotated[bool, typer.Option("--trace", help="Show every instruction, not only the start and the end.")]
Limit = Annotated[int, typer.Option(help="Instructions after which a program that does not halt is stopped.")]
Padding = Annotated[
    int | None,
    typer.Option(help="Templates that never match; by default as many as the sign rule asks for, 0 for none."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
MOST_PADDING = 10**9


def sbn(
    program: Name,
    cells: Cells = None,
    trace: Trace = False,
    limit: Limit = 1000,
    padding: Padding = None,
    as_json: AsJson = False,
) -> None:
    """Run a program of `subtract and branch if negative` on the network's predictor, every bit the sign of its mean.

    All bits are compared with an ordinary interpreter's after every instruction; exit code 1 when any differs.
    """
    if not 1 <= limit <= 1_000_000:
        raise BadInput(f"--limit is {limit}, expected 1 to 1,000,000")
    if padding is not None and not 0 <= padding <= MOST_PADDING:
        raise BadInput(f"--padding is {padding}, expected 0 to {MOST_PADDING:,}")
    from workbench.ntk.assembler import assignments, load

    asked = load(program)
    asked = asked.starting(assignments(cells or []))
    outcome, rows, count = _run(asked, limit, padding)
    if as_json:
        print_json(_as_dict(asked, outcome, rows if trace else [], count))
    else:
        _report(asked, outcome, rows if trace else [rows[0], rows[-1]], count)
    if not bool(outcome.halted):
        note(f"{asked.name} had not halted after {limit:,} instructions; --limit sets how many it may take")
    if not bool(outcome.agrees):
        raise typer.Exit(1)


def _run(program: "Program", limit: int, padding: int | None) -> "tuple[Outcome, list[dict[str, Any]], int]":
    """How it ended, what stood in both after each instruction, and N."""
    import torch

    from workbench.ntk.lockstep import compare
    from workbench.ntk.machine import Machine
    from workbench.ntk.sbn import memory, pc, templates

    torch.set_num_threads(1)  # one run is no work for several threads
    size, rows = program.size, []

    def watch(instruction: int, states: torch.Tensor, expected: torch.Tensor) -> None:
        row: dict[str, Any] = {"after": instruction}
        for name, state in (("machine", states), ("interpreter", expected)):
            words = memory(size, state)[0].tolist()
            row[name] = {"pc": int(pc(size, state)), "memory": dict(zip(program.cells, words, strict=True))}
        rows.append(row | {"same": bool((states == expected).all())})

    found, start = templates(size, padding), torch.zeros(1, dtype=torch.long)
    outcome = compare(Machine(found), size, program.codes(1), program.memory(1, {}), start, limit, watch)
    changes = [i for i in range(1, len(rows)) if rows[i]["machine"] != rows[i - 1]["machine"]]
    last = max([int(outcome.executed), *changes])  # after it both stand still, as far as words and pc tell
    return outcome, rows[: last + 1], found.count


def _next(program: "Program", place: int) -> str:
    if place < 0:
        return "no one instruction"
    line = program.line(place)
    return line if place == len(program.code) else f"{place}: {line}"


def _difference(program: "Program", row: dict[str, Any]) -> str:
    """How the interpreter's state differs from the machine's, in a few words."""
    if row["same"]:
        return "agrees"
    ours, theirs = row["machine"], row["interpreter"]
    words = [f"{cell} = {word}" for cell, word in theirs["memory"].items() if ours["memory"][cell] != word]
    if ours["pc"] != theirs["pc"]:
        words.append(f"next {_next(program, theirs['pc'])}")
    return "has " + "; ".join(words) if words else "differs in other bits"


def _report(program: "Program", outcome: "Outcome", rows: list[dict[str, Any]], count: int) -> None:
    size, record = program.size, outcome.record
    say(
        f"{program.name}: {size.words} words of {size.width} bits, {_many(size.instructions, 'instruction')}; "
        f"{size.templates:,} templates and {count - size.templates:,} of padding"
    )
    lines = []
    for row in rows:
        here = row["machine"]
        lines.append([row["after"], *here["memory"].values(), _next(program, here["pc"]), _difference(program, row)])
    print_table("", ["after", *program.cells, "next", "interpreter"], lines)
    executed = int(outcome.executed)
    ended = "halted" if bool(outcome.halted) else "not halted"
    say(f"{ended} after {_many(executed, 'instruction')}, {executed * size.iterations:,} iterations of the machine")
    agrees = "agrees with the interpreter in every bit after every instruction"
    verdict = agrees if bool(outcome.agrees) else "DIFFERS from the interpreter"
    say(f"{_many(record.flips, 'sign flip')} ({record.predicted:,} predicted); the machine {verdict}")


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _as_dict(program: "Program", outcome: "Outcome", rows: list[dict[str, Any]], count: int) -> dict[str, Any]:
    executed, size = int(outcome.executed), program.size
    return {
        "program": program.name,
        "width": size.width,
        "templates": size.templates,
        "padding": count - size.templates,
        "start": dict(zip(program.cells, program.initial, strict=True)),
        "end": dict(zip(program.cells, outcome.memory[0].tolist(), strict=True)),
        "halted": bool(outcome.halted),
        "instructions": executed,
        "iterations": executed * size.iterations,
        "flips": outcome.record.flips,
        "predicted_flips": outcome.record.predicted,
        "agrees": bool(outcome.agrees),
        "trace": rows,
    }


def add_to(group: typer.Typer) -> None:
    """Register the command in the group `ntk`."""
    group.command("sbn")(sbn)
