import numpy as np
import pytest
import safetensors.torch
import torch

from workbench.errors import BadInput
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


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)
def test_random_floats_of_mixed_magnitude_are_zero_ulp_from_native(row, dtype):
    generator = torch.Generator().manual_seed(1)
    size = torch.randn(1_000_000, 2, generator=generator, dtype=torch.float64)
    magnitude = torch.randint(-6, 4, size.shape, generator=generator)
    x = (size * 10.0**magnitude).to(dtype)
    assert torch.equal(HillUnit.enumerated(row.name, dtype=dtype)(x), row.exact(*x.unbind(-1)[: row.arity]))


def test_swapping_the_selection_changes_the_answer():
    x = torch.tensor([1339.7364, 2.7364], dtype=torch.float64)
    unit = HillUnit.enumerated("add")
    assert unit(x).item() == 1339.7364 + 2.7364
    unit.load_state_dict(HillUnit.enumerated("subtract").state_dict())
    assert unit(x).item() == 1339.7364 - 2.7364


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


def test_the_parameters_survive_safetensors(tmp_path):
    unit = HillUnit.enumerated("negation", dtype=torch.float32)
    safetensors.torch.save_file(unit.state_dict(), tmp_path / "unit.safetensors")
    other = HillUnit(torch.zeros(2), torch.zeros(2))
    other.load_state_dict(safetensors.torch.load_file(tmp_path / "unit.safetensors"))
    assert other.W.tolist() == [-1.0, 0.0]


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
    with pytest.raises(BadInput, match="unknown primitive 'exponential'"):
        HillUnit(torch.zeros(2), torch.zeros(2), primitive="exponential")  # type: ignore[arg-type]
