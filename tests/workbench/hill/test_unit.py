import numpy as np
import pytest
import torch

from workbench.errors import BadInput
from workbench.hill.constraint import raw_values
from workbench.hill.formats import ulps
from workbench.hill.operations import OPERATIONS
from workbench.hill.unit import HillUnit

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)
def test_enumerated_weights_are_exactly_the_selection_from_finite_parameters(row, dtype):
    unit = HillUnit.enumerated(row.name, dtype=dtype)
    assert unit.W.dtype == dtype
    assert tuple(unit.W.tolist()) == row.selection
    assert all(torch.isfinite(value).all() for value in unit.state_dict().values())


def test_two_million_integer_pairs_are_exact():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-(2**52), 2**52, (2, 2_000_000))
    x = torch.from_numpy(np.stack([a, b], axis=1))  # int64, cast by the unit
    assert np.array_equal(HillUnit.enumerated("add")(x).numpy().astype(np.int64), a + b)
    assert np.array_equal(HillUnit.enumerated("subtract")(x).numpy().astype(np.int64), a - b)


def test_float32_is_exact_over_the_operands_of_the_task():
    a, b = torch.meshgrid(torch.arange(0, 10_000, 7), torch.arange(0, 10_000, 5), indexing="ij")
    x = torch.stack([a, b], dim=-1)
    assert torch.equal(HillUnit.enumerated("add", dtype=torch.float32)(x), (a + b).float())
    assert torch.equal(HillUnit.enumerated("subtract", dtype=torch.float32)(x), (a - b).float())


def random_floats(n, dtype):
    generator = torch.Generator().manual_seed(1)
    size = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    magnitude = torch.randint(-6, 4, size.shape, generator=generator)
    return (size * 10.0**magnitude).to(dtype)


SINGLE = [row for row in OPERATIONS.values() if row.primitive != "trigonometric-products"]


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_a_million_pairs_of_mixed_magnitude_are_zero_ulp_from_numpy(name):
    """By the default method of the exponential primitive, sign-exact."""
    x = random_floats(1_000_000, torch.float64)
    native = getattr(np, name)(*x.numpy().T)
    assert (ulps(HillUnit.enumerated(name)(x), torch.from_numpy(native)) == 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("row", SINGLE, ids=lambda row: row.name)
def test_every_format_is_zero_ulp_from_its_native_operator(row, dtype):
    x = random_floats(50_000, dtype)
    assert (ulps(HillUnit.enumerated(row.name, dtype)(x), row.exact(*x.unbind(-1)[: row.arity])) == 0).all()


@pytest.mark.parametrize("name", ["cos-difference", "cos-sum", "sin-difference", "sin-sum"])
def test_compound_angles_are_near_the_native_function(name):
    x = random_floats(50_000, torch.float64).clamp(-8, 8)
    found, native = HillUnit.enumerated(name)(x), OPERATIONS[name].exact(*x.unbind(-1))
    assert (found - native).abs().max() < 1.5e-15  # half an ulp of a + b = 16, and two of 1


def test_swapping_the_selection_changes_the_answer():
    x = torch.tensor([1339.7364, 2.7364], dtype=torch.float64)
    unit = HillUnit.enumerated("add")
    assert unit(x).item() == 1339.7364 + 2.7364
    unit.load_state_dict(HillUnit.enumerated("subtract").state_dict())
    assert unit(x).item() == 1339.7364 - 2.7364


def test_a_stack_of_enumerated_units_answers_as_each_alone():
    names = ["multiply", "divide", "power-identity", "reciprocal"]
    raw = [raw_values(OPERATIONS[name].selection, torch.float64) for name in names]
    W_hat, M_hat = (torch.stack(values)[:, None] for values in zip(*raw, strict=True))
    stack = HillUnit(W_hat, M_hat, primitive="exponential")
    x = random_floats(100, torch.float64)
    found = stack(x)
    assert found.shape == (4, 100, 1)
    for place, name in enumerate(names):
        assert torch.equal(found[place, :, 0], HillUnit.enumerated(name)(x))


def test_the_method_is_the_units_own():
    x = random_floats(1_000, torch.float64)
    exact = HillUnit.enumerated("divide")(x)
    for method in ("real", "complex"):
        found = HillUnit.enumerated("divide", method=method)(x)
        assert 0 < ulps(found, exact).max() < 100


def test_snapping_is_for_evaluation_and_gives_the_exact_answer():
    """tanh(3) = 0.99505 and sigmoid(5) = 0.99331 lie within 1e-2 of 1, so that 7 / 2 is 3.5 again."""
    W_hat, M_hat = torch.tensor([3.0, -3.0], dtype=torch.float64), torch.tensor([5.0, 5.0], dtype=torch.float64)
    unit = HillUnit(W_hat, M_hat, primitive="exponential")
    x = torch.tensor([7.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert unit(x).item() != 3.5
    snapped = unit(x, snap=1e-2)
    assert snapped.item() == 3.5
    snapped.backward()
    assert unit.W_hat.grad is None and x.grad.tolist() == [0.5, -7 / 4]
    assert unit(x, snap=5e-3).item() != 3.5  # sigmoid(5) is 6.7e-3 from 1
    with pytest.raises(BadInput, match="snapping threshold of 2"):
        unit(x, snap=2.0)


def test_derivatives_agree_with_finite_differences():
    generator = torch.Generator().manual_seed(2)
    W_hat, M_hat = torch.randn(2, 2, generator=generator, dtype=torch.float64)
    unit = HillUnit(W_hat, M_hat)

    def output(W_hat, M_hat, x):
        return torch.func.functional_call(unit, {"W_hat": W_hat, "M_hat": M_hat}, (x,))

    x = torch.randn(5, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(output, (unit.W_hat, unit.M_hat, x))


def test_a_frozen_unit_keeps_its_weights_and_passes_the_selection_back_as_gradient():
    unit = HillUnit.enumerated("subtract")
    x = torch.tensor([[3.0, 5.0]], dtype=torch.float64, requires_grad=True)
    unit(x).sum().backward()
    assert x.grad.tolist() == [[1.0, -1.0]]
    assert unit.W_hat.grad is None and not any(parameter.requires_grad for parameter in unit.parameters())


def test_a_trainable_unit_learns_to_subtract():
    """From neutral weights, with the optimizer that keeps moving while gradients vanish (report section 2.2)."""
    unit = HillUnit(torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
    adam = torch.optim.Adam(unit.parameters(), lr=0.1, betas=(0.9, 0.5))
    generator = torch.Generator().manual_seed(3)
    for _ in range(1_000):
        x = 10 * torch.rand(64, 2, generator=generator, dtype=torch.float64)
        adam.zero_grad()
        (unit(x) - (x[:, 0] - x[:, 1])).square().mean().backward()
        adam.step()
    assert unit.W.tolist() == pytest.approx([1.0, -1.0], abs=1e-6)


def test_bad_inputs_are_refused_in_one_line():
    unit = HillUnit.enumerated("add")
    with pytest.raises(BadInput, match=r"shape \[4, 3\]"):
        unit(torch.zeros(4, 3))
    with pytest.raises(BadInput, match=r"shape \[\]"):
        unit(torch.tensor(1.0))
    with pytest.raises(BadInput, match="unknown operation 'times'"):
        HillUnit.enumerated("times")
    with pytest.raises(BadInput, match="two values each"):
        HillUnit(torch.zeros(3), torch.zeros(3))
    with pytest.raises(BadInput, match=r"\[2\] torch\.float32 and \[3, 2\] torch\.float32"):
        HillUnit(torch.zeros(2), torch.zeros(3, 2))
    with pytest.raises(BadInput, match=r"torch\.int64"):
        HillUnit(torch.zeros(2).long(), torch.zeros(2).long())
    with pytest.raises(BadInput, match="unknown primitive 'power'"):
        HillUnit(torch.zeros(2), torch.zeros(2), primitive="power")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="unknown method 'log'"):
        HillUnit.enumerated("divide", method="log")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="inputs of a stack"):
        HillUnit(torch.zeros(4, 1, 2), torch.zeros(4, 1, 2))(torch.zeros(3, 8, 2))
