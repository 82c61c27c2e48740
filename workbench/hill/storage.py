"""Units on disk: one safetensors file with the raw parameters and what they are for, read back as hostile input."""

import json
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from workbench.checkpoint import refuse_other_kinds
from workbench.errors import BadInput
from workbench.files import read_bytes, write_atomic
from workbench.hill.exponential import METHODS
from workbench.hill.formats import BITS
from workbench.hill.primitives import PRIMITIVES
from workbench.hill.unit import HillUnit

KEY = "hill_unit"  # of the header's metadata: one JSON object, so that the same unit gives the same bytes
SCHEMA = 1
LIMIT = 64 * 1024 * 1024  # bytes; a stack of two million float64 units
NAMES = ("W_hat", "M_hat")


def save(unit: HillUnit, path: Path) -> None:
    """Write the unit to `path`, whole or not at all; what stood there is replaced.

    The same unit gives the same bytes. Raises BadInput when its parameters are not finite or `load` would refuse their
    dtype or size.
    """
    path = Path(path)
    tensors = {name: value.detach().cpu().contiguous() for name, value in unit.state_dict().items()}
    _check(tensors, path)
    about = json.dumps({"schema": SCHEMA, "primitive": unit.primitive, "method": unit.method})
    raw = safetensors.torch.save(tensors, {KEY: about})
    if len(raw) > LIMIT:
        raise BadInput(f"{path}: the unit takes {len(raw):,} bytes, expected at most {LIMIT:,}; save it in parts")
    write_atomic(path, raw)


def load(path: Path, *, trainable: bool = False) -> HillUnit:
    """The unit that `save` wrote; BadInput says which file, what was found and what was expected."""
    path = Path(path)
    raw = read_bytes(path, LIMIT)
    refuse_other_kinds(raw, path)
    try:
        tensors = safetensors.torch.load(raw)
        about = _about(raw)
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError, RuntimeError, RecursionError) as error:
        raise BadInput(
            f"{path}: {len(raw):,} bytes that are not a saved unit ({str(error)[:80]}); save it again"
        ) from None
    for key, known in (("schema", [SCHEMA]), ("primitive", list(PRIMITIVES)), ("method", list(METHODS))):
        if (found := about.get(key)) not in known or isinstance(found, bool):
            raise BadInput(f"{path}: {key} is {str(found)[:40]!r}, expected {' or '.join(map(str, known))}")
    _check(tensors, path)
    return HillUnit(
        tensors["W_hat"],
        tensors["M_hat"],
        primitive=about["primitive"],
        method=about["method"],
        trainable=trainable,
    )


def _about(raw: bytes) -> dict[str, Any]:
    """The metadata of a file whose header safetensors has accepted."""
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    about = json.loads(header.get("__metadata__", {}).get(KEY, "{}"))
    if not isinstance(about, dict):
        raise ValueError(f"{KEY} is not an object")
    return about


def _check(tensors: dict[str, Tensor], path: Path) -> None:
    """Raise BadInput unless these are the two raw parameters: one shape [..., 2], one float dtype, finite."""
    if tensors.keys() != set(NAMES):
        found = ", ".join(repr(name[:40]) for name in sorted(tensors)[:4]) or "none"
        raise BadInput(f"{path}: tensors {found} ({len(tensors)} in all), expected W_hat and M_hat")
    W_hat, M_hat = (tensors[name] for name in NAMES)
    if W_hat.dtype not in BITS or M_hat.dtype != W_hat.dtype:
        expected = ", ".join(str(dtype).removeprefix("torch.") for dtype in BITS)
        raise BadInput(f"{path}: W_hat is {W_hat.dtype} and M_hat {M_hat.dtype}, expected both one of {expected}")
    if W_hat.shape != M_hat.shape or W_hat.shape[-1:] != (2,) or not W_hat.numel():
        raise BadInput(
            f"{path}: W_hat has shape {list(W_hat.shape)[:8]} and M_hat {list(M_hat.shape)[:8]}, expected both [2] "
            "or [..., unit, 2]"
        )
    for name, value in tensors.items():
        if wrong := int((~torch.isfinite(value)).sum()):
            raise BadInput(f"{path}: {name} holds {wrong} non-finite values, expected none; save the unit again")
