import importlib.util
from pathlib import Path

import numpy as np
import pytest

from workbench.exhaustive.digits import BLOCK

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("exhaustive_benchmark", ROOT / "benchmarks" / "exhaustive.py")
exhaustive = importlib.util.module_from_spec(spec)
spec.loader.exec_module(exhaustive)


class Made:
    """A predictor whose plain forward says 0 everywhere and whose blocks are wrong in one digit of every tenth."""

    hide_sign = False

    def block(self, number):
        digits = np.zeros((BLOCK, 5), np.uint8)
        digits[::10, 2] = 1
        return digits, digits > 0

    def plain(self, tokens):
        return np.zeros((len(tokens), 5), np.uint8)


def test_disagreements_are_counted_by_digit():
    count = exhaustive.disagreements(Made(), 20_000, blocks=3)
    assert count == pytest.approx(2_000, rel=0.1)
    index = np.sort(np.random.default_rng(0).choice(3 * BLOCK, 20_000, replace=False))
    assert count == (index % 10 == 0).sum()
