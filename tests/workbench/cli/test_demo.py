"""The demo runs its steps as a user would and ends with numbers and files."""

import pytest

from workbench.cli import demo, run


def test_it_ends_with_the_numbers_and_the_files_it_wrote(short_run, tmp_path, monkeypatch, capsys):
    out = tmp_path / "demo"
    steps = {
        "Probing": ["analyze", "exact-probe", str(short_run), "--problems", "1000", "--out", str(out / "exact-probe")],
        "Exporting": ["export", str(short_run), "--hooks", "hook_embed", "--problems", "5", "--out", str(out / "acts")],
    }
    monkeypatch.setattr(demo, "_commands", lambda checkpoints, out: steps)
    assert run(["demo", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "$ workbench analyze exact-probe" in text and "== Probing" in text
    numbers, files = text.partition("== Numbers")[2].split("== Files")
    assert numbers.count("exact-probe:") == 1 and len(numbers.splitlines()) > 3
    written = sorted(str(path) for path in out.rglob("*") if path.is_file())
    assert [line.split()[0] for line in files.split("\n") if line] == written
    assert run(["demo", "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_failing_step_ends_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "_commands", lambda checkpoints, out: {"Listing": ["list", str(tmp_path / "nowhere")]})
    assert run(["demo", "--out", str(tmp_path / "demo")]) == 2
    assert capsys.readouterr().err.count("Error: ") == 1


@pytest.mark.parametrize("flag", ["--out", "--checkpoints"])
def test_its_flags_have_help(flag, capsys):
    assert run(["demo", "--help"]) == 0
    assert flag in capsys.readouterr().out
