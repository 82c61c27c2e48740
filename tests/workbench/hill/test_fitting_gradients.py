from fractions import Fraction

import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.fitting_gradients import Linear, Target, form
from workbench.hill.operations import OPERATIONS
from workbench.hill.primitives import compute

D = torch.float64
BATCH = 8


def problems(name, low, high, seed=0, noise=0.0):
    generator = torch.Generator().manual_seed(seed)
    x = low + (high - low) * torch.rand(3 * BATCH, 2, dtype=D, generator=generator)
    y = OPERATIONS[name].exact(*x.unbind(1)[: OPERATIONS[name].arity])
    return x, y + noise * torch.randn(len(y), dtype=D, generator=generator)


def answer(target, x, y, W):
    """Loss and gradient by the form under test, of a first batch of `BATCH` samples, for weights [2, lane]."""
    how = form(target, x)
    out = torch.empty(how.room(1, 1, BATCH), dtype=x.dtype)
    how.gather(how.table(x, y, target.selection), torch.arange(BATCH)[None], out[0])
    lanes = W.shape[1]
    (step,) = how.arrange(out.expand(lanes, *out.shape[1:]))
    goal = how.goal(target.selection, x.dtype)[:, None].expand(-1, lanes)
    loss, slope = how.gradient(W, step, goal, BATCH)
    return loss / BATCH, slope


def by_autograd(target, x, y, W):
    W = W.T.clone().requires_grad_()
    loss = torch.stack([(compute(target.primitive, x[:BATCH], w) - y[:BATCH]).square().mean() for w in W])
    return loss.detach(), torch.autograd.grad(loss.sum(), W)[0].T


@pytest.mark.parametrize("low", [0.3, -3.0])
@pytest.mark.parametrize("name", OPERATIONS)
def test_loss_and_gradient_are_those_of_the_primitive_and_autograd(name, low):
    x, y = problems(name, low, 3.0, noise=0.1)
    W = torch.randn(2, 50, dtype=D, generator=torch.Generator().manual_seed(1)).tanh()
    for found, expected in zip(answer(Target.of(name), x, y, W), by_autograd(Target.of(name), x, y, W), strict=True):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", OPERATIONS)
def test_at_the_selection_nothing_is_left(name):
    """With float64 targets; only cosines and sines of sums leave the rounding of their products."""
    x, y = problems(name, -3.0, 3.0)
    loss, slope = answer(Target.of(name), x, y, torch.tensor(OPERATIONS[name].selection, dtype=D)[:, None])
    if OPERATIONS[name].primitive == "trigonometric-products":
        assert loss.max() < 1e-30
        assert slope.abs().max() < 1e-14
    else:
        assert not loss.any()
        assert not slope.any()


@pytest.mark.parametrize("short", [2.0**-20, 2.0**-40, 2.0**-52])
def test_a_vanishing_residual_keeps_its_digits(short):
    """Weights (1 - s, 1 - s) of add miss by s (a + b): compared with exact rational arithmetic, with no digits lost."""
    x, y = torch.tensor([[1.5, 2.25], [3.0, 0.75]] * 4, dtype=D), torch.tensor([3.75] * 8, dtype=D)
    loss, slope = answer(Target.of("add"), x, y, torch.full((2, 1), 1 - short, dtype=D))
    s = Fraction(short)
    assert loss.item() == pytest.approx(float(s * s * Fraction(15, 4) ** 2), rel=1e-15, abs=0)
    expected = [float(-2 * s * Fraction(15, 4) * mean) for mean in (Fraction(9, 4), Fraction(3, 2))]
    assert slope[:, 0].tolist() == pytest.approx(expected, rel=1e-15, abs=0)


@pytest.mark.parametrize("wanted", [1e-5, 1e-9, 1e-13])
def test_a_vanishing_residual_of_a_power_keeps_its_digits(wanted):
    """a^(1 - s) b for a = e: the residual is a b (exp(-s ln a) - 1), whose series is known."""
    x = torch.full((BATCH, 2), torch.e, dtype=D)
    W = 1 - wanted
    loss, _ = answer(Target.of("multiply"), x, x[:, 0] * x[:, 1], torch.tensor([[W], [1.0]], dtype=D))
    small = (1 - W) * float(x[0, 0].log())  # 1 - W is exact
    exact = float(x[0, 0] * x[0, 1]) * (small - small**2 / 2 + small**3 / 6)
    assert loss.item() == pytest.approx(exact**2, rel=1e-13, abs=0)


def test_a_fractional_target():
    x = torch.tensor([[4.0, 1.0], [9.0, 1.0]] * 4, dtype=D)
    root = Target("exponential", (0.5, 0.0))
    loss, slope = answer(root, x, x[:, 0].sqrt(), torch.tensor([[0.5, 1.0], [0.0, 0.0]], dtype=D))
    assert loss.tolist() == pytest.approx([0.0, (2**2 + 6**2) / 2], rel=1e-14, abs=1e-28)
    gradients = by_autograd(root, x, x[:, 0].sqrt(), torch.tensor([[0.5, 1.0], [0.0, 0.0]], dtype=D))[1]
    assert slope == pytest.approx(gradients, abs=1e-12)


def test_the_table_of_a_linear_form_has_rows_of_four_numbers_or_more():
    x, y = problems("add", 0.0, 1.0)
    how = form(Target.of("add"), x)
    assert isinstance(how, Linear)
    assert how.table(x, y, (1.0, 1.0))[:, :2] == pytest.approx(x)
    assert how.table(x, y, (1.0, 1.0)).shape == (len(x), 4)


def test_what_has_no_derivative_is_bad_input():
    zero = torch.tensor([[1.0, 0.0]], dtype=D)
    with pytest.raises(BadInput, match="an input of 0"):
        form(Target.of("multiply"), zero)
    form(Target.of("add"), zero)
    with pytest.raises(BadInput, match="give no real power; draw positive inputs"):
        form(Target("exponential", (0.5, 0.0)), -zero - 1)
    with pytest.raises(Exception, match="'linear'"):  # BadInput, or the tests' own check of types
        Target("linear", (1.0, 1.0))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="unknown operation 'power'"):
        Target.of("power")
