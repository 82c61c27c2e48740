import torch
from hypothesis import given
from hypothesis import strategies as st

from workbench.hill.primitives import additive

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers, numbers)
def test_a_sum_and_a_difference_are_pythons_own(a, b):
    x = torch.tensor([a, b], dtype=torch.float64)
    assert additive(x, torch.tensor([1.0, 1.0], dtype=torch.float64)).item() == a + b
    assert additive(x, torch.tensor([1.0, -1.0], dtype=torch.float64)).item() == a - b


def test_leading_axes_are_kept_and_more_inputs_are_summed():
    x = torch.arange(24.0).reshape(2, 3, 4)
    found = additive(x, torch.tensor([1.0, 1.0, 1.0, -1.0]))  # digit + digit + carry - answer digit
    assert found.shape == (2, 3)
    assert found[1, 2].item() == 20 + 21 + 22 - 23


def test_a_weight_of_zero_does_not_silence_infinity():
    assert additive(torch.tensor([1.0, torch.inf]), torch.tensor([1.0, 0.0])).isnan()
