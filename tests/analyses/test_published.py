import pytest

from analyses import published
from workbench.recipe import Recipe, twelve


def test_the_published_twelve_are_the_grid() -> None:
    models = published.load("twelve")["models"]
    grid = [(c.name, c.architecture.mlp, c.architecture.n_layers, c.seed, c.architecture.n_params) for c in twelve()]
    assert [(m["name"], m["mlp"], m["n_layers"], m["seed"], m["n_params"]) for m in models] == grid


def test_the_published_recipe_is_the_default_one() -> None:
    theirs, ours = published.load("twelve")["recipe"], Recipe()
    for name in ("lr", "warmup_steps", "batch_size", "weight_decay", "grad_clip", "validation_every"):
        assert getattr(ours, name) == theirs[name]
    assert ours.steps == theirs["total_steps"]


def test_published_operators_average_to_the_published_whole() -> None:
    """What says that the by-operator numbers are those of the validation split."""
    for model in published.load("twelve")["models"]:
        rows = model["by_operator"]
        assert rows["split"] == "validation"
        for metric in ("seq_acc", "digit_acc", "loss"):
            mean = (rows["addition"][metric] + rows["subtraction"][metric]) / 2
            assert mean == pytest.approx(model["validation"][metric], abs=2e-3)


def test_it_names_its_source() -> None:
    assert "model cards" in published.load("twelve")["source"]
