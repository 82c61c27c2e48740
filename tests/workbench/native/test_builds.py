"""A build with shorter vectors gives the same bits: every sum has one order."""

import ctypes
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import torch

from workbench import checkpoint, forward
from workbench.engine import native
from workbench.native import library
from workbench.recipe import twelve
from workbench.splits import Splits
from workbench.task import encode

ROOT = Path(__file__).parents[3]
SHAPES = [c for c in twelve() if c.seed == 0]
compiler = shutil.which("g++") or shutil.which("clang++")


@pytest.fixture(scope="module")
def shorter(tmp_path_factory):
    """The kernels built for AVX2, whatever this processor has beyond it."""
    if library.missing() or compiler is None or not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        pytest.skip("needs the kernels, a C++ compiler and an x86 processor with AVX2")
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["ext-modules"][0]
    flags = ["-march=haswell" if flag == "-march=native" else flag for flag in built["extra-compile-args"]]
    target = tmp_path_factory.mktemp("avx2") / "kernel.so"
    sources = [str(ROOT / source) for source in built["sources"]]
    subprocess.run([compiler, *flags, "-fPIC", "-shared", "-o", str(target), *sources], check=True)
    made = ctypes.CDLL(str(target))
    made.workbench_step.restype = ctypes.c_double
    return made


@pytest.mark.parametrize("config", SHAPES, ids=lambda config: config.name)
def test_avx2_gives_the_same_bits(config, shorter, monkeypatch):
    tokens = torch.from_numpy(encode(Splits().batch(0, 200)))
    arrays = checkpoint.read(ROOT / "checkpoints" / config.name).weights
    weights = {name: w.requires_grad_() for name, w in forward.tensors(arrays).items()}
    ours = native.loss(weights, tokens, config.architecture)
    gradients = torch.autograd.grad(ours, list(weights.values()))
    monkeypatch.setattr(native, "library", lambda: shorter)
    again = native.loss(weights, tokens, config.architecture)
    assert torch.equal(ours, again)
    for one, two in zip(gradients, torch.autograd.grad(again, list(weights.values())), strict=True):
        assert torch.equal(one, two)
