"""The card of a checkpoint: what it is, how it did, how to load it."""

from typing import Any

from workbench.recipe import RunConfig
from workbench.scores import Score


def _table(results: dict[str, dict[str, Any]]) -> list[str]:
    lines = [
        "| split | problems | n | loss | digit acc | sequence acc (95% interval) | sign acc |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for split, groups in results.items():
        for name, counts in groups.items():
            score = Score(**counts)
            low, high = score.seq_interval
            lines.append(
                f"| {split} | {name} | {score.n:,} | {score.loss:.4f} | {score.digit_acc:.4f} "
                f"| {score.seq_acc:.4f} ({low:.4f} to {high:.4f}) | {score.sign_acc:.4f} |"
            )
    return lines


def _head(config: RunConfig, history: dict[str, Any]) -> list[str]:
    """What was trained beside it, if anything."""
    head = config.auxiliary
    if head is None:
        return []
    told = history["head"]["test"]["all"]
    weight = f"weight {head.head_weight:g}" + (", decaying to zero" if head.head_schedule == "decay" else "")
    watching = " It only watched: these are the weights of a run without it." if head.head_weight == 0 else ""
    return [
        f"Trained beside an auxiliary head (head.json, head.safetensors; the decoder is whole without them): "
        f"{head.head}, {head.head_form}, at {head.site(config.architecture.n_layers)}, {weight}. Its squared error on "
        f"the {told['n']:,} test problems is {told['loss']:.5f}, where a constant's best is {told['variance']:.5f}."
        + watching,
        "",
    ]


def card(config: RunConfig, history: dict[str, Any], sha256: str, name: str) -> str:
    """README.md of the checkpoint in a folder called `name`, in Markdown; a function of the run and that name alone."""
    shape, recipe = config.architecture, config.recipe
    formula = "W_out[(W_gate x) * (W_in x)]" if shape.mlp == "bilinear" else "W_out ReLU(W_in x)"
    kept = history["selection"]["kept_step"]
    threads = "thread" if config.threads == 1 else "threads"
    sign = "hidden" if config.problems == "sign-hidden" else "given"
    lines = [
        f"# {name}",
        "",
        f"A {shape.n_layers}-layer decoder without bias or normalisation, {shape.mlp} MLP `{formula}`, "
        f"{shape.n_params:,} parameters, trained on 4-digit addition and subtraction with a signed answer "
        f"(problems: `{config.problems}`).",
        "",
        f"AdamW, peak rate {recipe.lr:g}, {recipe.warmup_steps} warm-up steps then cosine to 0, {recipe.steps:,} steps "
        f"of {recipe.batch_size:,}, weight decay {recipe.weight_decay:g}, gradient clip {recipe.grad_clip:g}; initial "
        f"weights `{recipe.init}` from seed {config.seed}; data seed {config.data_seed}; engine `{config.engine}`, "
        f"{config.device}, {config.threads} {threads}. Kept: step {kept:,}, the {history['selection']['rule']}.",
        "",
        *_head(config, history),
        *_table(history["results"]),
        "",
        f"The loss covers the five answer digits only and the sign is {sign}, so the position that would say the sign "
        "gets no gradient: sign accuracy is about 0 by construction. Intervals are Wilson's.",
        "",
        "```python",
        "from workbench.decoder import Decoder",
        f'model, config = Decoder.from_directory("checkpoints/{name}")',
        "```",
        "",
        "Token ids: digits are themselves, `+` 10, `-` 11, `=` 12. Compare token ids before using these activations "
        "beside another model's.",
        "",
        f"sha256 of model.safetensors: `{sha256}`",
    ]
    return "\n".join(lines) + "\n"
