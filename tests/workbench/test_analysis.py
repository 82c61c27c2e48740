import dataclasses
import importlib.metadata
import re
import subprocess
import sys
from dataclasses import dataclass

import pandas as pd
import pytest

from workbench import analysis
from workbench.errors import BadInput
from workbench.recipe import knob
from workbench.result import Finding, Result

SOURCE = """
from dataclasses import dataclass
from workbench.analysis import Finding, Result, analysis
from workbench.recipe import knob

@dataclass(frozen=True)
class Options:
    seed: int = knob(0, "seed")

@analysis(question="What is it?", options=Options, inputs="nothing")
def run(inputs, options):
    return Result({}, {}, [Finding("the seed", options.seed)])
"""


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Installs packages of analyses: {package: {file stem: source}}; nothing else is found while the test runs."""

    def install(contents):
        for package, files in contents.items():
            (tmp_path / package).mkdir()
            for stem, source in {"__init__": "", **files}.items():
                (tmp_path / package / f"{stem}.py").write_text(source)
        entries = [importlib.metadata.EntryPoint(name, name, analysis.ENTRY_POINTS) for name in contents]
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)

    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    yield install
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_names_come_from_the_files_without_importing_them(packages):
    broken = "raise RuntimeError('imported')"
    packages({"probes_one": {"first_look": broken, "_shared": broken}, "probes_two": {"second": broken}})
    assert analysis.names() == ["first-look", "second"]


def test_an_analysis_is_found_by_its_file_and_runs(packages):
    packages({"probes_run": {"first_look": SOURCE}})
    found = analysis.get("first-look")
    assert (found.name, found.question, found.inputs) == ("first-look", "What is it?", "nothing")
    assert found.function([], found.options(seed=7)) == Result({}, {}, [Finding("the seed", 7)])


def test_an_unknown_name_lists_those_there_are(packages):
    packages({"probes_known": {"first_look": SOURCE, "second": SOURCE}})
    with pytest.raises(BadInput, match="unknown analysis 'third'; choose from first-look, second"):
        analysis.get("third")


def test_two_files_of_one_name_are_refused(packages):
    packages({"probes_left": {"same": SOURCE}, "probes_right": {"same": SOURCE}})
    with pytest.raises(BadInput, match=r"two analyses are named same: probes_left\.same and probes_right\.same"):
        analysis.names()


def test_a_file_defines_exactly_one_analysis_and_may_import_others(packages):
    twice = SOURCE + SOURCE.replace("def run", "def again")
    borrowing = "from probes_count.one import run as other\n" + SOURCE
    packages({"probes_count": {"none": "", "one": SOURCE, "two": twice, "borrowing": borrowing}})
    for name, count in (("none", 0), ("two", 2)):
        with pytest.raises(BadInput, match=rf"probes_count\.{name} defines {count} analyses, expected exactly one"):
            analysis.get(name)
    assert analysis.get("borrowing").name == "borrowing"


def test_an_entry_point_must_be_a_package(monkeypatch):
    entry = importlib.metadata.EntryPoint("odd", "json.decoder", analysis.ENTRY_POINTS)  # a module
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    with pytest.raises(BadInput, match=r"odd .* is json\.decoder, expected a package"):
        analysis.names()


@dataclass(frozen=True)
class Fine:
    seed: int = knob(0, "seed of the problems")


@dataclass
class Thawed:
    seed: int = knob(0, "seed of the problems")


@dataclass(frozen=True)
class Unexplained:
    seed: int = 0


@dataclass(frozen=True)
class Undecided:
    seed: int = dataclasses.field(metadata={"help": "seed of the problems"})


@pytest.mark.parametrize("options", [dict, Fine(), Thawed, None])
def test_options_must_be_a_frozen_dataclass(options):
    with pytest.raises(TypeError, match="must be a frozen dataclass"):
        analysis.analysis(question="What?", options=options)


@pytest.mark.parametrize("options", [Unexplained, Undecided])
def test_every_option_needs_a_default_and_a_help_text(options):
    with pytest.raises(TypeError, match="option seed needs a default and a help text"):
        analysis.analysis(question="What?", options=options)


def test_inputs_are_one_of_three():
    with pytest.raises(TypeError, match="'models', expected one of checkpoints, folder, nothing"):
        analysis.analysis(question="What?", options=Fine, inputs="models")  # type: ignore[arg-type]


def test_every_installed_analysis_keeps_the_contract():
    assert "exact-probe" in analysis.names()
    for name in analysis.names():
        found = analysis.get(name)
        assert found.name == name and re.fullmatch(r"[A-Z].*[?]", found.question)
        found.options()  # every option has a default


def test_the_contract_is_light_to_import():
    """The command line imports it to list names; the heavy libraries come with the analysis that is run."""
    heavy = {"torch", "pandas", "plotly", "transformer_lens"}
    code = f"import sys, workbench.analysis as a; a.names(); print(sorted({heavy!r} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_results_are_saved_and_loaded_through_the_contract(tmp_path):
    result = Result({"t": pd.DataFrame({"a": [1.5]})}, {}, [])
    analysis.save(result, tmp_path, analysis_name="x", options=Fine())
    assert analysis.load(tmp_path) == result
