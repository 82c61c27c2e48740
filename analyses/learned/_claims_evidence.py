"""What each model is measured on for the ledger of claims: groups of fresh problems, and one row a model and group."""

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.recipe import Architecture, RunConfig
from workbench.statistics import wilson

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint
    from workbench.evaluation import Outcome
    from workbench.task import Problems

Row = dict[str, Any]

WIDE = "wide"  # the ReLU of width 96, which has bilinear's number of parameters at one layer
GROUPS = {
    "addition": "all five digits of additions",
    "subtraction": "all five digits of subtractions",
    "no borrow": "all five digits of subtractions in which no digit borrows",
    "no borrow, +": "of these, those with an answer of 0 or more",
    "no borrow, -": "of these, those with a negative answer",
    "borrow": "all five digits of subtractions with a borrow",
    "units": "the units digit of subtractions",
    "sign": "the sign, which the loss does not cover",
}


def kind_of(config: RunConfig) -> tuple[str, int, str] | None:
    """(MLP kind, layers, what it was trained on) of a model the ledger can use, None for another.

    The last is a task variant, or WIDE.
    """
    shape = config.architecture
    if shape == Architecture(mlp="relu", n_layers=1, d_mlp=96) and config.problems == "all":
        return "relu", 1, WIDE
    if shape.n_layers not in (1, 2) or shape != Architecture(mlp=shape.mlp, n_layers=shape.n_layers):
        return None
    return shape.mlp, shape.n_layers, config.problems


def groups(problems: "Problems", outcome: "Outcome") -> dict[str, tuple[int, int]]:
    """(right, n) of every group of GROUPS that has a problem."""
    from workbench.structure import structure

    minus, calm = problems.subtract, structure(problems).count == 0
    whole = outcome.sequence
    found = {
        "addition": (whole, ~minus),
        "subtraction": (whole, minus),
        "no borrow": (whole, minus & calm),
        "no borrow, +": (whole, minus & calm & ~problems.negative),
        "no borrow, -": (whole, minus & calm & problems.negative),
        "borrow": (whole, minus & ~calm),
        "units": (outcome.digits[:, 4], minus),
        "sign": (outcome.sign, np.ones(len(problems), bool)),
    }
    return {name: (int(right[mask].sum()), int(mask.sum())) for name, (right, mask) in found.items() if mask.any()}


def measure(checkpoint: "Checkpoint", problems: "Problems") -> list[Row]:
    """A row a group: how many problems, how many right, the share with a 95% Wilson interval."""
    from workbench import evaluation, forward

    kind = kind_of(checkpoint.config)
    assert kind is not None
    config = checkpoint.config
    outcome = evaluation.run(forward.tensors(checkpoint.weights), config.architecture, problems, config.problems)
    who = {"model": checkpoint.name, "mlp": kind[0], "layers": kind[1], "trained_on": kind[2], "seed": config.seed}
    return [
        {**who, "group": name, "n": n, "right": right, "share": right / n}
        | dict(zip(("low", "high"), wilson(right, n), strict=True))
        for name, (right, n) in groups(problems, outcome).items()
    ]


def shares(rows: list[Row], group: str, mlp: str, layers: int, trained_on: str = "all") -> list[Row]:
    """The rows of one group and kind of model, by seed."""
    wanted = {"group": group, "mlp": mlp, "layers": layers, "trained_on": trained_on}
    return sorted((r for r in rows if wanted.items() <= r.items()), key=lambda row: row["seed"])
