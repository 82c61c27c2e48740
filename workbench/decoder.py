"""The decoder as a TransformerLens model: `workbench.forward` computes, this class names, hooks and loads.

    model, config = Decoder.from_directory("checkpoints/arithmetic-relu-2layer-seed0")
    logits, cache = model.run_with_cache("1234-5678")
    cache["pattern", 0]  # [batch, head, query, key]

TransformerLens's tools run on it unchanged; docs/transformerlens.md lists each with the test that shows it. Those that
cannot: JacobianLens.fit and whatever starts from it (accepts TransformerBridge only), evals.induction_loss (draws token
ids up to 20,000), `apply_ln=True` together with `project_output_onto` (asks for a LayerNorm scale; use apply_ln=False,
which is the same here), EAP-IG (`ig_steps > 1`, not written in TransformerLens 4.3), `detect_head` on all sixteen
tokens (wants fewer than n_ctx; give it text with `=`, such as "1234+0567=+0180").
"""

import dataclasses
import difflib
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor, nn
from transformer_lens import ActivationCache, HookedRootModule
from transformer_lens.hook_points import HookPoint

from workbench import checkpoint as on_disk
from workbench import forward as functions
from workbench.checkpoint import Checkpoint
from workbench.decoder_parts import GATES, Block, Embed, PosEmbed, StackedWeights, Unembed, tool_config
from workbench.decoder_text import Characters, Text
from workbench.errors import BadInput
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, Init, Recipe, RunConfig, Variant
from workbench.task import ANSWER_POSITIONS, ANSWER_TOKENS, CHARACTERS, N_CTX

Hooks = Sequence[tuple[str | Callable[[str], bool], Callable[..., Any]]]


class Decoder(StackedWeights, HookedRootModule):
    """The task's causal decoder with TransformerLens's hooks, weights and calls.

    `state_dict` holds the tensors of `Architecture.shapes` and nothing else. The weights of a new Decoder are zero:
    load them (`from_directory`, `from_checkpoint`, `load_state_dict`) or draw them (`untrained`). `problems` is the
    variant the model is for (sign-hidden changes how text becomes tokens), `init` what `reset_parameters` draws from.
    """

    def __init__(self, architecture: Architecture, *, problems: Variant = "all", init: Init = Recipe.init) -> None:
        super().__init__()
        self.architecture = architecture
        self.cfg = tool_config(architecture)
        self.tokenizer = Characters(hide_sign=problems == "sign-hidden")
        self.embed = Embed("embed", architecture, init)
        self.hook_embed = HookPoint()
        self.pos_embed = PosEmbed("pos_embed", architecture, init)
        self.hook_pos_embed = HookPoint()
        self.blocks = nn.ModuleList(Block(layer, architecture, init) for layer in range(architecture.n_layers))
        self.unembed = Unembed("unembed", architecture, init)
        self.setup()

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> "Decoder":
        """The trained model of a checkpoint already read, in eval mode."""
        config = checkpoint.config
        model = cls(config.architecture, problems=config.problems, init=config.recipe.init)
        model.load_state_dict(functions.tensors(checkpoint.weights))
        return model.eval()

    @classmethod
    def from_directory(cls, path: str | Path) -> tuple["Decoder", RunConfig]:
        """The trained model in a checkpoint's folder, in eval mode, and its configuration; raises BadInput."""
        checkpoint = on_disk.read(Path(path))
        return cls.from_checkpoint(checkpoint), checkpoint.config

    @classmethod
    def untrained(cls, architecture: Architecture, init: Init, seed: int, *, problems: Variant = "all") -> "Decoder":
        """A model as a run of that initialisation and seed begins, in eval mode: the control for a trained one."""
        model = cls(architecture, problems=problems, init=init)
        model.load_state_dict(initial_weights(architecture, init, seed))
        return model.eval()

    def forward(
        self,
        input: Tensor | Text,
        return_type: Literal["logits", "loss", "both"] | None = "logits",
        loss_per_token: bool = False,
    ) -> Any:
        """Logits [batch, pos, d_vocab] of token ids or text, or the task's loss, or both, or None.

        The loss is the mean cross-entropy (nats a digit) of the five answer digits, as in training, and needs whole
        problems of sixteen tokens; `loss_per_token` gives [batch, 5]. Raises BadInput for ids outside 0..12, more than
        sixteen positions, or an unknown `return_type`.
        """
        tokens = self._tokens(input)
        logits = functions.logits(dict(self.named_parameters()), tokens, self.architecture, self._tap, self.extras)
        match return_type:
            case "logits":
                return logits
            case "loss":
                return self._loss(logits, tokens, loss_per_token)
            case "both":
                return logits, self._loss(logits, tokens, loss_per_token)
            case None:
                return None
        raise BadInput(f"return_type is {str(return_type)[:40]!r}, expected logits, loss, both or None")

    def _tap(self, name: str, value: Tensor) -> Tensor:
        return self.hook_dict[name](value)

    def _tokens(self, input: Tensor | Text) -> Integer[Tensor, "batch pos"]:
        if not isinstance(input, Tensor):
            return self.to_tokens(input)
        tokens = input.unsqueeze(0) if input.ndim == 1 else input
        if tokens.ndim != 2 or tokens.is_floating_point() or not 1 <= tokens.shape[1] <= N_CTX:
            raise BadInput(
                f"tokens are {input.dtype} of shape {list(input.shape)}, expected integers [batch, 1 to {N_CTX}]"
            )
        if tokens.numel() and not (tokens.min() >= 0 and tokens.max() < len(CHARACTERS)):
            raise BadInput(f"a token id is outside 0..{len(CHARACTERS) - 1}")
        return tokens.to(self.W_E.device)

    def _loss(self, logits: Tensor, tokens: Tensor, per_token: bool) -> Float[Tensor, ""] | Float[Tensor, "batch 5"]:
        if tokens.shape[1] != N_CTX:
            raise BadInput(f"the loss needs whole problems of {N_CTX} tokens, found {tokens.shape[1]}")
        answers = logits[:, ANSWER_POSITIONS].transpose(1, 2)
        losses = F.cross_entropy(answers, tokens[:, ANSWER_TOKENS].long(), reduction="none")
        return losses if per_token else losses.mean()

    def run_with_cache(self, *model_args: Any, return_cache_object: bool = True, **options: Any) -> tuple[Any, Any]:
        """The parent's, options and all, with the activations in an ActivationCache (or, on request, its dict)."""
        if model_args:
            model_args = (self._tokens(model_args[0]), *model_args[1:])
        output, activations = super().run_with_cache(*model_args, **options)
        if not return_cache_object:
            return output, activations
        return output, ActivationCache(activations, self, has_batch_dim=not options.get("remove_batch_dim", False))

    def get_caching_hooks(self, names_filter: Any = None, *args: Any, **options: Any) -> tuple[dict, list, list]:
        """The parent's; a hook asked for by name must exist and be on, a predicate sees only those that are."""
        if isinstance(names_filter, (str, list)):
            for name in [names_filter] if isinstance(names_filter, str) else names_filter:
                self._require_hook(name)
        elif names_filter is None or callable(names_filter):
            wanted = names_filter
            names_filter = lambda name: self._is_on(name) and (wanted is None or wanted(name))  # noqa: E731
        return super().get_caching_hooks(names_filter, *args, **options)

    def hooks(self, fwd_hooks: Hooks = (), bwd_hooks: Hooks = (), *args: Any, **options: Any) -> Any:
        """The parent's context manager; BadInput for a name that is no hook or is not switched on."""
        for name, _ in (*fwd_hooks, *bwd_hooks):
            if isinstance(name, str):
                self._require_hook(name)
        return super().hooks(list(fwd_hooks), list(bwd_hooks), *args, **options)

    def add_hook(self, name: str | Callable[[str], bool], *args: Any, **options: Any) -> None:
        """The parent's; BadInput for a name that is no hook or is not switched on."""
        if isinstance(name, str):
            self._require_hook(name)
        super().add_hook(name, *args, **options)

    def _is_on(self, name: str) -> bool:
        flag = GATES.get(name.rpartition(".")[2])
        return flag is None or getattr(self.extras, flag)

    def _require_hook(self, name: str) -> None:
        """A hook that never fires would leave a result untouched without a word, so it is refused."""
        if name not in self.hook_dict:
            close = difflib.get_close_matches(name, self.hook_dict, n=3)
            raise BadInput(f"no hook {name[:80]!r}; close: {', '.join(close) or 'none, see model.hook_dict'}")
        if not self._is_on(name):
            raise BadInput(f"{name} fires only after model.set_use_{GATES[name.rpartition('.')[2]]}(True)")

    @property
    def extras(self) -> functions.Extras:
        """Which per-head tensors are computed, read off `cfg`."""
        names = [field.name for field in dataclasses.fields(functions.Extras)]
        return functions.Extras(**{name: bool(getattr(self.cfg, f"use_{name}")) for name in names})

    def _switch(self, flag: str, on: bool) -> None:
        dataclasses.replace(self.extras, **{flag: on})  # refuses two that exclude each other
        setattr(self.cfg, f"use_{flag}", on)

    def set_use_attn_result(self, use_attn_result: bool) -> None:
        """Compute what each head adds (attn.hook_result) and sum it; changes logits by rounding only."""
        self._switch("attn_result", use_attn_result)

    def set_use_split_qkv_input(self, use_split_qkv_input: bool) -> None:
        """Give each head its own attn.hook_q_input, hook_k_input and hook_v_input."""
        self._switch("split_qkv_input", use_split_qkv_input)

    def set_use_attn_in(self, use_attn_in: bool) -> None:
        """Give each head its own attn.hook_attn_in."""
        self._switch("attn_in", use_attn_in)

    def set_use_hook_mlp_in(self, use_hook_mlp_in: bool) -> None:
        """Fire hook_mlp_in on the copy of resid_mid that the MLP reads."""
        self._switch("hook_mlp_in", use_hook_mlp_in)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Decoder":
        """What `.double()`, `.to()` and `.cuda()` go through; `cfg` follows, where tools read dtype and device."""
        super()._apply(fn, recurse)
        self.cfg.dtype, self.cfg.device = self.W_E.dtype, str(self.W_E.device)
        return self


def load_all(folder: str | Path) -> Iterator[tuple[Decoder, RunConfig]]:
    """Every finished checkpoint that is a direct child of `folder`: relu before bilinear, then layers, then seed.

    Warns about unfinished runs, which are skipped. Raises BadInput when one does not match its config or hash.
    """
    _, unfinished = on_disk.find(Path(folder))
    for path in unfinished:
        warnings.warn(f"{path}: an unfinished run, skipped; finish it with `workbench grid`", stacklevel=2)
    for checkpoint in on_disk.read_all(Path(folder)):
        yield Decoder.from_checkpoint(checkpoint), checkpoint.config
