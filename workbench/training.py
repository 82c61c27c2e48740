"""One run: schedule, validation, selection, saving, resuming.

A run is a pure function of its configuration: the same configuration gives the same bytes, interrupted or not.
"""

import contextlib
import dataclasses
import hashlib
import math
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import workbench
from workbench import auxiliary, checkpoint, evaluation, run_state
from workbench.auxiliary import AuxiliaryTerm
from workbench.card import card
from workbench.engine import choice
from workbench.errors import BadInput, RunFailed
from workbench.files import make_folder, move_folder, remove_folder, write_atomic
from workbench.hill import head_storage
from workbench.initialise import initial_weights
from workbench.lock import hold
from workbench.native import library
from workbench.recipe import Recipe, RunConfig
from workbench.run_state import RunState
from workbench.splits import Splits
from workbench.task import Problems, encode

OnStep = Callable[[int, float], None]  # (steps done, loss of the last one)

BUSY = "another process is training this run; wait for it, or stop it"
RULE = "lowest validation loss, the earlier step on a tie"


def learning_rate(recipe: Recipe, step: int) -> float:
    """Rate of step 0, 1, ...: linear over the warm-up, then half a cosine that would reach 0 at step `recipe.steps`."""
    if step < recipe.warmup_steps:
        return recipe.lr * (step + 1) / recipe.warmup_steps
    fraction = (step - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps)
    return recipe.lr * 0.5 * (1 + math.cos(math.pi * fraction))


def library_versions(engine: str = "plain") -> dict[str, str]:
    """Versions a run's bytes depend on; for the kernels, the compiler that built them too."""
    python = ".".join(platform.python_version_tuple()[:2])
    found = {"workbench": workbench.__version__, "python": python, "torch": torch.__version__, "numpy": np.__version__}
    return found | ({"compiler": library.compiler()} if engine == "native" else {})


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def significant(value: float) -> float:
    """`value` to six significant digits, as curves store it."""
    return float(f"{value:.6g}")


class _Run:
    """The moving parts of a run between two saves."""

    def __init__(self, config: RunConfig, state: RunState) -> None:
        self.config, self.state = config, state
        self.splits = Splits(config.data_seed, config.problems)
        self.engine = choice.engine(config.engine)
        decoder = [name for name in state.weights if name in config.architecture.shapes]
        self.weights = {name: state.weights[name].to(config.device).requires_grad_() for name in decoder}
        self.head = AuxiliaryTerm.begin(config, state.weights)
        self.optimizer = torch.optim.AdamW(self._groups(), lr=config.recipe.lr, fused=True)
        for name, parameter in self.trained.items():
            if state.step:
                self.optimizer.state[parameter] = {
                    "step": torch.tensor(float(state.step), device=config.device),
                    "exp_avg": state.exp_avg[name].to(config.device),
                    "exp_avg_sq": state.exp_avg_sq[name].to(config.device),
                }

    @property
    def trained(self) -> dict[str, Tensor]:
        """Every parameter under its name in the run's state: the decoder's, then the head's."""
        head = self.head.trained if self.head else {}
        return self.weights | {run_state.HEAD + name: w for name, w in head.items()}

    def _groups(self) -> list[dict[str, Any]]:
        """The optimizer's: weight decay as the recipe says, but none on raw values, which it would pull from -1, 1."""
        raw = [w for name, w in self.trained.items() if name.endswith(("W_hat", "M_hat"))]
        decayed = [w for w in self.trained.values() if not any(w is other for other in raw)]
        groups = [{"params": decayed, "weight_decay": self.config.recipe.weight_decay}]
        return groups + ([{"params": raw, "weight_decay": 0.0}] if raw else [])

    def step(self) -> float:
        """One optimizer step; returns its cross-entropy, RunFailed when loss or gradient is not finite."""
        recipe, done = self.config.recipe, self.state.step
        problems = self.splits.batch(done, recipe.batch_size)
        hidden = self.config.problems == "sign-hidden"
        tokens = torch.from_numpy(encode(problems, hide_sign=hidden)).to(self.config.device)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(recipe, done)
        self.optimizer.zero_grad()
        values = self._backward(tokens, problems)
        values["grad_norm"] = torch.nn.utils.clip_grad_norm_(self.weights.values(), recipe.grad_clip)
        if self.head:
            values["head_grad_norm"] = torch.nn.utils.clip_grad_norm_(self.head.trained.values(), recipe.grad_clip)
        found = {name: value.item() for name, value in values.items()}
        if not all(map(math.isfinite, found.values())):
            shown = ", ".join(f"{name} {value}" for name, value in found.items())
            raise RunFailed(f"diverged at step {done}: {shown}")
        self.optimizer.step()
        for name, value in found.items():
            self.state.curve[name].append(significant(value))
        self.state.step += 1
        return found["loss"]

    def _backward(self, tokens: Tensor, problems: Problems) -> dict[str, Tensor]:
        """Leave the gradients in the parameters; the losses."""
        if self.head is None:
            loss = self.engine.loss(self.weights, tokens, self.config.architecture)
            loss.backward()
            return {"loss": loss}
        loss, weighted, head_loss = self.head.losses(self.engine, self.weights, tokens, problems, self.state.step)
        if self.validates(self.state.step + 1):
            terms = {"cross_entropy": loss, "head": weighted}
            self.term_norms = auxiliary.gradient_norms(terms, self.weights)
        (loss + weighted).backward()
        return {"loss": loss, "head_loss": head_loss}

    def validates(self, step: int) -> bool:
        """Whether the run is scored and saved after so many steps."""
        return step % self.config.recipe.validation_every == 0 or step == self.config.recipe.steps

    def validate(self) -> None:
        """Score the validation problems and keep the weights when none before were better."""
        weights = {name: w.detach() for name, w in self.weights.items()}
        outcome = evaluation.run(weights, self.config.architecture, self.splits.validation, self.config.problems)
        found = evaluation.score(outcome)
        if not math.isfinite(found.loss):
            raise RunFailed(f"diverged by step {self.state.step}: validation loss {found.loss}")
        best = min((row["loss"] for row in self.state.validations), default=math.inf)
        if found.loss < best:
            self.state.best = {name: w.detach().cpu().clone() for name, w in self.trained.items()}
            self.state.best_step = self.state.step
        row = {"step": self.state.step, "kept": found.loss < best, **dataclasses.asdict(found)}
        if self.head:
            told = self.head.score(self.engine, weights, self.head.trained, self.splits.validation)
            row |= {"head_loss": significant(told["all"]["loss"])}
            row |= {f"grad_norm_{name}": significant(value) for name, value in self.term_norms.items()}
        self.state.validations.append(row)

    def save(self, partial: Path) -> None:
        """Write everything a resumed run needs, in one atomic file."""
        moments = {name: self.optimizer.state[parameter] for name, parameter in self.trained.items()}
        self.state.weights = {name: w.detach().cpu() for name, w in self.trained.items()}
        self.state.exp_avg = {name: moment["exp_avg"].cpu() for name, moment in moments.items()}
        self.state.exp_avg_sq = {name: moment["exp_avg_sq"].cpu() for name, moment in moments.items()}
        run_state.save(self.state, partial)


def train(config: RunConfig, folder: Path, *, resume: bool = False, on_step: OnStep | None = None) -> Path:
    """Train `config` into `folder` and return it; an unfinished run lives in `folder.partial` meanwhile.

    With `resume`, a finished run is left as it is and an unfinished one continues to the same bytes. Raises BadInput
    when something stands where the run would go, RunFailed when it diverges (what was saved stays).
    """
    partial = checkpoint.partial_folder(folder)
    if folder.exists():
        return _already_there(config, folder, resume)
    if partial.exists() and not resume:
        raise BadInput(f"{partial}: an unfinished run; add --resume to continue it, or remove the folder")
    if config.device.startswith("cuda") and int(config.device[5:] or 0) >= torch.cuda.device_count():
        raise BadInput(f"no device {config.device!r} here: torch sees {torch.cuda.device_count()} of CUDA; use cpu")
    with hold(partial, BUSY), _threads(config.threads):
        if folder.exists():  # that process has finished it meanwhile
            return _already_there(config, folder, resume)
        run = _Run(*_begin(config, partial))
        try:
            _continue(run, partial, on_step)
        except RunFailed as failure:
            write_atomic(partial / checkpoint.HISTORY, checkpoint.history_bytes(_curves(run.state, str(failure))))
            raise RunFailed(f"{folder.name}: {failure}; what it had is in {partial}; a lower --lr may hold") from None
        return _finish(run, partial, folder)


def _already_there(config: RunConfig, folder: Path, resume: bool) -> Path:
    if not resume:
        raise BadInput(f"{folder}: exists already; choose another --out, or remove the folder")
    if not config.accepts(checkpoint.read(folder).config):
        raise BadInput(f"{folder}: finished under another configuration; choose another --out")
    remove_folder(checkpoint.partial_folder(folder))
    return folder


def _begin(config: RunConfig, partial: Path) -> tuple[RunConfig, RunState]:
    """The configuration with its engine, and the state to continue from: what was saved, or the initial weights."""
    if (partial / checkpoint.CONFIG).exists():
        found, versions, _ = checkpoint.read_config(partial)
        if not config.accepts(found):
            raise BadInput(f"{partial}: begun under another configuration; remove the folder or choose another --out")
        if reason := choice.unavailable(found):
            raise BadInput(f"{partial}: begun with engine {found.engine}, which cannot run here: {reason}")
        if versions != library_versions(found.engine):
            raise BadInput(
                f"{partial}: begun under {versions}, now {library_versions(found.engine)}; the bytes would differ: use "
                "the same versions, or remove the folder"
            )
        if (partial / checkpoint.STATE).exists():
            return found, run_state.load(partial, found)
    config, _ = choice.settled(config)
    write_atomic(partial / checkpoint.CONFIG, checkpoint.config_bytes(config, library_versions(config.engine), None))
    weights = initial_weights(config.architecture, config.recipe.init, config.seed)
    return config, RunState(weights | auxiliary.initial(config), run_state.empty_curve(config))


def _continue(run: _Run, partial: Path, on_step: OnStep | None) -> None:
    recipe, state = run.config.recipe, run.state
    while state.step < recipe.steps:
        loss = run.step()
        if run.validates(state.step):
            run.validate()
            run.save(partial)
        if on_step is not None:
            on_step(state.step, loss)


def _curves(state: RunState, stopped: str | None) -> dict[str, Any]:
    """history.json's part that grows with the run."""
    selection = {"rule": RULE, "kept_step": state.best_step}
    if stopped:
        selection["stopped"] = stopped
    return {"selection": selection, "validations": state.validations, "curve": state.curve}


def _kept_head(run: _Run) -> dict[str, Tensor]:
    """The head's tensors at the step that is kept."""
    kept = run.state.best
    return {name.removeprefix(run_state.HEAD): w for name, w in kept.items() if name.startswith(run_state.HEAD)}


def _head_results(run: _Run) -> dict[str, Any]:
    """history.json's part about the head at the kept step: its error by split and operator."""
    if run.head is None:
        return {}
    device = run.config.device
    weights = {name: run.state.best[name].to(device) for name in run.weights}
    trained = {name: w.to(device) for name, w in _kept_head(run).items()}
    splits = {"validation": run.splits.validation, "test": run.splits.test}
    return {"head": {name: run.head.score(run.engine, weights, trained, given) for name, given in splits.items()}}


def _finish(run: _Run, partial: Path, folder: Path) -> Path:
    """Write the finished run beside its state, then rename it into place; the rename is the moment it exists."""
    config, state = run.config, run.state
    best = {name: state.best[name] for name in run.weights}
    scores = evaluation.on_splits(
        {name: w.to(config.device) for name, w in best.items()}, config.architecture, run.splits
    )
    results = {
        split: {name: dataclasses.asdict(score) for name, score in groups.items()} for split, groups in scores.items()
    }
    history = {"results": results, **_head_results(run), **_curves(state, None)}
    raw = checkpoint.weight_bytes({name: w.numpy() for name, w in best.items()})
    sha256 = hashlib.sha256(raw).hexdigest()
    ready = make_folder(partial / "finished")
    if config.auxiliary:
        trained = _kept_head(run)
        head_storage.save(
            head_storage.finished(config.auxiliary, config.architecture, trained, config.seed), ready, sha256
        )
    write_atomic(ready / checkpoint.WEIGHTS, raw)
    write_atomic(ready / checkpoint.HISTORY, checkpoint.history_bytes(history))
    write_atomic(ready / checkpoint.CARD, card(config, history, sha256, folder.name).encode())
    write_atomic(ready / checkpoint.CONFIG, checkpoint.config_bytes(config, library_versions(config.engine), sha256))
    move_folder(ready, folder)
    remove_folder(partial)
    return folder
