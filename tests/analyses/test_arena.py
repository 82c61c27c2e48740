import importlib.metadata

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from analyses import _arena_beyond as beyond
from analyses import _arena_figures as figures
from analyses import _arena_forms as forms
from analyses import _arena_problems as arena_problems
from analyses import _arena_tables as tables
from analyses import arena as module
from workbench import analysis, checkpoint, forward
from workbench.errors import BadInput
from workbench.exhaustive import result as counted
from workbench.exhaustive.tally import CELLS, cell_labels
from workbench.hill.token_circuit import TokenCircuit
from workbench.hill.unit import HillUnit
from workbench.initialise import initial_weights
from workbench.ntk.decimal import Decimal
from workbench.recipe import Architecture, Recipe, RunConfig
from workbench.sample import sample
from workbench.splits import draw
from workbench.structure import CLASSES, categories, in_category
from workbench.task import DOMAIN_SIZE, Problems, encode, parse

RELU_1 = RunConfig(Architecture(n_layers=1))
SMALL = {"problems": 1000, "of_each_class": 20}


@pytest.fixture
def few(monkeypatch) -> None:
    """A smaller pool, and runs that trained on less."""
    monkeypatch.setattr(arena_problems, "POOL", 60_000)
    monkeypatch.setattr(arena_problems, "TOTAL_EXAMPLES", 5_000)
    monkeypatch.setattr(module, "BEYOND", 300)


@pytest.fixture
def checkpoints(tmp_path, write_run) -> list[checkpoint.Checkpoint]:
    """Two untrained seeds of one shape, and one of another."""
    for seed in (0, 1):
        write_run(
            tmp_path / f"arithmetic-relu-1layer-seed{seed}", RunConfig(RELU_1.architecture, seed=seed), {200: 2.5}
        )
    write_run(tmp_path / "other", RunConfig(Architecture(mlp="bilinear", n_layers=2, d_mlp=16)), {200: 2.5})
    return list(checkpoint.read_all(tmp_path))


def played(kind: str, wrong: np.ndarray, problems: Problems, name: str = "") -> tables.Played:
    """A form that is wrong on chosen problems and asked the same ones twice."""
    cost = forms.Cost(5, 7, 0, 11, "by hand")
    form = forms.Form(name or kind, kind, cost, lambda _: forms.Answered(~wrong))
    return tables.played(form, arena_problems.Asked(problems, problems))


def test_what_a_run_saw_is_left_out_and_nothing_else(few) -> None:
    seen = [RunConfig(), RunConfig(seed=1), RunConfig(data_seed=7, problems="addition")]
    drawn = draw(1234, 15_000)[5_000:]
    expected = drawn[~np.isin(drawn, draw(7, 5_000, "addition"))]
    assert np.array_equal(arena_problems.unseen(1234, 15_000, seen), expected)


def test_a_run_saw_training_validation_and_test_problems() -> None:
    assert arena_problems.TOTAL_EXAMPLES == 5_020_000


def test_problems_are_random_ones_and_others_of_each_class(few) -> None:
    asked = arena_problems.problems(3, 1000, 20, [RELU_1])
    assert len(asked.random) == 1000
    of = dict(zip(*np.unique(categories(asked.classes, "class"), return_counts=True), strict=True))
    assert set(of) == set(CLASSES) - ({"S4", "N4"} - set(of)) and max(of.values()) == 20 == of["S3"]
    assert not set(asked.random.index) & set(asked.classes.index)
    assert not np.isin(np.concatenate([asked.random.index, asked.classes.index]), draw(1234, 5_000)).any()


def test_a_seed_that_is_a_runs_own_is_refused_when_too_little_is_left(few, monkeypatch) -> None:
    monkeypatch.setattr(arena_problems, "TOTAL_EXAMPLES", 59_500)
    with pytest.raises(BadInput, match="seed 1234 draws 500 problems that no run saw, expected 1,000"):
        arena_problems.problems(1234, 1000, 20, [RELU_1])


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        # a token: Q, K, V, O 4 x 32 x 32, MLP 2 x 32 x 64; 15 of them; 120 pairs x 2 x 32; five unembeddings 32 x 13
        (Architecture(n_layers=1), 15 * (4096 + 4096) + 7_680 + 2_080),
        (Architecture(n_layers=2), 2 * (15 * (4096 + 4096) + 7_680) + 2_080),
        (Architecture(mlp="bilinear", n_layers=2), 2 * (15 * (4096 + 6144 + 64) + 7_680) + 2_080),
    ],
)
def test_multiply_adds_of_a_decoder_by_hand(shape: Architecture, expected: int) -> None:
    assert forms.multiply_adds(shape) == expected


def test_multiply_adds_are_those_torch_counts_less_what_an_answer_does_not_need() -> None:
    shape = Architecture(n_layers=2)
    tokens = torch.from_numpy(encode(sample(1, 0)))[:, :15]
    with FlopCounterMode(display=False) as counter:
        forward.logits(initial_weights(shape, "fan-in", 0), tokens, shape)
    future, unread = 2 * (225 - 120) * 64, 10 * 32 * 13  # pairs with later tokens, logits before the answer's
    assert counter.get_total_flops() / 2 - future - unread == forms.multiply_adds(shape)


def test_costs_of_the_exact_forms() -> None:
    hill, kernel = forms.hill().cost, forms.kernel().cost
    assert (hill.examples, hill.trained, hill.written, hill.multiply_adds) == (0, 0, 8, 4 + 4 + 2)
    assert (kernel.examples, kernel.trained, kernel.multiply_adds) == (1524, 0, 6 * (2 * 310 * 1524 + 2 * 310))
    # bits read and written of pairs, operator, carry, borrow, digit +, digit -, sign and keep: 73 carries read one bit,
    # the six through a nine read two; 72 borrows write two bits, two zeros of the units read one and twelve read two
    entries = 3200 + 4 + (73 * 2 + 6 * 3) + (72 * 3 + 2 * 2 + 12 * 3) + (38 + 342 + 4) + (114 + 912) + 4 + 308
    assert f"{6 * (entries + 620):,} where zeros are left out" in kernel.counted


@pytest.mark.parametrize("form", [forms.hill(), forms.kernel()], ids=lambda form: form.name)
def test_exact_forms_write_sign_and_digits_of_every_class(form: forms.Form) -> None:
    problems = sample(50_000, 4)
    assert set(categories(problems, "class")) == set(CLASSES)
    answered = form.ask(problems)
    assert answered.right.all() and answered.sign is None


def test_a_circuit_with_another_unit_is_wrong_where_it_is_asked(monkeypatch) -> None:
    units = {10: HillUnit.enumerated("add"), 11: HillUnit.enumerated("add")}
    monkeypatch.setattr(TokenCircuit, "units", units)
    problems = sample(2000, 4)
    assert np.array_equal(forms.hill().ask(problems).right, ~problems.subtract | (problems.b == 0))


def test_a_decoder_is_given_the_sign_and_right_with_five_digits(checkpoints) -> None:
    problems = sample(300, 2)
    form = forms.learned(checkpoints[0])
    found = form.ask(problems)
    logits = forward.logits(
        forward.tensors(checkpoints[0].weights), torch.from_numpy(encode(problems))[:, :15], RELU_1.architecture
    ).argmax(dim=-1).numpy()  # fmt: skip
    assert np.array_equal(found.right, (logits[:, 10:] == encode(problems)[:, 11:]).all(axis=1))
    assert np.array_equal(found.sign, logits[:, 9] == encode(problems)[:, 10])
    assert (form.name, form.kind) == ("relu-1layer-seed0", "relu, 1 layer")
    assert (form.cost.trained, form.cost.examples) == (9536, 5_000_000)


def test_a_shorter_run_saw_fewer_examples(tmp_path, write_run) -> None:
    short = RunConfig(recipe=Recipe(steps=100, warmup_steps=10, batch_size=64))
    for name, config in (("a", short), ("b", RunConfig())):
        write_run(tmp_path / name, config, {100: 2.0})
    both = [forms.learned(one) for one in checkpoint.read_all(tmp_path)]
    assert sorted(form.cost.examples for form in both) == [6_400, 5_000_000]
    assert [row["examples"] for row in tables.cost_rows(both)] == [6_400, 5_000_000]


def write_counts(one: checkpoint.Checkpoint, sha256: str) -> None:
    """Counts over the whole domain in two classes: 10 additions and all but one subtraction wrong."""
    counts = np.zeros((CELLS, 7), np.int64)
    half = DOMAIN_SIZE // 2
    for name, right in (("S0", half - 10), ("M0", 1)):
        (cell,) = (cell for cell in range(CELLS) if cell_labels(cell) == (name, 0, 0))
        counts[cell] = [half, *[half] * 5, right]
    folder = one.folder.parent / "exhaustive" / one.name
    counted.write(counted.Exhaustive(folder, one.name, sha256, "all", "torch", [0] * 5, counts, False), folder, None)


def test_counts_beside_a_checkpoint_are_used_when_they_are_of_its_weights(checkpoints) -> None:
    asked = arena_problems.Asked(sample(10, 0), sample(10, 1))
    first, second = checkpoints[:2]
    assert tables.played(forms.learned(first), asked).domain is None
    write_counts(first, first.weights_sha256)
    write_counts(second, first.weights_sha256)  # of other weights
    found = tables.played(forms.learned(first), asked)
    assert found.domain == {"addition": 10, "subtraction": DOMAIN_SIZE // 2 - 1} and not found.exact
    assert tables.played(forms.learned(second), asked).domain is None
    rows = tables.domain_rows([found])
    assert [(row["operator"], row["n"], row["wrong"]) for row in rows] == [
        ("addition", 100_000_000, 10), ("subtraction", 100_000_000, 99_999_999)
    ]  # fmt: skip


def test_the_worst_class_is_where_the_seeds_together_are_least_often_right() -> None:
    problems = sample(20_000, 6)
    m3, n3 = in_category(problems, "M3"), in_category(problems, "N3")
    games = [played("k", m3, problems, "one"), played("k", n3 & (problems.a % 2 == 0), problems, "two")]
    asked = arena_problems.Asked(problems, problems)
    rows = [row for game in games for row in tables.category_rows(game, asked)]
    name, values = tables.worst(rows, "k") or ("", [])
    assert (name, values) == ("M3", [0.0, 1.0])
    assert tables.worst(tables.category_rows(played("k", np.zeros(20_000, bool), problems), asked), "k") is None
    (m3_row,) = (row for row in rows if row["form"] == "one" and row["category"] == "M3")
    assert (m3_row["n"], m3_row["right"]) == (2 * m3.sum(), 0)  # both sets are counted for a class
    (minus,) = (row for row in rows if row["form"] == "one" and row["category"] == "subtraction")
    assert (minus["n"], minus["right"]) == (problems.subtract.sum(), problems.subtract.sum() - m3.sum())


@pytest.mark.parametrize(
    ("values", "digits", "text"),
    [
        ([0.5], 4, "0.5000"),
        ([0.99999, 1.0], 4, "0.9999 to 1"),
        ([0.0, 0.00001], 4, "0 to 0.0001"),
        ([1.0, 1.0], 4, "1"),
        ([28_029, 241_307, 118_453], 0, "28,029 to 241,307"),
        ([0], 0, "0"),
    ],
)
def test_a_spread_never_rounds_to_none_or_all(values: list, digits: int, text: str) -> None:
    assert tables.spread(values, digits) == text


def test_beyond_the_task() -> None:
    found = {(one.form, one.question): one for one in beyond.beyond(500, 0)}
    asked = [key for key, one in found.items() if one.n]
    assert asked == [
        ("Hill circuit", "a digit more"), ("kernel machine", "a digit more"), ("Hill circuit", "a product")
    ]  # fmt: skip
    assert all(found[key].right == found[key].n >= 500 for key in asked)
    assert found["decoders", "a digit more"].words == "cannot be asked"
    assert found["kernel machine", "a digit more"].words == "all right, 1,918 templates"
    assert beyond.Beyond("x", "y", 4, 3, "", "a unit").words == "0.7500 right, a unit"


def test_what_cannot_be_asked_is_refused_by_each_form() -> None:
    with pytest.raises(BadInput, match="an operand of 5 digits"):
        parse("12345+1")
    with pytest.raises(BadInput, match="16 tokens"):
        Architecture(n_ctx=19)
    with pytest.raises(BadInput, match="no problem contains"):
        parse("3x4")
    with pytest.raises(BadInput, match="no bit"):
        Decimal(4).templates.layout["a", 4, 0]
    with pytest.raises(BadInput, match="no bit"):
        Decimal(4).templates.layout["op", 2]


def test_a_product_by_another_unit_is_seen(monkeypatch) -> None:
    real = HillUnit.enumerated
    monkeypatch.setattr(HillUnit, "enumerated", lambda name: real("divide" if name == "multiply" else name))
    (product,) = (one for one in beyond.beyond(500, 0) if one.question == "a product" and one.n)
    assert product.right < 5 and product.words.endswith("right, a unit")


def test_hand_made_checkpoints_through_the_arena(few, checkpoints, tmp_path) -> None:
    write_counts(checkpoints[2], checkpoints[2].weights_sha256)
    found = module.arena.function(checkpoints, module.Options(**SMALL))
    summary = found.tables["summary"].set_index("asked")
    assert list(summary.columns) == [
        "relu, 1 layer", "bilinear, 2 layers, 12,608 parameters", "Hill circuit", "kernel machine"
    ]  # fmt: skip
    assert summary.loc["forms"].tolist() == ["2 seeds", "1 seed", "1", "1"]
    assert summary.loc["sequence accuracy, addition"].tolist()[2:] == ["1", "1"]
    assert summary.loc["sequence accuracy, addition", "relu, 1 layer"] == "0"
    assert summary.loc["wrong of 200,000,000"].tolist() == ["not counted", "100,000,009", "not counted", "not counted"]
    assert summary.loc["sign"].tolist() == ["given", "given", "its own", "its own"]
    assert summary.loc["parameters"].tolist() == ["9,536", "12,608", "8 written", "infinite width"]
    assert summary.loc["fails most in"].tolist()[2:] == ["nothing", "nothing"]
    assert "cannot be asked" in summary.loc["a product", "kernel machine"]
    assert "A short run" in found.findings[0].text
    assert any("100,000,009 of all 200,000,000 problems are answered wrong." in one.text for one in found.findings)
    assert any("0 of 2,000 answers" in one.text and one.n == 2 for one in found.findings)
    analysis.save(found, tmp_path / "out", analysis_name="arena", options=module.Options(), inputs=["x"])
    assert analysis.load(tmp_path / "out") == found


def test_the_full_form_asks_the_exact_forms_every_block(few, monkeypatch) -> None:
    problems = sample(700, 8)
    monkeypatch.setattr("workbench.task.blocks", lambda: iter([problems[:300], problems[300:]]))
    wrong = {"addition": int((~problems.subtract).sum()), "subtraction": int(problems.subtract.sum())}
    found = module.arena.function([], module.Options(**SMALL, full=True))
    domain = found.tables["domain"]
    assert domain["form"].tolist() == ["Hill circuit"] * 2 + ["kernel machine"] * 2 and domain["wrong"].sum() == 0
    assert not any("short run" in one.text for one in found.findings)
    never = forms.Form("x", "x", forms.Cost(0, 0, 0, 0, ""), lambda p: forms.Answered(np.zeros(len(p), bool)))
    monkeypatch.setattr("workbench.task.blocks", lambda: iter([problems[:300], problems[300:]]))
    assert module._domain(never) == wrong


def test_the_figure_shows_zero_as_none_wrong_and_an_interval_where_some_are() -> None:
    problems = sample(20_000, 6)
    asked = arena_problems.Asked(problems, problems)
    games = [
        played("k", in_category(problems, "M3"), problems),
        played("Hill circuit", np.zeros(20_000, bool), problems),
    ]
    rows = [row for game in games for row in tables.category_rows(game, asked)]
    shown = figures.arena_figure(rows, tables.cost_rows([one.form for one in games]))
    some, none, *_ = (trace for trace in shown.data if trace.name == "k")
    assert list(some.y) == [1.0] and len(some.x) == 1 and len(none.x) == len(CLASSES) - 1
    (m3,) = (row for row in rows if row["category"] == "M3" and row["form"] == "k")
    assert list(some.text) == [f"{m3['n']} of {m3['n']} wrong"]
    assert some.error_y.arrayminus[0] == pytest.approx(m3["high"], abs=1e-12)  # from 1 down to 1 - high


def test_it_is_found_through_an_entry_point_that_names_the_package(monkeypatch) -> None:
    entry = importlib.metadata.EntryPoint("arena", "analyses", analysis.ENTRY_POINTS)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    assert analysis.names() == ["arena"]
    assert analysis.get("arena") is module.arena


@pytest.mark.parametrize("changes", [{"problems": 10}, {"of_each_class": 0}, {"seed": -1}, {"problems": 2_000_000}])
def test_options_are_checked(changes: dict) -> None:
    with pytest.raises(BadInput, match="expected"):
        module.Options(**changes)


def test_two_checkpoints_of_one_name_are_refused(checkpoints) -> None:
    with pytest.raises(BadInput, match="two checkpoints are named"):
        module.arena.function([checkpoints[0], checkpoints[0]], module.Options(**SMALL))
