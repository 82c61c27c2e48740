import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from workbench.recipe import Architecture, RunConfig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "transformerlens.md").read_text()
SHOWN = ROOT / "tests" / "workbench" / "transformerlens"


def test_the_pages_example_runs_and_says_the_truth(
    tmp_path: Path, write_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = RunConfig(Architecture(mlp="relu", n_layers=2), engine="plain")
    write_run(tmp_path / "checkpoints" / config.name, config, {1: 2.0})
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict = {}
    exec(block, names)
    assert names["config"] == config
    assert names["pattern"].shape == (1, 4, 16, 16)
    logit = names["logits"][0, 14, names["answer"].item()]
    assert torch.allclose(names["attribution"].sum(0).squeeze(), logit, atol=1e-5)


def test_every_test_the_page_points_to_is_there() -> None:
    pointers = re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", PAGE)
    assert len(pointers) > 12
    for file, function in pointers:
        assert f"def {function or 'test_'}" in (SHOWN / file).read_text(), (file, function)


def test_every_file_of_tests_is_on_the_page() -> None:
    assert {path.name for path in SHOWN.glob("test_*.py")} == {
        file for file, _ in re.findall(r"(test_\w+\.py)(::)?", PAGE)
    }
