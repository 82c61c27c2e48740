"""The trainings of analysis `hill-division`: the script of report section 4.2 for many seeds at once, and variants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.hill.constraint import constrain, constrain_snapped
from workbench.hill.exponential import real, sign_exact
from workbench.hill.fitting import Optimizer, Stack, Stepper, Stream, Target, Unit, optimizer

SAMPLES, BATCH, EPOCHS = 64_000, 64, 50  # of the script
LOW, HIGH = 1e-8, 10.0
ADAM = optimizer("adam", lr=0.3)
KEEPS_MOVING = optimizer("adam", lr=0.3, betas=(0.9, 0.5))  # section 2.2
SELECTION = (1.0, -1.0)
TESTS = ((713.534, -0.13), (-0.252, -5244.0), (325751.0, -161800.0))  # far outside the training range
PASSED = 1e-4  # squared error below which the script ticks a test
SHOWN = (0, 10, 20, 30, 40)  # epochs, from 0, after which the script prints the loss over all training problems


@dataclass(frozen=True)
class Variant:
    """One way to train: `printed` computes as the script does (real powers, autograd), otherwise the stacked engine."""

    name: str
    dtype: torch.dtype
    rule: Optimizer = ADAM
    low: float = LOW
    high: float = HIGH
    printed: bool = False


PRINTED = Variant("script", torch.float32, printed=True)
VARIANTS = (
    PRINTED,
    Variant("float32", torch.float32),
    Variant("float64", torch.float64),
    Variant("float64, beta2 0.5", torch.float64, KEEPS_MOVING),
    Variant("float64, inputs -10 to 10", torch.float64, low=-10.0),  # the control: as the literature trained
)


@dataclass(frozen=True, eq=False)
class Divisions:
    """What one variant's units became, one a seed; `shown` the loss over all training problems after epochs SHOWN."""

    variant: Variant
    W_hat: Float[Tensor, "seed 2"]
    M_hat: Float[Tensor, "seed 2"]
    exact_after: Int[
        Tensor, " seed"
    ]  # epochs until snapped weights were the selection, and were so ever after; 0 never
    shown: Float[Tensor, "shown seed"]

    @property
    def W(self) -> Float[Tensor, "seed 2"]:
        """Weights as they are."""
        return constrain(self.W_hat, self.M_hat)

    @property
    def snapped(self) -> Float[Tensor, "seed 2"]:
        """Weights snapped at the report's threshold."""
        return constrain_snapped(self.W_hat, self.M_hat)

    @property
    def exact(self) -> Bool[Tensor, " seed"]:
        """Units whose snapped weights are exactly the selection."""
        return selected(self.W_hat, self.M_hat)


def selected(W_hat: Float[Tensor, "seed 2"], M_hat: Float[Tensor, "seed 2"]) -> Bool[Tensor, " seed"]:
    """Whether snapped weights are exactly the selection of divide."""
    return constrain_snapped(W_hat, M_hat).eq(torch.tensor(SELECTION, dtype=W_hat.dtype)).all(dim=1)


def problems(variant: Variant, seed: int) -> tuple[Float[Tensor, "sample 2"], Float[Tensor, " sample"]]:
    """Training inputs, uniform as the script draws them, and their quotients in the variant's format."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(SAMPLES, 2, dtype=variant.dtype, generator=generator) * (variant.high - variant.low) + variant.low
    return x, x[:, 0] / x[:, 1]


def in_order(epoch: int) -> Int[Tensor, "step batch"]:
    """The script does not shuffle."""
    return torch.arange(SAMPLES // BATCH * BATCH).view(-1, BATCH)


Problems = Sequence[tuple[Float[Tensor, "sample 2"], Float[Tensor, " sample"]]]
Epoch = Callable[[], tuple[Float[Tensor, "seed 2"], Float[Tensor, "seed 2"]]]  # trains one; W_hat and M_hat


def train(variant: Variant, seeds: Sequence[int], epochs: int) -> Divisions:
    """Train one unit a seed for so many epochs."""
    drawn = [problems(variant, seed) for seed in seeds]
    after, shown = torch.zeros(len(seeds), dtype=torch.int64), []
    epoch_of = _printed_epochs(drawn) if variant.printed else _engine_epochs(variant, drawn)
    for epoch in range(epochs):
        W_hat, M_hat = epoch_of()
        now = selected(W_hat, M_hat)
        after = torch.where(now, torch.where(after > 0, after, epoch + 1), 0)
        if epoch in SHOWN:
            shown.append(_losses(constrain(W_hat, M_hat), drawn))
    return Divisions(variant, W_hat, M_hat, after, torch.stack(shown))


def _engine_epochs(variant: Variant, drawn: Problems) -> Epoch:
    streams = [Stream(Target.of("divide"), x, y, in_order) for x, y in drawn]
    stack = Stack(streams, [Unit((place,), variant.rule) for place in range(len(drawn))])

    def epoch() -> tuple[Tensor, Tensor]:
        stack.epoch()
        return stack.W_hat, stack.M_hat

    return epoch


def _printed_epochs(drawn: Problems) -> Epoch:
    """The script's own arithmetic, all seeds side by side: x^w by torch's real power, its gradient by autograd."""
    x, y = (torch.stack(parts) for parts in zip(*drawn, strict=True))
    raw = torch.zeros(2, 2, len(drawn), dtype=x.dtype)  # [W_hat or M_hat, input, seed]
    stepper = Stepper([ADAM] * len(drawn), raw)

    def epoch() -> tuple[Tensor, Tensor]:
        for samples in in_order(0):
            raw.requires_grad_(True)
            found = real(x[:, samples], constrain(raw[0], raw[1]).T[:, None])[..., 0]
            loss = (found - y[:, samples]).square().mean(dim=1).sum()  # seeds do not meet: each has its own gradient
            (gradient,) = torch.autograd.grad(loss, raw)
            stepper.step(raw.requires_grad_(False), gradient)
        return raw[0].T.clone(), raw[1].T.clone()

    return epoch


def _losses(W: Float[Tensor, "seed 2"], drawn: Problems) -> Float[Tensor, " seed"]:
    """Mean squared error over all its training problems of each unit."""
    errors = [(sign_exact(x, w) - y).square().mean() for w, (x, y) in zip(W, drawn, strict=True)]
    return torch.stack(errors)


@dataclass(frozen=True, eq=False)
class Answers:
    """What trained units say of TESTS, and the native quotients, in the variant's format.

    `printed`: the weights as they are, in real powers, as the script tests them; a negative operand under a weight that
    is not exactly whole gives NaN. `snapped` and `snapped_real`: snapped weights in sign-exact and in real powers.
    """

    native: Float[Tensor, " case"]
    printed: Float[Tensor, "seed case"]
    snapped: Float[Tensor, "seed case"]
    snapped_real: Float[Tensor, "seed case"]


@torch.no_grad()
def answers(found: Divisions) -> Answers:
    """The script's three tests."""
    x = torch.tensor(TESTS, dtype=found.variant.dtype)
    return Answers(
        native=x[:, 0] / x[:, 1],
        printed=real(x, found.W).T,
        snapped=sign_exact(x, found.snapped).T,
        snapped_real=real(x, found.snapped).T,
    )
