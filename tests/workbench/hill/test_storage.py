import json
import struct

import pytest
import safetensors.torch
import torch

from workbench.errors import BadInput
from workbench.hill.formats import BITS
from workbench.hill.operations import OPERATIONS
from workbench.hill.storage import load, save
from workbench.hill.unit import HillUnit

GOOD = {"schema": 1, "primitive": "additive", "method": "sign-exact"}


def written(path, tensors=None, about=GOOD, key="hill_unit"):
    """A safetensors file with the parts given, and otherwise those of a unit that adds."""
    if tensors is None:
        tensors = HillUnit.enumerated("add").state_dict()
    text = about if isinstance(about, str) else json.dumps(about)
    path.write_bytes(safetensors.torch.save(tensors, {key: text}))
    return path


def pair(W_hat, M_hat=None):
    return {"W_hat": W_hat, "M_hat": W_hat.clone() if M_hat is None else M_hat}


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)
def test_every_unit_comes_back_with_the_same_bits(row, dtype, tmp_path):
    unit = HillUnit.enumerated(row.name, dtype, method="complex")
    save(unit, tmp_path / "unit.safetensors")
    found = load(tmp_path / "unit.safetensors")
    assert (found.primitive, found.method) == (row.primitive, "complex")
    assert torch.equal(found.W_hat, unit.W_hat) and torch.equal(found.M_hat, unit.M_hat)
    assert found.W.dtype == dtype and tuple(found.W.tolist()) == row.selection
    assert not found.W_hat.requires_grad
    assert load(tmp_path / "unit.safetensors", trainable=True).W_hat.requires_grad


def test_a_stack_comes_back_and_the_same_unit_gives_the_same_bytes(tmp_path):
    generator = torch.Generator().manual_seed(0)
    W_hat, M_hat = torch.randn(2, 5, 3, 2, generator=generator)
    unit = HillUnit(W_hat, M_hat, primitive="exponential")
    for name in ("first", "second"):
        save(unit, tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert torch.equal(load(tmp_path / "first").W, unit.W)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]  # no temporary file left


def test_a_failed_save_leaves_what_stood_there(tmp_path):
    path = tmp_path / "unit"
    save(HillUnit.enumerated("add"), path)
    before = path.read_bytes()
    with pytest.raises(BadInput, match="W_hat holds 1 non-finite values"):
        save(HillUnit(torch.tensor([1.0, torch.inf]), torch.zeros(2)), path)
    assert path.read_bytes() == before
    with pytest.raises(OSError, match="No such file"):
        save(HillUnit.enumerated("add"), tmp_path / "nowhere" / "unit")


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ({"W_hat": torch.zeros(2)}, r"tensors 'W_hat' \(1 in all\), expected W_hat and M_hat"),
        ({}, "tensors none"),
        (pair(torch.zeros(2)) | {"W": torch.zeros(2)}, r"3 in all"),
        (pair(torch.zeros(3)), r"shape \[3\]"),
        (pair(torch.zeros(2, 3)), r"shape \[2, 3\]"),
        (pair(torch.zeros(())), r"shape \[\]"),
        (pair(torch.zeros(0, 2)), r"shape \[0, 2\]"),
        (pair(torch.zeros(2), torch.zeros(1, 2)), r"shape \[2\] and M_hat \[1, 2\]"),
        (pair(torch.zeros(2).double(), torch.zeros(2)), r"torch\.float64 and M_hat torch\.float32"),
        (pair(torch.zeros(2).long()), r"torch\.int64"),
        (pair(torch.zeros(2).to(torch.float8_e4m3fn)), r"float8"),
        (pair(torch.tensor([torch.nan, torch.inf]), torch.zeros(2)), "W_hat holds 2 non-finite values"),
        (pair(torch.zeros(2), torch.tensor([0.0, -torch.inf])), "M_hat holds 1 non-finite values"),
    ],
)
def test_tensors_that_are_no_unit_are_refused(tmp_path, tensors, says):
    path = written(tmp_path / "unit", tensors)
    with pytest.raises(BadInput, match=f"unit: .*{says}") as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("about", "says"),
    [
        (GOOD | {"primitive": "log"}, "primitive is 'log', expected additive or exponential or"),
        (GOOD | {"primitive": ["additive"]}, "primitive is"),
        (GOOD | {"method": "fast"}, "method is 'fast', expected sign-exact or real or complex"),
        (GOOD | {"schema": 2}, "schema is '2', expected 1"),
        (GOOD | {"schema": True}, "schema is 'True', expected 1"),
        ({}, "schema is 'None', expected 1"),
        ("[1]", "not a saved unit"),
        ("{", "not a saved unit"),
        ("[" * 100_000, "not a saved unit"),
    ],
)
def test_metadata_that_describes_no_unit_is_refused(tmp_path, about, says):
    with pytest.raises(BadInput, match=f"unit: .*{says}"):
        load(written(tmp_path / "unit", about=about))


def test_a_safetensors_file_of_something_else_is_refused(tmp_path):
    with pytest.raises(BadInput, match="schema is 'None'"):
        load(written(tmp_path / "unit", key="format"))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "not a saved unit"),
        (b"hello", "not a saved unit"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"PK\x03\x04 and more", "pickle or zip archive"),
        (b"\x80\x02}q\x00.", "pickle or zip archive"),
        (struct.pack("<Q", 2**62) + b"{}", "not a saved unit"),
        (struct.pack("<Q", 2) + b"[]", "not a saved unit"),
    ],
)
def test_other_files_are_named_for_what_they_are(tmp_path, raw, says):
    (tmp_path / "unit").write_bytes(raw)
    with pytest.raises(BadInput, match=f"unit: .*{says}"):
        load(tmp_path / "unit")


def test_every_truncation_is_refused(tmp_path):
    path = written(tmp_path / "unit")
    raw = path.read_bytes()
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        with pytest.raises(BadInput):
            load(path)


def test_a_missing_file_a_folder_and_one_too_large_are_refused(tmp_path, monkeypatch):
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(BadInput, match="no such file"):
            load(path)
    monkeypatch.setattr("workbench.hill.storage.LIMIT", 100)
    with pytest.raises(BadInput, match="expected at most 100"):
        load(written(tmp_path / "unit"))
    with pytest.raises(BadInput, match="expected at most 100"):
        save(HillUnit.enumerated("add"), tmp_path / "other")
    assert not (tmp_path / "other").exists()
