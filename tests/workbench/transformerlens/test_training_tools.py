"""Tools that run the model many times: interchange and DAS, tools.training, reinitialized; and those that cannot."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformer_lens import evals, utilities
from transformer_lens.tools.analysis import (
    JacobianLens,
    NormMatchedPlacebo,
    SubspaceInterchange,
    collect_activations,
    fit_das,
    intervened_logits,
    random_basis,
    reinitialized,
    run_with_intervention,
)
from transformer_lens.tools.training import TrainConfig, train

from workbench.decoder import Decoder
from workbench.errors import BadInput
from workbench.task import Problems, encode

AT = 14


class Batches(Dataset):
    """Problems as the `{"tokens": ...}` items that TransformerLens's loop takes."""

    def __init__(self, count: int) -> None:
        index = np.random.default_rng(0).integers(0, 200_000_000, count)
        self.tokens = torch.from_numpy(encode(Problems.from_index(index)))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, item: int) -> dict[str, Tensor]:
        return {"tokens": self.tokens[item]}


@pytest.fixture(autouse=True)
def restored_random_state() -> Any:
    """`train` seeds torch's global generator."""
    with torch.random.fork_rng(devices=[]):
        yield


def test_interchanging_the_whole_stream_gives_the_source(model: Decoder, clean: Tensor, corrupted: Tensor) -> None:
    """At the last stream and the metric's position a full basis makes the base say what the source says."""
    hook = f"blocks.{model.cfg.n_layers - 1}.hook_resid_post"
    at = torch.full((3,), AT)

    def answer(tokens: Tensor) -> Tensor:
        return model(tokens)[:, AT]

    source = collect_activations(model, hook, corrupted, answer, positions=at)
    assert torch.equal(source, model.run_with_cache(corrupted)[1][hook][:, AT])
    whole = SubspaceInterchange(random_basis(32, 32, seed=0).double())
    swapped = intervened_logits(model, hook, whole, clean, source, answer, positions=at)
    assert torch.allclose(swapped, answer(corrupted), rtol=0, atol=1e-5)  # the basis is orthonormal to float32
    part = SubspaceInterchange(random_basis(32, 4, seed=1).double())
    B, base = part.basis, model.run_with_cache(clean)[1][hook][:, AT]
    expected = (base + (source - base) @ B @ B.T) @ model.W_U
    assert torch.allclose(run_with_intervention(model, hook, part, clean, source, answer, positions=at), expected)
    placebo = NormMatchedPlacebo(part, random_basis(32, 4, seed=2).double())
    moved = placebo(base, source) - base
    assert torch.allclose(moved.norm(dim=-1), (part(base, source) - base).norm(dim=-1))


def test_das_learns_a_subspace_and_leaves_the_model_alone(model: Decoder, clean: Tensor, corrupted: Tensor) -> None:
    """The digit at position 7 of the first stream decides between base and source, so a subspace there can learn to."""
    before = {name: value.clone() for name, value in model.state_dict().items()}
    hook, at = "blocks.0.hook_resid_pre", torch.full((3,), 7)

    def answer(tokens: Tensor) -> Tensor:
        return model(tokens)[:, AT] * 20  # sharper, so that the loss can fall

    targets = answer(corrupted).argmax(-1)
    found = fit_das(
        model,
        hook,
        clean,
        corrupted,
        targets,
        answer,
        rank=8,
        base_positions=at,
        source_positions=at,
        epochs=30,
        lr=0.03,
    )
    assert found.losses[-1] < found.losses[0]
    B = found.basis
    assert torch.allclose(B.T @ B, torch.eye(8, dtype=B.dtype), atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(value.requires_grad for value in model.parameters())
    assert model.list_hooks() == {}


def test_reinitialized_is_an_untrained_twin(model: Decoder) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    twin, again = reinitialized(model, seed=3), reinitialized(model, seed=3)
    assert isinstance(twin, Decoder)
    for name, value in twin.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
        assert not torch.equal(value, before[name])
        inputs = 64 if name.endswith("W_out") else 32  # the fixture's initialisation is fan-in
        error = 5 / (2 * value.numel()) ** 0.5
        assert value.std().item() * inputs**0.5 == pytest.approx(1.0, abs=error)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not twin.training


def test_transformer_lens_trains_it_on_the_tasks_loss(model: Decoder, capsys: pytest.CaptureFixture) -> None:
    model, data = model.float(), Batches(2_048)
    with torch.no_grad():
        before = model(data.tokens, return_type="loss").item()
    config = TrainConfig(num_epochs=2, batch_size=256, lr=1e-2, weight_decay=0.01, max_grad_norm=1.0, device="cpu")
    assert train(model, config, data) is model
    with torch.no_grad():
        after = model.eval()(data.tokens, return_type="loss").item()
    assert after < before - 0.1
    assert after < 2.35  # guessing a digit evenly is ln 10 = 2.303, and the first digit is easy
    assert "Loss" in capsys.readouterr().out
    batches = torch.utils.data.DataLoader(data, batch_size=256)
    assert evals.evaluate_on_dataset(model, batches, device="cpu") > 0


def test_test_prompt_shows_the_models_ranking(model: Decoder, capsys: pytest.CaptureFixture) -> None:
    utilities.test_prompt("1234+0567=+", "0", model, prepend_space_to_answer=False, top_k=3)
    best = model("1234+0567=+")[0, -1].argmax().item()
    shown = capsys.readouterr().out
    assert f"Token: |{'0123456789+-='[int(best)]}|" in shown
    assert "Tokenized prompt: ['1', '2', '3', '4', '+'" in shown


def test_the_jacobian_lens_accepts_a_transformer_bridge_only(model: Decoder) -> None:
    with pytest.raises(TypeError, match="supports TransformerBridge only"):
        JacobianLens.fit(model, ["1+1"], corpus="problems", show_progress=False)


def test_evals_that_bring_their_own_english_are_refused_by_the_tasks_tokens(model: Decoder) -> None:
    with pytest.raises(BadInput, match="tokens are"):
        evals.induction_loss(model, device="cpu")
    with pytest.raises(BadInput, match="no problem contains"):
        evals.sanity_check(model)
