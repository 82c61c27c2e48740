"""`workbench list`, `evaluate` and `solve`: what trained decoders are and what they answer."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from workbench.cli.output import note, print_json, print_table, say, with_interval
from workbench.errors import BadInput

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint
    from workbench.scores import Score

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Grouping = Literal["operator", "sign", "count", "chain", "class"]


def describe(one: "Checkpoint") -> dict[str, Any]:
    """A checkpoint and its stored scores as plain values."""
    shape = one.config.architecture
    results = {split: {name: score.row() for name, score in groups.items()} for split, groups in one.results.items()}
    return {
        "name": one.name, "state": "finished", "mlp": shape.mlp, "n_layers": shape.n_layers, "seed": one.config.seed,
        "n_params": shape.n_params, "problems": one.config.problems, "kept_step": one.kept_step,
        "steps": one.config.recipe.steps, "engine": one.config.engine, "sha256": one.weights_sha256, "results": results,
    }  # fmt: skip


def score_rows(one: "Checkpoint") -> list[str]:
    """The stored scores of a checkpoint, a line each."""
    return [
        f"{split:10} {name:12} {_line(score)}"
        for split, groups in one.results.items()
        for name, score in groups.items()
    ]


def _line(score: "Score") -> str:
    seq, digit = with_interval(score.seq_acc, score.seq_interval), with_interval(score.digit_acc, score.digit_interval)
    return f"n={score.n:<6,} loss {score.loss:.4f}  digits {digit}  sequence {seq}  sign {score.sign_acc:.4f}"


def load_given(paths: Sequence[Path]) -> "list[Checkpoint]":
    """The checkpoints that the paths name, with a remark on unfinished runs left out."""
    from workbench import checkpoint

    loaded = []
    for path in paths:
        found, unfinished = checkpoint.read_given(path)
        loaded += found
        if unfinished:
            note(f"left out of {path}, unfinished: {', '.join(unfinished)}")
    return loaded


def list_models(
    folder: Annotated[Path, typer.Argument(help="Folder whose direct children are checkpoints.")] = Path("checkpoints"),
    as_json: AsJson = False,
) -> None:
    """List the checkpoints in a folder, finished and unfinished, with their stored validation accuracy."""
    from workbench import checkpoint

    finished, unfinished = checkpoint.find(folder)
    found, refused = [], []
    for path in finished:
        try:
            found.append(checkpoint.read(path))
        except BadInput as error:
            refused.append({"name": path.name, "state": "refused", "reason": str(error)})
    found.sort(key=checkpoint.reading_order)
    rows = [describe(one) for one in found]
    rows += [{"name": path.name, "state": "unfinished"} for path in unfinished] + refused
    if as_json:
        print_json(rows)
    else:
        print_table(f"{len(found)} checkpoints in {folder}", LIST_COLUMNS, [list_row(row) for row in rows])
        for row in refused:
            note(f"refused: {row['reason']}")
    if refused:
        raise BadInput(
            f"{folder}: {len(refused)} of {len(finished)} checkpoints were refused; the first: {refused[0]['reason']}"
        )


LIST_COLUMNS = ("name", "parameters", "kept step", "loss", "addition", "subtraction", "sign", "n")


def list_row(row: dict[str, Any]) -> list[str]:
    """A described checkpoint as a row of LIST_COLUMNS."""
    if row["state"] != "finished":
        return [row["name"], row["state"], "", "", "", "", "", ""]
    groups = row["results"].get("validation", {})
    seq = [
        with_interval(groups[name]["seq_acc"], (groups[name]["seq_low"], groups[name]["seq_high"]))
        if name in groups
        else ""
        for name in ("addition", "subtraction")
    ]
    overall = groups["all"]
    return [
        row["name"], f"{row['n_params']:,}", f"{row['kept_step']:,}/{row['steps']:,}", f"{overall['loss']:.4f}",
        *seq, f"{overall['sign_acc']:.4f}", f"{overall['n']:,}",
    ]  # fmt: skip


def evaluate(
    path: Annotated[Path, typer.Argument(help="A checkpoint, or a folder of checkpoints.")],
    split: Annotated[Literal["validation", "test", "both"], typer.Option(help="Which held-out problems.")] = "both",
    problems: Annotated[
        Path | None, typer.Option(help="A text file with one problem a line, instead of a split.")
    ] = None,
    by: Annotated[
        Grouping, typer.Option(help="How to group: operator, sign, count (of carries or borrows), chain, class.")
    ] = "operator",
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Count all 200,000,000 problems instead; resumable, kept in --out.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --exhaustive: folder of the counts; `exhaustive` beside the checkpoints.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="With --exhaustive: threads; one a core if not given.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a checkpoint on held-out problems, or on every problem there is, and print its accuracy by group.

    Held-out problems: loss, digit, sequence and sign accuracy with 95% intervals. Every problem: exact counts.
    """
    if exhaustive:
        if problems is not None:
            raise BadInput("--exhaustive counts every problem; leave out --problems")
        from workbench.cli import exhaustive as counting

        counting.exhaustive(path, load_given([path]), out=out, jobs=jobs, by=by, as_json=as_json)
        return
    if out is not None or jobs is not None:
        raise BadInput("--out and --jobs belong to --exhaustive; add it, or leave them out")
    from workbench import evaluation, forward, task
    from workbench.splits import Splits

    asked = {problems.name: task.read_problems(problems)} if problems else {}
    rows: list[dict[str, Any]] = []
    for one in load_given([path]):
        weights, config = forward.tensors(one.weights), one.config
        splits = Splits(config.data_seed, config.problems)
        names = ("validation", "test") if split == "both" else (split,)
        for name, batch in (asked or {name: getattr(splits, name) for name in names}).items():
            outcome = evaluation.run(weights, config.architecture, batch, config.problems)
            groups = [("all", evaluation.score(outcome))]
            if not math.isfinite(groups[0][1].loss):
                raise BadInput(f"{one.name}: its logits overflow float32, so it has no accuracy; restore its weights")
            groups += [(group, score) for _, group, score in evaluation.by_category(outcome, batch, (by,))]
            rows += [{"model": one.name, "on": name, "group": group, **score.row()} for group, score in groups]
    if as_json:
        print_json(rows)
        return
    print_table("accuracy, 95% Wilson intervals", EVALUATE_COLUMNS, [_evaluate_row(row) for row in rows])


EVALUATE_COLUMNS = ("model", "on", "group", "n", "loss", "digit accuracy", "sequence accuracy", "sign")


def _evaluate_row(row: dict[str, Any]) -> list[str]:
    digit, seq = (with_interval(row[f"{k}_acc"], (row[f"{k}_low"], row[f"{k}_high"])) for k in ("digit", "seq"))
    start = [row["model"], row["on"], row["group"], f"{row['n']:,}", f"{row['loss']:.4f}"]
    return [*start, digit, seq, f"{row['sign_acc']:.4f}"]


def solve(
    path: Annotated[Path, typer.Argument(help="A checkpoint.")],
    problem: Annotated[
        str, typer.Argument(help='The problem, such as "1234-5678": 1 to 4 digits, + or -, 1 to 4 digits.')
    ],
    as_json: AsJson = False,
) -> None:
    """Ask a checkpoint one problem; shows each digit with its probability, beside the exact answer.

    The sign is given, as in training; below it, what the checkpoint writes when it must say the sign itself.
    """
    from workbench import task

    asked = task.parse(problem)
    import numpy as np

    from workbench import checkpoint, forward, generation

    one = checkpoint.read(path)
    weights, shape, hide = forward.tensors(one.weights), one.config.architecture, one.config.problems == "sign-hidden"
    exact = task.format_answers(asked.answers)[0]
    given, own = (generation.generate(weights, shape, asked, give_sign=give, hide_sign=hide) for give in (True, False))
    if not (np.isfinite(given.probabilities).all() and np.isfinite(own.probabilities).all()):
        raise BadInput(f"{one.name}: its logits overflow float32, so it has no answer; restore its weights")
    answers = {
        key: {
            "text": "".join(task.CHARACTERS[token] for token in answer.tokens[0]),
            "tokens": [task.CHARACTERS[token] for token in answer.tokens[0]],
            "probabilities": [float(p) for p in answer.probabilities[0]],
        }
        for key, answer in (("sign_given", given), ("own_sign", own))
    }
    if as_json:
        print_json({"problem": task.format_problems(asked)[0], "model": one.name, "exact": exact, **answers})
        return
    say(f"{task.format_problems(asked)[0]} = {exact}    exact")
    shown_sign = "hidden" if hide else "given"
    for key, words in (("sign_given", f"sign {shown_sign}"), ("own_sign", "its own sign")):
        text = answers[key]["text"]
        right = text[1:] == exact[1:] if key == "sign_given" else text == exact
        say(f"{'':9} = {text}    {words}, {'right' if right else 'wrong'}")
        shown = [f"{probability:.6f}" for probability in answers[key]["probabilities"]]
        if key == "sign_given":
            shown[0] = shown_sign
        for place, token, probability in zip(task.POSITION_LABELS[10:], text, shown, strict=True):
            say(f"{'':12}{place:>2}  {token}  {probability}")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("list")(list_models)
    app.command("evaluate")(evaluate)
    app.command("solve")(solve)
