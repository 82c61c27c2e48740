"""`workbench train` writes the checkpoint that `training.train` writes."""

import json

from workbench import training
from workbench.cli import run


def test_train_makes_the_same_bytes_as_the_function(short_run, short_config, tmp_path, capsys):
    words = ["train", "--n-layers", "1", "--steps", "12", "--warmup-steps", "4", "--batch-size", "64"]
    words += ["--validation-every", "4", "--engine", "plain", "--out", str(tmp_path), "--json"]
    assert run(words) == 0
    assert json.loads(capsys.readouterr().out)["name"] == short_config.name
    for file in short_run.iterdir():
        assert (tmp_path / short_config.name / file.name).read_bytes() == file.read_bytes()
    assert run(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert run([*words, "--resume"]) == 0


def test_an_interrupt_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", interrupt)
    assert run(["train", "--out", str(tmp_path), "--name", "mine"]) == 130
    assert f"kept in {tmp_path / 'mine.partial'}, and --resume continues it" in capsys.readouterr().err


def test_every_field_of_the_recipe_is_a_flag_with_help(capsys):
    assert run(["train", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for flag in (
        "--mlp",
        "--n-layers",
        "--lr",
        "--init",
        "--problems",
        "--seed",
        "--data-seed",
        "--engine",
        "--threads",
    ):
        assert flag in text
    assert "peak learning rate of AdamW [default: 0.02]" in text
