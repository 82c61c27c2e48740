"""A head beside a decoder in training: it changes nothing at weight 0, follows by hand what it should otherwise."""

import dataclasses
import math
import shutil

import pytest
import torch

from workbench import auxiliary, checkpoint, run_state, training
from workbench.auxiliary import AuxiliaryTerm
from workbench.decoder import Decoder
from workbench.engine import choice, plain
from workbench.errors import BadInput
from workbench.hill import head_storage, heads
from workbench.initialise import initial_weights
from workbench.native import library
from workbench.recipe import Architecture, Auxiliary, Recipe, RunConfig
from workbench.splits import Splits
from workbench.task import encode

ENGINES = ["plain", "eager"] + ([] if library.missing() else ["native"])
SHORT = Recipe(steps=9, warmup_steps=3, batch_size=64, validation_every=4)


@pytest.fixture(autouse=True)
def fewer_problems(monkeypatch):
    """Validate and test on 500 problems each, so that short runs are short."""
    whole = {name: getattr(Splits, name) for name in ("validation", "test")}
    for name, found in whole.items():
        monkeypatch.setattr(Splits, name, property(lambda splits, found=found: found.fget(splits)[:500]))


def run(head, engine="plain", mlp="relu", n_layers=2, recipe=SHORT):
    return RunConfig(Architecture(mlp=mlp, n_layers=n_layers), recipe, engine=engine, auxiliary=head)


@pytest.mark.parametrize(("engine", "head"), list(zip(ENGINES, heads.KINDS, strict=False)))
def test_at_weight_zero_the_decoder_is_that_of_a_run_without_the_head(engine, head, tmp_path):
    watched = run(Auxiliary(head=head, head_form="trainable", head_weight=0.0), engine, mlp="bilinear")
    with_head = training.train(watched, tmp_path / "with")
    without = training.train(dataclasses.replace(watched, auxiliary=None), tmp_path / "without")
    assert (with_head / "model.safetensors").read_bytes() == (without / "model.safetensors").read_bytes()
    ours, theirs = checkpoint.read(with_head).history, checkpoint.read(without).history
    assert ours["curve"]["loss"] == theirs["curve"]["loss"]
    assert ours["curve"]["grad_norm"] == theirs["curve"]["grad_norm"]
    losses = ours["curve"]["head_loss"]  # the head is in the graph: it sees, and learns, all the same
    assert len(losses) == 9 and len(set(losses)) == 9 and losses[-1] < losses[0]


def test_the_decoders_gradient_is_that_of_cross_entropy_plus_weight_times_the_heads_loss():
    config = run(Auxiliary(head="carry", head_form="trainable", head_weight=0.7))
    weights = {
        name: w.double().requires_grad_() for name, w in initial_weights(config.architecture, "fan-in", 0).items()
    }
    trained = {name: w.double() for name, w in heads.initial(config.auxiliary, config.architecture, 0).items()}
    term = AuxiliaryTerm(config, config.auxiliary, trained)
    problems = Splits().batch(0, 50)
    tokens = torch.from_numpy(encode(problems))

    loss, weighted, head_loss = term.losses(plain, weights, tokens, problems, 0)
    ours = torch.autograd.grad(loss + weighted, list(weights.values()), retain_graph=True)
    norms = auxiliary.gradient_norms({"cross_entropy": loss, "head": weighted}, weights)

    _, found = plain.loss_and_residuals(weights, tokens, config.architecture)
    minus, wanted = torch.from_numpy(problems.subtract), torch.from_numpy(heads.targets("carry", problems))
    said = heads.outputs(
        config.auxiliary, term.trained, heads.unit_weights(config.auxiliary, term.trained, 0), found[term.site], minus
    )
    by_hand = (said - wanted).square().mean()
    assert head_loss.item() == pytest.approx(by_hand.item())
    theirs = torch.autograd.grad(
        plain.loss(weights, tokens, config.architecture) + 0.7 * by_hand, list(weights.values())
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
    alone = torch.autograd.grad(plain.loss(weights, tokens, config.architecture), list(weights.values()))
    assert norms["cross_entropy"] == pytest.approx(math.sqrt(sum(float(g.square().sum()) for g in alone)))
    rest = [one - other for one, other in zip(ours, alone, strict=True)]
    assert norms["head"] == pytest.approx(math.sqrt(sum(float(g.square().sum()) for g in rest)))


def test_the_head_follows_its_own_loss_whatever_the_weight():
    grads = []
    for weight in (0.0, 3.0):
        config = run(Auxiliary(head_weight=weight))
        weights = initial_weights(config.architecture, "fan-in", 0)
        weights = {name: w.requires_grad_() for name, w in weights.items()}
        term = AuxiliaryTerm.begin(config, auxiliary.initial(config))
        problems = Splits().batch(0, 50)
        term.losses(plain, weights, torch.from_numpy(encode(problems)), problems, 0)
        grads.append(term.trained["readout"].grad)
    assert torch.equal(*grads) and float(grads[0].norm()) > 0


def test_the_weight_decays_linearly_to_zero():
    head = Auxiliary(head_weight=2.0, head_schedule="decay")
    assert [head.weight(step, 4) for step in range(5)] == [2.0, 1.5, 1.0, 0.5, 0.0]
    assert [Auxiliary(head_weight=2.0).weight(step, 4) for step in (0, 3)] == [2.0, 2.0]


@pytest.mark.parametrize("engine", ENGINES[-1:])
def test_interrupted_anywhere_a_run_with_a_head_has_the_same_bytes(engine, tmp_path):
    config = run(Auxiliary(head="digitwise", head_form="trainable"), engine, n_layers=1)
    whole = training.train(config, tmp_path / "whole")

    def stop(step, loss):
        if step == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(config, tmp_path / "cut", on_step=stop)
    training.train(config, tmp_path / "cut", resume=True)
    for name in ("model.safetensors", "head.safetensors", "head.json", "history.json", "config.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (whole / name).read_bytes(), name


def test_the_head_lies_beside_the_decoder_and_can_be_dropped(tmp_path):
    config = run(Auxiliary(head="additive", head_form="trainable"), n_layers=1)
    folder = training.train(config, tmp_path / config.name)
    one = checkpoint.read(folder)
    assert one.config == config and folder.name == "arithmetic-relu-1layer-additive-trainable-seed0"
    assert one.weights.keys() == config.architecture.shapes.keys()
    head = head_storage.load(folder, config.architecture, one.weights_sha256)
    model, _ = Decoder.from_directory(folder)
    problems = Splits().test
    _, cache = model.run_with_cache(torch.from_numpy(encode(problems))[:, :15].long())
    said = head(cache[head.site][:, 10:15], torch.from_numpy(problems.subtract))
    error = (said - torch.from_numpy(heads.targets("additive", problems))).square()
    told = one.history["head"]["test"]
    assert told["all"]["loss"] == pytest.approx(float(error.mean()), rel=1e-4)
    assert told["all"]["variance"] == pytest.approx(float((problems.answers / 10_000).var()), rel=1e-5)
    assert told["addition"]["n"] + told["subtraction"]["n"] == told["all"]["n"] == 500
    assert "additive, trainable, at blocks.0.hook_resid_mid, weight 1" in (folder / "README.md").read_text()

    for name in ("head.json", "head.safetensors"):
        (folder / name).unlink()
    assert checkpoint.read(folder).weights.keys() == one.weights.keys()
    Decoder.from_directory(folder)


def test_raw_values_are_not_decayed_and_readouts_are():
    run_ = training._Run(run(Auxiliary(head_form="trainable")), _fresh(run(Auxiliary(head_form="trainable"))))
    decay = {id(w): group["weight_decay"] for group in run_.optimizer.param_groups for w in group["params"]}
    assert {name: decay[id(w)] for name, w in run_.head.trained.items()} == {"readout": 0.01, "W_hat": 0, "M_hat": 0}
    assert {decay[id(w)] for w in run_.weights.values()} == {0.01}


def _fresh(config):
    weights = initial_weights(config.architecture, "fan-in", 0) | auxiliary.initial(config)
    return run_state.RunState(weights, run_state.empty_curve(config))


def test_every_validation_has_the_heads_loss_and_both_gradient_norms(tmp_path):
    history = checkpoint.read(training.train(run(Auxiliary(), n_layers=1), tmp_path / "run")).history
    assert [row["step"] for row in history["validations"]] == [4, 8, 9]
    for row in history["validations"]:
        assert row["head_loss"] > 0 and row["grad_norm_cross_entropy"] > 0 and row["grad_norm_head"] > 0
    assert len(history["curve"]["head_loss"]) == len(history["curve"]["head_grad_norm"]) == 9


def test_another_site_takes_the_plain_engine(tmp_path):
    config = run(Auxiliary(head_site="blocks.0.hook_mlp_out"), engine="auto")
    assert choice.settled(config)[0].engine == "plain"
    assert "only the plain engine returns what the head reads" in choice.unavailable(run(config.auxiliary, "eager"))
    with pytest.raises(BadInput, match="only the plain engine"):
        training.train(run(config.auxiliary, "eager"), tmp_path / "no")
    found = checkpoint.read(training.train(config, tmp_path / "run"))
    assert found.config.engine == "plain" and found.history["head"]["test"]["all"]["loss"] > 0


def test_a_run_is_not_resumed_under_another_head(tmp_path):
    config = run(Auxiliary(), n_layers=1)

    def stop(step, loss):
        if step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(config, tmp_path / "run", on_step=stop)
    for other in (None, Auxiliary(head_weight=2.0), Auxiliary(head_form="linear")):
        with pytest.raises(BadInput, match="begun under another configuration"):
            training.train(dataclasses.replace(config, auxiliary=other), tmp_path / "run", resume=True)
    shutil.rmtree(tmp_path / "run.partial")


def test_a_head_that_is_not_finite_stops_the_run(tmp_path):
    config = run(
        Auxiliary(head="additive", head_form="linear", head_weight=1e6), recipe=dataclasses.replace(SHORT, lr=1e30)
    )
    with pytest.raises(training.RunFailed, match="diverged"):
        training.train(config, tmp_path / "run")
