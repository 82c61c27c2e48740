import hashlib
from pathlib import Path

import pytest

from workbench.activations.export import export
from workbench.checkpoint import Checkpoint, weight_bytes
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample


@pytest.fixture
def make_checkpoint():
    """Checkpoints of untrained weights, in memory alone: exporting reads nothing else of one."""

    def make(mlp="relu", n_layers=2, seed=0, variant="all", name=None):
        config = RunConfig(Architecture(mlp=mlp, n_layers=n_layers), problems=variant, seed=seed)
        weights = {key: w.numpy() for key, w in initial_weights(config.architecture, config.recipe.init, seed).items()}
        digest = hashlib.sha256(weight_bytes(weights)).hexdigest()
        return Checkpoint(Path(name or config.name), config, {}, digest, weights, {"selection": {"kept_step": 0}})

    return make


@pytest.fixture
def exported(make_checkpoint, tmp_path):
    """An export of 1,000 problems in three shards, the folder it is in, and its checkpoint."""
    one = make_checkpoint()
    folder = tmp_path / "exports" / "one"
    hooks = ["blocks.*.hook_resid_post", "blocks.0.attn.hook_pattern", "blocks.1.attn.hook_attn_scores"]
    index = export(one, sample(1_000, 0), folder, hooks=hooks, positions=(8, 9, 10, 14), shard_mb=1)
    assert len(index.shards) == 3
    return folder, one
