"""The trainings of analysis `hill-snapped-training`: weights snapped not at all, by a hard mask, or straight through.

Snapping is that of report section 2.2: tanh goes to -1 or 1 and sigmoid to 0 or 1 where it is nearer than the
threshold. By masked assignment a snapped factor has no gradient; straight through it has that of the factor it stands
for. Evaluation always snaps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses._rows import Row
from analyses.hill._plain_streams import plain_stream
from analyses.hill._report_protocol import BATCH
from workbench.hill.circuit import Circuit, Node
from workbench.hill.constraint import SNAP, constrain, constrain_snapped
from workbench.hill.fitting import Stepper, optimizer
from workbench.hill.operations import operation

Mode = Literal["at evaluation", "hard mask", "straight through"]
MODES: tuple[Mode, ...] = get_args(Mode)
OPERATIONS = (
    "add", "subtract", "identity", "negation", "multiply", "divide", "power-identity", "reciprocal", "cos", "sin",
    "cos-difference", "cos-sum", "sin-difference", "sin-sum",
)  # fmt: skip
OPTIMIZERS = {
    "RMSprop 0.01": optimizer("rmsprop", lr=0.01, alpha=0.9, eps=1e-10),  # section 4.3
    "Adam 0.1": optimizer("adam", lr=0.1),
    "Adam 0.1, betas 0.9, 0.5": optimizer("adam", lr=0.1, betas=(0.9, 0.5)),  # section 4.5
}
SCALES = (0.01, 1.0, 3.0)
STEPS = 2400
EVERY = 5  # steps between two looks at the weights
SAMPLES = 19_200
CONVERGED = 1e-14  # mean squared error at which the report's trainings end (section 4.3.1)
W_HAT_MASKED, M_HAT_MASKED = math.atanh(1 - SNAP), math.log(1 / SNAP - 1)  # raw values beyond which factors snap


@dataclass(frozen=True)
class Lane:
    """One training: its operation, how it snaps, its optimizer, the scale and number of its start."""

    operation: str
    mode: Mode
    optimizer: str
    scale: float
    number: int


def forward(
    raw: Float[Tensor, "2 2 lane"], mode: Int[Tensor, " lane"]
) -> tuple[Float[Tensor, "2 lane"], Float[Tensor, "2 2 lane"]]:
    """The weights that a training computes with, and the derivatives of each by its W_hat and M_hat that it uses.

    `raw` is [W_hat or M_hat, weight, lane]; `mode` the lane's place in `MODES`.
    """
    tanh, sigmoid = torch.tanh(raw[0]), torch.sigmoid(raw[1])
    snapped_tanh, snapped_sigmoid = tanh.abs() > 1 - SNAP, (sigmoid > 1 - SNAP) | (sigmoid < SNAP)
    snaps = mode > 0
    T = torch.where(snaps & snapped_tanh, tanh.sign(), tanh)
    S = torch.where(snaps & snapped_sigmoid, sigmoid.round(), sigmoid)
    hard = mode == MODES.index("hard mask")
    by_W_hat = S * (1 - tanh * tanh) * ~(hard & snapped_tanh)
    by_M_hat = T * sigmoid * (1 - sigmoid) * ~(hard & snapped_sigmoid)
    return T * S, torch.stack([by_W_hat, by_M_hat])


def lanes(starts: int) -> list[Lane]:
    """All trainings, those of one optimizer side by side; every mode and optimizer gets the same starts."""
    return [
        Lane(operation, mode, name, scale, number)
        for name in OPTIMIZERS
        for operation in OPERATIONS
        for mode in MODES
        for scale in SCALES
        for number in range(starts)
    ]


def draw(lane: Lane, seed: int) -> Float[np.ndarray, "2 2"]:
    """Initial (W_hat, M_hat): normal numbers times the scale."""
    place = OPERATIONS.index(lane.operation)
    return np.random.default_rng([seed, place, lane.number]).standard_normal((2, 2)) * lane.scale


@dataclass(eq=False)
class _Progress:
    """What is noted while lanes train: the step from which each is right to stay, and from which its loss is nil."""

    right_since: Float[Tensor, " lane"]
    converged_at: Float[Tensor, " lane"]

    def note(self, step: int, right: Bool[Tensor, " lane"], loss: Float[Tensor, " lane"]) -> None:
        """Update after `step` steps; a lane that is no longer right begins anew."""
        fresh = right & self.right_since.isnan()
        self.right_since = torch.where(right, torch.where(fresh, float(step), self.right_since), math.nan)
        first = (loss < CONVERGED) & self.converged_at.isnan()
        self.converged_at = torch.where(first, float(step), self.converged_at)


@torch.no_grad()
def train(members: Sequence[Lane], seed: int, steps: int = STEPS) -> list[Row]:
    """A row a training, all of one primitive: its lane, where it ended, when its snapped weights were right for good.

    Right means that every weight, snapped, is nearer than the threshold to its selection: on it for 1 and -1, while a 0
    that tanh makes is not snapped. Steps are counted from 1 and looked at in every fifth; NaN says never. Losses are
    those of the batch that the step was taken on, computed with the weights of the training, snapped or not.
    """
    names = list(dict.fromkeys(lane.operation for lane in members))
    streams = [plain_stream(name, seed, samples=SAMPLES) for name in names]
    circuit = Circuit(2, (Node(operation(names[0]).primitive, (0, 1)),))
    of = torch.tensor([names.index(lane.operation) for lane in members])
    starts = [draw(lane, seed) for lane in members]
    raw = torch.from_numpy(np.stack(starts, axis=-1)).contiguous()
    mode = torch.tensor([MODES.index(lane.mode) for lane in members])
    selection = torch.tensor([stream.target.selection for stream in streams], dtype=raw.dtype)[of].T
    use = torch.tensor([needed(name) for name in names])[of].T
    stepper = Stepper([OPTIMIZERS[lane.optimizer] for lane in members], raw)
    progress = _Progress(*(torch.full((len(members),), math.nan, dtype=raw.dtype) for _ in range(2)))
    for epoch in range(math.ceil(steps * BATCH / SAMPLES)):
        orders = [stream.order(epoch) for stream in streams]
        x = torch.stack([stream.x[order] for stream, order in zip(streams, orders, strict=True)], dim=1)
        y = torch.stack([stream.y[order] for stream, order in zip(streams, orders, strict=True)], dim=1)
        for inputs, answers in zip(x.permute(0, 3, 1, 2), y, strict=True):  # [input, operation, sample], [.., sample]
            W, by = forward(raw, mode)
            loss, slope = circuit.loss(inputs.index_select(1, of), answers.index_select(0, of), W[None])
            stepper.step(raw, by * slope[0])
            if stepper.taken % EVERY == 0:
                off = (constrain_snapped(raw[0], raw[1]) - selection).abs()
                right = ((off < SNAP) | ~use).all(dim=0)
                progress.note(stepper.taken, right, loss)
    off = ((constrain(raw[0], raw[1]) - selection).abs() * use).amax(dim=0)
    ends = zip(progress.right_since.tolist(), progress.converged_at.tolist(), off.tolist(), strict=True)
    return [_row(lane, start, *end) for lane, start, end in zip(members, starts, ends, strict=True)]


def train_all(starts: int, seed: int, steps: int = STEPS) -> list[Row]:
    """The rows of all trainings, one primitive after the other."""
    groups: dict[str, list[Lane]] = {}
    for lane in lanes(starts):
        groups.setdefault(operation(lane.operation).primitive, []).append(lane)
    return [row for members in groups.values() for row in train(members, seed, steps)]


def _row(lane: Lane, start: Float[np.ndarray, "2 2"], since: float, converged: float, distance: float) -> Row:
    return {
        **vars(lane), "right": not math.isnan(since), "right_since": since, "converged_at": converged,
        "distance": distance, "masked": frozen_at_start(lane.operation, start), "start_W_hat_1": float(start[0, 0]),
        "start_W_hat_2": float(start[0, 1]), "start_M_hat_1": float(start[1, 0]), "start_M_hat_2": float(start[1, 1]),
    }  # fmt: skip


def needed(name: str) -> list[bool]:
    """Which weights matter: the second one of a power of the first input alone multiplies by a power of 1."""
    return [True, name not in ("power-identity", "reciprocal")]


def frozen_at_start(name: str, start: Float[np.ndarray, "2 2"]) -> bool:
    """Whether a hard mask freezes a weight that matters where it can never reach its selection.

    For a selection of 1 or -1: tanh snapped to the other sign, or the gate snapped shut. For 0: tanh snapped and the
    gate snapped open.
    """
    found = False
    for (W_hat, M_hat), goal, use in zip(start.T, operation(name).selection, needed(name), strict=True):
        if use and goal:
            found |= bool(goal * W_hat < -W_HAT_MASKED or M_hat < -M_HAT_MASKED)
        elif use:
            found |= bool(abs(W_hat) > W_HAT_MASKED and M_hat > M_HAT_MASKED)
    return found
