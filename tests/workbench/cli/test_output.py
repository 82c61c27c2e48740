"""Results go to stdout, remarks to stderr, progress nowhere but a terminal."""

import json

import pytest

from workbench.cli import output


def test_results_and_remarks_do_not_mix(capsys):
    output.print_json({"a": 1})
    output.note("remark")
    found = capsys.readouterr()
    assert json.loads(found.out) == {"a": 1} and found.err == "remark\n"


def test_json_has_no_nan():
    with pytest.raises(ValueError, match="JSON compliant"):
        output.print_json({"a": float("nan")})


def test_a_table_keeps_brackets_and_every_cell(capsys):
    output.print_table("Title", ("name", "n"), [("[red]x[/red]", 10), ("y", 2_000)])
    text = capsys.readouterr().out
    assert all(part in text for part in ("Title", "[red]x[/red]", "10", "2000"))


def test_progress_is_quiet_outside_a_terminal(capsys):
    with output.progress("work", 10) as update:
        update(5, "half")
    assert capsys.readouterr().err == ""


def test_progress_shows_count_rate_and_eta_in_a_terminal(capsys, monkeypatch):
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with output.progress("work", 10) as update:
        update(10, "done it")
    text = capsys.readouterr().err
    assert "work" in text and "10/10" in text and "ETA" in text


def test_a_narrow_terminal_cuts_no_column(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    output.print_table("Title", ("name", "value"), [("arithmetic-relu-1layer-seed0", "0.9754 (0.9707 to 0.9793)")])
    text = capsys.readouterr().out
    assert "arithmetic-relu-1layer-seed0" in text and "0.9754 (0.9707 to 0.9793)" in text
