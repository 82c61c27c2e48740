"""What a run is: architecture, task variant, recipe and seeds as frozen dataclasses.

Every field carries its help text in `metadata["help"]`; the command line's flags are made from it, so a default is
written once. Nothing here imports torch.
"""

import dataclasses
import math
import re
import sys
import types
from dataclasses import dataclass, field
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from workbench.errors import BadInput

SCHEMA = 1

Mlp = Literal["relu", "bilinear"]
Variant = Literal["all", "ordered", "subtraction", "addition", "sign-hidden"]
Init = Literal["transformer-lens", "half", "gpt2", "fan-in"]
Engine = Literal["auto", "plain", "eager", "compiled", "native"]
Head = Literal["additive", "digitwise", "carry"]
HeadForm = Literal["frozen", "trainable", "random", "linear"]
Schedule = Literal["constant", "decay"]
SITES = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")  # d_model values a position


def knob(default: Any, help: str) -> Any:
    """A dataclass field with its help text."""
    return field(default=default, metadata={"help": help})


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind) and type(value) in {type(choice) for choice in get_args(kind)}
    if get_origin(kind) in (Union, types.UnionType):
        return any(_fits(value, option) for option in get_args(kind))
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def check_types(config: Any) -> None:
    """Raise BadInput unless every field of the dataclass holds a value of its annotated type."""
    for name, kind in get_type_hints(type(config)).items():
        value = getattr(config, name)
        if not _fits(value, kind):
            choices = get_args(kind) if get_origin(kind) is Literal else None
            expected = f"one of {', '.join(map(str, choices))}" if choices else getattr(kind, "__name__", str(kind))
            raise BadInput(f"{name} is {str(value)[:60]!r}, expected {expected}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise BadInput(message)


@dataclass(frozen=True)
class Architecture:
    """The decoder's shape: no bias, no normalisation, learned positions, untied unembedding, float32, causal."""

    mlp: Mlp = knob("relu", "MLP kind: relu is W_out ReLU(W_in x), bilinear is W_out[(W_gate x) * (W_in x)]")
    n_layers: int = knob(2, "number of layers")
    d_model: int = knob(32, "width of the residual stream")
    n_heads: int = knob(4, "attention heads a layer")
    d_head: int = knob(8, "width of a head; attention scores are scaled by 1/sqrt(d_head)")
    d_mlp: int = knob(64, "hidden width of the MLP")
    d_vocab: int = knob(13, "token kinds: ten digits, +, -, =")
    n_ctx: int = knob(16, "tokens in a problem")

    def __post_init__(self) -> None:
        check_types(self)
        sizes = (self.n_layers, self.d_model, self.n_heads, self.d_head, self.d_mlp)
        _require(all(1 <= size <= 4096 for size in sizes), "every size of the architecture must be between 1 and 4096")
        _require(self.n_layers <= 64, f"n_layers is {self.n_layers}, expected at most 64")
        _require((self.d_vocab, self.n_ctx) == (13, 16), "the task has 13 token kinds and 16 tokens a problem")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor of the decoder under its TransformerLens name, in the order they are initialised."""
        qkv = (self.n_heads, self.d_model, self.d_head)
        shapes: dict[str, tuple[int, ...]] = {
            "embed.W_E": (self.d_vocab, self.d_model),
            "pos_embed.W_pos": (self.n_ctx, self.d_model),
        }
        for layer in range(self.n_layers):
            attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
            shapes |= {f"{attn}.W_Q": qkv, f"{attn}.W_K": qkv, f"{attn}.W_V": qkv}
            shapes[f"{attn}.W_O"] = (self.n_heads, self.d_head, self.d_model)
            if self.mlp == "bilinear":
                shapes[f"{mlp}.W_gate"] = (self.d_model, self.d_mlp)
            shapes[f"{mlp}.W_in"] = (self.d_model, self.d_mlp)
            shapes[f"{mlp}.W_out"] = (self.d_mlp, self.d_model)
        shapes["unembed.W_U"] = (self.d_model, self.d_vocab)
        return shapes

    @property
    def n_params(self) -> int:
        """Number of trained values."""
        return sum(math.prod(shape) for shape in self.shapes.values())


@dataclass(frozen=True)
class Recipe:
    """How a decoder is trained; the defaults are the published recipe (model cards, September 2026)."""

    lr: float = knob(0.02, "peak learning rate of AdamW")
    warmup_steps: int = knob(200, "steps of linear warm-up before the cosine to zero")
    steps: int = knob(4883, "optimizer steps; 4883 is one pass over 5,000,000 problems in batches of 1024")
    batch_size: int = knob(1024, "problems a step")
    weight_decay: float = knob(0.01, "AdamW's decoupled weight decay, on every tensor")
    grad_clip: float = knob(1.0, "gradients are scaled down to this norm when longer")
    validation_every: int = knob(200, "steps between validations, which are also the moments a run is saved")
    init: Init = knob(
        "fan-in",
        "initial weights: transformer-lens N(0, 0.8/sqrt(d_model)), half N(0, 0.4/sqrt(d_model)), gpt2 N(0, 0.02), "
        "fan-in N(0, 1/sqrt(inputs)) with embeddings N(0, 1/sqrt(d_model)); picked by the rule in sweeps.py",
    )

    def __post_init__(self) -> None:
        check_types(self)
        _require(self.steps >= 1 and self.validation_every >= 1, "steps and validation_every must be at least 1")
        _require(self.warmup_steps >= 0, "warmup_steps must not be negative")
        _require(1 <= self.batch_size <= 1_000_000, "batch_size must be between 1 and 1,000,000")
        _require(self.lr > 0 and self.grad_clip > 0, "lr and grad_clip must be positive")
        _require(self.weight_decay >= 0, "weight_decay must not be negative")
        most = -(-TRAIN_EXAMPLES // self.batch_size)
        _require(self.steps <= most, f"{self.steps} steps of {self.batch_size} are more than one pass ({most} steps)")


@dataclass(frozen=True)
class Auxiliary:
    """A second term of the loss: a head that reads the decoder's stream and must tell an exact quantity."""

    head: Head = knob(
        "digitwise",
        "head trained beside the decoder: additive (the signed result), digitwise (the angle of each answer digit), "
        "carry (the carry or borrow out of each place)",
    )
    head_form: HeadForm = knob(
        "frozen",
        "the head's unit: frozen at its enumerated weights, trainable, or a control: random weights of the same norm, "
        "linear (no unit)",
    )
    head_site: str = knob(
        "resid_mid",
        "what the head reads at the answer positions: resid_mid or resid_post of the last layer, or a hook name, as "
        "blocks.0.hook_resid_post; hook_resid_pre, hook_attn_out and hook_mlp_out take the plain engine",
    )
    head_weight: float = knob(1.0, "weight of the head's loss beside the cross-entropy; with 0 the head only watches")
    head_schedule: Schedule = knob("constant", "the weight over training: constant, or decay (linearly to zero)")

    def __post_init__(self) -> None:
        check_types(self)
        _require(0 <= self.head_weight <= 1e6, f"head_weight is {self.head_weight:g}, expected 0 to 1,000,000")
        self._place()

    def _place(self) -> tuple[int, str]:
        """(layer, -1 for the last; kind of site)."""
        if self.head_site in ("resid_mid", "resid_post"):
            return -1, self.head_site
        found = re.fullmatch(r"blocks\.(\d{1,2})\.hook_(\w+)", self.head_site, re.ASCII)
        if found is None or found[2] not in SITES:
            sites = ", ".join(SITES)
            short = f"head_site is {self.head_site[:60]!r}, expected resid_mid or resid_post (of the last layer)"
            raise BadInput(f"{short}, or blocks.LAYER.hook_ and one of {sites}")
        return int(found[1]), found[2]

    def site(self, n_layers: int) -> str:
        """The hook name the head reads in a decoder of so many layers; BadInput when it has no such layer."""
        layer, kind = self._place()
        if layer >= n_layers:
            raise BadInput(
                f"head_site is {self.head_site!r}, but the decoder has {n_layers} layer{'s' * (n_layers > 1)}"
            )
        return f"blocks.{layer % n_layers}.hook_{kind}"

    @property
    def every_engine(self) -> bool:
        """Whether every engine returns the site; otherwise only the plain one does."""
        return self._place()[1] in ("resid_mid", "resid_post")

    def weight(self, step: int, steps: int) -> float:
        """The weight at step 0, 1, ... of `steps`."""
        return self.head_weight * (1 - step / steps if self.head_schedule == "decay" else 1.0)


TRAIN_EXAMPLES = 5_000_000
VALIDATION_EXAMPLES = 10_000
TEST_EXAMPLES = 10_000


@dataclass(frozen=True)
class RunConfig:
    """Everything a run's bytes depend on."""

    architecture: Architecture = field(default_factory=Architecture)
    recipe: Recipe = field(default_factory=Recipe)
    problems: Variant = knob("all", "task variant: all, ordered (a >= b), subtraction, addition, sign-hidden")
    seed: int = knob(0, "seed of the initial weights")
    data_seed: int = knob(1234, "seed of the one draw that gives training, validation and test problems")
    engine: Engine = knob(
        "auto",
        "how a training step is computed: plain (every position, the oracle), eager (batch innermost), compiled (that, "
        "through torch's compiler), native (hand-written kernels), or auto: the fastest that runs here, stored by name",
    )
    device: str = knob("cpu", "where a step is computed: cpu, or cuda[:n]")
    threads: int = knob(1, "threads of the run; part of the configuration because sums depend on it")
    auxiliary: Auxiliary | None = None

    def __post_init__(self) -> None:
        check_types(self)
        if self.auxiliary is not None:
            self.auxiliary.site(self.architecture.n_layers)
        _require(0 <= self.seed < 2**63 and 0 <= self.data_seed < 2**63, "seeds must be between 0 and 2**63 - 1")
        _require(1 <= self.threads <= 1024, "threads must be between 1 and 1024")
        kind, _, number = self.device.partition(":")
        _require(kind in ("cpu", "cuda") and (number == "" or number.isdigit()), f"unknown device {self.device!r}")

    @property
    def name(self) -> str:
        """The checkpoint's folder name, e.g. `arithmetic-relu-2layer-seed0`; a variant and a head are named in it."""
        variant = "" if self.problems == "all" else f"-{self.problems}"
        if self.auxiliary is not None:
            variant += f"-{self.auxiliary.head}-{self.auxiliary.head_form}"
        return f"arithmetic-{self.architecture.mlp}-{self.architecture.n_layers}layer{variant}-seed{self.seed}"

    def accepts(self, stored: "RunConfig") -> bool:
        """Whether a stored run is this one; `auto` accepts whichever engine ran."""
        engine = stored.engine if self.engine == "auto" else self.engine
        return dataclasses.replace(self, engine=engine) == stored

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as stored in config.json; `auxiliary` stands there only when there is a head."""
        values = {"schema": SCHEMA, **dataclasses.asdict(self)}
        return {name: value for name, value in values.items() if (name, value) != ("auxiliary", None)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "RunConfig":
        """The configuration stored in config.json; BadInput names the field that does not fit."""
        if values.get("schema") != SCHEMA:
            raise BadInput(f"schema is {str(values.get('schema'))[:20]!r}, expected {SCHEMA}")
        rest = {key: value for key, value in values.items() if key != "schema"}
        rest["architecture"] = build(Architecture, rest.get("architecture"), "architecture")
        rest["recipe"] = build(Recipe, rest.get("recipe"), "recipe")
        rest["auxiliary"] = build(Auxiliary, rest["auxiliary"], "auxiliary") if "auxiliary" in rest else None
        return build(cls, rest, "config")


def build(kind: type, values: Any, where: str) -> Any:
    """The dataclass `kind` from an object read as JSON; BadInput names a field that is missing, unknown or misfit."""
    if not isinstance(values, dict):
        raise BadInput(f"{where} is {type(values).__name__}, expected an object")
    names = {f.name for f in dataclasses.fields(kind)}
    wrong = sorted(map(str, names.symmetric_difference(values)))
    if wrong:
        state = "missing" if wrong[0] in names else "unknown"
        raise BadInput(f"{where}: {state} field {wrong[0][:60]!r}")
    return kind(**values)


def twelve(recipe: Recipe | None = None, engine: Engine = "auto") -> list[RunConfig]:
    """The grid {relu, bilinear} x {1, 2} layers x seeds {0, 1, 2}, relu first, then layers, then seed."""
    return [
        RunConfig(Architecture(mlp=mlp, n_layers=n_layers), recipe or Recipe(), seed=seed, engine=engine)
        for mlp in get_args(Mlp)
        for n_layers in (1, 2)
        for seed in (0, 1, 2)
    ]
