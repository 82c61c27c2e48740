"""The house's rules that a machine can check."""

import ast
import fnmatch
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for room in ("workbench", "analyses") for path in (ROOT / room).rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 320, 60


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def test_workbench_never_imports_analyses():
    guilty = [
        path
        for path in SOURCES
        if path.is_relative_to(ROOT / "workbench") and any(n.split(".")[0] == "analyses" for n in imported(path))
    ]
    assert not guilty
    assert any("workbench" in name for path in SOURCES for name in imported(path))  # the check sees imports at all


def storeys(room: str, following: str) -> dict[str, int]:
    """The line on which each file or folder of a room stands in CONTRIBUTING's picture."""
    picture = (ROOT / "CONTRIBUTING.md").read_text().partition(f"\n{room}/\n")[2].partition(f"\n{following}/")[0]
    lines = enumerate(picture.splitlines())
    return {name: at for at, line in lines for name in re.findall(r"[\w*]+(?:\.py|/)", re.split(r" {3,}", line)[0])}


def test_inside_workbench_a_file_imports_only_what_stands_above_it():
    order = storeys("workbench", "analyses")
    assert len(order) > 25

    def storey(module: str) -> int:
        part = module.split(".")[1]
        (found,) = (at for name, at in order.items() if fnmatch.fnmatch(f"{part}.py", name) or name == f"{part}/")
        return found

    for path in SOURCES:
        own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if not own.startswith("workbench.") or own == "workbench.__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "workbench":
                direct = node.module == "workbench"
                for name in [f"workbench.{alias.name}" for alias in node.names] if direct else [node.module]:
                    if name != "workbench.__version__":
                        assert storey(name) <= storey(own), (own, name)


def test_inside_analyses_a_folder_imports_only_what_stands_above_it():
    order = storeys("analyses", "checkpoints")
    assert order["hill/"] < order["kernel/"] < order["learned/"] < order["arena.py"]

    def storey(module: str) -> int:
        part = re.sub(r"^_(arena)_.*", r"\1", module.split(".")[1])  # private parts stand with their analysis
        return order[f"{part}/"] if f"{part}/" in order else order[f"{part}.py"]

    seen = set()
    for path in SOURCES:
        own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if own.startswith("analyses.") and not own.endswith("__init__"):
            for name in imported_names(path):
                if name.startswith("analyses."):
                    assert storey(name) <= storey(own), (own, name)
                    seen.add((own.split(".")[1], name.split(".")[1]))
    assert {("learned", "hill"), ("learned", "kernel")} <= seen  # the check sees imports at all


def imported_names(path: Path) -> set[str]:
    """Modules that a file imports, with what it takes from a package of analyses."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            package = (ROOT / node.module.replace(".", "/")).is_dir()
            names |= {f"{node.module}.{alias.name}" for alias in node.names} if package else {node.module}
    return names


def test_nothing_unpickles():
    modules, calls = {"pickle", "joblib", "dill", "shelve"}, {"torch.load", "torch.save", "np.load", "pd.read_pickle"}
    for path in SOURCES:
        assert not imported(path) & modules, path
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.Attribute) and ast.unparse(node) in calls), (path, node.lineno)


def test_files_and_functions_are_short():
    for path in SOURCES:
        text = path.read_text()
        assert len(text.splitlines()) <= LONGEST_FILE, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                assert node.end_lineno - node.lineno < LONGEST_FUNCTION, (path.name, node.name)


def test_every_source_file_has_a_test_file():
    without = {"__init__", "errors"}
    missing = [
        path.relative_to(ROOT)
        for path in SOURCES
        if path.stem not in without
        and not path.stem.startswith("_")  # tested through the file it belongs to
        and not (ROOT / "tests" / path.relative_to(ROOT).parent / f"test_{path.stem}.py").exists()
    ]
    assert not missing


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (["--help"], {"torch", "transformer_lens", "pandas", "plotly", "safetensors"}),
        (["train", "--help"], {"torch", "transformer_lens", "pandas"}),
        (["hill", "calc", "--help"], {"torch", "transformer_lens", "pandas", "plotly"}),
        (["hill", "fit", "--help"], {"torch", "transformer_lens", "pandas", "plotly"}),
        (["ntk", "run", "--help"], {"torch", "transformer_lens", "pandas", "plotly"}),
        (["ntk", "solve", "--help"], {"torch", "transformer_lens", "pandas", "plotly"}),
        (["ntk", "sbn", "--help"], {"torch", "transformer_lens", "pandas", "plotly"}),
        (["list", "checkpoints"], {"torch", "transformer_lens", "pandas"}),
        (["solve", "checkpoints/arithmetic-relu-1layer-seed0", "1+1"], {"transformer_lens", "pandas"}),
        (["evaluate", "checkpoints/arithmetic-relu-1layer-seed0", "--split", "test"], {"transformer_lens", "pandas"}),
    ],
)
def test_commands_import_only_what_they_need(words, unwanted):
    code = (
        "import sys; from workbench.cli import run; code = run(sys.argv[1:]);"
        "sys.stderr.write('MODULES ' + ' '.join(sys.modules)); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    loaded = set(done.stderr.rpartition("MODULES ")[2].split())
    assert "typer" in loaded
    assert not loaded & unwanted


def test_training_needs_no_transformer_lens():
    code = "import sys, workbench.training; assert 'torch' in sys.modules; sys.exit('transformer_lens' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
