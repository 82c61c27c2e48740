"""The compiled program against the plain step. One small program is compiled here; that takes some seconds."""

import pytest
import torch

from workbench.engine import compiled, plain
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.splits import Splits
from workbench.task import encode

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
reason = compiled.unavailable("cpu")
needs_compiler = pytest.mark.skipif(bool(reason), reason=reason)
SHAPE = Architecture(mlp="bilinear", n_layers=1, d_model=8, n_heads=2, d_head=4, d_mlp=8)


@needs_compiler
def test_it_is_the_plain_step_and_a_smaller_batch_needs_no_other_program():
    weights = {name: w.requires_grad_() for name, w in initial_weights(SHAPE, "fan-in", 0).items()}
    for size in (64, 33):
        tokens = torch.from_numpy(encode(Splits().batch(0, size)))
        loss = compiled.loss(weights, tokens, SHAPE)
        exact = plain.loss({name: w.double() for name, w in weights.items()}, tokens, SHAPE)
        assert loss.item() == pytest.approx(exact.item(), abs=1e-6)
        ours = torch.autograd.grad(loss, list(weights.values()))
        theirs = torch.autograd.grad(exact, list(weights.values()))
        for a, b in zip(ours, theirs, strict=True):
            assert (a - b).norm() < 1e-5 * b.norm()
    assert compiled._program.cache_info().currsize == 1


def test_a_broken_compiler_is_a_reason_and_no_traceback(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("InvalidCxxCompiler: no working C++ compiler\nmore lines")

    monkeypatch.setattr(torch, "compile", broken)
    compiled._tried.cache_clear()
    try:
        assert compiled.unavailable("cpu") == "torch.compile fails here (InvalidCxxCompiler: no working C++ compiler)"
    finally:
        compiled._tried.cache_clear()
