"""A short run that many tests read, and untrained decoders of the four shapes."""

from pathlib import Path
from typing import Any

import pytest

from workbench.recipe import Architecture, Recipe, RunConfig
from workbench.training import train


@pytest.fixture(scope="session")
def short_config() -> RunConfig:
    """Twelve steps of a one-layer relu decoder, saved every four."""
    recipe = Recipe(steps=12, warmup_steps=4, batch_size=64, validation_every=4)
    return RunConfig(Architecture(n_layers=1), recipe, engine="plain")


@pytest.fixture(scope="session")
def short_run(short_config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished checkpoint of `short_config`; tests that change it copy it first."""
    return train(short_config, tmp_path_factory.mktemp("short") / short_config.name)


SHAPES = [Architecture(mlp=mlp, n_layers=n) for mlp in ("relu", "bilinear") for n in (1, 2)]


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape.mlp}-{shape.n_layers}")
def model(request: Any) -> Any:
    """An untrained decoder of each shape; TransformerLens is imported only for the tests that ask for one."""
    from workbench.decoder import Decoder

    return Decoder.untrained(request.param, "fan-in", 0)


@pytest.fixture
def two_layers() -> Any:
    """An untrained decoder of two layers."""
    from workbench.decoder import Decoder

    return Decoder.untrained(Architecture(n_layers=2), "fan-in", 0)
