import inspect

import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.fitting_optimizers import DEFAULTS, TORCH, Stepper, optimizer

KINDS = list(DEFAULTS)
MIXED = {"lr": (0.1, 0.03, 0.3), "betas": ((0.9, 0.5), (0.8, 0.99), (0.5, 0.9)), "momentum": (0.9, 0.0, 0.5)}


def alone(optimizers, start, gradients):
    """Each unit's parameters by torch.optim, one at a time, given what gradient it sees at each step."""
    ends = []
    for unit, one in enumerate(optimizers):
        p = start[..., unit].clone().requires_grad_()
        rule = one.torch([p])
        for step in gradients:
            p.grad = step[..., unit].clone()
            rule.step()
        ends.append(p.detach())
    return torch.stack(ends, dim=-1)


def together(optimizers, start, gradients):
    p = start.clone()
    stepper = Stepper(optimizers, p)
    for step in gradients:
        stepper.step(p, step)
    return p


def draws(units, steps=300, seed=0):
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(2, 2, units, dtype=torch.float64, generator=generator)
    size = torch.logspace(0, -9, steps, dtype=torch.float64)[:, None, None, None]  # gradients that vanish
    return start, torch.randn(steps, 2, 2, units, dtype=torch.float64, generator=generator) * size


@pytest.mark.parametrize("kind", KINDS)
def test_default_settings_are_torchs(kind):
    signature = inspect.signature(getattr(torch.optim, TORCH[kind]))
    for name, value in DEFAULTS[kind].items():
        assert signature.parameters[name].default == value


@pytest.mark.parametrize("kind", KINDS)
def test_units_with_the_same_settings_move_as_torch_moves_each(kind):
    start, gradients = draws(3)
    same = [optimizer(kind, lr=0.05)] * 3
    assert together(same, start, gradients) == pytest.approx(alone(same, start, gradients), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_units_with_settings_of_their_own_move_as_torch_moves_each(kind):
    start, gradients = draws(3, seed=1)
    known = {name: values for name, values in MIXED.items() if name in DEFAULTS[kind]}
    units = [optimizer(kind, **{name: values[unit] for name, values in known.items()}) for unit in range(3)]
    assert together(units, start, gradients) == pytest.approx(alone(units, start, gradients), rel=1e-11, abs=1e-11)


def test_kinds_mix_in_one_stack():
    start, gradients = draws(12, steps=40, seed=2)
    units = [optimizer(kind) for kind in ("sgd", "adam", *KINDS)]
    assert together(units, start, gradients) == pytest.approx(alone(units, start, gradients), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_units_that_are_kept_go_on_as_if_nothing_had_been_left_out(kind):
    start, gradients = draws(4, steps=40, seed=3)
    units = [optimizer(kind, lr=0.01 * (unit + 1)) for unit in range(4)] + [optimizer("sgd")]
    start, gradients = (torch.cat([t, t[..., :1]], dim=-1) for t in (start, gradients))
    whole = together(units, start, gradients)
    p = start.clone()
    stepper = Stepper(units, p)
    for step in gradients[:20]:
        stepper.step(p, step)
    kept = torch.tensor([1, 3, 4])
    stepper.keep(kept)
    p = p[..., kept].clone()
    for step in gradients[20:]:
        stepper.step(p, step[..., kept])
    assert p == pytest.approx(whole[..., kept], rel=1e-14, abs=1e-14)


def test_a_unit_that_becomes_nan_leaves_the_others_alone():
    start, gradients = draws(3, steps=30)
    broken = gradients.clone()
    broken[5, :, :, 1] = torch.nan
    for kind in KINDS:
        units = [optimizer(kind)] * 3
        clean, spoiled = together(units, start, gradients), together(units, start, broken)
        assert spoiled[..., 1].isnan().all() or kind == "rprop"  # whose steps read signs alone, and a NaN has none
        assert torch.equal(spoiled[..., [0, 2]], clean[..., [0, 2]])


def test_the_settings_are_shown_where_they_are_not_the_defaults():
    assert str(optimizer("adam", lr=0.1, betas=(0.9, 0.5))) == "Adam lr=0.1 betas=(0.9, 0.5)"
    assert str(optimizer("rmsprop")) == "RMSprop"


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("adamm", {}, "unknown optimizer 'adamm'; choose from adam, "),
        ("adam", {"alpha": 0.9}, "adam has no setting 'alpha'; it has lr, betas, eps"),
        ("adam", {"betas": 0.9}, "setting betas of adam is 0.9, expected the form of"),
        ("rprop", {"etas": (0.5, 1.2, 1.0)}, "setting etas"),
    ],
)
def test_what_there_is_not_is_bad_input(kind, settings, words):
    with pytest.raises(BadInput, match=words.replace("(", r"\(")):
        optimizer(kind, **settings)


def test_one_optimizer_a_unit():
    with pytest.raises(BadInput, match="2 optimizers for 3 units"):
        Stepper([optimizer("adam")] * 2, torch.zeros(2, 2, 3))
