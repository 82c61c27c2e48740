"""How one unit is trained on one operation, from the command line. Nothing here imports torch."""

from dataclasses import dataclass

from workbench.errors import BadInput
from workbench.recipe import check_types, knob

PARTS = 100  # of an epoch, after each of which the weights are looked at


@dataclass(frozen=True)
class Trial:
    """How the unit is trained; the defaults are those of the report's section 4.2, in float64."""

    optimizer: str = knob(
        "adam", "optimizer, by its name in torch.optim in small letters; its other settings are the defaults there"
    )
    lr: float = knob(0.3, "learning rate")
    low: float = knob(1e-8, "smallest training input")
    high: float = knob(10.0, "largest training input")
    samples: int = knob(64_000, "training problems")
    batch: int = knob(64, "problems a step")
    epochs: int = knob(50, "epochs at most; training ends when the snapped weights are the selection")
    seed: int = knob(0, "seed of the problems and their order")

    def __post_init__(self) -> None:
        check_types(self)
        if not -1e300 <= self.low < self.high <= 1e300:
            raise BadInput(f"training inputs from {self.low:g} to {self.high:g}; expected a range of finite numbers")
        if not self.batch * PARTS <= self.samples <= 10_000_000 or self.batch < 1:
            raise BadInput(
                f"{self.samples:,} problems in batches of {self.batch}; expected at least {PARTS} batches of 1 or more "
                "and at most 10,000,000 problems"
            )
        if not 1 <= self.epochs <= 10_000:
            raise BadInput(f"epochs is {self.epochs}, expected 1 to 10,000")
        if self.seed < 0:
            raise BadInput(f"seed is {self.seed}, expected 0 or more")
