"""The second term of a run's loss: an auxiliary head beside the decoder, its state, what is logged of it.

Total loss = cross-entropy + weight x the head's loss. The weight scales what reaches the decoder; the head itself
always follows its own loss, clipped by its own norm (AdamW is blind to the scale of a gradient, so this differs from
training it on the total only at weight 0, where it watches a decoder that does not know of it).
"""

from types import ModuleType
from typing import Any

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from workbench.engine import plain
from workbench.hill import heads
from workbench.recipe import Auxiliary, RunConfig
from workbench.run_state import HEAD
from workbench.task import Problems, encode

CHUNK = 1_000  # problems a pass when scoring


class AuxiliaryTerm:
    """A head in training: its parameters (`trained`), and the loss it adds."""

    def __init__(self, config: RunConfig, auxiliary: Auxiliary, trained: heads.Named) -> None:
        self.config, self.auxiliary = config, auxiliary
        self.trained = {name: w.to(config.device).requires_grad_() for name, w in trained.items()}
        self.site = auxiliary.site(config.architecture.n_layers)

    @classmethod
    def begin(cls, config: RunConfig, stored: heads.Named) -> "AuxiliaryTerm | None":
        """The term of a configuration, continued from `stored` tensors, or None when it has none."""
        if config.auxiliary is None:
            return None
        trained = {name.removeprefix(HEAD): w for name, w in stored.items() if name.startswith(HEAD)}
        return cls(config, config.auxiliary, trained)

    def _unit(self, trained: heads.Named) -> Tensor:
        return heads.unit_weights(self.auxiliary, trained, self.config.seed).to(self.config.device)

    def _wanted(self, problems: Problems) -> tuple[Bool[Tensor, " batch"], Float[Tensor, "batch place output"]]:
        minus, wanted = (
            torch.from_numpy(problems.subtract),
            torch.from_numpy(heads.targets(self.auxiliary.head, problems)),
        )
        return minus.to(self.config.device), wanted.to(self.config.device)

    def _read(
        self, engine: ModuleType, weights: heads.Named, tokens: UInt8[Tensor, "batch 16"]
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "batch 5 d_model"]]:
        """The cross-entropy, and what the head sees."""
        architecture = self.config.architecture
        if self.auxiliary.every_engine:
            loss, found = engine.loss_and_residuals(weights, tokens, architecture)
        else:
            loss, found = plain.loss_and_sites(weights, tokens, architecture, [self.site])
        return loss, found[self.site]

    def losses(
        self, engine: ModuleType, weights: heads.Named, tokens: UInt8[Tensor, "batch 16"], problems: Problems, step: int
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""], Float[Tensor, ""]]:
        """(cross-entropy, the weighted second term, the head's loss) of a batch; the head has its gradient already.

        The second's gradient is that of weight x the head's loss in the decoder's weights; its value has no meaning.
        """
        cross_entropy, seen = self._read(engine, weights, tokens)
        minus, wanted = self._wanted(problems)
        outside = seen.detach().requires_grad_()
        said = heads.outputs(self.auxiliary, self.trained, self._unit(self.trained), outside, minus)
        loss = heads.squared_error(said, wanted)
        loss.backward()
        assert outside.grad is not None
        weight = self.auxiliary.weight(step, self.config.recipe.steps)
        return cross_entropy, weight * (seen * outside.grad).sum(), loss.detach()

    @torch.no_grad()
    def score(
        self, engine: ModuleType, weights: heads.Named, trained: heads.Named, problems: Problems
    ) -> dict[str, dict[str, Any]]:
        """By operator: n, the head's mean squared error, and the variance of its targets (a constant's best error)."""
        hidden = self.config.problems == "sign-hidden"
        said = []
        for start in range(0, len(problems), CHUNK):
            part = problems[start : start + CHUNK]
            tokens = torch.from_numpy(encode(part, hide_sign=hidden)).to(self.config.device)
            _, seen = self._read(engine, weights, tokens)
            said.append(heads.outputs(self.auxiliary, trained, self._unit(trained), seen, self._wanted(part)[0]))
        minus, wanted = self._wanted(problems)
        error = (torch.cat(said) - wanted).square()
        found = {}
        for name, mask in (("all", torch.ones_like(minus)), ("addition", ~minus), ("subtraction", minus)):
            if count := int(mask.sum()):
                variance = wanted[mask].var(dim=0, correction=0).mean()
                found[name] = {"n": count, "loss": float(error[mask].mean()), "variance": float(variance)}
        return found


def gradient_norms(terms: dict[str, Tensor], weights: heads.Named) -> dict[str, float]:
    """Norm of the gradient of each term in the decoder's weights, before any clipping; the graph is kept."""
    norms = {}
    for name, term in terms.items():
        grads = torch.autograd.grad(term, list(weights.values()), retain_graph=True, allow_unused=True)
        norms[name] = float(torch.stack([g.norm() for g in grads if g is not None]).norm())
    return norms


def initial(config: RunConfig) -> heads.Named:
    """The head's tensors before training, under the names a run's state has for them; none without a head."""
    if config.auxiliary is None:
        return {}
    drawn = heads.initial(config.auxiliary, config.architecture, config.seed)
    return {HEAD + name: w for name, w in drawn.items()}
