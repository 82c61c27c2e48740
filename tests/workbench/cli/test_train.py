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


def test_a_head_is_trained_beside_the_decoder_and_told_of(tmp_path, capsys):
    words = [
        "train",
        "--n-layers",
        "1",
        "--steps",
        "4",
        "--warmup-steps",
        "1",
        "--batch-size",
        "64",
        "--engine",
        "plain",
    ]
    words += ["--out", str(tmp_path), "--head", "carry", "--head-form", "trainable", "--head-weight", "0.5"]
    assert run(words) == 0
    assert "head, test  n=10,000 squared error 0." in capsys.readouterr().out
    folder = tmp_path / "arithmetic-relu-1layer-carry-trainable-seed0"
    assert json.loads((folder / "config.json").read_text())["auxiliary"]["head_weight"] == 0.5
    assert json.loads((folder / "head.json").read_text())["head"] == "carry"


def test_head_flags_without_a_head_are_refused(tmp_path, capsys):
    assert run(["train", "--head-weight", "0.5", "--out", str(tmp_path)]) == 2
    assert "a --head flag without a head" in capsys.readouterr().err
    assert run(["train", "--head", "carry", "--head-site", "logits", "--out", str(tmp_path)]) == 2
    assert "head_site is 'logits'" in capsys.readouterr().err
