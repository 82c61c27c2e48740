import json

import numpy as np
import pytest

from workbench import checkpoint
from workbench.activations.read import read_export
from workbench.cli import run
from workbench.recipe import Architecture, RunConfig
from workbench.sample import sample
from workbench.structure import in_category
from workbench.task import format_problems

HOOK = "blocks.*.hook_resid_post"


@pytest.fixture
def make(tmp_path, write_run):
    """Folders of untrained checkpoints, written as a run would."""

    def write(mlp="relu", problems="all"):
        config = RunConfig(Architecture(mlp=mlp), problems=problems)
        return write_run(tmp_path / config.name, config, {200: 2.5})

    return write


def refused(capsys, arguments):
    """The one line that a refused command says; usage lines may stand before it."""
    capsys.readouterr()
    assert run([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    lines = err.strip().splitlines()
    assert out == "" and lines[-1].startswith("Error: ") and err.count("Error: ") == 1
    return lines[-1]


def test_export_says_what_it_wrote(make, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["export", str(make()), "--hooks", HOOK, "--problems", "50", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert "blocks.1.hook_resid_post  float32  [problem 50, pos 15, d_model 32]" in said.out
    assert f"50 problems drawn with seed 0 from the variant all; 0.2 MB in {out} (1 file and index.json)" in said.out
    assert "docs/activations.md" in said.err and "\x1b" not in said.err  # no bar outside a terminal
    found = read_export(out)
    np.testing.assert_array_equal(found.problems.index, sample(50, 0).index)


def test_json_is_one_object(make, tmp_path, capsys):
    folder, out = make("bilinear"), tmp_path / "out"
    hooks = ["--hooks", "hook_embed, blocks.0.mlp.hook_post", "--hooks", "blocks.1.attn.hook_pattern"]
    options = ["--problems", "1,000", "--positions", "=,d4-14", "--dtype", "float16", "--shard-mb", "1", "--seed", "3"]
    assert run(["export", str(folder), *hooks, *options, "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["checkpoints"] == {"arithmetic-bilinear-2layer-seed0": checkpoint.read(folder).weights_sha256}
    assert (said["n_problems"], said["folder"], said["shards"]) == (1_000, str(out), 2)
    assert [(one["name"], one["shape"]) for one in said["tensors"]] == [
        ("hook_embed", [1_000, 5, 32]),
        ("blocks.0.mlp.hook_post", [1_000, 5, 64]),
        ("blocks.1.attn.hook_pattern", [1_000, 4, 5, 15]),
    ]
    assert {tuple(one["positions"]) for one in said["tensors"]} == {(9, 11, 12, 13, 14)}
    assert {one["dtype"] for one in said["tensors"]} == {"float16"}
    assert said["bytes"] == sum(path.stat().st_size for path in out.glob("*.safetensors"))
    np.testing.assert_array_equal(read_export(out).problems.index, sample(1_000, 3).index)


def test_a_category_counts_its_own_problems(make, tmp_path):
    out = tmp_path / "out"
    assert (
        run(["export", str(make()), "--hooks", "hook_embed", "--problems", "40", "--category", "M2", "--out", str(out)])
        == 0
    )
    found = read_export(out)
    assert len(found) == 40 and in_category(found.problems, "M2").all()
    assert found.index.chosen == "40 problems of category M2 drawn with seed 0 from the variant all"


def test_the_variant_of_the_checkpoint_is_kept(make, tmp_path):
    out = tmp_path / "out"
    assert (
        run(["export", str(make(problems="ordered")), "--hooks", "hook_embed", "--problems", "99", "--out", str(out)])
        == 0
    )
    assert not read_export(out).problems.negative.any()


def test_problems_from_a_file(make, tmp_path, capsys):
    folder, path, out = make(), tmp_path / "mine.txt", tmp_path / "out"
    path.write_text("5000-0001\n\n 7 + 35 \n123-456\n")
    base = ["export", str(folder), "--hooks", "hook_embed", "--problems", str(path)]
    assert run([*base, "--out", str(out)]) == 0
    assert format_problems(read_export(out).problems) == ["5000-0001", "0007+0035", "0123-0456"]
    assert read_export(out).index.chosen == "3 problems from the file mine.txt"
    assert run([*base, "--category", "subtraction", "--out", str(out), "--overwrite"]) == 0
    assert format_problems(read_export(out).problems) == ["5000-0001", "0123-0456"]
    assert "none of its problems is of category 'S4'" in refused(
        capsys, [*base, "--category", "S4", "--out", tmp_path / "other"]
    )
    path.write_text("5000-0001\n12345+1\n")
    assert "mine.txt: line 2: '12345+1' has an operand of 5 digits" in refused(
        capsys, [*base, "--out", tmp_path / "other"]
    )


def test_joining(make, tmp_path, capsys):
    relu, bilinear = make(), make("bilinear")
    a, b, c = (tmp_path / name for name in "abc")
    for folder, out, seed in ((relu, a, 0), (bilinear, b, 0), (relu, c, 1)):
        base = ["export", str(folder), "--hooks", HOOK, "--problems", "30", "--out", str(out)]
        assert run([*base, "--seed", str(seed)]) == 0
    capsys.readouterr()
    assert run(["export-join", str(a), str(b), "--out", str(tmp_path / "both"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["tensors"]) == 4 and len(said["checkpoints"]) == 2 and said["n_problems"] == 30
    assert run(["export-join", str(a), str(c), "--rows", "--out", str(tmp_path / "rows")]) == 0
    assert "[problem 60, pos 15, d_model 32]" in capsys.readouterr().out
    assert len(read_export(tmp_path / "rows")) == 60
    line = refused(capsys, ["export-join", a, c, "--out", tmp_path / "wrong"])
    assert "token ids differ first in row 0" in line and "do not belong side by side" in line
    assert "checkpoints differ" in refused(capsys, ["export-join", a, b, "--rows", "--out", tmp_path / "wrong"])
    assert "give two or more" in refused(capsys, ["export-join", a, "--out", tmp_path / "wrong"])
    assert "no export in it" in refused(capsys, ["export-join", a, relu, "--out", tmp_path / "wrong"])
    assert not (tmp_path / "wrong").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--hooks", "blocks.0.hook_resid_pots"], "close ones: blocks.0.hook_resid_post"),
        (["--hooks", "hook_embed,"], "unknown hook ''"),
        (["--problems", "0"], "ask for 1 to 10,000,000"),
        (["--problems", "-5"], "expected a number from 1, or a file"),
        (["--problems", "999999999999"], "ask for 1 to 10,000,000"),
        (["--problems", "missing.txt"], "missing.txt: no such file"),
        (["--category", "S7"], "unknown category 'S7'; choose from addition"),
        (["--positions", "9-15"], "predicted, never read"),
        (["--dtype", "int8"], "float32"),
        (["--shard-mb", "0"], "choose 1 to 1024"),
        (["--seed", "-1"], "--seed"),
        (["--out", "FILE"], "is a file; choose another path"),
        (["--out", "FILE/under"], "is a file; choose another path"),
        (["--out", "MODEL"], "not an export's"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(make, tmp_path, capsys, options, said):
    folder = make()
    (tmp_path / "FILE").write_text("")
    before = sorted(path for path in tmp_path.rglob("*"))
    options = [option.replace("FILE", str(tmp_path / "FILE")).replace("MODEL", str(folder)) for option in options]
    line = refused(capsys, ["export", folder, "--hooks", "hook_embed", "--out", tmp_path / "out", *options])
    assert said in line
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_what_is_no_checkpoint_is_refused(tmp_path, capsys):
    rest = ["--hooks", "hook_embed", "--out", tmp_path / "out"]
    assert "no such folder" in refused(capsys, ["export", tmp_path / "missing", *rest])
    assert "not a checkpoint" in refused(capsys, ["export", tmp_path, *rest])
    assert "--hooks" in refused(capsys, ["export", tmp_path, "--out", tmp_path / "out"])
