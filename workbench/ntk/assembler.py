"""SBN programs as text: cells with names and first values, instructions with labels.

    # a comment
    width 6                 # bits of a word; values are -2^5 .. 2^5 - 1
    x = 5                   # a cell
    loop: sbn one, y, HALT  # y = y - one; where that is negative go to HALT, else to the next line
          sbn t, acc        # without a target the next line follows either way
          sbn zero, J, loop

Cells and labels may be used before the line that names them. The first instruction is where a program starts; after the
last one comes HALT.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from workbench.errors import BadInput
from workbench.files import read_bytes
from workbench.ntk.sbn import MOST_WIDTH, Size

HALT = "HALT"
SUFFIX = ".sbn"
PROGRAMS = Path(__file__).parent / "programs"
MOST_BYTES = 100_000

_NAME = r"[A-Za-z_]\w*"
_LABEL = re.compile(rf"({_NAME})\s*:\s*(.*)")
_WIDTH = re.compile(r"width\s+(\S+)", re.IGNORECASE)
_CELL = re.compile(rf"({_NAME})\s*=\s*(\S+)")
_SBN = re.compile(rf"sbn\s+({_NAME})\s*,\s*({_NAME})(?:\s*,\s*({_NAME}))?", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}")
_EXPECTED = "expected `width BITS`, `cell = number`, `label:` or `sbn cell, cell, label`"


@dataclass(frozen=True)
class Program:
    """A program: names and first values of its cells, and instructions (a, b, c) as numbers of cells and lines."""

    name: str
    width: int
    cells: tuple[str, ...]
    initial: tuple[int, ...]
    code: tuple[tuple[int, int, int], ...]

    @property
    def size(self) -> Size:
        """Which template set runs it."""
        return Size(len(self.cells), self.width, len(self.code))

    def starting(self, values: Mapping[str, int]) -> "Program":
        """The same program with other first values; BadInput for a cell it lacks or a value that does not fit."""
        for cell, value in values.items():
            if cell not in self.cells:
                raise BadInput(f"{self.name} has no cell {cell[:40]!r}; its cells are {', '.join(self.cells)}")
            if wrong := _misfit(value, self.width):
                raise BadInput(f"{cell} = {value}: {wrong}")
        return replace(
            self, initial=tuple(values.get(cell, old) for cell, old in zip(self.cells, self.initial, strict=True))
        )

    def memory(self, runs: int, values: Mapping[str, Int[Tensor, " batch"]]) -> Int[Tensor, "batch word"]:
        """First words of `runs` runs; the cells named in `values` have one a run."""
        columns = [
            values.get(cell, torch.full((runs,), value)) for cell, value in zip(self.cells, self.initial, strict=True)
        ]
        return torch.stack(columns, dim=1)

    def codes(self, runs: int) -> Int[Tensor, "batch instruction 3"]:
        """The instructions, once a run."""
        return torch.tensor(self.code).expand(runs, -1, -1)

    def line(self, place: int) -> str:
        """One instruction as text, its target a number; HALT for the place after the last."""
        if place == len(self.code):
            return HALT
        a, b, target = self.code[place]
        return f"sbn {self.cells[a]}, {self.cells[b]}, {HALT if target == len(self.code) else target}"


def _misfit(value: int, width: int) -> str:
    """Why a value is no word of this width; empty when it is."""
    half = 1 << (width - 1)
    return "" if -half <= value < half else f"a word of {width} bits holds {-half} to {half - 1}"


@dataclass
class _Parts:
    """What the lines of a text say, each with its number."""

    widths: list[tuple[int, str]]
    cells: dict[str, tuple[int, str]]
    labels: dict[str, int]  # the place of the instruction that follows
    lines: list[tuple[int, str, str, str | None]]


def _read(text: str, name: str) -> _Parts:
    parts = _Parts([], {}, {}, [])
    for number, raw in enumerate(text.splitlines(), start=1):
        rest = raw.partition("#")[0].strip()
        while found := _LABEL.fullmatch(rest):
            label, rest = found.groups()
            if label.upper() == HALT or label in parts.labels:
                why = "is kept for the end" if label.upper() == HALT else "stands on another line too"
                raise BadInput(f"{name}, line {number}: the label {label} {why}; choose another name")
            parts.labels[label] = len(parts.lines)
        if not rest:
            continue
        if found := _SBN.fullmatch(rest):
            a, b, target = found.groups()
            parts.lines.append((number, a, b, target))
        elif found := _CELL.fullmatch(rest):
            cell, value = found.groups()
            if cell in parts.cells:
                raise BadInput(
                    f"{name}, line {number}: the cell {cell} stands on line {parts.cells[cell][0]} too; choose another "
                    "name"
                )
            parts.cells[cell] = (number, value)
        elif found := _WIDTH.fullmatch(rest):
            parts.widths.append((number, found[1]))
        else:
            raise BadInput(f"{name}, line {number}: cannot read {rest[:60]!r}; {_EXPECTED}")
    return parts


def _number(text: str, where: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadInput(
            f"{where}: {text[:40]!r} is not a whole number; expected digits, with a - before them if below 0"
        )
    return int(text)


def _width(parts: _Parts, name: str) -> int:
    if len(parts.widths) != 1:
        raise BadInput(f"{name} says {len(parts.widths)} times how wide a word is; expected one line `width BITS`")
    number, text = parts.widths[0]
    width = _number(text, f"{name}, line {number}")
    if not 1 <= width <= MOST_WIDTH:
        raise BadInput(f"{name}, line {number}: a word of {width} bits, expected 1 to {MOST_WIDTH}")
    return width


def assemble(text: str, name: str = "program") -> Program:
    """The program that a text describes; BadInput says which line of it is wrong, and what was expected there."""
    parts = _read(text, name)
    width = _width(parts, name)
    if not parts.cells or not parts.lines:
        raise BadInput(
            f"{name} has {len(parts.cells)} cells and {len(parts.lines)} instructions; expected at least one of each"
        )
    initial = []
    for cell, (number, text_of) in parts.cells.items():
        value = _number(text_of, f"{name}, line {number}")
        if wrong := _misfit(value, width):
            raise BadInput(f"{name}, line {number}: {cell} = {value}, but {wrong}")
        initial.append(value)
    places = {cell: place for place, cell in enumerate(parts.cells)}
    code = []
    for place, (number, a, b, target) in enumerate(parts.lines):
        for cell in (a, b):
            if cell not in places:
                raise BadInput(f"{name}, line {number}: no cell is named {cell}; the cells are {', '.join(places)}")
        code.append((places[a], places[b], _target(parts, place, target, f"{name}, line {number}")))
    program = Program(name, width, tuple(places), tuple(initial), tuple(code))
    _ = program.size  # refuses what takes too many templates
    return program


def _target(parts: _Parts, place: int, target: str | None, where: str) -> int:
    """The place that an instruction branches to."""
    if target is None:
        return place + 1
    if target in parts.labels:
        return parts.labels[target]
    if target.upper() == HALT:
        return len(parts.lines)
    raise BadInput(f"{where}: no line has the label {target}; expected one of {', '.join([*parts.labels, HALT])}")


def built_in() -> list[str]:
    """Names of the programs that come with the package."""
    return sorted(path.stem for path in PROGRAMS.glob(f"*{SUFFIX}"))


def load(name: str) -> Program:
    """A built-in program by its name, or one from a file whose name ends in `.sbn`; BadInput for anything else."""
    if name in built_in():
        return assemble((PROGRAMS / f"{name}{SUFFIX}").read_text(encoding="utf-8"), name)
    if not name.endswith(SUFFIX):
        raise BadInput(
            f"no program is named {name[:40]!r}; choose from {', '.join(built_in())}, or give a file that ends in "
            f"{SUFFIX}"
        )
    path = Path(name)
    try:
        text = read_bytes(path, MOST_BYTES).decode()
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not text in UTF-8; expected an SBN program") from None
    return assemble(text, path.name)


def assignments(words: Sequence[str]) -> dict[str, int]:
    """`name=value` words as numbers by cell; BadInput for a word of another form."""
    found: dict[str, int] = {}
    for word in words:
        cell, equals, value = word.partition("=")
        if not (equals and re.fullmatch(_NAME, cell.strip())):
            raise BadInput(f"{word[:40]!r} sets no cell; expected name=value, such as x=5")
        found[cell.strip()] = _number(value.strip(), word[:40])
    return found
