"""The kernels against the plain step, with float64 as the referee."""

import dataclasses

import pytest
import torch

from workbench.engine import native, plain
from workbench.initialise import initial_weights
from workbench.native import library
from workbench.recipe import Architecture
from workbench.task import encode, parse_all

needs_kernels = pytest.mark.skipif(bool(library.missing()), reason=library.missing())
TWO = Architecture(n_layers=2)


@needs_kernels
def test_it_is_the_plain_step_as_far_as_float32_goes(decoder, tokens, distance, plain_distance):
    # Trained weights have small gradients out of large terms that cancel: there the plain step errs by up to 4e-5 too.
    found, plainly = distance(native, *decoder, tokens), plain_distance(*decoder, tokens)
    assert found.loss < 1e-6
    assert found.gradient < max(1e-5, 2 * plainly.gradient)
    assert found.with_residuals < max(1e-5, 2 * plainly.with_residuals)
    assert found.residuals < max(1e-5, 2 * plainly.residuals)


@needs_kernels
@pytest.mark.parametrize("mlp", ["relu", "bilinear"])
def test_smooth_places_agree_to_a_millionth(mlp, distance):
    """Where no ReLU is near its kink and nothing cancels, float32 itself allows better than 1e-5."""
    shape = Architecture(mlp=mlp, n_layers=3)
    tokens = torch.from_numpy(encode(parse_all(["1234+5678", "9999-1", "0-9999", "5000-4999", "7+8"])))
    found = distance(native, initial_weights(shape, "half", 3), shape, tokens)
    assert found.loss < 1e-6 and found.gradient < 2e-6


@needs_kernels
def test_a_tensor_left_out_of_the_gradient_would_show(tokens, distance):
    shape = Architecture(mlp="bilinear", n_layers=2)
    weights = initial_weights(shape, "fan-in", 0)
    for name in shape.shapes:
        grown = {**weights, name: (weights[name] * 1.5).requires_grad_()}
        (found,) = torch.autograd.grad(native.loss(grown, tokens, shape), [grown[name]])
        (exact,) = torch.autograd.grad(plain.loss(grown, tokens, shape), [grown[name]])
        assert found.norm() > 0
        torch.testing.assert_close(found, exact, rtol=1e-3, atol=1e-6)


@needs_kernels
def test_threads_split_the_batch_and_change_only_the_rounding(tokens):
    weights = {name: w.requires_grad_() for name, w in initial_weights(TWO, "fan-in", 0).items()}
    before, found = torch.get_num_threads(), {}
    try:
        for threads in (1, 2, 5, 100):
            torch.set_num_threads(threads)
            loss = native.loss(weights, tokens, TWO)
            found[threads] = loss.item(), torch.autograd.grad(loss, list(weights.values()))
    finally:
        torch.set_num_threads(before)
    for loss, gradients in found.values():
        assert loss == pytest.approx(found[1][0], abs=1e-7)
        for ours, one in zip(gradients, found[1][1], strict=True):
            torch.testing.assert_close(ours, one, rtol=1e-4, atol=1e-6)


@needs_kernels
def test_the_same_call_gives_the_same_bytes(tokens):
    weights = {name: w.requires_grad_() for name, w in initial_weights(TWO, "fan-in", 0).items()}
    one, two = (torch.autograd.grad(native.loss(weights, tokens, TWO), list(weights.values())) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@needs_kernels
def test_the_loss_scales_the_gradient(tokens):
    weights = {name: w.requires_grad_() for name, w in initial_weights(TWO, "fan-in", 0).items()}
    one = torch.autograd.grad(native.loss(weights, tokens, TWO), list(weights.values()))
    three = torch.autograd.grad(3 * native.loss(weights, tokens, TWO), list(weights.values()))
    for a, b in zip(one, three, strict=True):
        torch.testing.assert_close(3 * a, b)


@needs_kernels
def test_saturated_attention_and_huge_logits_stay_finite():
    tokens = torch.from_numpy(encode(parse_all(["1234+5678", "9-10"])))
    weights = {name: (40 * w).requires_grad_() for name, w in initial_weights(TWO, "fan-in", 0).items()}
    loss = native.loss(weights, tokens, TWO)
    exact = plain.loss({name: w.double() for name, w in weights.items()}, tokens, TWO)
    assert loss.item() == pytest.approx(exact.item(), rel=1e-4)
    assert all(g.isfinite().all() for g in torch.autograd.grad(loss, list(weights.values())))


@needs_kernels
def test_no_gradient_is_computed_for_nobody(tokens):
    weights = initial_weights(TWO, "fan-in", 0)
    assert not native.loss(weights, tokens, TWO).requires_grad


def test_parts_are_whole_tiles_and_cover_the_batch():
    for batch in (1, 15, 16, 17, 333, 1024):
        for count in (1, 2, 3, 7, 500):
            parts = native._parts(batch, count)
            assert len(parts) <= count
            assert [i for part in parts for i in range(part.start, part.stop)] == list(range(batch))
            assert all(part.start % 16 == 0 for part in parts)


def test_other_widths_are_named():
    assert "d_mlp 64, not 128" in library.missing(dataclasses.replace(TWO, d_mlp=128))


@needs_kernels
def test_what_the_kernels_cannot_read_is_refused(tokens):
    weights = initial_weights(TWO, "fan-in", 0)
    wide = {name: w.double() for name, w in weights.items()}
    strange = tokens.clone()
    strange[0, 3] = 13
    for given, asked, says in (
        (wide, tokens, "W_E is torch.float64"),
        (weights, tokens.long(), "tokens are torch.int64"),
        (weights, tokens[:0], r"tokens are torch.uint8 \[0, 16\]"),
        (weights, strange, "a token is 13"),
    ):
        with pytest.raises(ValueError, match=says):
            native._given(given, asked, TWO)
    with pytest.raises(ValueError, match="d_mlp 64, not 128"):
        native._given(weights, tokens, dataclasses.replace(TWO, d_mlp=128))
