"""The committed decoders beside a head of weight 0 have the very weights of the twelve, which never had a head."""

from pathlib import Path

import pytest

from workbench import checkpoint
from workbench.auxiliary_grid import NO_HEAD
from workbench.recipe import twelve

CHECKPOINTS = Path(__file__).parents[3] / "checkpoints"
FOLDER = CHECKPOINTS / "auxiliary"
NAMES = [config.name for config in twelve()]


def beside(name: str) -> Path:
    """The run of the same decoder with a head that only watches."""
    shape, _, seed = name.rpartition("-")
    return FOLDER / f"{shape}-none-{seed}"


@pytest.mark.parametrize("name", NAMES)
def test_a_head_that_only_watches_changes_no_byte(name):
    plain, watched = (checkpoint.read(folder) for folder in (CHECKPOINTS / name, beside(name)))
    assert watched.config.auxiliary == NO_HEAD and plain.config.auxiliary is None
    assert watched.config.accepts(plain.config) is False and watched.versions == plain.versions
    assert watched.weights_sha256 == plain.weights_sha256
