"""Finding the kernels, or saying why there are none."""

import pytest

from workbench.native import library
from workbench.recipe import Architecture


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder in which no kernels are built."""
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    monkeypatch.delenv(library.SWITCH, raising=False)
    library._found.cache_clear()
    yield tmp_path
    library._found.cache_clear()


def test_what_is_not_built_is_a_reason(elsewhere):
    assert "not built" in library.missing()
    with pytest.raises(RuntimeError, match="not built"):
        library.library()


def test_they_can_be_switched_off(elsewhere, monkeypatch):
    monkeypatch.setenv(library.SWITCH, "1")
    assert library.missing() == "the kernels are switched off by WORKBENCH_NO_KERNELS"


def test_a_damaged_file_is_a_reason(elsewhere):
    suffix = library.importlib.machinery.EXTENSION_SUFFIXES[0]
    (elsewhere / f"_kernel{suffix}").write_bytes(b"not a library")
    assert "do not load" in library.missing()


@pytest.mark.parametrize(("name", "width"), [("d_model", 48), ("n_heads", 2), ("d_head", 16), ("d_mlp", 128)])
def test_widths_the_kernels_are_not_written_for(name, width):
    assert f"{name} {library.WIDTHS[name]}, not {width}" in library.missing(Architecture(**{name: width}))


@pytest.mark.skipif(bool(library.missing()), reason=library.missing())
def test_the_compiler_is_named():
    assert library.compiler().split()[0] in ("GCC", "Clang")
    assert library.missing(Architecture(n_layers=5)) == ""
