"""What a hooked decoder is made of: raw Parameters and HookPoints under TransformerLens's names, and views of them.

The parts hold; `workbench.forward` computes. There are no biases: the properties `b_*` are zeros for tools that ask.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from transformer_lens import FactoredMatrix
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.hook_points import HookPoint
from transformer_lens.model_bridge.composition_scores import CompositionScores
from transformer_lens.utilities.matrix import composition_scores

from workbench.decoder_text import TextCalls
from workbench.errors import BadInput
from workbench.initialise import standard_deviation
from workbench.recipe import Architecture, Init

# Hooks that fire only after `model.set_use_<flag>(True)`, by their last name.
GATES = {
    "hook_result": "attn_result",
    "hook_attn_in": "attn_in",
    "hook_q_input": "split_qkv_input",
    "hook_k_input": "split_qkv_input",
    "hook_v_input": "split_qkv_input",
    "hook_mlp_in": "hook_mlp_in",
}


def tool_config(architecture: Architecture) -> TransformerBridgeConfig:
    """What TransformerLens's tools read off `model.cfg`; of its two classes, the one that has `use_hook_mlp_in`."""
    shape = architecture
    return TransformerBridgeConfig(
        d_model=shape.d_model,
        d_head=shape.d_head,
        n_layers=shape.n_layers,
        n_ctx=shape.n_ctx,
        n_heads=shape.n_heads,
        d_mlp=shape.d_mlp,
        d_vocab=shape.d_vocab,
        d_vocab_out=shape.d_vocab,
        n_params=shape.n_params,
        model_name=f"arithmetic-{shape.mlp}-{shape.n_layers}layer",
        act_fn="relu" if shape.mlp == "relu" else "identity",
        gated_mlp=shape.mlp == "bilinear",
        attn_scale=math.sqrt(shape.d_head),
        normalization_type=None,
        default_prepend_bos=False,
        tokenizer_prepends_bos=False,
        device="cpu",
    )


class Part(nn.Module):
    """A module that owns raw parameters, zero until weights are loaded."""

    def __init__(self, prefix: str, architecture: Architecture, init: Init) -> None:
        super().__init__()
        self.prefix, self.d_model = prefix, architecture.d_model
        self.init: Init = init
        for name, shape in architecture.shapes.items():
            owner, _, own_name = name.rpartition(".")
            if owner == prefix:
                self.register_parameter(own_name, nn.Parameter(torch.zeros(shape)))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw new initial weights from torch's global generator, which TransformerLens's `reinitialized` seeds."""
        for name, parameter in self.named_parameters(recurse=False):
            std = standard_deviation(f"{self.prefix}.{name}", tuple(parameter.shape), self.d_model, self.init)
            parameter.normal_(0, std)

    def zeros(self, *shape: int) -> Float[Tensor, "..."]:
        """Zeros of the parameters' dtype, on their device."""
        return next(self.parameters(recurse=False)).new_zeros(shape)


class Embed(Part):
    """Token embedding `W_E` [d_vocab, d_model]."""

    W_E: nn.Parameter


class PosEmbed(Part):
    """Learned position embedding `W_pos` [n_ctx, d_model]."""

    W_pos: nn.Parameter


class Unembed(Part):
    """Unembedding `W_U` [d_model, d_vocab], not tied to the embedding."""

    W_U: nn.Parameter

    @property
    def b_U(self) -> Float[Tensor, " d_vocab"]:
        """Zeros: there is no bias."""
        return self.zeros(self.W_U.shape[1])


class Attention(Part):
    """`W_Q`, `W_K`, `W_V` [head, d_model, d_head] and `W_O` [head, d_head, d_model] of one layer."""

    W_Q: nn.Parameter
    W_K: nn.Parameter
    W_V: nn.Parameter
    W_O: nn.Parameter

    def __init__(self, prefix: str, architecture: Architecture, init: Init) -> None:
        super().__init__(prefix, architecture, init)
        self.hook_attn_in, self.hook_result = HookPoint(), HookPoint()
        self.hook_q_input, self.hook_k_input, self.hook_v_input = HookPoint(), HookPoint(), HookPoint()
        self.hook_q, self.hook_k, self.hook_v = HookPoint(), HookPoint(), HookPoint()
        self.hook_attn_scores, self.hook_pattern, self.hook_z = HookPoint(), HookPoint(), HookPoint()

    @property
    def b_Q(self) -> Float[Tensor, "head d_head"]:
        """Zeros: there is no bias; `b_K` and `b_V` are the same."""
        return self.zeros(len(self.W_Q), self.W_Q.shape[2])

    b_K = b_V = b_Q

    @property
    def b_O(self) -> Float[Tensor, " d_model"]:
        """Zeros: there is no bias."""
        return self.zeros(self.d_model)


class MLP(Part):
    """`W_in` [d_model, d_mlp] and `W_out` [d_mlp, d_model] of one layer; bilinear also `W_gate` [d_model, d_mlp]."""

    W_in: nn.Parameter
    W_out: nn.Parameter

    def __init__(self, prefix: str, architecture: Architecture, init: Init) -> None:
        super().__init__(prefix, architecture, init)
        self.hook_pre, self.hook_post = HookPoint(), HookPoint()
        if architecture.mlp == "bilinear":
            self.hook_pre_linear = HookPoint()

    @property
    def b_in(self) -> Float[Tensor, " d_mlp"]:
        """Zeros: there is no bias."""
        return self.zeros(len(self.W_out))

    @property
    def b_out(self) -> Float[Tensor, " d_model"]:
        """Zeros: there is no bias."""
        return self.zeros(self.d_model)


class Block(nn.Module):
    """One layer: `attn`, `mlp` and the hooks of the residual stream around them."""

    hook_out_is_single_residual_stream = True  # the logit lens refuses a block that does not say so

    def __init__(self, layer: int, architecture: Architecture, init: Init) -> None:
        super().__init__()
        self.attn = Attention(f"blocks.{layer}.attn", architecture, init)
        self.mlp = MLP(f"blocks.{layer}.mlp", architecture, init)
        self.hook_resid_pre, self.hook_resid_mid, self.hook_resid_post = HookPoint(), HookPoint(), HookPoint()
        self.hook_attn_out, self.hook_mlp_in, self.hook_mlp_out = HookPoint(), HookPoint(), HookPoint()


class StackedWeights(TextCalls, nn.Module):
    """TransformerLens's model-wide views of the weights: every layer stacked, circuits factored, biases zero."""

    cfg: TransformerBridgeConfig
    blocks: nn.ModuleList

    def _stacked(self, name: str) -> Float[Tensor, "layer ..."]:
        return torch.stack([self.get_parameter(f"blocks.{layer}.{name}") for layer in range(self.cfg.n_layers)])

    def _zeros(self, *shape: int) -> Float[Tensor, "..."]:
        return self.W_E.new_zeros(shape)

    @property
    def W_E(self) -> Float[Tensor, "d_vocab d_model"]:
        """Token embedding."""
        return self.get_parameter("embed.W_E")

    @property
    def W_pos(self) -> Float[Tensor, "n_ctx d_model"]:
        """Position embedding."""
        return self.get_parameter("pos_embed.W_pos")

    @property
    def W_E_pos(self) -> Float[Tensor, "both d_model"]:
        """Token embedding, then position embedding, in one matrix."""
        return torch.cat([self.W_E, self.W_pos])

    @property
    def W_U(self) -> Float[Tensor, "d_model d_vocab"]:
        """Unembedding."""
        return self.get_parameter("unembed.W_U")

    @property
    def W_Q(self) -> Float[Tensor, "layer head d_model d_head"]:
        """Query weights."""
        return self._stacked("attn.W_Q")

    @property
    def W_K(self) -> Float[Tensor, "layer head d_model d_head"]:
        """Key weights."""
        return self._stacked("attn.W_K")

    @property
    def W_V(self) -> Float[Tensor, "layer head d_model d_head"]:
        """Value weights."""
        return self._stacked("attn.W_V")

    @property
    def W_O(self) -> Float[Tensor, "layer head d_head d_model"]:
        """Output weights."""
        return self._stacked("attn.W_O")

    @property
    def W_in(self) -> Float[Tensor, "layer d_model d_mlp"]:
        """MLP input weights; W_R of the bilinear MLP."""
        return self._stacked("mlp.W_in")

    @property
    def W_gate(self) -> Float[Tensor, "layer d_model d_mlp"] | None:
        """W_L of the bilinear MLP; None for relu, as in TransformerLens."""
        return self._stacked("mlp.W_gate") if self.cfg.gated_mlp else None

    @property
    def W_out(self) -> Float[Tensor, "layer d_mlp d_model"]:
        """MLP output weights."""
        return self._stacked("mlp.W_out")

    @property
    def b_Q(self) -> Float[Tensor, "layer head d_head"]:
        """Zeros, like `b_K` and `b_V`."""
        return self._zeros(self.cfg.n_layers, self.cfg.n_heads, self.cfg.d_head)

    b_K = b_V = b_Q

    @property
    def b_O(self) -> Float[Tensor, "layer d_model"]:
        """Zeros, like `b_out`."""
        return self._zeros(self.cfg.n_layers, self.cfg.d_model)

    b_out = b_O

    @property
    def b_in(self) -> Float[Tensor, "layer d_mlp"]:
        """Zeros."""
        return self._zeros(*self.W_out.shape[:2])

    @property
    def b_U(self) -> Float[Tensor, " d_vocab"]:
        """Zeros."""
        return self._zeros(self.cfg.d_vocab)

    @property
    def QK(self) -> FactoredMatrix:
        """`W_Q W_K^T` per layer and head (Elhage et al. 2021), without the 1/sqrt(d_head) of the scores."""
        return FactoredMatrix(self.W_Q, self.W_K.transpose(-2, -1))

    @property
    def OV(self) -> FactoredMatrix:
        """`W_V W_O` per layer and head (Elhage et al. 2021)."""
        return FactoredMatrix(self.W_V, self.W_O)

    def all_composition_scores(self, mode: Literal["Q", "K", "V"]) -> CompositionScores:
        """`|OV QK| / (|OV| |QK|)` and the like for every earlier and later head (Elhage et al. 2021), else 0."""
        circuits = {"Q": self.QK, "K": self.QK.T, "V": self.OV}
        if mode not in circuits:
            raise BadInput(f"mode is {str(mode)[:40]!r}, expected Q, K or V")
        scores = composition_scores(self.OV, circuits[mode])
        layers = torch.arange(self.cfg.n_layers, device=scores.device)
        earlier = layers[:, None, None, None] < layers[None, None, :, None]
        return CompositionScores(scores.where(earlier, 0.0), layers.tolist(), self.all_head_labels)

    @property
    def all_head_labels(self) -> list[str]:
        """`L0H0`, `L0H1`, ..."""
        return [f"L{layer}H{head}" for layer in range(self.cfg.n_layers) for head in range(self.cfg.n_heads)]

    def blocks_with(self, submodule: str) -> list[tuple[int, nn.Module]]:
        """(layer, block) of every block that has a part of that name: all of them for `attn` and `mlp`."""
        return [(layer, block) for layer, block in enumerate(self.blocks) if hasattr(block, submodule)]

    def accumulated_bias(
        self, layer: int, mlp_input: bool = False, include_mlp_biases: bool = True
    ) -> Float[Tensor, " d_model"]:
        """Zeros: what the biases up to a layer add to the residual stream."""
        return self._zeros(self.cfg.d_model)

    def tokens_to_residual_directions(self, tokens: str | int | Integer[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Unembedding directions [..., d_model] of tokens; one token, even as a tensor of one, gives [d_model]."""
        if isinstance(tokens, str):
            tokens = self.to_single_token(tokens)
        ids = torch.as_tensor(tokens, device=self.W_U.device).long()
        return self.W_U.T[ids.reshape(()) if ids.numel() == 1 else ids]
