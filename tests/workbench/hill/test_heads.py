"""Auxiliary heads against hand-worked arithmetic, and on streams in which the quantity was planted."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.hill import heads
from workbench.hill.constraint import constrain
from workbench.recipe import Architecture, Auxiliary
from workbench.task import Problems, digits_of, encode, parse_all

SHAPE = Architecture(n_layers=1)
FORMS = ("frozen", "trainable", "random", "linear")
operand = st.integers(0, 9999)


def some_problems(count: int, seed: int = 0) -> Problems:
    return Problems.from_index(np.random.default_rng(seed).integers(0, 200_000_000, count))


def test_targets_of_three_problems_by_hand():
    problems = parse_all(["0905+0107", "0200-0105", "0105-0200"])  # 01012, 00095, -00095
    assert heads.targets("additive", problems).ravel() == pytest.approx([0.1012, 0.0095, -0.0095])
    carries = heads.targets("carry", problems)[:, :, 0]  # out of thousands, hundreds, tens, units
    assert carries.tolist() == [[0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    angles = heads.targets("digitwise", problems)
    digits = [[0, 1, 0, 1, 2], [0, 0, 0, 9, 5], [0, 0, 0, 9, 5]]
    for row, wanted in zip(angles, digits, strict=True):
        for (cos, sin), digit in zip(row, wanted, strict=True):
            assert (cos, sin) == pytest.approx((math.cos(digit * math.pi / 5), math.sin(digit * math.pi / 5)), abs=1e-6)


@settings(deadline=None, max_examples=50)
@given(operand, operand, st.booleans())
def test_the_enumerated_carry_unit_is_long_addition_and_subtraction(a, b, subtract):
    problems = Problems.from_index(np.array([100_000_000 * subtract + 10_000 * a + b]))
    (moves,) = heads.targets("carry", problems)[:, :, 0]
    larger, smaller = (max(a, b), min(a, b)) if subtract else (a, b)
    digits = encode(problems)[0, 12:16]
    into = [*moves[1:], 0.0]
    rows = np.stack([digits_of(np.array([larger]))[0], digits_of(np.array([smaller]))[0], into, digits], axis=1) / 10
    unit = constrain(*heads.enumerated("carry"))[int(subtract), 0]
    assert (torch.from_numpy(rows) @ unit.double()).tolist() == pytest.approx(moves.tolist())


@pytest.mark.parametrize("head", heads.KINDS)
def test_enumerated_weights_are_exactly_the_selections(head):
    unit = constrain(*heads.enumerated(head))
    assert unit.tolist() == [[list(map(float, row)) for row in rows] for rows in heads.KINDS[head].selections]


@pytest.mark.parametrize("head", heads.KINDS)
def test_random_units_have_the_norm_of_the_enumerated_ones_and_depend_on_the_seed(head):
    exact = constrain(*heads.enumerated(head))
    drawn = [heads.unit_weights(Auxiliary(head=head, head_form="random"), {}, seed) for seed in (0, 0, 1)]
    assert drawn[0].norm().item() == pytest.approx(exact.norm().item())
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("head", heads.KINDS)
def test_shapes_and_the_operators_unit(head, form):
    auxiliary = Auxiliary(head=head, head_form=form)
    trained = heads.initial(auxiliary, SHAPE, seed=3)
    assert {name: tuple(w.shape) for name, w in trained.items()} == heads.shapes(auxiliary, SHAPE)
    problems = some_problems(40)
    x, minus = torch.randn(40, 5, 32), torch.from_numpy(problems.subtract)
    said = heads.outputs(auxiliary, trained, heads.unit_weights(auxiliary, trained, 3), x, minus)
    assert said.shape == heads.targets(head, problems).shape
    other = heads.outputs(auxiliary, trained, heads.unit_weights(auxiliary, trained, 3), x, ~minus)
    assert not torch.equal(said, other)


def test_readouts_are_not_drawn_from_the_decoders_stream():
    from workbench.initialise import initial_weights

    readout = heads.initial(Auxiliary(), SHAPE, seed=0)["readout"].flatten()
    decoder = initial_weights(SHAPE, "fan-in", 0)["embed.W_E"].flatten()
    n = min(len(readout), len(decoder))
    assert abs(float(torch.corrcoef(torch.stack([readout[:n], decoder[:n]]))[0, 1])) < 0.2


@pytest.mark.parametrize("head", ["additive", "carry"])
def test_behind_free_readouts_a_frozen_additive_unit_is_a_linear_readout(head):
    auxiliary = Auxiliary(head=head)
    trained = heads.initial(auxiliary, SHAPE, seed=0)
    unit = heads.unit_weights(auxiliary, trained, 0)
    linear = {"readout": torch.einsum("oui,pif->opuf", unit, trained["readout"])}
    x, minus = torch.randn(30, 5, 32), torch.arange(30) % 2 == 0
    ours = heads.outputs(auxiliary, trained, unit, x, minus)
    theirs = heads.outputs(Auxiliary(head=head, head_form="linear"), linear, unit, x, minus)
    torch.testing.assert_close(ours, theirs)


def planted(head: str, problems: Problems) -> torch.Tensor:
    """A stream of five positions in which a rotation hides what the head's unit needs (and other numbers).

    The operands' digits of the place (as written for the additive head, the larger operand first for the others), the
    carry in and the answer's digit: in tens, for the digitwise head in radians.
    """
    one = heads.TURN if head == "digitwise" else 0.1
    wide = np.zeros((len(problems), 5, 32), dtype=np.float32)
    a, b = digits_of(problems.a), digits_of(problems.b)
    if head != "additive":
        swap = problems.negative[:, None]
        a, b = np.where(swap, b, a), np.where(swap, a, b)
    moves = heads.targets("carry", problems)[:, :, 0]
    into = np.concatenate([moves[:, 1:], np.zeros((len(problems), 1))], axis=1)
    wide[:, 1:, 0], wide[:, 1:, 1] = a * one, b * one
    wide[:, :, 2] = np.concatenate([moves[:, :1], into], axis=1) * one
    wide[:, :, 3] = encode(problems)[:, 11:16] * one
    wide[:, :, 4] = np.random.default_rng(1).normal(size=(len(problems), 5))
    rotation = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(5)))[0]
    return torch.from_numpy(wide) @ rotation


def learned(auxiliary: Auxiliary, trained: heads.Named, problems: Problems, x: torch.Tensor, steps: int) -> float:
    """Train a head alone, in place; the share of its targets' variance that it explains on other problems."""
    optimizer = torch.optim.Adam([w.requires_grad_() for w in trained.values()], lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    wanted = torch.from_numpy(heads.targets(auxiliary.head, problems))
    minus, half = torch.from_numpy(problems.subtract), len(problems) // 2

    def loss(part: slice) -> torch.Tensor:
        unit = heads.unit_weights(auxiliary, trained, 0)
        return heads.squared_error(heads.outputs(auxiliary, trained, unit, x[part], minus[part]), wanted[part])

    for _ in range(steps):
        optimizer.zero_grad()
        loss(slice(0, half)).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        return 1 - float(loss(slice(half, None)) / wanted[half:].var(dim=0, correction=0).mean())


@pytest.mark.parametrize("form", ["frozen", "trainable", "linear"])
@pytest.mark.parametrize("head", ["additive", "carry"])
def test_a_head_learns_the_planted_quantity_and_not_from_a_stream_without_it(head, form):
    problems, auxiliary = some_problems(2_000), Auxiliary(head=head, head_form=form)
    noise = torch.randn(2_000, 5, 32, generator=torch.Generator().manual_seed(0))
    start = heads.initial(auxiliary, SHAPE, seed=0)
    assert learned(auxiliary, {name: w.clone() for name, w in start.items()}, problems, noise, 400) < 0.05
    assert learned(auxiliary, start, problems, planted(head, problems), 400) > 0.99


@pytest.mark.parametrize("form", ["frozen", "trainable", "linear"])
def test_products_of_planted_angles_wrap_around_ten_and_a_linear_readout_cannot(form):
    """The stream has digits and carry but not the answer's digit; readouts start near them, the unit anywhere."""
    problems, auxiliary = some_problems(3_000), Auxiliary(head_form=form)
    x = planted("digitwise", problems)
    rotation = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(5)))[0]
    x = x - (x @ rotation.T[:, 3:4]) @ rotation[3:4]
    trained = heads.initial(auxiliary, SHAPE, seed=0)
    if form == "linear":
        assert learned(auxiliary, trained, problems, x, 300) < 0.3
        return
    trained["readout"] = torch.stack([rotation[0] + rotation[2], rotation[1]]) + 0.6 * trained["readout"]
    assert learned(auxiliary, trained, problems, x, 400) > {"frozen": 0.999, "trainable": 0.9}[form]
    landed = heads.unit_weights(auxiliary, trained, 0).round()
    assert torch.equal(landed, constrain(*heads.enumerated("digitwise")))
