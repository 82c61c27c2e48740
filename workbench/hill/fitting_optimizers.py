"""The optimizers of torch.optim for a stack of independent units: each update is elementwise over the units.

Every rule follows the single-tensor algorithm in torch's documentation, with the same names and default values of its
settings. A setting that differs between the units of a stack is a value a unit; one that does not is a plain number.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Union

import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbench.errors import BadInput

Kind = Literal[
    "adam", "adamw", "adamax", "nadam", "radam", "rmsprop", "adagrad", "adadelta", "rprop", "sgd"
]  # fmt: skip
Value = float | Tensor  # of all units, or [unit]
Setting = Union[float, "Spread"]
Settings = dict[str, Setting]
State = dict[str, Tensor]  # of the parameters' shape, but for NAdam's product: [unit] or one for all

TORCH = {
    "adam": "Adam", "adamw": "AdamW", "adamax": "Adamax", "nadam": "NAdam", "radam": "RAdam", "rmsprop": "RMSprop",
    "adagrad": "Adagrad", "adadelta": "Adadelta", "rprop": "Rprop", "sgd": "SGD",
}  # fmt: skip
DEFAULTS: dict[str, dict[str, float | tuple[float, ...]]] = {  # as in the signatures of torch.optim
    "adam": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8},
    "adamw": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2},
    "adamax": {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8},
    "nadam": {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "momentum_decay": 4e-3},
    "radam": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8},
    "rmsprop": {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8},
    "adagrad": {"lr": 1e-2, "lr_decay": 0.0, "eps": 1e-10},
    "adadelta": {"lr": 1.0, "rho": 0.9, "eps": 1e-6},
    "rprop": {"lr": 1e-2, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50.0)},
    "sgd": {"lr": 1e-3, "momentum": 0.0},
}


@dataclass(frozen=True)
class Optimizer:
    """One optimizer with all its settings; make it with `optimizer("adam", lr=0.1, betas=(0.9, 0.5))`."""

    kind: Kind
    settings: tuple[tuple[str, float | tuple[float, ...]], ...]

    def torch(self, parameters: Sequence[Tensor]) -> torch.optim.Optimizer:
        """The optimizer of torch that this one equals, over `parameters`."""
        return getattr(torch.optim, TORCH[self.kind])(parameters, **dict(self.settings))

    def __str__(self) -> str:
        default = DEFAULTS[self.kind]
        changed = [f"{name}={value}" for name, value in self.settings if value != default[name]]
        return " ".join([TORCH[self.kind], *changed])


def optimizer(kind: str, **settings: float | tuple[float, ...]) -> Optimizer:
    """The optimizer `kind` with torch's default settings but for those given, under torch's names.

    Raises BadInput for an unknown kind, setting or number of values.
    """
    if kind not in DEFAULTS:
        raise BadInput(f"unknown optimizer {kind!r}; choose from {', '.join(DEFAULTS)}")
    whole = dict(DEFAULTS[kind])
    for name, value in settings.items():
        if name not in whole:
            raise BadInput(f"optimizer {kind} has no setting {name!r}; it has {', '.join(whole)}")
        default = whole[name]
        if isinstance(default, tuple) != isinstance(value, tuple) or (
            isinstance(default, tuple) and isinstance(value, tuple) and len(default) != len(value)
        ):
            raise BadInput(f"setting {name} of {kind} is {value!r}, expected the form of {default!r}")
        whole[name] = tuple(map(float, value)) if isinstance(value, tuple) else float(value)
    return Optimizer(kind, tuple(whole.items()))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Spread:
    """A setting that differs between units: its distinct values, and which of them is each unit's."""

    values: tuple[float, ...]
    place: Int[Tensor, " unit"]
    dtype: torch.dtype

    def each(self, function: Callable[[float], float]) -> Float[Tensor, " unit"]:
        """A function of the setting, computed once a distinct value, as Python computes it for a single one."""
        return torch.tensor([function(value) for value in self.values], dtype=self.dtype)[self.place]

    @functools.cached_property
    def itself(self) -> Float[Tensor, " unit"]:
        """The setting of each unit."""
        return self.each(float)


def _of(setting: Setting, function: Callable[[float], float] | None = None) -> Value:
    """A setting, or a function of it: a number, or one a unit."""
    if isinstance(setting, Spread):
        return setting.itself if function is None else setting.each(function)
    return setting if function is None else function(setting)


# Everything below is written in operations that round once, never as torch's fused ones (lerp, addcmul, addcdiv): so a
# unit gets the same bits whether its settings are everyone's or its own, and differs from torch.optim by rounding only.


def _blend(average: Tensor, new: Tensor, keep: Value) -> None:
    """In place: average + (1 - keep) (new - average)."""
    average.add_((new - average).mul_(1 - keep))


def _blend_square(average: Tensor, new: Tensor, keep: Value) -> None:
    """In place: keep average + (1 - keep) new^2."""
    average.mul_(keep).add_((new * new).mul_(1 - keep))


def _move(p: Tensor, numerator: Tensor, denominator: Tensor, rate: Value) -> None:
    """In place: p - rate numerator / denominator."""
    p.sub_((numerator * rate).div_(denominator))


def _adam(p: Tensor, g: Tensor, s: State, h: Settings, t: int) -> None:
    _blend(s["mean"], g, _of(h["beta1"]))
    _blend_square(s["square"], g, _of(h["beta2"]))
    bottom = s["square"].sqrt().div_(_of(h["beta2"], lambda b: (1 - b**t) ** 0.5)).add_(_of(h["eps"]))
    _move(p, s["mean"], bottom, _of(h["lr"]) / _of(h["beta1"], lambda b: 1 - b**t))


def _adamw(p: Tensor, g: Tensor, s: State, h: Settings, t: int) -> None:
    p.mul_(1 - _of(h["lr"]) * _of(h["weight_decay"]))
    _adam(p, g, s, h, t)


def _adamax(p: Tensor, g: Tensor, s: State, h: Settings, t: int) -> None:
    _blend(s["mean"], g, _of(h["beta1"]))
    torch.maximum(s["largest"].mul_(_of(h["beta2"])), g.abs().add_(_of(h["eps"])), out=s["largest"])
    _move(p, s["mean"], s["largest"], _of(h["lr"]) / _of(h["beta1"], lambda b: 1 - b**t))


def _nadam(p: Tensor, g: Tensor, s: State, h: Settings, t: int) -> None:
    _blend(s["mean"], g, _of(h["beta1"]))
    _blend_square(s["square"], g, _of(h["beta2"]))
    now = _of(h["beta1"]) * _of(h["momentum_decay"], lambda d: 1 - 0.5 * 0.96 ** (t * d))
    following = _of(h["beta1"]) * _of(h["momentum_decay"], lambda d: 1 - 0.5 * 0.96 ** ((t + 1) * d))
    single = torch.as_tensor(now, dtype=torch.float32)  # torch keeps the product of the momenta in float32
    s["product"] = s["product"] * single if "product" in s else single
    product = s["product"].item() if isinstance(now, float) else s["product"].to(p.dtype)
    bottom = s["square"].div(_of(h["beta2"], lambda b: 1 - b**t)).sqrt_().add_(_of(h["eps"]))
    _move(p, g, bottom, _of(h["lr"]) * (1 - now) / (1 - product))
    _move(p, s["mean"], bottom, _of(h["lr"]) * following / (1 - product * following))


def _rectified(beta2: float, t: int) -> float:
    """What multiplies the adaptive step of RAdam at step t, 0 as long as its variance is not tractable."""
    power, whole = beta2**t, 2 / (1 - beta2) - 1
    rho = whole - 2 * t * power / (1 - power)
    if rho <= 5:
        return 0.0
    return (1 - power) ** 0.5 * ((rho - 4) * (rho - 2) * whole / ((whole - 4) * (whole - 2) * rho)) ** 0.5


def _radam(p: Tensor, g: Tensor, s: State, h: Settings, t: int) -> None:
    _blend(s["mean"], g, _of(h["beta1"]))
    _blend_square(s["square"], g, _of(h["beta2"]))
    mean = s["mean"] / _of(h["beta1"], lambda b: 1 - b**t) * _of(h["lr"])
    scale = torch.as_tensor(_of(h["beta2"], lambda b: _rectified(b, t)), dtype=p.dtype)
    p.sub_(mean * torch.where(scale > 0, scale / (s["square"].sqrt() + _of(h["eps"])), 1.0))


def _rmsprop(p: Tensor, g: Tensor, s: State, h: Settings, t: int) -> None:
    _blend_square(s["square"], g, _of(h["alpha"]))
    _move(p, g, s["square"].sqrt().add_(_of(h["eps"])), _of(h["lr"]))


def _adagrad(p: Tensor, g: Tensor, s: State, h: Settings, t: int) -> None:
    s["sum"].add_(g * g)
    _move(p, g, s["sum"].sqrt().add_(_of(h["eps"])), _of(h["lr"]) / (1 + (t - 1) * _of(h["lr_decay"])))


def _adadelta(p: Tensor, g: Tensor, s: State, h: Settings, t: int) -> None:
    eps, rho = _of(h["eps"]), _of(h["rho"])
    _blend_square(s["square"], g, rho)
    delta = s["delta"].add(eps).sqrt_().div_(s["square"].add(eps).sqrt_()).mul_(g)
    _blend_square(s["delta"], delta, rho)
    p.sub_(delta.mul_(_of(h["lr"])))


def _rprop(p: Tensor, g: Tensor, s: State, h: Settings, t: int) -> None:
    if t == 1:
        s["step"].add_(_of(h["lr"]))
    product, one = g * s["previous"], g.new_ones(())
    turned = product < 0
    s["step"].mul_(torch.where(product > 0, one * _of(h["etas2"]), torch.where(turned, one * _of(h["etas1"]), one)))
    low, high = one * _of(h["step_sizes1"]), one * _of(h["step_sizes2"])
    s["step"] = torch.minimum(torch.maximum(s["step"], low), high)
    s["previous"] = torch.where(turned, 0.0, g)
    p.sub_(s["previous"].sign() * s["step"])


def _sgd(p: Tensor, g: Tensor, s: State, h: Settings, t: int) -> None:
    s["velocity"].mul_(_of(h["momentum"])).add_(g)
    p.sub_(s["velocity"] * _of(h["lr"]))


Rule = Callable[[Tensor, Tensor, State, Settings, int], None]
RULES: dict[str, tuple[Rule, tuple[str, ...]]] = {  # the update, and its tensors that begin at zero
    "adam": (_adam, ("mean", "square")),
    "adamw": (_adamw, ("mean", "square")),
    "adamax": (_adamax, ("mean", "largest")),
    "nadam": (_nadam, ("mean", "square")),
    "radam": (_radam, ("mean", "square")),
    "rmsprop": (_rmsprop, ("square",)),
    "adagrad": (_adagrad, ("sum",)),
    "adadelta": (_adadelta, ("square", "delta")),
    "rprop": (_rprop, ("step", "previous")),
    "sgd": (_sgd, ("velocity",)),
}


def _settings(optimizers: Sequence[Optimizer], dtype: torch.dtype) -> Settings:
    """The settings of a run of one kind, tuples spread as `beta1, beta2` or `etas1, etas2`."""
    spread: dict[str, list[float]] = {}
    for one in optimizers:
        for name, value in one.settings:
            for place, number in enumerate(value if isinstance(value, tuple) else (value,), start=1):
                stem = "beta" if name == "betas" else name
                spread.setdefault(f"{stem}{place}" if isinstance(value, tuple) else name, []).append(number)
    found: Settings = {}
    for name, numbers in spread.items():
        distinct = list(dict.fromkeys(numbers))
        of_unit = torch.tensor([distinct.index(number) for number in numbers])
        found[name] = distinct[0] if len(distinct) == 1 else Spread(tuple(distinct), of_unit, dtype)
    return found


class Stepper:
    """One optimizer a unit, for parameters of any shape whose last axis is the unit.

    `step` changes the parameters in place. Units of one kind that stand side by side are updated together, so sort the
    units by kind. A unit's update never reads another unit's numbers.
    """

    def __init__(self, optimizers: Sequence[Optimizer], parameters: Float[Tensor, "*shape unit"]):
        if len(optimizers) != parameters.shape[-1]:
            raise BadInput(f"{len(optimizers)} optimizers for {parameters.shape[-1]} units, expected one a unit")
        self.taken = 0
        self._dtype = parameters.dtype
        self._optimizers = list(optimizers)
        self._runs: list[tuple[int, int, Rule, State, Settings]] = []
        start = 0
        for kind, group in itertools.groupby(optimizers, key=lambda one: one.kind):
            run = list(group)
            rule, names = RULES[kind]
            shape = (*parameters.shape[:-1], len(run))
            state: State = {name: parameters.new_zeros(shape) for name in names}
            self._runs.append((start, start + len(run), rule, state, _settings(run, parameters.dtype)))
            start += len(run)

    def step(self, parameters: Float[Tensor, "*shape unit"], gradient: Float[Tensor, "*shape unit"]) -> None:
        """One update of every unit's parameters, in place."""
        self.taken += 1
        if len(self._runs) == 1:
            _, _, rule, state, values = self._runs[0]
            rule(parameters, gradient, state, values, self.taken)
            return
        for start, end, rule, state, values in self._runs:
            rule(parameters[..., start:end], gradient[..., start:end], state, values, self.taken)

    def keep(self, units: Int[Tensor, " kept"]) -> None:
        """Forget all but these units, given in rising order; they are numbered anew from 0."""
        runs, first = [], 0
        self._optimizers = [self._optimizers[unit] for unit in units.tolist()]
        for start, end, rule, state, _ in self._runs:
            inside = units[(units >= start) & (units < end)] - start
            if not len(inside):
                continue
            left = {name: value[..., inside] if value.ndim else value for name, value in state.items()}
            last = first + len(inside)
            runs.append((first, last, rule, left, _settings(self._optimizers[first:last], self._dtype)))
            first = last
        self._runs = runs
