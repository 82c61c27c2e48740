"""Templates: an algorithm as data. Bits in named blocks; conditions on bits; the bits that are written when they hold.

Template i is the training pair (unit vector e_i, its written bits). A state encodes as the normalised sum of the unit
vectors of the templates whose conditions hold (arXiv 2502.16763). A bit survives only if a template writes it again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import torch
from jaxtyping import Float32, Int, Shaped
from torch import Tensor

from workbench.errors import BadInput

Bit = tuple[str | int, ...]  # a block's name, then the place in it: ("p", 3), ("mem", 0, 2)


class Layout:
    """Where each block's bits stand in the flat state; blocks in the order given, each row-major."""

    def __init__(self, blocks: Mapping[str, int | tuple[int, ...]]) -> None:
        self.shapes = {name: (shape,) if isinstance(shape, int) else shape for name, shape in blocks.items()}
        self.starts: dict[str, int] = {}
        self.bits = 0
        for name, shape in self.shapes.items():
            self.starts[name] = self.bits
            self.bits += prod(shape)

    def __getitem__(self, bit: Bit) -> int:
        """The flat place of one bit; raises BadInput for a bit that is not there."""
        name, *place = bit
        shape = self.shapes.get(str(name))
        numbers = [p for p in place if isinstance(p, int)]
        if (
            shape is None
            or len(numbers) != len(shape)
            or not all(0 <= p < n for p, n in zip(numbers, shape, strict=True))
        ):
            raise BadInput(f"no bit {bit}; the blocks are {self.shapes}")
        flat = 0
        for p, n in zip(numbers, shape, strict=True):
            flat = flat * n + p
        return self.starts[str(name)] + flat

    def block(self, name: str) -> slice:
        """The flat places of a block."""
        return slice(self.starts[name], self.starts[name] + prod(self.shapes[name]))

    def all(self, name: str, *first: int) -> list[Bit]:
        """Every bit of a block, or those whose first indices are these."""
        rest = self.shapes[name][len(first) :]
        return [(name, *first, *place) for place in product(*map(range, rest))]

    def names(self) -> list[str]:
        """One printable name a bit, `mem[0,2]`."""
        return [
            f"{name}[{','.join(map(str, place))}]"
            for name, shape in self.shapes.items()
            for place in product(*map(range, shape))
        ]


@dataclass(frozen=True)
class Template:
    """`on` must be 1 and `off` 0 for it to match; then it writes `writes`. Flat places, sorted."""

    group: str
    on: tuple[int, ...]
    off: tuple[int, ...]
    writes: tuple[int, ...]


def template(layout: Layout, group: str, on: Iterable[Bit], off: Iterable[Bit], writes: Iterable[Bit]) -> Template:
    """A template from named bits. Raises BadInput without a positive literal or with one bit asked to be both."""
    places = [tuple(sorted({layout[bit] for bit in bits})) for bits in (on, off, writes)]
    if not places[0]:
        raise BadInput(f"a template of {group} has no bit that must be 1, so the empty state would match it")
    if set(places[0]) & set(places[1]):
        raise BadInput(f"a template of {group} wants one bit to be 1 and 0")
    return Template(group, *places)


@dataclass(frozen=True)
class TemplateSet:
    """A whole training set: its templates, and `padding` more that never match and write nothing."""

    layout: Layout
    templates: Sequence[Template]
    padding: int = 0

    @property
    def count(self) -> int:
        """N: templates, padding included; the input width of the network."""
        return len(self.templates) + self.padding

    @cached_property
    def literals(self) -> Float32[Tensor, "bit template"]:
        """1 where a bit must be 1, -1 where it must be 0."""
        return self._matrix(
            [(place, 1.0) for place in t.on] + [(place, -1.0) for place in t.off] for t in self.templates
        ).T

    @cached_property
    def needed(self) -> Float32[Tensor, " template"]:
        """Bits that must be 1."""
        return torch.tensor([float(len(t.on)) for t in self.templates])

    @cached_property
    def labels(self) -> Float32[Tensor, "template bit"]:
        """Y without its padding rows."""
        return self._matrix([(place, 1.0) for place in t.writes] for t in self.templates)

    @cached_property
    def written(self) -> Int[Tensor, " bit"]:
        """T: templates that write each bit."""
        return self.labels.sum(dim=0).long()

    def _matrix(self, rows: Iterable[list[tuple[int, float]]]) -> Float32[Tensor, "template bit"]:
        found = torch.zeros(len(self.templates), self.layout.bits)
        for row, entries in enumerate(rows):
            for place, value in entries:
                found[row, place] = value
        return found

    def state(self, **blocks: Shaped[Tensor, "batch ..."]) -> Shaped[Tensor, "batch bit"]:
        """uint8 states with these blocks' bits, all others 0; each block's tensor is [batch, *shape]."""
        batch = len(next(iter(blocks.values())))
        found = torch.zeros(batch, self.layout.bits, dtype=torch.uint8)
        for name, bits in blocks.items():
            found[:, self.layout.block(name)] = bits.reshape(batch, -1).to(torch.uint8)
        return found


def to_bits(numbers: Int[Tensor, " batch"], width: int) -> Shaped[Tensor, "batch width"]:
    """The low `width` bits, lowest first, as uint8; two's complement for negative numbers."""
    return (numbers[:, None] >> torch.arange(width) & 1).to(torch.uint8)


def from_bits(bits: Shaped[Tensor, "batch width"]) -> Int[Tensor, " batch"]:
    """The unsigned number of each row of bits, lowest first."""
    return (bits.long() << torch.arange(bits.shape[1])).sum(dim=1)
