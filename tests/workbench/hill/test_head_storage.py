"""A head comes back as it was, and every damaged or foreign file is refused in one line."""

import json

import pytest
import safetensors.numpy
import safetensors.torch
import torch

from workbench.errors import BadInput
from workbench.hill import head_storage, heads
from workbench.recipe import Architecture, Auxiliary

SHAPE = Architecture(n_layers=2)
DECODER = "d" * 64


def some_head(form="frozen", head="digitwise"):
    auxiliary = Auxiliary(head=head, head_form=form)
    return head_storage.finished(auxiliary, SHAPE, heads.initial(auxiliary, SHAPE, 0), seed=0)


@pytest.mark.parametrize("form", ["frozen", "trainable", "random", "linear"])
@pytest.mark.parametrize("head", heads.KINDS)
def test_every_head_comes_back_and_says_the_same(form, head, tmp_path):
    saved = some_head(form, head)
    head_storage.save(saved, tmp_path, DECODER)
    found = head_storage.load(tmp_path, SHAPE, DECODER)
    assert (found.auxiliary, found.site) == (saved.auxiliary, "blocks.1.hook_resid_mid")
    x, minus = torch.randn(6, 5, 32), torch.arange(6) % 2 == 0
    assert torch.equal(found(x, minus), saved(x, minus))
    assert torch.equal(found.unit, heads.unit_weights(saved.auxiliary, saved.tensors, 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["head.json", "head.safetensors"]


def change(folder, **values):
    path = folder / "head.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"schema": 2}, "schema is not 1"),
        ({"site": 3}, "site is not text"),
        ({"site": "blocks.0.hook_resid_mid"}, "site is 'blocks.0.hook_resid_mid', expected 'blocks.1.hook_resid_mid'"),
        ({"decoder_sha256": "e" * 64}, "trained beside another decoder"),
        ({"weights_sha256": "e" * 64}, "its sha256 is not the one head.json expects"),
        ({"head": "modular"}, "head is 'modular'"),
        ({"head_site": "blocks.2.hook_resid_mid"}, "the decoder has 2 layers"),
        ({"extra": 1}, "unknown field 'extra'"),
        ({"head_form": "trainable"}, None),  # the same tensors as the frozen one: it loads
        ({"head_form": "linear"}, r"tensors M_hat, W_hat, readout \(3 in all\), expected readout"),
        ({"head": "carry"}, r"W_hat is float32 \[2, 2, 2\], expected finite float32 \[2, 1, 4\]|readout is"),
    ],
)
def test_a_head_json_that_does_not_fit_is_refused(tmp_path, values, says):
    head_storage.save(some_head(), tmp_path, DECODER)
    change(tmp_path, **values)
    if says is None:
        head_storage.load(tmp_path, SHAPE, DECODER)
        return
    with pytest.raises(BadInput, match=says) as error:
        head_storage.load(tmp_path, SHAPE, DECODER)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("damage", ["missing", "truncated", "nan", "dtype", "extra"])
def test_damaged_tensors_are_refused(tmp_path, damage):
    saved = some_head()
    head_storage.save(saved, tmp_path, DECODER)
    path = tmp_path / "head.safetensors"
    tensors = {name: w.numpy().copy() for name, w in saved.tensors.items()}
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:-10])
    else:
        if damage == "nan":
            tensors["readout"][0, 0, 0] = float("nan")
        if damage == "dtype":
            tensors["readout"] = tensors["readout"].astype("float64")
        if damage == "extra":
            tensors["bias"] = tensors["readout"]
        path.write_bytes(safetensors.numpy.save(tensors))
    with pytest.raises(BadInput, match=r"head\.safetensors"):
        head_storage.load(tmp_path, SHAPE, DECODER)


def test_without_a_head_json_it_says_so(tmp_path):
    with pytest.raises(BadInput, match=r"head\.json: no such file"):
        head_storage.load(tmp_path, SHAPE, DECODER)
