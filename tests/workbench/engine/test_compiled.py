"""The compiled program against the plain step, in a process of its own: torch compiles code without its type checks."""

import json
import subprocess
import sys

import pytest
import torch

from workbench.engine import compiled

CODE = """
import json, sys, torch
from workbench.engine import compiled, plain
from workbench.initialise import initial_weights
from workbench.recipe import Architecture
from workbench.splits import Splits
from workbench.task import encode

reason = compiled.unavailable("cpu")
if reason:
    print(json.dumps({"reason": reason}))
    sys.exit()
shape = Architecture(mlp="bilinear", n_layers=1, d_model=8, n_heads=2, d_head=4, d_mlp=8)
weights = {name: w.requires_grad_() for name, w in initial_weights(shape, "fan-in", 0).items()}
rows = []
for size in (64, 33):
    tokens = torch.from_numpy(encode(Splits().batch(0, size)))
    loss = compiled.loss(weights, tokens, shape)
    exact = plain.loss({name: w.double() for name, w in weights.items()}, tokens, shape)
    ours, theirs = (torch.autograd.grad(value, list(weights.values())) for value in (loss, exact))
    ours, theirs = (torch.cat([g.flatten().double() for g in grads]) for grads in (ours, theirs))
    rows.append([loss.item() - exact.item(), float((ours - theirs).norm() / theirs.norm())])
print(json.dumps({"rows": rows, "programs": compiled._program.cache_info().currsize}))
"""


def test_it_is_the_plain_step_and_a_smaller_batch_needs_no_other_program():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    if "reason" in found:
        pytest.skip(found["reason"])
    for loss, gradient in found["rows"]:
        assert abs(loss) < 1e-6 and gradient < 1e-5
    assert found["programs"] == 1


def test_a_broken_compiler_is_a_reason_and_no_traceback(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("InvalidCxxCompiler: no working C++ compiler\nmore lines")

    monkeypatch.setattr(torch, "compile", broken)
    compiled._tried.cache_clear()
    try:
        assert compiled._tried("cpu") == "torch.compile fails here (InvalidCxxCompiler: no working C++ compiler)"
    finally:
        compiled._tried.cache_clear()
