"""A short run that many tests read."""

from pathlib import Path

import pytest

from workbench.recipe import Architecture, Recipe, RunConfig
from workbench.training import train


@pytest.fixture(scope="session")
def short_config() -> RunConfig:
    """Twelve steps of a one-layer relu decoder, saved every four."""
    recipe = Recipe(steps=12, warmup_steps=4, batch_size=64, validation_every=4)
    return RunConfig(Architecture(n_layers=1), recipe)


@pytest.fixture(scope="session")
def short_run(short_config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished checkpoint of `short_config`; tests that change it copy it first."""
    return train(short_config, tmp_path_factory.mktemp("short") / short_config.name)
