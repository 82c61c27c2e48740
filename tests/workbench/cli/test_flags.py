"""Flags come from dataclass fields, default and help included."""

import inspect
from dataclasses import dataclass

import pytest

from workbench.cli.flags import build, flag_parameters, with_flags
from workbench.errors import BadInput
from workbench.recipe import Recipe, knob


@dataclass(frozen=True)
class Options:
    count: int = knob(3, "how many")
    plain: int = 5


def test_only_fields_with_help_become_flags():
    (parameter,) = flag_parameters(Options)
    assert (parameter.name, parameter.default) == ("count", 3)
    assert parameter.annotation.__metadata__[0].help == "how many"


def test_the_command_has_its_own_parameters_and_the_flags():
    def command(folder: str, **flags) -> None:
        """What it does."""

    made = with_flags(command, Options)
    assert list(inspect.signature(made).parameters) == ["folder", "count"]
    assert made.__doc__ == "What it does."


def test_build_takes_its_own_flags_and_checks_them():
    assert build(Recipe, {"lr": 0.5, "unrelated": 1}).lr == 0.5
    with pytest.raises(BadInput):
        build(Recipe, {"lr": -1.0})
