"""Where optimizers park weights, and which snapping thresholds make them exact without touching other weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from workbench.hill.constraint import constrain, constrain_snapped, snap
from workbench.hill.fitting import Optimizer, Stack, Stream, Target, Unit, optimizer, shuffled
from workbench.hill.operations import Primitive, operation

# The report's sweep of section 2.2: eight operations, and ten optimizers with the rates of its experiment file, which
# are not their defaults, whatever its text says.
OPERATIONS = ("add", "subtract", "multiply", "divide", "power-identity", "reciprocal", "sin", "cos-sum")
OPTIMIZERS: dict[str, Optimizer] = {
    "Adam": optimizer("adam", lr=0.1),
    "Adam, beta2 0.5": optimizer("adam", lr=0.1, betas=(0.9, 0.5)),
    "AdamW": optimizer("adamw", lr=0.1),
    "RAdam": optimizer("radam", lr=0.1),
    "NAdam": optimizer("nadam", lr=0.1),
    "RMSProp": optimizer("rmsprop", lr=0.1, alpha=0.9),
    "Adagrad": optimizer("adagrad", lr=0.3),
    "Adadelta": optimizer("adadelta", lr=1.0),
    "Rprop": optimizer("rprop", lr=0.01),
    "SGD with momentum": optimizer("sgd", lr=0.3, momentum=0.9),
}
ROOTS = {"square root": 1 / 2, "cube root": 1 / 3}  # exponents that are no selections: weights to leave alone
SAMPLES, BATCH = 64_000, 64
LOW, HIGH = 1e-8, 10.0  # training inputs are uniform between them (report section 2.4)
THRESHOLDS = tuple((10.0 ** (np.arange(-90, -3) / 10)).tolist())  # ten a decade, 1e-9 to 0.4

FACTORS, WEIGHT = "factors", "weight"
Rule = Callable[[Tensor, Tensor, float], Tensor]
RULES: dict[str, Rule] = {  # the report snaps tanh and sigmoid, each by itself; the other rule snaps their product
    FACTORS: constrain_snapped,
    WEIGHT: lambda W_hat, M_hat, threshold: snap(constrain(W_hat, M_hat), threshold),
}
# Rules made after a look at seed 0, which no run uses unless asked to: a root's weight counts as touched when snapping
# moves it by more than a tenth of the report's threshold; the band begins where 95% of the units are exact that any
# threshold below its end makes exact.
TOUCHED = 1e-3
MOST = 0.95


@dataclass(frozen=True, eq=False)
class Parked:
    """Trained units: what each was to become, by which optimizer and seed, and where its raw parameters ended."""

    names: tuple[str, ...]
    optimizers: tuple[str, ...]
    seeds: tuple[int, ...]
    W_hat: Float[Tensor, "unit 2"]
    M_hat: Float[Tensor, "unit 2"]

    @property
    def goal(self) -> Float[Tensor, "unit 2"]:
        """The weights that compute each unit's operation or root."""
        return torch.tensor([goal(name)[1] for name in self.names], dtype=self.W_hat.dtype)

    @property
    def matters(self) -> Bool[Tensor, "unit 2"]:
        """Which weights an answer depends on: the second of a power of one operand does not, its base being 1."""
        return torch.tensor([[True, not _second_is_one(name)] for name in self.names])

    @property
    def root(self) -> Bool[Tensor, " unit"]:
        """Which units were to become a root."""
        return torch.tensor([name in ROOTS for name in self.names])

    @property
    def distance(self) -> Float[Tensor, " unit"]:
        """How far the farther of a unit's weights that matter lies from its goal."""
        apart = (constrain(self.W_hat, self.M_hat) - self.goal).abs()
        return torch.where(self.matters, apart, 0.0).amax(dim=1)

    @property
    def learned(self) -> Bool[Tensor, " unit"]:
        """Units of an operation whose weights lie nearer to the goal than to any other selection."""
        return (self.distance < 0.5) & ~self.root


def goal(name: str) -> tuple[Primitive, tuple[float, float]]:
    """The primitive and the weights that compute an operation or a root exactly."""
    if name in ROOTS:
        return "exponential", (ROOTS[name], 0.0)
    row = operation(name)
    return row.primitive, (float(row.selection[0]), float(row.selection[1]))


def _second_is_one(name: str) -> bool:
    return name in ROOTS or (operation(name).arity == 1 and operation(name).primitive == "exponential")


def problems(name: str, rng: np.random.Generator) -> tuple[Float[Tensor, "sample 2"], Float[Tensor, " sample"]]:
    """Training inputs and answers; the second input is 1 where only the first is an operand, as published."""
    x = torch.from_numpy(rng.uniform(LOW, HIGH, (SAMPLES, 2)))
    if name in ROOTS or operation(name).arity == 1:
        x[:, 1] = 1.0
    if name in ROOTS:
        return x, x[:, 0] ** ROOTS[name]
    row = operation(name)
    return x, row.exact(*x.T[: row.arity])


def train(names: Sequence[str], epochs: int, seeds: Sequence[int]) -> Parked:
    """Every operation or root by every optimizer and seed, from raw parameters of 0, all as one stack."""
    streams, units, labels = [], [], []
    for seed in seeds:
        for place, name in enumerate(names):
            rng = np.random.default_rng([seed, place])
            order = shuffled(SAMPLES, BATCH, int(rng.integers(2**31)))
            streams.append(Stream(Target(*goal(name)), *problems(name, rng), order))
            for label, rule in OPTIMIZERS.items():
                units.append(Unit((len(streams) - 1,), rule))
                labels.append((name, label, seed))
    stack = Stack(streams, units)
    for _ in range(epochs):
        stack.epoch()
    what, how, which = zip(*labels, strict=True)
    return Parked(what, how, which, stack.W_hat, stack.M_hat)


@dataclass(frozen=True)
class Snapped:
    """What one threshold of one rule does: `exact` of the `learned` units, `touched` of the `roots`."""

    rule: str
    threshold: float
    exact: int
    learned: int
    touched: int
    roots: int


def exact(parked: Parked, rule: str, threshold: float) -> Bool[Tensor, " unit"]:
    """Units whose weights that matter are their goal to the last bit once snapped."""
    W = RULES[rule](parked.W_hat, parked.M_hat, threshold)
    return ((parked.goal == W) | ~parked.matters).all(dim=1)


def moved(parked: Parked, rule: str, threshold: float) -> Float[Tensor, " unit"]:
    """How far snapping moves the farther of a unit's weights that matter."""
    by = RULES[rule](parked.W_hat, parked.M_hat, threshold) - constrain(parked.W_hat, parked.M_hat)
    return torch.where(parked.matters, by.abs(), 0.0).amax(dim=1)


def sweep(parked: Parked) -> list[Snapped]:
    """Every rule at threshold 0 (no snapping) and at every one of THRESHOLDS."""
    learned, root = parked.learned, parked.root
    return [
        Snapped(
            rule,
            threshold,
            int((exact(parked, rule, threshold) & learned).sum()),
            int(learned.sum()),
            int(((moved(parked, rule, threshold) > TOUCHED) & root).sum()),
            int(root.sum()),
        )
        for rule in RULES
        for threshold in (0.0, *THRESHOLDS)
    ]


@dataclass(frozen=True)
class Band:
    """The thresholds that work: from `low` on most units are exact, up to `high` no root is touched."""

    low: float
    high: float

    @property
    def empty(self) -> bool:
        """Whether no threshold works."""
        return not self.low <= self.high


def band(rows: Sequence[Snapped]) -> Band:
    """The safe band of one rule's sweep; its ends are infinite and 0 where nothing is exact, or all is touched."""
    clean: list[Snapped] = []
    for row in sorted(rows, key=lambda row: row.threshold):
        if row.touched:
            break
        clean.append(row)
    if not clean:
        return Band(float("inf"), 0.0)
    best = max(row.exact for row in clean)
    low = next((row.threshold for row in clean if best and row.exact >= MOST * best), float("inf"))
    return Band(low, clean[-1].threshold)
