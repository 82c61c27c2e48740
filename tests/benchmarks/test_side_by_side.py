import sys
from pathlib import Path

import torch

from workbench.recipe import Architecture
from workbench.task import encode, parse_all

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import side_by_side


def test_stacked_and_separate_runs_have_the_same_gradients():
    shape = Architecture(mlp="bilinear", n_layers=1)
    tokens = torch.from_numpy(encode(parse_all(["12+34", "5-99", "1000-1"])))
    together = side_by_side.stacked(shape, tokens)()
    for run, alone in enumerate(side_by_side.separate(shape, tokens, "eager")()):
        for name, gradient in zip(shape.shapes, alone, strict=True):
            torch.testing.assert_close(together[name][run], gradient, rtol=1e-4, atol=1e-6)
