"""An export on disk: `index.json` beside `shard-00000.safetensors`, ...; read back as hostile input. No torch here.

A shard holds consecutive problems: one tensor a hook, `[problem, ...]`, with `token_ids` (uint8, `[problem, 16]`) and
`problems` (uint32, `[problem]`, the place of each in the domain). The index is written last: without it there is no
export. `docs/activations.md` describes every field and reads one with numpy alone.
"""

import dataclasses
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from workbench.activations.hooks import ALL_POSITIONS, DTYPES, hook_axes, row_shape
from workbench.errors import BadInput
from workbench.files import read_json
from workbench.recipe import Architecture, Variant, build
from workbench.task import CHARACTERS, N_CTX

SCHEMA, KIND = 1, "activations"
INDEX = "index.json"
TOKEN_IDS, PROBLEMS = "token_ids", "problems"
SHARD_FILE = re.compile(r"shard-[0-9]{5,9}\.safetensors", re.ASCII)
MAX_SHARD_MB = 1024
HEADER_LIMIT = 1_000_000  # bytes of safetensors header beyond the tensors of a shard
MOST_PROBLEMS = 2**32


@dataclass(frozen=True)
class Source:
    """The checkpoint that activations come from."""

    weights_sha256: str
    architecture: Architecture
    variant: Variant


@dataclass(frozen=True)
class Stored:
    """One tensor of every shard: the activations at a hook of a checkpoint, at the given positions.

    `name` is the hook's, or `checkpoint/hook` where an export joins several checkpoints.
    """

    name: str
    checkpoint: str
    hook: str
    positions: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Shard:
    """A file with problems `start` to `stop` (without it)."""

    file: str
    start: int
    stop: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Index:
    """index.json. The id of a character is its place in `vocabulary`; `chosen` says in words how problems were."""

    checkpoints: dict[str, Source]
    tensors: tuple[Stored, ...]
    n_problems: int
    chosen: str
    vocabulary: str = CHARACTERS
    shards: tuple[Shard, ...] = ()

    @property
    def hides_sign(self) -> bool:
        """Whether position 10 holds `=` instead of the sign, as in the variant sign-hidden."""
        return any(source.variant == "sign-hidden" for source in self.checkpoints.values())

    def row_shape(self, stored: Stored) -> tuple[int, ...]:
        """Shape of one problem's part of a tensor."""
        return row_shape(self.checkpoints[stored.checkpoint].architecture, stored.hook, stored.positions)

    @property
    def row_bytes(self) -> int:
        """Bytes of a shard for one problem: all tensors, token ids and the problem."""
        sizes = (math.prod(self.row_shape(stored)) * DTYPES[stored.dtype] for stored in self.tensors)
        return sum(sizes) + N_CTX + 4

    def rows_a_shard(self, shard_mb: int) -> int:
        """Problems that fit `shard_mb` MiB, at least one; BadInput for a size outside 1..1024."""
        if not 1 <= shard_mb <= MAX_SHARD_MB:
            raise BadInput(f"a shard of {shard_mb} MiB; choose 1 to {MAX_SHARD_MB}")
        return max(1, shard_mb * 2**20 // self.row_bytes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as stored; shapes, axes and position labels' numbers are written out for other readers."""
        tensors = []
        for stored in self.tensors:
            axes = hook_axes(self.checkpoints[stored.checkpoint].architecture)[stored.hook]
            shape = {"axes": ["problem", *axes], "shape": [self.n_problems, *self.row_shape(stored)]}
            tensors.append({**dataclasses.asdict(stored), "positions": list(stored.positions), **shape})
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "checkpoints": {name: dataclasses.asdict(source) for name, source in self.checkpoints.items()},
            "vocabulary": self.vocabulary,
            "n_problems": self.n_problems,
            "chosen": self.chosen,
            "tensors": tensors,
            "shards": [dataclasses.asdict(shard) for shard in self.shards],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Index":
        """The index stored as `values`; BadInput names the field that does not fit."""
        if values.get("kind") != KIND or values.get("schema") != SCHEMA:
            raise BadInput(f"not the index of an export (kind {KIND!r}, schema {SCHEMA} expected)")
        n_problems = _field(values, "n_problems", int)
        _require(1 <= n_problems <= MOST_PROBLEMS, f"n_problems is {n_problems}")
        checkpoints = {str(k): _source(v) for k, v in _field(values, "checkpoints", dict).items()}
        tensors = tuple(_stored(item, checkpoints, n_problems) for item in _field(values, "tensors", list))
        names = {stored.name for stored in tensors}
        _require(0 < len(names) == len(tensors), "tensors is empty or names one twice")
        vocabulary = _field(values, "vocabulary", str)
        whole = len(set(vocabulary)) == len(vocabulary) <= 256 and set(CHARACTERS) <= set(vocabulary)
        _require(whole, f"vocabulary {vocabulary[:40]!r} repeats a character or lacks one of {CHARACTERS}")
        index = cls(checkpoints, tensors, n_problems, _field(values, "chosen", str), vocabulary)
        return dataclasses.replace(index, shards=_shards(_field(values, "shards", list), index))


def read_index(folder: Path) -> Index:
    """The checked index of the export in `folder`; BadInput when there is none or it does not fit."""
    path = folder / INDEX
    if not path.is_file():
        parts = folder.is_dir() and any(SHARD_FILE.fullmatch(child.name) for child in folder.iterdir())
        state = "shards without an index, so their export was stopped; export again" if parts else "no export in it"
        raise BadInput(f"{folder}: {state if folder.is_dir() else 'no such folder'}")
    try:
        return Index.from_dict(read_json(path))
    except BadInput as error:
        message = str(error)
        raise BadInput(message if message.startswith(str(path)) else f"{path}: {message}; export again") from None


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise BadInput(message)


def _field(values: Any, name: str, kind: type) -> Any:
    """`values[name]`, which must be exactly of the kind (a bool is no int)."""
    _require(isinstance(values, dict), f"{name} is looked for in something that is not an object")
    found = values.get(name)
    _require(type(found) is kind, f"{name} is {type(found).__name__}, expected {kind.__name__}")
    return found


def _sha256(values: Any, name: str) -> str:
    found = _field(values, name, str)
    _require(re.fullmatch(r"[0-9a-f]{64}", found) is not None, f"{name} is not 64 hexadecimal digits")
    return found


def _source(values: Any) -> Source:
    variant = _field(values, "variant", str)
    _require(variant in get_args(Variant), f"variant is {variant[:40]!r}")
    architecture = build(Architecture, _field(values, "architecture", dict), "architecture")
    return Source(_sha256(values, "weights_sha256"), architecture, variant)


def _stored(values: Any, checkpoints: dict[str, Source], n_problems: int) -> Stored:
    name, checkpoint, hook, dtype = (_field(values, key, str) for key in ("name", "checkpoint", "hook", "dtype"))
    _require(name not in ("", TOKEN_IDS, PROBLEMS), f"a tensor is named {name!r}")
    _require(checkpoint in checkpoints, f"tensor {name[:80]!r} is of an unknown checkpoint {checkpoint[:80]!r}")
    architecture = checkpoints[checkpoint].architecture
    _require(hook in hook_axes(architecture), f"tensor {name[:80]!r} is of an unknown hook {hook[:80]!r}")
    _require(dtype in DTYPES, f"tensor {name[:80]!r} has dtype {dtype[:20]!r}")
    positions = _field(values, "positions", list)
    allowed = all(type(place) is int and place in ALL_POSITIONS for place in positions)
    _require(
        allowed and bool(positions) and positions == sorted(set(positions)), f"positions of {name[:80]!r} do not fit"
    )
    axes, shape = ["problem", *hook_axes(architecture)[hook]], [n_problems, *row_shape(architecture, hook, positions)]
    found = _field(values, "axes", list), _field(values, "shape", list)
    _require(found == (axes, shape), f"axes or shape of {name[:80]!r} are not {axes}, {shape}")
    return Stored(name, checkpoint, hook, tuple(positions), dtype)


def _shards(items: list[Any], index: Index) -> tuple[Shard, ...]:
    shards, start, row_bytes = [], 0, index.row_bytes
    for item in items:
        file = _field(item, "file", str)
        _require(SHARD_FILE.fullmatch(file) is not None, f"{file[:60]!r} is not the name of a shard")
        begin, stop, size = (_field(item, key, int) for key in ("start", "stop", "bytes"))
        _require(begin == start < stop, f"{file} holds problems {begin} to {stop}, expected {start} and on")
        rest = size - (stop - start) * row_bytes
        _require(0 < rest <= HEADER_LIMIT, f"{file} has {size:,} bytes, which does not fit its tensors")
        shards.append(Shard(file, start, stop, size, _sha256(item, "sha256")))
        start = stop
    _require(start == index.n_problems, f"shards hold {start:,} problems, n_problems is {index.n_problems:,}")
    _require(len({shard.file for shard in shards}) == len(shards), "a shard is listed twice")
    return tuple(shards)
