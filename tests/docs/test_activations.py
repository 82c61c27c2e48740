import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from workbench.activations.export import export
from workbench.activations.read import read_export
from workbench.checkpoint import Checkpoint
from workbench.initialise import initial_weights
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample
from workbench.task import decode, encode

PAGE = Path(__file__).parents[2] / "docs" / "activations.md"
HOOKS = ["blocks.0.hook_resid_post", "blocks.1.hook_resid_post"]


@pytest.fixture
def place(tmp_path):
    """A folder with the page's export, exports/resid, in it."""
    config = RunConfig(Architecture())
    weights = {name: w.numpy() for name, w in initial_weights(config.architecture, "gpt2", 0).items()}
    one = Checkpoint(Path(config.name), config, {}, "0" * 64, weights, {})
    export(one, sample(1_000, 0), tmp_path / "exports" / "resid", hooks=HOOKS, shard_mb=1)
    return tmp_path


def blocks(after):
    """The page's Python blocks under a heading."""
    text = PAGE.read_text().partition(f"\n## {after}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


SAVE = """
np.savez("found.npz", activations=activations, texts=np.array(texts))
import sys
loaded = {name.partition(".")[0] for name, module in sys.modules.items() if module}
assert not {"torch", "transformer_lens", "workbench", "pandas"} & loaded
"""


def test_the_numpy_reader_of_the_page_reads_without_torch(place):
    (block,) = blocks("Reading it with numpy alone")
    code = "import sys\nsys.modules['torch'] = None\n" + block + SAVE
    # -I: neither this folder nor the environment's paths can bring the workbench in
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=place, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = np.load(place / "found.npz")
    expected = read_export(place / "exports" / "resid").tensor(HOOKS[0]).numpy()
    assert expected.shape == (1_000, 15, 32) and expected.std() > 0
    np.testing.assert_array_equal(found["activations"], expected)
    assert found["texts"].tolist() == decode(encode(sample(1_000, 0)))


def test_the_reader_of_the_page_runs(place, monkeypatch):
    block, cache = blocks("Reading it in Python")
    monkeypatch.chdir(place)
    names = {}
    exec(block, names)
    found = names["export"]
    assert found.names == HOOKS and len(found) == 1_000
    assert torch.equal(names["rows"][HOOKS[0]], found.tensor(HOOKS[0])[-len(names["rows"]["problems"]) :])
    compile(cache, "page", "exec")


def test_every_field_of_the_index_is_on_the_page(place):
    index = json.loads((place / "exports" / "resid" / "index.json").read_text())
    page = PAGE.read_text()
    nested = [index, next(iter(index["checkpoints"].values())), index["tensors"][0], index["shards"][0]]
    for name in {key for part in nested for key in part}:
        assert f"`{name}`" in page, name
