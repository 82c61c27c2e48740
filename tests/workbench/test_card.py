"""The card says what the run's history says."""

import json

from workbench.card import card
from workbench.recipe import RunConfig


def test_the_card_shows_the_counts_as_accuracies():
    counts = {"n": 1000, "loss": 0.25, "digits_right": 4500, "sequences_right": 700, "signs_right": 3}
    history = {"selection": {"rule": "lowest", "kept_step": 400}, "results": {"test": {"addition": counts}}}
    text = card(RunConfig(), history, "abc123", "mine")
    assert "| test | addition | 1,000 | 0.2500 | 0.9000 | 0.7000 (0.6709 to 0.7276) | 0.0030 |" in text
    assert "17,728 parameters" in text and "abc123" in text and "step 400" in text and '"checkpoints/mine"' in text


def test_the_card_says_whether_the_sign_was_given():
    history = {"selection": {"rule": "lowest", "kept_step": 400}, "results": {}}
    assert "the sign is given" in card(RunConfig(), history, "abc123", "mine")
    assert "the sign is hidden" in card(RunConfig(problems="sign-hidden"), history, "abc123", "mine")


def test_a_written_card_belongs_to_its_run(short_run):
    config = json.loads((short_run / "config.json").read_text())
    assert config["weights_sha256"] in (short_run / "README.md").read_text()
