"""The saved state of an unfinished run, and damaged ones."""

import pytest
import safetensors.torch
import torch

from workbench import run_state
from workbench.errors import BadInput
from workbench.recipe import Auxiliary, RunConfig

CONFIG = RunConfig()


def some_state():
    generator = torch.Generator().manual_seed(0)
    parts = {
        part: {name: torch.randn(shape, generator=generator) for name, shape in CONFIG.architecture.shapes.items()}
        for part in run_state.PARTS
    }
    curve, validations = {"loss": [1.0, 2.0], "grad_norm": [1.0, 1.0]}, [{"step": 1, "loss": 2.5}]
    return run_state.RunState(**parts, step=2, best_step=1, curve=curve, validations=validations)


def test_it_reads_back_equal(tmp_path):
    state = some_state()
    run_state.save(state, tmp_path)
    found = run_state.load(tmp_path, CONFIG)
    assert (found.step, found.best_step, found.curve) == (2, 1, state.curve)
    for part in run_state.PARTS:
        for name, value in getattr(state, part).items():
            assert torch.equal(getattr(found, part)[name], value)


@pytest.mark.parametrize(
    "damage", ["truncate", "nan", "shape", "missing", "step", "curve", "best", "loss", "no progress", "pickle"]
)
def test_a_damaged_state_is_refused_and_says_what_to_do(tmp_path, damage):
    state = some_state()
    if damage == "nan":
        state.exp_avg["embed.W_E"][0, 0] = torch.nan
    if damage == "shape":
        state.best["embed.W_E"] = torch.zeros(2, 2)
    if damage == "missing":
        del state.exp_avg_sq["unembed.W_U"]
    if damage == "step":
        state.step = 10_000
    if damage == "curve":
        state.curve["grad_norm"].append(1.0)
    if damage == "best":
        state.best_step = 2
    if damage == "loss":
        state.validations[0]["loss"] = "low"
    run_state.save(state, tmp_path)
    path = tmp_path / "state.safetensors"
    if damage == "truncate":
        path.write_bytes(path.read_bytes()[:-100])
    if damage == "no progress":
        path.write_bytes(safetensors.torch.save({"x": torch.zeros(1)}))
    if damage == "pickle":
        path.write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(BadInput, match="remove .* and train again"):
        run_state.load(tmp_path, CONFIG)


def test_a_flipped_bit_is_noticed_wherever_it_is(tmp_path):
    run_state.save(some_state(), tmp_path)
    path = tmp_path / "state.safetensors"
    raw = path.read_bytes()
    for place in (len(raw) // 3, len(raw) // 2, len(raw) - 1, raw.index(b"best_step") + 14):
        damaged = bytearray(raw)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(BadInput, match="remove .* and train again"):
            run_state.load(tmp_path, CONFIG)


def test_a_heads_tensors_are_part_of_the_state(tmp_path):
    config = RunConfig(auxiliary=Auxiliary(head="carry", head_form="trainable"))
    names = {"head.readout": (4, 4, 32), "head.W_hat": (2, 1, 4), "head.M_hat": (2, 1, 4)}
    assert run_state.shapes(config) == CONFIG.architecture.shapes | names
    state = some_state()
    run_state.save(state, tmp_path)
    with pytest.raises(BadInput, match="not a saved run"):  # one without a head
        run_state.load(tmp_path, config)
    for part in run_state.PARTS:
        getattr(state, part).update({name: torch.ones(shape) for name, shape in names.items()})
    state.curve |= {"head_loss": [1.0, 0.5], "head_grad_norm": [1.0, 1.0]}
    run_state.save(state, tmp_path)
    assert torch.equal(run_state.load(tmp_path, config).best["head.W_hat"], torch.ones(2, 1, 4))
    with pytest.raises(BadInput, match="do not fit"):
        run_state.load(tmp_path, CONFIG)
    del state.curve["head_loss"]
    run_state.save(state, tmp_path)
    with pytest.raises(BadInput, match="not a saved run"):
        run_state.load(tmp_path, config)
