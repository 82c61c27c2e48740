"""The arena's forms: what each answers, what it was given to be able to, and what an answer costs it.

Multiply-adds are those of an answer to one problem. A decoder reads fifteen tokens, each once: its matrix products, the
products of queries and keys and of weights and values over the 120 pairs of a token with itself and those before it,
and the unembedding at the five digits; embedding, softmax and relu are not counted. The kernel machine's are those of
its closed form, two dense products and a mean an iteration; a network of infinite width has no number of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool

from workbench.exhaustive.result import SUMMARY, Exhaustive, read
from workbench.recipe import TRAIN_EXAMPLES, Architecture
from workbench.task import EQUALS_AT, POSITIONS_READ, SIGN_AT, Problems, encode

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint
    from workbench.ntk.decimal import Decimal

HILL, KERNEL = "Hill circuit", "kernel machine"
COUNTS = "exhaustive"  # where counts over the whole domain lie, beside the checkpoints

Flags = Bool[np.ndarray, " problem"]


@dataclass(frozen=True)
class Cost:
    """What a form was given and what an answer takes."""

    examples: int  # training examples; templates of the kernel machine
    trained: int  # parameters that training found
    written: int  # parameters that were written down
    multiply_adds: int
    counted: str  # how


@dataclass(frozen=True, eq=False)
class Answered:
    """Which problems are answered exactly; which signs a form that is given the sign would have written right."""

    right: Flags  # the sign included where the form writes it
    sign: Flags | None = None


@dataclass(frozen=True)
class Form:
    """One contestant."""

    name: str
    kind: str  # what seeds of one shape share
    cost: Cost
    ask: Callable[[Problems], Answered]
    exact: Exhaustive | None = None  # counts over the whole domain, where they are on disk


def learned(one: "Checkpoint") -> Form:
    """A decoder, teacher-forced with the exact sign: five digits right then are five digits right when generated."""
    from workbench import evaluation, forward

    config = one.config
    weights = forward.tensors(one.weights)

    def ask(problems: Problems) -> Answered:
        outcome = evaluation.run(weights, config.architecture, problems, config.problems)
        return Answered(outcome.sequence, outcome.sign)

    shape, recipe = config.architecture, config.recipe
    layers = f"{shape.n_layers} layer{'s' if shape.n_layers > 1 else ''}"
    usual = Architecture(mlp=shape.mlp, n_layers=shape.n_layers)
    kind = f"{shape.mlp}, {layers}" + ("" if shape == usual else f", {shape.n_params:,} parameters")
    kind += "" if config.problems == "all" else f", {config.problems}"
    cost = Cost(
        examples=min(recipe.steps * recipe.batch_size, TRAIN_EXAMPLES),
        trained=shape.n_params,
        written=0,
        multiply_adds=multiply_adds(shape),
        counted="fifteen tokens, each read once",
    )
    return Form(one.name.removeprefix("arithmetic-"), kind, cost, ask, _counts(one))


def multiply_adds(shape: Architecture) -> int:
    """Of a decoder's answer, as the module says."""
    inner = shape.n_heads * shape.d_head
    matrices = 3 if shape.mlp == "bilinear" else 2
    products = shape.d_mlp if shape.mlp == "bilinear" else 0
    token = 4 * shape.d_model * inner + matrices * shape.d_model * shape.d_mlp + products
    pairs = POSITIONS_READ * (POSITIONS_READ + 1) // 2
    layer = POSITIONS_READ * token + pairs * 2 * inner
    return shape.n_layers * layer + 5 * shape.d_model * shape.d_vocab


def _counts(one: "Checkpoint") -> Exhaustive | None:
    """The count of these weights over every problem, where it lies beside the checkpoint."""
    folder = one.folder.parent / COUNTS / one.name
    if not (folder / SUMMARY).is_file():
        return None
    found = read(folder)
    return found if found.weights_sha256 == one.weights_sha256 else None


def hill() -> Form:
    """The enumerated circuit on the same tokens."""
    import torch

    from workbench.hill.token_circuit import TokenCircuit

    circuit = TokenCircuit()

    def ask(problems: Problems) -> Answered:
        tokens = encode(problems)
        written = circuit.written(torch.from_numpy(tokens[:, : EQUALS_AT + 1])).numpy()
        return Answered((written == tokens[:, SIGN_AT:]).all(axis=1))

    written = sum(unit.W_hat.numel() + unit.M_hat.numel() for unit in circuit.units.values())
    readout = 2 * circuit.digits
    counted = f"{readout} of the readout, 2 of the unit; then {circuit.digits + 1} divisions with remainder"
    return Form(HILL, HILL, Cost(0, 0, written, readout + 2, counted), ask)


def kernel() -> Form:
    """The decimal kernel machine."""
    from workbench.ntk.decimal import Decimal
    from workbench.ntk.decimal_words import check
    from workbench.ntk.sliced import Sliced

    machine = Decimal()
    sliced = Sliced(machine.templates)

    def ask(problems: Problems) -> Answered:
        return Answered(check(machine, sliced, problems.a, problems.b, problems.subtract).right)

    return Form(KERNEL, KERNEL, _kernel_cost(machine), ask)


def _kernel_cost(machine: "Decimal") -> Cost:
    templates = machine.templates
    bits, count = templates.layout.bits, templates.count
    entries = sum(len(one.on) + len(one.off) + len(one.writes) for one in templates.templates)
    return Cost(
        examples=count,
        trained=0,
        written=0,
        multiply_adds=machine.steps * (2 * bits * count + 2 * bits),
        counted=f"{machine.steps} iterations of two {bits} x {count} products and the mean, dense; "
        f"{machine.steps * (entries + 2 * bits):,} where zeros are left out",
    )


def forms(checkpoints: "Sequence[Checkpoint]") -> list[Form]:
    """All contestants: the decoders as given, then the two exact forms."""
    return [*map(learned, checkpoints), hill(), kernel()]
