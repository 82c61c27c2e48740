"""A run is a pure function of its configuration: same bytes, interrupted anywhere or not."""

import dataclasses
import functools
import hashlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from workbench import checkpoint, run_state, training
from workbench.engine import plain
from workbench.errors import BadInput, RunFailed
from workbench.initialise import initial_weights
from workbench.native import library
from workbench.recipe import Architecture, Recipe, RunConfig
from workbench.scores import Score
from workbench.splits import Splits
from workbench.task import encode

ENGINE = "plain" if library.missing() else "native"
LONGER = RunConfig(
    Architecture(n_layers=1),
    Recipe(steps=60, warmup_steps=10, batch_size=64, validation_every=3),
    engine=ENGINE,
)


def sha256(folder):
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def test_learning_rate_by_hand():
    recipe = Recipe()
    assert training.learning_rate(recipe, 0) == pytest.approx(0.0001)
    assert training.learning_rate(recipe, 199) == pytest.approx(0.02)
    assert training.learning_rate(recipe, 200) == pytest.approx(0.02)
    assert training.learning_rate(recipe, 200 + 4683 // 3) == pytest.approx(0.015)  # cos(pi/3) = 1/2
    assert 0 < training.learning_rate(recipe, 4882) < 1e-7


def reference_weights(config):
    """The same run in a few lines: textbook AdamW (Loshchilov & Hutter 2019, algorithm 2), no saving, no selection."""
    recipe, splits = config.recipe, Splits(config.data_seed)
    weights = initial_weights(config.architecture, recipe.init, config.seed)
    weights = {name: w.double().requires_grad_() for name, w in weights.items()}
    m = {name: torch.zeros_like(w) for name, w in weights.items()}
    v = {name: torch.zeros_like(w) for name, w in weights.items()}
    for step in range(recipe.steps):
        tokens = torch.from_numpy(encode(splits.batch(step, recipe.batch_size)))
        gradients = torch.autograd.grad(plain.loss(weights, tokens, config.architecture), list(weights.values()))
        norm = math.sqrt(sum(float((g**2).sum()) for g in gradients))
        rate = training.learning_rate(recipe, step)
        for (name, w), g in zip(weights.items(), gradients, strict=True):
            g = g * min(1.0, recipe.grad_clip / (norm + 1e-6))
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g**2
            m_hat, v_hat = m[name] / (1 - 0.9 ** (step + 1)), v[name] / (1 - 0.999 ** (step + 1))
            with torch.no_grad():
                w *= 1 - rate * recipe.weight_decay
                w -= rate * m_hat / (v_hat.sqrt() + 1e-8)
    return weights


def test_a_run_is_textbook_adamw(tmp_path):
    config = RunConfig(Architecture(n_layers=1), Recipe(steps=5, warmup_steps=2, batch_size=256, validation_every=5))
    found = checkpoint.read(training.train(config, tmp_path / "run")).weights
    for name, expected in reference_weights(config).items():
        assert np.abs(found[name] - expected.detach().numpy()).max() < 2e-4, name


def test_same_configuration_same_bytes(short_run, short_config, tmp_path):
    torch.manual_seed(99)  # a run reads no global random state
    again = training.train(short_config, tmp_path / short_config.name)
    for file in short_run.iterdir():
        assert (again / file.name).read_bytes() == file.read_bytes(), file.name
    other = training.train(dataclasses.replace(short_config, seed=1), tmp_path / "other")
    assert sha256(other) != sha256(short_run)


def test_nothing_in_a_checkpoint_tells_time_or_place(short_run, tmp_path):
    for name in ("config.json", "history.json", "README.md"):
        text = (short_run / name).read_text()
        assert (
            str(short_run.parent) not in text and os.uname().nodename not in text and time.strftime("%Y-") not in text
        )


def test_an_interrupted_run_continues_to_the_same_bytes(short_run, short_config, tmp_path):
    class Stop(Exception):
        pass

    def stop(step, loss):
        if step == 10:
            raise Stop

    folder = tmp_path / short_config.name
    with pytest.raises(Stop):
        training.train(short_config, folder, on_step=stop)
    assert not folder.exists()
    assert run_state.load(checkpoint.partial_folder(folder), short_config).step == 8
    with pytest.raises(BadInput, match="--resume"):
        training.train(short_config, folder)
    training.train(short_config, folder, resume=True)
    assert sha256(folder) == sha256(short_run)
    assert (folder / "history.json").read_bytes() == (short_run / "history.json").read_bytes()
    assert not checkpoint.partial_folder(folder).exists()


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    return training.train(LONGER, tmp_path_factory.mktemp("longer") / "run")


WORKER = """
import json, os, signal, sys
from pathlib import Path
from workbench import training
from workbench.recipe import RunConfig

folder, kill_in_save = Path(sys.argv[1]), int(sys.argv[2])
config = RunConfig.from_dict(json.loads(sys.argv[3]))
if kill_in_save:  # die inside a save, after part of the temporary file is written
    saves = 0
    replace = os.replace
    def dying(source, target):
        global saves
        saves += str(target).endswith("state.safetensors")
        if saves == kill_in_save:
            data = Path(source).read_bytes()
            Path(source).write_bytes(data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)
    os.replace = dying
training.train(config, folder, on_step=lambda step, loss: print(step, flush=True))
"""


def start(folder, kill_in_save=0):
    words = [sys.executable, "-c", WORKER, str(folder), str(kill_in_save), json.dumps(LONGER.to_dict())]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("draw", range(2))
def test_sigkill_at_a_random_step_then_resume_gives_the_same_bytes(longer, tmp_path, draw):
    step = random.Random(draw).randrange(4, 55)
    folder = tmp_path / "run"
    process = start(folder)
    for line in process.stdout:
        if int(line) == step:
            process.send_signal(signal.SIGKILL)
            break
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    resumed = run_state.load(checkpoint.partial_folder(folder), LONGER).step
    assert 0 < resumed < LONGER.recipe.steps  # strictly inside: the resumed part does real work
    done = []
    training.train(LONGER, folder, resume=True, on_step=lambda step, loss: done.append(step))
    assert done[0] == resumed + 1  # it continued, and did not start again
    assert sha256(folder) == sha256(longer)


def test_sigkill_during_a_save_keeps_the_save_before(longer, tmp_path):
    folder = tmp_path / "run"
    process = start(folder, kill_in_save=8)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    partial = checkpoint.partial_folder(folder)
    assert any(file.name.endswith(".writing") for file in partial.iterdir())
    assert run_state.load(partial, LONGER).step == 21  # the seventh save
    training.train(LONGER, folder, resume=True)
    assert sha256(folder) == sha256(longer)


@pytest.mark.parametrize("moment", ["before the rename", "after the rename"])
def test_a_run_that_dies_while_finishing_is_finished_by_resume(short_run, short_config, tmp_path, monkeypatch, moment):
    folder = tmp_path / short_config.name

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "move_folder" if moment == "before the rename" else "remove_folder", die)
    with pytest.raises(KeyboardInterrupt):
        training.train(short_config, folder)
    monkeypatch.undo()
    training.train(short_config, folder, resume=True)
    assert sha256(folder) == sha256(short_run)
    assert not checkpoint.partial_folder(folder).exists()


def test_a_diverged_run_stops_and_keeps_what_it_had(tmp_path):
    recipe = Recipe(steps=200, warmup_steps=20, batch_size=64, validation_every=2, lr=1e18)
    config = RunConfig(Architecture(mlp="bilinear", n_layers=1), recipe)
    with pytest.raises(RunFailed, match=r"diverged .*lower --lr"):
        training.train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    history = json.loads((tmp_path / "run.partial" / "history.json").read_text())
    assert "diverged" in history["selection"]["stopped"]
    assert all(map(math.isfinite, history["curve"]["loss"]))


def test_resume_refuses_another_configuration_or_versions(short_config, tmp_path, monkeypatch):
    folder = tmp_path / "run"

    def stop(step, loss):
        if step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(short_config, folder, on_step=stop)
    with pytest.raises(BadInput, match="another configuration"):
        training.train(dataclasses.replace(short_config, seed=3), folder, resume=True)
    monkeypatch.setattr(training, "library_versions", lambda engine: {"torch": "1.0"})
    with pytest.raises(BadInput, match="bytes would differ"):
        training.train(short_config, folder, resume=True)


def test_a_finished_run_is_not_trained_over(short_run, short_config, tmp_path):
    with pytest.raises(BadInput, match="exists already"):
        training.train(short_config, short_run)
    before = sha256(short_run)
    training.train(short_config, short_run, resume=True)
    assert sha256(short_run) == before
    with pytest.raises(BadInput, match="another configuration"):
        training.train(dataclasses.replace(short_config, seed=9), short_run, resume=True)


def test_the_kept_step_has_the_lowest_validation_loss_and_its_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "learning_rate", lambda recipe, step: 0.01 if step < 6 else 0.5)  # gets worse late
    config = RunConfig(Architecture(n_layers=1), Recipe(steps=9, batch_size=64, validation_every=3))
    found = checkpoint.read(training.train(config, tmp_path / "run"))
    losses = {row["step"]: row["loss"] for row in found.history["validations"]}
    assert losses[9] > losses[6]
    assert found.kept_step == min(losses, key=losses.__getitem__) < 9
    assert found.history["results"]["validation"]["all"]["loss"] == pytest.approx(min(losses.values()), abs=1e-12)


def test_on_a_tie_the_earlier_step_is_kept(short_config, tmp_path, monkeypatch):
    monkeypatch.setattr(training.evaluation, "score", lambda *_: Score(10, 1.0, 20, 3, 0))
    found = checkpoint.read(training.train(short_config, tmp_path / "run"))
    assert found.kept_step == 4
    assert [row["kept"] for row in found.history["validations"]] == [True, False, False]


def test_the_sign_is_hidden_from_a_run_of_that_variant(short_config, tmp_path, monkeypatch):
    hidden = dataclasses.replace(short_config, problems="sign-hidden", recipe=Recipe(steps=2, validation_every=2))
    assert hidden.name == "arithmetic-relu-1layer-sign-hidden-seed0"
    at_the_sign = set()

    def seen(weights, tokens, *rest):
        at_the_sign.update(tokens[:, 10].tolist())
        return real(weights, tokens, *rest)

    real = plain.forward.logits  # what a plain step and an evaluation both call
    monkeypatch.setattr(plain.forward, "logits", seen)
    training.train(hidden, tmp_path / "hidden")
    assert at_the_sign == {12}
    training.train(dataclasses.replace(hidden, problems="all"), tmp_path / "given")
    assert at_the_sign == {10, 11, 12}


def test_a_device_that_is_not_there_is_refused_before_anything_is_made(short_config, tmp_path):
    number = torch.cuda.device_count()
    with pytest.raises(BadInput, match=f"no device 'cuda:{number}' here"):
        training.train(dataclasses.replace(short_config, device=f"cuda:{number}"), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_threads_are_put_back(short_run, short_config, tmp_path):
    before = torch.get_num_threads()
    seen = []
    config = dataclasses.replace(short_config, threads=2, recipe=Recipe(steps=1, batch_size=8, warmup_steps=0))
    training.train(config, tmp_path / "run", on_step=lambda step, loss: seen.append(torch.get_num_threads()))
    assert seen == [2]
    assert torch.get_num_threads() == before


def test_two_processes_do_not_train_one_run(short_config, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "hold", functools.partial(training.hold, patience=0))

    def again(step, loss):
        with pytest.raises(BadInput, match="another process is training this run"):
            training.train(short_config, tmp_path / "run", resume=True)

    training.train(short_config, tmp_path / "run", on_step=again)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
