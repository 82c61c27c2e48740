"""Tools that read weights and patterns: SVDInterpreter, FactoredMatrix, composition scores, affinity, detect_head."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformer_lens import FactoredMatrix, SVDInterpreter
from transformer_lens.head_detector import detect_head
from transformer_lens.tools.analysis import attention_head_subspace_affinity
from transformer_lens.utilities import composition_scores

from workbench.decoder import Decoder

PROMPT = "1234+0567=+0180"  # fifteen tokens: detect_head wants fewer than the sixteen of the context


def up_to_sign(found: Tensor, expected: Tensor) -> bool:
    """Columns equal, each up to its sign, as singular vectors are."""
    signs = torch.sign((found * expected).sum(0))
    return torch.allclose(found * signs, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["OV", "w_in", "w_out"])
def test_singular_vectors_are_those_of_the_named_matrix(model: Decoder, kind: Any) -> None:
    layer = model.cfg.n_layers - 1
    head = 3 if kind == "OV" else None
    found = SVDInterpreter(model).get_singular_vectors(kind, layer, num_vectors=4, head_index=head)
    matrices = {
        "OV": model.W_V[layer, 3] @ model.W_O[layer, 3],
        "w_in": model.W_in[layer].T,
        "w_out": model.W_out[layer],
    }
    with torch.no_grad():
        right = torch.linalg.svd(matrices[kind]).Vh[:4]
        assert found.shape == (13, 1, 4)
        assert up_to_sign(found[:, 0], model.W_U.T @ right.T)


def test_factored_circuits_have_the_spectrum_of_their_product(model: Decoder) -> None:
    for circuit in (model.QK, model.OV):
        assert isinstance(circuit, FactoredMatrix)
        whole = circuit.AB[0, 2]
        assert torch.allclose(circuit.S[0, 2], torch.linalg.svdvals(whole)[:8], rtol=0, atol=1e-10)
        assert circuit.norm()[0, 2].item() == pytest.approx(whole.norm().item(), rel=1e-9)
        eigenvalues = torch.linalg.eigvals(whole).abs().sort(descending=True).values[:8]
        assert torch.allclose(circuit.eigenvalues[0, 2].abs().sort(descending=True).values, eigenvalues, atol=1e-8)
    full = model.W_E @ model.OV[0, 1] @ model.W_U  # the path from token to logit through one head
    assert torch.allclose(full.AB, model.W_E @ model.W_V[0, 1] @ model.W_O[0, 1] @ model.W_U, atol=1e-12)


@pytest.mark.parametrize("mode", ["Q", "K", "V"])
def test_composition_scores_are_norms_of_products(model: Decoder, mode: Any) -> None:
    found = model.all_composition_scores(mode)
    n = model.cfg.n_layers
    assert found.shape == (n, 4, n, 4)
    assert found.head_labels == [f"L{layer}H{head}" for layer in range(n) for head in range(4)]
    if n == 1:
        assert not found.scores.any()  # no earlier layer
        return
    left = model.W_V[0, 2] @ model.W_O[0, 2]
    QK = model.W_Q[1, 3] @ model.W_K[1, 3].T
    right = {"Q": QK, "K": QK.T, "V": model.W_V[1, 3] @ model.W_O[1, 3]}[mode]
    expected = (left @ right).norm() / left.norm() / right.norm()
    assert found[0, 2, 1, 3].item() == pytest.approx(expected.item(), rel=1e-9)
    assert not found[1].any()  # a later head writes nothing that an earlier one reads
    direct = composition_scores(model.OV, {"Q": model.QK, "K": model.QK.T, "V": model.OV}[mode])
    assert torch.equal(direct[0, :, 1], found[0, :, 1])


@pytest.mark.parametrize("role", ["Q", "K", "V"])
def test_head_affinity_is_the_overlap_of_the_column_spaces(model: Decoder, role: Any) -> None:
    found = attention_head_subspace_affinity(model, target_role=role, layer_order="all")
    n = model.cfg.n_layers
    assert found.scores.shape == (n, 4, n, 4)
    target = {"Q": model.W_Q, "K": model.W_K, "V": model.W_V}[role]
    with torch.no_grad():
        a, b = torch.linalg.qr(model.W_O[0, 1].T).Q, torch.linalg.qr(target[n - 1, 2]).Q
        assert found.scores[0, 1, n - 1, 2].item() == pytest.approx((a.T @ b).square().sum().item(), rel=1e-9)


def test_uniform_attention_scores_as_counted_by_hand(model: Decoder) -> None:
    """With W_Q zero every query t spreads 1/(t+1) over what came before, so each score is a sum of such shares."""
    with torch.no_grad():
        for block in model.blocks:
            block.attn.W_Q.zero_()
    n, characters = 15, PROMPT
    previous = sum(1 / (t + 1) for t in range(1, n)) / n
    duplicates = sum(1 / (t + 1) for t in range(n) for earlier in range(t) if characters[earlier] == characters[t])
    after = sum(
        1 / (t + 1) for t in range(n) for earlier in range(1, t + 1) if characters[earlier - 1] == characters[t]
    )
    for name, expected in (
        ("previous_token_head", previous),
        ("duplicate_token_head", duplicates / n),
        ("induction_head", after / n),
    ):
        found = detect_head(model, PROMPT, name)
        assert found.shape == (model.cfg.n_layers, 4)
        assert torch.allclose(found, torch.full_like(found, expected), rtol=1e-6)


def test_a_head_built_to_read_the_previous_token_is_found(model: Decoder) -> None:
    """Head 1 of the first layer looks from each position to the one before, by position codes matched in QK."""
    with torch.no_grad():
        model.W_E.zero_()
        codes = torch.linalg.qr(torch.randn(32, 16, generator=torch.Generator().manual_seed(0)).double()).Q.T
        model.W_pos.copy_(codes)
        attn = model.blocks[0].attn
        # Eight directions of a circle code each position apart from its neighbours: cos and sin of k pi t / 8.
        t, k = torch.arange(16.0).double(), torch.arange(1, 5).double()
        angles = t[:, None] * k * torch.pi / 8
        place = torch.cat([angles.cos(), angles.sin()], dim=1)
        before = torch.cat([(angles - k * torch.pi / 8).cos(), (angles - k * torch.pi / 8).sin()], dim=1)
        attn.W_Q[1] = codes.T @ before * 30
        attn.W_K[1] = codes.T @ place
    found = detect_head(model, PROMPT, "previous_token_head")
    # Position 0 has only itself to read: 14 of 15 queries at most.
    assert found[0, 1].item() == pytest.approx(14 / 15, abs=0.01)
    assert (found[0, [0, 2, 3]] < 0.5).all()
    several = detect_head(model, [PROMPT, "9876-1234=+0864"], "previous_token_head", heads=[(0, 1)])
    assert several[0, 1].item() == pytest.approx(14 / 15, abs=0.01)
    assert several[0, 0].item() == -1
    pattern = torch.zeros(15, 15).double()
    pattern[1:, :-1] = torch.eye(14)
    mine = detect_head(model, PROMPT, pattern, error_measure="abs")
    assert mine[0, 1] > 0.8


def test_detect_head_refuses_a_whole_problem(model: Decoder) -> None:
    with pytest.raises(AssertionError, match="must fit within the model's context window"):
        detect_head(model, "1234+0567", "previous_token_head")
