"""A checkpoint reads back as it was written, and a damaged one is refused with the reason."""

import hashlib
import json
import shutil

import numpy as np
import pytest
import safetensors.numpy

from workbench import checkpoint
from workbench.errors import BadInput


@pytest.fixture
def folder(short_run, tmp_path):
    return shutil.copytree(short_run, tmp_path / short_run.name)


def rewrite(folder, change):
    """Change the tensors and make the hash fit again, so that only the content itself can be refused."""
    weights = safetensors.numpy.load_file(folder / checkpoint.WEIGHTS)
    raw = safetensors.numpy.save(change(weights))
    (folder / checkpoint.WEIGHTS).write_bytes(raw)
    config = json.loads((folder / checkpoint.CONFIG).read_text())
    config["weights_sha256"] = hashlib.sha256(raw).hexdigest()
    (folder / checkpoint.CONFIG).write_text(json.dumps(config))


def test_it_reads_back_with_names_shapes_and_hash(short_run, short_config):
    found = checkpoint.read(short_run)
    assert found.config == short_config
    assert {name: w.shape for name, w in found.weights.items()} == short_config.architecture.shapes
    assert found.weights_sha256 == hashlib.sha256((short_run / "model.safetensors").read_bytes()).hexdigest()
    assert found.kept_step in (4, 8, 12)
    assert sorted(file.name for file in short_run.iterdir()) == [
        "README.md", "config.json", "history.json", "model.safetensors",
    ]  # fmt: skip


def test_weights_hold_the_tensors_and_nothing_else(short_run):
    header_size = int.from_bytes((short_run / "model.safetensors").read_bytes()[:8], "little")
    header = json.loads((short_run / "model.safetensors").read_bytes()[8 : 8 + header_size])
    assert "__metadata__" not in header
    assert len(header) == 9


def set_value(name, value):
    return lambda weights: {**weights, name: value}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            set_value("embed.W_E", np.zeros((13, 33), np.float32)),
            r"embed.W_E has shape \[13, 33\], expected \[13, 32\]",
        ),
        (set_value("embed.W_E", np.zeros((13, 32), np.float64)), "bytes, expected at most|dtype float64"),
        (set_value("embed.W_E", np.zeros((13, 32), np.float16)), "dtype float16, expected float32"),
        (set_value("embed.W_E", np.full((13, 32), np.nan, np.float32)), "416 non-finite values"),
        (set_value("embed.W_E", np.full((13, 32), -np.inf, np.float32)), "416 non-finite values"),
        (set_value("embed.b_E", np.zeros(3, np.float32)), "extra tensor 'embed.b_E'"),
        (lambda w: {k: v for k, v in w.items() if k != "unembed.W_U"}, "missing tensor 'unembed.W_U'"),
    ],
)
def test_wrong_tensors_are_refused(folder, change, says):
    rewrite(folder, change)
    with pytest.raises(BadInput, match=says) as caught:
        checkpoint.read(folder)
    assert "model.safetensors" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"),
        (b"PK\x03\x04" + bytes(100), "pickle or zip archive"),
        (b"\x80\x02}q\x00.", "pickle or zip archive"),
        (b"", "not a whole safetensors file"),
        (b"\xff" * 64, "not a whole safetensors file"),
        (bytes(10_000_000), "expected at most"),
    ],
)
def test_other_files_under_the_name_are_refused(folder, content, says):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(BadInput, match=says):
        checkpoint.read(folder)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.999])
def test_truncated_weights_are_refused(folder, keep):
    raw = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(raw[: int(len(raw) * keep)])
    with pytest.raises(BadInput, match="truncated or damaged"):
        checkpoint.read(folder)


def test_every_flipped_bit_is_noticed(folder):
    raw = (folder / "model.safetensors").read_bytes()
    rng = np.random.default_rng(0)
    for place in [*range(0, 200, 7), *rng.integers(0, len(raw), 40)]:
        damaged = bytearray(raw)
        damaged[place] ^= 1 << int(rng.integers(8))
        (folder / "model.safetensors").write_bytes(damaged)
        with pytest.raises(BadInput):
            checkpoint.read(folder)
    (folder / "model.safetensors").write_bytes(raw)
    checkpoint.read(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c.update(schema=99), "schema is '99', expected 1"),
        (lambda c: c.update(weights_sha256="0" * 64), "sha256 is"),
        (lambda c: c.update(weights_sha256=7), "weights_sha256 is not 64"),
        (lambda c: c.update(surprise=1), "unknown field 'surprise'"),
        (lambda c: c.pop("engine"), "missing field 'engine'"),
        (lambda c: c["architecture"].update(n_layers=2), "missing tensor 'blocks.1"),
        (lambda c: c["architecture"].update(mlp="bilinear"), "missing tensor 'blocks.0.mlp.W_gate'"),
        (lambda c: c["architecture"].update(mlp="gelu"), "mlp is 'gelu', expected one of relu, bilinear"),
        (lambda c: c["architecture"].update(d_model=10**9), "between 1 and 4096"),
        (lambda c: c["architecture"].update(n_layers=True), "n_layers is 'True', expected int"),
        (lambda c: c["recipe"].update(lr="0.02"), "lr is '0.02', expected float"),
        (lambda c: c.update(architecture={"d_model": 768, "n_layers": 12}), "missing field|unknown field"),
        (lambda c: c.update(recipe=None), "recipe is NoneType"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, change, says):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match=says):
        checkpoint.read(folder)


@pytest.mark.parametrize(
    "content", ["{}", '{"selection": 1, "results": {}}', '{"selection": {"kept_step": 1}, "results": 5}']
)
def test_a_history_without_results_is_refused(folder, content):
    (folder / "history.json").write_text(content)
    with pytest.raises(BadInput, match=r"history\.json"):
        checkpoint.read(folder)


def test_what_is_no_checkpoint_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no such folder"):
        checkpoint.read(tmp_path / "nowhere")
    with pytest.raises(BadInput, match=r"no config\.json in it"):
        checkpoint.read(tmp_path)
    with pytest.raises(BadInput, match="no checkpoints in it"):
        checkpoint.find(tmp_path)
    (tmp_path / "x.partial").mkdir()
    with pytest.raises(BadInput, match="unfinished run"):
        checkpoint.read(tmp_path / "x.partial")


def test_reading_order_is_relu_first_then_layers_then_seed(short_run, tmp_path):
    order = [("relu", 1, 1), ("relu", 2, 0), ("bilinear", 1, 0), ("bilinear", 1, 3)]
    for mlp, n_layers, seed in reversed(order):
        from workbench.recipe import Architecture, RunConfig

        config = RunConfig(Architecture(mlp=mlp, n_layers=n_layers), seed=seed, engine="plain")
        copy = shutil.copytree(short_run, tmp_path / config.name)
        raw = checkpoint.weight_bytes(
            {name: np.zeros(shape, np.float32) for name, shape in config.architecture.shapes.items()}
        )
        (copy / "model.safetensors").write_bytes(raw)
        (copy / "config.json").write_bytes(checkpoint.config_bytes(config, {}, hashlib.sha256(raw).hexdigest()))
    found = [
        (c.config.architecture.mlp, c.config.architecture.n_layers, c.config.seed)
        for c in checkpoint.read_all(tmp_path)
    ]
    assert found == order


@pytest.mark.parametrize(
    "change",
    [
        lambda history: history["selection"].update(kept_step=0),
        lambda history: history["selection"].update(kept_step="4"),
        lambda history: history["results"].pop("validation"),
        lambda history: history["results"]["validation"].pop("all"),
        lambda history: history["results"]["test"]["all"].update(n=0),
        lambda history: history["results"]["test"]["all"].pop("loss"),
        lambda history: history["results"]["test"]["all"].update(sequences_right=10_001),
    ],
)
def test_a_history_whose_numbers_cannot_be_is_refused(folder, change):
    history = json.loads((folder / "history.json").read_text())
    change(history)
    (folder / "history.json").write_text(json.dumps(history))
    with pytest.raises(BadInput, match=r"history\.json.*restore"):
        checkpoint.read(folder)


def test_two_of_one_name_are_refused(short_run, folder):
    one, same = checkpoint.read(short_run), checkpoint.read(folder)
    with pytest.raises(BadInput, match=f"two checkpoints are named {short_run.name}"):
        checkpoint.refuse_namesakes([one, same])
    checkpoint.refuse_namesakes([one])


def test_history_json_is_json_and_says_the_same(short_run):
    history = json.loads((short_run / "history.json").read_text())
    assert json.loads(checkpoint.history_bytes(history)) == history
    assert len(history["curve"]["loss"]) == 12
    assert [row["step"] for row in history["validations"]] == [4, 8, 12]
