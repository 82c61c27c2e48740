"""`workbench hill`: exact units, whose weights are written down or found by training."""

import math
from typing import Annotated, Literal

import typer

from workbench.cli import hill_fit
from workbench.cli.output import note, print_json, say
from workbench.errors import BadInput

Words = Annotated[
    list[str],
    typer.Argument(
        help="One operation: 1339.7364 - 2.7364, -5 - -3, - 5, 3 x 4, 1 / 3, 2 ^ -1, cos 0.5, or the name of an "
        "operation and its numbers.",
        metavar="OPERATION",
    ),
]
Format = Annotated[
    Literal["float64", "float32", "bfloat16", "float16"], typer.Option(help="Number format of the unit.")
]
Method = Annotated[
    Literal["sign-exact", "real", "complex"],
    typer.Option(help="How the exponential primitive computes its powers; sign-exact gives native x and / to the bit."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def calc(words: Words, dtype: Format = "float64", method: Method = "sign-exact", as_json: AsJson = False) -> None:
    """Ask an exact unit one operation: its answer, the machine's own, and how many ulps lie between them.

    The operations are + - x / between two numbers, + and - before one, cos, sin and mix (half of cos + sin) of an angle
    in radians, cos-difference, cos-sum, sin-difference and sin-sum of two. `a ^ w` is the unit with the weights [w, 0]:
    exact for w = 1 and -1; between them the weight is no saturation point, and beyond them there is none.
    """
    from workbench.hill.expression import parse

    if unknown := [word for word in words if word.startswith("--") and word[2:3].isalpha()]:
        raise BadInput(f"no such option: {unknown[0][:40]}; see `workbench hill calc --help`")
    asked = parse(" ".join(words))
    import torch

    from workbench.hill.calculator import answer, shortest

    kind: torch.dtype = getattr(torch, dtype)
    found = answer(asked, kind, method)
    if as_json:
        numbers = {"unit": _number(found.unit), "native": _number(found.native)}
        print_json({**vars(found), **numbers, "dtype": dtype, "method": method})
        return
    weights = [shortest(weight, kind).removesuffix(".0") for weight in found.weights]
    how = f", {method}" if found.primitive == "exponential" else ""
    said, native = shortest(found.unit, kind), shortest(found.native, kind)
    width, indent = max(len(said), len(native)), " " * len(found.expression)
    say(
        f"{found.expression} = {said:<{width}}    unit: {found.primitive}{how}, weights [{', '.join(weights)}], {dtype}"
    )
    say(f"{indent} = {native:<{width}}    native {dtype}")
    say(f"{indent}   {_distance(found.ulps)}")
    if asked.name == "power":
        wanted = torch.tensor(float(asked.exponent), dtype=kind).item()
        other = "" if found.weights[0] == wanted else f" ({asked.exponent} was asked)"
        if found.weights[0] not in (-1, 0, 1):
            other = f" is no saturation point: it can be written down, but training does not hold it{other}"
        if other:
            note(f"the weight {weights[0]}{other}")


def _number(value: float) -> float | str:
    """JSON has no word for an infinity or NaN; those become `inf`, `-inf` or `nan`, as text."""
    return value if math.isfinite(value) else str(value)


def _distance(ulps: int | None) -> str:
    if ulps is None:
        return "one of the two is not a number"
    return f"{ulps:,} ulp{'' if ulps == 1 else 's'} apart"


def add_to(app: typer.Typer) -> None:
    """Register the group."""
    group = typer.Typer(help="Exact units, which select an operation by weights of -1, 0 and 1.", no_args_is_help=True)
    group.callback()(lambda: None)
    group.command("calc", context_settings={"ignore_unknown_options": True})(calc)
    hill_fit.add_to(group)
    app.add_typer(group, name="hill")
