"""Which activations: hook names and their shapes, positions and their labels, dtypes. No torch here."""

import difflib
import fnmatch
from collections.abc import Sequence

from workbench.errors import BadInput
from workbench.recipe import Architecture
from workbench.task import EQUALS_AT, POSITION_LABELS, POSITIONS_READ

ALL_POSITIONS = tuple(range(POSITIONS_READ))
DTYPES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}  # bytes a value

RESIDUAL = ("pos", "d_model")
PER_HEAD = ("pos", "head", "d_head")
BETWEEN_POSITIONS = ("head", "pos", "key")  # pos is the query position; keys are all fifteen positions
HIDDEN = ("pos", "d_mlp")


def hook_axes(architecture: Architecture) -> dict[str, tuple[str, ...]]:
    """Axes of one problem's activation at every hook, in the order of computation."""
    linear = ("mlp.hook_pre_linear",) if architecture.mlp == "bilinear" else ()
    axes: dict[str, tuple[str, ...]] = {"hook_embed": RESIDUAL, "hook_pos_embed": RESIDUAL}
    for layer in range(architecture.n_layers):
        block = {
            "hook_resid_pre": RESIDUAL,
            **{f"attn.hook_{name}": PER_HEAD for name in "qkv"},
            "attn.hook_attn_scores": BETWEEN_POSITIONS,
            "attn.hook_pattern": BETWEEN_POSITIONS,
            "attn.hook_z": PER_HEAD,
            "hook_attn_out": RESIDUAL,
            "hook_resid_mid": RESIDUAL,
            **dict.fromkeys(("mlp.hook_pre", *linear, "mlp.hook_post"), HIDDEN),
            "hook_mlp_out": RESIDUAL,
            "hook_resid_post": RESIDUAL,
        }
        axes |= {f"blocks.{layer}.{name}": value for name, value in block.items()}
    return axes


def row_shape(architecture: Architecture, hook: str, positions: Sequence[int] = ALL_POSITIONS) -> tuple[int, ...]:
    """Shape of one problem's activation at a hook and the chosen positions."""
    sizes = {
        "pos": len(positions),
        "key": POSITIONS_READ,
        "head": architecture.n_heads,
        "d_head": architecture.d_head,
        "d_model": architecture.d_model,
        "d_mlp": architecture.d_mlp,
    }
    return tuple(sizes[axis] for axis in hook_axes(architecture)[hook])


def choose_hooks(patterns: Sequence[str], architecture: Architecture) -> tuple[str, ...]:
    """The hooks that names or glob patterns (`blocks.*.hook_resid_post`) choose, in the order of computation.

    Raises BadInput for one that matches nothing; the message lists the closest names, or all when none is close.
    """
    known = list(hook_axes(architecture))
    chosen: set[str] = set()
    for pattern in patterns:
        matched = [name for name in known if fnmatch.fnmatchcase(name, pattern)]
        if not matched:
            close = difflib.get_close_matches(pattern, known, n=5, cutoff=0.4)
            shape = f"{architecture.mlp} with {architecture.n_layers} layer{'s' if architecture.n_layers > 1 else ''}"
            raise BadInput(
                f"unknown hook {pattern[:80]!r} of a {shape}; "
                f"{'close ones' if close else 'there are'}: {', '.join(close or known)}"
            )
        chosen.update(matched)
    if not chosen:
        raise BadInput(f"no hook was chosen; choose from {', '.join(known)}")
    return tuple(name for name in known if name in chosen)


def choose_positions(text: str) -> tuple[int, ...]:
    """Positions from text such as `10-14`, `0,4,9` or the labels `=,s,d4`; ascending, each once.

    A label names the token that stands at a position (`=` is 9); what the model predicts there is the next one.
    """
    chosen: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        start = _position(first, text)
        stop = _position(last, text) if dash else start
        if start > stop:
            raise BadInput(f"positions {text[:60]!r}: the range {part} runs backwards; write {last}-{first}")
        chosen.update(range(start, stop + 1))
    return tuple(sorted(chosen))


def _position(text: str, whole: str) -> int:
    labels = POSITION_LABELS[:POSITIONS_READ]
    if text in labels:
        return labels.index(text)
    if text.isascii() and text.isdigit() and len(text) <= 2 and int(text) < POSITIONS_READ:
        return int(text)
    hint = " (position 15 is predicted, never read)" if text in ("15", POSITION_LABELS[15]) else ""
    raise BadInput(
        f"positions {whole[:60]!r}: {text[:20]!r} is none{hint}; write numbers 0..{POSITIONS_READ - 1}, "
        f"ranges like {EQUALS_AT}-14, or labels {', '.join(labels)}"
    )
