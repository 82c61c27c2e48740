"""Decoders of the four shapes, untrained and trained, and how far an engine is from the plain step in float64."""

import functools
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from workbench import checkpoint, forward
from workbench.engine import plain
from workbench.initialise import initial_weights
from workbench.recipe import twelve
from workbench.splits import Splits
from workbench.task import encode

ROOT = Path(__file__).parents[3]
SHAPES = {f"{c.architecture.mlp}-{c.architecture.n_layers}": c for c in twelve() if c.seed == 0}
UNDECIDED = 1e-5  # of the largest pre-activation: nearer to 0, float32 does not say on which side of the kink it is


@dataclass
class Distance:
    """Absolute for loss and residuals; for gradients the norm of the difference over the norm."""

    loss: float
    gradient: float
    with_residuals: float  # gradient of loss and residuals together
    residuals: float


def results(engine, weights, architecture, tokens):
    weights = {name: w.detach().clone().requires_grad_() for name, w in weights.items()}

    def gradient(value):
        found = torch.autograd.grad(value, list(weights.values()))
        return torch.cat([g.flatten().double() for g in found])

    loss = engine.loss(weights, tokens, architecture)
    alone = gradient(loss)
    again, residuals = engine.loss_and_residuals(weights, tokens, architecture)
    assert list(residuals) == [
        f"blocks.{layer}.hook_resid_{kind}" for layer in range(architecture.n_layers) for kind in ("mid", "post")
    ]
    draw = torch.Generator().manual_seed(0)
    pull = sum((torch.randn(r.shape, generator=draw) * r).sum() for r in residuals.values()) / tokens.numel()
    together = gradient(0.5 * again + pull)
    torch.testing.assert_close(again, loss, rtol=1e-6, atol=1e-7)
    return loss.item(), alone, together, [r.detach().double() for r in residuals.values()]


def decided(weights, architecture, tokens):
    """The problems none of whose ReLUs is so near its kink that float32 cannot decide it: one flip moves a gradient."""
    near = torch.zeros(len(tokens), dtype=torch.bool)

    def tap(name, value):
        if name.endswith("mlp.hook_pre"):
            near.logical_or_((value.abs() < UNDECIDED * value.abs().max()).flatten(1).any(1))
        return value

    forward.logits({name: w.double() for name, w in weights.items()}, tokens, architecture, tap)
    return tokens[~near] if architecture.mlp == "relu" else tokens


def measured(engine, weights, architecture, tokens, dtype=torch.float32):
    """`engine` in `dtype` against the plain step in float64."""
    kept = decided(weights, architecture, tokens)
    assert len(kept) > len(tokens) / 2
    exact = results(plain, {name: w.double() for name, w in weights.items()}, architecture, kept)
    found = results(engine, {name: w.to(dtype) for name, w in weights.items()}, architecture, kept)
    relative = [float((a - b).norm() / b.norm()) for a, b in zip(found[1:3], exact[1:3], strict=True)]
    apart = max(float((a - b).abs().max()) for a, b in zip(found[3], exact[3], strict=True))
    return Distance(abs(found[0] - exact[0]), *relative, apart)


@pytest.fixture(params=[f"{kind}-{shape}" for kind in ("untrained", "trained") for shape in SHAPES])
def decoder(request):
    """Weights and architecture: the four shapes, before and after training."""
    kind, _, shape = request.param.partition("-")
    config = SHAPES[shape]
    if kind == "untrained":
        return initial_weights(config.architecture, "fan-in", 0), config.architecture
    arrays = checkpoint.read(ROOT / "checkpoints" / config.name).weights
    return forward.tensors(arrays), config.architecture


@pytest.fixture(scope="session")
def tokens():
    """333 problems, no whole number of tiles."""
    return torch.from_numpy(encode(Splits().batch(0, 333)))


@pytest.fixture(scope="session")
def distance():
    """How far an engine is from the plain step in float64."""
    return measured


@pytest.fixture(scope="session")
def plain_distance():
    """How far the plain step in float32 is from itself in float64: what float32 can do at all."""
    return functools.partial(measured, plain)
