"""A trained head on disk, beside the decoder it was trained with: head.json and head.safetensors, hostile input.

A checkpoint is whole without them: delete both and the decoder loads as before.
"""

import hashlib
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from workbench.checkpoint import parse_tensors, weight_bytes
from workbench.errors import BadInput
from workbench.files import json_bytes, read_bytes, read_json, write_atomic
from workbench.hill import heads
from workbench.hill.constraint import constrain
from workbench.recipe import Architecture, Auxiliary, build

CONFIG, WEIGHTS = "head.json", "head.safetensors"
SCHEMA = 1
LIMIT = 64 * 1024 * 1024  # bytes of head.safetensors


@dataclass(frozen=True, eq=False)
class TrainedHead:
    """A head that can be asked: what it is, where it reads, its tensors.

    `tensors` has `readout`, and the units' raw `W_hat` and `M_hat`, or `W` where they are random; see `heads.shapes`.
    """

    auxiliary: Auxiliary
    site: str
    tensors: dict[str, Float[Tensor, "..."]]

    @property
    def unit(self) -> Float[Tensor, "operator output input"]:
        """The units' weights; of a linear head, which has none, those its target would need."""
        if "W" in self.tensors:
            return self.tensors["W"]
        if "W_hat" in self.tensors:
            return constrain(self.tensors["W_hat"], self.tensors["M_hat"])
        return constrain(*heads.enumerated(self.auxiliary.head))

    def __call__(
        self, x: Float[Tensor, "batch 5 d_model"], minus: Bool[Tensor, " batch"]
    ) -> Float[Tensor, "batch place output"]:
        """What the head says of problems whose stream at `site` is x at the answer positions; see `heads.targets`."""
        return heads.outputs(self.auxiliary, self.tensors, self.unit, x, minus)


def finished(auxiliary: Auxiliary, architecture: Architecture, trained: heads.Named, seed: int) -> TrainedHead:
    """The head that a run has trained, with its units written out."""
    tensors = dict(trained)
    if auxiliary.head_form == "random":
        tensors["W"] = heads.unit_weights(auxiliary, trained, seed)
    elif auxiliary.head_form == "frozen":
        tensors["W_hat"], tensors["M_hat"] = heads.enumerated(auxiliary.head)
    return TrainedHead(auxiliary, auxiliary.site(architecture.n_layers), tensors)


def save(head: TrainedHead, folder: Path, decoder_sha256: str) -> None:
    """Write both files, each whole or not at all; `decoder_sha256` is of the model.safetensors it belongs to."""
    raw = weight_bytes({name: w.detach().cpu().numpy() for name, w in head.tensors.items()})
    about = {
        "schema": SCHEMA, **asdict(head.auxiliary), "site": head.site, "decoder_sha256": decoder_sha256,
        "weights_sha256": hashlib.sha256(raw).hexdigest(),
    }  # fmt: skip
    write_atomic(folder / WEIGHTS, raw)
    write_atomic(folder / CONFIG, json_bytes(about))


def load(folder: Path, architecture: Architecture, decoder_sha256: str) -> TrainedHead:
    """The head beside the decoder in `folder`; BadInput says which file, what was found and what was expected."""
    path = Path(folder) / CONFIG
    about = read_json(path, limit=100_000)
    if about.pop("schema", None) != SCHEMA:
        raise BadInput(f"{path}: schema is not {SCHEMA}; train the head again")
    rest = {name: about.pop(name, None) for name in ("site", "decoder_sha256", "weights_sha256")}
    if wrong := [name for name, value in rest.items() if not isinstance(value, str)]:
        raise BadInput(f"{path}: {wrong[0]} is not text; restore the file from its source")
    try:
        auxiliary = build(Auxiliary, about, "head")
        site = auxiliary.site(architecture.n_layers)
    except BadInput as error:
        raise BadInput(f"{path}: {error}; restore the file from its source") from None
    if site != rest["site"]:
        raise BadInput(f"{path}: site is {rest['site'][:60]!r}, expected {site!r}; restore the file from its source")
    if rest["decoder_sha256"] != decoder_sha256:
        raise BadInput(f"{path}: trained beside another decoder, {rest['decoder_sha256'][:12]!r}…; restore both")
    return TrainedHead(
        auxiliary, site, _tensors(Path(folder) / WEIGHTS, auxiliary, architecture, rest["weights_sha256"])
    )


def _tensors(path: Path, auxiliary: Auxiliary, architecture: Architecture, sha256: str) -> heads.Named:
    """The checked tensors of head.safetensors."""
    raw = read_bytes(path, LIMIT)
    found = parse_tensors(raw, path)
    expected = dict(heads.shapes(auxiliary, architecture))
    unit = (2, heads.KINDS[auxiliary.head].outputs, heads.KINDS[auxiliary.head].inputs)
    match auxiliary.head_form:
        case "random":
            expected["W"] = unit
        case "frozen":
            expected |= {"W_hat": unit, "M_hat": unit}
    if found.keys() != expected.keys():
        names = ", ".join(re.sub(r"[^\w.]", "?", name[:40]) for name in sorted(found)[:4]) or "none"
        raise BadInput(f"{path}: tensors {names} ({len(found)} in all), expected {', '.join(expected)}")
    for name, shape in expected.items():
        value = found[name]
        if value.dtype != np.float32 or value.shape != shape or not np.isfinite(value).all():
            raise BadInput(
                f"{path}: {name} is {value.dtype} {list(value.shape)[:8]}, expected finite float32 {list(shape)}; "
                "restore the file from its source"
            )
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise BadInput(f"{path}: its sha256 is not the one {CONFIG} expects; the file was changed: restore it")
    return {name: torch.from_numpy(value.copy()) for name, value in found.items()}
