"""Which engine a run gets, and that it is said when it is not the fastest."""

import dataclasses

import pytest

from workbench.engine import choice, compiled, eager, native, plain
from workbench.errors import BadInput
from workbench.native import library
from workbench.recipe import Architecture, RunConfig

CONFIG = RunConfig()


@pytest.fixture
def without(monkeypatch):
    """Take away the kernels, and the compiler too if asked."""

    def take(compiler=False):
        monkeypatch.setattr(library, "missing", lambda architecture=None: "the kernels are not built")
        if compiler:
            monkeypatch.setattr(compiled, "unavailable", lambda device: "torch.compile fails here")
        else:
            monkeypatch.setattr(compiled, "unavailable", lambda device: "")

    return take


def test_the_names_are_modules():
    names = ("plain", "eager", "compiled", "native")
    assert [choice.engine(name) for name in names] == [plain, eager, compiled, native]


def test_auto_takes_the_kernels_where_they_are(monkeypatch):
    monkeypatch.setattr(library, "missing", lambda architecture=None: "")
    found, remark = choice.settled(CONFIG)
    assert (found.engine, remark) == ("native", "")
    assert dataclasses.replace(found, engine="auto") == CONFIG


def test_without_kernels_auto_compiles_and_says_so(without):
    without()
    found, remark = choice.settled(CONFIG)
    assert found.engine == "compiled" and "the kernels are not built" in remark


def test_without_a_compiler_auto_is_eager_and_says_so(without):
    without(compiler=True)
    found, remark = choice.settled(CONFIG)
    assert found.engine == "eager"
    assert remark == "engine eager, not a faster one: the kernels are not built; torch.compile fails here"


def test_a_named_engine_that_cannot_run_is_refused(without):
    without(compiler=True)
    for name in ("native", "compiled"):
        with pytest.raises(BadInput, match=f"engine {name} cannot run here"):
            choice.settled(dataclasses.replace(CONFIG, engine=name))
    for name in ("plain", "eager"):
        assert choice.settled(dataclasses.replace(CONFIG, engine=name))[0].engine == name


def test_kernels_are_not_for_other_devices_or_widths():
    elsewhere = RunConfig(engine="native", device="cuda")
    assert "run on cpu" in choice.unavailable(elsewhere)
    assert "d_model 32, not 8" in choice.unavailable(RunConfig(Architecture(d_model=8), engine="native"))
