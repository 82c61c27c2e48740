"""`workbench ntk`: exact algorithms run by the predictor of an infinitely wide network."""

import math
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from workbench.cli import ntk_sbn, ntk_solve
from workbench.cli.output import print_json, say
from workbench.errors import BadInput

if TYPE_CHECKING:
    from rich.text import Text

    from workbench.ntk.arithmetic import Algorithm
    from workbench.ntk.trace import Line

SYMBOLS = {"add": "+", "multiply": "x"}
STYLES = {"+": "bold green", "-": "bold red"}

Operation = Annotated[Literal["add", "multiply", "permute"], typer.Argument(help="What to run.")]
Numbers = Annotated[
    list[str],
    typer.Argument(help="Two numbers, or the one whose bits are permuted; 12, 0b1100 or 0xc.", metavar="NUMBER..."),
]
Bits = Annotated[int | None, typer.Option(help="Bits of an operand; as many as the numbers need if not given.")]
Order = Annotated[
    str | None, typer.Option(help="Where bit 0, 1, 2, ... of a permuted number goes: 2,0,1. Reversal if not given.")
]
Trace = Annotated[bool, typer.Option("--trace", help="Draw the state, block by block, after every step.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def run(
    operation: Operation,
    numbers: Numbers,
    bits: Bits = None,
    order: Order = None,
    trace: Trace = False,
    as_json: AsJson = False,
) -> None:
    """Run one algorithm on one input; every bit of every state is the sign of the network's mean output.

    Ends with exit code 1 when the answer is not that of integer arithmetic.
    """
    operands = [_number(word) for word in numbers]
    if len(operands) != (wanted := 1 if operation == "permute" else 2):
        raise BadInput(f"{operation} takes {wanted} number{'s' * (wanted > 1)}, {len(operands)} were given")
    if order is not None and operation != "permute":
        raise BadInput(f"--order is for permute; leave it out for {operation}")
    algorithm = _algorithm(operation, bits, order, max(1, *(n.bit_length() for n in operands)))
    import torch

    from workbench.ntk.machine import Machine
    from workbench.ntk.trace import traced

    columns = [torch.tensor([number]) for number in operands]
    start = algorithm.start(*columns)
    machine = Machine(algorithm.templates)
    done = machine.run(start, algorithm.steps)
    answer, exact = int(algorithm.answer(done.states)), int(algorithm.exact(*columns))
    lines = traced(machine, start[0], algorithm.steps) if trace else []
    margin = done.margin if math.isfinite(done.margin) else None
    if as_json:
        found = {"operation": operation, "bits": algorithm.bits, "operands": operands, "answer": answer}
        found |= {"exact": exact, "templates": algorithm.templates.count, "steps": done.steps, "fixed": done.fixed}
        found |= {"flips": done.flips, "smallest_mean": margin}
        print_json(found | ({"trace": [_plain(line) for line in lines]} if trace else {}))
    else:
        if trace:
            _draw(lines)
        symbol = SYMBOLS.get(operation)
        asked = (
            f" {symbol} ".join(map(str, operands)) if symbol else f"bits of {operands[0]:0{algorithm.bits}b} permuted"
        )
        said = f"{answer}" if symbol else f"{answer:0{algorithm.bits}b}"
        say(f"{asked} = {said}" + ("" if answer == exact else f", which is WRONG: {exact}"))
        size = f"{algorithm.templates.count} templates, {algorithm.templates.layout.bits} bits of state"
        say(f"{size}, {_ended(done.steps, done.fixed)}")
        nearest = f"the smallest |mean| {margin:.4g}" if margin is not None else "every mean 0"
        say(f"each bit the sign of g_m S - h_m T: {nearest}, {done.flips} bits unlike an OR")
    if answer != exact:
        raise typer.Exit(1)


def _number(word: str) -> int:
    try:
        number = int(word, 0) if word.lower().startswith(("0b", "0x")) else int(word)
    except ValueError:
        raise BadInput(f"{word[:40]!r} is not a number; write it as 12, 0b1100 or 0xc") from None
    if not 0 <= number < 2**31:
        raise BadInput(f"{word[:40]} is out of range; numbers are 0 to 2**31 - 1")
    return number


def _algorithm(operation: str, asked: int | None, order: str | None, needed: int) -> "Algorithm":
    """The algorithm of as many bits as were asked for, or as are needed."""
    from workbench.ntk.arithmetic import addition, multiplication, permutation

    bits = needed if asked is None else asked
    if operation == "add":
        return addition(bits)
    if operation == "multiply":
        return multiplication(bits)
    if order is None:
        return permutation(range(bits)[::-1])
    try:
        places = [int(place) for place in order.split(",")]
    except ValueError:
        raise BadInput(f"--order is {order[:40]!r}, expected places such as 2,0,1") from None
    if asked is not None and asked != len(places):
        raise BadInput(f"--order has {len(places)} places and --bits is {asked}; leave --bits out")
    return permutation(places)


def _ended(steps: int, fixed: bool) -> str:
    return f"{steps} step{'s' * (steps != 1)}" + (", the last changed nothing" if fixed else "")


def _plain(line: "Line") -> dict[str, object]:
    """A line as JSON has it: bits as 1 and 0."""
    blocks = {name: text.translate(str.maketrans(".-+", "001")) for name, text in line.blocks.items()}
    smallest = line.margin if math.isfinite(line.margin) else None
    return {"step": line.step, "matched": line.matched, "smallest_mean": smallest, "blocks": blocks}


def _draw(lines: "list[Line]") -> None:
    """One row a state, one column a block; in a terminal changed bits are coloured."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from workbench.ntk.trace import LEGEND

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("step", justify="right")
    for name in lines[0].blocks:
        table.add_column(name, no_wrap=True)
    table.add_column("m", justify="right")
    table.add_column("smallest |mean|", justify="right", no_wrap=True)
    for line in lines:
        matched = "" if line.matched is None else str(line.matched)
        smallest = f"{line.margin:.4f}" if math.isfinite(line.margin) else ""
        table.add_row(str(line.step), *(_marked(text) for text in line.blocks.values()), matched, smallest)
    say(LEGEND)
    console = Console(file=sys.stdout, highlight=False, markup=False)
    console.width = max(console.width, console.measure(table, options=console.options.update(width=4000)).maximum)
    console.print(table)


def _marked(text: str) -> "Text":
    from rich.text import Text

    found = Text()
    for mark in text:
        found.append(mark, STYLES.get(mark))
    return found


def add_to(app: typer.Typer) -> None:
    """Register the group."""
    group = typer.Typer(help="Exact algorithms by the predictor of an infinitely wide network.", no_args_is_help=True)
    group.callback()(lambda: None)
    group.command("run")(run)
    ntk_sbn.add_to(group)
    ntk_solve.add_to(group)
    app.add_typer(group, name="ntk")
