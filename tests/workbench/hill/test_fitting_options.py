import subprocess
import sys

import pytest

from workbench.errors import BadInput
from workbench.hill.fitting_options import Trial


def test_the_defaults_are_those_of_the_report():
    trial = Trial()
    assert (trial.optimizer, trial.lr, trial.epochs) == ("adam", 0.3, 50)  # section 4.2
    assert (trial.low, trial.high, trial.samples, trial.batch) == (1e-8, 10.0, 64_000, 64)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"low": 3.0, "high": 3.0}, "training inputs from 3 to 3"),
        ({"low": -1e301}, "expected a range of finite numbers"),
        ({"samples": 6399}, "6,399 problems in batches of 64; expected at least 100 batches"),
        ({"batch": 0}, "batches of 0"),
        ({"epochs": 0}, "epochs is 0, expected 1 to 10,000"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_what_cannot_be_trained_is_bad_input(changed, words):
    with pytest.raises(BadInput, match=words):
        Trial(**changed)


def test_the_options_need_no_torch():
    code = "import sys, workbench.hill.fitting_options; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
