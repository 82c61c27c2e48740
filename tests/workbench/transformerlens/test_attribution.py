"""Direct logit attribution, node and edge attribution patching and faithfulness of TransformerLens on the decoder."""

import pytest
import torch
from torch import Tensor
from transformer_lens.tools.analysis import (
    EdgeAttributionConfig,
    FaithfulnessConfig,
    Node,
    attribution_patch,
    direct_logit_attribution,
    faithfulness,
)
from transformer_lens.tools.analysis.attribution_patching import cache_activation_and_gradient, enumerate_edges

from workbench.decoder import Decoder

AT = 14
EDGES = EdgeAttributionConfig(granularity="edge")


def metric(logits: Tensor) -> Tensor:
    """Logit of `7` less that of `2` at one position of one problem."""
    return logits[0, AT, 7] - logits[0, AT, 2]


def direction(model: Decoder) -> Tensor:
    return (model.W_U[:, 7] - model.W_U[:, 2]).detach()


@pytest.mark.parametrize("unit", ["component", "head", "layer"])
def test_direct_logit_attribution_sums_to_the_logit_difference(model: Decoder, clean: Tensor, unit: str) -> None:
    found = direct_logit_attribution(model, clean, answer_tokens="7", incorrect_tokens=2, unit=unit, pos=AT)
    logits = model(clean)[:, AT]
    total = found.attribution[-1] if unit == "layer" else found.attribution.sum(0)
    assert torch.allclose(total, logits[:, 7] - logits[:, 2], rtol=0, atol=1e-11)
    assert len(found.labels) == len(found.attribution)
    assert len(found.top(3)) == 3


def test_direct_logit_attribution_reads_text_and_a_cache(model: Decoder) -> None:
    text = "1234+0567=+0180"
    from_text = direct_logit_attribution(model, text, answer_tokens="1")
    cache = model.run_with_cache(text)[1]
    from_cache = direct_logit_attribution(model, cache=cache, answer_tokens="1")
    assert torch.equal(from_text.attribution, from_cache.attribution)
    assert torch.allclose(from_text.attribution.sum(0), model(text)[:, -1, 1], rtol=0, atol=1e-11)


def test_node_scores_are_exact_where_the_metric_is_linear(model: Decoder, clean: Tensor, corrupted: Tensor) -> None:
    """What the last MLP writes reaches the logits through W_U alone, so its first-order score is its effect."""
    scores = attribution_patch(model, clean, corrupted, metric).node_scores
    last = model.cfg.n_layers - 1
    change = model.run_with_cache(clean)[1]["mlp_out", last] - model.run_with_cache(corrupted)[1]["mlp_out", last]
    expected = (change[:, AT] @ direction(model)).mean().item()
    assert scores[Node("mlp_out", AT, last)] == pytest.approx(expected, rel=1e-9)
    assert scores[Node("mlp_out", 3, last)] == 0.0
    assert len(scores) == 15 * (1 + 5 * model.cfg.n_layers)


def test_node_scores_are_the_slope_of_patching(model: Decoder, clean: Tensor, corrupted: Tensor) -> None:
    """Against a central difference of the metric along clean minus corrupted, for a head and for the embedding."""
    one, other = clean[:1], corrupted[:1]
    scores = attribution_patch(model, one, other, metric).node_scores
    cache, base = model.run_with_cache(one)[1], model.run_with_cache(other)[1]
    for name, where, node in (
        ("blocks.0.attn.hook_z", (0, AT, 1), Node("attn_head_out", AT, 0, 1)),
        ("hook_embed", (0, 7), Node("embed", 7)),
    ):
        change = torch.zeros_like(cache[name])
        change[where] = (cache[name] - base[name])[where]
        assert change.any()

        def moved(size: float, name: str = name, change: Tensor = change) -> float:
            hook = [(name, lambda value, hook: value + size * change)]
            return metric(model.run_with_hooks(other, fwd_hooks=hook)).item()

        assert scores[node] == pytest.approx((moved(1e-5) - moved(-1e-5)) / 2e-5, rel=1e-4, abs=1e-9)


def test_edges_sum_to_nodes_and_the_switches_are_put_back(model: Decoder, clean: Tensor, corrupted: Tensor) -> None:
    nodes = attribution_patch(model, clean[:2], corrupted[:2], metric)
    edges = attribution_patch(model, clean[:2], corrupted[:2], metric, EDGES)
    n = model.cfg.n_layers
    # A writer feeds later q, k, v of 4 heads, later MLPs (a head also its own layer's) and the logits.
    readers_after = [12 * (n - layer) + (n - layer) + 1 for layer in range(n + 1)]
    a_position = readers_after[0] + sum(
        4 * (readers_after[layer + 1] + 1) + readers_after[layer + 1] for layer in range(n)
    )
    assert len(edges.edge_scores) == 15 * a_position
    for node, score in nodes.node_scores.items():
        assert edges.node_scores[node] == pytest.approx(score, rel=1e-7, abs=1e-10)
    writer, reader, score = edges.top_edges(1)[0]
    assert edges.edge_scores[writer, reader] == score
    assert not any((model.extras.attn_result, model.extras.split_qkv_input, model.extras.hook_mlp_in))
    assert model.list_hooks() == {}


def test_the_whole_circuit_recovers_all_and_none_recovers_nothing(
    model: Decoder, clean: Tensor, corrupted: Tensor
) -> None:
    one, other = clean[:1], corrupted[:1]
    edges = list(attribution_patch(model, one, other, metric, EDGES).edge_scores)
    whole = faithfulness(model, one, other, metric, edges)
    assert whole.recovered == pytest.approx(1.0, abs=1e-9)
    assert whole.full_metric == pytest.approx(metric(model(one)).item(), rel=1e-12)
    assert whole.circuit_size == whole.total_edges == len(edges)
    nothing = faithfulness(model, one, other, metric, [])
    assert nothing.recovered == pytest.approx(0.0, abs=1e-9)
    assert nothing.corrupt_metric == pytest.approx(metric(model(other)).item(), rel=1e-12)
    means = faithfulness(model, one, other, metric, [], FaithfulnessConfig("mean"), mean_tokens=clean[1:])
    assert means.recovered != pytest.approx(0.0, abs=1e-6)


def test_cutting_one_edge_into_the_logits_is_removing_one_write(
    model: Decoder, clean: Tensor, corrupted: Tensor
) -> None:
    """Without the edge from the last MLP to the logits, the metric loses that MLP's change along W_U and no more."""
    one, other = clean[:1], corrupted[:1]
    last = model.cfg.n_layers - 1
    edges = set(attribution_patch(model, one, other, metric, EDGES).edge_scores)
    cut = (Node("mlp_out", AT, last), Node("logits", AT, last))
    found = faithfulness(model, one, other, metric, list(edges - {cut}))
    change = model.run_with_cache(one)[1]["mlp_out", last] - model.run_with_cache(other)[1]["mlp_out", last]
    lost = (change[0, AT] @ direction(model)).item()
    gap = found.full_metric - found.corrupt_metric
    assert found.recovered == pytest.approx(1 - lost / gap, rel=1e-7)


def test_the_graph_is_read_off_the_hooks(model: Decoder, clean: Tensor) -> None:
    model.set_use_attn_result(True)
    model.set_use_split_qkv_input(True)
    model.set_use_hook_mlp_in(True)
    others = [name for name in model.hook_dict if not name.endswith("hook_attn_in")]  # excludes the split inputs
    cache = cache_activation_and_gradient(model, clean[:1], metric, names_filter=others)
    assert set(cache.activations) == set(others)
    assert all(gradient is not None for gradient in cache.gradients.values())
    edges = enumerate_edges(model, cache)
    kinds = {(writer.kind, reader.kind) for writer, reader in edges}
    assert ("embed", "q_input") in kinds
    assert ("attn_head_out", "mlp_in") in kinds
    assert (("mlp_out", "v_input") in kinds) == (model.cfg.n_layers == 2)


def test_integrated_gradients_are_not_written_in_this_transformer_lens() -> None:
    with pytest.raises(NotImplementedError, match="ig_steps>1"):
        EdgeAttributionConfig(granularity="edge", ig_steps=5)
